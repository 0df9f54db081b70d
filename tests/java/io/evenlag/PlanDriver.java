package io.evenlag;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
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
            case "divide":
                divide(request, answer);
                break;
            case "watch":
                watch(request, answer);
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
        ConsumerPartitionAssignor leader = leader(request);
        GroupSubscription asked = new GroupSubscription(subscriptions(request));
        Map<String, Assignment> assigned = leader.assign(cluster(request), asked).groupAssignment();
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

    /** Divides the partitions of a group, and answers with the reasons: names, and each partition's member. */
    private static void divide(JsonNode request, ObjectNode answer) {
        Cluster cluster = cluster(request);
        Group group = new Group(cluster, subscriptions(request));
        Plan plan = request.hasNonNull("plan")
            ? Plan.parse(request.get("plan").asText().getBytes(StandardCharsets.UTF_8), "g") : null;
        Division division = Division.of(group, cluster, plan, new CooperativeStickyAssignor());
        Map<String, String> names =
            plan == null ? Map.of() : new MemberNames(plan, group.identities(), group.had()).nameOf;
        names.forEach(answer.putObject("names")::put);
        Map<String, List<TopicPartition>> target = new TreeMap<>();
        division.target.forEach((key, member) -> target.computeIfAbsent(member, each -> new ArrayList<>()).add(key));
        ObjectNode members = answer.putObject("target");
        target.forEach((member, partitions) -> members.set(member, pairs(partitions)));
        ObjectNode now = answer.putObject("now");
        division.now().forEach((member, partitions) -> now.set(member, pairs(partitions)));
        answer.set("withheld", pairs(division.withheld));
        answer.set("missing", pairs(division.missing));
        answer.set("not_read", pairs(division.notRead));
        ArrayNode absent = answer.putArray("absent");
        division.absent.forEach(absent::add);
        answer.put("by_plan", division.byPlan);
    }

    /** Lets a member read plans step by step, and join again where a step says what it has then. */
    private static void watch(JsonNode request, ObjectNode answer) {
        String group = request.get("group").asText();
        Settings settings = new Settings(Map.of("group.id", group, "client.id", "watched", Settings.FILE, "not read",
            Settings.REBALANCE_INTERVAL, "0"));
        ToldPlans plans = new ToldPlans(group);
        PlanStatus status = new PlanStatus();
        PlanReader reader = new PlanReader(plans, group, status);
        PlanWatch watch = new PlanWatch(settings, reader, status);
        ArrayNode steps = answer.putArray("steps");
        for (JsonNode told : request.get("steps")) {
            plans.told = told.get("news");
            reader.read(Duration.ZERO);
            ObjectNode step = steps.addObject();
            step.put("due", watch.due());
            if (told.has("holds")) {
                step.put("joins_with", watch.joining().plan);
                watch.assigned(partitions(told.get("holds")), request.get("member").asText());
            }
            Plan plan = reader.newest();
            step.put("version", plan == null ? 0 : plan.version);
            step.put("trouble", status.trouble);
            step.put("in_force", status.planVersionInForce);
            step.put("by_plan", status.partitionsByPlan);
            ObjectNode owners = step.putObject("assignment");
            if (plan != null) {
                plan.assignment.forEach((member, partitions) -> owners.set(member, pairs(partitions)));
            }
        }
    }

    private static Cluster cluster(JsonNode request) {
        List<PartitionInfo> infos = new ArrayList<>();
        Node[] nodes = {NODE};
        request.get("topics").properties().forEach(e -> {
            for (int i = 0; i < e.getValue().asInt(); i++) {
                infos.add(new PartitionInfo(e.getKey(), i, NODE, nodes, nodes));
            }
        });
        return new Cluster("cluster", List.of(NODE), infos, Set.of(), Set.of());
    }

    /** Returns the members in the order of the request. */
    private static Map<String, Subscription> subscriptions(JsonNode request) {
        Map<String, Subscription> subscriptions = new LinkedHashMap<>();
        request.get("members").properties().forEach(e -> subscriptions.put(e.getKey(), subscription(e.getValue())));
        return subscriptions;
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

    /** A place of plans whose contents a request tells; null for one that cannot be read. */
    private static final class ToldPlans implements Plans {
        JsonNode told;
        private final String group;

        ToldPlans(String group) {
            this.group = group;
        }

        @Override
        public List<News> news(Duration limit) throws UnreadException {
            if (told.isNull()) {
                throw new UnreadException("not read");
            }
            List<News> news = new ArrayList<>();
            told.forEach(each -> news.add(News.of("told", Base64.getDecoder().decode(each.asText()), group)));
            return news;
        }

        @Override
        public boolean isQuick() {
            return false;
        }

        @Override
        public void close() {
            // nothing is open
        }
    }
}
