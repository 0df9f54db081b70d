"""Sets of partitions as bits: their weights, and joins of partial plans."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenlag.search.exact.join_dp import compatible
from evenlag.search.subsets import Bits, bits_of, packed, unpacked, weights_of

COUNT = 130  # numbers, in three words
NUMBERS = st.sets(st.integers(0, COUNT - 1))


def as_bits(sets: list[set[int]]) -> Bits:
    """Return sets as bits, a column each."""
    columns = [bits_of(np.array([sorted(each)], dtype=np.int64).reshape(1, -1), 3) for each in sets]
    return np.concatenate([np.zeros((3, 0), dtype=np.uint64), *columns], axis=1)


@given(st.lists(NUMBERS, max_size=8), st.dictionaries(st.integers(0, COUNT - 1), st.integers(-(2**40), 2**40)))
def test_a_set_weighs_the_sum_of_its_partitions(sets: list[set[int]], weights: dict[int, int]) -> None:
    by_number = np.zeros(COUNT, dtype=np.int64)
    for number, weight in weights.items():
        by_number[number] = weight
    expected = [sum(weights.get(number, 0) for number in each) for each in sets]
    assert weights_of(as_bits(sets), by_number).tolist() == expected


@given(st.integers(1, COUNT).flatmap(lambda count: st.lists(st.booleans(), min_size=count, max_size=count)))
def test_a_set_is_the_same_as_a_mask_and_as_numbers(mask: list[bool]) -> None:
    numbers = {number for number, held in enumerate(mask) if held}
    words = packed(np.array(mask), 3)
    assert words.tolist() == as_bits([numbers])[:, 0].tolist()
    assert unpacked(words, len(mask)).tolist() == mask


@given(
    st.lists(st.sets(st.integers(0, 9)), max_size=12),
    st.lists(st.sets(st.integers(0, 9)), max_size=12),
    st.lists(st.sampled_from(["one", "two", "rest"]), min_size=10, max_size=10),
)
def test_partial_plans_join_where_each_takes_what_the_other_gives(
    mine: list[set[int]], theirs: list[set[int]], held_by: list[str]
) -> None:
    one, two = ({n for n in range(10) if held_by[n] == who} for who in ("one", "two"))

    def go_together(a: set[int], b: set[int]) -> bool:
        taken_from_one, taken_from_two = b & one, a & two
        return taken_from_one <= a and taken_from_two <= b and not (a & b) - one - two

    expected = {(i, j) for i, a in enumerate(mine) for j, b in enumerate(theirs) if go_together(a, b)}
    i, j = compatible(as_bits(mine), as_bits([one])[:, 0], as_bits(theirs), as_bits([two])[:, 0])
    found = list(zip(i.tolist(), j.tolist(), strict=True))
    assert set(found) == expected
    assert len(found) == len(expected)
