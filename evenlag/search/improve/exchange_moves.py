"""Relocation: from a plan with few moves to an even one, always by the exchange that equalizes most for its moves.

The member farthest outside the window swaps one partition with one of another member (or shifts one to it, or takes
one over, where counts allow); a move home costs less than nothing. Where that helps no more and moves are limited, a
partition goes home and its holder takes one of a third member: a rotation that adds no move. What falls is Σ of squared
distances to the window, so that exchanges are liked best that bring two members nearer at once. Every plan on the way
that is better than all before it, at the moves it took, is a point of the frontier of spread against moves.

A greedy descent by gain for cost, as for a knapsack; one exchange leads to the next, since whoever is the worst
afterwards goes on, so that several make a chain (Glover 1996, ejection chains). To take other ways, gains are misjudged
at random: the noising method of Charon and Hudry 1993. And a descent may begin with a good plan of which some moves
are undone: iterated greedy (Ruiz and Stützle 2007).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from evenlag.model.balance import CountRule
from evenlag.model.plan import Number, Plan
from evenlag.model.problem import NOBODY, Index
from evenlag.search.clock import in_steps_of
from evenlag.search.improve.cost_table import CostTable
from evenlag.search.improve.state import Column, SearchState

STEPS_OF_AN_EXCHANGE = 3  # what one exchange takes, in steps of pairs


@dataclass(frozen=True)
class RelocationSettings:
    """What relocation can be tuned by.

    Attributes
    ----------
    most_exchanges : int
        Exchanges that are looked at in one step.
    partners : int
        Members that the worst may exchange with: half of them those farthest on the other side.
    reach : int
        Partitions on both sides of the lag that would serve best, whose holders are partners too.
    most_stuck : int
        Members whom nothing helps until rotations are no longer looked for.
    most_plans : int
        Plans that are kept on the way.
    large : int
        Partitions from which on not every better plan is kept on the way.
    large_fall : float
        By what share the spread must fall then for the next plan to be kept.
    """

    most_exchanges: int = 120_000
    partners: int = 48
    reach: int = 12
    most_stuck: int = 2
    most_plans: int = 4_000
    large: int = 20_000
    large_fall: float = 0.02


def relocate(
    plan: Plan,
    rule: CountRule,
    window: tuple[Number, Number],
    stop: Callable[[], bool],
    seed: int = 0,
    *,
    most_moves: float | None = None,
    greed: float = 1.0,
    noise: float = 0.0,
    undone: float = 0.0,
    careful: bool = False,
    costs: CostTable | None = None,
    spread: bool = True,
    settings: RelocationSettings | None = None,
) -> list[Plan]:
    """Return plans of falling spread (makespan) and mostly rising moves, `plan` first, or what undoing leaves of it.

    Parameters
    ----------
    plan : Plan
        Must keep the rule; the fewer moves it has, the better.
    rule : CountRule
    window : (low, high)
        Loads per weight, in messages, beyond which no plan can be bettered.
    stop : callable
        Asked before each step.
    seed : int
    most_moves : int, optional
        Go no further than this.
    greed : float
        1: as much as possible for each move; 0: as much as possible, whatever it costs.
    noise : float
        How far, as a share, what an exchange is worth is misjudged at random.
    undone : float
        First so large a share of the partitions that have moved, drawn at random, goes home.
    careful : bool
        Nobody else may get farther outside the window by an exchange of the worst member.
    costs : CostTable, optional
        What counts in place of the number of moves, in `most_moves` too.
    spread : bool
        Keep plans of falling spread; else of falling makespan.
    settings : RelocationSettings, optional

    Returns
    -------
    list of Plan
        Each keeps the rule.
    """
    settings = settings or RelocationSettings()
    state = SearchState(plan, rule, window, seed)
    search = _Relocation(state, plan.moves, greed, noise, settings, careful=careful, costs=costs)
    stop = in_steps_of(STEPS_OF_AN_EXCHANGE, stop)
    if undone:
        search.undo(undone, stop)
        plan = Plan(plan.problem, state.member_of.copy())
    found = [plan]
    measured = search.spread if spread else search.makespan
    least = measured()
    least_fall = 0 if len(plan.problem.lags) < settings.large else settings.large_fall
    while not stop() and len(found) < settings.most_plans and search.step(most_moves):
        now = measured()
        if now < least and float(least - now) >= least_fall * float(least):
            found.append(Plan(plan.problem, state.member_of.copy()))
            least = now
    if measured() < least:
        found.append(Plan(plan.problem, state.member_of.copy()))
    return found


def exchange_worst(state: SearchState, stop: Callable[[], bool]) -> None:
    """Carry out such exchanges on a state whatever they move, until none helps or `stop`, asked before each."""
    search = _Relocation(state, 0, greed=0.0, noise=0.0, settings=RelocationSettings())
    stop = in_steps_of(STEPS_OF_AN_EXCHANGE, stop)
    while not stop() and search.step(None):
        pass


class _Relocation:
    """The descent on one state; `moves` are those of the state so far."""

    def __init__(
        self,
        state: SearchState,
        moves: int,
        greed: float,
        noise: float,
        settings: RelocationSettings,
        *,
        careful: bool = False,
        costs: CostTable | None = None,
    ) -> None:
        self.state, self.problem = state, state.problem
        self.greed, self.noise, self.settings, self.careful = greed, noise, settings, careful
        self.owner: Index = state.problem.owner if costs is None else costs.home
        self.costs = costs
        self.moves: float = moves if costs is None else costs.of(state.member_of)
        self.stuck = np.zeros(len(state.active), dtype=bool)

    def spread(self) -> Number:
        """Return the spread of the state in messages."""
        scaled = self.state.scaled[self.state.active]
        return int(scaled.max() - scaled.min()) * self.problem.load_unit

    def makespan(self) -> Number:
        """Return the makespan of the state in messages."""
        return int(self.state.scaled[self.state.active].max()) * self.problem.load_unit

    def undo(self, share: float, stop: Callable[[], bool]) -> None:
        """Send so large a share of the partitions that have moved home, as far as the rule allows, or until `stop`."""
        moved = self._moved()
        left = ceil(share * len(moved))
        for p in self.state.rng.permutation(moved).tolist():
            if not left or stop():
                break
            left -= self._send_home(p)

    def _moved(self) -> Column:
        """Return the partitions that are not with their owner and could go home."""
        owner, state = self.owner, self.state
        away = (
            (owner != NOBODY) & (owner != state.member_of) if self.costs is None else self.costs.away(state.member_of)
        )
        return np.flatnonzero(state.free & away & self.problem.active[owner])

    def _send_home(self, p: int) -> bool:
        """Let a partition go home, for nothing or for one that does not belong there; say whether the rule allowed it.

        What goes home itself in exchange is taken first.
        """
        state, home = self.state, int(self.owner[p])
        me = int(state.member_of[p])
        ours, theirs = np.array([p]), np.append(state.held[home], NOBODY)
        holder = np.full(len(theirs), home)
        cost = self._costs(ours, theirs, me, holder)[0]
        cost[~self._fits(me, ours, theirs, holder)[0]] = 0
        if cost.min() >= 0:
            return False
        best = state.rng.choice(np.flatnonzero(cost == cost.min()))
        take = theirs[best : best + 1]
        self.moves += cost[best].item()
        state.carry_out(me, home, ours, take[take != NOBODY])
        return True

    def step(self, most_moves: float | None) -> bool:
        """Carry out the best exchange of the worst member, if it has one; say whether to go on."""
        state = self.state
        bad = np.where(self.stuck, 0, state.badness())
        a = int(bad.argmax())
        if bad[a] <= 0:
            return False
        budget = None if most_moves is None else most_moves - self.moves
        found = self._best(a, budget)
        if found is None:
            self.stuck[a] = budget is None or not self._rotate(int(state.active[a]), budget)
            return True
        b, give, take, cost = found
        self.moves += cost
        state.carry_out(int(state.active[a]), b, give, take)
        self.stuck[:] = False
        return True

    def _rotate(self, me: int, budget: float) -> bool:
        """Let one partition go home and its holder take another, of a third member; say whether that helps `me`.

        Where counts leave nobody room, as for a member that has just joined, it takes three to send anything home.
        """
        state, owner = self.state, self.owner
        if self.costs is not None or self.stuck.sum() >= self.settings.most_stuck:
            return False
        moved = self._moved()
        mine = (state.member_of[moved] == me) | (owner[moved] == me)
        for back, instead in ((moved[mine], np.flatnonzero(state.free)), (moved[~mine], state.held[me])):
            found = self._best_rotation(me, back, instead, budget) if len(back) and len(instead) else None
            if found is not None:
                p, q, cost = found
                holder, third, nothing = int(state.member_of[p]), int(state.member_of[q]), np.array([], dtype=np.int64)
                self.moves += cost
                state.carry_out(holder, int(owner[p]), np.array([p]), nothing)
                state.carry_out(holder, third, nothing, np.array([q]))
                self.stuck[:] = False
                return True
        return False

    def _best_rotation(self, me: int, back: Column, instead: Column, budget: float) -> tuple[int, int, int] | None:
        """Return which of these goes home, which of those its holder takes, and the moves that adds."""
        state, problem = self.state, self.problem
        most = max(self.settings.most_exchanges // len(back), 1)
        if len(instead) > most:
            instead = instead[self._sample(instead, most)]
        holder, home, third = state.member_of[back], self.owner[back], state.member_of[instead]
        topics, their_topics = problem.topic_of[back], problem.topic_of[instead]
        fits = (third != holder[:, None]) & (third != home[:, None]) & problem.allowed[their_topics][:, holder].T
        fits &= problem.allowed[topics, home][:, None]
        for m in np.unique(home).tolist():
            fits[home == m] &= state.shift_allowed_with(m, third)[1]
        if state.topic_counts is not None:
            fits &= (topics[:, None] == their_topics) & (state.rule.topic_distance == 0)
            fits &= state.rule.may_shift_of(topics[:, None], state.topic_counts, third, home[:, None])
        away = self.owner[instead]
        cost = (away == third).astype(np.int64) - (away == holder[:, None]) - 1
        fits &= cost <= budget
        given, taken = state.lag_of(back)[:, None], state.lag_of(instead)
        before, gain = np.zeros(fits.shape), np.zeros(fits.shape)
        for members, change in ((holder[:, None], taken - given), (home[:, None], given), (third[None, :], -taken)):
            loads = state.scaled[members]
            old, new = self._distance(loads), self._distance(loads + change * state.factors[members])
            before, gain = before + old**2, gain + old**2 - new**2
            if self.careful:
                fits &= (new <= old) | (members == me)
        fits &= gain > 1e-9 * before
        if not fits.any():
            return None
        if self.noise:
            gain = gain * state.rng.uniform(1 - self.noise, 1 + self.noise, gain.shape)
        row, column = divmod(int(np.where(fits, gain, -1.0).argmax()), len(instead))
        return int(back[row]), int(instead[column]), int(cost[row, column])

    def _best(self, a: int, budget: float | None) -> tuple[int, Column, Column, float] | None:
        """The best exchange of the worst member: with whom, what it gives and takes, and the moves that it adds.

        Rows are what the member gives (last: nothing), columns what it takes of others (last of each: nothing).
        """
        state = self.state
        me = int(state.active[a])
        others = self._partners(a)
        ours = np.append(state.held[me], NOBODY)
        theirs = np.concatenate([np.append(state.held[m], NOBODY) for m in others])
        holder = np.repeat(others, [len(state.held[m]) + 1 for m in others])
        if len(ours) * len(theirs) > self.settings.most_exchanges:
            kept = self._sample(theirs, max(self.settings.most_exchanges // len(ours), 1))
            theirs, holder = theirs[kept], holder[kept]
        fits = self._fits(me, ours, theirs, holder)
        gain, before = self._gains(me, ours, theirs, holder)
        cost = self._costs(ours, theirs, me, holder)
        fits &= gain > 1e-9 * before  # squares are floats: less may be nothing
        if budget is not None:
            fits &= cost <= budget
        if not fits.any():
            return None
        worth = np.where(cost > 0, gain / np.maximum(cost, 1) ** self.greed, gain * 1e6)
        if self.noise:
            worth = worth * self.state.rng.uniform(1 - self.noise, 1 + self.noise, worth.shape)
        best = int(np.where(fits, worth, -1.0).argmax())
        row, column = divmod(best, len(theirs))
        give, take = ours[row : row + 1], theirs[column : column + 1]
        return int(holder[column]), give[give != NOBODY], take[take != NOBODY], cost[row, column].item()

    def _gains(self, me: int, ours: Column, theirs: Column, holder: Column) -> tuple[Column, Column]:
        """By how much each exchange lets the pair's squared distances to the window fall, and what they are."""
        state = self.state
        change = state.lag_of(theirs)[None, :] - state.lag_of(ours)[:, None]
        mine = state.scaled[me] + change * state.factors[me]
        other = state.scaled[holder] - change * state.factors[holder]
        before = (
            self._distance(np.array([state.scaled[me]], dtype=state.dtype))[0] ** 2
            + self._distance(state.scaled[holder]) ** 2
        )
        after = self._distance(other)
        gain: Column = before - self._distance(mine) ** 2 - after**2
        if self.careful:
            gain[after > self._distance(state.scaled[holder])] = 0
        return gain, before

    def _partners(self, a: int) -> Column:
        """Those farthest on the other side, some at random, and holders of what would serve best."""
        state, partners = self.state, self.settings.partners
        active = state.active
        if len(active) - 1 <= partners:
            return np.delete(active, a)
        scaled = state.scaled[active]
        order = np.argsort(scaled, kind="stable")
        far = order[: partners // 2] if scaled[a] > state.high else order[-partners // 2 :]
        chosen = active[np.union1d(far, state.rng.integers(len(active), size=partners // 2))]
        able = np.union1d(chosen, self._holders_of_what_lacks(int(active[a])))
        others: Column = able[able != active[a]]
        return others

    def _holders_of_what_lacks(self, me: int) -> Column:
        """Members that hold what takes a member nearest to the window, one partition for another."""
        state, free, mine = self.state, self._by_lag, self.state.held[me]
        if not len(mine):
            return mine
        over = int(state.scaled[me]) - (state.high if state.scaled[me] > state.high else state.low)
        wanted = np.unique(state.lags[mine] - over // int(state.factors[me]))
        reach = min(len(mine), self.settings.reach) + 1  # so that not all of it is the member's own
        near = np.searchsorted(state.lags[free], wanted)[:, None] + np.arange(-reach, reach)
        holders: Column = np.unique(state.member_of[free[np.unique(np.clip(near, 0, len(free) - 1))]])
        return holders

    @cached_property
    def _by_lag(self) -> Column:
        """The free partitions by rising lag."""
        free = np.flatnonzero(self.state.free)
        by_lag: Column = free[np.argsort(self.state.lags[free], kind="stable")]
        return by_lag

    def _sample(self, theirs: Column, most: int) -> Column:
        """Positions of what is looked at where there is too much: evenly over the lags."""
        order = np.argsort(self.state.lag_of(theirs), kind="stable")
        kept: Column = order[np.unique(np.linspace(0, len(order) - 1, most).astype(np.int64))]
        return kept

    def _fits(self, me: int, ours: Column, theirs: Column, holder: Column) -> NDArray[np.bool_]:
        """Which exchanges keep subscriptions and counts."""
        state, problem = self.state, self.problem
        nothing, none_of_theirs = ours == NOBODY, theirs == NOBODY
        topics, their_topics = problem.topic_of[ours], problem.topic_of[theirs]
        fits: NDArray[np.bool_] = np.logical_and.outer(
            np.ones(len(ours), bool), none_of_theirs | problem.allowed[their_topics, me]
        )
        fits &= nothing[:, None] | problem.allowed[topics][:, holder]
        fits[nothing[:, None] & none_of_theirs[None, :]] = False
        gives, takes = state.shift_allowed_with(me, holder)
        fits &= ~none_of_theirs | gives
        fits &= ~nothing[:, None] | takes
        if state.topic_counts is not None:
            leave = nothing[:, None] | state.rule.may_shift_of(topics[:, None], state.topic_counts, me, holder)
            enter = none_of_theirs | state.rule.may_shift_of(their_topics, state.topic_counts, holder, me)
            same = np.equal.outer(topics, their_topics) & ~nothing[:, None] & ~none_of_theirs
            across = leave & enter & (state.rule.topic_distance == 0)
            fits &= same | across
        if self.costs is not None:
            fits &= self.costs.fits(state.member_of, ours, theirs, me, holder)
        return fits

    def _distance(self, scaled: Column) -> Column:
        return self.state.distance(scaled).astype(np.float64)

    def _costs(self, ours: Column, theirs: Column, me: int, holder: Column) -> Column:
        """Moves that each exchange adds, or what it costs; a partition that goes home takes one away."""
        if self.costs is not None:
            return self.costs.change(ours, theirs, me, holder)
        owner = np.where(ours == NOBODY, NOBODY, self.owner[ours])
        give: Column = (owner == me).astype(np.int64)[:, None] - (owner[:, None] == holder[None, :])
        owner = np.where(theirs == NOBODY, NOBODY, self.owner[theirs])
        costs: Column = give + ((owner == holder).astype(np.int64) - (owner == me))
        return costs
