package io.evenlag;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The answer to a rebalance: who gets each partition, why, and what waits until its owner has given it up. */
final class Division {
    private static final Logger LOG = LoggerFactory.getLogger(PlanAssignor.class);

    private final Group group;
    /** The member that each partition goes to, now or once its owner has given it up. */
    final Map<TopicPartition, String> target = new HashMap<>();
    /** Names of the plan that no member has. */
    List<String> absent = List.of();
    /** Partitions of the plan that do not exist, or that their member does not subscribe to. */
    final List<TopicPartition> missing = new ArrayList<>();
    final List<TopicPartition> notRead = new ArrayList<>();
    /** Partitions that are still owned by another member than the one that is to get them. */
    final List<TopicPartition> withheld = new ArrayList<>();
    int byPlan;

    private Division(Group group) {
        this.group = group;
    }

    /** Divides the partitions of a group by a plan; by the fallback where it is null or gives the members nothing. */
    static Division of(Group group, Cluster cluster, Plan plan, ConsumerPartitionAssignor fallback) {
        Division division = new Division(group);
        if (plan != null) {
            division.follow(plan);
        }
        division.byPlan = division.target.size();
        if (division.byPlan > 0) {
            Map<TopicPartition, String> owners = new HashMap<>();
            group.had().forEach((member, had) -> had.forEach(partition -> owners.putIfAbsent(partition, member)));
            division.shareOut(plan, Set.of(), owners);
            return division;
        }
        try {
            division.target.putAll(new Fallback(fallback, group, cluster).assign());
        } catch (RuntimeException exception) {
            LOG.warn("the fallback {} failed; the members with the fewest partitions get them",
                fallback.getClass().getName(), exception);
        }
        division.shareOut(null, group.holders().keySet(), Map.of());
        return division;
    }

    private void follow(Plan plan) {
        MemberNames names = new MemberNames(plan, group.identities(), group.had());
        absent = names.notFound();
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

    /** Shares out the partitions without a target, except those that members hold until the next rebalance. */
    private void shareOut(Plan plan, Set<TopicPartition> held, Map<TopicPartition, String> owners) {
        Map<String, List<TopicPartition>> given = new HashMap<>();
        group.subscriptions.keySet().forEach(member -> given.put(member, new ArrayList<>()));
        target.forEach((partition, member) -> given.get(member).add(partition));
        List<TopicPartition> left = new ArrayList<>(group.partitions.keySet());
        left.removeIf(partition -> target.containsKey(partition) || held.contains(partition));
        Leftovers<TopicPartition> leftovers =
            new Leftovers<>(given, partition -> plan == null ? 0 : plan.lag(partition), group::reads);
        target.putAll(leftovers.shareOut(left, owners));
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
