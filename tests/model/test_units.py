"""Units: the contracted problem has the plans of the original that part no unit, with the same loads and costs."""

from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from evenlag import Problem, solve
from evenlag.errors import InvalidProblemError
from evenlag.model.check import plan_violation
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY
from evenlag.model.units import gathered, parted
from tests.support.problems import seeds


def unit_problem(random: Random, *, pins: bool = True) -> Problem:
    """A small group in which some topics go together, with mixed subscriptions, owners, sizes, costs, scenarios."""
    size = random.choice([[0, 1], [0, 2], [0]])
    topics = {"a": size, "b": size, "c": [0], "d": size}
    names = ["x", "y", "z"][: random.randint(1, 3)]
    everywhere = [topic for topic in topics if random.random() < 0.5]

    def lags() -> dict[str, dict[int, int]]:
        return {topic: {i: random.randint(0, 9) for i in ids} for topic, ids in topics.items()}

    owned: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    for topic, ids in topics.items():
        for i in ids:
            if random.random() < 0.8:
                owned[names[min(random.randint(0, 2), len(names) - 1)]].append((topic, i))
    given: dict[str, Any] = {}
    if random.random() < 0.5:
        given["move_sizes"] = {topic: {i: random.randint(0, 5) for i in ids} for topic, ids in topics.items()}
    if random.random() < 0.5:
        given["scenarios"] = [(1, lags()), (2, lags())]
    if pins and random.random() < 0.5:
        given["pins"] = [("a", 0, "x"), ("b", 0, "x")] if random.random() < 0.5 else [("d", 0, "x")]
    together = random.choice([[("a", "b")], [("d", "b")], [("a", "b", "d")], [("b", "a"), ("c",)]])
    return Problem.from_lags(
        lags(),
        {
            name: topics if m == 0 else {*everywhere, *(topic for topic in topics if random.random() < 0.6)}
            for m, name in enumerate(names)
        },
        owned=owned,
        costs={"night": {(t, i, n): random.randint(0, 3) for t, ids in topics.items() for i in ids for n in names}},
        together=[topics for topics in together if len(topics) > 1],
        **given,
    )


def all_plans(problem: Problem) -> list[tuple[int, ...]]:
    """Return every assignment that keeps subscriptions, pins and caps."""
    choices = range(-1, len(problem.members))
    plans = product(choices, repeat=len(problem.lags))
    return [plan for plan in plans if plan_violation(Plan(problem, np.array(plan, dtype=np.int32))) is None]


@pytest.mark.parametrize("seed", seeds(40))
def test_plans_of_the_contracted_problem_are_those_that_part_no_unit(seed: int) -> None:
    problem = unit_problem(Random(seed))
    unit_of = {name: name for name in problem.partitions}
    for topics in problem.pairs.together:
        unit_of |= {(topic, i): (topics[0], i) for topic, i in problem.partitions if topic in topics}

    def parts_none(plan: tuple[int, ...]) -> bool:
        taken: dict[Any, int] = {}
        return all(taken.setdefault(unit_of[name], m) == m for name, m in zip(problem.partitions, plan, strict=True))

    whole = [plan for plan in all_plans(problem) if parts_none(plan)]
    expanded = []
    for plan in all_plans(problem.units):
        of_units = Plan(problem.units, np.array(plan, dtype=np.int32))
        made = problem.expand(of_units)
        assert made.problem is problem
        again = gathered(problem, made)
        assert again is not None
        assert again.problem is problem.units
        assert again.member_of.tolist() == list(plan)
        check_same(of_units, made)
        expanded.append(tuple(made.member_of.tolist()))
    assert sorted(expanded) == sorted(whole)


def check_same(of_units: Plan, plan: Plan) -> None:
    """Loads, moves, sizes and costs are those of the partitions, each worked out from the plan alone."""
    problem, units = plan.problem, of_units.problem
    assert of_units.loads.tolist() == plan.loads.tolist()
    assert [each.loads.tolist() for each in of_units.in_scenarios] == [
        each.loads.tolist() for each in plan.in_scenarios
    ]
    sizes = [1] * len(problem.lags) if problem.pairs.move_sizes is None else problem.pairs.move_sizes.tolist()
    moved = [p for p, (m, o) in enumerate(zip(plan.member_of, problem.owner, strict=True)) if o not in (NOBODY, m)]
    assert cost(of_units, "moves") == len(moved) == plan.moves
    if problem.pairs.move_sizes is not None:
        assert cost(of_units, "moved_size") == sum(sizes[p] for p in moved)
    else:
        assert "moved_size" not in units.pairs.matrices
    night = problem.pairs.costs["night"]
    assert held_cost(units.pairs.costs["night"], of_units) == held_cost(night, plan)
    assert units.pairs.units is not None
    assert held_cost(units.pairs.units.summed(night), of_units) == held_cost(night, plan)


def cost(plan: Plan, name: str) -> int:
    return held_cost(plan.problem.pairs.matrices[name], plan)


def held_cost(costs: Any, plan: Plan) -> int:
    return sum(int(costs.at(p, m)) for p, m in enumerate(plan.member_of.tolist()) if m != NOBODY)


