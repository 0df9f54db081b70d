"""Terms of the objective beyond loads and moves, against all plans of small groups."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from evenlag import Problem, solve
from evenlag.errors import InfeasibleError, InvalidProblemError
from evenlag.model.check import plan_violation
from evenlag.model.plan import Plan
from tests.exact import Goal, Infeasible, every_plan, grouped

BACKENDS = ("cp-sat", "cbc", "highs")
RACKS = ("a", "b", "c")


def draw(rng: random.Random) -> Problem:
    """A random group of up to seven partitions and four members, with whatever data costs come from."""
    members = [f"c{m}" for m in range(rng.randint(2, 4 if rng.random() < 0.5 else 3))]
    topics = {f"t{t}": rng.randint(1, 4) for t in range(rng.randint(1, 2))}
    lags = {
        topic: [rng.choice((0, rng.randint(0, 9), rng.randint(0, 1000))) for _ in range(n)]
        for topic, n in topics.items()
    }
    names = [(topic, p) for topic, n in topics.items() for p in range(n)]
    more: dict[str, Any] = {}
    if rng.random() < 0.8:
        owners = {name: rng.choice([*members, None]) for name in names}
        more["owned"] = {m: [name for name in names if owners[name] == m] for m in members}
    if rng.random() < 0.3:
        more["weights"] = {m: rng.choice((1, 2, 0.5)) for m in members}
    if rng.random() < 0.2:
        more["max_partitions"] = {rng.choice(members): rng.randint(1, 4)}
    if rng.random() < 0.2:
        more["pins"] = [(*rng.choice(names), rng.choice(members))]
    if rng.random() < 0.8:
        more["racks"] = {m: rng.choice((*RACKS, None)) for m in members}
        more["partition_racks"] = {
            topic: [rng.choice((None, rng.sample(RACKS, rng.randint(1, 2)))) for _ in range(n)]
            for topic, n in topics.items()
        }
        if rng.random() < 0.3:
            more["traffic"] = {topic: [rng.randint(0, 50) for _ in range(n)] for topic, n in topics.items()}
    if rng.random() < 0.4:
        more["move_sizes"] = {topic: [rng.randint(0, 20) for _ in range(n)] for topic, n in topics.items()}
    if rng.random() < 0.3:
        more["costs"] = {"night": {m: rng.randint(0, 9) for m in members}}
    if rng.random() < 0.3:
        more["scenarios"] = [
            (rng.choice((1, 2)), {topic: [rng.randint(0, 99) for _ in range(n)] for topic, n in topics.items()})
            for _ in range(2)
        ]
    subscribed = {m: list(topics) if rng.random() < 0.8 else rng.sample(sorted(topics), 1) for m in members}
    return Problem.from_lags(lags, subscribed, **more)


def draw_options(rng: random.Random, problem: Problem) -> dict[str, Any]:
    """Random prices, budgets, orders and ceilings."""
    options: dict[str, Any] = {"stickiness": rng.choice((0, 0, 3, "0.1%", 40))}
    options["objective"] = rng.choice(("spread", "spread", "makespan"))
    options["balance"] = rng.choice(("both", "topic", "group", "none"))
    options["across"] = rng.choice(("mean", "worst"))
    options["fetch_from"] = rng.choice(("leader", "followers"))
    if rng.random() < 0.2:
        options["slack"] = 1
    for name, values in {
        "rack_price": (1, 5, "1%", 300),
        "max_crossings": (0, 1, 2, 30),
        "max_moves": (0, 1, 2, 3),
        "max_moved": (0, 5, 20),
        "prices": ({"night": 7},),
        "budgets": ({"night": 12},),
    }.items():
        if rng.random() < 0.25:
            options[name] = rng.choice(values)
    known = sorted(problem.pairs.costs)
    if not known:
        options.pop("prices", None)
        options.pop("budgets", None)
    if rng.random() < 0.5:
        options["first"] = rng.sample(["moves", "crossings", *known], rng.randint(1, 2))
    if rng.random() < 0.3:
        options["max_load"] = int(problem.mean_load) + rng.randint(0, int(problem.mean_load) + 1)
    return options


@dataclass(frozen=True)
class Best:
    """The least of each criterion in order, then the least objective of the plans that have these."""

    criteria: tuple[int, ...]
    objective: Fraction


def best_of_all(problem: Problem, options: dict[str, Any]) -> Best | None:
    """Look at every plan; written from the definitions (docs/formulation.md), not from evenlag's own code."""
    group = grouped(problem)
    rule = Goal(balance=options["balance"], slack=options.get("slack", 0))
    try:
        plans = every_plan(problem, rule.balance, rule.slack)
    except Infeasible:
        return None
    goal = Goal(rule.balance, 0, None, rule.slack, options["objective"], options["across"])
    costs = pair_tables(problem, options["fetch_from"])
    unit = Fraction(group.price(options["stickiness"], options["across"]))
    sized = problem.pairs.move_sizes is not None
    if sized and isinstance(options["stickiness"], str):
        pytest.skip("a share of the price of sizes is rounded")
    prices = dict(options.get("prices", {}))
    prices["crossings"] = options.get("rack_price", 0)
    prices = {name: Fraction(group.price(price, options["across"])) for name, price in prices.items()}
    prices["moved_size"] = unit
    budgets = dict(options.get("budgets", {}))
    budgets |= {
        "crossings": options.get("max_crossings"),
        "moved_size": options.get("max_moved"),
        "moves": options.get("max_moves"),
    }
    first = ["moved_size" if name == "moves" else name for name in options.get("first", ())]
    ranked = []
    for row in plans:
        member_of = {p: int(m) for p, m in enumerate(row) if m >= 0}
        spent = {name: sum(table[p][m] for p, m in member_of.items()) for name, table in costs.items()}
        spent["moves"] = sum(group.owner[p] not in (None, m) for p, m in member_of.items())
        if any(most is not None and spent.get(name, 0) > most for name, most in budgets.items()):
            continue
        if options.get("max_load") is not None:
            highest = max(group._levels(member_of, lags)[1] for _, lags in group.scenarios)
            if highest > options["max_load"]:
                continue
        criteria = tuple(spent[name] for name in first if name in spent)
        priced = sum(price * spent.get(name, 0) for name, price in prices.items() if name not in first)
        ranked.append((criteria, group.figures(member_of, goal).objective + priced))
    return Best(*min(ranked)) if ranked else None


