"""Groups to measure on, drawn from a seed."""

import numpy as np
from numpy.typing import NDArray

from evenlag import Problem

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
    return np.rint(drawn).astype(np.int64)


def one_topic(kind: str, partitions: int, members: int, seed: int) -> Problem:
    """Draw a group of one topic that all members read."""
    drawn = lags(kind, partitions, np.random.default_rng(seed))
    return Problem.from_lags({"t": drawn}, {f"m{i:04}": ["t"] for i in range(members)}, group=f"{kind}")
