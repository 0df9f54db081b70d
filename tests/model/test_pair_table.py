"""Costs of pairs by class: each operation against the matrix of all pairs."""

from math import gcd
from random import Random
from typing import Any

import numpy as np
import pytest

from evenlag.model.arrays import NOBODY
from evenlag.model.pair_table import PairTable

Drawn = tuple[PairTable, Any]


def drawn(random: Random, partitions: int, members: int, owner: Any, *, homes: bool = True) -> Drawn:
    """Return a random table, and the cost of every pair by its definition."""
    kind = random.choice(("moves", "sizes", "classes", "pairs") if homes else ("classes", "pairs"))
    large = random.choice((1, 1, 2**40, 2**61))
    amounts = [random.randint(0, 9) * large for _ in range(partitions)]
    if kind in ("moves", "sizes"):
        sizes = np.array(amounts, dtype=object if large > 2**50 else np.int64) if kind == "sizes" else None
        costs = [
            [0 if o in (NOBODY, m) else 1 if sizes is None else amounts[p] for m in range(members)]
            for p, o in enumerate(owner.tolist())
        ]
        return PairTable.of_moves(owner, members, sizes), np.array(costs, dtype=object).reshape(partitions, members)
    if kind == "classes":
        class_of = np.array([random.randrange(4) for _ in range(members)])
        table = np.array([[random.randint(0, 2) * large for _ in range(4)] for _ in range(partitions)], dtype=object)
        return PairTable.by_class(table if large > 1 else table.astype(np.int64), class_of), table[:, class_of]
    costs = [[random.randint(0, 1) * large for _ in range(members)] for _ in range(partitions)]
    every = np.array(costs, dtype=object).reshape(partitions, members)
    return PairTable.of_pairs(every if large > 1 else every.astype(np.int64)), every


@pytest.mark.parametrize("seed", range(60))
def test_every_operation_agrees_with_the_matrix(seed: int) -> None:
    random = Random(seed)
    partitions, members = random.randint(1, 9), random.randint(1, 6)
    owner = np.array([random.randint(-1, members - 1) for _ in range(partitions)], dtype=np.int32)
    (one, costs), (two, more) = (drawn(random, partitions, members, owner) for _ in range(2))
    assert one.pairs.tolist() == costs.tolist()
    assert (one.at_home <= one.table[np.arange(partitions), one.class_of[one.home]]).all()
    assert one.largest.tolist() == costs.max(axis=1).tolist()
    assert one.most >= costs.max()
    assert gcd(*costs.ravel().tolist()) % one.step == 0 if one.step else not costs.any()
    member_of = np.array([random.randint(-1, members - 1) for _ in range(partitions)], dtype=np.int32)
    assert one.total(member_of) == sum(costs[p, m] for p, m in enumerate(member_of.tolist()) if m != NOBODY)
    assert one.plus(two).pairs.tolist() == (costs + more).tolist()
    assert one.times(3).pairs.tolist() == (costs * 3).tolist()
    assert one.times(2**60).plus(two).pairs.tolist() == (costs * 2**60 + more).tolist()
    assert one.same_as(two) == two.same_as(one) == (costs.tolist() == more.tolist())
    assert one.same_as(PairTable.of_pairs(costs))
    chosen = np.array([random.random() < 0.6 for _ in range(partitions)])
    assert one.keep(chosen).pairs.tolist() == costs[chosen].tolist()
    unit_of = np.sort([random.randrange(3) for _ in range(partitions)])
    units, starts = np.unique(unit_of, return_index=True)
    summed = one.summed(np.arange(partitions), starts)
    assert summed.pairs.tolist() == [costs[unit_of == unit].sum(axis=0).tolist() for unit in units]


@pytest.mark.parametrize("seed", range(30))
def test_a_new_member_costs_what_all_others_do_or_nothing(seed: int) -> None:
    random = Random(seed)
    members = random.randint(1, 4)
    table, costs = drawn(random, 5, members, np.full(5, NOBODY), homes=False)
    places = [random.choice([None, *range(members)]) for _ in range(4)]
    alike = (costs == costs[:, :1]).all()
    new = costs[:, 0] if alike else costs[:, 0] * 0
    wanted = np.stack([new if m is None else costs[:, m] for m in places], axis=1)
    assert table.of_members(places).pairs.tolist() == wanted.tolist()


def test_costs_of_racks_and_owners_take_no_matrix() -> None:
    owner = np.arange(1_000, dtype=np.int32) % 300
    racks = PairTable.by_class(np.ones((1_000, 3), dtype=np.int64), np.arange(300) % 3)
    both = racks.times(5).plus(PairTable.of_moves(owner, 300))
    assert both.table.shape == (1_000, 3)
    assert both.key() != racks.times(5).key()
