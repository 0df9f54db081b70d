"""Groups to measure on, drawn from a seed."""

import numpy as np
from numpy.typing import NDArray

from evenlag import Problem
from evenlag.heuristics import HEURISTICS

LAGS = ("uniform", "lognormal", "pareto", "zipf")


def lags(kind: str, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw lags in messages: uniform to 10⁶, lognormal (median 1,000, σ 2), Pareto (α 1.2), or zipf with 30 % at 0."""
    if kind == "uniform":
        return rng.integers(1, 1_000_001, count)
    if kind == "lognormal":
        return np.rint(rng.lognormal(np.log(1000), 2, count)).astype(np.int64)
    if kind == "pareto":
        return np.rint(1000 * (1 + rng.pareto(1.2, count))).astype(np.int64)
    drawn = rng.permutation(1e7 / np.arange(1, count + 1) ** 1.1 * rng.uniform(0.5, 1.5, count))
    drawn[rng.random(count) < 0.3] = 0
    whole: NDArray[np.int64] = np.rint(drawn).astype(np.int64)
    return whole


def _group(drawn: NDArray[np.int64], sizes: NDArray[np.int64], members: int, name: str) -> Problem:
    topics = {f"t{i:03}": part for i, part in enumerate(np.split(drawn, np.cumsum(sizes)[:-1]))}
    return Problem.from_lags(topics, {f"m{i:04}": list(topics) for i in range(members)}, group=name)


def one_topic(kind: str, partitions: int, members: int, seed: int) -> Problem:
    """Draw a group of one topic that all members read."""
    drawn = lags(kind, partitions, np.random.default_rng(seed))
    return _group(drawn, np.array([partitions]), members, kind)


def many_topics(kind: str, topics: int, members: int, seed: int, size: int | None = None) -> Problem:
    """Draw a group of topics with `size` partitions each, or 8 to 64."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(8, 65, topics) if size is None else np.full(topics, size)
    return _group(lags(kind, int(sizes.sum()), rng), sizes, members, kind)


def mixed(kind: str, partitions: int, members: int, topics: int, density: float, seed: int) -> Problem:
    """Draw a group in which every member subscribes to a topic with probability `density`."""
    rng = np.random.default_rng(seed)
    sizes = rng.multinomial(partitions, np.full(topics, 1 / topics))
    drawn = np.split(lags(kind, partitions, rng), np.cumsum(sizes)[:-1])
    reads = rng.random((members, topics)) < density
    reads[np.arange(members), rng.integers(0, topics, members)] = True
    names = [f"t{i:03}" for i in range(topics)]
    members_of = {f"m{i:04}": [names[t] for t in np.flatnonzero(row)] for i, row in enumerate(reads)}
    return Problem.from_lags(dict(zip(names, drawn, strict=True)), members_of, group=f"{kind}, density {density:g}")


def after(event: str, kind: str, partitions: int, members: int, seed: int) -> Problem:
    """Draw a group that was even until a member left ("leave"), joined ("join"), or lags changed ("drift").

    It was as `swap-balance` evens it, so that no change of the search makes another group of it.
    """
    rng = np.random.default_rng(seed)
    before = one_topic(kind, partitions, members, seed)
    owned = HEURISTICS["swap-balance"](before).assignment
    drawn, names = before.lags, list(before.members)
    if event == "leave":
        owned.pop(names.pop(int(rng.integers(members))))
    elif event == "join":
        names.append(f"m{members:04}")
    else:
        drawn = np.rint(drawn * rng.lognormal(0, 0.5, partitions)).astype(np.int64)
    return Problem.from_lags({"t000": drawn}, {m: ["t000"] for m in names}, owned=owned, group=f"{kind}, {event}")
