"""Small groups with all kinds of terms of the objective, and the best of all their plans by definition.

Nothing here comes of evenlag's own mathematics (docs/formulation.md is followed), but for `Problem`, which holds data.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from evenlag import Problem, Result, solve
from evenlag.errors import InfeasibleError, InvalidProblemError, NoPlanFoundError
from tests.support.exact import Goal, Infeasible, every_plan, grouped

RACKS = ("a", "b", "c")
Tables = dict[str, list[list[int]]]  # of each cost: what each partition costs on each member


def draw(rng: random.Random, lag: int = 1, size: int = 1) -> Problem:
    """A random group of up to eight partitions and four members, with whatever data costs come from.

    Lags are in units of `lag` messages, sizes and traffic in units of `size`.

    Raises
    ------
    InvalidProblemError
        The data contradict each other.
    """
    members = [f"c{m}" for m in range(rng.randint(2, 4 if rng.random() < 0.5 else 3))]
    topics = {f"t{t}": rng.randint(1, 4) for t in range(rng.randint(1, 2))}
    more: dict[str, Any] = {}
    if len(topics) == 2 and rng.random() < 0.3:
        topics["t1"] = topics["t0"]
        more["together"] = [("t1", "t0")]
    lags = {
        topic: [lag * rng.choice((0, rng.randint(0, 9), rng.randint(0, 1000))) for _ in range(n)]
        for topic, n in topics.items()
    }
    names = [(topic, p) for topic, n in topics.items() for p in range(n)]
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
        blank = random.Random(repr(lags))  # the leader's rack is not known of some
        for racks in (each for several in more["partition_racks"].values() for each in several if each):
            racks[0] = racks[0] if blank.random() < 0.8 else ""
        more["fetch_from"] = blank.choice(("leader", "followers"))
        if rng.random() < 0.3:
            more["traffic"] = {topic: [size * rng.randint(0, 50) for _ in range(n)] for topic, n in topics.items()}
    if rng.random() < 0.4:
        more["move_sizes"] = {topic: [size * rng.randint(0, 20) for _ in range(n)] for topic, n in topics.items()}
    if rng.random() < 0.3:
        more["costs"] = {"night": {m: rng.randint(0, 9) for m in members}}
    if rng.random() < 0.3:
        more["scenarios"] = [
            (rng.choice((1, 2)), {topic: [lag * rng.randint(0, 99) for _ in range(n)] for topic, n in topics.items()})
            for _ in range(2)
        ]
    subscribed = {m: list(topics) if rng.random() < 0.8 else rng.sample(sorted(topics), 1) for m in members}
    return Problem.from_lags(lags, subscribed, **more)


def draw_options(rng: random.Random, problem: Problem) -> dict[str, Any]:
    """Random prices, budgets, orders and ceilings."""
    options: dict[str, Any] = {"stickiness": rng.choice((0, 0, 3, "0.1%", 40))}
    if problem.pairs.move_sizes is not None and options["stickiness"] == "0.1%":
        options["stickiness"] = 1  # a share of the price of sizes is rounded
    options["objective"] = rng.choice(("spread", "spread", "makespan"))
    options["balance"] = rng.choice(("both", "topic", "group", "none"))
    options["across"] = rng.choice(("mean", "worst"))
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


def drawn(seed: int, *, large: bool = False) -> Question | None:
    """A group and what is asked of it, with large numbers or without; None where its data contradict each other."""
    rng = random.Random(seed)
    units = (rng.choice((2**20, 2**44, 2**51 + 1)), rng.choice((1, 3, 2**20, 2**47 - 1))) if large else (1, 1)
    try:
        problem = draw(rng, *units)
        _ = problem.units  # pins may part one
    except InvalidProblemError:
        return None
    return Question(problem, draw_options(rng, problem))


@dataclass(frozen=True, order=True)
class Best:
    """The least of each criterion in order, then the least objective of the plans that have these."""

    criteria: tuple[int, ...]
    objective: Fraction


class Question:
    """A group and what is asked of it: what a plan is worth, the best of all plans, and whether a result is right."""

    def __init__(self, problem: Problem, options: dict[str, Any]) -> None:
        self.problem, self.options = problem, options
        self.units, self.by_hand = united(problem)
        self.group = grouped(self.by_hand)
        self.tables = pair_tables(problem)
        asked = ["moved_size" if name == "moves" else name for name in options.get("first", ())]
        self.first = [name for name in asked if name in self.tables]
        self.prices = dict(options.get("prices", {})) | {
            "crossings": options.get("rack_price", 0),
            "moved_size": options["stickiness"],
        }
        self.budgets = dict(options.get("budgets", {})) | {
            "crossings": options.get("max_crossings"),
            "moved_size": options.get("max_moved"),
            "moves": options.get("max_moves"),
        }

    def worth(self, held: Mapping[int, int]) -> Best | None:
        """Figures of a plan of units; None where it breaks a budget or the ceiling."""
        group, across = self.group, self.options["across"]
        spent = {
            name: sum(table[p][m] for u, m in held.items() for p in self.units[u])
            for name, table in self.tables.items()
        }  # fmt: skip
        if any(most is not None and spent.get(name, 0) > most for name, most in self.budgets.items()):
            return None
        if self.options.get("max_load") is not None and self._highest(held) > self.options["max_load"]:
            return None
        goal = Goal("none", 0, None, 0, self.options["objective"], across)
        objective = group.figures(held, goal).objective
        for name, price in self.prices.items():
            if name in spent and name not in self.first:
                objective += group.price(price, across) * spent[name]
        return Best(tuple(spent[name] for name in self.first), objective)

    def _highest(self, held: Mapping[int, int]) -> Fraction:
        """The highest load per weight of any member in any scenario."""
        loads: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
        for s, (_, lags) in enumerate(self.group.scenarios):
            for u, m in held.items():
                loads[s, m] += lags[u] / self.group.weights[m]
        return max(loads.values(), default=Fraction(0))

    @cached_property
    def worths(self) -> list[Best]:
        """Figures of all plans that keep the limits."""
        try:
            plans = every_plan(self.by_hand, self.options["balance"], self.options.get("slack", 0))
        except Infeasible:
            return []
        worths = (self.worth({u: int(m) for u, m in enumerate(row) if m >= 0}) for row in plans)
        return [each for each in worths if each is not None]

    @cached_property
    def best(self) -> Best | None:
        """The best of all plans; None where none keeps the limits."""
        return min(self.worths, default=None)

    def least(self, found: Best) -> tuple[tuple[int, ...], Fraction]:
        """The least of each criterion, and of the objective, of plans with no more in the criteria before than found.

        Bounds of a search that has not proven a criterion are bounds given what was found.
        """
        left, criteria = self.worths, []
        for n, most in enumerate(found.criteria):
            criteria.append(min(each.criteria[n] for each in left))
            left = [each for each in left if each.criteria[n] <= most]
        return tuple(criteria), min(each.objective for each in left)

    def ask(self, **how: Any) -> Result | InfeasibleError:
        """Solve; the error where there is one."""
        try:
            return solve(self.problem, **self.options, **how)
        except InfeasibleError as error:
            return error

    def check(self, result: Result | InfeasibleError) -> bool:
        """Return whether the search has proven all there is; AssertionError if anything it says is not true.

        A plan keeps every limit and is no better than the best, no plan lies below a bound, OPTIMAL is the best. An
        error is right that no plan keeps the limits, or says that none was found.
        """
        best = self.best
        if isinstance(result, InfeasibleError):
            open_yet = isinstance(result, NoPlanFoundError)
            assert best is None or open_yet, f"there is a plan, {best}, but: {result}"
            return not open_yet
        assert best is not None, "there is no plan"
        assert not [text for text in result.warnings if "withdrew" in text], result.warnings
        held = {u: int(result.plan.member_of[these[0]]) for u, these in enumerate(self.units)}
        assert result.plan.member_of.tolist() == [held[u] for u in self._unit_of], "a unit is parted"
        value = self.worth({u: m for u, m in held.items() if m >= 0})
        assert value is not None, "the plan breaks a limit"
        assert value.objective == result.objective, "the objective is not that of the plan"
        assert value >= best
        of_moves = {"moved_size": max(result.moves_bound if self.problem.pairs.move_sizes is None else 0, 0)}
        bounds = tuple(
            max(result.cost_bounds.get(name, 0), result.cost_bounds.get("moves", 0) if name == "moved_size" else 0,
                of_moves.get(name, 0))
            for name in self.first
        )  # fmt: skip
        criteria, objective = self.least(value)
        assert result.bound <= objective, f"bound {result.bound} of {result.bound_by}, but {objective}"
        assert all(bound <= least for bound, least in zip(bounds, criteria, strict=True)), f"{bounds}, but {criteria}"
        if result.status == "OPTIMAL":
            assert value == best
            assert (result.bound, bounds) == (result.objective, value.criteria)
        return result.status == "OPTIMAL"

    @property
    def _unit_of(self) -> list[int]:
        unit_of = {p: u for u, these in enumerate(self.units) for p in these}
        return [unit_of[p] for p in range(len(unit_of))]


def united(problem: Problem) -> tuple[list[list[int]], Problem]:
    """Partitions of each unit, and a group in which each unit is a partition: lags, subscriptions, pins and caps."""
    joint = {topic: "+".join(topics) for topics in problem.pairs.together for topic in topics}
    units: dict[tuple[str, int], list[int]] = {}
    for p, (topic, partition) in enumerate(problem.partitions):
        units.setdefault((joint.get(topic, topic), partition), []).append(p)
    names = sorted(units)
    topics = {topic: [name for name in names if name[0] == topic] for topic, _ in names}

    def sums(lags: Any) -> dict[str, Any]:
        return {topic: [sum(int(lags[p]) for p in units[unit]) for unit in these] for topic, these in topics.items()}

    members = {
        member: [
            topic
            for topic, these in topics.items()
            if all(problem.subscribed[problem.topic_of[p], m] for p in units[these[0]])
        ]
        for m, member in enumerate(problem.members)
    }
    pins = {(*unit, problem.members[problem.pins[p]]) for unit in names for p in units[unit] if problem.pins[p] >= 0}
    caps = {member: int(cap) for member, cap in zip(problem.members, problem.caps, strict=True)}
    most = len(problem.lags)
    by_hand = Problem.from_lags(
        sums(problem.lags),
        members,
        weights={member: float(weight) for member, weight in zip(problem.members, problem.weights, strict=True)},
        pins=sorted(pins),
        max_partitions={member: cap for member, cap in caps.items() if cap < most},
        scenarios=[
            (float(weight), sums(lags))
            for weight, lags in zip(problem.scenario_weights, problem.scenario_lags, strict=True)
        ],
    )
    assert list(by_hand.partitions) == names
    return [units[name] for name in names], by_hand


def pair_tables(problem: Problem) -> Tables:
    """Costs of each pair by name, from the data of the problem; moves too."""
    pairs = problem.pairs
    partitions, members = range(len(problem.lags)), range(len(problem.members))
    owner = problem.owner.tolist()
    sizes = [1] * len(partitions) if pairs.move_sizes is None else pairs.move_sizes.tolist()
    left = np.array([[owner[p] not in (-1, m) for m in members] for p in partitions], dtype=int).tolist()
    tables = {
        "moves": left,
        "moved_size": [[size * each for each in row] for size, row in zip(sizes, left, strict=True)],
    }
    tables |= {name: table.pairs.tolist() for name, table in pairs.costs.items()}
    if pairs.racks and pairs.partition_racks:
        traffic = [1] * len(partitions) if pairs.traffic is None else pairs.traffic.tolist()
        away = [[0] * len(members) for _ in partitions]
        for p in partitions:
            racks = pairs.partition_racks[p] or ()
            racks = [each for each in racks[: 1 if pairs.fetch_from == "leader" else None] if each]
            for m in members:
                if racks and pairs.racks[m] is not None and pairs.racks[m] not in racks:
                    away[p][m] = traffic[p]
        tables["crossings"] = away
    return tables
