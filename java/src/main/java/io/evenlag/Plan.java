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

/** A published plan: the partitions of each member of a group, and a version; a higher one is newer. */
final class Plan {
    private static final Pattern TOPIC = Pattern.compile("[A-Za-z0-9._-]{1,249}");
    private static final int SHOWN = 60;

    final String group;
    final long version;
    final Map<String, List<TopicPartition>> assignment;
    final Map<TopicPartition, String> owners;

    private Plan(String group, long version, Map<String, List<TopicPartition>> assignment) {
        this.group = group;
        this.version = version;
        this.assignment = Collections.unmodifiableMap(assignment);
        Map<TopicPartition, String> all = new HashMap<>();
        assignment.forEach((member, partitions) -> partitions.forEach(partition -> all.put(partition, member)));
        this.owners = Collections.unmodifiableMap(all);
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
        Plan plan = new Plan((String) name, version(fields.get("version")), assignment(fields.get("assignment")));
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
