"""Consumer groups for tests, by name or at random: the same seed gives the same group; hypothesis can shrink them."""

import os
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

import evenlag

Partition = tuple[str, int]
Topics = Mapping[str, Sequence[int]]  # lags of each topic

SHARE = float(os.environ.get("EVENLAG_TEST_CASES", "0.1"))  # of the random cases that tests name, how many to run
FEW = 200  # a test that names fewer random cases runs as many as one that names so many
HUGE = 2**62  # the most messages that a lag may be
LAG_KINDS = ("small", "wide", "skewed", "hot", "equal", "zero")
PROVOKING_LAGS = ("few", "wide", "tailed", "zeros", "giant", "near-giants", "near-equal", "huge", "huge-and-alike")


def cases(count: int) -> int:
    """Return the number of random cases to run: a share of `count` by EVENLAG_TEST_CASES, of FEW if there are fewer."""
    return min(count, round(max(count, FEW) * SHARE))


def seeds(count: int) -> range:
    """Return the seeds of the random cases to run, of `count`."""
    return range(cases(count))


def lags(random: Random, count: int, kind: str) -> list[int]:
    """Return `count` lags in messages, of one of LAG_KINDS."""
    if kind == "small":
        return [random.randint(0, 9) for _ in range(count)]
    if kind == "skewed":
        return [min(int(10 * (1 - random.random()) ** -1.2), 10**6) for _ in range(count)]
    if kind == "hot":
        return [5_000, *(random.randint(0, 50) for _ in range(count - 1))]
    if kind == "equal":
        return [random.randint(1, 100)] * count
    if kind == "zero":
        return [0] * count
    return [random.randint(0, 1_000) for _ in range(count)]


