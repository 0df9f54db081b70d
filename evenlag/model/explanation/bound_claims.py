"""Claims on bounds: the arguments on the largest and the smallest load in numbers, the proof, and the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from evenlag.model.balance import Balance
from evenlag.model.bounds import level_counts
from evenlag.model.explanation.claims import Claim
from evenlag.model.explanation.solved_question import Decided
from evenlag.model.objective import ObjectiveKind
from evenlag.model.problem import NOBODY

MOST_NAMES = 3  # partitions that an argument names


def bound_claim(asked: Decided) -> Claim:
    """Return the claim that no plan is below the bound, with its proof."""
    result, certificate = asked.result, asked.result.certificate
    assert certificate is not None
    proof = certificate["proof"]
    return Claim("bound", {
        "objective": result.objective,
        "bound": result.bound,
        "by": result.bound_by,
        "proof": proof["kind"],
        "plans": proof.get("plans"),
        "within": bool(result.first),
    })  # fmt: skip


def load_claims(asked: Decided, *, largest: bool = True, smallest: bool = True) -> Iterator[Claim]:
    """Yield what the largest and the smallest load of any plan must reach, where there are no scenarios."""
    if asked.whole.futures or not asked.problem.total_lag or int(asked.problem.active.sum()) < 2:
        return
    bounds = asked.bounds
    if largest:
        name, number = bounds.largest_by
        yield Claim("largest load", {"value": bounds.max_load_lb, **_argument(asked, name, number)})
    if smallest and asked.goal.kind == ObjectiveKind.SPREAD:
        name, number = bounds.smallest_by
        yield Claim("smallest load", {"value": bounds.min_load_ub, **_argument(asked, name, number)})


def _argument(asked: Decided, name: str, number: int) -> dict[str, Any]:
    """Return an argument on loads in names and numbers."""
    problem = asked.problem
    members = int(problem.active.sum())
    data: dict[str, Any] = {"argument": name, "number": number, "total": problem.total_lag, "members": members}
    if name in ("oversized", "topics", "weights", "weights_and_counts"):
        data |= _biggest(asked, max(number, 1))
    if name == "oversized":
        data |= _companions(asked, max(number, 1), members)
    if name in ("member", "subscriptions"):
        data["member"] = problem.members[number]
    if name == "topic":
        data["topics"] = _topics(asked, number)
        data["takers"] = int((problem.allowed[number] & problem.active).sum())
    if name == "pigeonholes":
        data |= {"biggest": number * members + 1, "shared": number + 1}
    if name == "uneven":
        data["held"] = int(level_counts(asked.rule)[:number].sum())
    return data


def _biggest(asked: Decided, number: int) -> dict[str, Any]:
    """Return the biggest partitions, the first few by name, and their lag."""
    lags = asked.problem.lags
    order = sorted(np.flatnonzero(asked.problem.assignable).tolist(), key=lambda p: (-int(lags[p]), p))[:number]
    named = [name for p in order[:MOST_NAMES] for name in asked.names(p)]
    return {"holders": number, "partitions": named, "lag": sum(int(lags[p]) for p in order)}


def _companions(asked: Decided, holders: int, members: int) -> dict[str, Any]:
    """Return the number of other partitions that holders of the biggest must hold at least, and their least lag."""
    problem, rule = asked.problem, asked.rule
    active, counts = problem.active, rule.total_bounds
    lows, highs = counts.lo[active], counts.hi[active]
    if rule.topic_bounds is not None and not rule.topic_distance:
        lows = np.maximum(lows, rule.topic_bounds.lo[:, active].sum(axis=0))
        highs = np.minimum(highs, rule.topic_bounds.hi[:, active].sum(axis=0))
    fewest, most = int(lows.min()), int(highs.max())
    lags = np.sort(problem.lags[problem.assignable])
    least = max(holders * fewest, len(lags) - (members - holders) * most, holders)
    return {"companions": least - holders, "their_lag": sum(int(lag) for lag in lags[: least - holders])}


def _topics(asked: Decided, topic: int) -> list[str]:
    """Return the topics that only takers of one topic may take, that one included."""
    problem = asked.problem
    allowed = problem.allowed[:, problem.active]
    inside = allowed.any(axis=1) & ~(allowed & ~allowed[topic]).any(axis=1)
    return [problem.topics[t] for t in np.flatnonzero(inside & (problem.topic_sizes > 0))]


def limit_claims(asked: Decided) -> Iterator[Claim]:
    """Yield each rule that limits the objective, as the result names it, with the rule in numbers."""
    for rule in asked.result.binding:
        yield Claim("limit", {"rule": str(rule), **_LIMITS[rule](asked)})


def _hot_partition(asked: Decided) -> dict[str, Any]:
    problem = asked.problem
    if asked.whole.futures or not problem.total_lag:
        return {"partitions": None}
    biggest = _biggest(asked, 1)
    return {"partitions": biggest["partitions"], "lag": biggest["lag"], "total": problem.whole_lag}


def _count_balance(asked: Decided) -> dict[str, Any]:
    limits = count_range(asked)
    if limits is None:
        return {"balance": str(asked.rule.balance), "fewest": None, "most": None}
    active = np.flatnonzero(asked.problem.active).tolist()
    fewest, most = min(limits(m)[0] for m in active), max(limits(m)[1] for m in active)
    return {"balance": str(asked.rule.balance), "fewest": fewest, "most": most}


def count_range(asked: Decided) -> Callable[[int], tuple[int, int]] | None:
    """Return a function of a member that gives the fewest and the most partitions it may hold.

    None where the counts depend on each other: under weights, mixed subscriptions, caps or pins.
    """
    rule, problem = asked.rule, asked.problem
    plain = problem.equal_subscriptions and problem.equal_weights and not problem.capped_or_pinned
    if not plain or rule.balance == Balance.NONE or problem.pairs.units is not None:
        return None
    lo, hi = rule.member_bounds.lo, rule.member_bounds.hi
    if rule.topic_bounds is not None:
        lo = np.maximum(lo, rule.topic_bounds.lo.sum(axis=0))
        hi = np.minimum(hi, rule.topic_bounds.hi.sum(axis=0))
    return lambda m: (int(lo[m]), int(hi[m]))


def _stickiness(asked: Decided) -> dict[str, Any]:
    goal = asked.goal
    return {"price": goal.stickiness, "moves": asked.result.moves, "budget": goal.max_moves}


_LIMITS: dict[str, Callable[[Decided], dict[str, Any]]] = {
    "hot-partition": _hot_partition,
    "count-balance": _count_balance,
    "stickiness": _stickiness,
    "subscriptions": lambda _: {},
    "pins": lambda asked: {"pins": int((asked.problem.pins != NOBODY).sum())},
    "pair-costs": lambda asked: {"costs": [pair.name for pair in asked.goal.pairs]},
    "max-load": lambda asked: {"max_load": asked.goal.ceiling},
}
