package io.evenlag;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The answer to a rebalance: who gets each partition, why, and what waits until its owner has given it up. */
final class Division {
    private static final Logger LOG = LoggerFactory.getLogger(PlanAssignor.class);

    private final Group group;
    private final Map<TopicPartition, String> target = new HashMap<>();
    /** Names of the plan that several members have, and names that no member has. */
    final Set<String> shared = new TreeSet<>();
    final Set<String> absent = new TreeSet<>();
    /** Partitions of the plan that do not exist, or that their member does not subscribe to. */
    final List<TopicPartition> missing = new ArrayList<>();
    final List<TopicPartition> notRead = new ArrayList<>();
    /** Partitions that are still owned by another member than the one that is to get them. */
    final List<TopicPartition> withheld = new ArrayList<>();
    int byPlan;
    int byFallback;

    private Division(Group group) {
        this.group = group;
    }

    /** Divides the partitions of a group by a plan, or by the fallback alone where the plan is null. */
    static Division of(Group group, Cluster cluster, Plan plan, ConsumerPartitionAssignor fallback) {
        Division division = new Division(group);
        if (plan != null) {
            division.follow(plan);
        }
        division.byPlan = division.target.size();
        List<TopicPartition> left = new ArrayList<>(group.partitions.keySet());
        left.removeAll(division.target.keySet());
        if (!left.isEmpty()) {
            try {
                division.target.putAll(new Leftovers(group, left).shareOut(fallback, cluster));
            } catch (RuntimeException exception) {
                LOG.warn("the fallback {} failed; the members with the fewest partitions get what the plan leaves out",
                    fallback.getClass().getName(), exception);
            }
            division.byFallback = left.size();
            division.giveToTheFewest(left);
        }
        return division;
    }

    private void follow(Plan plan) {
        MemberNames names = MemberNames.match(plan.assignment.keySet(), group.instanceIds());
        shared.addAll(names.shared);
        absent.addAll(plan.assignment.keySet());
        absent.removeAll(names.nameOf.values());
        absent.removeAll(shared);
        names.nameOf.forEach((member, name) -> {
            for (TopicPartition partition : plan.partitionsOf(name)) {
                if (!group.reads(member, partition)) {
                    notRead.add(partition);
                } else if (!group.partitions.containsKey(partition)) {
                    missing.add(partition);
                } else {
                    target.put(partition, member);
                }
            }
        });
    }

    private void giveToTheFewest(List<TopicPartition> partitions) {
        Set<TopicPartition> held = group.holders().keySet();
        Map<String, Integer> counts = new TreeMap<>();
        group.subscriptions.keySet().forEach(member -> counts.put(member, 0));
        target.values().forEach(member -> counts.merge(member, 1, Integer::sum));
        for (TopicPartition partition : partitions) {
            if (!target.containsKey(partition) && !held.contains(partition)) {
                counts.entrySet().stream().filter(member -> group.reads(member.getKey(), partition))
                    .min(Comparator.comparingInt(Map.Entry::getValue))
                    .ifPresent(fewest -> {
                        target.put(partition, fewest.getKey());
                        counts.merge(fewest.getKey(), 1, Integer::sum);
                    });
            }
        }
    }

    /** Returns the partitions that each member gets now: without those that another member has not given up. */
    Map<String, List<TopicPartition>> now() {
        Map<TopicPartition, Set<String>> holders = group.holders();
        Map<String, List<TopicPartition>> now = new HashMap<>();
        group.subscriptions.keySet().forEach(member -> now.put(member, new ArrayList<>()));
        withheld.clear();
        for (TopicPartition partition : group.partitions.keySet()) {
            String member = target.get(partition);
            if (member != null && Set.of(member).containsAll(holders.getOrDefault(partition, Set.of()))) {
                now.get(member).add(partition);
            } else {
                withheld.add(partition);
            }
        }
        return now;
    }
}