def provoking_lags(random: Random, count: int, kind: str) -> list[int]:
    """Return `count` lags of one of PROVOKING_LAGS, each of which provokes another branch of bounds and starts."""
    if kind == "few":
        return [random.randint(0, 9) for _ in range(count)]
    if kind == "tailed":
        return [int(min(100 * max(1 - random.random(), 1e-12) ** -1.6, 10**9)) for _ in range(count)]
    if kind == "zeros":
        return [random.choice([0, 0, 0, random.randint(0, 40)]) for _ in range(count)]
    if kind == "giant":
        return [random.randint(10**6, 10**7), *(random.randint(0, 90) for _ in range(count - 1))]
    if kind == "near-giants":
        return [random.choice([0, 0, 3, 5, 33, 34, 35, 36]) for _ in range(count)]
    if kind == "near-equal":
        return [1_000 + random.randint(0, 4) for _ in range(count)]
    if kind == "huge":
        return [HUGE - random.randint(0, HUGE // 2) for _ in range(count)]
    if kind == "huge-and-alike":
        return [HUGE - random.randint(0, 40) for _ in range(count)]
    return [random.randint(0, 10_000) for _ in range(count)]


def alike(lags: Sequence[int] | Topics, members: int | Iterable[str], **more: Any) -> evenlag.Problem:
    """A group whose members all read all topics: `alike([5, 3], "ab")` has the topic `t` and the members `a` and `b`.

    So many members, where it is a number, are `c000`, `c001`, …; `more` are other arguments of `Problem.from_lags`.
    """
    topics = lags if isinstance(lags, Mapping) else {"t": list(lags)}
    names = [f"c{m:03}" for m in range(members)] if isinstance(members, int) else members
    return evenlag.Problem.from_lags(topics, {name: list(topics) for name in names}, **more)


def random_owners(
    random: Random, topics: Topics, members: int | Iterable[str], share: float = 1.0
) -> dict[str, list[Partition]]:
    """Return owners for `alike`: a share of the partitions, each with a random member."""
    names = [f"c{m:03}" for m in range(members)] if isinstance(members, int) else list(members)
    owned: dict[str, list[Partition]] = {name: [] for name in names}
    for topic, lags in topics.items():
        for p in range(len(lags)):
            if random.random() < share:
                owned[random.choice(names)].append((topic, p))
    return owned


def random_document(
    random: Random,
    *,
    partitions: int = 8,
    members: int = 4,
    topics: int = 3,
    plain: bool = False,
    owners: bool = True,
    empty_topics: bool = False,
) -> dict[str, Any]:
    """A problem document of at most so many partitions, members and topics.

    `plain` leaves out mixed subscriptions, weights, pins and caps; with `empty_topics` it often has topics without
    partitions, and now and then no others.
    """
    kind = random.choice(LAG_KINDS)
    total = random.randint(1, partitions)
    sizes = _split(random, total, random.randint(1, min(topics, total)))
    names = [f"t{i}" for i in range(len(sizes))]
    entries: dict[str, Any] = {f"c{i}": {"topics": list(names)} for i in range(random.randint(1, members))}
    if not plain:
        _spice(random, names, entries, total)
    document: dict[str, Any] = {
        "topics": {name: lags(random, size, kind) for name, size in zip(names, sizes, strict=True)},
        "members": entries,
    }
    every = [[name, i] for name, size in zip(names, sizes, strict=True) for i in range(size)]
    if owners and random.random() < 0.7:
        _own(random, every, entries)
    if not plain and random.random() < 0.3:
        document["pins"] = _pins(random, every, entries)
    if empty_topics and random.random() < 0.7:
        _empty(random, document)
    return document


def random_problem(random: Random, **size: Any) -> evenlag.Problem:
    """Return the problem of `random_document`."""
    return evenlag.Problem.from_dict(random_document(random, **size))


def random_parameters(random: Random, *, budget: bool = True) -> dict[str, Any]:
    """Parameters of `evenlag.solve`: balance, stickiness, objective, and now and then slack and a budget of moves."""
    parameters: dict[str, Any] = {
        "balance": random.choice(["both", "topic", "group", "none"]),
        "stickiness": random.choice([0, 0, "0.1%", 7, 1000, "fewest-moves"]),
        "objective": random.choice(["spread", "spread", "makespan"]),
    }
    if random.random() < 0.25:
        parameters["slack"] = random.randint(1, 2)
    if budget and random.random() < 0.3:
        parameters["max_moves"] = random.randint(0, 4)
    return parameters


def problems(**size: Any) -> st.SearchStrategy[evenlag.Problem]:
    """Hypothesis strategy for `random_problem`."""
    return st.randoms(use_true_random=True).map(lambda random: random_problem(random, **size))


def documents(**size: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Hypothesis strategy for `random_document`."""
    return st.randoms(use_true_random=True).map(lambda random: random_document(random, **size))


def solved_again(problem: evenlag.Problem, assignment: dict[str, list[Partition]]) -> evenlag.Problem:
    """Return the same problem with `assignment` as today's."""
    document = problem.to_dict()
    for name, entry in document["members"].items():
        entry["owned"] = [list(partition) for partition in assignment[name]]
        entry["generation"] = None
    return evenlag.Problem.from_dict(document)


def _split(random: Random, total: int, parts: int) -> list[int]:
    cuts = sorted(random.sample(range(1, total), parts - 1))
    return [b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True)]


def _spice(random: Random, topics: Sequence[str], entries: dict[str, Any], partitions: int) -> None:
    if random.random() < 0.4:
        for entry in entries.values():
            entry["topics"] = [topic for topic in topics if random.random() < 0.7]
    if random.random() < 0.4:
        for entry in entries.values():
            entry["weight"] = random.choice([1, 1, 2, 3, 10, 0.5, 0.1])
    if random.random() < 0.3:
        fair = -(-partitions // len(entries))
        for entry in entries.values():
            if random.random() < 0.6:
                entry["max_partitions"] = random.choice([0, 1, fair, fair, fair + 1, fair + 2])


def _empty(random: Random, document: dict[str, Any]) -> None:
    """Add topics without partitions, with some members subscribed to them; now and then empty the others too."""
    if random.random() < 0.1:
        document["topics"] = {topic: [] for topic in document["topics"] if random.random() < 0.5}
        document.pop("pins", None)
    for i in range(random.randint(1, 3)):
        name = random.choice([f"a{i}", f"t0{i}", f"u{i}"])  # before, between and behind the others
        document["topics"][name] = random.choice([[], {}])
        for entry in document["members"].values():
            if random.random() < 0.5:
                entry["topics"] = [*entry["topics"], name]


def _own(random: Random, partitions: list[list[Any]], entries: dict[str, Any]) -> None:
    kept = random.choice([0.5, 0.9, 1.0])
    for entry in entries.values():
        entry["owned"] = []
    for partition in partitions:
        able = [name for name, entry in entries.items() if partition[0] in entry["topics"]]
        if able and random.random() < kept:
            entries[random.choice(able)]["owned"].append(partition)


def _pins(random: Random, partitions: list[list[Any]], entries: dict[str, Any]) -> list[list[Any]]:
    room = {name: entry.get("max_partitions", len(partitions)) for name, entry in entries.items()}
    pins = []
    for partition in partitions:
        able = [name for name, entry in entries.items() if partition[0] in entry["topics"] and room[name] > 0]
        if able and random.random() < random.choice([0.1, 0.5]):
            pins.append([*partition, random.choice(able)])
            room[pins[-1][2]] -= 1
    return pins
