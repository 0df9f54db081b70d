"""evenlag.solve against the exact solver on random groups; EVENLAG_TEST_CASES=1 runs all of them, 10 ten times."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import product
from random import Random
from typing import Any

import pytest

import evenlag
from evenlag.errors import EvenlagError, InfeasibleError, InvalidPlanError, InvalidProblemError
from evenlag.heuristics import HEURISTICS
from evenlag.model.balance import count_rule
from evenlag.search.exact import enumeration
from evenlag.search.portfolio import PORTFOLIOS, SCENARIOS
from tests.support.exact import (
    FEWEST,
    Goal,
    Group,
    Infeasible,
    Optimum,
    TooLarge,
    assess,
    by_cp_sat,
    exhaustive,
    grouped,
)
from tests.support.problems import alike, random_owners, random_parameters, random_problem, seeds, solved_again
from tests.support.solving import briefly, unexplained

LIMIT = 60.0  # seconds; the small groups take some milliseconds, but a disk that is busy can hold CBC up
HOPELESS = 0.2  # seconds, where the bound cannot meet the objective because it is rounded, so that time runs out
STAGES = {step.stage.name for steps in (*PORTFOLIOS.values(), SCENARIOS) for step in steps}
SMALL = {"partitions": 8, "members": 4, "topics": 3}


Case = tuple[evenlag.Problem, dict[str, Any], Goal, Optimum | Infeasible]


def small_groups(count: int) -> list[Any]:
    """Seeds of small groups; tests of one seed share its optimum and its result."""
    return [pytest.param(seed, marks=pytest.mark.slow) for seed in seeds(count)]


def drawn(random: Random) -> Iterator[Case]:
    """Random groups with at least one subscriber, the parameters to solve them with, and what is best."""
    while True:
        problem, parameters = random_problem(random, **SMALL), random_parameters(random)
        if Group(problem).assignable:
            goal = Goal(**parameters)
            try:
                yield problem, parameters, goal, exhaustive(problem, goal)
            except Infeasible as error:
                yield problem, parameters, goal, error


@cache
def feasible_case(seed: int) -> Case:
    return next(case for case in drawn(Random(seed)) if isinstance(case[-1], Optimum))


def small_case(seed: int) -> tuple[evenlag.Problem, dict[str, Any], Goal]:
    """A group that has a plan, and the parameters to solve it with."""
    problem, parameters, goal, _ = feasible_case(seed)
    return problem, parameters, goal


def optimum(seed: int) -> Optimum:
    found = feasible_case(seed)[-1]
    assert isinstance(found, Optimum)
    return found


@cache
def solved(seed: int, by: str) -> evenlag.Result:
    problem, parameters, _ = small_case(seed)
    with briefly():
        result = evenlag.solve(problem, **parameters, time_limit=LIMIT)
    assert by == "enumeration" or result.method != "enumeration"
    return result


@pytest.mark.parametrize("seed", small_groups(250))
def test_optimum(seed: int, by: str) -> None:
    problem, _, goal = small_case(seed)
    wanted, result = optimum(seed), solved(seed, by)
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
def test_infeasible(seed: int) -> None:
    problem, parameters, _, error = next(case for case in drawn(Random(seed)) if isinstance(case[-1], Infeasible))
    assert isinstance(error, Infeasible)
    with pytest.raises(InfeasibleError, match="max_partitions" if error.moves is None else rf"\b{error.moves}\b"):
        evenlag.solve(problem, **parameters, time_limit=LIMIT)


@pytest.mark.parametrize("seed", small_groups(250))
def test_figures_follow_from_the_assignment(seed: int, by: str) -> None:
    problem, _, goal = small_case(seed)
    result, group = solved(seed, by), Group(problem)
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


@pytest.mark.parametrize("seed", small_groups(250))
def test_never_worse_than_a_baseline(seed: int, by: str) -> None:
    problem, _, goal = small_case(seed)
    result = solved(seed, by)
    plans = [current(problem)]
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


def current(problem: evenlag.Problem) -> dict[str, list[tuple[str, int]]]:
    plan: dict[str, list[tuple[str, int]]] = {member: [] for member in problem.members}
    for name, owner in zip(problem.partitions, problem.owner.tolist(), strict=True):
        if owner >= 0:
            plan[problem.members[owner]].append(name)
    return plan


@pytest.mark.parametrize("seed", small_groups(120))
def test_solving_again_moves_nothing(seed: int, by: str) -> None:
    problem, parameters, goal = small_case(seed)
    if goal.max_moves is not None:  # a fresh budget is a fresh chance
        parameters = {**parameters, "max_moves": None}
        with briefly():
            result = unexplained(problem, **parameters, time_limit=LIMIT)
    else:
        result = solved(seed, by)
    with briefly():
        again = unexplained(solved_again(problem, result.assignment), **parameters, time_limit=LIMIT)
    assert again.assignment == result.assignment
    assert again.moves == again.forced_moves == 0


@pytest.mark.parametrize("seed", small_groups(120))
def test_no_single_swap_betters_a_plan(seed: int, by: str) -> None:
    problem, _, goal = small_case(seed)
    group, found = Group(problem), solved(seed, by).assignment
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
@pytest.mark.parametrize("seed", small_groups(60))
def test_every_method_finds_the_optimum(seed: int, method: str) -> None:
    problem, parameters, goal = small_case(seed)
    result = evenlag.solve(problem, **parameters, method=method, time_limit=LIMIT)
    assert assess(problem, result.assignment, goal).objective == result.objective
    assert (result.status, result.objective) == ("OPTIMAL", optimum(seed).objective), result.warnings
    assert result.bound <= result.objective


@pytest.mark.parametrize("seed", small_groups(40))
def test_a_heuristic_by_name_gives_its_plan_and_says_what_it_breaks(seed: int) -> None:
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
        over |= goal.stickiness == FEWEST and result.moves > optimum(seed).fewest_moves
        try:
            assess(problem, plan.assignment, goal)
            broken = over
        except AssertionError:
            broken = True
        assert (result.violation is not None) == (result.gap is None) == broken
        assert result.objective == Group(problem).figures(member_of, goal).objective
        assert result.bound <= optimum(seed).objective


def test_a_heuristic_by_name_whose_plan_breaks_a_cap_is_refused() -> None:
    result = evenlag.solve(alike([3, 2, 1], "ab"), method="range")
    assert (result.status, result.spread, result.violation) == ("HEURISTIC", 4, None)
    capped = alike([3, 2, 1], "ab", max_partitions={"a": 1})
    with pytest.raises(InvalidPlanError, match="range gives no valid plan here: 'a' has 2 partitions; its max_"):
        evenlag.solve(capped, method="range")


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(60))
def test_larger_groups(seed: int) -> None:
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
    """Up to 24 partitions, 5 members and 4 topics: too many plans to look at, few enough counts to list."""
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
@pytest.mark.parametrize("seed", seeds(40))
@pytest.mark.usefixtures("by")
def test_binding(seed: int) -> None:
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


def test_one_partition_for_two_members() -> None:
    problem = alike([5], "ab")
    result = evenlag.solve(problem)
    assert (result.status, result.spread, sorted(result.counts.values())) == ("OPTIMAL", 5, [0, 1])


def test_a_topic_of_one_hot_partition_beside_another() -> None:
    problem = evenlag.Problem.from_lags({"t": [5_000], "u": [1, 1]}, {"a": ["t", "u"], "b": ["t", "u"]})
    result = evenlag.solve(problem, balance="topic", stickiness=0)  # each takes one of "u"
    assert (result.status, result.spread) == ("OPTIMAL", 5_000)
    assert result.binding == ("hot-partition", "count-balance")


def test_binding_of_a_budget_that_the_freed_group_could_not_keep() -> None:
    """Without mixed subscriptions the balance would need more moves than the budget: that is no reason to fail."""
    problem = evenlag.Problem.from_lags(
        {"t0": [29, 29, 29], "t1": [18, 18], "t2": [66, 66]},
        {"a": ["t0", "t2"], "b": ["t0", "t1"]},
        owned={"a": [("t0", 2), ("t2", 0), ("t2", 1)], "b": [("t0", 0), ("t0", 1), ("t1", 0), ("t1", 1)]},
    )
    result = evenlag.solve(problem, balance="topic", stickiness=FEWEST)
    assert (result.status, result.moves, result.spread) == ("OPTIMAL", 0, 161 - 94)


# ---- who and what there is to assign ---------------------------------------------------------------------------


@pytest.mark.parametrize("pinned", [False, True])
def test_many_partitions_with_hardly_a_choice(pinned: bool) -> None:
    """More partitions than an array has axes, and yet one way to hand them out, or two."""
    if not pinned:
        result = evenlag.solve(alike([1] * 100, "a"))
        assert (result.status, result.makespan) == ("OPTIMAL", 100)
        return
    pins = [("t", p, "ab"[p % 2]) for p in range(99)]
    result = evenlag.solve(alike([1] * 99 + [5], "ab", pins=pins))
    assert (result.status, result.spread, result.method) == ("OPTIMAL", 4, "enumeration")


def test_groups_of_many_shapes_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads share the lists of allowed plans, of which few are kept."""
    monkeypatch.setattr(enumeration, "MOST_SHAPES", 1)
    groups = [alike([9, 5, 3], "abc", pins=[("t", 0, one), ("t", 1, two)]) for one, two in product("abc", repeat=2)]
    rules = [count_rule(problem, "none") for problem in groups]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(enumeration.allowed_plans, rules * 400))
    finally:
        sys.setswitchinterval(before)
    expected = [[[one, two, last] for last in range(3)] for one, two in product(range(3), repeat=2)]
    assert [plans.tolist() for plans in found] == expected * 400


