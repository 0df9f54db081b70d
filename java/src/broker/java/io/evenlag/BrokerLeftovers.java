package io.evenlag;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/**
 * The partitions of a KIP-848 group that its plan does not give away, as a group of its own for Kafka's assignor.
 *
 * <p>As in {@link Leftovers}, the topics hold only these partitions, under new numbers.
 */
final class BrokerLeftovers implements GroupSpec, SubscribedTopicDescriber {
    /** The original numbers of each topic's partitions, by their new numbers. */
    private final Map<Uuid, List<Integer>> originals = new TreeMap<>();
    private final Map<String, MemberSubscription> subscriptions = new TreeMap<>();
    private final Map<String, MemberAssignment> before = new HashMap<>();
    private final Map<Uuid, Set<Integer>> assigned = new HashMap<>();
    private final SubscribedTopicDescriber topics;

    /** @param planned what each member has by the plan; members without are added */
    BrokerLeftovers(GroupSpec group, SubscribedTopicDescriber topics, Map<String, Map<Uuid, Set<Integer>>> planned) {
        this.topics = topics;
        Set<Uuid> read = new TreeSet<>();
        for (String member : group.memberIds()) {
            planned.computeIfAbsent(member, each -> new HashMap<>());
            read.addAll(group.memberSubscription(member).subscribedTopicIds());
        }
        for (Uuid topic : read) {
            Set<Integer> given = new HashSet<>();
            planned.values().forEach(partitions -> given.addAll(partitions.getOrDefault(topic, Set.of())));
            List<Integer> left = new ArrayList<>();
            for (int partition = 0; partition < topics.numPartitions(topic); partition++) {
                if (!given.contains(partition)) {
                    left.add(partition);
                }
            }
            if (!left.isEmpty()) {
                originals.put(topic, left);
            }
        }
        group.memberIds().forEach(member -> add(member, group));
    }

    private void add(String member, GroupSpec group) {
        MemberSubscription subscription = group.memberSubscription(member);
        Set<Uuid> read = new HashSet<>(subscription.subscribedTopicIds());
        read.retainAll(originals.keySet());
        if (read.isEmpty()) {
            return;
        }
        Map<Uuid, Set<Integer>> had = new HashMap<>();
        group.memberAssignment(member).partitions().forEach((topic, partitions) -> partitions.forEach(partition -> {
            int number = read.contains(topic) ? originals.get(topic).indexOf(partition) : -1;
            if (number >= 0) {
                had.computeIfAbsent(topic, each -> new HashSet<>()).add(number);
                assigned.computeIfAbsent(topic, each -> new HashSet<>()).add(number);
            }
        }));
        subscriptions.put(member, new Subscription(subscription.rackId(), subscription.instanceId(), read));
        before.put(member, new BrokerPlanAssignor.Partitions(had));
    }

    /** Adds the fallback's answer to the plan's. */
    void addTo(Map<String, Map<Uuid, Set<Integer>>> planned, ConsumerGroupPartitionAssignor fallback) {
        if (!originals.isEmpty()) {
            fallback.assign(this, this).members().forEach((member, answer) ->
                answer.partitions().forEach((topic, numbers) -> numbers.forEach(number ->
                    planned.get(member).computeIfAbsent(topic, each -> new HashSet<>())
                        .add(originals.get(topic).get(number)))));
        }
    }

    @Override
    public Collection<String> memberIds() {
        return subscriptions.keySet();
    }

    @Override
    public SubscriptionType subscriptionType() {
        long kinds = subscriptions.values().stream().map(MemberSubscription::subscribedTopicIds).distinct().count();
        return kinds > 1 ? SubscriptionType.HETEROGENEOUS : SubscriptionType.HOMOGENEOUS;
    }

    @Override
    public boolean isPartitionAssigned(Uuid topic, int partition) {
        return assigned.getOrDefault(topic, Set.of()).contains(partition);
    }

    @Override
    public boolean isPartitionAssignable(Uuid topic, int partition) {
        return true;
    }

    @Override
    public MemberSubscription memberSubscription(String member) {
        return subscriptions.get(member);
    }

    @Override
    public MemberAssignment memberAssignment(String member) {
        return before.get(member);
    }

    @Override
    public int numPartitions(Uuid topic) {
        return originals.containsKey(topic) ? originals.get(topic).size() : -1;
    }

    @Override
    public Set<String> racksForPartition(Uuid topic, int partition) {
        return topics.racksForPartition(topic, originals.get(topic).get(partition));
    }

    private record Subscription(Optional<String> rackId, Optional<String> instanceId, Set<Uuid> subscribedTopicIds)
        implements MemberSubscription {
    }
}
