"""Compiled steps of pricing tables give the same tables as NumPy, to the last bit."""

import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag import Problem
from evenlag.model.balance import count_rule
from evenlag.search.exact import prefix_table
from evenlag.search.exact.member_share import idle_of, share_of
from evenlag.search.exact.member_tables import Rounding
from evenlag.search.exact.pricing import tables_of
from evenlag.search.exact.windows import Window
from tests.support.building import built


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Build the module from this checkout's source and use it."""
    module = built(Path(prefix_table.__file__).parent / "tables.c", "_tables", tmp_path_factory.mktemp("tables"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefix_table, "tables", module)
        yield module


def group(rng: random.Random) -> Problem:
    members = [f"m{m}" for m in range(rng.randint(2, 5))]
    partitions = rng.randint(len(members), 14)
    lags = [rng.choice([0, rng.randrange(6), rng.randrange(400)]) for _ in range(partitions)]
    owned = {m: [("t", p) for p in range(partitions) if rng.random() < 0.8 and p % len(members) == n]
             for n, m in enumerate(members)}  # fmt: skip
    return Problem.from_lags({"t": lags}, {m: ["t"] for m in members}, owned=owned)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_tables_are_the_same_with_and_without_compiled_code(compiled: ModuleType, seed: int) -> None:
    rng = random.Random(seed)
    problem = group(rng)
    rule = count_rule(problem, rng.choice(["group", "none"]))
    idle, unit = idle_of(rule), rng.choice([1, 7])
    members = np.flatnonzero(problem.active).tolist()
    roundings = [Rounding(share_of(rule, m, idle), problem.lags.astype(np.int64), unit) for m in members]
    most = rng.choice([50, 2**40])  # the latter needs 64 bits
    common = np.array([rng.randint(-most // 5, most) for _ in problem.lags])
    values = [common - rng.randint(0, most // 5) * (problem.owner != m) for m in members]
    capacity = int(problem.lags.sum()) // unit // 2 + 1
    window = Window(capacity // 4, capacity)
    found = []
    for module in (compiled, None):
        prefix_table.tables = module
        tables = dict(tables_of(roundings, values, capacity))
        found.append([(tables[n].best, tables[n].patterns(window, 6)) for n in range(len(members))])
    prefix_table.tables = compiled
    for (best, patterns), (other_best, others) in zip(*found, strict=True):
        assert (best == other_best).all()
        assert patterns == others


def test_arrays_that_do_not_fit_are_refused(compiled: ModuleType) -> None:
    cells, held = np.zeros(20, np.int32), np.zeros((1, 20), bool)
    shifts, values, ends = np.array([3]), np.array([5]), np.array([1])
    compiled.add(cells, held, shifts, values, 0, -(2**30))
    assert cells.tolist() == [0] * 3 + [5] * 17
    for bad in (np.array([21]), np.array([-1]), np.array([1, 2])):
        with pytest.raises(ValueError, match="do not fit"):
            compiled.add(cells, held, bad, values, 0, -(2**30))
        with pytest.raises(ValueError, match="do not fit"):
            compiled.keep(cells, cells.copy(), held, bad, values, ends, 4, -(2**30))
    with pytest.raises(ValueError, match="do not fit"):
        compiled.keep(cells, cells.copy(), held, shifts, values, np.array([4]), 4, -(2**30))