@pytest.mark.parametrize("lags", [[2**62 - 1], [2**62 - 1, 0, 0], [2**62 - 1, 2**62, 3], [2**61, 2**61 - 1, 0]])
@pytest.mark.parametrize("stickiness", [0, 5, "1%"])
def test_lags_as_large_as_they_may_be(lags: list[int], stickiness: Any) -> None:
    result = evenlag.solve(alike(lags, "ab", owned={"b": [("t", 0)]}), stickiness=stickiness)
    best = exhaustive(result.plan.problem, Goal("both", result.stickiness))
    assert (result.status, result.objective) == ("OPTIMAL", best.objective)


def test_no_members() -> None:
    result = evenlag.solve(evenlag.Problem.from_lags({"t": [5, 3]}, {}))
    assert (result.status, result.assignment, result.unassigned) == ("EMPTY", {}, [("t", 0), ("t", 1)])
    assert (result.objective, result.bound, result.spread, result.makespan, result.moves) == (0, 0, 0, 0, 0)
    assert result.to_dict()["unassigned"] == [["t", 0], ["t", 1]]


def test_members_without_subscriptions() -> None:
    result = evenlag.solve(evenlag.Problem.from_lags({"t": [5, 3]}, {"a": [], "b": []}))
    assert (result.status, result.assignment, len(result.unassigned)) == ("EMPTY", {"a": [], "b": []}, 2)