@pytest.mark.parametrize("seed", seeds(40))
def test_a_plan_that_parts_a_unit_violates_the_rule(seed: int) -> None:
    random = Random(seed)
    problem = unit_problem(random, pins=False)
    for _ in range(20):
        member_of = np.array([random.randint(-1, len(problem.members) - 1) for _ in problem.lags], dtype=np.int32)
        found = parted(problem, member_of)
        plan = Plan(problem, member_of)
        assert (found is None) == (gathered(problem, plan) is not None)
        if found is not None:
            (one, i), (other, j) = (problem.partitions[p] for p in found)
            assert i == j
            assert any({one, other} <= {*topics} for topics in problem.pairs.together)
            assert member_of[found[0]] != member_of[found[1]]


@pytest.mark.parametrize("seed", seeds(20))
def test_a_unit_left_out_takes_all_of_its_costs_along(seed: int) -> None:
    random = Random(seed)
    units = unit_problem(random).units.pairs
    assert units.units is not None
    night = units.units.whole.pairs.costs["night"]
    chosen = np.array([random.random() < 0.6 for _ in range(len(units.costs["night"].table))])
    kept = units.keep(chosen)
    assert kept.units is not None
    assert kept.units.summed(night).same_as(units.units.summed(night).keep(chosen))
    assert kept.costs["night"].same_as(kept.units.summed(night))
    assert kept.same_as(units.keep(chosen))
    assert kept.same_as(units) == bool(chosen.all())
    nothing = np.zeros(chosen.sum(), dtype=bool)
    twice = kept.keep(nothing)
    assert twice.units is not None
    assert twice.units.summed(night).table.shape == (0, night.table.shape[1])


def test_a_problem_without_units_contracts_to_itself() -> None:
    problem = Problem.from_lags({"t": [5, 3]}, ["a", "b"], costs={"night": {"a": 1}})
    plan = Plan(problem, np.array([0, 1], dtype=np.int32))
    assert problem.units is problem
    assert problem.expand(plan) is plan
    assert gathered(problem, plan) is plan
    assert parted(problem, plan.member_of) is None


def test_names_and_order_of_units() -> None:
    problem = Problem.from_lags(
        {"z": {3: 1, 1: 2}, "a": {1: 4, 3: 8}, "m": [9], "a+z": [6], "none": []},
        ["x"],
        owned={"x": [("z", 1), ("a", 1), ("a", 3), ("a+z", 0)]},
        together=[("a", "z")],
    )
    units = problem.units
    assert units.topics == ("a+z", "a+z+", "m")
    assert units.partitions == [("a+z", 0), ("a+z+", 1), ("a+z+", 3), ("m", 0)]
    assert units.lags.tolist() == [6, 6, 9, 9]
    assert units.owner.tolist() == [0, 0, NOBODY, NOBODY]
    assert units.pairs.matrices["moves"].pairs.tolist() == [[0]] * 4
    assert units.units is units


def test_topics_without_partitions_may_go_together() -> None:
    problem = Problem.from_lags({"t": [], "u": []}, ["a"], together=[("t", "u")])
    assert problem.units.topics == ()
    assert Problem.from_dict(problem.to_dict()).pairs.together == (("t", "u"),)
    nobody = Problem.from_lags({"t": [1], "u": [2]}, [], together=[("t", "u")])
    assert nobody.units.lags.tolist() == [3]


BOTH = {"t": [5, 3], "u": [8, 1]}


@pytest.mark.parametrize(
    ("lags", "members", "given", "places"),
    [
        (BOTH, ["a", "b"], {"pins": [("t", 0, "a"), ("u", 0, "b")]}, ["pin of t-0 to 'a'", "'b'", "keep one"]),
        (BOTH, {"a": ["t", "u"], "b": ["u"]}, {"pins": [("u", 1, "b")]}, ["pin of u-1 to 'b'", "all topics"]),
        (BOTH, {"a": ["t"], "b": ["u"]}, {}, ["no member subscribes to all of 't', 'u'", "remove topics"]),
        ({"t": [2**62], "u": [1]}, ["a"], {}, ["t-0", "2^62"]),
    ],
)
def test_impossible_units_are_refused(lags: Any, members: Any, given: dict[str, Any], places: list[str]) -> None:
    with pytest.raises(InvalidProblemError) as caught:
        Problem.from_lags(lags, members, together=[("t", "u")], **given)
    for place in places:
        assert place in str(caught.value)


def test_a_move_of_a_unit_costs_its_size_even_if_that_is_one() -> None:
    problem = Problem.from_lags(
        {"a": [5], "b": [4]}, ["x", "y"], together=[("a", "b")], move_sizes={"a": [0], "b": [1]},
        owned={"y": [("a", 0), ("b", 0)]}, max_partitions={"y": 0},
    )  # fmt: skip
    result = solve(problem, stickiness=1000)
    assert (result.moves, result.moved_size, result.objective) == (2, 1, 1000)
    assert result.payoff is not None
    assert result.payoff.move_cost == 1000
