"""The rules that hold a plan up are named, against the optimum without each of them."""

from random import Random

import pytest

import evenlag
from evenlag.model.result import Binding
from evenlag.search.binding import find_binding
from evenlag.search.incumbent import Incumbent, begin
from evenlag.search.portfolio import AUTO
from evenlag.search.stage import run_steps
from tests.support.exact import FEWEST, Goal, Group, Infeasible, exhaustive
from tests.support.problems import alike, random_parameters, random_problem, seeds
from tests.support.scripted import group, task_for
from tests.support.small_groups import LIMIT, SMALL


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(40))
@pytest.mark.usefixtures("by")
def test_a_rule_binds_exactly_where_the_optimum_without_it_is_lower(seed: int) -> None:
    """A rule is named if and only if the optimum without it is lower."""
    random = Random(seed)
    problem, parameters = random_problem(random, **SMALL), random_parameters(random, budget=False)
    goal = Goal(**parameters)
    if not Group(problem).assignable or goal.stickiness == FEWEST:
        return
    try:
        best = exhaustive(problem, goal).objective
    except Infeasible:
        return
    result = evenlag.solve(problem, **parameters, time_limit=10 * LIMIT)  # a fiftieth is for each rule
    group, document = Group(problem), problem.to_dict()
    price = group.price(goal.stickiness)
    read = [topic for topic, subscribers in zip(problem.topics, group.subscribers, strict=True) if subscribers]
    everything = {  # those who take part, from the topics that are read
        name: {**entry, "topics": read if m in group.active else entry["topics"]}
        for m, (name, entry) in enumerate(document["members"].items())
    }
    relaxed = {
        "count-balance": (problem, Goal("none", price, objective=goal.objective)),
        "stickiness": (problem, Goal(goal.balance, 0, slack=goal.slack, objective=goal.objective)),
        "pins": (evenlag.Problem.from_dict({**document, "pins": []}), Goal(**{**parameters, "stickiness": price})),
        "subscriptions": (
            evenlag.Problem.from_dict({**document, "members": everything}),
            Goal(**{**parameters, "stickiness": price}),
        ),
    }
    for rule, (freed, freed_goal) in relaxed.items():
        assert (rule in result.binding) == (exhaustive(freed, freed_goal).objective < best), rule


def test_hot_partition_binds() -> None:
    problem = alike([5_000, 1, 1, 1, 1, 1], "abc")
    result = evenlag.solve(problem, balance="none", stickiness=0)
    assert (result.spread, result.binding) == (4_998, ("hot-partition",))
    result = evenlag.solve(problem, stickiness=0)  # it needs a companion
    assert (result.spread, result.binding) == (4_999, ("hot-partition", "count-balance"))


def test_a_budget_of_moves_binds_where_moves_have_no_price() -> None:
    problem = alike([10, 10, 10, 10], "ab", owned={"a": [("t", p) for p in range(4)]})
    result = evenlag.solve(problem, balance="none", stickiness=0, max_moves=1)
    assert (result.spread, result.binding) == (20, ("hot-partition", "stickiness"))  # 10 of three, 0 with two moves
    assert evenlag.solve(problem, balance="none", stickiness=0, max_moves=2).binding == ()


def test_pins_bind_where_nothing_else_is_free() -> None:
    problem = alike([4, 4, 2], "ab", pins=[("t", 0, "a"), ("t", 1, "a"), ("t", 2, "b")])
    result = evenlag.solve(problem, balance="none", stickiness=0)
    assert (result.spread, result.binding) == (6, ("hot-partition", "pins"))


def test_binding_of_a_budget_that_the_freed_group_could_not_keep() -> None:
    """Without mixed subscriptions the balance would need more moves than the budget, which must not fail the solve."""
    problem = evenlag.Problem.from_lags(
        {"t0": [29, 29, 29], "t1": [18, 18], "t2": [66, 66]},
        {"a": ["t0", "t2"], "b": ["t0", "t1"]},
        owned={"a": [("t0", 2), ("t2", 0), ("t2", 1)], "b": [("t0", 0), ("t0", 1), ("t1", 0), ("t1", 1)]},
    )
    result = evenlag.solve(problem, balance="topic", stickiness=FEWEST)
    assert (result.status, result.moves, result.spread) == ("OPTIMAL", 0, 161 - 94)


def test_what_binds_does_not_depend_on_the_wall_clock_where_work_is_limited() -> None:
    """The bounds may have taken any time."""
    binding = []
    for seconds in (0.0, 1e9):
        asked = task_for(group([5_000, 1, 1, 1, 1, 1]), deterministic=True, work=1.0)
        best = run_steps(asked, begin(Incumbent(asked)), AUTO)
        best.seconds["bounds"] = seconds
        binding.append(find_binding(asked, best, AUTO))
        assert not best.notes
    assert binding == [(Binding.HOT_PARTITION, Binding.COUNT_BALANCE)] * 2