def pair_tables(problem: Problem, fetch_from: str) -> dict[str, list[list[int]]]:
    """What each pair costs, by name, from the data of the problem."""
    pairs = problem.pairs
    partitions, members = range(len(problem.lags)), range(len(problem.members))
    owner = problem.owner.tolist()
    sizes = [1] * len(partitions) if pairs.move_sizes is None else pairs.move_sizes.tolist()
    tables = {"moved_size": [[sizes[p] * (owner[p] not in (-1, m)) for m in members] for p in partitions]}
    tables |= {name: table.tolist() for name, table in pairs.costs.items()}
    if pairs.racks and pairs.partition_racks:
        traffic = [1] * len(partitions) if pairs.traffic is None else pairs.traffic.tolist()
        away = [[0] * len(members) for _ in partitions]
        for p in partitions:
            racks = pairs.partition_racks[p] or ()
            racks = racks[:1] if fetch_from == "leader" else racks
            for m in members:
                if racks and pairs.racks[m] is not None and pairs.racks[m] not in racks:
                    away[p][m] = traffic[p]
        tables["crossings"] = away
    return tables


@pytest.mark.parametrize("seed", range(150))
def test_the_optimum_is_that_of_all_plans(seed: int) -> None:
    rng = random.Random(seed)
    try:
        problem = draw(rng)
    except InvalidProblemError:
        return
    options = draw_options(rng, problem)
    best = best_of_all(problem, options)
    check(problem, options, best, "auto")


@pytest.mark.slow
@pytest.mark.parametrize("method", BACKENDS)
@pytest.mark.parametrize("seed", range(60))
def test_the_mip_finds_it_too(seed: int, method: str) -> None:
    rng = random.Random(10_000 + seed)
    try:
        problem = draw(rng)
    except InvalidProblemError:
        return
    options = draw_options(rng, problem)
    check(problem, options, best_of_all(problem, options), method)


