"""Claims on a whole group: the outcome, the objective, the rules that were asked for, and the moves one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from evenlag.model.explanation.bound_claims import bound_claim, limit_claims, load_claims
from evenlag.model.explanation.claims import Claim
from evenlag.model.explanation.solved_question import Decided
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY

MOST_STEPS = 10  # moves that get a claim each
MOST_TRIED = 100  # moves among which the next step is the one that brings most; of more it is that of the most lag


def group_claims(asked: Decided) -> Iterator[Claim]:
    """Yield the claims on a group, the decisive one first."""
    yield outcome_claim(asked)
    if asked.result.left_alone:
        yield _left_alone(asked)
    yield objective_claim(asked)
    yield bound_claim(asked)
    yield from load_claims(asked)
    yield from limit_claims(asked)
    yield from _asked_for(asked)
    yield from _steps(asked)


def outcome_claim(asked: Decided) -> Claim:
    """Return the claim on what the plan brings: to the busiest member, or to the objective's measure of scenarios."""
    result, today, lags = asked.result, asked.today, asked.whole.lags
    data: dict[str, Any] = {
        "moves": result.moves,
        "assigned": result.forced_moves,
        "pays": result.pays,
        "weighted": not asked.problem.equal_weights,
    }
    if asked.whole.futures:
        data |= {
            "before": None if today is None else asked.measure(today.member_of),
            "after": asked.measure(result.plan.member_of),
            "floor": None,
            "floor_by": None,
        }
    else:
        data |= {
            "before": None if today is None else max(asked.loads(lags, today.member_of).values()),
            "after": max(asked.loads(lags, result.plan.member_of).values()),
            "floor": asked.bounds.max_load_lb,
            "floor_by": list(asked.bounds.largest_by),
        }
    return Claim("outcome", data | _measured(asked))


def _measured(asked: Decided) -> dict[str, Any]:
    """Return the measure of loads in the objective: its name, and the number of scenarios and how they are combined."""
    futures = len(asked.whole.futures)
    return {
        "measure": str(asked.goal.kind),
        "scenarios": futures,
        "across": str(asked.goal.across) if futures else None,
    }


def objective_claim(asked: Decided) -> Claim:
    """Return the claim on the objective: the measure today and planned, and what each priced unit adds."""
    goal, today = asked.goal, asked.today
    priced = [[pair.name, pair.of(asked.plan.member_of), pair.price] for pair in goal.pairs if pair.price]
    if goal.stickiness:
        priced.insert(0, ["moves", asked.plan.moves, goal.stickiness])
    return Claim("objective", {
        **_measured(asked),
        "before": None if today is None else asked.measure(today.member_of),
        "after": goal.base(asked.plan),
        "priced": priced,
        "objective": asked.result.objective,
    })  # fmt: skip


def _left_alone(asked: Decided) -> Claim:
    """Return the claim on the plan that was found, but does not save what was asked for."""
    worth = asked.result.payoff
    assert worth is not None
    data = {"today": asked.result.objective, "saved": worth.saved, "moves": worth.moves, "asked": worth.asked}
    return Claim("left alone", data)


def _asked_for(asked: Decided) -> Iterator[Claim]:
    """Yield claims on costs of pairs, criteria that come first, budgets and the ceiling."""
    result, goal = asked.result, asked.goal
    before = {} if asked.today is None else asked.costs(asked.today)
    for name, units in result.costs.items():
        yield Claim("cost", {"name": name, "before": before.get(name), "after": units})
    spent = {"moves": asked.plan.moves} | {pair.name: pair.of(asked.plan.member_of) for pair in goal.pairs}
    names = list(result.cost_bounds)
    for place, (name, least) in enumerate(result.cost_bounds.items()):
        yield Claim("first", {"name": name, "units": spent[name], "least": least, "given": names[:place]})
    if asked.proof.counts is not None:
        yield Claim("fewest moves", {"moves": asked.plan.moves, "fewest": asked.rule.fewest_moves()[0]})
    if goal.ceiling is not None:
        highest = max(each.makespan for each in asked.plan.in_scenarios)
        yield Claim("ceiling", {"max_load": goal.ceiling, "highest": highest})


def _steps(asked: Decided) -> Iterator[Claim]:
    """Yield the moves, each with the measure before and after it, from today's assignment on.

    Partitions without an owner come first, all at once.
    """
    today, plan, problem = asked.today, asked.result.plan, asked.whole
    if today is None:
        return
    now = today.member_of.copy()
    before = asked.measure(now)
    new = np.flatnonzero((now == NOBODY) & (plan.member_of != NOBODY))
    if len(new):
        now[new] = plan.member_of[new]
        after = asked.measure(now)
        yield Claim("assigned", {"number": len(new), "before": before, "after": after, **_measured(asked)})
        before = after
    left = np.flatnonzero((problem.owner != NOBODY) & (problem.owner != plan.member_of)).tolist()
    left.sort(key=lambda p: (-int(problem.lags[p]), p))
    greedy = len(left) * max(len(problem.scenario_weights), 1) <= MOST_TRIED
    for step in range(1, min(len(left), MOST_STEPS) + 1):
        p = min(left, key=lambda p: _after(asked, now, plan, p)) if greedy else left[0]
        left.remove(p)
        now[p] = plan.member_of[p]
        after = asked.measure(now)
        yield Claim("step", {
            "step": step,
            "partition": problem.partitions[p],
            "lag": int(problem.lags[p]),
            "owner": problem.members[problem.owner[p]],
            "member": problem.members[plan.member_of[p]] if plan.member_of[p] != NOBODY else None,
            "before": before,
            "after": after,
            **_measured(asked),
        })  # fmt: skip
        before = after
    if left:
        after = asked.measure(plan.member_of)
        yield Claim("more steps", {"number": len(left), "before": before, "after": after, **_measured(asked)})


def _after(asked: Decided, now: Any, plan: Plan, p: int) -> Any:
    """Return the measure once one more partition has moved."""
    moved = now.copy()
    moved[p] = plan.member_of[p]
    return asked.measure(moved)