def test_topics_without_subscribers_are_left_unassigned() -> None:
    problem = evenlag.Problem.from_lags({"t": [5, 3], "u": [900]}, {"a": ["t"], "b": ["t"]})
    result = evenlag.solve(problem)
    assert (result.status, result.unassigned, result.spread) == ("OPTIMAL", [("u", 0)], 2)


def test_one_without_subscriptions_takes_no_part() -> None:
    problem = evenlag.Problem.from_lags({"t": [5, 3]}, {"a": ["t"], "b": ["t"], "idle": []})
    result = evenlag.solve(problem)
    assert (result.status, result.spread, result.counts["idle"]) == ("OPTIMAL", 2, 0)


@pytest.mark.parametrize("balance", ["both", "topic", "group", "none"])
def test_too_little_capacity(balance: str) -> None:
    problem = alike([5, 3, 1], "ab", max_partitions={"a": 1, "b": 1})
    with pytest.raises(InfeasibleError):
        evenlag.solve(problem, balance=balance)


@pytest.mark.parametrize("balance", ["both", "topic", "group", "none"])
def test_the_only_subscriber_may_take_nothing(balance: str) -> None:
    problem = evenlag.Problem.from_lags({"t": [5], "u": [1]}, {"a": ["t"], "b": ["u"]}, max_partitions={"a": 0})
    with pytest.raises(InfeasibleError, match="t"):
        evenlag.solve(problem, balance=balance)


