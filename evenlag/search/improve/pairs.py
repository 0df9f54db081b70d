"""Pair search: members outside the window repartition with others, two at a time, until all loads are inside.

The search is an iterated local search (Lourenço, Martin and Stützle 2003). Its local search is pairwise repartitioning.
Its kick (perturbation) brings the worst member into the window at another's cost. That member is then the worst and
passes the difference on: an ejection chain (Glover 1996) whose links the search finds itself. Members that were just
helped are tabu. If no improvement follows, the search returns to the best assignment before the next kick.

Two members share out their partitions anew, as evenly as the lags allow. Their exchanges are drawn to be disjoint:
swaps of two partitions that are equivalent under the rule (of one topic if topics are balanced, otherwise any that both
may take), and shifts of one partition that counts allow. Any subset of them keeps every rule, so the best subset is a
subset sum (subsets.py). Equal loads are best for a pair under any window: at a fixed sum, the larger of the two
distances to an interval grows with the difference of the loads. The method is pairwise interchange: Kernighan and Lin
1970 repartition two sets by a sequence of swaps, and differencing (Karmarkar and Karp 1982) with two sets has the same
aim. Here, all subsets of the drawn exchanges are compared at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Ints, rank_within
from evenlag.model.problem import NOBODY
from evenlag.search.improve.state import BestState, SearchState, Stagnation
from evenlag.search.subsets import nearest_subset, subset_of_size


@dataclass(frozen=True)
class PairParams:
    """Parameters of pair search."""

    exchanges: int = 22  # of a pair, from which a subset is chosen: two halves of 11 have 2,048 sums each
    quick_exchanges: int = 14  # the same for `rounds`, where many pairs can gain much
    worst_share: float = 0.8  # share of steps for the worst member; the others go to any member outside the window
    steps_in_vain: int = 25  # steps per member without progress before the search gives up
    kick_after: int = 12  # steps without progress before a kick; add this many per ten members
    kick_swaps: int = 20_000  # most swaps evaluated to help one member
    kick_partners: int = 8  # partners tried to help one member if topics or costs restrict its swaps


class PairSearch:
    """Search over pairs of members of one state."""

    def __init__(self, state: SearchState, params: PairParams = PairParams()) -> None:
        self.state, self.params = state, params

    # ---- which pairs ---------------------------------------------------------------------------------------------

    def rounds(self, stop: Callable[[], bool]) -> None:
        """Repartition the heaviest member with the lightest, the second heaviest with the second lightest, and so on.

        Rounds go on while each reduces the total distance by a quarter. `stop` is called before each pair.
        """
        state = self.state
        able = np.ones(len(state.active), dtype=bool)
        stagnant = Stagnation()
        while True:
            bad = state.violations()
            left = int(bad.sum())
            if left == 0 or stagnant(left):
                return
            order = np.flatnonzero(able)
            order = order[np.argsort(state.scaled[state.active[order]], kind="stable")].tolist()
            for light, heavy in zip(order[: len(order) // 2], reversed(order), strict=False):
                if stop():
                    return
                if state.oversized[state.active[light]]:
                    continue
                if not self._repartition(heavy, light, self.params.quick_exchanges):
                    able[heavy if bad[heavy] <= bad[light] else light] = False

    def worst_first(self, stop: Callable[[], bool]) -> None:
        """Repartition the member farthest outside the window with others until none is outside or nothing helps.

        Parameters
        ----------
        stop : callable
            Stop criterion, called before each step.
        """
        state = self.state
        count = len(state.active)
        if count < 2:
            return
        best, since, kicks = BestState(state), 0, 0
        state.tabu[:] = False
        failures = np.zeros(count, dtype=np.int64)
        patience = self.params.steps_in_vain * min(count + self.params.steps_in_vain, len(state.lags))
        for step in itertools.count():
            bad = state.violations()
            worst = int(bad.max())
            if best.update(bad):
                since, kicks = step, 0
                state.tabu[:] = False
            if worst <= 0 or stop() or step - since > patience:
                break
            due = (step - since) // (self.params.kick_after * (1 + count // 10))
            if due > kicks:
                kicks = due
                if worst > best.score[0]:
                    best.restore()
                self.kick()
                failures[:] = 0
            else:
                self._step(bad, worst, failures)
        if int(state.violations().max()) >= best.score[0]:
            best.restore()

    def _step(self, bad: Ints, worst: int, failures: NDArray[np.int64]) -> None:
        """Repartition the worst member, or one that failed less often, with a partner.

        If that does not help, the partner repartitions with a random third member, within the worst distance. This
        gives the worst member new partners in the next step.
        """
        most = self.params.exchanges
        of_worst = self.state.rng.random() < self.params.worst_share
        a = int((bad / (1 + failures)).argmax()) if of_worst else self._any(bad > 0)
        b = self._partner(a, int(failures[a]))
        if self._repartition(a, b, most):
            failures[a] = 0
            return
        failures[a] += 1
        c = self._bystander(b)
        if c != b:
            self._repartition(b, c, most, around=worst)

    def _repartition(self, a: int, b: int, most: int, around: int = 0) -> bool:
        active = self.state.active
        return repartition(self.state, int(active[a]), int(active[b]), most, around)

    def _partner(self, a: int, failures: int) -> int:
        """Return the best partner for `a`; after a failure a random one, alternately from beyond the window."""
        state = self.state
        scaled = state.scaled[state.active]
        heavy = bool(scaled[a] > state.high)
        able = state.may_be_partner()
        if heavy or not able.any():
            able[:] = True
        able[a] = False
        if not able.any():  # every other member is excluded, so allow all members
            able[:] = True
            able[a] = False
        if failures == 0:
            among = np.flatnonzero(able)
            return int(among[scaled[among].argmin() if heavy else scaled[among].argmax()])
        if failures % 2:
            other = able & (scaled < state.low if heavy else scaled > state.high)
            if (
                not other.any()
            ):  # with oversized partitions, no other member may lie above the window; one above its low end can give
                other = able & (scaled < state.high if heavy else scaled > state.low)
            if other.any():
                return self._any(other)
        return self._any(able)

    def _bystander(self, a: int) -> int:
        """Return another random member; `a` itself if that one must not be burdened."""
        b = int(self.state.rng.integers(len(self.state.active) - 1))
        b += b >= a
        return b if self.state.may_be_partner()[b] else a

    def _any(self, among: NDArray[np.bool_]) -> int:
        chosen = np.flatnonzero(among)
        return int(chosen[self.state.rng.integers(len(chosen))])

    # ---- the kick --------------------------------------------------------------------------------------------------

    def kick(self, members: int = 1) -> None:
        """Bring the worst members into the window, each at another's cost, and make them tabu."""
        state = self.state
        state.tabu[:] = False
        bad = state.violations()
        for a in np.argsort(-bad, kind="stable")[:members].tolist():
            if bad[a] <= 0 or not len(state.held[state.active[a]]):
                return
            state.tabu[a] = self._help_by_swap(a) if state.interchangeable else self._help_by_pair(a)

    def _help_by_swap(self, a: int) -> bool:
        """Swap two partitions to bring a member into the window; return True if such a swap exists."""
        state, me = self.state, int(self.state.active[a])
        lags, held = state.lags, state.held[me]
        need = -(-(state.low - state.scaled[me]) // state.factors[me])
        if need <= 0:
            need = (state.high - state.scaled[me]) // state.factors[me]
        able = np.zeros(len(state.held), dtype=bool)
        able[state.active[state.may_be_partner()]] = True
        able[me] = False
        others = np.flatnonzero(state.free & able[state.member_of])
        most = max(self.params.kick_swaps // max(len(others), 1), 1)
        if len(held) > most:  # keep the one with the most possible swaps, and random others
            widest = lags[held].argmin() if need > 0 else lags[held].argmax()
            held = np.append(state.rng.permutation(np.delete(held, widest))[: most - 1], held[widest])
        gain = (lags[others][None, :] - lags[held][:, None]).ravel()
        fits = np.flatnonzero(gain >= need if need > 0 else gain <= need)
        if not len(fits):
            return False
        nearest = fits[np.argsort(np.abs(gain[fits] - need), kind="stable")]
        rank = int(len(nearest) ** state.rng.random()) - 1  # prefer near ones
        give, take = divmod(int(nearest[rank]), len(others))
        state.carry_out(me, int(state.member_of[others[take]]), held[[give]], others[[take]])
        return True

    def _help_by_pair(self, a: int) -> bool:
        """Repartition with one partner after another, at their cost; return True once the member is inside."""
        state, me = self.state, int(self.state.active[a])
        need = int(state.low - state.scaled[me])
        need = max(need, 0) or int(state.high - state.scaled[me])
        for _ in range(self.params.kick_partners):
            partner = int(state.active[self._partner(a, 2)])
            if force_inside(state, me, partner, need + state.draw_up_to(4 * need), self.params.exchanges):
                return True
        return False


# ---- what two members exchange ---------------------------------------------------------------------------------------

FEW_HELD = 20  # for fewer partitions, lists are faster than arrays, and a sample of them is split in every way

Exchange = tuple[Ints, Ints]  # partitions that the first of two members gives and takes


def repartition(state: SearchState, a: int, b: int, most: int, around: int = 0) -> bool:
    """Repartition two members.

    Parameters
    ----------
    a, b : int
        Members.
    most : int
        Most exchanges from which a subset is chosen; the work is about 2^(most/2).
    around : int
        Aim at a random point up to this far from equal loads, with neither load farther outside the window than this.
        0: aim at equal loads, and accept only loads between the present two.

    Returns
    -------
    bool
        True if the loads came nearer to each other.
    """
    apart = state.scaled[a] - state.scaled[b]
    aim = 2 * (state.draw_up_to(2 * around) - around) if around else 0
    within = 2 * around if around else abs(apart)
    found = _nearest(state, a, b, apart - aim, within, most)
    if found is None:
        return False
    new_a, new_b = _loads_after(state, a, b, found)
    lowest, highest = min(state.scaled[a], state.scaled[b]), max(state.scaled[a], state.scaled[b])
    if around:
        lowest, highest = state.low - around, state.high + around
    if not (lowest <= min(new_a, new_b) and max(new_a, new_b) <= highest):
        return False  # with unequal weights, nearer loads may still be farther out
    state.carry_out(a, b, *found)
    return bool(abs(new_a - new_b) < abs(apart))


def force_inside(state: SearchState, a: int, b: int, more: int, most: int) -> bool:
    """Bring `a` into the window by about `more` scaled load at the cost of `b`; `a` keeps its biggest partition.

    Return True if that was possible; `most` is as in `repartition`.
    """
    ours = state.held[a]
    biggest = int(state.lags[ours].argmax())
    change = -more * (state.factors[a] + state.factors[b]) // state.factors[a]
    found = _nearest(state, a, b, change, state.scaled.sum(), most, np.delete(ours, biggest))
    fits = found is not None and state.low <= _loads_after(state, a, b, found)[0] <= state.high
    if found is not None and fits:
        state.carry_out(a, b, *found)
    return fits


def _nearest(
    state: SearchState, a: int, b: int, change: Any, within: Any, most: int, ours: Ints | None = None
) -> Exchange | None:
    """Return the exchange that reduces the load difference most nearly by `change`, off by at most `within`.

    `ours` holds the partitions that `a` may give, by default all of its own. Return None if there is no such exchange.
    """
    held = state.held[a] if ours is None else ours, state.held[b]
    if state.interchangeable and min(map(len, held)) < FEW_HELD:
        return _split(state, a, b, held, change, within, most)
    give, take = _disjoint_exchanges(state, a, b, held)
    if not len(give):
        return None
    changes = (state.lag_of(give) - state.lag_of(take)) * (state.factors[a] + state.factors[b])
    fixed, sample = _sample(state.rng, changes, change, most)
    chosen = nearest_subset(changes[sample], change - changes[fixed].sum(), within, state.rng)
    if chosen is None and not len(fixed):
        return None
    kept = fixed if chosen is None else np.concatenate([fixed, sample[chosen]])
    give, take = give[kept], take[kept]
    return give[give != NOBODY], take[take != NOBODY]


def _loads_after(state: SearchState, a: int, b: int, exchange: Exchange) -> tuple[Any, Any]:
    give, take = exchange
    moved = state.lag_of(give).sum() - state.lag_of(take).sum()
    return state.scaled[a] - moved * state.factors[a], state.scaled[b] + moved * state.factors[b]


def _sample(rng: np.random.Generator, changes: Ints, wanted: Any, most: int) -> tuple[Ints, Ints]:
    """Return the positions of exchanges that are always applied, and of those from which a subset is chosen.

    If many are needed, the biggest are always applied, as long as their total stays below what is wanted. The choice
    consists of the biggest remaining ones and random others, half each.
    """
    everything = np.arange(len(changes))
    if len(changes) <= most:
        return everything[:0], everything
    towards = changes if wanted > 0 else -changes
    useful = np.flatnonzero((towards > 0) & (towards <= abs(wanted)))
    useful = useful[np.argsort(-towards[useful], kind="stable")]
    enough = int(np.searchsorted(np.cumsum(towards[useful]), abs(wanted), side="right"))
    fixed = max(enough - most // 2, 0)
    biggest = useful[fixed : fixed + most // 2]
    others = rng.permutation(np.setdiff1d(everything, useful[: fixed + most // 2]))[: most - len(biggest)]
    return useful[:fixed], rng.permutation(np.concatenate([biggest, others]))


def _disjoint_exchanges(state: SearchState, a: int, b: int, held: Exchange) -> Exchange:
    """Return random disjoint exchanges of the pair without cost: what `a` gives and takes (NOBODY: nothing)."""
    rng, problem = state.rng, state.problem
    ours, theirs = rng.permutation(held[0]), rng.permutation(held[1])
    if not problem.equal_subscriptions:
        ours = ours[problem.allowed[problem.topic_of[ours], b]]
        theirs = theirs[problem.allowed[problem.topic_of[theirs], a]]
    if not state.by_topic and not state.priced:
        swaps = min(len(ours), len(theirs))
        give, take = ours[:swaps], theirs[:swaps]
        over, under = ours[swaps:], theirs[swaps:]
    else:
        x, y = _swaps_within_kinds(state, a, b, ours, theirs)
        give, take = ours[x], theirs[y]
        over = _shifts_by_topic(state, a, b, _free_of_cost(state, a, b, _without(ours, x)))
        under = _shifts_by_topic(state, b, a, _free_of_cost(state, a, b, _without(theirs, y)))
        across = min(len(over), len(under))  # two opposite shifts keep the totals
        if across:
            give, take = np.concatenate([give, over[:across]]), np.concatenate([take, under[:across]])
            over, under = over[across:], under[across:]
    over = over[: state.shifts_allowed(a, b)] if len(over) else over
    under = under[: state.shifts_allowed(b, a)] if len(under) else under
    if len(over) or len(under):
        give = np.concatenate([give, over, np.full(len(under), NOBODY)])
        take = np.concatenate([take, np.full(len(over), NOBODY), under])
    return give, take


def _without(items: Ints, positions: Ints) -> Ints:
    """Return the items without those at these positions; faster than the more general numpy.delete."""
    left = np.ones(len(items), dtype=bool)
    left[positions] = False
    return items[left]


def _swaps_within_kinds(state: SearchState, a: int, b: int, ours: Ints, theirs: Ints) -> tuple[Ints, Ints]:
    """Return positions of partitions to swap within their kind at no cost, each used once, in order of kind."""
    if max(len(ours), len(theirs)) < FEW_HELD or state.priced:
        return _few_swaps(_kinds(state, a, b, ours), _kinds(state, a, b, theirs))

    def keys(items: Ints) -> Ints:
        topics = state.problem.topic_of[items].astype(np.int64)
        return topics * len(state.lags) + rank_within(topics)

    _, x, y = np.intersect1d(keys(ours), keys(theirs), assume_unique=True, return_indices=True)
    return x, y


def _kinds(state: SearchState, a: int, b: int, items: Ints) -> list[Any]:
    """Return for each partition what a swap must keep: its topic, if topics count, and its extra cost on b over a."""
    topics = state.problem.topic_of[items].tolist() if state.by_topic else [0] * len(items)
    if not state.priced:
        return topics
    return list(zip(topics, *(more.tolist() for more in state.prices_between(items, a, b)), strict=True))


def _few_swaps(ours: list[Any], theirs: list[Any]) -> tuple[Ints, Ints]:
    """Return paired positions of equal kinds; for few partitions, lists are faster than arrays."""
    places: dict[Any, list[int]] = {}
    for y, kind in enumerate(theirs):
        places.setdefault(kind, []).append(y)
    used = dict.fromkeys(places, 0)
    pairs = []
    for x, kind in enumerate(ours):
        rank = used.get(kind, 0)
        if rank < len(places.get(kind, ())):
            pairs.append((kind, rank, x, places[kind][rank]))
            used[kind] = rank + 1
    pairs.sort()
    return np.array([pair[2] for pair in pairs], dtype=np.int64), np.array([pair[3] for pair in pairs], dtype=np.int64)


def _free_of_cost(state: SearchState, a: int, b: int, items: Ints) -> Ints:
    """Return the `items` that cost the same on both members."""
    if not state.priced:
        return items
    return items[np.all([more == 0 for more in state.prices_between(items, a, b)], axis=0)]


def _shifts_by_topic(state: SearchState, source: int, target: int, items: Ints) -> Ints:
    """Return at most one of `items` for each topic whose counts allow a shift."""
    if not state.by_topic:
        return items
    if state.rule.topic_distance or not len(items):
        return items[:0]
    topics, first = np.unique(state.problem.topic_of[items], return_index=True)
    fits = state.rule.may_shift_of(topics, state.topic_counts, source, target)
    return state.rng.permutation(items[first[fits]])


# ---- all ways to split a sample --------------------------------------------------------------------------------------


def _split(state: SearchState, a: int, b: int, held: Exchange, change: Any, within: Any, most: int) -> Exchange | None:
    """Compare all ways to split a sample of the pair's partitions; each member keeps as many of it as before."""
    half = most // 2
    sides = []
    for source, target, free in ((a, b, held[0]), (b, a, held[1])):
        items = state.rng.permutation(free)[:half]
        if state.shifts_allowed(target, source):  # an empty place that the other side may fill
            items = np.append(items[: half - 1], NOBODY)
        sides.append(items)
    if len(sides[0]) and len(sides[1]) and sides[0][-1] == NOBODY and sides[1][-1] == NOBODY:
        sides[1] = sides[1][:-1]  # two empty places could end up with one member
    sample = np.concatenate(sides)
    values = state.lag_of(sample) * (state.factors[a] + state.factors[b])
    keep = len(sides[0])
    # `b` gets as many of the sample as it gave, worth what it gave plus the change.
    goes = subset_of_size(values, len(sides[1]), int(values[keep:].sum()) + int(change), within, state.rng)
    if goes is None:
        return None
    give, take = sample[:keep][goes[:keep]], sample[keep:][~goes[keep:]]
    if not len(give) and not len(take):
        return None
    return give[give != NOBODY], take[take != NOBODY]
