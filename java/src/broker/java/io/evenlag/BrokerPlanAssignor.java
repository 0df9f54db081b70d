package io.evenlag;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Assigns the partitions of KIP-848 groups by the plans that `evenlag publish` has published; on brokers.
 *
 * <p>A broker tells an assignor neither the group nor the names of topics nor client ids. {@link BrokerGroups} learns
 * them from the brokers. {@link MemberNames} finds the plan's members in the group, and {@link Leftovers} shares out the
 * partitions that it leaves out, or gives to nobody in the group. Where there is no plan for any member, Kafka's uniform
 * assignor assigns. No error of a plan fails an assignment.
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
            Plan plan = known.planOf(spec.memberIds());
            Map<String, Set<Place>> given = plan == null ? Map.of() : planned(spec, topics, known, plan);
            if (given.values().stream().anyMatch(places -> !places.isEmpty())) {
                leftovers(spec, topics, known, plan, given).forEach((place, member) -> given.get(member).add(place));
                Map<String, MemberAssignment> answer = new HashMap<>();
                given.forEach((member, places) -> answer.put(member, Partitions.of(places)));
                return new GroupAssignment(answer);
            }
        } catch (RuntimeException exception) {
            LOG.error("a plan failed; {} assigns", FALLBACK.name(), exception);
        }
        return FALLBACK.assign(spec, topics);
    }

    /** Returns what the plan gives to each member. */
    private static Map<String, Set<Place>> planned(
        GroupSpec spec, SubscribedTopicDescriber topics, BrokerGroups.Known known, Plan plan
    ) {
        Map<String, Set<Place>> planned = new HashMap<>();
        Map<String, Identity> identities = new HashMap<>();
        Map<String, Set<TopicPartition>> held = new HashMap<>();
        for (String member : spec.memberIds()) {
            MemberSubscription subscription = spec.memberSubscription(member);
            Identity described = known.members.getOrDefault(member, Identity.UNKNOWN);
            planned.put(member, new HashSet<>());
            if (subscription.subscribedTopicIds().isEmpty()) {
                continue; // it reads nothing, as the member of Nudge
            }
            identities.put(member, new Identity(subscription.instanceId().orElse(null), described.clientId,
                subscription.rackId().orElse(null), described.host));
            held.put(member, known.named(spec.memberAssignment(member).partitions()));
        }
        new MemberNames(plan, identities, held).nameOf.forEach((member, name) -> {
            Set<Uuid> read = spec.memberSubscription(member).subscribedTopicIds();
            for (TopicPartition partition : plan.partitionsOf(name)) {
                Uuid topic = known.topicIds.get(partition.topic());
                if (topic != null && read.contains(topic) && partition.partition() < topics.numPartitions(topic)) {
                    planned.get(member).add(new Place(topic, partition.partition()));
                }
            }
        });
        return planned;
    }

    /** Returns the members of the partitions that the plan gives to nobody. */
    private static Map<Place, String> leftovers(
        GroupSpec spec, SubscribedTopicDescriber topics, BrokerGroups.Known known, Plan plan,
        Map<String, Set<Place>> given
    ) {
        Set<Place> left = new LinkedHashSet<>();
        Map<Place, String> owners = new HashMap<>();
        for (String member : new TreeSet<>(spec.memberIds())) {
            for (Uuid topic : new TreeSet<>(spec.memberSubscription(member).subscribedTopicIds())) {
                IntStream.range(0, topics.numPartitions(topic)).forEach(number -> left.add(new Place(topic, number)));
            }
            spec.memberAssignment(member).partitions().forEach(
                (topic, numbers) -> numbers.forEach(number -> owners.put(new Place(topic, number), member)));
        }
        given.values().forEach(left::removeAll);
        Map<Uuid, String> names = known.topicNames;
        return new Leftovers<>(given,
            place -> names.containsKey(place.topic) ? plan.lag(new TopicPartition(names.get(place.topic), place.number)) : 0,
            (member, place) -> spec.memberSubscription(member).subscribedTopicIds().contains(place.topic)
        ).shareOut(left, owners);
    }

    /** A partition, as brokers name it to an assignor. */
    private record Place(Uuid topic, int number) {
    }

    /** The partitions of a member; Kafka's assignors take only unmodifiable maps for the assignment before. */
    record Partitions(Map<Uuid, Set<Integer>> partitions) implements MemberAssignment {
        Partitions {
            partitions = Collections.unmodifiableMap(partitions);
        }

        static Partitions of(Set<Place> places) {
            Map<Uuid, Set<Integer>> partitions = new HashMap<>();
            places.forEach(place -> partitions.computeIfAbsent(place.topic, topic -> new HashSet<>()).add(place.number));
            return new Partitions(partitions);
        }
    }
}