@pytest.mark.parametrize("seed", range(3))
def test_questions_about_what_binds_may_find_no_plan_below_a_ceiling(seed: int) -> None:
    rng = random.Random(seed)
    lags = [rng.randint(10, 60) for _ in range(18)]
    owned: dict[str, list[tuple[str, int]]] = {f"c{m}": [] for m in range(6)}
    for p in range(18):
        owned[f"c{rng.randrange(6)}"].append(("t", p))
    problem = Problem.from_lags({"t": lags}, {m: ["t"] for m in owned}, owned=owned, move_sizes={"t": lags})
    most = -(-sum(lags) // 6) + 1
    result = solve(problem, balance="none", first=("moves",), max_load=most, deterministic=True, work=0.3)
    assert result.makespan <= most


def check(problem: Problem, options: dict[str, Any], best: Best | None, method: str) -> None:
    """Solve, and compare with the best of all plans."""
    if best is None:
        with pytest.raises(InfeasibleError):
            solve(problem, method=method, time_limit=5, **options)
        return
    result = solve(problem, method=method, time_limit=5, **options)
    assert result.status == "OPTIMAL", (options, result.warnings)
    first = [
        "moved_size" if name == "moves" and problem.pairs.move_sizes is not None else name
        for name in options.get("first", ())
    ]
    spent = {**result.costs, "moves": result.moves}
    names = [name for name in first if name in spent]
    assert tuple(spent[name] for name in names) == best.criteria, options
    assert result.objective == best.objective, options
    assert result.bound == result.objective


# ---- units ---------------------------------------------------------------------------------------------------------


def draw_units(rng: random.Random) -> Problem:
    """A group with two topics that go together and one by itself."""
    members = [f"c{m}" for m in range(rng.randint(2, 3))]
    lags = {topic: [rng.randint(0, 99) for _ in range(n)] for topic, n in {"a": 4, "b": 4, "z": 2}.items()}
    owned: dict[str, list[tuple[str, int]]] = {m: [] for m in members}
    for topic, here in lags.items():
        for p in range(len(here)):
            if rng.random() < 0.8:
                owned[rng.choice(members)].append((topic, p))
    more: dict[str, Any] = {"racks": {m: rng.choice("xy") for m in members}}
    more["partition_racks"] = {topic: [[rng.choice("xy")] for _ in here] for topic, here in lags.items()}
    if rng.random() < 0.5:
        more["move_sizes"] = {topic: [rng.randint(0, 9) for _ in here] for topic, here in lags.items()}
    return Problem.from_lags(lags, members, owned=owned, together=[("a", "b")], **more)


@pytest.mark.parametrize("seed", range(40))
def test_units_are_assigned_as_one(seed: int) -> None:
    rng = random.Random(seed)
    problem = draw_units(rng)
    price, rack_price = rng.choice((0, 3)), rng.choice((0, 5))
    first = rng.sample(["moves", "crossings"], rng.randint(0, 2))
    result = solve(problem, balance="none", stickiness=price, rack_price=rack_price, first=first, time_limit=5)
    index = {name: p for p, name in enumerate(problem.partitions)}
    units = [[index["a", i], index["b", i]] for i in range(4)] + [[index["z", 0]], [index["z", 1]]]
    tables = pair_tables(problem, "followers")
    ranked = []
    for chosen in itertools.product(range(len(problem.members)), repeat=len(units)):
        member_of = {p: m for unit, m in zip(units, chosen, strict=True) for p in unit}
        loads = [0] * len(problem.members)
        for p, m in member_of.items():
            loads[m] += int(problem.lags[p])
        spent = {name: sum(tables[name][p][m] for p, m in member_of.items()) for name in ("moved_size", "crossings")}
        spent["moves"] = spent["moved_size"]
        prices = {"moves": price, "crossings": rack_price}
        priced = sum(each * spent[name] for name, each in prices.items() if name not in first)
        ranked.append((*(spent[name] for name in first), max(loads) - min(loads) + priced))
    assert result.status == "OPTIMAL"
    figures = {"moves": result.moved_size, "crossings": result.crossings}
    assert (*(figures[name] for name in first), result.objective) == min(ranked)


def test_a_plan_that_parts_a_unit_is_none() -> None:
    problem = Problem.from_lags({"a": [1], "b": [1]}, ["m", "n"], together=[("a", "b")])
    plan = Plan.from_assignment(problem, {"m": [("a", 0)], "n": [("b", 0)]})
    assert plan_violation(plan) == "a-0 and b-0 go to different members, though they go together"
    assert solve(problem).assignment in ({"m": [("a", 0), ("b", 0)], "n": []}, {"n": [("a", 0), ("b", 0)], "m": []})


# ---- what is asked for ---------------------------------------------------------------------------------------------


def test_crossings_without_racks_are_told() -> None:
    result = solve(Problem.from_lags({"t": [3, 4]}, ["a", "b"]), rack_price=5, first=["crossings"])
    assert result.warnings == ("crossings are not counted: racks of members and of partitions are needed",)
    assert result.crossings is None


def test_an_unknown_cost_is_refused() -> None:
    problem = Problem.from_lags({"t": [3, 4]}, ["a", "b"])
    with pytest.raises(InvalidProblemError, match="did you mean 'crossings'"):
        solve(problem, first=["crosings"])


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"max_load": -1}, "max_load must be a number of messages >= 0"),
        ({"first": "moves"}, "first must be a list of criteria"),
        ({"max_crossings": 1.5}, "max_crossings must be a whole number"),
        ({"rack_price": "much"}, "the price of crossings must be messages"),
        ({"budgets": {"night": -2}}, "the budget of night must be a whole number"),
        ({"fetch_from": "nobody"}, "fetch_from must be one of leader, followers"),
    ],
)
def test_wrong_values_are_refused(keywords: dict[str, Any], said: str) -> None:
    problem = Problem.from_lags({"t": [3, 4]}, ["a", "b"])
    with pytest.raises(InvalidProblemError, match=said):
        solve(problem, **keywords)


def test_limits_that_no_plan_keeps_are_told_with_the_least_that_can_be_kept() -> None:
    problem = Problem.from_lags(
        {"t": [8, 4, 3]}, ["a", "b"], racks={"a": "x", "b": "y"}, partition_racks={"t": [["x"], ["x"], ["x"]]}
    )
    with pytest.raises(InfeasibleError, match="max_load is 6, but the fullest member needs 8 messages"):
        solve(problem, max_load=6)
    with pytest.raises(InfeasibleError, match="the budget of crossings is 0, but both balance needs 1"):
        solve(problem, max_crossings=0)
    assert solve(problem, max_load=8).makespan == 8
