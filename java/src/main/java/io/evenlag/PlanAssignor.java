package io.evenlag;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Assigns the partitions of a group by the plan that `evenlag publish` has published.
 *
 * <p>The leader of a rebalance reads the plan from a file ({@code evenlag.plan.file}) or from a compacted topic
 * ({@code evenlag.plan.topic}). {@link MemberNames} finds its members in the group, and {@link Leftovers} shares out
 * the partitions that it leaves out, or gives to nobody in the group. Where there is no plan for any member, another
 * assignor assigns ({@code evenlag.plan.fallback}). No error of a plan fails a rebalance. {@link PlanWatcher} makes a
 * consumer ask for a rebalance when a new plan is published.
 */
public final class PlanAssignor implements ConsumerPartitionAssignor, Configurable {
    private static final Logger LOG = LoggerFactory.getLogger(PlanAssignor.class);

    private final PlanStatus status = new PlanStatus();
    private Settings settings;
    private PlanReader reader;
    private PlanWatch watch;
    private String faultsLogged = "";

    @Override
    public void configure(Map<String, ?> configs) {
        settings = new Settings(configs);
        reader = new PlanReader(settings.plans, settings.group, status);
        watch = new PlanWatch(settings, reader, status);
        if (settings.clientId != null) {
            status.register(settings.group, settings.clientId);
            PlanWatcher.register(settings.clientId, watch);
        }
    }

    @Override
    public String name() {
        return "evenlag-plan";
    }

    @Override
    public List<RebalanceProtocol> supportedProtocols() {
        return settings.eager ? List.of(RebalanceProtocol.EAGER)
            : List.of(RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER);
    }

    @Override
    public ByteBuffer subscriptionUserData(Set<String> topics) {
        if (reader.isQuick()) {
            reader.read(settings.readTimeout);
        }
        return watch.joining().encode();
    }

    @Override
    public void onAssignment(Assignment assignment, ConsumerGroupMetadata metadata) {
        watch.assigned(assignment.partitions(), metadata.memberId());
        if (reader.newest() != null) {
            LOG.info("group {}, {}: {} partitions as in plan {}, {} others", settings.group, metadata.memberId(),
                status.partitionsByPlan, status.planVersion, status.partitionsByFallback);
        }
    }

    @Override
    public GroupAssignment assign(Cluster metadata, GroupSubscription groupSubscription) {
        Group group = new Group(metadata, groupSubscription.groupSubscription());
        reader.readUnlessFailing(settings.readTimeout);
        if (!watch.isWatching()) {
            reader.close();
        }
        Plan plan = reader.newest();
        Division division;
        try {
            division = Division.of(group, metadata, plan, settings.fallback);
        } catch (RuntimeException exception) {
            LOG.error("group {}: the plan failed; the fallback assigns", settings.group, exception);
            plan = null;
            division = Division.of(group, metadata, null, settings.fallback);
        }
        Map<String, Assignment> assignments = new HashMap<>();
        division.now().forEach((member, partitions) -> assignments.put(member, new Assignment(partitions)));
        log(group, division, plan);
        return new GroupAssignment(assignments);
    }

    private void log(Group group, Division division, Plan plan) {
        String fallback = settings.fallback.getClass().getSimpleName();
        int waiting = division.withheld.size();
        int members = group.subscriptions.size();
        int others = group.partitions.size() - division.byPlan;
        if (plan == null) {
            LOG.warn("group {}: no plan ({}): {} partitions by {}, {} of them once they are given up; {} members",
                settings.group, status.trouble, others, fallback, waiting, members);
            return;
        }
        if (division.byPlan > 0) {
            LOG.info("group {}: plan {} is in force: {} partitions by the plan, {} others, {} of all once they are given up; "
                + "{} members", settings.group, plan.version, division.byPlan, others, waiting, members);
        }
        Map<String, Collection<?>> faults = new TreeMap<>();
        faults.put("names of no member", division.absent);
        faults.put("partitions that do not exist", division.missing);
        faults.put("partitions that their members do not subscribe to", division.notRead);
        faults.values().removeIf(Collection::isEmpty);
        String trouble = faults.isEmpty() ? "" : "plan " + plan.version + " has " + faults + "; "
            + (division.byPlan > 0 ? "the members with the fewest partitions and the least lag get their partitions"
                : "it gives nothing to the members, so " + fallback + " assigns");
        if (!trouble.equals(faultsLogged) && !trouble.isEmpty()) {
            LOG.warn("group {}: {}", settings.group, trouble);
        }
        faultsLogged = trouble;
        if (group.newestPlan() > plan.version) {
            LOG.warn("group {}: a member has read plan {}, which the leader does not see yet in {}", settings.group,
                group.newestPlan(), settings.plans);
        }
    }
}
