package io.evenlag;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** A group at a rebalance: what its members subscribe to, claim to own, and what exists. */
final class Group {
    final Map<String, Subscription> subscriptions;
    final Map<String, Set<String>> topics = new HashMap<>();
    /** What exists of the topics that somebody subscribes to, by topic and number. */
    final Map<TopicPartition, PartitionInfo> partitions = new TreeMap<>(
        (one, other) -> one.topic().equals(other.topic())
            ? Integer.compare(one.partition(), other.partition()) : one.topic().compareTo(other.topic()));

    private final Map<String, UserData> sent = new HashMap<>();
    private final int newest;

    Group(Cluster cluster, Map<String, Subscription> subscriptions) {
        this.subscriptions = subscriptions; // in the order that the fallback would see them in
        Set<String> read = new TreeSet<>();
        int generation = -1;
        for (Map.Entry<String, Subscription> member : subscriptions.entrySet()) {
            topics.put(member.getKey(), new HashSet<>(member.getValue().topics()));
            read.addAll(member.getValue().topics());
            sent.put(member.getKey(), UserData.decode(member.getValue().userData()));
            generation = Math.max(generation, generationOf(member.getKey()));
        }
        newest = generation;
        for (String topic : read) {
            for (PartitionInfo info : cluster.partitionsForTopic(topic)) {
                partitions.put(new TopicPartition(topic, info.partition()), info);
            }
        }
    }

    boolean reads(String member, TopicPartition partition) {
        return topics.getOrDefault(member, Set.of()).contains(partition.topic());
    }

    /** Returns the newest plan that a member has read; 0 for none. */
    long newestPlan() {
        return sent.values().stream().mapToLong(data -> data.plan).max().orElse(0);
    }

    /** Returns what a member had in the newest generation, under either protocol; one that was away had nothing. */
    List<TopicPartition> had(String member) {
        if (newest < 0 || generationOf(member) < newest) {
            return List.of();
        }
        Set<TopicPartition> had = new LinkedHashSet<>(subscriptions.get(member).ownedPartitions());
        had.addAll(sent.get(member).owned);
        List<TopicPartition> existing = new ArrayList<>();
        had.stream().filter(each -> partitions.containsKey(each) && reads(member, each)).forEach(existing::add);
        return existing;
    }

    /** Returns the generation to be named with what members had. */
    int generation() {
        return newest;
    }

    /** Returns the members that have not given up each partition, as members of the cooperative protocol need not. */
    Map<TopicPartition, Set<String>> holders() {
        Map<TopicPartition, Set<String>> holders = new HashMap<>();
        subscriptions.forEach((member, subscription) -> subscription.ownedPartitions()
            .forEach(partition -> holders.computeIfAbsent(partition, each -> new HashSet<>()).add(member)));
        return holders;
    }

    /** Returns what lasts of each member; brokers do not pass on hosts. */
    Map<String, Identity> identities() {
        Map<String, Identity> identities = new HashMap<>();
        subscriptions.forEach((member, subscription) -> identities.put(member, new Identity(
            subscription.groupInstanceId().orElse(null), MemberNames.withoutTail(member), null, null)));
        return identities;
    }

    /** Returns what each member had in the newest generation. */
    Map<String, List<TopicPartition>> had() {
        Map<String, List<TopicPartition>> had = new HashMap<>();
        subscriptions.keySet().forEach(member -> had.put(member, had(member)));
        return had;
    }

    private int generationOf(String member) {
        return subscriptions.get(member).generationId().orElse(-1);
    }
}