def test_a_pin_elsewhere_is_a_move() -> None:
    problem = alike([5, 5], "ab", owned={"a": [("t", 0)], "b": [("t", 1)]}, pins=[("t", 0, "b")])
    result = evenlag.solve(problem, stickiness=1)
    assert (result.assignment, result.moves) == ({"a": [("t", 1)], "b": [("t", 0)]}, 2)
    with pytest.raises(InfeasibleError, match=r"\b2\b"):
        evenlag.solve(problem, max_moves=1)


def test_a_share_is_rounded_up_to_whole_messages() -> None:
    problem = alike([1_001, 1_000], "ab")
    assert evenlag.solve(problem).stickiness == 2  # of 1,000.5
    assert evenlag.solve(problem, stickiness="10%").stickiness == 101
    assert evenlag.solve(problem, stickiness="0%").stickiness == 0
    assert evenlag.solve(problem, stickiness=0.5).stickiness * 2 == 1


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"balance": "fair"}, "balance"),
        ({"objective": "max"}, "objective"),
        ({"stickiness": -1}, "stickiness"),
        ({"stickiness": "much"}, "stickiness"),
        ({"stickiness": "-1%"}, "stickiness"),
        ({"stickiness": float("nan")}, "stickiness"),
        ({"stickiness": float("inf")}, "stickiness"),
        ({"stickiness": None}, "stickiness"),
        ({"stickiness": True}, "stickiness"),
        ({"max_moves": -1}, "max_moves"),
        ({"max_moves": 1.5}, "max_moves"),
        ({"max_moves": True}, "max_moves"),
        ({"slack": -1}, "slack"),
        ({"slack": 0.5}, "slack"),
        ({"slack": None}, "slack"),
        ({"method": "gurobi"}, "method"),
        ({"time_limit": 0}, "time_limit"),
        ({"time_limit": float("nan")}, "time_limit"),
        ({"time_limit": "1"}, "time_limit"),
        ({"gap": -0.1}, "gap"),
        ({"gap": float("nan")}, "gap"),
    ],
)
def test_parameters_that_are_no_such_thing(parameters: dict[str, Any], word: str) -> None:
    problem = alike([5, 3], "ab")
    with pytest.raises(InvalidProblemError, match=word):
        evenlag.solve(problem, **parameters)


@pytest.mark.parametrize(
    "parameters", [{"stickiness": 1e30}, {"slack": 2**70}, {"max_moves": 2**70}, {"gap": float("inf")}]
)
def test_parameters_beyond_all_measure(parameters: dict[str, Any]) -> None:
    random = Random(3)
    problem = evenlag.Problem.from_lags(
        {"t": [random.randint(1, 1_000) for _ in range(9)]},
        {"a": ["t"], "b": ["t"]},
        owned={"a": [("t", i) for i in range(7)]},
    )
    result = evenlag.solve(problem, **parameters, time_limit=LIMIT)
    plan = {name: value for name, value in parameters.items() if name != "gap"}
    assert assess(problem, result.assignment, Goal(**{**plan, "slack": min(plan.get("slack", 0), 9)}))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "cp-sat", "cbc", "highs"])
@pytest.mark.parametrize("seed", seeds(10))
def test_weights_of_many_digits(seed: int, method: str) -> None:
    random = Random(seed)
    members = {name: ["t"] for name in "abc"}
    weights = {name: random.uniform(0.3, 3) for name in members}
    lags = [random.randint(0, 100_000) for _ in range(8)]
    owned = {random.choice("abc"): [("t", i) for i in range(seed % 4)]}
    problem = evenlag.Problem.from_lags({"t": lags}, members, weights=weights, owned=owned)
    goal = Goal(stickiness=random.choice([0, "0.1%"]))
    limit = HOPELESS if method == "auto" else LIMIT
    result = evenlag.solve(problem, stickiness=goal.stickiness, method=method, time_limit=limit)
    wanted = exhaustive(problem, goal).objective
    assert assess(problem, result.assignment, goal).objective == result.objective
    assert result.bound <= wanted <= result.objective
    faults = [warning for warning in result.warnings for word in ("discarded", "withdrew", "Error") if word in warning]
    assert not faults


