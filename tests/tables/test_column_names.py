"""Headings of a table are matched to the declared columns without case, blanks, hyphens and underscores."""

import random

import pytest

from evenlag.errors import SourceError
from evenlag.tables.column_names import check_headings, matched, plain, unused
from evenlag.tables.columns import LINE, MALFORMED, TABLES, TableKind

OFFSETS = ["group", "topic", "partition", "lag"]
PLACE = "lags.csv"


@pytest.mark.parametrize("kind", TABLES)
def test_every_column_is_found_by_each_of_its_names(kind: TableKind) -> None:
    for column in TABLES[kind]:
        for name in (column.name, *column.also):
            words = name.split("_")
            spellings = [name, name.upper(), " ".join(words).title(), "-".join(words), f" {''.join(words)} "]
            for heading in spellings:
                assert matched([heading, "other"], kind, PLACE) == {column.name: heading}, heading


@pytest.mark.parametrize("kind", TABLES)
def test_no_name_stands_for_two_columns(kind: TableKind) -> None:
    names = [plain(name) for column in TABLES[kind] for name in (column.name, *column.also)]
    assert len({*names}) == len(names)


def test_the_nearest_of_several_headings_is_taken() -> None:
    nearest = ["consumer_id", "Consumer-Id", "member"]
    for n in range(len(nearest)):
        for headings in (nearest[n:], nearest[n:][::-1]):
            assert matched(headings, "offsets", PLACE) == {"consumer_id": nearest[n]}


def test_the_order_of_headings_does_not_matter() -> None:
    headings = ["Snapshot TS", "GROUP", "topic", "Partition_ID", "log end offset", "CURRENT-OFFSET", "owner", "x"]
    wanted = check_headings(headings, "offsets", PLACE, many_snapshots=True)
    assert wanted["partition"] == "Partition_ID"
    assert wanted["current_offset"] == "CURRENT-OFFSET"
    for seed in range(5):
        shuffled = random.Random(seed).sample(headings, len(headings))
        assert check_headings(shuffled, "offsets", PLACE, many_snapshots=True) == wanted


@pytest.mark.parametrize(
    ("headings", "message"),
    [
        (["lag", "lag"], "column lag appears twice; keep one"),
        (["Lag", "LAG"], "column lag appears twice (Lag, LAG); keep one"),
        (["member", "owner"], "column consumer_id appears twice (member, owner); keep one"),
        (["log-end-offset", "Log End Offset"], "column log_end_offset appears twice (log-end-offset, Log End Offset);"),
    ],
)
def test_two_headings_for_one_column_are_an_error(headings: list[str], message: str) -> None:
    with pytest.raises(SourceError) as error:
        matched(headings, "offsets", PLACE)
    assert str(error.value).startswith(f"{PLACE}: {message}")


def test_columns_that_are_not_read_may_come_twice() -> None:
    assert matched(["region", "Region", "region", "lag"], "offsets", PLACE) == {"lag": "lag"}


@pytest.mark.parametrize(
    ("headings", "kind", "message"),
    [
        (["snapshot_ts", "group", "partition", "lag", "Subject"], "offsets", "no column topic; "),
        (["timestamp", "group", "topic", "partition"], "offsets", "no column log_end_offset (or lag); "),
        (OFFSETS, "offsets", "no column snapshot_ts; "),
        (["snapshot_ts", "group"], "members", "no column consumer_id; "),
    ],
)
def test_a_missing_column_is_named_with_those_that_are_there(
    headings: list[str], kind: TableKind, message: str
) -> None:
    with pytest.raises(SourceError) as error:
        check_headings([*headings, LINE, MALFORMED], kind, PLACE, many_snapshots=True)
    assert str(error.value).startswith(f"{PLACE}: {message}")
    assert str(error.value).endswith(f"; this one has {', '.join(sorted(headings))}")


def test_a_table_of_one_snapshot_needs_no_time() -> None:
    assert set(check_headings(OFFSETS, "offsets", PLACE)) == set(OFFSETS)


def test_a_table_without_columns_has_none() -> None:
    with pytest.raises(SourceError, match=r"; this one has none$"):
        check_headings([LINE], "offsets", PLACE)


def test_columns_that_are_not_read_are_named() -> None:
    names = matched([*OFFSETS, "member"], "offsets", PLACE)
    assert unused([*OFFSETS, "member", LINE, MALFORMED, "reason", "move"], names, "offsets", PLACE) == []
    [note] = unused([*OFFSETS, "member", "log_end_ofset", "region"], names, "offsets", PLACE)
    assert note.startswith(f"{PLACE}: ignored columns: log_end_ofset, region ('log_end_ofset'")
    assert "did you mean 'log_end_offset'" in note
    many = [f"x{n:02}" for n in range(20)]
    [note] = unused([*OFFSETS, *many], names, "offsets", PLACE)
    assert note == f"{PLACE}: ignored columns: {', '.join(many[:8])} and 12 more"
