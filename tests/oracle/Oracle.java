import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.types.ArrayOf;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * Runs Kafka's own assignors: one JSON request a line on stdin, one JSON answer a line on stdout; see oracle/__init__.py
 * for both. A request is an assignment, a benchmark if it has "runs", or user data if it has "schema".
 */
public class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Node[] NO_NODES = new Node[0];

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode request = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                if (request.has("schema")) {
                    answer.put("hex", HexFormat.of().formatHex(userData(request)));
                } else if (request.has("runs")) {
                    answer.set("milliseconds", benchmark(request));
                } else {
                    Group group = new Group(request, "members");
                    answer.set("member_of", group.numbered(group.call(request.get("assignor").asText()).get()));
                }
            } catch (Exception exception) {
                answer.put("error", exception.toString());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    /** What an assignor gave to each member. */
    private interface Assigned extends Function<String, Collection<TopicPartition>> {
    }

    private static ArrayNode benchmark(JsonNode request) {
        Group group = new Group(request, "members");
        String name = request.get("assignor").asText();
        if (request.hasNonNull("before")) {
            Group before = new Group(request, "before");
            group.own(before, before.call(name).get());
        }
        ArrayNode milliseconds = JSON.createArrayNode();
        int warm = request.get("warm").asInt();
        for (int i = 0; i < warm + request.get("runs").asInt(); i++) {
            Supplier<?> call = group.call(name);
            long started = System.nanoTime();
            call.get();
            double took = (System.nanoTime() - started) / 1e6;
            if (i >= warm) {
                milliseconds.add(took);
            }
        }
        return milliseconds;
    }

    /** What a member tells the leader: schema 1 by the assignor itself, schema 0 (no generation) by its definition. */
    private static byte[] userData(JsonNode request) {
        List<TopicPartition> owned = new ArrayList<>();
        request.get("owned").forEach(pair -> owned.add(new TopicPartition(pair.get(0).asText(), pair.get(1).asInt())));
        ByteBuffer buffer = request.get("schema").asInt() == 0
            ? userDataWithoutGeneration(owned)
            : userDataOf(owned, request.get("generation").asInt());
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    private static ByteBuffer userDataOf(List<TopicPartition> owned, int generation) {
        StickyAssignor assignor = new StickyAssignor();
        assignor.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("group", generation, "", Optional.empty()));
        return assignor.subscriptionUserData(Set.of());
    }

    private static ByteBuffer userDataWithoutGeneration(List<TopicPartition> owned) {
        Schema topicSchema = new Schema(new Field("topic", Type.STRING), new Field("partitions", new ArrayOf(Type.INT32)));
        Schema schema = new Schema(new Field("previous_assignment", new ArrayOf(topicSchema)));
        Map<String, List<Object>> byTopic = new HashMap<>();
        owned.forEach(p -> byTopic.computeIfAbsent(p.topic(), topic -> new ArrayList<>()).add(p.partition()));
        Object[] topics = byTopic.entrySet().stream()
            .map(e -> new Struct(topicSchema).set("topic", e.getKey()).set("partitions", e.getValue().toArray()))
            .toArray();
        Struct struct = new Struct(schema).set("previous_assignment", topics);
        ByteBuffer buffer = ByteBuffer.allocate(schema.sizeOf(struct));
        schema.write(buffer, struct);
        buffer.flip();
        return buffer;
    }

    /** The cooperative assignor before it withholds what others have to revoke first: what it is heading for. */
    private static class CooperativeTarget extends AbstractStickyAssignor {
        @Override
        public String name() {
            return "cooperative-sticky";
        }

        @Override
        protected MemberData memberData(Subscription subscription) {
            return new MemberData(subscription.ownedPartitions(), subscription.generationId());
        }
    }

    /** A registry for a broker's maps; the class of its log context has another package in each version. */
    private static SnapshotRegistry registry() {
        try {
            Constructor<?> made = SnapshotRegistry.class.getConstructors()[0];
            return (SnapshotRegistry) made.newInstance(made.getParameterTypes()[0].getConstructor().newInstance());
        } catch (ReflectiveOperationException exception) {
            throw new IllegalStateException(exception);
        }
    }

    private static class Group {
        final Map<String, Integer> topics = new TreeMap<>();
        final Map<String, List<String>> members = new TreeMap<>();
        final Map<String, List<TopicPartition>> owned = new HashMap<>();
        final Map<String, Integer> generations = new HashMap<>();
        final List<String> joined = new ArrayList<>();
        final Map<String, String> racks = new HashMap<>();
        final Map<String, String> instances = new HashMap<>();
        final Map<String, String> ids = new HashMap<>();
        final Map<String, String[]> replicaRacks = new HashMap<>();

        Group(JsonNode request, String who) {
            request.get("topics").properties().forEach(e -> topics.put(e.getKey(), e.getValue().asInt()));
            request.path("racks").properties().forEach(
                e -> replicaRacks.put(e.getKey(), e.getValue().asText().split(" "))
            );
            request.path("ids").properties().forEach(e -> ids.put(e.getKey(), e.getValue().asText()));
            List<String> every = new ArrayList<>(topics.keySet());
            for (Map.Entry<String, JsonNode> entry : request.get(who).properties()) {
                String member = entry.getKey();
                JsonNode fields = entry.getValue();
                List<String> subscribed = every;
                if (fields.hasNonNull("topics")) {
                    subscribed = new ArrayList<>();
                    for (JsonNode topic : fields.get("topics")) {
                        subscribed.add(topic.asText());
                    }
                }
                members.put(member, subscribed);
                joined.add(member);
                List<TopicPartition> partitions = new ArrayList<>();
                fields.path("owned").properties().forEach(
                    e -> e.getValue().forEach(p -> partitions.add(new TopicPartition(e.getKey(), p.asInt())))
                );
                owned.put(member, partitions);
                generations.put(member, fields.hasNonNull("generation") ? fields.get("generation").asInt() : -1);
                if (fields.hasNonNull("rack")) {
                    racks.put(member, fields.get("rack").asText());
                }
                if (fields.hasNonNull("instance")) {
                    instances.put(member, fields.get("instance").asText());
                }
            }
        }

        /** A broker for each replica of a partition; one whose rack is not known where the request says nothing. */
        Node[] replicas(String topic, int partition) {
            if (!replicaRacks.containsKey(topic)) {
                return NO_NODES;
            }
            List<Node> nodes = new ArrayList<>();
            for (String rack : replicaRacks.get(topic)[partition].split("")) {
                nodes.add(new Node(nodes.size(), "broker", 9092, rack.equals("-") ? null : rack));
            }
            return nodes.toArray(NO_NODES);
        }

        /** Takes what the members of another group were assigned for what those of the same names own in this one. */
        void own(Group before, Assigned assigned) {
            before.members.keySet().forEach(member -> {
                generations.put(member, 1);
                owned.put(member, new ArrayList<>(assigned.apply(member)));
            });
        }

        /** The call to be made, everything it needs being ready. */
        Supplier<Assigned> call(String name) {
            boolean server = name.startsWith("uniform") || name.endsWith("-server") || name.endsWith("-broker");
            return server ? server(name) : client(name);
        }

        /** Member numbers, by id, of every partition, by topic and number; -1 where it went to none. */
        ArrayNode numbered(Assigned assigned) {
            Map<String, Integer> starts = new HashMap<>();
            int count = 0;
            for (Map.Entry<String, Integer> topic : topics.entrySet()) {
                starts.put(topic.getKey(), count);
                count += topic.getValue();
            }
            int[] numbers = new int[count];
            Arrays.fill(numbers, -1);
            int number = 0;
            for (String member : members.keySet()) {
                for (TopicPartition partition : assigned.apply(member)) {
                    int at = starts.get(partition.topic()) + partition.partition();
                    if (numbers[at] != -1) {
                        throw new IllegalStateException(partition + " has two owners");
                    }
                    numbers[at] = number;
                }
                number++;
            }
            ArrayNode array = JSON.createArrayNode();
            Arrays.stream(numbers).forEach(array::add);
            return array;
        }

        // ---- assignors that run in the leader of the group -------------------------------------------------------

        Supplier<Assigned> client(String name) {
            AbstractPartitionAssignor assignor = switch (name) {
                case "range" -> new RangeAssignor();
                case "roundrobin" -> new RoundRobinAssignor();
                case "sticky" -> new StickyAssignor();
                case "cooperative-sticky" -> new CooperativeTarget();
                case "cooperative-sticky-first" -> new CooperativeStickyAssignor();
                default -> throw new IllegalArgumentException(name);
            };
            Set<String> subscribed = new HashSet<>();
            members.values().forEach(subscribed::addAll);
            Map<String, List<PartitionInfo>> partitions = new HashMap<>();
            topics.forEach((topic, count) -> {
                if (subscribed.contains(topic)) {
                    List<PartitionInfo> infos = new ArrayList<>(count);
                    for (int p = 0; p < count; p++) {
                        Node[] replicas = replicas(topic, p);
                        Node leader = replicas.length > 0 ? replicas[0] : Node.noNode();
                        infos.add(new PartitionInfo(topic, p, leader, replicas, replicas));
                    }
                    partitions.put(topic, infos);
                }
            });
            Map<String, Subscription> subscriptions = new HashMap<>();
            members.forEach((member, names) -> {
                int generation = generations.get(member);
                ByteBuffer data = null;
                List<TopicPartition> kept = owned.get(member);
                if (name.equals("sticky")) {  // eager: all is given up before joining, and told as user data
                    data = generation >= 0 ? userDataOf(kept, generation)
                        : kept.isEmpty() ? null : userDataWithoutGeneration(kept);
                    kept = List.of();
                }
                Optional<String> rack = Optional.ofNullable(racks.get(member));
                subscriptions.put(member, new Subscription(names, data, kept, generation, rack));
            });
            return () -> {
                Map<String, List<TopicPartition>> assignment = assignor.assignPartitions(partitions, subscriptions);
                return member -> assignment.getOrDefault(member, List.of());
            };
        }

        // ---- assignors that run in the broker --------------------------------------------------------------------

        /**
         * Members in the order of their ids and topic ids in the order of names, as in Kafka's own tests. The names that
         * end in "-broker" take the ids of the request, and members, topics and partitions in the order of the
         * collections that a broker keeps them in.
         */
        Supplier<Assigned> server(String name) {
            boolean broker = name.endsWith("-broker");
            Map<String, Uuid> uuids = new HashMap<>();
            Map<Uuid, String> names = new HashMap<>();
            Map<Uuid, Integer> sizes = new HashMap<>();
            topics.forEach((topic, count) -> {
                // 0 and 1 are reserved
                Uuid id = broker ? Uuid.fromString(ids.get(topic)) : new Uuid(0, uuids.size() + 2);
                uuids.put(topic, id);
                names.put(id, topic);
                sizes.put(id, count);
            });
            Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
            Set<Set<Uuid>> subscriptions = new HashSet<>();
            Map<List<String>, Set<Uuid>> seen = new IdentityHashMap<>();
            Map<String, MemberSubscriptionAndAssignmentImpl> kept = broker
                ? new TimelineHashMap<>(registry(), 0) : new TreeMap<>();
            for (String member : joined) {
                Set<Uuid> mine = seen.computeIfAbsent(members.get(member), list -> {
                    Set<Uuid> set = new LinkedHashSet<>();
                    new HashSet<>(list).forEach(topic -> set.add(uuids.get(topic)));
                    subscriptions.add(set);
                    return set;
                });
                Map<Uuid, Set<Integer>> held = new HashMap<>();
                // topics in one bucket of the map are there in the order in which the assignor gave them out
                new HashSet<>(mine).forEach(id -> held.put(id, new HashSet<>()));
                owned.get(member).forEach(partition -> {
                    Uuid id = uuids.get(partition.topic());
                    held.computeIfAbsent(id, key -> new HashSet<>()).add(partition.partition());
                    inverted.computeIfAbsent(id, key -> new HashMap<>()).put(partition.partition(), member);
                });
                held.values().removeIf(Set::isEmpty);
                kept.put(member, new MemberSubscriptionAndAssignmentImpl(
                    Optional.ofNullable(racks.get(member)), Optional.ofNullable(instances.get(member)), mine,
                    new org.apache.kafka.coordinator.group.modern.Assignment(held)
                ));
            }
            Map<String, MemberSubscriptionAndAssignmentImpl> specs = broker ? new HashMap<>() : kept;
            if (broker) {
                kept.forEach(specs::put);
            }
            SubscriptionType type =
                subscriptions.size() > 1 ? SubscriptionType.HETEROGENEOUS : SubscriptionType.HOMOGENEOUS;
            GroupSpecImpl spec = new GroupSpecImpl(specs, type, inverted);
            SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
                @Override
                public int numPartitions(Uuid topic) {
                    return sizes.getOrDefault(topic, -1);
                }

                @Override
                public Set<String> racksForPartition(Uuid topic, int partition) {
                    Set<String> known = new HashSet<>();
                    for (Node replica : replicas(names.get(topic), partition)) {
                        if (replica.rack() != null) {
                            known.add(replica.rack());
                        }
                    }
                    return known;
                }
            };
            ConsumerGroupPartitionAssignor assignor = name.startsWith("range-")
                ? new org.apache.kafka.coordinator.group.assignor.RangeAssignor() : new UniformAssignor();
            return () -> {
                Map<String, MemberAssignment> assignment = assignor.assign(spec, describer).members();
                return member -> {
                    List<TopicPartition> partitions = new ArrayList<>();
                    if (assignment.containsKey(member)) {
                        assignment.get(member).partitions().forEach(
                            (id, numbers) -> numbers.forEach(p -> partitions.add(new TopicPartition(names.get(id), p)))
                        );
                    }
                    return partitions;
                };
            };
        }
    }
}
