package io.evenlag;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a broker's assignor is not told: plans, the groups, client ids and hosts of members, and the ids of topics.
 *
 * <p>A thread asks the brokers for them every second. If the assignment of a group differs from its plan, and this broker
 * coordinates the group, {@link Nudge} makes the coordinator assign anew: once for each plan and membership,
 * and again if the group has followed the plan since.
 */
final class BrokerGroups implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(BrokerPlanAssignor.class);
    /** A broker makes its assignor many times; all of the same settings share one thread. */
    private static final Map<BrokerSettings, BrokerGroups> RUNNING = new ConcurrentHashMap<>();

    private final BrokerSettings settings;
    private final PlanTopic topic;
    private final Map<String, Plan> plans = new HashMap<>();
    private final Map<String, Object> nudged = new HashMap<>();
    private final Map<String, String> troubles = new HashMap<>();
    private volatile Known known = new Known(Map.of(), Map.of(), Map.of(), Map.of());

    private BrokerGroups(BrokerSettings settings) {
        this.settings = settings;
        this.topic = new PlanTopic(settings.topic(), null, settings.client());
    }

    static BrokerGroups of(BrokerSettings settings) {
        return RUNNING.computeIfAbsent(settings, key -> {
            BrokerGroups groups = new BrokerGroups(key);
            Thread thread = new Thread(groups, "evenlag-plans");
            thread.setDaemon(true);
            thread.start();
            return groups;
        });
    }

    /** Returns what was known a moment ago; never waits. */
    Known known() {
        return known;
    }

    @Override
    public void run() {
        Admin admin = null;
        while (true) {
            try {
                Thread.sleep(settings.checkInterval().toMillis());
                readPlans();
                if (!plans.isEmpty()) {
                    admin = admin == null ? Admin.create(settings.client()) : admin;
                    look(admin);
                    report("brokers", "");
                }
            } catch (InterruptedException exception) {
                return;
            } catch (KafkaException | ExecutionException | TimeoutException exception) {
                report("brokers", "groups with plans cannot be described: " + exception);
            } catch (RuntimeException exception) {
                LOG.error("groups with plans cannot be followed for a moment", exception);
            }
        }
    }

    private void readPlans() {
        try {
            for (Plans.News news : topic.news(settings.limit())) {
                Plan before = news.plan == null ? null : plans.get(news.plan.group);
                if (news.plan == null) {
                    LOG.warn("{}; the plan before stays", news.trouble);
                } else if (before == null || news.plan.version > before.version) {
                    plans.put(news.plan.group, news.plan);
                    LOG.info("group {}: read plan {}", news.plan.group, news.plan.version);
                }
            }
            report("plans", "");
        } catch (Plans.UnreadException exception) {
            report("plans", exception.getMessage());
        }
    }

    private void look(Admin admin) throws ExecutionException, InterruptedException, TimeoutException {
        Map<String, ConsumerGroupDescription> groups = new HashMap<>();
        for (Map.Entry<String, KafkaFuture<ConsumerGroupDescription>> each
            : admin.describeConsumerGroups(plans.keySet()).describedGroups().entrySet()) {
            ConsumerGroupDescription group = answer(each.getKey(), each.getValue());
            if (group != null && group.type() == GroupType.CONSUMER
                && group.partitionAssignor().equals(BrokerPlanAssignor.NAME)) {
                groups.put(group.groupId(), group);
            }
        }
        Set<String> topics = new HashSet<>();
        groups.keySet().forEach(id -> plans.get(id).owners.keySet().forEach(each -> topics.add(each.topic())));
        Map<String, Uuid> topicIds = new HashMap<>();
        for (Map.Entry<String, KafkaFuture<TopicDescription>> each
            : admin.describeTopics(topics).topicNameValues().entrySet()) {
            TopicDescription description = answer(each.getKey(), each.getValue());
            if (description != null) {
                topicIds.put(description.name(), description.topicId());
            }
        }
        Map<String, String> groupIds = new HashMap<>();
        Map<String, Identity> members = new HashMap<>();
        groups.values().forEach(group -> group.members().forEach(member -> {
            groupIds.put(member.consumerId(), group.groupId());
            members.put(member.consumerId(), new Identity(
                member.groupInstanceId().orElse(null), member.clientId(), null, member.host()));
        }));
        known = new Known(new HashMap<>(plans), groupIds, members, topicIds);
        groups.values().stream().filter(group -> group.coordinator().id() == settings.node()).forEach(this::follow);
    }

    private <T> T answer(String name, KafkaFuture<T> future)
        throws ExecutionException, InterruptedException, TimeoutException {
        try {
            T answer = future.get(settings.limit().toMillis(), TimeUnit.MILLISECONDS);
            report(name, "");
            return answer;
        } catch (ExecutionException exception) {  // a topic or group that is not there, or not for this user
            report(name, name + ": " + exception.getCause());
            return null;
        }
    }

    private void follow(ConsumerGroupDescription group) {
        String id = group.groupId();
        Map<String, Identity> members = new HashMap<>();
        Map<String, Set<TopicPartition>> targets = new HashMap<>();
        for (MemberDescription member : group.members()) {
            members.put(member.consumerId(), known.members.get(member.consumerId()));
            targets.put(member.consumerId(),
                member.targetAssignment().orElse(member.assignment()).topicPartitions());
        }
        Plan plan = plans.get(id);
        MemberNames matched = new MemberNames(plan, members, targets);
        Map<String, String> names = matched.nameOf;
        List<String> notFound = matched.notFound();
        report("names of " + id, members.isEmpty() || notFound.isEmpty() ? "" : "group " + id + ": plan "
            + plan.version + " names members that are not in it: " + notFound + (names.isEmpty()
                ? "; nobody in it bears a name of the plan, so uniform assigns"
                : "; the members with the fewest partitions and the least lag get their partitions"));
        boolean follows = names.entrySet().stream()
            .allMatch(each -> targets.get(each.getKey()).containsAll(plan.partitionsOf(each.getValue())));
        if (follows) {
            nudged.remove(id);  // members that time out may join again under their ids, before their client ids are known
            return;
        }
        Object reason = Map.of("plan", plan.version, "members", names, "topics", known.topicIds);
        if (reason.equals(nudged.get(id))) {
            return;
        }
        LOG.info("group {}: its assignment is not yet plan {}; its coordinator is made to assign anew", id, plan.version);
        if (Nudge.group(id, settings)) {
            nudged.put(id, reason);
        }
    }

    /** Logs a trouble once, and its end. */
    private void report(String what, String trouble) {
        String before = Objects.requireNonNullElse(trouble.isEmpty() ? troubles.remove(what) : troubles.put(what, trouble), "");
        if (!trouble.equals(before)) {
            LOG.warn("{}", trouble.isEmpty() ? "over: " + before : trouble);
        }
    }

    /** One look at plans, groups and topics. */
    static final class Known {
        final Map<String, Plan> plans;
        final Map<String, String> groupIds;
        final Map<String, Identity> members;
        final Map<String, Uuid> topicIds;
        final Map<Uuid, String> topicNames = new HashMap<>();

        Known(
            Map<String, Plan> plans, Map<String, String> groupIds, Map<String, Identity> members,
            Map<String, Uuid> topicIds
        ) {
            this.plans = plans;
            this.groupIds = groupIds;
            this.members = members;
            this.topicIds = topicIds;
            topicIds.forEach((name, id) -> topicNames.put(id, name));
        }

        /** Returns the plan of the group that one of these members is in; null if there is none. */
        Plan planOf(Collection<String> members) {
            return members.stream().map(groupIds::get).filter(Objects::nonNull).findFirst().map(plans::get).orElse(null);
        }

        /** Returns partitions with the names of their topics; topics that no plan names are left out. */
        Set<TopicPartition> named(Map<Uuid, Set<Integer>> partitions) {
            Set<TopicPartition> named = new HashSet<>();
            partitions.forEach((topic, numbers) -> numbers.forEach(number -> {
                if (topicNames.containsKey(topic)) {
                    named.add(new TopicPartition(topicNames.get(topic), number));
                }
            }));
            return named;
        }
    }
}
