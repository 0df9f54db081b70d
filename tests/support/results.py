"""Results of many kinds, and documents that differ from theirs in one field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

import evenlag
from tests.support.problems import alike, random_owners
from tests.support.solving import briefly

Document = dict[str, Any]
Path = tuple[str, ...]

LAGS = {"t": [97, 83, 61, 47, 29, 13], "u": [40, 22, 9]}
MEMBERS = ("x", "y", "z")
OWNED = random_owners(Random(7), LAGS, MEMBERS)
FUTURES = [(weight, {t: [lag * k % 101 for lag in lags] for t, lags in LAGS.items()}) for weight, k in ((1, 3), (2, 7))]
RACKS = {
    "racks": {"x": "1", "y": "2", "z": "2"},
    "partition_racks": {"t": [["1"], ["2"], ["1"], ["2", "1"], ["1"], None], "u": [["1"], ["2"], ["1"]]},
}
SIZES = {"move_sizes": {"t": [3, 1, 4, 1, 5, 9], "u": [2, 6, 5]}}
NIGHT = {"costs": {"night": {"y": 2}}}

KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "fresh": ({}, {}),
    "owners": ({"owned": OWNED}, {}),
    "a price": ({"owned": OWNED}, {"stickiness": 7, "objective": "makespan"}),
    "fewest moves": ({"owned": OWNED}, {"stickiness": "fewest-moves"}),
    "a budget": ({"owned": OWNED}, {"max_moves": 3, "balance": "group"}),
    "left alone": ({"owned": {"x": [("t", 0), ("t", 5), ("u", 0)], "y": [("t", 1), ("t", 3), ("u", 2)],
                              "z": [("t", 2), ("t", 4), ("u", 1)]}}, {"only_if_better": "90%"}),
    "it pays": ({"owned": OWNED}, {"only_if_better": "1%", "pause": 5}),
    "scenarios": ({"owned": OWNED, "scenarios": FUTURES}, {}),
    "the worst scenario": ({"scenarios": FUTURES}, {"across": "worst", "objective": "makespan"}),
    "together": ({"together": [("a", "b")], "owned": {"x": [("a", 0), ("b", 0)], "y": [("b", 1)]}}, {"stickiness": 1}),
    "sizes": ({"owned": OWNED, **SIZES}, {"stickiness": 2, "max_moved": 20}),
    "racks": ({"owned": OWNED, **RACKS}, {"rack_price": 5}),
    "an order": ({"owned": OWNED, **RACKS}, {"first": ["crossings", "moves"]}),
    "an order of sizes": ({"owned": OWNED, **RACKS, **SIZES, "fetch_from": "leader"}, {"first": ["moves"]}),
    "scenarios with an order": ({"owned": OWNED, "scenarios": FUTURES, **RACKS}, {"first": ["crossings"]}),
    "a ceiling": ({"owned": OWNED}, {"max_load": 150, "first": ["moves"]}),
    "a cost of one's own": ({**NIGHT}, {"prices": {"night": 3}, "budgets": {"night": 8}}),
    "weights": ({"owned": OWNED, "weights": {"x": 2, "y": 1, "z": 1}}, {}),
    "caps and pins": ({"max_partitions": {"x": 2}, "pins": [("t", 0, "y")]}, {}),
    "a heuristic": ({"owned": OWNED}, {"method": "sticky", "balance": "group"}),
    "a plan that breaks the counts": ({"owned": OWNED, "weights": {"x": 4, "y": 1, "z": 1}}, {"method": "range"}),
    "cut short": ({"owned": OWNED}, {"deterministic": True, "work": 1e-9, "method": "cp-sat"}),
    "nothing to assign": ({}, {}),
}  # fmt: skip


def problem_of(kind: str) -> evenlag.Problem:
    """Return the group of a kind of results."""
    data = KINDS[kind][0]
    if kind == "nothing to assign":
        return evenlag.Problem.from_lags({"t": [3, 1]}, {"x": [], "y": []}, owned={})
    if kind == "together":
        topics = {"a": [9, 5, 4], "b": [1, 7, 2], "c": [6, 3]}
        return alike(topics, MEMBERS, **data)
    return alike(LAGS, MEMBERS, **data)


def result_of(kind: str, problem: evenlag.Problem) -> Document:
    """Return the content of the result file of a kind of results."""
    with briefly():
        result = evenlag.solve(problem, time_limit=20, **KINDS[kind][1])
    document: Document = json.loads(json.dumps(result.to_dict()))
    return document


def paths_of(document: Document) -> Iterator[Path]:
    """Yield the paths of all fields, with those of the payoff and of the certificate."""
    for name, value in document.items():
        yield (name,)
        if name in ("payoff", "certificate") and value is not None:
            yield from ((name, inner) for inner in value)


def changed(document: Document, path: Path) -> Iterator[tuple[str, Document]]:
    """Yield documents that differ in one field, each with the name of the change."""
    *outer, name = path
    for change, value in [("missing", None), *_others(_inner(document, path))]:
        other = deepcopy(document)
        holder = _inner(other, tuple(outer))
        holder[name] = value
        if change == "missing":
            del holder[name]
        yield change, other


def _inner(document: Document, path: Path) -> Any:
    for name in path:
        document = document[name]
    return document


def _others(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield other values: null, off by one, of another type, empty, longer and shorter."""
    if value is None:
        yield from (("a number", 1), ("a word", "x"), ("a list", []), ("an object", {}))
        return
    yield "null", None
    if isinstance(value, bool):
        yield from (("the other", not value), ("a number", int(value)), ("a word", str(value)))
    elif isinstance(value, int | float):
        yield from (("one more", value + 1), ("one less", value - 1), ("text", str(value)), ("a list", [value]))
        yield "true", True
    elif isinstance(value, str):
        yield from (("empty", ""), ("a number", 5), ("another word", "BEST"), ("a list", [value]))
    elif isinstance(value, list):
        yield from (("text", "x"), ("an object", {}), ("longer", [*value, *(value[:1] or [["t", 0]])]))
        if value:
            yield from (("empty", []), ("shorter", value[:-1]))
    else:
        yield from (("text", "x"), ("a list", []))
        if value:
            yield "empty", {}
        for name, inner in value.items():
            yield f"without {name}", {other: each for other, each in value.items() if other != name}
            if isinstance(inner, int):
                yield from ((f"{name} {by:+}", value | {name: inner + by}) for by in (-1, 1))
