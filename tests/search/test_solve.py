"""evenlag.solve against the exact solver on random groups; EVENLAG_TEST_CASES=1 runs all of them, 10 ten times."""

from functools import cache
from random import Random
from typing import Any

import pytest

import evenlag
from evenlag.errors import EvenlagError, InfeasibleError, InvalidPlanError
from evenlag.heuristics import HEURISTICS
from evenlag.search.portfolio import PORTFOLIOS, SCENARIOS
from tests.support.exact import FEWEST, Goal, Group, Infeasible, Optimum, TooLarge, assess, by_cp_sat, grouped
from tests.support.problems import alike, random_owners, random_parameters, random_problem, seeds, solved_again
from tests.support.small_groups import LIMIT, optimum_of, random_cases, small_case, small_seeds
from tests.support.solving import briefly, unexplained

STAGES = {step.stage.name for steps in (*PORTFOLIOS.values(), SCENARIOS) for step in steps}


@cache
def result_of(seed: int, by: str) -> evenlag.Result:
    problem, parameters, _ = small_case(seed)
    with briefly():
        result = evenlag.solve(problem, **parameters, time_limit=LIMIT)
    assert by == "enumeration" or result.method != "enumeration"
    return result


@pytest.mark.parametrize("seed", small_seeds(250))
def test_optimum(seed: int, by: str) -> None:
    problem, _, goal = small_case(seed)
    wanted, result = optimum_of(seed), result_of(seed, by)
    figures = assess(problem, result.assignment, goal)
    assert (result.spread, result.makespan, result.moves) == (figures.spread, figures.makespan, figures.moves)
    assert result.objective == figures.objective
    assert result.moves <= (len(problem.lags) if goal.max_moves is None else goal.max_moves)
    assert result.moves_bound == wanted.fewest_moves
    assert result.bound <= wanted.objective
    assert result.status == "OPTIMAL"
    assert result.objective == wanted.objective
    if goal.stickiness == FEWEST:
        assert result.moves == wanted.fewest_moves


@pytest.mark.parametrize("seed", seeds(30))
def test_infeasible_groups_are_refused_with_the_moves_they_need(seed: int) -> None:
    problem, parameters, _, error = next(
        case for case in random_cases(Random(seed)) if isinstance(case[-1], Infeasible)
    )
    assert isinstance(error, Infeasible)
    with pytest.raises(InfeasibleError, match="max_partitions" if error.moves is None else rf"\b{error.moves}\b"):
        evenlag.solve(problem, **parameters, time_limit=LIMIT)


@pytest.mark.parametrize("seed", small_seeds(250))
def test_figures_follow_from_the_assignment(seed: int, by: str) -> None:
    problem, _, goal = small_case(seed)
    result, group = result_of(seed, by), Group(problem)
    names = dict(zip(problem.partitions, group.lags, strict=True))
    assert set(result.assignment) == set(problem.members)
    assert result.counts == {member: len(these) for member, these in result.assignment.items()}
    assert result.loads == {member: sum(names[name] for name in these) for member, these in result.assignment.items()}
    assigned = {name for these in result.assignment.values() for name in these}
    assert result.unassigned == [name for name in problem.partitions if name not in assigned]
    ownerless = {name for name, owner in zip(problem.partitions, group.owner, strict=True) if owner is None}
    assert result.forced_moves == len(assigned & ownerless)
    assert result.gap == pytest.approx(float((result.objective - result.bound) / max(1, group.mean_load)))
    assert result.balance == goal.balance
    assert result.stickiness == (FEWEST if goal.stickiness == FEWEST else group.price(goal.stickiness))
    assert (result.bound_by is None) == (result.bound == 0)
    document = result.to_dict()
    assert document["bound_by"] in {None, *STAGES}
    assert document["assignment"] == {m: [list(name) for name in these] for m, these in result.assignment.items()}
    assert document["objective"] == pytest.approx(float(result.objective))


