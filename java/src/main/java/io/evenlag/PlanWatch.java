package io.evenlag;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;

/**
 * What one consumer knows of its assignment, and whether it should ask for a rebalance.
 *
 * <p>A member tells with its user data which plan it had read when it joined. If it joins again and has read another
 * one since, its user data differ, and the broker rebalances the group, whether the member leads it or not. So each
 * member may ask, and does so once for each plan, unless what it has is already what the plan gives to it.
 */
final class PlanWatch {
    private final Settings settings;
    private final PlanReader reader;
    private final PlanStatus status;
    private Set<TopicPartition> owned = Set.of();
    private String memberId = "";
    private boolean assigned;
    private long assignedAt;
    private long known;
    private Thread thread;

    PlanWatch(Settings settings, PlanReader reader, PlanStatus status) {
        this.settings = settings;
        this.reader = reader;
        this.status = status;
    }

    /** Returns what the member tells the leader as it joins. */
    synchronized UserData joining() {
        Plan plan = reader.newest();
        known = plan == null ? 0 : plan.version;
        assigned = false;
        return new UserData(settings.weight, known, settings.eager ? owned : Set.of());
    }

    /** Takes the outcome of a rebalance in which this assignor was used. */
    synchronized void assigned(List<TopicPartition> partitions, String member) {
        owned = Set.copyOf(partitions);
        memberId = member;
        assigned = true;
        assignedAt = System.nanoTime();
        count();
    }

    /** Returns the version of a plan that the group should rebalance for, and does so once; 0 for none. */
    synchronized long due() {
        Plan plan = reader.newest();
        if (!assigned || plan == null || plan.version <= known) {
            return 0;
        }
        if (System.nanoTime() - assignedAt < settings.rebalanceInterval.toNanos()) {
            return 0;
        }
        known = plan.version;
        count();
        if (status.planVersionInForce == plan.version) {
            return 0;
        }
        status.rebalancesAskedFor++;
        return plan.version;
    }

    private void count() {
        Plan plan = reader.newest();
        Set<TopicPartition> mine = new HashSet<>(plan == null ? List.of() : plan.partitionsOf(name(plan)));
        Set<TopicPartition> byPlan = new HashSet<>(owned);
        byPlan.retainAll(mine);
        status.partitionsByPlan = byPlan.size();
        status.partitionsByFallback = owned.size() - byPlan.size();
        boolean inForce = plan != null && byPlan.size() == mine.size()
            && owned.stream().allMatch(partition -> mine.contains(partition) || !plan.owners.containsKey(partition));
        status.planVersionInForce = inForce ? plan.version : 0;
    }

    /** Returns the name of this member in a plan, as far as it can tell alone; null if the plan does not name it. */
    private String name(Plan plan) {
        Identity identity = new Identity(settings.instanceId, MemberNames.withoutTail(memberId), null, null);
        return new MemberNames(plan, Map.of(memberId, identity), Map.of(memberId, owned)).nameOf.get(memberId);
    }

    synchronized boolean isWatching() {
        return thread != null;
    }

    /** Reads the plans in a thread of its own from now on. */
    synchronized void start() {
        if (thread == null) {
            thread = new Thread(this::run, "evenlag-plans-" + settings.clientId);
            thread.setDaemon(true);
            thread.start();
        }
    }

    /** Ends the thread, and closes the place of plans. */
    void stop() {
        Thread stopping;
        synchronized (this) {
            stopping = thread;
            thread = null;
        }
        if (stopping != null) {
            stopping.interrupt();
        }
    }

    private void run() {
        try {
            while (isWatching()) {
                reader.read(settings.readTimeout);
                Thread.sleep(settings.checkInterval.toMillis());
            }
        } catch (InterruptedException | InterruptException exception) {
            // the consumer was closed
        } finally {
            Thread.interrupted();
            reader.close();
        }
    }
}
