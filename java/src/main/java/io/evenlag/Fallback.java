package io.evenlag;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Another assignor, which assigns a group without a plan for its members.
 *
 * <p>A cooperative one leaves out what moves between members. Where a member still holds such a partition, it gives it up
 * now, and a rebalance follows. What nobody holds, as under the eager protocol, is given away at once: the fallback is
 * asked again, as in the rebalance that would follow.
 */
final class Fallback {
    private static final Logger LOG = LoggerFactory.getLogger(PlanAssignor.class);
    private static final int MOST_CALLS = 4;

    private final ConsumerPartitionAssignor assignor;
    private final Group group;
    private final Cluster cluster;

    Fallback(ConsumerPartitionAssignor assignor, Group group, Cluster cluster) {
        this.assignor = assignor;
        this.group = group;
        this.cluster = cluster;
    }

    /** Returns the member of each partition, without those that somebody has to give up first, or that are refused. */
    Map<TopicPartition, String> assign() {
        Map<String, List<TopicPartition>> owned = new HashMap<>();
        group.subscriptions.keySet().forEach(member -> owned.put(member, new ArrayList<>(group.had(member))));
        int generation = Math.max(group.generation(), 0);
        Map<TopicPartition, String> assigned = ask(owned, generation);
        for (int call = 1; call < MOST_CALLS && !isComplete(assigned); call++) {
            owned.values().forEach(List::clear);
            assigned.forEach((partition, member) -> owned.get(member).add(partition));
            assigned = ask(owned, generation + call);
        }
        return assigned;
    }

    private boolean isComplete(Map<TopicPartition, String> assigned) {
        Set<TopicPartition> held = group.holders().keySet();
        return group.partitions.keySet().stream().allMatch(each -> assigned.containsKey(each) || held.contains(each));
    }

    private Map<TopicPartition, String> ask(Map<String, List<TopicPartition>> owned, int generation) {
        Map<String, Subscription> asking = new HashMap<>();
        group.subscriptions.forEach((member, subscription) -> {
            List<TopicPartition> claims = List.copyOf(owned.get(member));
            Subscription same = new Subscription(subscription.topics(), UserData.sticky(claims, generation), claims,
                generation, subscription.rackId());
            same.setGroupInstanceId(subscription.groupInstanceId());
            asking.put(member, same);
        });
        return checked(assignor.assign(cluster, new GroupSubscription(asking)).groupAssignment());
    }

    private Map<TopicPartition, String> checked(Map<String, ConsumerPartitionAssignor.Assignment> answer) {
        Map<TopicPartition, String> checked = new HashMap<>();
        Set<TopicPartition> refused = new HashSet<>();
        answer.forEach((member, assignment) -> {
            for (TopicPartition partition : assignment.partitions()) {
                if (!group.partitions.containsKey(partition) || !group.reads(member, partition)
                    || checked.putIfAbsent(partition, member) != null) {
                    refused.add(partition);
                }
            }
        });
        if (!refused.isEmpty()) {
            LOG.warn("the fallback's answer is invalid for {}; the members with the fewest partitions get them", refused);
        }
        return checked;
    }
}