@pytest.mark.parametrize("seed", small_seeds(250))
def test_a_result_is_never_worse_than_a_baseline(seed: int, by: str) -> None:
    problem, _, goal = small_case(seed)
    result = result_of(seed, by)
    plans = [current_assignment(problem)]
    for heuristic in HEURISTICS.values():
        try:
            plans.append(heuristic(problem).assignment)
        except EvenlagError:  # not defined for this group
            continue
    for plan in plans:
        try:
            figures = assess(problem, plan, goal)
        except AssertionError:  # breaks the balance
            continue
        if goal.max_moves is not None and figures.moves > goal.max_moves:
            continue
        if goal.stickiness == FEWEST:
            assert (result.moves, result.objective) <= (figures.moves, figures.objective)
        else:
            assert result.objective <= figures.objective


def current_assignment(problem: evenlag.Problem) -> dict[str, list[tuple[str, int]]]:
    plan: dict[str, list[tuple[str, int]]] = {member: [] for member in problem.members}
    for name, owner in zip(problem.partitions, problem.owner.tolist(), strict=True):
        if owner >= 0:
            plan[problem.members[owner]].append(name)
    return plan


@pytest.mark.parametrize("seed", small_seeds(120))
def test_solving_again_moves_nothing(seed: int, by: str) -> None:
    problem, parameters, goal = small_case(seed)
    if goal.max_moves is not None:  # a fresh budget is a fresh chance
        parameters = {**parameters, "max_moves": None}
        with briefly():
            result = unexplained(problem, **parameters, time_limit=LIMIT)
    else:
        result = result_of(seed, by)
    with briefly():
        again = unexplained(solved_again(problem, result.assignment), **parameters, time_limit=LIMIT)
    assert again.assignment == result.assignment
    assert again.moves == again.forced_moves == 0


@pytest.mark.parametrize("seed", small_seeds(120))
def test_no_single_swap_improves_a_plan(seed: int, by: str) -> None:
    problem, _, goal = small_case(seed)
    group, found = Group(problem), result_of(seed, by).assignment
    member_of = group.read(found)
    assert_swaps_are_no_better(group, goal, member_of)


def assert_swaps_are_no_better(group: Group, goal: Goal, member_of: dict[int, int]) -> None:
    allowed = {row.tobytes() for row in group.allowed_counts(goal.balance, goal.slack)}
    here = rank(group, goal, member_of)
    for p, m in member_of.items():
        for other, n in member_of.items():
            if p < other and m != n and n in group.options[p] and m in group.options[other]:
                swapped = {**member_of, p: n, other: m}
                moves = group.figures(swapped, goal).moves
                budget = here[2] if goal.stickiness == FEWEST else goal.max_moves
                if group.counts(swapped).tobytes() in allowed and (budget is None or moves <= budget):
                    assert rank(group, goal, swapped) >= here, (p, other)


def rank(group: Group, goal: Goal, member_of: dict[int, int]) -> tuple[Any, ...]:
    loads = dict.fromkeys(group.active, 0)
    for p, m in member_of.items():
        loads[m] += group.lags[p]
    figures = group.figures(member_of, goal)
    return figures.objective, sum(load**2 / group.weights[m] for m, load in loads.items()), figures.moves


@pytest.mark.parametrize("method", ["cp-sat", "cbc", "highs"])
@pytest.mark.parametrize("seed", small_seeds(60))
def test_every_method_finds_the_optimum(seed: int, method: str) -> None:
    problem, parameters, goal = small_case(seed)
    result = evenlag.solve(problem, **parameters, method=method, time_limit=LIMIT)
    assert assess(problem, result.assignment, goal).objective == result.objective
    assert (result.status, result.objective) == ("OPTIMAL", optimum_of(seed).objective), result.warnings
    assert result.bound <= result.objective


