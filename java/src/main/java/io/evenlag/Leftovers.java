package io.evenlag;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The partitions that a plan does not give away, for the fallback to share out.
 *
 * <p>Assignors take the partitions of a topic to be numbered from 0 on, so the fallback sees topics in which only these
 * partitions exist, under new numbers. A cooperative fallback leaves out what moves between members. Where a member still
 * holds such a partition, it gives it up now, and a rebalance follows. What nobody holds, as under the eager protocol,
 * is given away at once: the fallback is asked again, as in the rebalance that would follow.
 */
final class Leftovers {
    private static final Logger LOG = LoggerFactory.getLogger(PlanAssignor.class);
    private static final int MOST_CALLS = 4;

    private final Group group;
    private final Map<String, List<PartitionInfo>> topics = new TreeMap<>();
    private final Map<TopicPartition, TopicPartition> numbered = new HashMap<>();
    private final Map<TopicPartition, TopicPartition> originals = new HashMap<>();

    /** @param partitions what is to be shared out, in order */
    Leftovers(Group group, Collection<TopicPartition> partitions) {
        this.group = group;
        for (TopicPartition partition : partitions) {
            List<PartitionInfo> topic = topics.computeIfAbsent(partition.topic(), name -> new ArrayList<>());
            TopicPartition number = new TopicPartition(partition.topic(), topic.size());
            PartitionInfo info = group.partitions.get(partition);
            topic.add(new PartitionInfo(number.topic(), number.partition(), info.leader(), info.replicas(),
                info.inSyncReplicas(), info.offlineReplicas()));
            numbered.put(partition, number);
            originals.put(number, partition);
        }
    }

    /** Returns the member of each partition, without those that somebody has to give up first, or that are refused. */
    Map<TopicPartition, String> shareOut(ConsumerPartitionAssignor fallback, Cluster cluster) {
        Map<String, List<TopicPartition>> owned = new HashMap<>();
        group.subscriptions.keySet().forEach(member -> owned.put(member, claims(member)));
        int generation = Math.max(group.generation(), 0);
        Map<TopicPartition, String> shared = ask(fallback, cluster, owned, generation);
        for (int call = 1; call < MOST_CALLS && !isComplete(shared); call++) {
            owned.values().forEach(List::clear);
            shared.forEach((original, member) -> owned.get(member).add(numbered.get(original)));
            shared = ask(fallback, cluster, owned, generation + call);
        }
        return shared;
    }

    private boolean isComplete(Map<TopicPartition, String> shared) {
        Set<TopicPartition> held = group.holders().keySet();
        return numbered.keySet().stream().allMatch(each -> shared.containsKey(each) || held.contains(each));
    }

    private List<TopicPartition> claims(String member) {
        List<TopicPartition> claims = new ArrayList<>();
        group.had(member).stream().filter(numbered::containsKey).forEach(each -> claims.add(numbered.get(each)));
        return claims;
    }

    private Map<TopicPartition, String> ask(
        ConsumerPartitionAssignor fallback, Cluster cluster, Map<String, List<TopicPartition>> owned, int generation
    ) {
        Map<String, Subscription> asking = new HashMap<>();
        group.subscriptions.forEach((member, subscription) -> {
            List<String> read = new ArrayList<>();
            subscription.topics().stream().filter(topics::containsKey).forEach(read::add);
            if (!read.isEmpty()) {
                List<TopicPartition> claims = List.copyOf(owned.get(member));
                ByteBuffer sticky = UserData.sticky(claims, generation);
                Subscription same = new Subscription(read, sticky, claims, generation, subscription.rackId());
                same.setGroupInstanceId(subscription.groupInstanceId());
                asking.put(member, same);
            }
        });
        List<PartitionInfo> infos = new ArrayList<>();
        topics.values().forEach(infos::addAll);
        Cluster reduced = new Cluster(cluster.clusterResource().clusterId(), cluster.nodes(), infos, Set.of(), Set.of());
        return checked(fallback.assign(reduced, new GroupSubscription(asking)).groupAssignment());
    }

    private Map<TopicPartition, String> checked(Map<String, ConsumerPartitionAssignor.Assignment> answer) {
        Map<TopicPartition, String> checked = new HashMap<>();
        Set<TopicPartition> refused = new HashSet<>();
        answer.forEach((member, assignment) -> {
            for (TopicPartition number : assignment.partitions()) {
                TopicPartition original = originals.get(number);
                if (original == null || !group.reads(member, original) || checked.putIfAbsent(original, member) != null) {
                    refused.add(number);
                }
            }
        });
        if (!refused.isEmpty()) {
            LOG.warn("the fallback's answer is invalid for {}; the members with the fewest partitions get them", refused);
        }
        return checked;
    }
}
