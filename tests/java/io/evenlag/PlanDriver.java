package io.evenlag;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** Asks PlanAssignor without a broker: one JSON request a line on stdin, one JSON answer a line on stdout. */
public final class PlanDriver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Node NODE = new Node(0, "broker", 9092);

    private final Map<String, ConsumerPartitionAssignor> leaders = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        PlanDriver driver = new PlanDriver();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                driver.answer(JSON.readTree(line), answer);
            } catch (Exception exception) {
                answer.put("error", exception.toString());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private void answer(JsonNode request, ObjectNode answer) throws Exception {
        switch (request.get("do").asText()) {
            case "parse":
                parse(request, answer);
                break;
            case "assign":
                assign(request, answer);
                break;
            case "broker":
                broker(request, answer);
                break;
            case "join":
                join(request, answer);
                break;
            default:
                throw new IllegalArgumentException(request.get("do").asText());
        }
    }

    private static void parse(JsonNode request, ObjectNode answer) {
        try {
            byte[] content = Base64.getDecoder().decode(request.get("content").asText());
            Plan plan = Plan.parse(content, request.get("group").asText());
            answer.put("version", plan.version);
            ObjectNode assignment = answer.putObject("assignment");
            plan.assignment.forEach((member, partitions) -> assignment.set(member, pairs(partitions)));
        } catch (InvalidPlanException exception) {
            answer.put("invalid", exception.getMessage());
        }
    }

    /** Makes an assignor once for each name of a leader. */
    private ConsumerPartitionAssignor leader(JsonNode request) throws Exception {
        String name = request.get("leader").asText();
        if (!leaders.containsKey(name)) {
            String type = request.path("assignor").asText("io.evenlag.PlanAssignor");
            Object assignor = Class.forName(type).getDeclaredConstructor().newInstance();
            if (assignor instanceof Configurable) {
                Map<String, Object> configs = new HashMap<>(Map.of("group.id", "g", "client.id", "leader"));
                request.get("configs").properties().forEach(e -> configs.put(e.getKey(), e.getValue().asText()));
                ((Configurable) assignor).configure(configs);
            }
            leaders.put(name, (ConsumerPartitionAssignor) assignor);
        }
        return leaders.get(name);
    }

    private void assign(JsonNode request, ObjectNode answer) throws Exception {
        List<PartitionInfo> infos = new ArrayList<>();
        Node[] nodes = {NODE};
        request.get("topics").properties().forEach(e -> {
            for (int i = 0; i < e.getValue().asInt(); i++) {
                infos.add(new PartitionInfo(e.getKey(), i, NODE, nodes, nodes));
            }
        });
        Map<String, Subscription> subscriptions = new HashMap<>();
        request.get("members").properties().forEach(e -> subscriptions.put(e.getKey(), subscription(e.getValue())));
        Cluster cluster = new Cluster("cluster", List.of(NODE), infos, Set.of(), Set.of());
        ConsumerPartitionAssignor leader = leader(request);
        Map<String, Assignment> assigned = leader.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
        ObjectNode members = answer.putObject("assignment");
        for (Map.Entry<String, Assignment> each : assigned.entrySet()) {
            members.set(each.getKey(), pairs(each.getValue().partitions()));
            ByteBuffer data = each.getValue().userData();
            if (data != null && data.hasRemaining()) {
                throw new IllegalStateException("the assignment has user data, which forbids an upgrade to KIP-848");
            }
        }
        if (leader instanceof PlanAssignor) {
            answer.put("protocols", leader.supportedProtocols().toString());
        }
    }

    private static Subscription subscription(JsonNode member) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        ByteBuffer data = member.hasNonNull("sent")
            ? ByteBuffer.wrap(HexFormat.of().parseHex(member.get("sent").asText())) : null;
        Subscription subscription = new Subscription(topics, data, partitions(member.path("owned")),
            member.path("generation").asInt(-1), Optional.empty());
        subscription.setGroupInstanceId(Optional.ofNullable(member.path("instance").asText(null)));
        return subscription;
    }

    /** Asks the broker's assignor, as a coordinator does; members have a client id and maybe an assignment before. */
    private static void broker(JsonNode request, ObjectNode answer) {
        Map<String, Uuid> ids = new HashMap<>();
        Map<Uuid, String> names = new HashMap<>();
        request.get("topics").properties().forEach(e -> {
            Uuid id = new Uuid(1, e.getKey().hashCode());
            ids.put(e.getKey(), id);
            names.put(id, e.getKey());
        });
        Map<String, Identity> known = new HashMap<>();
        Map<String, String> groups = new HashMap<>();
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        request.get("members").properties().forEach(e -> {
            Set<Uuid> topics = new HashSet<>();
            e.getValue().get("topics").forEach(topic -> topics.add(ids.get(topic.asText())));
            Map<Uuid, Set<Integer>> before = new HashMap<>();
            for (TopicPartition each : partitions(e.getValue().path("owned"))) {
                before.computeIfAbsent(ids.get(each.topic()), id -> new HashSet<>()).add(each.partition());
                owners.computeIfAbsent(ids.get(each.topic()), id -> new HashMap<>()).put(each.partition(), e.getKey());
            }
            known.put(e.getKey(), new Identity(
                null, e.getValue().path("client").asText(null), null, e.getValue().path("host").asText(null)));
            groups.put(e.getKey(), "g");
            members.put(e.getKey(), new MemberSubscriptionAndAssignmentImpl(
                Optional.ofNullable(e.getValue().path("rack").asText(null)),
                Optional.ofNullable(e.getValue().path("instance").asText(null)), topics,
                new org.apache.kafka.coordinator.group.modern.Assignment(Collections.unmodifiableMap(before))));
        });
        Set<Set<Uuid>> kinds = new HashSet<>();
        members.values().forEach(member -> kinds.add(member.subscribedTopicIds()));
        GroupSpecImpl spec = new GroupSpecImpl(
            members, kinds.size() > 1 ? SubscriptionType.HETEROGENEOUS : SubscriptionType.HOMOGENEOUS, owners);
        Map<String, Plan> plans = new HashMap<>();
        if (request.hasNonNull("plan")) {
            plans.put("g", Plan.parse(request.get("plan").asText().getBytes(StandardCharsets.UTF_8), "g"));
        }
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                return request.get("topics").get(names.get(topic)).asInt();
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
        GroupAssignment assigned = request.path("uniform").asBoolean() ? new UniformAssignor().assign(spec, describer)
            : BrokerPlanAssignor.assign(spec, describer, new BrokerGroups.Known(plans, groups, known, ids));
        ObjectNode assignment = answer.putObject("assignment");
        assigned.members().forEach((member, partitions) -> {
            List<TopicPartition> given = new ArrayList<>();
            partitions.partitions().forEach(
                (topic, numbers) -> numbers.forEach(number -> given.add(new TopicPartition(names.get(topic), number))));
            assignment.set(member, pairs(given));
        });
    }

    /** Gives the leader an assignment of its own, and answers with what it sends when it joins next. */
    private void join(JsonNode request, ObjectNode answer) throws Exception {
        ConsumerPartitionAssignor member = leader(request);
        if (request.has("assigned")) {
            member.onAssignment(new Assignment(partitions(request.get("assigned"))),
                new ConsumerGroupMetadata("g", 1, "leader-1", Optional.empty()));
        }
        ByteBuffer data = member.subscriptionUserData(Set.of());
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        answer.put("sent", HexFormat.of().formatHex(bytes));
    }

    private static List<TopicPartition> partitions(JsonNode pairs) {
        List<TopicPartition> partitions = new ArrayList<>();
        pairs.forEach(pair -> partitions.add(new TopicPartition(pair.get(0).asText(), pair.get(1).asInt())));
        return partitions;
    }

    private static ArrayNode pairs(List<TopicPartition> partitions) {
        ArrayNode pairs = JSON.createArrayNode();
        partitions.forEach(each -> pairs.addArray().add(each.topic()).add(each.partition()));
        return pairs;
    }
}
