"""Certificates: how many bounds are proven again, by author; and results that are broken on purpose."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from fractions import Fraction
from random import Random
from typing import Any

import evenlag
from evenlag.errors import InfeasibleError, InvalidProblemError

GROUPS = 10_000
BROKEN = 200
SECONDS = 2.0  # for each group
SIZES = ((6, 3), (6, 3), (8, 4), (9, 3), (12, 3), (12, 4), (16, 4), (20, 5))  # partitions and members at most

Document = dict[str, Any]
Case = tuple[evenlag.Problem, Document]
Draw = Callable[[Random, int, int], tuple[evenlag.Problem, dict[str, Any]]]


def certificates(seed: int, groups: int = GROUPS, broken: int = BROKEN) -> Iterator[str]:
    """Small groups of all kinds, each verified; then some of them with one thing changed, all to be refused."""
    yield f"# Certificates of {groups:,} small groups\n"
    yield "Topics, weights, subscriptions, caps, pins, owners, prices, budgets, slack and balances at random.\n"
    yield from verdicts(filter(None, (solved(Random(seed * 1_000_003 + n)) for n in range(groups))), broken)
    yield f"\nThe same for {groups // 20:,} groups with costs of pairs, orders, ceilings, units and scenarios:\n"
    randoms = (Random(seed * 1_000_003 + n) for n in range(groups // 20))
    yield from verdicts(filter(None, (solved(random, drawn_with_terms) for random in randoms)), broken)


def verdicts(cases: Iterable[Case], broken: int) -> Iterator[str]:
    """Verify results, and as many broken ones."""
    yield "| bound by | status | results | verified | plan verified | refused | checks, ms |"
    yield "|---|---|---|---|---|---|---|"
    counts, seconds = Counter[tuple[str, str, str]](), defaultdict[tuple[str, str], float](float)
    verified = list[Case]()
    for problem, document in cases:
        key = str(document["bound_by"] or "nothing: it is 0"), document["status"]
        started = time.process_time()
        verdict = evenlag.verify(document, problem)
        seconds[key] += time.process_time() - started
        counts[(*key, verdict.outcome)] += 1
        if verdict.outcome == "verified" and document["objective"]:
            verified.append((problem, document))
    for key in sorted({key[:2] for key in counts}):
        outcomes = [counts[(*key, outcome)] for outcome in ("verified", "plan verified", "refused")]
        cells = [*key, sum(outcomes), *outcomes, f"{1000 * seconds[key] / sum(outcomes):.1f}"]
        yield "| " + " | ".join(map(str, cells)) + " |"
    yield ""
    refused = Counter(
        change_and_verify(*verified[n % len(verified)], Random(n), CHANGES[n % len(CHANGES)]) for n in range(broken)
    )
    yield f"Of {broken} broken on purpose {refused['refused']} are refused."


def solved(random: Random, draw: Draw | None = None) -> Case | None:
    """A group and the document of its result; None where it has no plan."""
    partitions, members = random.choice(SIZES)
    try:
        problem, parameters = (draw or drawn)(random, partitions, members)
        result = evenlag.solve(problem, time_limit=SECONDS, **parameters)
    except (InfeasibleError, InvalidProblemError):  # nobody reads all topics of a unit
        return None
    return problem, json.loads(json.dumps(result.to_dict()))


def drawn(random: Random, most_partitions: int, most_members: int) -> tuple[evenlag.Problem, dict[str, Any]]:
    """A group of at most so many partitions and members, and what is asked of it."""
    plain = random.random() < 0.6
    topics, names = dict[str, list[int]](), [f"c{m}" for m in range(random.randint(2, most_members))]
    left = random.randint(2, most_partitions)
    while left:
        size = random.randint(1, left) if len(topics) < 2 else left
        topics[f"t{len(topics)}"] = [int(random.lognormvariate(5, 1.5)) for _ in range(size)]
        left -= size
    every = [(topic, p) for topic, lags in topics.items() for p in range(len(lags))]
    members = {name: [t for t in topics if plain or random.random() < 0.8] for name in names}
    owned: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    for partition in every if random.random() < 0.7 else ():
        able = [name for name in names if partition[0] in members[name]]
        if able and random.random() < 0.95:
            owned[random.choice(able)].append(partition)
    more: dict[str, Any] = {}
    if not plain and random.random() < 0.4:
        more["weights"] = {name: random.choice([1, 1, 2, 0.5]) for name in names}
    if not plain and random.random() < 0.3:
        more["max_partitions"] = {random.choice(names): random.randint(1, len(every))}
    if not plain and random.random() < 0.3:
        topic, p = random.choice(every)
        able = [name for name in names if topic in members[name]]
        more["pins"] = [(topic, p, able[0])] if able else []
    parameters: dict[str, Any] = {
        "balance": random.choice(["both", "both", "topic", "group", "none"]),
        "stickiness": random.choice([0, "0.1%", "0.1%", 7, "fewest-moves"]),
        "objective": random.choice(["spread", "spread", "spread", "makespan"]),
    }
    if random.random() < 0.1:
        parameters["slack"] = 1
    if random.random() < 0.2:
        parameters["max_moves"] = random.randint(0, 6)
    return evenlag.Problem.from_lags(topics, members, owned=owned, **more), parameters


def drawn_with_terms(random: Random, most_partitions: int, most_members: int) -> tuple[evenlag.Problem, dict[str, Any]]:
    """The same with costs of pairs, an order of criteria, a ceiling, units and scenarios."""
    problem, parameters = drawn(random, most_partitions, most_members)
    document = problem.to_dict()
    topics, members = document["topics"], document["members"]
    if random.random() < 0.7:
        for entry in members.values():
            entry["rack"] = random.choice("ab")
        document["partition_racks"] = {
            t: [random.sample("ab", random.randint(1, 2)) for _ in lags] for t, lags in topics.items()
        }
        parameters |= random.choice([{"rack_price": "1%"}, {"rack_price": 20}, {"max_crossings": 2}, {}])
    if random.random() < 0.3:
        document["move_sizes"] = {topic: [random.randint(0, 9) for _ in lags] for topic, lags in topics.items()}
    if random.random() < 0.3:
        document["costs"] = {"night": {"members": {member: random.randint(0, 9) for member in members}}}
        parameters["prices"] = {"night": random.choice([1, 10])}
    if random.random() < 0.3:
        parameters["first"] = random.choice([["moves"], ["crossings"], ["crossings", "moves"]])
    if random.random() < 0.2:
        parameters["max_load"] = int(float(problem.mean_load) * random.choice([1.1, 1.5]))
    if random.random() < 0.2 and "t1" in topics:
        topics["t1"] = [int(random.lognormvariate(5, 1.5)) for _ in topics["t0"]]
        document["together"] = [["t0", "t1"]]
        for key in ("partition_racks", "move_sizes"):
            document.get(key, {}).pop("t1", None)
        document["pins"] = []
        for entry in members.values():
            entry["owned"] = [name for name in entry["owned"] if name[0] != "t1" or name[1] < len(topics["t1"])]
    if random.random() < 0.3:
        document["scenarios"] = [
            {"weight": 1, "topics": {t: [int(n * random.uniform(0.5, 2)) for n in lags] for t, lags in topics.items()}}
            for _ in range(2)
        ]
    return evenlag.Problem.from_dict(document), parameters


# ---- broken on purpose -----------------------------------------------------------------------------------------------

Change = Callable[[evenlag.Problem, Document, Random], None]


def change_and_verify(problem: evenlag.Problem, document: Document, random: Random, change: Change) -> str:
    """The outcome for a result that was changed."""
    changed = deepcopy(document)
    change(problem, changed, random)
    return evenlag.verify(changed, problem).outcome


def bound_raised(_: evenlag.Problem, document: Document, __: Random) -> None:
    """A bound, and all that is said to meet it, one higher."""
    document["certificate"]["bound"] = str(Fraction(document["certificate"]["bound"]) + 1)
    document["bound"] += 1
    document["objective"] += 1


def bound_alone(_: evenlag.Problem, document: Document, __: Random) -> None:
    """A bound one higher than the objective."""
    document["certificate"]["bound"] = str(Fraction(document["certificate"]["bound"]) + 1)
    document["bound"] += 1


def objective_lowered(_: evenlag.Problem, document: Document, __: Random) -> None:
    """An objective that the plan does not have."""
    document["objective"] -= 1


def plan_changed(_: evenlag.Problem, document: Document, random: Random) -> None:
    """A plan with one partition elsewhere."""
    giver = random.choice([names for names in document["assignment"].values() if names])
    others = [names for names in document["assignment"].values() if names is not giver]
    random.choice(others).append(giver.pop())


def proof_changed(problem: evenlag.Problem, document: Document, random: Random) -> None:
    """Other prices, another number of plans, or another argument; where the proof has none, another question."""
    proof = document["certificate"]["proof"]
    if "prices" in proof:
        prices = random.choice(proof["prices"])
        prices[random.randrange(len(prices))] += random.choice([-1, 1])
    elif "plans" in proof:
        proof["plans"] += 1
    elif proof["kind"] == "loads":
        weaker = {"largest": ["mean", 0], "smallest": ["mean", 0]}
        if proof["each"] == [weaker]:
            bound_raised(problem, document, random)
        proof["each"] = [weaker]
    else:
        document["certificate"]["question"]["price"] = 10**9 + 7


CHANGES: tuple[Change, ...] = (bound_raised, bound_alone, objective_lowered, plan_changed, proof_changed)