# ---- limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_hardly_any_time_gives_a_plan_no_worse_than_longest_first(seed: int) -> None:
    random = Random(seed)
    problem = alike({name: [random.randint(0, 10**6) for _ in range(400)] for name in ("t", "u")}, 30)
    result = evenlag.solve(problem, time_limit=0.001)
    assert (result.status, result.stopped_by) == ("FEASIBLE", "time")
    assert result.bound <= result.objective == result.spread
    assert result.spread <= HEURISTICS["lag-aware"](problem).spread


def longest_first(lags: list[int], members: int) -> int:
    """The largest load where each partition, largest first, goes to the least loaded member with room."""
    loads, room = [0] * members, [len(lags) // members] * members
    for lag in sorted(lags, reverse=True):
        member = min((m for m in range(members) if room[m]), key=lambda m: loads[m])
        loads[member] += lag
        room[member] -= 1
    return max(loads)


@pytest.mark.parametrize("seed", range(12))
def test_hardly_any_time_gives_a_low_makespan_where_lags_are_skewed(seed: int) -> None:
    random = Random(seed)
    lags = [round(random.lognormvariate(8, random.choice([0.3, 1, 2]))) for _ in range(96)]
    result = evenlag.solve(alike(lags, 12), balance="group", objective="makespan", time_limit=0.001)
    assert result.objective <= longest_first(lags, 12)


@pytest.mark.parametrize("seed", range(6))
def test_hardly_any_time_keeps_partitions_where_moves_cost(seed: int) -> None:
    random = Random(seed)
    lags = {"t": [random.randint(0, 10**6) for _ in range(400)]}
    problem = alike(lags, 30, owned=random_owners(random, lags, 30))
    result = evenlag.solve(problem, stickiness=1, time_limit=0.001)
    assert (result.status, result.stopped_by, result.fallback) == ("FEASIBLE", "time", True)
    assert result.method in HEURISTICS
    assert result.assignment == HEURISTICS[result.method](problem).assignment


@pytest.mark.parametrize("method", ["auto", "cp-sat", "cbc", "highs"])
def test_no_time_limit(method: str) -> None:
    problem = alike([7, 7, 5, 5, 3], "ab")
    result = evenlag.solve(problem, stickiness=0, method=method, time_limit=float("inf"))
    assert (result.status, result.objective) == ("OPTIMAL", exhaustive(problem, Goal(stickiness=0)).objective)


@pytest.mark.slow
def test_weights_of_many_digits_with_lags_of_few() -> None:
    members = {"a": ["t"], "b": ["t"]}
    weights = {"a": 3.141592653589793, "b": 2.718281828459045}
    problem = evenlag.Problem.from_lags({"t": [5, 3, 9, 1]}, members, weights=weights)
    result = evenlag.solve(problem, time_limit=HOPELESS)
    assert result.bound <= exhaustive(problem, Goal()).objective <= result.objective


@pytest.mark.parametrize("method", ["cp-sat", "cbc", "highs"])
@pytest.mark.parametrize("seed", small_groups(15))
def test_work_limits_do_not_fail_a_backend(seed: int, method: str) -> None:
    problem, parameters, goal = small_case(seed)
    for time_limit in (0.05, LIMIT):
        result = evenlag.solve(problem, **parameters, method=method, time_limit=time_limit, deterministic=True)
        assert assess(problem, result.assignment, goal).objective == result.objective
        assert result.bound <= optimum(seed).objective
        assert not any("Error" in warning for warning in result.warnings), result.warnings


@pytest.mark.parametrize("seed", small_groups(15))
@pytest.mark.usefixtures("by")
def test_a_gap_that_is_wide_enough_stops_the_search(seed: int) -> None:
    problem, parameters, _ = small_case(seed)
    result = evenlag.solve(problem, **parameters, gap=1e9, time_limit=LIMIT)
    assert result.stopped_by in ("gap", "proof")
    assert result.bound <= result.objective


@pytest.mark.parametrize("seed", small_groups(15))
@pytest.mark.usefixtures("by")
def test_deterministic_runs_are_identical(seed: int) -> None:
    problem, parameters, _ = small_case(seed)
    documents = []
    for _ in range(2):
        documents.append(evenlag.solve(problem, **parameters, deterministic=True, time_limit=LIMIT).to_dict())
        del documents[-1]["seconds"]
    assert documents[0] == documents[1]


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
