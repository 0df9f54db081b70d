"""Problems built from columns of a table: equal to those built from plain values, and refused for the same reasons."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.errors import InvalidProblemError
from evenlag.model.from_rows import Member
from evenlag.model.problem import Problem
from evenlag.tables.group import GroupRows

TOPICS, NAMES = ("orders", "payments", "é"), ("a", "b", "c", "d")
ROWS = st.dictionaries(
    st.tuples(st.sampled_from(TOPICS), st.integers(0, 5)),
    st.tuples(st.sampled_from([0, 1, 7, 2**62]), st.sampled_from([*NAMES, "stranger", None])),
    min_size=1,
)
MEMBERS = st.dictionaries(
    st.sampled_from(NAMES),
    st.fixed_dictionaries(
        {
            "topics": st.none() | st.lists(st.sampled_from([*TOPICS, "unknown"])),
            "weight": st.sampled_from([None, 1.0, 0.1, 2.5]),
            "max_partitions": st.sampled_from([None, 0, 3]),
            "generation": st.sampled_from([None, 4]),
            "rack": st.sampled_from([None, None, "r", "s"]),
        }
    ),
)


def rows_of(rows: dict[tuple[str, int], tuple[int, str | None]], members: dict[str, dict[str, Any]]) -> GroupRows:
    ordered = sorted(rows)
    topics = sorted({topic for topic, _ in ordered})
    return GroupRows(
        "t",
        "g",
        tuple(topics),
        np.array([topics.index(topic) for topic, _ in ordered]),
        np.array([partition for _, partition in ordered]),
        np.array([rows[key][0] for key in ordered], dtype=np.int64),
        [rows[key][1] for key in ordered],
        tuple(Member(name, **fields) for name, fields in members.items()),
    )


@given(ROWS, MEMBERS)
def test_columns_and_plain_values_give_the_same_problem(
    rows: dict[tuple[str, int], tuple[int, str | None]], members: dict[str, dict[str, Any]]
) -> None:
    lags: dict[str, dict[int, int]] = defaultdict(dict)
    owned: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for (topic, partition), (lag, owner) in rows.items():
        lags[topic][partition] = lag
        if owner is not None:
            owned[owner].append((topic, partition))
    plain = Problem.from_lags(
        lags,
        {name: list(lags) if fields["topics"] is None else fields["topics"] for name, fields in members.items()},
        group="g",
        owned=owned,
        weights={name: 1 if fields["weight"] is None else fields["weight"] for name, fields in members.items()},
        max_partitions={name: fields["max_partitions"] for name, fields in members.items()},
        generations={name: fields["generation"] for name, fields in members.items()},
        racks={name: fields["rack"] for name, fields in members.items()},
    )
    built = rows_of(rows, members).problem()
    assert built.pairs.same_as(plain.pairs)
    assert not plain.origin.registrations  # only a members table has these
    for name, value in (*vars(plain).items(), *vars(plain.origin).items()):
        if name == "registrations":
            continue
        other = getattr(built, name)
        if isinstance(value, np.ndarray):
            assert value.dtype == other.dtype, name
            assert np.array_equal(value, other), name
        elif name not in ("pairs", "origin"):
            assert value == other, name


@pytest.mark.parametrize(
    ("lag", "fields", "message"),
    [
        (-1, {}, "orders-3: lag must lie between 0 and 2"),
        (2**62 + 1, {}, "orders-3: lag must lie between 0 and 2"),
        (5, {"weight": 0.0}, "member 'a': weight must be a number > 0"),
        (5, {"max_partitions": -1}, "member 'a': max_partitions must be a whole number >= 0"),
    ],
)
def test_columns_are_refused_for_the_same_reasons_as_plain_values(
    lag: int, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        rows_of({("orders", 1): (0, None), ("orders", 3): (lag, None)}, {"a": fields}).problem()


def test_rows_without_counts_have_no_notes() -> None:
    assert rows_of({("t", 0): (5, "a")}, {"a": {"topics": ["t"]}}).notes == ()
