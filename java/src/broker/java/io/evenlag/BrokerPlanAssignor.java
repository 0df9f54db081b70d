package io.evenlag;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Assigns the partitions of KIP-848 groups by the plans that `evenlag publish` has published; on brokers.
 *
 * <p>A broker tells an assignor neither the group nor the names of topics nor client ids. {@link BrokerGroups} learns
 * them from the brokers. What the plan leaves out, or gives to nobody in the group, Kafka's uniform assignor shares out;
 * it assigns everything where there is no plan. No error of a plan fails an assignment.
 */
public final class BrokerPlanAssignor implements ConsumerGroupPartitionAssignor, Configurable {
    static final String NAME = "evenlag-plan";

    private static final Logger LOG = LoggerFactory.getLogger(BrokerPlanAssignor.class);

    private static final UniformAssignor FALLBACK = new UniformAssignor();

    private BrokerGroups groups;

    @Override
    public void configure(Map<String, ?> configs) {
        groups = BrokerGroups.of(new BrokerSettings(configs));
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics) {
        return assign(spec, topics, groups.known());
    }

    static GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics, BrokerGroups.Known known) {
        try {
            Map<String, Map<Uuid, Set<Integer>>> planned = planned(spec, topics, known);
            if (!planned.isEmpty()) {
                new BrokerLeftovers(spec, topics, planned).addTo(planned, FALLBACK);
                Map<String, MemberAssignment> answer = new HashMap<>();
                planned.forEach((member, partitions) -> answer.put(member, new Partitions(partitions)));
                return new GroupAssignment(answer);
            }
        } catch (RuntimeException exception) {
            LOG.error("a plan failed; {} assigns", FALLBACK.name(), exception);
        }
        return FALLBACK.assign(spec, topics);
    }

    /** Returns what the plan gives to each member, empty if it gives nothing to anybody here. */
    private static Map<String, Map<Uuid, Set<Integer>>> planned(
        GroupSpec spec, SubscribedTopicDescriber topics, BrokerGroups.Known known
    ) {
        Map<String, Map<Uuid, Set<Integer>>> planned = new HashMap<>();
        Plan plan = known.planOf(spec.memberIds());
        if (plan == null) {
            return planned;
        }
        Map<String, String> instanceIds = new HashMap<>();
        spec.memberIds().forEach(id -> instanceIds.put(id, spec.memberSubscription(id).instanceId().orElse(null)));
        MemberNames.match(plan.assignment.keySet(), instanceIds, known.clientIds::get).nameOf.forEach((member, name) -> {
            Set<Uuid> read = spec.memberSubscription(member).subscribedTopicIds();
            for (TopicPartition partition : plan.partitionsOf(name)) {
                Uuid topic = known.topicIds.get(partition.topic());
                if (topic != null && read.contains(topic) && partition.partition() < topics.numPartitions(topic)) {
                    planned.computeIfAbsent(member, each -> new HashMap<>())
                        .computeIfAbsent(topic, each -> new HashSet<>()).add(partition.partition());
                }
            }
        });
        return planned;
    }

    /** The partitions of a member; Kafka's assignors take only unmodifiable maps for the assignment before. */
    record Partitions(Map<Uuid, Set<Integer>> partitions) implements MemberAssignment {
        Partitions {
            partitions = Collections.unmodifiableMap(partitions);
        }
    }
}
