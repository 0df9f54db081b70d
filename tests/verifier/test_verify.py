"""Certificates: right results are verified, and changed ones refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

import evenlag
from evenlag.errors import InfeasibleError, InvalidProblemError
from evenlag.model.certificate import in_json
from evenlag.search.exact import small_groups
from evenlag.verifier.all_plans import allowed_plans, best_of_all
from evenlag.verifier.cheapest import cheapest
from evenlag.verifier.costs_of_pairs import Terms
from evenlag.verifier.count_limits import check_counts, counts_of
from evenlag.verifier.effort import Effort
from evenlag.verifier.held_sets import Search
from evenlag.verifier.load_arguments import Loads
from evenlag.verifier.question import Question, RefusedError, UncheckedError
from evenlag.verifier.stated_group import read_group
from tests.support.exact import Infeasible, every_plan
from tests.support.portfolios import without
from tests.support.problems import alike, random_owners, random_parameters, random_problem, seeds
from tests.support.solving import briefly, unexplained

Document = dict[str, Any]


def written(result: evenlag.Result) -> Document:
    """Return the content of its result file."""
    document: Document = json.loads(json.dumps(result.to_dict()))
    return document


def solved(problem: evenlag.Problem, **parameters: Any) -> Document:
    with briefly():
        return written(unexplained(problem, **({"time_limit": 5} | parameters)))


@pytest.mark.parametrize("seed", seeds(60))
def test_results_of_small_groups_are_verified(seed: int) -> None:
    random = Random(seed)
    problem, parameters = random_problem(random), random_parameters(random)
    try:
        document = solved(problem, **parameters)
    except InfeasibleError:
        return
    verdict = evenlag.verify(document, problem)
    assert verdict.outcome == "verified", verdict.reason


PRIMES = [97, 83, 79, 61, 53, 47, 31, 29, 17, 13, 7, 3]
TOPICS = {"a": PRIMES[:6], "b": PRIMES[6:10]}
GROUPS: dict[str, tuple[evenlag.Problem, dict[str, Any]]] = {
    "enumeration": (alike(PRIMES[6:], 3, owned=random_owners(Random(1), {"t": PRIMES[6:]}, 3)), {}),
    "move-dp": (alike(PRIMES, 4, owned=random_owners(Random(2), {"t": PRIMES}, 4)), {"stickiness": 3}),
    "column generation": (alike([911, 857, 811, 797, 743, 701, 641, 599, 541, 503, 467, 431], 4), {}),
    "bounds": (alike([10_000, *range(1, 16)], 4), {}),
    "number partitioning": (alike([911, 857, 811, 797, 743, 701, 641, 599, 541, 503, 467, 431], 4), {}),
    "cp-sat": (alike(TOPICS, 4, owned=random_owners(Random(24), TOPICS, 4)), {"stickiness": 3, "time_limit": 60}),
}


@cache
def solution(author: str) -> Document:
    """The document of the result of one of `GROUPS`, not to be changed."""
    problem, parameters = GROUPS[author]
    with without(*{"number partitioning", "set partitioning"} - {author}):
        return solved(problem, **parameters)


def test_a_topic_read_by_some_weighted_members_bounds_their_loads() -> None:
    topics, members = {"a": [500, 400, 300], "b": PRIMES}, {"x": ["a", "b"], "y": ["b"], "z": ["b"]}
    problem = evenlag.Problem.from_lags(topics, members, weights={"x": 2, "y": 1, "z": 1})
    document = solved(problem, balance="none", objective="makespan")
    assert document["certificate"]["proof"]["each"][0]["largest"][0] == "topic"
    assert evenlag.verify(document, problem).outcome == "verified"


@pytest.mark.parametrize("author", GROUPS)
def test_bounds_of_every_author_are_proven_again(author: str) -> None:
    if author == "number partitioning" and small_groups._compiled is None:
        pytest.skip("it is compiled code, which is not installed")
    problem, document = GROUPS[author][0], solution(author)
    assert (document["status"], document["bound_by"]) == ("OPTIMAL", author)
    verdict = evenlag.verify(document, problem.to_dict())
    assert (verdict.outcome, verdict.bound_by) == ("verified", author), verdict.reason


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("balance", ["none", "group"])
def test_bounds_of_rounded_loads_are_proven_again_wherever_the_search_ends(balance: str, seed: int) -> None:
    """Lags of 48 bits are rounded; the search and the check round with different losses."""
    problem = alike([Random(seed * 100 + p).randrange(2**48) for p in range(18)], 5)
    with without("number partitioning"):
        for work in (0.05, 0.1, 0.15, 0.3):
            document = solved(problem, balance=balance, deterministic=True, work=work)
            verdict = evenlag.verify(document, problem.to_dict())
            assert verdict.outcome in ("verified", "plan verified"), (work, verdict.reason)


# ---- terms beyond loads and moves ------------------------------------------------------------------------------------

RACKS = {"x": "1", "y": "2", "z": "2"}
RACKED = evenlag.Problem.from_lags(
    {"t": [97, 83, 61, 47, 29, 13]}, list(RACKS), racks=RACKS, owned={"x": [("t", 0), ("t", 1), ("t", 2)]},
    partition_racks={"t": [["1"], ["2"], ["1"], ["2"], ["1"], None]}, move_sizes={"t": [3, 1, 4, 1, 5, 9]},
    costs={"night": {"y": 2}},
)  # fmt: skip
ASKED: dict[str, dict[str, Any]] = {
    "price": {"rack_price": 7, "stickiness": 2},
    "budget": {"max_crossings": 1, "prices": {"night": 3}, "stickiness": 0},
    "order": {"first": ["crossings", "moves"], "max_moves": 3},
    "ceiling": {"max_load": 120, "first": ["moves"]},
}


@pytest.mark.parametrize("asked", ASKED)
def test_terms_are_checked_and_broken_ones_refused(asked: str) -> None:
    document = solved(RACKED, **ASKED[asked])
    assert evenlag.verify(document, RACKED).outcome == "verified"
    for field in ("crossings", "moved_size", "night"):
        changed = deepcopy(document)
        changed["costs"][field] += 1
        assert "costs is" in evenlag.verify(changed, RACKED).reason
    question = document["certificate"]["question"]
    for pair in question["pairs"]:
        changed = deepcopy(document)
        other = next(each for each in changed["certificate"]["question"]["pairs"] if each["name"] == pair["name"])
        other.update(price=100_003 if pair["price"] else 0, budget=-1 if pair["budget"] is not None else None)
        assert evenlag.verify(changed, RACKED).outcome == "refused"
    if question["max_load"] is not None:
        question["max_load"] = 1
        assert "max_load is 1 by plan and certificate" in evenlag.verify(document, RACKED).reason
        document["max_load"] = 1
        assert "max_load is 1" in evenlag.verify(document, RACKED).reason


def test_a_criterion_that_could_be_less_is_refused() -> None:
    document = solved(RACKED, **ASKED["order"])
    loose = solved(RACKED, max_crossings=2, max_moves=3, stickiness=0, rack_price=0)
    assert loose["costs"]["crossings"] > document["costs"]["crossings"]
    loose["certificate"]["question"]["first"], loose["first"] = [["crossings", None]], ["crossings"]
    loose["cost_bounds"] = {"crossings": loose["costs"]["crossings"]}
    verdict = evenlag.verify(loose, RACKED)
    assert (verdict.outcome, "cost_bounds of crossings is" in verdict.reason) == ("refused", True)


@pytest.mark.parametrize("seed", seeds(15))
def test_results_with_terms_are_verified(seed: int) -> None:
    random = Random(seed)
    problem = random_problem(random, partitions=6, members=3)
    names = [name for name, _ in problem.partitions]
    racks = {member: random.choice(["1", "2", None]) for member in problem.members}
    document = problem.to_dict() | {
        "partition_racks": {topic: {} for topic in names}, "move_sizes": {topic: {} for topic in names},
    }  # fmt: skip
    for topic, number in problem.partitions:
        document["partition_racks"][topic][str(number)] = random.choice([["1"], ["2", "1"], None])
        document["move_sizes"][topic][str(number)] = random.randint(0, 9)
    for member, rack in racks.items():
        document["members"][member]["rack"] = rack
    problem = evenlag.Problem.from_dict(document)
    terms = {"rack_price": random.choice([0, 5]), "first": random.choice([(), ("moves",), ("crossings",)])}
    try:
        result = solved(problem, **random_parameters(random), **terms)
    except InfeasibleError:
        return
    verdict = evenlag.verify(result, problem)
    assert verdict.outcome == "verified", verdict.reason


@pytest.mark.parametrize("seed", seeds(20))
def test_plans_of_the_least_criteria_are_those_of_the_flow(seed: int) -> None:
    random = Random(seed)
    problem = random_problem(random, partitions=6, members=3)
    costs = {name: {member: random.randint(0, 2) for member in problem.members} for name in ("a", "b")}
    for table in costs.values():
        table.update(
            {(*partition, random.choice(problem.members)): random.randint(0, 3) for partition in problem.partitions}
        )
    problem = evenlag.Problem.from_dict(problem.to_dict() | {"costs": {
        name: {"members": {m: n for m, n in table.items() if isinstance(m, str)},
               "pairs": [[*pair, n] for pair, n in table.items() if not isinstance(pair, str)]}
        for name, table in costs.items()
    }})  # fmt: skip
    group, balance = read_group(problem.to_dict()), random.choice(["both", "topic", "group", "none"])
    if not group.active:
        return
    try:
        holders = [[None if m < 0 else int(m) for m in row] for row in every_plan(problem, balance)]
    except Infeasible:
        return
    question = Question("spread", balance, 0, "mean", 0, None, False)
    first = random.sample([["a", None], ["b", None], ["moves", None]], 2)
    pairs = [{"name": name, "price": 0, "budget": None} for name, _ in first if name != "moves"]
    terms = Terms(group, {"pairs": pairs, "first": first, "max_load": None, "fetch_from": "followers"}, {})
    worth = [terms.criteria(holder) for holder in holders]
    best = [holder for holder, criteria in zip(holders, worth, strict=True) if criteria == min(worth)]
    counts = counts_of(group, question, holders[0], Effort(10**8))
    takers, lowest = cheapest(group, counts, terms, random.choice(best), Effort(10**8))
    kept = list(map(list, allowed_plans(replace(group, only=takers), lowest, Effort(10**8))))
    assert sorted(map(str, kept)) == sorted(map(str, best))
    other = random.choice(holders)
    if terms.criteria(other) != min(worth):
        with pytest.raises(UncheckedError, match="not proven to be lowest"):
            cheapest(group, counts, terms, other, Effort(10**8))


def test_units_are_checked_as_partitions_of_their_own() -> None:
    problem = evenlag.Problem.from_lags(
        {"a": [9, 5, 4], "b": [1, 7, 2], "c": [6, 3]}, {m: ["a", "b", "c"] for m in "xyz"}, together=[("a", "b")],
        owned={"x": [("a", 0), ("b", 0), ("c", 0)], "y": [("a", 1)]}, move_sizes={"a": [3, 1, 2]},
    )  # fmt: skip
    document = solved(problem, stickiness=1)
    assert evenlag.verify(document, problem).outcome == "verified"
    raised(document, 1)
    document["objective"] += 1
    assert "objective is" in evenlag.verify(document, problem).reason
    document = solved(problem, stickiness=1)
    holder = next(names for names in document["assignment"].values() if ["a", 0] in names)
    other = next(names for names in document["assignment"].values() if names is not holder)
    other.append(holder.pop(holder.index(["a", 0])))
    assert "go together, but the plan gives them to two" in evenlag.verify(document, problem).reason


@pytest.mark.parametrize("across", ["mean", "worst"])
@pytest.mark.parametrize("price", [0, 7])
def test_bounds_of_scenarios_are_proven_again_one_by_one(price: int, across: str) -> None:
    random = Random(price)
    lags = [random.randint(1, 500) for _ in range(16)]
    futures = [(weight, {"t": [int(lag * random.uniform(0.5, 2)) for lag in lags]}) for weight in (1, 3)]
    problem = alike(lags, 4, scenarios=futures, owned=random_owners(random, {"t": lags}, 4))
    with without("cp-sat"):  # it may prove more, which is not checked again
        document = written(evenlag.solve(problem, stickiness=price, across=across, deterministic=True, work=4))
    assert document["certificate"]["proof"]["kind"] == "scenarios"
    assert evenlag.verify(document, problem).outcome == "verified"
    changed = deepcopy(document)
    raised(changed, 1)
    assert evenlag.verify(changed, problem).outcome == "refused"
    for part in document["certificate"]["proof"]["scenarios"]:
        part["bound"] = in_json(Fraction(part["bound"]) - 100)
    assert "the proof shows" in evenlag.verify(document, problem).reason


# ---- broken on purpose -----------------------------------------------------------------------------------------------


def raised(document: Document, by: int) -> None:
    """Raise or lower the bound, and the objective with it."""
    bound = in_json(Fraction(document["certificate"]["bound"]) + by)
    document["certificate"]["bound"] = bound
    document["bound"] += by


def bound_above(document: Document, _: Random) -> None:
    raised(document, 1)


def bound_below(document: Document, _: Random) -> None:
    raised(document, -1)


def objective_lower(document: Document, _: Random) -> None:
    document["objective"] -= 1


def other_figure(document: Document, random: Random) -> None:
    document[random.choice(["spread", "makespan", "moves"])] += random.choice([-1, 1])


def other_counts(document: Document, random: Random) -> None:
    field = document[random.choice(["counts", "loads"])]
    field[random.choice(list(field))] += 1


def partition_lost(document: Document, random: Random) -> None:
    names = random.choice([names for names in document["assignment"].values() if names])
    names.pop(random.randrange(len(names)))


def partition_twice(document: Document, random: Random) -> None:
    held = [names for names in document["assignment"].values() if names]
    random.choice(list(document["assignment"].values())).append(random.choice(random.choice(held)))


def partition_elsewhere(document: Document, random: Random) -> None:
    giver = random.choice([names for names in document["assignment"].values() if names])
    taker = random.choice([names for names in document["assignment"].values() if names is not giver])
    taker.append(giver.pop())


def no_certificate(document: Document, _: Random) -> None:
    document["certificate"] = None


def other_balance(document: Document, _: Random) -> None:
    asked = document["certificate"]["question"]
    asked["balance"] = "none" if asked["balance"] != "none" else "both"


def other_price(document: Document, _: Random) -> None:
    document["certificate"]["question"]["price"] = 123_457


BREAKS: list[Callable[[Document, Random], None]] = [
    bound_above, bound_below, objective_lower, other_figure, other_counts, partition_lost, partition_twice,
    partition_elsewhere, no_certificate, other_balance, other_price,
]  # fmt: skip


@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("author", GROUPS)
def test_a_changed_result_is_refused(author: str, broken: Callable[[Document, Random], None]) -> None:
    problem, document = GROUPS[author][0], solution(author)
    for seed in range(4):
        changed = deepcopy(document)
        broken(changed, Random(seed))
        assert evenlag.verify(changed, problem).outcome == "refused"


def worse_plan(document: Document, problem: evenlag.Problem, random: Random) -> Document | None:
    """Return the result with a worse plan, all its figures right, and a bound that claims to meet it."""
    assignment = deepcopy(document["assignment"])
    one, two = random.sample([names for names in assignment.values() if names], 2)
    i, j = random.randrange(len(one)), random.randrange(len(two))
    one[i], two[j] = two[j], one[i]
    plan = evenlag.Plan.from_assignment(problem, {m: [tuple(n) for n in names] for m, names in assignment.items()})
    moved = plan.moves * Fraction(document["certificate"]["question"]["price"])
    if plan.spread + moved <= document["objective"]:
        return None
    changed = deepcopy(document) | {"spread": plan.spread, "makespan": plan.makespan, "moves": plan.moves}
    changed |= {"objective": int(plan.spread + moved), "bound": int(plan.spread + moved), "assignment": assignment}
    changed["loads"] = {m: int(load) for m, load in zip(problem.members, plan.loads, strict=True)}
    changed["certificate"]["bound"] = changed["bound"]
    return changed


@pytest.mark.parametrize("author", GROUPS)
def test_a_worse_plan_claimed_to_be_best_is_refused(author: str) -> None:
    problem, document = GROUPS[author][0], solution(author)
    worse = [each for seed in range(12) if (each := worse_plan(document, problem, Random(seed))) is not None]
    assert worse
    for changed in worse:
        verdict = evenlag.verify(changed, problem)
        assert verdict.outcome == "refused"


def test_other_arguments_prices_and_numbers_are_refused() -> None:
    changes: dict[str, Callable[[Document], None]] = {
        "bounds": lambda proof: proof["each"][0].update(smallest=["mean", 0]),
        "column generation": lambda proof: proof["prices"][0].__setitem__(0, proof["prices"][0][0] + 1),
        "enumeration": lambda proof: proof.update(plans=proof["plans"] + 1),
    }
    for author, change in changes.items():
        problem, document = GROUPS[author][0], deepcopy(solution(author))
        change(document["certificate"]["proof"])
        assert evenlag.verify(document, problem).outcome == "refused"


def test_the_fewest_moves_are_shown_without_the_plan_that_breaks_the_balance() -> None:
    problem = alike({"s": [9], "t": [5], "u": [4, 1]}, "ab", owned={"b": [("s", 0), ("t", 0), ("u", 1)]})
    document = solved(problem, method="range", balance="group", stickiness="fewest-moves")
    assert document["violation"] is not None
    assert evenlag.verify(document, problem).outcome == "verified"
    named = {member: names for member, names in document["assignment"].items() if names}
    assert named  # its own counts are no proof
    document["certificate"]["counts"] = [[t, m, 1] for m, names in named.items() for t, _ in names]
    assert "counts of the fewest moves" in evenlag.verify(document, problem).reason
    del document["certificate"]["counts"]
    assert "cannot read" in evenlag.verify(document, problem).reason


def test_prices_that_prove_less_leave_windows_open() -> None:
    problem, document = GROUPS["column generation"][0], deepcopy(solution("column generation"))
    proof = document["certificate"]["proof"]
    proof["prices"], proof["worth"] = [[0] * len(proof["prices"][0])], [0]
    verdict = evenlag.verify(document, problem)
    assert verdict.outcome == "refused"
    assert "do not exclude" in verdict.reason


# ---- the count balance -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(40))
def test_plans_keep_the_balance_where_their_counts_lie_in_its_limits(seed: int) -> None:
    random = Random(seed)
    problem = random_problem(random, partitions=6, members=3)
    group = read_group(problem.to_dict())
    try:
        every = every_plan(problem, "none")
    except Infeasible:
        return
    holders = [[None if m < 0 else int(m) for m in row] for row in every]
    for balance, slack in product(("topic", "group", "both", "none"), (0, 1)) if group.active else ():
        allowed = {row.tobytes() for row in every_plan(problem, balance, slack)}
        question = Question("spread", balance, slack, "mean", 0, None, False)
        limits = counts_of(group, question, random.choice(holders), Effort(10**8))
        for row, holder in zip(every, holders, strict=True):
            try:
                check_counts(group, limits, holder)
                kept = True
            except RefusedError:
                kept = False
            assert kept == (row.tobytes() in allowed), (balance, slack, holder)


@pytest.mark.parametrize("balance", ["topic", "both", "group"])
def test_a_pin_leaves_the_totals_of_one_topic_as_even_as_they_were(balance: str) -> None:
    group = read_group(alike(PRIMES[:10], 4, pins=[("t", 0, "c001")]).to_dict())
    question = Question("spread", balance, 0, "mean", 0, None, False)
    counts = counts_of(group, question, [1] * 10, Effort(10**8))
    assert counts.totals == dict.fromkeys(range(4), (2, 3))


@pytest.mark.parametrize(
    ("partitions", "caps", "pinned"), [(7, [9, 9, 9], 0), (5, [1, 1, 5], 0), (9, [1, 2, 4, 4], 0), (7, [9, 9, 9], 4)]
)
def test_the_fullest_members_hold_at_least_as_much_as_in_all_counts(
    partitions: int, caps: list[int], pinned: int
) -> None:
    limits, pins = {f"c{m:03}": cap for m, cap in enumerate(caps)}, [("t", p, "c000") for p in range(pinned)]
    group = read_group(alike([1] * partitions, len(caps), max_partitions=limits, pins=pins).to_dict())
    holders = [m for m, cap in enumerate(caps) for _ in range(cap)][:partitions]
    question = Question("spread", "none", 0, "mean", 0, None, False)
    loads = Loads(group, counts_of(group, question, holders, Effort(10**8)), group.lags)
    every = product(range(pinned, caps[0] + 1), *(range(cap + 1) for cap in caps[1:]))
    counts = [sorted(each, reverse=True) for each in every if sum(each) == partitions]
    for j in range(1, len(caps)):
        assert loads.held(j) == min(sum(each[:j]) for each in counts)


@pytest.mark.parametrize("seed", seeds(60))
def test_the_verifier_finds_no_plan_only_where_none_exists(seed: int) -> None:
    random = Random(seed)
    problem = random_problem(random, partitions=8, members=4, topics=2)
    group = read_group(problem.to_dict())
    kind, balance = random.choice(["spread", "makespan"]), random.choice(["both", "topic", "group", "none"])
    budget = random.choice([None, None, random.randint(0, 5)])
    question = Question(kind, balance, random.choice([0, 0, 1]), "mean", random.choice([0, 2, 50]), budget, False)
    if not group.active:
        return
    try:
        first = [None if m < 0 else int(m) for m in every_plan(problem, "none")[0]]
    except Infeasible:
        return
    counts, terms = counts_of(group, question, first, Effort(10**8)), Terms(group, {}, {})
    least = best_of_all(group, question, counts, terms, Effort(10**8)).value
    loads = Loads(group, counts, group.lags)
    pair = loads.rounded(loads.mean(0))
    for more in (0, 1, 30):
        bound = Fraction(least if least is not None else 100) + more
        found = Search(group, question, counts, (Fraction(pair[0]), Fraction(pair[1])), bound, Effort(10**8)).found()
        if least is None or not more:
            assert found is None
        else:
            assert found is not None
            assert least <= found < bound


# ---- what it is given ------------------------------------------------------------------------------------------------


def test_other_documents_are_refused() -> None:
    problem, _ = GROUPS["enumeration"]
    with pytest.raises(InvalidProblemError, match="result must be"):
        evenlag.verify([], problem)
    with pytest.raises(InvalidProblemError, match="cannot read"):
        evenlag.verify({}, {"topics": 3})
    with pytest.raises(InvalidProblemError, match=r"pass the result first: verify\(result, problem\)"):
        evenlag.verify(problem, solution("enumeration"))


def test_the_command_reports_its_verdict(tmp_path: Path) -> None:
    from evenlag.cli.app import evenlag as command

    problem, document = GROUPS["move-dp"][0], solution("move-dp")
    group, right, wrong = tmp_path / "group.json", tmp_path / "plan.json", tmp_path / "wrong.json"
    group.write_text(json.dumps(problem.to_dict()))
    right.write_text(json.dumps(document))
    wrong.write_text(json.dumps(document | {"objective": document["objective"] - 1}))
    found = CliRunner().invoke(command, ["verify", str(right), str(group)])
    assert (found.exit_code, found.output.count("verified (bound by move-dp)")) == (0, 1)
    found = CliRunner().invoke(command, ["verify", str(wrong), str(group), "--json"])
    assert (found.exit_code, json.loads(found.output)["outcome"]) == (1, "refused")
