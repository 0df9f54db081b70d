package io.evenlag;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.BiPredicate;
import java.util.function.ToLongFunction;

/**
 * The partitions that a plan gives to no member of the group.
 *
 * <p>They stay with their owners. Those without one go to the members with the fewest partitions, and among these to the
 * one with the least lag. Then members with two partitions more than another give leftovers to it.
 *
 * @param <P> a partition
 */
final class Leftovers<P> {
    private static final Comparator<Load> FEWEST =
        Comparator.<Load>comparingInt(load -> load.count).thenComparingLong(load -> load.lag);

    private final Map<String, Load> loads = new TreeMap<>();
    private final Map<P, String> members = new HashMap<>();
    private final ToLongFunction<P> lag;
    private final BiPredicate<String, P> reads;

    /**
     * @param planned the partitions of each member by the plan
     * @param lag the lag of each partition when the plan was made
     * @param reads whether a member subscribes to a partition
     */
    Leftovers(Map<String, ? extends Collection<P>> planned, ToLongFunction<P> lag, BiPredicate<String, P> reads) {
        this.lag = lag;
        this.reads = reads;
        planned.forEach((member, partitions) -> {
            Load load = new Load(member);
            partitions.forEach(partition -> load.add(lag.applyAsLong(partition)));
            loads.put(member, load);
        });
    }

    /**
     * Returns the member of each leftover that somebody subscribes to.
     *
     * @param owners members that have partitions today
     */
    Map<P, String> shareOut(Collection<P> partitions, Map<P, String> owners) {
        Map<String, Set<P>> shared = new HashMap<>();
        loads.keySet().forEach(member -> shared.put(member, new LinkedHashSet<>()));
        List<P> free = new ArrayList<>();
        for (P partition : partitions) {
            String owner = owners.get(partition);
            if (owner != null && reads.test(owner, partition)) {
                give(partition, loads.get(owner), shared);
            } else {
                free.add(partition);
            }
        }
        free.sort(Comparator.comparingLong(lag).reversed());
        for (P partition : free) {
            loads.values().stream().filter(load -> reads.test(load.member, partition)).min(FEWEST)
                .ifPresent(load -> give(partition, load, shared));
        }
        while (evenOut(shared)) {
            // each step brings two counts closer
        }
        return members;
    }

    private void give(P partition, Load load, Map<String, Set<P>> shared) {
        String before = members.put(partition, load.member);
        if (before != null) {
            shared.get(before).remove(partition);
            loads.get(before).remove(lag.applyAsLong(partition));
        }
        shared.get(load.member).add(partition);
        load.add(lag.applyAsLong(partition));
    }

    /** Gives one leftover of a full member to one with two partitions less; returns false if there is none. */
    private boolean evenOut(Map<String, Set<P>> shared) {
        List<Load> order = new ArrayList<>(loads.values());
        order.sort(FEWEST);
        for (int full = order.size() - 1; full > 0; full--) {
            Load from = order.get(full);
            for (int few = 0; few < full && from.count - order.get(few).count > 1; few++) {
                Load to = order.get(few);
                long half = (from.lag - to.lag) / 2; // brings both to the same lag
                Optional<P> best = shared.get(from.member).stream().filter(each -> reads.test(to.member, each))
                    .min(Comparator.comparingLong(each -> Math.abs(lag.applyAsLong(each) - half)));
                if (best.isPresent()) {
                    give(best.get(), to, shared);
                    return true;
                }
            }
        }
        return false;
    }

    /** The number of a member's partitions, and their lag. */
    private static final class Load {
        final String member;
        int count;
        long lag;

        Load(String member) {
            this.member = member;
        }

        void add(long more) {
            count++;
            lag += more;
        }

        void remove(long less) {
            count--;
            lag -= less;
        }
    }
}
