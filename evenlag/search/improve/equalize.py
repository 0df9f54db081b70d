"""Evening out: the search for a plan with all loads inside the window that the bounds leave.

Members with few partitions: one against all, then pools by exact cover. Members with many: pairs by subset sums, and
before them, where subscriptions differ and a pair has little in common, single exchanges with whoever serves best.
"""

from __future__ import annotations

from collections.abc import Callable

from evenlag.model.balance import CountRule
from evenlag.model.plan import Number, Plan
from evenlag.search.clock import in_steps_of
from evenlag.search.improve import best_pair, lns, three_way
from evenlag.search.improve.best_pair import against_all
from evenlag.search.improve.lns import Pools
from evenlag.search.improve.relocation import exchange_worst
from evenlag.search.improve.state import Levelling
from evenlag.search.improve.three_way import in_threes

STEPS_OF_A_POOL = 20  # what a pool takes, in steps of pairs
PATIENCE = 3  # times through all pools without progress
KICKS = 6  # times that the worst are helped at others' cost before pools are tried again: one, two, …


def even_out(
    plan: Plan,
    rule: CountRule,
    window: tuple[Number, Number],
    stop: Callable[[], bool],
    seed: int = 0,
    *,
    keep_home: bool = False,
) -> Plan:
    """Return a plan with loads nearer to `window`, which is reached by a proven optimum.

    Parameters
    ----------
    plan : Plan
        Must keep the rule.
    rule : CountRule
    window : (low, high)
        Loads per weight, in messages, beyond which no plan can be bettered (model/bounds.py).
    stop : callable
        Asked before each step.
    seed : int
    keep_home : bool
        Leave every partition that is with its owner where it is, so that the plan gets no more moves.
    """
    state = Levelling(plan, rule, window, seed, keep_home=keep_home)
    alike = lns.applies(rule, plan) and not keep_home
    threes = alike and three_way.applies(state)
    if alike and best_pair.applies(state):
        against_all(state, stop, briefly=threes)
    else:
        if not rule.problem.equal_subscriptions:
            exchange_worst(state, stop)
        state.rounds(stop)
        state.worst_first(stop, briefly=threes and bool(state.giant.any()))
    if threes:
        in_threes(state, stop)
    if alike:
        _in_pools(state, stop)
    return Plan(plan.problem, state.member_of)


def _in_pools(state: Levelling, stop: Callable[[], bool]) -> None:
    search = Pools(state)
    stop_pools = in_steps_of(STEPS_OF_A_POOL, stop)
    best, best_plan = _score(state), state.member_of.copy()
    idle = 0
    while best[0] > 0 and idle < PATIENCE and not stop():
        idle += 1
        while not stop_pools() and search.step():
            pass
        for attempt in range(KICKS + 1 if search.few else 1):
            if attempt and not stop():
                state.kick(attempt)
                against_all(state, stop)
                state.spared[:] = False
                against_all(state, stop)
            if _score(state) < best:
                best, best_plan, idle = _score(state), state.member_of.copy(), 0
            elif not (state.member_of == best_plan).all():
                state.start_from(best_plan)
        search.start_over()


def _score(state: Levelling) -> tuple[int, int]:
    bad = state.badness()
    return int(bad.max(initial=0)), int((bad > 0).sum())
