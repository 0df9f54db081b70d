"""Relations between solves: changes that must not affect a result, and changes with a known effect.

Nothing here depends on the clock: all solves have work limits. Where a search ends without a proof, each plan must
still respect the other solve's bound.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import evenlag
from evenlag.errors import InfeasibleError
from evenlag.model.plan import Plan
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search
from tests.support.exact import every_plan
from tests.support.problems import (
    alike,
    cases,
    documents,
    lags,
    random_document,
    random_owners,
    random_parameters,
    seeds,
)
from tests.support.solving import briefly

NET = 600.0  # seconds: the wall clock ends nothing here
WORK = 0.05
Document = dict[str, Any]
Parameters = dict[str, Any]
Case = tuple[Document, Parameters]


def solved(document: Document | evenlag.Problem, work: float = WORK, **parameters: Any) -> evenlag.Result:
    problem = document if isinstance(document, evenlag.Problem) else evenlag.Problem.from_dict(document)
    options = SolveOptions(time_limit=NET, deterministic=True, work=work, **parameters)
    with briefly():
        return search(problem, options, explain=False)


def agree(one: evenlag.Result, other: evenlag.Result, factor: Fraction | int = 1) -> None:
    """The second problem has the objectives of the first times a factor."""
    assert one.bound * factor <= other.objective, (one.bound_by, other.method)
    assert other.bound <= one.objective * factor, (other.bound_by, one.method)
    if one.status == other.status == "OPTIMAL":
        assert one.objective * factor == other.objective


def medium_document(random: Random) -> Document:
    """A group too large to enumerate, most often with owners; members alike, or with weights or mixed subscriptions."""
    topics = {f"t{t}": lags(random, random.randint(8, 16), random.choice(["wide", "skewed"])) for t in range(2)}
    members = random.randint(3, 5)
    more: dict[str, Any] = {}
    if random.random() < 0.8:
        more["owned"] = random_owners(random, topics, members, share=random.choice([0.7, 1.0]))
    if random.random() < 0.3:
        more["weights"] = {f"c{m:03}": random.choice([1, 2, 3]) for m in range(members)}
    document = alike(topics, members, **more).to_dict()
    if random.random() < 0.2:
        document["members"]["c000"]["topics"] = ["t0"]
        document["members"]["c000"]["owned"] = [
            each for each in document["members"]["c000"].get("owned", []) if each[0] == "t0"
        ]
    return document


def small_and_medium(count: int, medium: int) -> list[Any]:
    """Seeds of small groups, which are enumerated, and of larger ones."""
    return [*((seed, False) for seed in seeds(count)), *((seed, True) for seed in seeds(medium))]


def drawn(seed: int, medium: bool) -> Case:
    """A group and parameters that have a plan."""
    random = Random(f"{seed}{medium}")
    while True:
        document = medium_document(random) if medium else random_document(random)
        parameters = random_parameters(random)
        try:
            if solved(document, 0.001, **parameters).status != "EMPTY":
                return document, parameters
        except InfeasibleError:
            continue


both_sizes = pytest.mark.parametrize(("seed", "medium"), small_and_medium(25, 8))


# ---- what changes nothing ------------------------------------------------------------------------------------------


def copied_scenarios(document: Document, parameters: Parameters, random: Random) -> Case:
    weights = [random.randint(1, 5) for _ in range(random.randint(1, 3))]
    copies = [{"weight": weight, "topics": document["topics"]} for weight in weights]
    return {**document, "scenarios": copies}, {**parameters, "across": random.choice(["mean", "worst"])}


def equal_weights(document: Document, parameters: Parameters, _: Random) -> Case:
    changed = deepcopy(document)
    for member in changed["members"].values():
        member["weight"] = member.get("weight", 1) or 1
    return changed, parameters


def weights_times_a_factor(document: Document, parameters: Parameters, random: Random) -> Case:
    changed, factor = deepcopy(document), random.choice([2, 5, 0.5])
    for member in changed["members"].values():
        member["weight"] = (member.get("weight") or 1) * factor
    return changed, parameters


def a_budget_of_all(document: Document, parameters: Parameters, random: Random) -> Case:
    owned = sum(len(member.get("owned") or []) for member in document["members"].values())
    return document, {"max_moves": owned + random.randint(0, 3), **parameters}


def a_ceiling_above_all(document: Document, parameters: Parameters, _: Random) -> Case:
    weights = [float(member.get("weight") or 1) for member in document["members"].values()]
    total = sum(sum(each.values() if isinstance(each, dict) else each) for each in document["topics"].values())
    return document, {**parameters, "max_load": int(total * max(weights) / min(weights)) + 1}


def racks_without_a_price(document: Document, parameters: Parameters, random: Random) -> Case:
    changed = deepcopy(document)
    for member in changed["members"].values():
        member["rack"] = random.choice(["a", "b", None])
    changed["partition_racks"] = {
        topic: [random.choice([["a"], ["b", "a"], None]) for _ in each]
        for topic, each in changed["topics"].items() if not isinstance(each, dict)
    }  # fmt: skip
    return changed, {**parameters, "rack_price": 0}


def moves_of_size_one(document: Document, parameters: Parameters, _: Random) -> Case:
    sizes = {topic: [1] * len(each) for topic, each in document["topics"].items() if not isinstance(each, dict)}
    return {**document, "move_sizes": sizes}, parameters


def budgets_of_sizes_of_all(document: Document, parameters: Parameters, random: Random) -> Case:
    return document, {**parameters, "max_moved": sum(map(len, document["topics"].values())) + random.randint(0, 2)}


def names_in_another_order(document: Document, parameters: Parameters, random: Random) -> Case:
    """Members, topics and partitions have other names, and come in another order."""
    members, topics = list(document["members"]), list(document["topics"])
    member_names = dict(
        zip(members, random.sample([f"m{n:02}" for n in range(len(members))], len(members)), strict=True)
    )
    topic_names = dict(zip(topics, random.sample([f"s{n:02}" for n in range(len(topics))], len(topics)), strict=True))
    places = {topic: random.sample(range(len(each)), len(each)) for topic, each in document["topics"].items()}

    def partition(of: list[Any]) -> list[Any]:
        return [topic_names[of[0]], places[of[0]][of[1]], *(member_names[name] for name in of[2:])]

    changed = deepcopy(document)
    changed["topics"] = {}
    for topic in random.sample(topics, len(topics)):
        by_place = sorted(zip(places[topic], document["topics"][topic], strict=True))
        changed["topics"][topic_names[topic]] = [lag for _, lag in by_place]
    changed["members"] = {}
    for name in random.sample(members, len(members)):
        member = deepcopy(document["members"][name])
        member["topics"] = [topic_names[topic] for topic in member["topics"]]
        if member.get("owned") is not None:
            member["owned"] = [partition(each) for each in member["owned"]]
        changed["members"][member_names[name]] = member
    if changed.get("pins"):
        changed["pins"] = [partition(pin) for pin in changed["pins"]]
    return changed, parameters


UNCHANGED: list[Callable[[Document, Parameters, Random], Case]] = [
    copied_scenarios, equal_weights, weights_times_a_factor, a_budget_of_all, a_ceiling_above_all,
    racks_without_a_price, moves_of_size_one, budgets_of_sizes_of_all, names_in_another_order,
]  # fmt: skip


@pytest.mark.parametrize("change", UNCHANGED)
@both_sizes
def test_changes_without_meaning_leave_the_objective(
    seed: int, medium: bool, change: Callable[[Document, Parameters, Random], Case]
) -> None:
    document, parameters = drawn(seed, medium)
    other, changed = change(document, parameters, Random(seed))
    agree(solved(document, **parameters), solved(other, **changed))


@pytest.mark.slow
@settings(max_examples=cases(60))
@given(documents(), st.randoms(use_true_random=False), st.sampled_from(UNCHANGED))
def test_changes_without_meaning_leave_the_objective_of_any_group(
    document: Document, random: Random, change: Callable[[Document, Parameters, Random], Case]
) -> None:
    parameters = random_parameters(random)
    other, changed = change(document, parameters, random)
    try:
        one = solved(document, **parameters)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            solved(other, **changed)
        return
    assume(one.status != "EMPTY")
    agree(one, solved(other, **changed))


@pytest.mark.parametrize("change", [equal_weights, a_budget_of_all, moves_of_size_one])
@pytest.mark.parametrize("seed", seeds(10))
def test_equivalent_problems_have_the_same_plan(
    seed: int, change: Callable[[Document, Parameters, Random], Case]
) -> None:
    document, parameters = drawn(seed, True)
    other, changed = change(document, parameters, Random(seed))
    assert solved(document, **parameters).assignment == solved(other, **changed).assignment


@both_sizes
def test_owners_have_no_effect_where_moves_are_free(seed: int, medium: bool) -> None:
    document, parameters = drawn(seed, medium)
    free = {**parameters, "stickiness": 0, "max_moves": None}
    nobody = deepcopy(document)
    for member in nobody["members"].values():
        member.pop("owned", None)
    agree(solved(document, **free), solved(nobody, **free))


@both_sizes
def test_the_fewest_moves_are_the_first_criterion(seed: int, medium: bool) -> None:
    document, parameters = drawn(seed, medium)
    asked = {**parameters, "max_moves": None}
    one = solved(document, **{**asked, "stickiness": "fewest-moves"})
    other = solved(document, **{**asked, "stickiness": 0, "first": ("moves",)})
    if one.status == other.status == "OPTIMAL":
        assert (one.moves, one.spread if one.kind == "spread" else one.makespan) == (
            other.moves, other.spread if other.kind == "spread" else other.makespan,
        )  # fmt: skip


# ---- what a proven plan has anyway -----------------------------------------------------------------------------------


def proven(seed: int, medium: bool) -> Iterator[tuple[Document, Parameters, evenlag.Result]]:
    document, parameters = drawn(seed, medium)
    result = solved(document, **parameters)
    if result.status == "OPTIMAL":
        yield document, parameters, result


@both_sizes
def test_a_rule_that_an_optimal_plan_keeps_costs_nothing(seed: int, medium: bool) -> None:
    for document, parameters, best in proven(seed, medium):
        random = Random(seed)
        assert solved(document, **{**parameters, "max_moves": best.moves}).objective == best.objective
        assert solved(document, **{**parameters, "max_load": best.makespan}).objective == best.objective
        held = [(topic, p, name) for name, these in best.assignment.items() for topic, p in these]
        pinned = {(topic, p) for topic, p, _ in document.get("pins") or []}
        more = [list(pin) for pin in random.sample(held, min(3, len(held))) if pin[:2] not in pinned]
        other = {**document, "pins": [*(document.get("pins") or []), *more]}
        if (evenlag.Problem.from_dict(other).active == best.plan.problem.active).all():  # nobody else is left out
            agree(best, solved(other, **parameters))


@both_sizes
def test_a_result_is_never_worse_than_its_start(seed: int, medium: bool) -> None:
    document, parameters = drawn(seed, medium)
    best = solved(document, **parameters)
    options = SolveOptions(time_limit=NET, deterministic=True, work=0.001, **parameters)
    assert search(best.plan.problem, options, start=best.plan, explain=False).objective <= best.objective


# ---- what changes it in a known way ----------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [2, 7, 10**6])
@both_sizes
def test_the_objective_scales_with_the_lags(seed: int, medium: bool, factor: int) -> None:
    document, parameters = drawn(seed, medium)
    price = parameters["stickiness"]
    price = 3 if isinstance(price, str) and price.endswith("%") else price
    larger = {
        **document,
        "topics": {
            topic: {p: lag * factor for p, lag in each.items()}
            if isinstance(each, dict)
            else [lag * factor for lag in each]
            for topic, each in document["topics"].items()
        },
    }
    one = solved(document, **{**parameters, "stickiness": price})
    other = solved(larger, **{**parameters, "stickiness": price if isinstance(price, str) else price * factor})
    agree(one, other, factor)


@pytest.mark.parametrize("seed", seeds(12))
def test_equal_extra_lag_leaves_the_spread_of_equal_counts(seed: int) -> None:
    random = Random(seed)
    members, each = random.randint(2, 5), random.randint(2, 6)
    numbers = lags(random, members * each, random.choice(["wide", "skewed"]))
    parameters = {"balance": "group", "stickiness": 0}
    one = solved(alike(numbers, members), **parameters)
    agree(one, solved(alike([lag + 100 for lag in numbers], members), **parameters))


@both_sizes
def test_a_relaxed_rule_never_worsens_the_objective(seed: int, medium: bool) -> None:
    """Bounds rise and plans get worse from the loosest rule to the strictest."""
    document, parameters = drawn(seed, medium)
    asked = {**parameters, "max_moves": None, "stickiness": 0}
    by_balance = [solved(document, **{**asked, "balance": balance}) for balance in ("none", "topic", "both")]
    by_price = [solved(document, **{**asked, "stickiness": price}) for price in (0, 5, 50)]
    fewest = by_price[0].moves_bound
    by_budget = [solved(document, **{**asked, "max_moves": fewest + more}) for more in (6, 2, 0)]
    for results in (by_balance, by_price, by_budget):
        for loose, strict in pairwise(results):
            assert loose.bound <= strict.objective
            if loose.status == strict.status == "OPTIMAL":
                assert loose.objective <= strict.objective
    if all(result.status == "OPTIMAL" for result in by_price):
        assert by_price[0].moves >= by_price[1].moves >= by_price[2].moves or by_price[0].objective < 5
        assert by_price[1].objective <= by_price[0].objective + 5 * by_price[0].moves
        assert by_price[2].objective <= by_price[1].objective + 45 * by_price[1].moves


# ---- one objective and the other -------------------------------------------------------------------------------------


LUCK = 1.5  # how much more one search may leave over the bound than the other
SHAPES = [(50, 5, "u6"), (50, 10, "u16"), (50, 10, "u6"), (64, 16, "u16"), (120, 20, "lognormal"), (200, 20, "u6")]


def wide_group(partitions: int, members: int, kind: str) -> evenlag.Problem:
    random = Random(f"{partitions}{members}{kind}")
    if kind == "lognormal":
        return alike([int(random.lognormvariate(8, 1.5)) for _ in range(partitions)], members)
    return alike([random.randint(1, 65_535 if kind == "u16" else 10**6) for _ in range(partitions)], members)


@pytest.mark.slow
@pytest.mark.parametrize("balance", ["both", "none"])
@pytest.mark.parametrize(("partitions", "members", "kind"), SHAPES)
def test_each_objective_is_served_best_by_its_own_search(
    partitions: int, members: int, kind: str, balance: str
) -> None:
    """The searches draw alike, but a proof may widen the window of one of them: then chance decides."""
    problem = wide_group(partitions, members, kind)
    options = {"time_limit": NET, "deterministic": True, "work": 0.5, "balance": balance, "stickiness": 0}
    spread, makespan = (
        search(problem, SolveOptions(objective=objective, **options), explain=False)
        for objective in ("spread", "makespan")
    )
    assert makespan.bound <= spread.makespan
    assert spread.bound <= makespan.spread
    assert makespan.makespan - makespan.bound <= LUCK * (spread.makespan - makespan.bound)
    if makespan.status == "FEASIBLE":  # otherwise it stopped before
        assert spread.spread <= LUCK * makespan.spread


@both_sizes
def test_bounds_of_one_objective_hold_for_plans_of_the_other(seed: int, medium: bool) -> None:
    document, parameters = drawn(seed, medium)
    asked = {**parameters, "stickiness": 0}
    spread, makespan = (solved(document, **{**asked, "objective": kind}) for kind in ("spread", "makespan"))
    assert spread.bound <= makespan.spread
    assert makespan.bound <= spread.makespan


def test_a_low_makespan_takes_few_moves_where_one_partition_is_hot() -> None:
    """The member of the hottest partition needs only the smallest companions: a few of the many swaps allowed."""
    random = Random(0)
    numbers = [int(random.lognormvariate(8, 2)) for _ in range(1_000)]
    owned = {f"c{m:03}": [("t", p) for p in range(m, 1_000, 100)] for m in range(100)}
    problem = alike(numbers, 100, owned=owned)
    for most in (100, 800):  # a wider budget is not spent where a narrow one suffices
        result = solved(problem, objective="makespan", stickiness=0, max_moves=most, work=0.5)
        assert result.status == "OPTIMAL"
        assert result.moves < 40


@pytest.mark.parametrize("seed", seeds(30))
def test_a_solve_takes_the_fewest_moves_of_equally_good_plans(seed: int) -> None:
    """Of the best plans within the budgets, take the one with the fewest moves, then the most even one."""
    random = Random(seed)
    topics = {"t": [random.choice((0, random.randint(0, 9), 40)) for _ in range(6)]}
    problem = alike(topics, 3, owned=random_owners(random, topics, 3, share=1.0))
    kind, budget = random.choice(("makespan", "spread")), random.randint(2, 5)
    plans = [Plan(problem, member_of) for member_of in every_plan(problem, "both", 0)]
    plans = [plan for plan in plans if plan.moves <= budget]
    if not plans:
        return
    values = {id(plan): plan.makespan if kind == "makespan" else plan.spread for plan in plans}
    best = min((values[id(plan)], plan.moves, sum(load**2 for load in plan.loads)) for plan in plans)
    result = solved(problem, objective=kind, stickiness=0, max_moves=budget)
    assert (result.objective, result.moves, sum(load**2 for load in result.plan.loads)) == best
