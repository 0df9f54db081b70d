"""Flows of pair costs: classes of members leave the cost, and no flow starts without time for it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from evenlag import Problem, solve
from evenlag.errors import InfeasibleError
from evenlag.model import pair_flow
from evenlag.model.balance import CountRule, count_rule
from evenlag.model.check import rule_violation
from evenlag.model.objective import Objective
from evenlag.model.pair_costs import pair_costs
from evenlag.model.pair_flow import CheapestPlan, PairNetwork, cheapest_plan
from evenlag.model.pair_table import PairTable
from evenlag.model.plan import Plan

ZONES = ("x", "y", "z")


def _group(rng: random.Random) -> Problem:
    """Return a group of some zones, at times with mixed subscriptions, weights, pins or caps."""
    members = [f"c{m}" for m in range(rng.randint(12, 20))]
    topics = {f"t{t}": rng.randint(5, 40) for t in range(rng.randint(1, 3))}
    names = [(topic, p) for topic, n in topics.items() for p in range(n)]
    owners = {name: rng.choice(members) for name in names}
    more: dict[str, Any] = {"owned": {m: [name for name in names if owners[name] == m] for m in members}}
    if rng.random() < 0.3:
        more["weights"] = {m: rng.choice((1, 2)) for m in members}
    if rng.random() < 0.3:
        more["pins"] = [(*name, rng.choice(members[1:5])) for name in rng.sample(names, 2)]
    if rng.random() < 0.3:
        more["max_partitions"] = {members[0]: 1}
    lags = {topic: [rng.randint(0, 99) for _ in range(n)] for topic, n in topics.items()}
    some = sorted(topics) if rng.random() < 0.7 else sorted(topics)[:1]
    return Problem.from_lags(lags, {m: list(topics) if m in members[:5] else some for m in members}, **more)


def _costs(rng: random.Random, problem: Problem) -> PairTable:
    """Return costs as zones and owners make them, at times with some of the caller's own, or as objects."""
    partitions, members = len(problem.lags), len(problem.members)
    zone = np.array([rng.randrange(len(ZONES)) for _ in range(members)])
    far = np.array([[rng.randint(0, 1) for _ in ZONES] for _ in range(partitions)], dtype=np.int64)
    table = PairTable.by_class(far * rng.choice((1, 7)), zone).plus(PairTable.of_moves(problem.owner, members))
    if few := rng.choice((0, 0, 10)):
        costs = table.pairs
        for _ in range(few):
            costs[rng.randrange(partitions), rng.randrange(members)] = rng.randint(0, 20)
        table = PairTable.of_pairs(costs)
    return PairTable.of_pairs(table.pairs.astype(object) * 10**5) if rng.random() < 0.2 else table


def _drawn(seed: int) -> tuple[CountRule, PairTable] | None:
    rng = random.Random(seed)
    problem = _group(rng)
    try:
        rule = count_rule(problem, rng.choice(("both", "topic", "group", "none")), rng.choice((0, 0, 1)))
    except InfeasibleError:
        return None
    return rule, _costs(rng, problem)


def _checked(rule: CountRule, costs: PairTable) -> CheapestPlan:
    """Return the cheapest plan, after checking its rule and its cost."""
    found = cheapest_plan(rule, costs)
    assert found is not None
    assert rule_violation(Plan(rule.problem, found.member_of), rule, Objective()) is None
    assert costs.total(found.member_of) == found.bound
    return found


@pytest.mark.slow
def test_a_flow_over_classes_costs_as_much_as_one_over_members(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [each for seed in range(150) if (each := _drawn(seed)) is not None]
    monkeypatch.setattr(pair_flow, "FEW_ARCS", 0)
    by_classes = [_checked(rule, costs).bound for rule, costs in drawn]
    assert sum(PairNetwork(rule, costs).into.size > 0 for rule, costs in drawn) > len(drawn) // 2
    monkeypatch.setattr(pair_flow, "FEW_ARCS", 10**9)
    assert [_checked(rule, costs).bound for rule, costs in drawn] == by_classes
    assert not any(PairNetwork(rule, costs).into.size for rule, costs in drawn)


def _in_zones(partitions: int, members: int) -> Problem:
    rng = random.Random(1)
    return Problem.from_lags(
        {"t": [rng.randint(1, 1000) for _ in range(partitions)]},
        names := [f"c{m}" for m in range(members)],
        racks={name: ZONES[m % 3] for m, name in enumerate(names)},
        partition_racks={"t": [[ZONES[p % 3]] for p in range(partitions)]},
        traffic={"t": [rng.randint(1, 10**6) for _ in range(partitions)]},
    )


def test_racks_take_a_few_arcs_for_each_partition() -> None:
    problem = _in_zones(600, 60)
    costs = pair_costs(problem, "crossings")
    assert costs is not None
    assert PairNetwork(count_rule(problem, "both"), costs).arcs < 4 * 600


@pytest.fixture
def flows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of arcs of each flow that is computed."""
    began: list[int] = []
    solve_network = PairNetwork.solve

    def noted(network: PairNetwork) -> Any:
        began.append(network.arcs)
        return solve_network(network)

    monkeypatch.setattr(PairNetwork, "solve", noted)
    return began


@pytest.mark.slow
def test_no_flow_starts_that_would_exceed_the_time_left(flows: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _in_zones(60, 6)
    monkeypatch.setattr(PairNetwork, "seconds", 3.0)
    assert solve(problem, max_crossings=0, stickiness=0, time_limit=1).crossings == 0
    assert solve(problem, rack_price=1, time_limit=1).crossings is not None
    assert not flows
    monkeypatch.setattr(PairNetwork, "seconds", 0.3)
    assert solve(problem, rack_price=1, time_limit=5).crossings == 0
    assert flows


def test_flows_are_cached(flows: list[int]) -> None:
    problem = Problem.from_lags(
        {"t": [8, 4, 3]}, ["a", "b"], racks={"a": "x", "b": "y"}, partition_racks={"t": [["x"], ["x"], ["x"]]}
    )
    with pytest.raises(InfeasibleError, match="the budget of crossings is 0, but both balance needs 1"):
        solve(problem, max_crossings=0)
    assert len(flows) <= 2
