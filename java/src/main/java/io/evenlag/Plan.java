package io.evenlag;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.common.TopicPartition;

/**
 * A published plan: the partitions of each member of a group, and a version; a higher one is newer. It may also have what
 * was known of members, and the lags of partitions, when it was made.
 */
final class Plan {
    private static final Pattern TOPIC = Pattern.compile("[A-Za-z0-9._-]{1,249}");
    private static final Pattern NUMBER = Pattern.compile("[0-9]{1,9}");
    private static final int SHOWN = 60;

    final String group;
    final long version;
    final Map<String, List<TopicPartition>> assignment;
    final Map<TopicPartition, String> owners;
    private final Map<String, Identity> members;
    private final Map<TopicPartition, Long> lags;

    private Plan(
        String group, long version, Map<String, List<TopicPartition>> assignment, Map<String, Identity> members,
        Map<TopicPartition, Long> lags
    ) {
        this.group = group;
        this.version = version;
        this.assignment = Collections.unmodifiableMap(assignment);
        Map<TopicPartition, String> all = new HashMap<>();
        assignment.forEach((member, partitions) -> partitions.forEach(partition -> all.put(partition, member)));
        this.owners = Collections.unmodifiableMap(all);
        this.members = members;
        this.lags = lags;
    }

    /**
     * Reads the JSON that `evenlag publish` writes.
     *
     * @throws InvalidPlanException the content is not a plan for this group
     */
    static Plan parse(byte[] content, String group) {
        String text;
        try {
            text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(content)).toString();
        } catch (CharacterCodingException exception) {
            throw new InvalidPlanException("not valid JSON (the bytes are not UTF-8)");
        }
        Object document = Json.read(text);
        if (!(document instanceof Map)) {
            throw new InvalidPlanException("a plan must be a JSON object with group, version and assignment");
        }
        Map<?, ?> fields = (Map<?, ?>) document;
        Object name = fields.get("group");
        if (!(name instanceof String) || !isName((String) name)) {
            throw new InvalidPlanException("group must be a name, not " + shown(name));
        }
        Plan plan = new Plan((String) name, version(fields.get("version")), assignment(fields.get("assignment")),
            members(fields.get("members")), lags(fields.get("lags")));
        if (!plan.group.equals(group)) {
            throw new InvalidPlanException("a plan for group '" + plan.group + "', not '" + group + "'");
        }
        return plan;
    }

    private static long version(Object version) {
        if (version == null) {
            throw new InvalidPlanException("the plan has no version; publish it by `evenlag publish`, which adds one");
        }
        if (!(version instanceof Long) || (Long) version < 1) {
            throw new InvalidPlanException("version must be a whole number from 1, not " + shown(version));
        }
        return (Long) version;
    }

    private static Map<String, List<TopicPartition>> assignment(Object value) {
        if (!(value instanceof Map)) {
            throw new InvalidPlanException("assignment must map each member to its partitions, not " + shown(value));
        }
        Map<String, List<TopicPartition>> assignment = new LinkedHashMap<>();
        Map<TopicPartition, String> owners = new HashMap<>();
        for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
            String member = (String) entry.getKey();
            if (!isName(member)) {
                throw new InvalidPlanException(shown(member) + " is not a valid member name");
            }
            if (!(entry.getValue() instanceof List)) {
                throw new InvalidPlanException(
                    "member '" + member + "': partitions must be a list, not " + shown(entry.getValue()));
            }
            List<TopicPartition> partitions = new ArrayList<>();
            for (Object pair : (List<?>) entry.getValue()) {
                TopicPartition partition = partition(member, pair);
                String other = owners.put(partition, member);
                if (other != null) {
                    throw new InvalidPlanException(
                        "the plan assigns " + partition + " to both '" + other + "' and '" + member + "'");
                }
                partitions.add(partition);
            }
            assignment.put(member, Collections.unmodifiableList(partitions));
        }
        return assignment;
    }

    private static TopicPartition partition(String member, Object pair) {
        if (pair instanceof List && ((List<?>) pair).size() == 2) {
            Object topic = ((List<?>) pair).get(0);
            Object number = ((List<?>) pair).get(1);
            if (topic instanceof String && TOPIC.matcher((String) topic).matches() && number instanceof Long
                && (Long) number >= 0 && (Long) number <= Integer.MAX_VALUE) {
                return new TopicPartition((String) topic, ((Long) number).intValue());
            }
        }
        throw new InvalidPlanException("member '" + member + "': " + shown(pair) + " is not a [topic, partition] pair");
    }

    private static Map<String, Identity> members(Object value) {
        Map<String, Identity> members = new HashMap<>();
        for (Map.Entry<?, ?> entry : object(value, "members", "each member to what is known of it").entrySet()) {
            String member = (String) entry.getKey();
            Map<?, ?> known = object(entry.getValue(), "members: '" + member + "'", "names to texts");
            members.put(member, new Identity(text(member, known, "group_instance_id"), text(member, known, "client_id"),
                text(member, known, "rack"), text(member, known, "host")));
        }
        return members;
    }

    private static String text(String member, Map<?, ?> known, String field) {
        Object value = known.get(field);
        if (value != null && !(value instanceof String)) {
            throw new InvalidPlanException(
                "members: '" + member + "': " + field + " must be a text, not " + shown(value));
        }
        return (String) value;
    }

    private static Map<TopicPartition, Long> lags(Object value) {
        Map<TopicPartition, Long> lags = new HashMap<>();
        for (Map.Entry<?, ?> entry : object(value, "lags", "each topic to lags").entrySet()) {
            String topic = (String) entry.getKey();
            if (entry.getValue() instanceof List) {
                List<?> listed = (List<?>) entry.getValue();
                for (int number = 0; number < listed.size(); number++) {
                    lags.put(new TopicPartition(topic, number), lag(topic, listed.get(number)));
                }
                continue;
            }
            for (Map.Entry<?, ?> each : object(entry.getValue(), "lags: '" + topic + "'", "partitions to lags").entrySet()) {
                String number = (String) each.getKey();
                if (!NUMBER.matcher(number).matches()) {
                    throw new InvalidPlanException("lags: '" + topic + "': " + shown(number) + " is not a partition");
                }
                lags.put(new TopicPartition(topic, Integer.parseInt(number)), lag(topic, each.getValue()));
            }
        }
        return lags;
    }

    private static long lag(String topic, Object lag) {
        if (!(lag instanceof Long) || (Long) lag < 0) {
            throw new InvalidPlanException("lags: '" + topic + "': a lag must be a whole number from 0, not " + shown(lag));
        }
        return (Long) lag;
    }

    /** Returns an object of the JSON, empty if it is left out. */
    private static Map<?, ?> object(Object value, String field, String contents) {
        if (value != null && !(value instanceof Map)) {
            throw new InvalidPlanException(field + " must map " + contents + ", not " + shown(value));
        }
        return value == null ? Map.of() : (Map<?, ?>) value;
    }

    /** Returns whether a text is not empty and can be printed in one line: the only separators in it are spaces. */
    private static boolean isName(String text) {
        return !text.isEmpty() && text.codePoints().allMatch(Plan::isPrintable);
    }

    private static boolean isPrintable(int point) {
        switch (Character.getType(point)) {
            case Character.CONTROL:
            case Character.FORMAT:
            case Character.SURROGATE:
            case Character.PRIVATE_USE:
            case Character.UNASSIGNED:
            case Character.LINE_SEPARATOR:
            case Character.PARAGRAPH_SEPARATOR:
                return false;
            case Character.SPACE_SEPARATOR:
                return point == ' ';
            default:
                return true;
        }
    }

    private static String shown(Object value) {
        String text = value instanceof String ? "'" + value + "'" : String.valueOf(value);
        return text.length() <= SHOWN ? text : text.substring(0, SHOWN) + "…";
    }

    /** Returns the partitions of a member, none if the plan does not name it. */
    List<TopicPartition> partitionsOf(String member) {
        return member == null ? List.of() : assignment.getOrDefault(member, List.of());
    }

    /** Returns what is known of a member besides its name. */
    Identity identity(String member) {
        return members.getOrDefault(member, Identity.UNKNOWN);
    }

    /** Returns a name with the id behind it by which a user knows the member. */
    String shownName(String member) {
        Identity known = identity(member);
        String id = known.instanceId != null ? known.instanceId : known.clientId;
        return id == null || id.equals(member) ? member : member + " (" + id + ")";
    }

    /** Returns the lag of a partition when the plan was made; 0 if the plan does not have it. */
    long lag(TopicPartition partition) {
        return lags.getOrDefault(partition, 0L);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Plan && version == ((Plan) other).version && group.equals(((Plan) other).group)
            && owners.equals(((Plan) other).owners)
            && assignment.keySet().equals(((Plan) other).assignment.keySet());
    }

    @Override
    public int hashCode() {
        return Long.hashCode(version);
    }
}