@pytest.mark.parametrize("seed", small_seeds(40))
def test_a_heuristic_by_name_gives_its_plan_and_names_broken_rules(seed: int) -> None:
    problem, parameters, goal = small_case(seed)
    for name, heuristic in HEURISTICS.items():
        try:
            plan = heuristic(problem)
        except InvalidPlanError:  # not defined for this group
            continue
        try:
            assess(problem, plan.assignment, Goal("none"))
        except AssertionError:  # it breaks pins, caps or subscriptions
            with pytest.raises(InvalidPlanError, match=f"{name} gives no valid plan here"):
                evenlag.solve(problem, **parameters, method=name, time_limit=LIMIT)
            continue
        member_of = Group(problem).read(plan.assignment)
        result = evenlag.solve(problem, **parameters, method=name, time_limit=LIMIT)
        assert result.assignment == plan.assignment
        assert (result.status, result.method, result.fallback) == ("HEURISTIC", name, True)
        over = goal.max_moves is not None and result.moves > goal.max_moves
        over |= goal.stickiness == FEWEST and result.moves > optimum_of(seed).fewest_moves
        try:
            assess(problem, plan.assignment, goal)
            broken = over
        except AssertionError:
            broken = True
        assert (result.violation is not None) == (result.gap is None) == broken
        assert result.objective == Group(problem).figures(member_of, goal).objective
        assert result.bound <= optimum_of(seed).objective


def test_a_heuristic_by_name_whose_plan_breaks_a_cap_is_refused() -> None:
    result = evenlag.solve(alike([3, 2, 1], "ab"), method="range")
    assert (result.status, result.spread, result.violation) == ("HEURISTIC", 4, None)
    capped = alike([3, 2, 1], "ab", max_partitions={"a": 1})
    with pytest.raises(InvalidPlanError, match="range gives no valid plan here: 'a' has 2 partitions; its max_"):
        evenlag.solve(capped, method="range")


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(60))
def test_larger_groups_are_solved_with_true_bounds(seed: int) -> None:
    problem, parameters, wanted = larger_case(seed)
    goal = Goal(**parameters)
    result = unexplained(problem, **parameters, time_limit=3, threads=1)
    figures = assess(problem, result.assignment, goal)
    assert result.objective == figures.objective
    assert result.bound <= wanted.objective <= result.objective
    assert result.moves_bound == wanted.fewest_moves <= result.moves
    if result.status == "OPTIMAL":
        assert result.objective == wanted.objective


def larger_case(seed: int) -> tuple[evenlag.Problem, dict[str, Any], Optimum]:
    """Up to 24 partitions, 5 members and 4 topics: too many plans to list, few enough count matrices."""
    random = Random(seed)
    while True:
        problem, parameters = random_problem(random, partitions=24, members=5, topics=4), random_parameters(random)
        if len(problem.lags) < 11 or not Group(problem).assignable:
            continue
        try:
            grouped(problem).feasible_counts  # noqa: B018 - raises where there are too many to check a plan against
            return problem, parameters, by_cp_sat(problem, Goal(**parameters))
        except (TooLarge, Infeasible):
            continue


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(8))
def test_hundreds_of_partitions_keep_the_rules(seed: int) -> None:
    """Equal subscriptions, where ⌊⌋ and ⌈⌉ hold for topics and totals at once."""
    random = Random(seed)
    members = random.randint(5, 25)
    sizes = [random.randint(1, 120) for _ in range(random.randint(1, 6))]
    topics = {f"t{t}": [int(random.paretovariate(1.1) * 100) for _ in range(size)] for t, size in enumerate(sizes)}
    problem = alike(topics, members, owned=random_owners(random, topics, members))
    result = evenlag.solve(problem, time_limit=0.4)
    assert result.unassigned == []
    assert max(result.counts.values()) - min(result.counts.values()) <= 1
    for topic in topics:
        counts = [sum(name == topic for name, _ in these) for these in result.assignment.values()]
        assert max(counts) - min(counts) <= 1
    assert result.bound <= result.objective == result.spread + result.stickiness * result.moves
    for heuristic in HEURISTICS.values():
        plan = heuristic(problem)
        counts = plan.topic_counts
        if (counts.max(axis=1) - counts.min(axis=1)).max() <= 1 and plan.counts.max() - plan.counts.min() <= 1:
            assert result.objective <= plan.spread + result.stickiness * plan.moves
