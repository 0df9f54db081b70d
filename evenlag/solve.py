"""The portfolio: which stage runs when, and what comes of it.

baselines → bounds → evening out → MIP → evening out again, each with what is left of one time limit. A stage only
ever offers plans to the incumbent; every plan is checked independently before it counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, floor

import numpy as np

from evenlag.errors import EvenlagError, InvalidPlanError, InvalidProblemError
from evenlag.heuristics import HEURISTICS
from evenlag.model.backends import BACKENDS, LARGEST, Limits
from evenlag.model.backends.runner import run
from evenlag.model.balance import CountRule
from evenlag.model.bounds import Window, lower_bound
from evenlag.model.check import plan_violation, violation
from evenlag.model.formulation import boolean_count, formulate
from evenlag.model.move_bounds import MoveBound
from evenlag.model.objective import DEFAULT_STICKINESS, FEWEST_MOVES, Objective, resolve_objective
from evenlag.model.plan import Number, Plan, current_plan, whole
from evenlag.model.problem import NOBODY, Index, Problem
from evenlag.model.relaxations import relaxations
from evenlag.model.result import Result
from evenlag.search.cache import Known
from evenlag.search.clock import Clock
from evenlag.search.construct import differencing
from evenlag.search.construct.greedy import fewest_moves_plan, greedy
from evenlag.search.construct.lpt import lpt
from evenlag.search.construct.relabel import relabel
from evenlag.search.exact.move_dp import applies as transfers_apply
from evenlag.search.exact.move_dp import best_transfers
from evenlag.search.exact.set_partitioning import best_cover, provable
from evenlag.search.improve import lns
from evenlag.search.improve.equalize import equalize
from evenlag.search.improve.local_search import local_search
from evenlag.search.improve.relocation import relocate

AUTO = "auto"
METHODS = (AUTO, *BACKENDS, *HEURISTICS)
AUTO_BACKEND = "cp-sat"
TOLERANCE = 1e-9  # of the mean load: how closely bound and objective meet where weights make them fractions
LARGEST_BASELINE = {"swap-balance": 2_000}  # partitions; beyond, it takes longer than searches of our own that do more
LEAST_FOR_MIP = 0.02  # seconds; a process cannot be started, and its plan be back, in less
MOVE_BOUND_SHARE = 0.1  # of the time left
FULL_COVERS = 1.0  # seconds left from which on as many patterns may be listed as there may ever be
LITTLE = 0.1  # of all patterns, to cover the partitions before other searches have narrowed them
COVER_SHARE = 0.3  # of the time left, to put covers together
LOADS_SHARE = 0.3  # of the limit, for what loads allow whatever is moved
RELOCATION_SHARE = 0.3  # of the time left
FEW_RELOCATIONS, MOST_RELOCATIONS = 100, 1_000
LEAST_FOR_TRANSFERS = 0.02  # seconds
FULL_TRANSFERS = 2.0  # seconds from which on as many transfers may be listed as there may ever be
NOISE = 0.5  # how far, as a share, later relocations misjudge an exchange
GREEDS = (1.0, 0.6, 0.3, 0.0)  # how much relocation looks at what a move brings
MOST_IDLE = 100  # times that evening out again may bring nothing before it is given up
SMALL_MIP = 200  # booleans
RELAXATIONS = 5  # rules that may bind
SLIGHTLY = 0.03  # of the limit, and seconds, that the question what binds may take beyond it
BINDING_SHARE = 0.1  # of the time limit, at most, to find out what binds


def solve(
    problem: Problem,
    *,
    balance: str = "both",
    stickiness: float | str = DEFAULT_STICKINESS,
    max_moves: int | None = None,
    slack: int = 0,
    objective: str = "spread",
    method: str = AUTO,
    time_limit: float = 10.0,
    gap: float = 0.0,
    seed: int = 0,
    deterministic: bool = False,
    threads: int | None = None,
    start: Plan | None = None,
    work: float | None = None,
    known: Known | None = None,
    ties: bool = True,
) -> Result:
    """Find the best assignment within a time limit, with a proven bound on how good any can be.

    Parameters
    ----------
    problem : Problem
    balance : {"both", "topic", "group", "none"}
        The hard count balance.
    stickiness : number of messages, share such as "0.1%", or "fewest-moves"
        What one move must save; a share is of the mean load, rounded up to whole messages.
    max_moves : int, optional
        Hard budget of moves.
    slack : int
        Partitions by which every count may leave its range.
    objective : {"spread", "makespan"}
    method : str
        "auto", a backend ("cp-sat", "cbc", "highs": baselines, then its MIP alone), or a published heuristic.
    time_limit : float
        Seconds, model building included.
    gap : float
        Stop once (objective − bound) is within this fraction of the mean load.
    seed : int
    deterministic : bool
        Work limits in place of the wall clock, which stays as a safety net: same input and seed, same result but
        for `seconds`, as long as `stopped_by` is not "time".
    threads : int, optional
        For the MIP; default all processors, at most 8.
    start : Plan, optional
        A plan of the same problem to do no worse than, such as the result under a narrower balance.
    work : float, optional
        With `deterministic`: how much work, as the seconds of a time limit; default `time_limit`.
    known : Known, optional
        What other calls on the same problem have worked out.
    ties : bool
        Whether a plan whose objective settles the matter is still evened out by the tie rule; without, only the
        figures of the result are what they should be.

    Returns
    -------
    Result
        Always with a valid plan, never worse than the best published heuristic (up to `LARGEST_BASELINE`) or the
        current assignment that keeps the same balance.

    Raises
    ------
    InvalidProblemError
        A parameter that is no such thing.
    InfeasibleError
        Too little capacity, or too small a budget of moves.
    InvalidPlanError
        A heuristic asked for by name gives no valid plan for this problem.
    """
    if method not in METHODS:
        raise InvalidProblemError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    if not (isinstance(time_limit, int | float) and time_limit > 0):
        raise InvalidProblemError(f"time_limit must be a number of seconds > 0, not {time_limit!r}")
    if not (isinstance(gap, int | float) and gap >= 0):
        raise InvalidProblemError(f"gap must be a fraction of the mean load >= 0, not {gap!r}")
    clock = Clock(float(time_limit), deterministic, work)
    known = known or Known(problem)
    rule = known.rule(balance, slack)
    goal = resolve_objective(rule, objective, stickiness, max_moves)
    search = _Search(rule, goal, clock, float(gap), seed, threads or min(os.cpu_count() or 1, 8), known)
    search.ties = ties
    if not problem.active.any():
        search.incumbent = Plan(problem, np.full_like(problem.owner, NOBODY))
        return search.result("EMPTY", ())
    if method in HEURISTICS:
        return search.heuristic(method)
    if start is not None:
        search.offer(start, "start")
    search.run(method)
    return search.result("OPTIMAL" if search.proven else "FEASIBLE", search.binding())


class _Search:
    """One call of `solve`: the incumbent, the best bound so far, and the stages that better them."""

    def __init__(
        self, rule: CountRule, goal: Objective, clock: Clock, gap: float, seed: int, threads: int, known: Known
    ) -> None:
        self.rule, self.goal, self.clock, self.gap_wanted = rule, goal, clock, gap
        self.problem, self.seed, self.threads, self.known = rule.problem, seed, threads, known
        self.ties = True
        self.incumbent: Plan | None = None
        self.method, self.fallback, self.from_current = "none", False, False
        self.moves_bound = 0
        self.bounds_seconds = 0.0
        self.bound: Number = 0
        self.least: Number = 0  # proven of the spread, or makespan, whatever is moved
        self.stopped_by: str | None = None
        self.until: Number | None = None  # stop as soon as it is known whether the objective can fall below this
        self.notes = list(self.problem.warnings)

    # ---- the portfolio, in order -------------------------------------------------------------------------------

    def run(self, method: str) -> None:
        """Run the stages in order until one settles the matter."""
        if self.until is not None and self._spread_alone:
            self.offer(self._fresh(), "start")
            if self._settled():
                return
        self._baselines()
        if self.incumbent is None:
            self._deal()
        if not self.clock.passed():
            if self.until is None:
                self._bounds()
            if method == AUTO:
                if self._has_owners and not self._near_will_do:
                    self._polish()
                    self._unless_settled(self._relocate_first)
                self._unless_settled(self._bound_loads)
                self._unless_settled(partial(self._fit_transfers, 0.4))
                self._unless_settled(partial(self._cover, LITTLE, by_solver=False))
                self._unless_settled(self._even_out)
                self._unless_settled(self._cover)
                self._unless_settled(self._mip_where_it_helps)
                self._unless_settled(partial(self._fit_transfers, 0.8))
                self._unless_settled(self._even_out_again)
                if self.ties or not self._settled():
                    self._polish()
            else:
                self._unless_settled(partial(self._mip, method))
        if not self._settled():
            self.stopped_by = "time" if self.clock.passed() else "work"

    def _unless_settled(self, stage: Callable[[], None]) -> None:
        if not self._settled() and not self.clock.passed():
            stage()

    def _baselines(self) -> None:
        """Today's assignment and the published heuristics, as they are, where they keep the rule."""
        if self._has_owners:
            self.offer(current_plan(self.problem), "current", from_current=True)
        for name in HEURISTICS:
            if self.incumbent is not None and self.clock.passed():
                return
            if len(self.problem.lags) > LARGEST_BASELINE.get(name, np.inf):
                continue
            try:
                plan = self.known.plan(name)
            except EvenlagError:  # not defined for this problem, so no baseline of it
                continue
            self.offer(plan, name, fallback=True)

    def _bounds(self) -> None:
        started = self.clock.spent
        if self._has_owners and (self.until is None or self.goal.stickiness):
            self.moves_bound, _ = self.rule.fewest_moves()
        self.least = self._window.least(self.goal.kind)
        self.raise_bound(lower_bound(self._window, self.goal, self.moves_bound))
        if self._moves_count and (self.clock.deterministic or self.clock.left() > 2 * (self.clock.spent - started)):
            self._bound_moves()
        self.bounds_seconds = self.clock.spent - started

    def _bound_moves(self) -> None:
        """Raise the bound by the moves that a spread takes."""
        moves = MoveBound(
            self.rule, self._window, self.moves_bound, spread=self.goal.kind == "spread", least=self.least
        )
        stop = self.clock.stop(MOVE_BOUND_SHARE)
        self.raise_bound(whole(moves.objective(self.goal.stickiness, self.goal.max_moves, stop)))

    def _polish(self) -> None:
        """Local search from the best plan so far; proven plans too, for the tie rule."""
        if self.clock.passed():
            return
        share = 0.05 if self.proven else 0.2
        self._improve(self.plan, share=share, from_current=self.from_current)

    def _deal(self) -> None:
        """Offer the stickiest plan and a fresh one, where the budget of moves allows it."""
        if self._has_owners:
            self.offer(self._stickiest, "deal")
        if self.goal.max_moves is None or not self._has_owners:
            self.offer(greedy(self.rule), "deal")

    @cached_property
    def _stickiest(self) -> Plan:
        """A plan with the fewest moves."""
        return fewest_moves_plan(self.rule)

    def _relocate_first(self) -> None:
        """Try a few ways where the MIP can go on from there, else more."""
        if not self.clock.deterministic and self.clock.left() < 2 * self.bounds_seconds:
            return  # the start alone takes about as long as the bounds took
        if boolean_count(self.problem) > LARGEST[AUTO_BACKEND]:
            self._relocate(RELOCATION_SHARE, range(MOST_RELOCATIONS))
        elif self._moves_count:
            self._relocate(RELOCATION_SHARE / 3, range(FEW_RELOCATIONS))
        else:
            self._relocate(RELOCATION_SHARE, range(2 * len(GREEDS)))

    def _relocate(self, share: float, numbers: range) -> None:
        """Go from the fewest moves towards even loads, as far as moves are worth it; again and again, with noise."""
        start = self._stickiest
        self.offer(start, "deal")
        stop = self.clock.stop(share)
        start = equalize(start, self.rule, self._wanted, self.clock.stop(0.05), self.seed, keep_home=True)
        self.offer(start, "relocation")
        for number in numbers:
            most = self._moves_worth
            if stop() or self._settled() or (most is not None and most < start.moves):
                break
            points = relocate(
                start, self.rule, self._wanted, stop, self.seed + number,
                most_moves=most, greed=GREEDS[number % len(GREEDS)], noise=0.0 if number < len(GREEDS) else NOISE,
            )  # fmt: skip
            best = min(points, key=self.goal.value)
            if self.goal.key(best) < self.goal.key(self.plan):
                self.offer(best, "relocation")
                self._improve(best, share=0.02)
        self._improve(self.plan, share=0.1, from_current=self.from_current)

    def _bound_loads(self) -> None:
        """Find the best spread that there is whatever is moved: less is not to be had by any moves."""
        if not self._loads_apart:
            return
        goal = Objective(self.goal.kind)
        freed = _Search(self.rule, goal, self.clock.part(LOADS_SHARE), 0.0, self.seed, self.threads, self.known)
        freed.ties = False
        freed.run(AUTO)
        self.offer(freed.plan, freed.method)
        if freed.bound > self.least:
            self.least = freed.bound
            self._bound_moves()

    def _fit_transfers(self, share: float) -> None:
        """List what members may give and take in a better plan, and see what of that fits together."""
        if self._spread_alone or not transfers_apply(self.rule, self.goal):
            return
        if share * self.clock.worth() < LEAST_FOR_TRANSFERS:
            return
        stop, size = self.clock.stop(share), min(share * self.clock.worth() / FULL_TRANSFERS, 1.0)
        low, high = self._wanted
        window = floor(low), ceil(high)
        plan, bound = best_transfers(
            self.rule, self.goal, window, ceil(self.bound), int(self.value), stop, size, least=ceil(self.least)
        )
        if plan is not None:
            self.offer(plan, "transfers")
        self._take_bound(bound, "transfers")

    @property
    def _moves_worth(self) -> int | None:
        """More moves than this make no better plan."""
        budget = self.goal.max_moves
        if not self.goal.stickiness:
            return budget
        worth = int((self.value - self.least) // self.goal.stickiness)
        return worth if budget is None else min(worth, budget)

    def _even_out(self) -> None:
        """Search for loads inside the window that the bounds leave, moves not counted."""
        most = self._moves_worth
        if most is not None and most < int((self.problem.owner != NOBODY).sum()) // 2:
            return  # it moves more than that
        if self._loads_apart:
            return  # that has been done
        if self._has_owners and self._spread_alone and not self._near_will_do:  # fewer moves, if it comes as far
            plan = equalize(self.plan, self.rule, self._wanted, self.clock.stop(0.2), self.seed)
            self.offer(plan, "evening out")
            if self._settled():
                return
        share = 0.5 if self._has_owners or self._provable or boolean_count(self.problem) <= SMALL_MIP else 0.95
        plan = equalize(self._fresh(), self.rule, self._wanted, self.clock.stop(share), self.seed)
        if self._has_owners and differencing.applies(self.rule):
            plan = relabel(plan)
        self.offer(plan, "evening out")

    def _fresh(self) -> Plan:
        """Start from nothing: by differencing or greedily where members are alike, else dealt."""
        if not differencing.applies(self.rule):
            return greedy(self.rule)
        return (lpt if self.rule.balance == "none" else differencing.difference)(self.rule)

    def _even_out_again(self) -> None:
        """Go on with that from the best plan, drawing anew, for the time that is left."""
        if not self._spread_alone:
            if self._has_owners:
                self._relocate(0.8, range(MOST_RELOCATIONS, 2 * MOST_RELOCATIONS))
            self._improve(self.plan, share=0.9, from_current=self.from_current)
            return
        stop, seed, start = self.clock.stop(0.95), self.seed, self.plan
        idle = 0
        while idle < MOST_IDLE and not stop() and not self._settled():
            seed, idle, before = seed + 1, idle + 1, self.incumbent
            start = equalize(start, self.rule, self._wanted, stop, seed)
            self.offer(start, "evening out")
            if self.incumbent is not before:
                idle = 0

    def _mip_where_it_helps(self) -> None:
        """Most of the time left where moves count or the program is small; large even ones are better evened out."""
        booleans = boolean_count(self.problem)
        if booleans > LARGEST[AUTO_BACKEND]:
            return
        if not self._spread_alone:
            self._mip(AUTO_BACKEND, share=0.7 if self._has_owners else 1.0)
        elif booleans <= SMALL_MIP:
            self._mip(AUTO_BACKEND, share=0.9)
        elif not lns.applies(self.rule, self.plan):
            self._mip(AUTO_BACKEND, share=0.4)

    @property
    def _provable(self) -> bool:
        return self._spread_alone and provable(self.rule)

    @property
    def _loads_apart(self) -> bool:
        """Whether moves count, and the best spread without them can be found first."""
        return self._moves_count and self.goal.kind == "spread" and provable(self.rule)

    @property
    def _moves_count(self) -> bool:
        return self._has_owners and bool(self.goal.stickiness or self.goal.max_moves is not None)

    @property
    def _spread_alone(self) -> bool:
        """Whether only the spread counts: nothing to move, or moves cost nothing."""
        return not self._moves_count and self.goal.kind == "spread"

    @property
    def _near_will_do(self) -> bool:
        """Whether a fresh plan most likely comes near enough at once, wherever the search would start."""
        return self._spread_alone and (self.gap_wanted > 0 or self.until is not None)

    def _cover(self, size: float = 1.0, *, by_solver: bool = True) -> None:
        """List what a member may hold in a better plan, up to this share of the most, and cover the partitions."""
        if not self._provable:
            return
        limits = None
        if by_solver:
            limits = Limits(0.7 * self.clock.left(), self.clock.work(), self.threads, self.seed)
        size *= min(self.clock.worth() / FULL_COVERS, 1.0)
        window = (self._window.low, self._window.high)  # not what a gap makes of it: this is for a proof
        stop = self.clock.stop(COVER_SHARE)
        plan, bound = best_cover(self.rule, window, int(self.value), limits, stop, size)
        if plan is not None:
            self.offer(plan, "exact cover")
        if bound is not None:
            self._take_bound(bound, "exact cover")

    @cached_property
    def _window(self) -> Window:
        """How high the largest and how low the smallest load must be in any plan."""
        return self.known.window(self.rule)

    @property
    def _wanted(self) -> tuple[Number, Number]:
        """Loads beyond which no plan can be bettered."""
        unit, spread = self.problem.load_unit, self.goal.kind == "spread"
        low, high = floor((self._window.low if spread else 0) / unit), ceil(self._window.high / unit)
        if self._spread_alone:
            near = max(floor(self._enough / unit) - (high - low), 0)
            low, high = low - near // 2, high + near - near // 2
        return whole(low * unit), whole(high * unit)

    @property
    def _enough(self) -> Number:
        """An objective that ends the search though less may be possible."""
        if self.until is not None:
            return self.until - self.problem.load_unit
        return self.bound + Fraction(min(self.gap_wanted, 1e9)) * max(Fraction(1), self.problem.mean_load)

    def _improve(self, start: Plan, share: float, from_current: bool = False) -> None:
        plan = local_search(start, self.rule, self.goal, self.clock.stop(share))
        self.offer(plan, "local search", from_current=from_current)

    def _mip(self, backend: str, share: float = 1.0) -> None:
        booleans = boolean_count(self.problem)
        if booleans > LARGEST[backend]:
            self.notes.append(f"{backend}: not tried, its model would have {booleans:,} booleans")
            return
        if self.clock.worth() < LEAST_FOR_MIP:
            return
        mip = formulate(self.problem, self.rule, self.goal)
        hint = mip.encode(self.plan.member_of)
        limits = Limits(share * self.clock.left(), self.clock.work(share), self.threads, self.seed)
        outcome = run(BACKENDS[backend], mip, hint, limits)
        if outcome.failure is not None:
            self.notes.append(f"{backend}: {outcome.failure}")
        if outcome.values is not None:
            self._take_solution(mip.decode(outcome.values), backend)
        if outcome.bound is not None:
            self._take_bound(mip.in_messages(outcome.bound), backend)

    def _take_solution(self, member_of: Index | None, backend: str) -> None:
        if member_of is None:
            self.notes.append(f"{backend}: discarded a solution that gives a partition to nobody or to two")
            return
        plan = Plan(self.problem, member_of)
        broken = violation(plan, self.rule, self.goal)
        if broken is not None:
            self.notes.append(f"{backend}: discarded a solution that breaks a rule: {broken}")
        elif self.goal.value(plan) < self.value:
            self.offer(plan, backend)
            self.offer(local_search(plan, self.rule, self.goal, self.clock.stop()), backend)

    def _take_bound(self, bound: Number, backend: str) -> None:
        if bound > self.value:
            self.notes.append(f"{backend}: discarded a bound that lies above a plan that is known")
        else:
            self.raise_bound(bound)

    # ---- the incumbent -----------------------------------------------------------------------------------------

    def offer(self, plan: Plan, method: str, *, fallback: bool = False, from_current: bool = False) -> None:
        """Take the plan if it keeps every rule and beats the incumbent.

        What comes from today's assignment gives way to others only for a lower objective, so that solving again
        moves nothing.
        """
        if self.incumbent is not None and not self._better(plan, from_current):
            return
        if violation(plan, self.rule, self.goal) is not None:
            return
        self.incumbent, self.method = plan, method
        self.fallback, self.from_current = fallback, from_current

    def _better(self, plan: Plan, from_current: bool) -> bool:
        new, old = self.goal.value(plan), self.value
        if new != old:
            return new < old
        return (from_current or not self.from_current) and self.goal.key(plan) < self.goal.key(self.plan)

    def raise_bound(self, bound: Number) -> None:
        """Take the bound if it is better than what is proven so far."""
        self.bound = max(self.bound, bound)

    @cached_property
    def _has_owners(self) -> bool:
        return bool((self.problem.owner != NOBODY).any())

    @property
    def plan(self) -> Plan:
        """The incumbent; `greedy` keeps every rule, so there is one."""
        if self.incumbent is None:
            raise InvalidPlanError(f"group {self.problem.group!r}: no stage found a valid plan; please report this")
        return self.incumbent

    @property
    def value(self) -> Number:
        """Objective of the incumbent."""
        return self.goal.value(self.plan)

    @property
    def gap(self) -> float:
        """(objective − bound) as a fraction of the mean load."""
        return float(Fraction(self.value - self.bound) / max(Fraction(1), self.problem.mean_load))

    @property
    def proven(self) -> bool:
        """Whether the bound meets the objective."""
        return self.gap <= (0 if isinstance(self.value, int) else TOLERANCE)

    def _settled(self) -> bool:
        if self.proven:
            self.stopped_by = "proof"
        elif self.gap <= self.gap_wanted or (self.until is not None and not self.bound < self.until <= self.value):
            self.stopped_by = "gap"
        return self.stopped_by is not None

    # ---- what comes of it --------------------------------------------------------------------------------------

    def binding(self) -> tuple[str, ...]:
        """Name the rules whose removal lowers the bound.

        A plan of the freed problem below our bound shows that it does, a bound of it no lower that it does not;
        where neither is found in time, or a gap will do, the bounds that need no solver are compared.
        """
        if self.bound == 0:
            return ()
        plain_bound = lower_bound(self._window, self.goal, self.moves_bound)
        found: list[str] = []
        freed_of = relaxations(self.rule, self.goal)  # each is made only once there is time for it
        while True:
            if self.clock.spent + 2 * self.bounds_seconds > (1 + SLIGHTLY) * self.clock.limit + SLIGHTLY:
                self.notes.append("no time was left to find out all that binds")
                break
            if (step := next(freed_of, None)) is None:
                break
            name, rule, goal = step
            if goal.max_moves is not None and rule.fewest_moves()[0] > goal.max_moves:
                continue  # freed of this rule there is no plan within the budget at all
            clock = self.clock.part(BINDING_SHARE / RELAXATIONS)
            known = self.known if rule.problem is self.problem else Known(rule.problem)
            freed = _Search(rule, goal, clock, 0.0, self.seed, self.threads, known)
            freed.until = self.bound
            freed._bounds()
            freed_bound = freed.bound
            if freed_bound < self.bound and not self.gap_wanted and clock.left() > 0:
                freed.run(AUTO)
            if self.clock.deterministic and freed.stopped_by == "time":
                self.notes.append(f"the wall clock, not the work limit, ended the question whether {name} binds")
            below = freed.incumbent is not None and freed.value < self.bound
            if below or (freed.bound < self.bound and freed_bound < plain_bound):
                found.append(name)
        return tuple(found)

    def heuristic(self, name: str) -> Result:
        """Return a published heuristic's plan as it is, beside the bound for the balance asked for."""
        plan = self.known.plan(name)
        broken = plan_violation(plan)
        if broken is not None:
            raise InvalidPlanError(f"{name} gives no valid plan here: {broken}; use method 'auto'")
        self.incumbent, self.method, self.fallback = plan, name, True
        self._bounds()
        return self.result("HEURISTIC", (), violation(plan, self.rule, self.goal))

    def result(self, status: str, binding: tuple[str, ...], broken: str | None = None) -> Result:
        """Put the result together."""
        return Result(
            plan=self.plan,
            status=status,
            stopped_by=self.stopped_by,
            method=self.method,
            fallback=self.fallback,
            objective=self.value,
            bound=self.bound,
            gap=self.gap if broken is None else None,
            moves_bound=self.moves_bound,
            stickiness=FEWEST_MOVES if self.goal.fewest else self.goal.stickiness,
            balance=self.rule.balance,
            binding=binding,
            violation=broken,
            warnings=tuple(self.notes),
            seconds=self.clock.spent,
        )
