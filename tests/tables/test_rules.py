"""The rule of a row over whole tables: types, faults, lags and copies, whatever the order and the types of the rows."""

import json
import random
from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.errors import InvalidProblemError
from evenlag.model.lag import partition_lag
from evenlag.model.rates import time_micros
from evenlag.tables.column_names import matched
from evenlag.tables.columns import LINE, MALFORMED, TABLES, Column, TableKind
from evenlag.tables.copies import MEMBER_ROWS, PARTITION_ROWS
from evenlag.tables.rules import BEFORE_START, BELOW_ZERO, BEYOND_END, USABLE, CheckedRows, check_rows, looked_at
from tests.support.fleet import BROKEN, OFFSET_NAMES, OFFSET_VALUES, TS, break_at_random, break_rows, fleet
from tests.support.fleet_tasks import arrow, batches, rules
from tests.support.problems import seeds

Row = dict[str, Any]
CHECKED = [(kind, column) for kind in TABLES for column in TABLES[kind] if column.checked]
OFFSETS_ROW: Row = {"snapshot_ts": TS, "group": "g", "topic": "t", "partition": 0, "lag": 7}
MEMBERS_ROW: Row = {"snapshot_ts": TS, "group": "g", "consumer_id": "m"}
ROW_OF: dict[TableKind, Row] = {"offsets": OFFSETS_ROW, "members": MEMBERS_ROW}


def check(rows: Any, kind: TableKind = "offsets", **options: Any) -> CheckedRows:
    table = arrow(rows)
    return check_rows(table, matched(table.column_names, kind, "table"), kind, **options)


def reasons(checked: CheckedRows) -> list[str | None]:
    return [None if code == USABLE else checked.reasons[code] for code in checked.reason_of.tolist()]


def as_texts(rows: list[Row], names: list[str]) -> Any:
    """Return rows as a table of texts, as those of CSV."""
    return pa.table({
        name: pa.array([None if row.get(name) is None else str(row[name]) for row in rows], pa.string())
        for name in names
    })  # fmt: skip


# ---- values ----------------------------------------------------------------------------------------------------------

IS_NOT = {
    "string": [["a"], {"x": 1}], "boolean": ["yes", 1, 0.5], "strings": [[None], ["a", ""], 5, True, "[1]"],
    "racks": [["a", None], 5, '["a'], "integer": ["x", 1.5, True, 2.0**63, Decimal("0.5"), ["1"], str(2**63)],
    "number": ["x", True, ["1"], 2e9, 0.0, -1, "1e-10", "Infinity"],
}  # fmt: skip
FITS = {
    "string": ["a", 5, True], "boolean": [True, "TRUE", False], "strings": [[], ["a"], "a;b", '["a"]'],
    "racks": [["", "a"], ";a"], "integer": [3, "3.0", 3.0, Decimal("3.00"), "3e0"], "number": [1, 0.5, "1e1"],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "column"), CHECKED, ids=lambda each: getattr(each, "name", each))
def test_values_that_do_not_fit_their_column_reject_the_row(kind: TableKind, column: Column) -> None:
    name, whole = column.name, {"log_end_offset": 9} if column.name in ("current_offset", "log_only") else {}
    for value in FITS[column.kind]:
        checked = check([ROW_OF[kind] | whole | {name: value}], kind)
        assert reasons(checked) == [None], value
    beyond = [limit + by for limit, by in ((column.least, -1), (column.most, 1)) if limit is not None]
    beyond = beyond if column.kind == "integer" else []
    for value in (*IS_NOT[column.kind], *map(int, beyond)):
        checked = check([ROW_OF[kind] | whole | {name: value}], kind)
        [reason] = reasons(checked)
        assert str(reason).startswith(f"{name} is "), value
        assert checked.at_fault == [name]
        assert (value in beyond) == any(word in str(reason) for word in ("negative", "above"))
    whole = {} if name != "lag" else {"log_end_offset": 9, "current_offset": 9}
    for nothing in (None, "", "-"):
        missing = f"{name} is missing" if column.required else None
        assert reasons(check([ROW_OF[kind] | whole | {name: nothing}], kind)) == [missing]


@pytest.mark.parametrize("kind", TABLES)
def test_other_columns_may_hold_anything(kind: TableKind) -> None:
    others = [column.name for column in TABLES[kind] if column not in looked_at(kind)]
    assert others
    for value in ([1], {"x": 1}, True, "x"):
        assert reasons(check([ROW_OF[kind] | dict.fromkeys(others, value)], kind)) == [None]


@pytest.mark.parametrize("kind", TABLES)
def test_required_values_may_not_be_missing(kind: TableKind) -> None:
    needed = [column.name for column in TABLES[kind] if column.required]
    for name in ["snapshot_ts", *needed]:
        without = {each: value for each, value in ROW_OF[kind].items() if each != name}
        for lacking in (ROW_OF[kind] | {name: None}, without):
            assert reasons(check([lacking], kind)) == [f"{name} is missing"]
    without_time = {name: value for name, value in ROW_OF[kind].items() if name != "snapshot_ts"}
    assert reasons(check([without_time], kind, timed=False)) == [None]
    assert reasons(check([{"host": "h"}], kind)) == ["snapshot_ts is missing"]  # the first reason counts


def test_lines_that_are_no_rows_are_rejected_first() -> None:
    row = {"snapshot_ts": None, MALFORMED: "1,2", LINE: None}
    checked = check([OFFSETS_ROW | row, OFFSETS_ROW | {MALFORMED: None, LINE: "g,t,0,7"}])
    assert reasons(checked) == ["the line could not be read", None]
    assert checked.texts(np.array([0, 1])) == ["1,2", "g,t,0,7"]


# ---- times -----------------------------------------------------------------------------------------------------------

SAME = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z", "2026-01-01 01:00+01:00", "2026-01-01", "2026-01-01T00:00"]


def test_an_instant_has_one_spelling() -> None:
    rows = [OFFSETS_ROW | {"snapshot_ts": ts, "partition": p} for p, ts in enumerate([*SAME, "noon", " noon", "2026"])]
    for order in (rows, rows[::-1]):
        times = check(order).values["snapshot_ts"].named().tolist()
        assert set(times) == {"2026-01-01", "noon", " noon", "2026"}
        assert [ts for ts in times if time_micros(ts) is not None] == ["2026-01-01"] * len(SAME)


@given(st.lists(st.sampled_from(["T10:00Z", "T10:00:00Z", "T11:00+01:00", "T10:00:00.5Z", "T10:00:00.500000Z", "x"])))
def test_spellings_depend_on_the_times_alone(ends: list[str]) -> None:
    times = [f"2026-01-01{end}" for end in ends]
    rows = [OFFSETS_ROW | {"snapshot_ts": ts, "partition": p} for p, ts in enumerate(times)]
    found = check(rows).values["snapshot_ts"].named().tolist() if rows else []
    for ts, made in zip(times, found, strict=True):
        alike = [each for each in times if (time_micros(each) or each) == (time_micros(ts) or ts)]
        assert made == min(alike, key=lambda each: (len(each), each))


def test_copies_are_found_in_all_spellings_of_a_time() -> None:
    checked = check([OFFSETS_ROW | {"snapshot_ts": ts} for ts in SAME])
    assert sorted(map(str, reasons(checked))) == ["None", *[PARTITION_ROWS.again] * 4]


# ---- lags ------------------------------------------------------------------------------------------------------------

NUMBERS = ("log_start_offset", "log_end_offset", "current_offset", "lag")
CODES = {None: 0, "beyond_end": BEYOND_END, "before_start": BEFORE_START, "below_zero": BELOW_ZERO}


def of_model(offsets: list[Any], reset: str) -> tuple[str | None, int | None, int]:
    """Return the reason against a row, or its lag and the code of a clamped commit."""
    try:
        lag = partition_lag(*offsets, auto_offset_reset=reset)
    except InvalidProblemError as error:
        return str(error), None, 0
    return None, lag.messages, CODES[lag.clamped]


@given(st.lists(OFFSET_VALUES, min_size=1, max_size=40), st.sampled_from(["latest", "EARLIEST", "none"]), st.booleans())
def test_lags_are_those_of_the_model(drawn: list[tuple[Any, ...]], default: str, text: bool) -> None:
    columns = {name: pa.array([row[n] for row in drawn], pa.int64()) for n, name in enumerate(NUMBERS)}
    if text:
        columns = {name: column.cast(pa.string()) for name, column in columns.items()}
    fixed = {name: [OFFSETS_ROW[name]] * len(drawn) for name in ("snapshot_ts", "group", "topic")}
    table = pa.table(
        fixed | columns
        | {"partition": np.arange(len(drawn)), "auto_offset_reset": pa.array([row[4] for row in drawn], pa.string())}
    )  # fmt: skip
    checked = check(table, auto_offset_reset=default)
    lags = checked.values["lag"]
    for n, (*offsets, reset) in enumerate(drawn):
        found = (reasons(checked)[n], None if lags.null[n] else lags.data[n], checked.clamped[n])
        assert found == of_model(offsets, reset or default)


def test_rows_of_log_ends_alone_have_no_lag() -> None:
    row = OFFSETS_ROW | {"lag": None, "log_end_offset": 9, "log_only": True}
    rows = [
        row, row | {"partition": 1, "log_end_offset": None}, row | {"partition": 2, "log_end_offset": -1},
        row | {"partition": 3, "current_offset": 5, "lag": -3, "log_start_offset": 9},
        row | {"partition": 4, "log_start_offset": 10}, row | {"partition": 5, "current_offset": -5},
    ]  # fmt: skip
    checked = check(rows, auto_offset_reset="earliest")
    assert reasons(checked) == [
        None, "log_end_offset is missing in a log_only row", "log_end_offset is negative", None,
        "log_end_offset is below log_start_offset", None,
    ]  # fmt: skip
    assert checked.values["lag"].null.all()
    assert checked.log_only.tolist() == [True] * 6
    assert reasons(check([row | {"log_only": "perhaps"}])) == ["log_only is not true or false"]
    assert reasons(check([row | {"snapshot_ts": "noon"}])) == ["snapshot_ts of a log_only row is not a time"]


# ---- copies ----------------------------------------------------------------------------------------------------------

USUALLY = 40  # times as often as another value


def partitions(chance: random.Random) -> list[Row]:
    """Return rows of a few partitions, most of which agree with the others of theirs."""
    draw = chance.choice
    # The first four have a lag of 7; of copies, the one with the lowest offsets counts.
    offsets = [*[(None, 9, 2), (0, 9, 2), (2, 9, 1), (0, 10, 3)] * USUALLY, (0, 10, 2), (0, 9, -1)]
    rows = []
    for _ in range(120):
        start, end, current = draw(offsets)
        lag = end - (current if start is None or current >= start else start)
        rows.append({
            "snapshot_ts": draw([TS, "2026-01-01", "noon"]), "group": draw("gh"), "topic": draw("tu"),
            "partition": draw(range(5)), "consumer_id": draw([*"a" * USUALLY * 2, "b", None]), "lag": lag,
            "log_start_offset": start, "log_end_offset": end, "current_offset": current,
            "replica_racks": draw([*[["r"]] * USUALLY * 2, None, ["r", "s"]]),
            "move_size": draw([*[3] * USUALLY * 2, None, 4]), "traffic": draw([*[None] * USUALLY * 2, 0]),
            "host": draw("xy"),
        })  # fmt: skip
    return rows


def members(chance: random.Random) -> list[Row]:
    """Return rows of a few members, most of which agree with the others of theirs."""
    draw = chance.choice
    return [
        {
            "snapshot_ts": draw([TS, "2026-01-01"]), "group": draw("gh"), "consumer_id": draw("abcdefgh"),
            "topics": draw([*[["t"]] * USUALLY, None, [], ["t", "u"]]), "weight": draw([*[1.0] * USUALLY, None, 2.0]),
            "max_partitions": draw([*[None] * USUALLY, 3]), "generation": draw([*[4] * USUALLY, 5]),
            "assignor": draw([*["range"] * USUALLY, "sticky", None]), "rack": draw([*[None] * USUALLY, "r"]),
            "host": draw("xy"),
        } for _ in range(60)
    ]  # fmt: skip


RULES = {"offsets": PARTITION_ROWS, "members": MEMBER_ROWS}


def instant(ts: str) -> Any:
    micros = time_micros(ts)
    return ts if micros is None else micros


def judged(rows: list[Row], kind: TableKind) -> Counter[Any]:
    """Return each row by the rule in plain words: its reason; of copies, the one with the lowest offsets has none."""
    rule = RULES[kind]
    found: Counter[Any] = Counter()
    of_key = defaultdict(list)
    for row in rows:
        if row.get("current_offset") == -1:
            found[content_of(row), "current_offset is negative"] += 1
        else:
            of_key[key_of(row, kind)].append(row)
    for alike in of_key.values():
        contents = {tuple(map(str, (row.get(name) for name in rule.content))) for row in alike}
        ordered = sorted(alike, key=offsets_of)
        for place, row in enumerate(ordered):
            reason = rule.differ if len(contents) > 1 else rule.again if place else None
            found[content_of(row), reason] += 1
    return found


def key_of(row: Row, kind: TableKind) -> tuple[Any, ...]:
    """Return what its copies have in common."""
    return tuple(instant(row[name]) if name == "snapshot_ts" else row[name] for name in RULES[kind].key)


def offsets_of(row: Row) -> list[int]:
    """Return what puts copies in order; an offset that is not known comes first."""
    return [-1 if row[name] is None else row[name] for name in NUMBERS[:3] if name in row]


def content_of(row: Row) -> Any:
    """Return what is compared of a row: not the spelling of its time, and not where it came from."""
    row = row | {"snapshot_ts": instant(row["snapshot_ts"])}
    return tuple(str(row[name]) for name in sorted(row) if name != "host")


@pytest.mark.parametrize("seed", seeds(12))
@pytest.mark.parametrize("kind", TABLES)
def test_copies_count_once_and_contradictions_not_at_all(kind: TableKind, seed: int) -> None:
    chance = random.Random(seed)
    rows = partitions(chance) if kind == "offsets" else members(chance)
    wanted = judged(rows, kind)
    assert {reason for _, reason in wanted} >= {None, RULES[kind].again, RULES[kind].differ}
    by_key = sorted(rows, key=lambda row: ([*map(str, key_of(row, kind))], [-each for each in offsets_of(row)]))
    for order in (rows, rows[::-1], chance.sample(rows, len(rows)), by_key):
        found = reasons(check(order, kind))
        assert Counter((content_of(row), reason) for row, reason in zip(order, found, strict=True)) == wanted
    assert set(reasons(check(rows, kind, copies=False))) <= {None, "current_offset is negative"}


def test_log_ends_and_snapshots_are_no_copies_of_each_other() -> None:
    row = OFFSETS_ROW | {"lag": None, "log_end_offset": 9, "current_offset": 2, "log_only": False}
    ends = row | {"log_only": True, "current_offset": None}
    assert reasons(check([row, ends, ends])) == [None, None, PARTITION_ROWS.again]
    assert reasons(check([row, ends, ends | {"log_end_offset": 8}])) == [None, *[PARTITION_ROWS.differ] * 2]


# ---- rows of a task --------------------------------------------------------------------------------------------------


def test_every_broken_row_is_rejected_with_its_reason() -> None:
    offsets, _ = fleet(len(BROKEN))
    broken, expected = break_rows(offsets)
    table = as_texts(broken, OFFSET_NAMES)
    checked = rules(table).checked(batches(table, size=100))
    assert checked is not None
    rejects = list(checked.rejects())
    assert Counter(row["reason"] for row in rejects) == expected
    assert sum(expected.values()) == len(broken) - int(checked.offsets.usable.sum())
    assert checked.read == {"offsets": len(broken), "members": 0, "log_ends": 0}


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_and_their_types_do_not_matter(seed: int) -> None:
    offsets, _ = fleet(20, seed=seed)
    broken, expected = break_at_random(offsets, 0.1, seed)
    tables = [as_texts(order, OFFSET_NAMES) for order in (broken, broken[::-1])]
    encoded = pa.table({name: tables[0].column(name).dictionary_encode() for name in OFFSET_NAMES})
    found = []
    for table in (*tables, encoded, tables[0].select(OFFSET_NAMES[::-1])):
        checked = rules(table).checked(batches(table, size=37))
        assert checked is not None
        rejects = list(checked.rejects())
        assert Counter(row["reason"] for row in rejects) == expected
        found.append(Counter(tuple(row[name] for name in row if name != "row") for row in rejects))
        usable = checked.offsets.usable
        assert len(rejects) + int(usable.sum()) == len(broken)
    assert all(each == found[0] for each in found)


def test_whole_numbers_in_any_type_give_the_same_rows() -> None:
    offsets, _ = fleet(3)
    numbers = [name for name in OFFSET_NAMES if name == "partition" or name.endswith("offset")]
    wanted = None
    for of in (pa.int64(), pa.int32(), pa.uint64(), pa.float64(), pa.decimal128(24, 2), pa.string()):
        rows = arrow(offsets)
        typed = pa.table({name: rows.column(name).cast(of) if name in numbers else rows.column(name)
                          for name in rows.column_names})  # fmt: skip
        checked = check(typed)
        assert checked.usable.all()
        found = {name: checked.values[name].data.tolist() for name in (*numbers, "lag")}
        wanted = wanted or found
        assert found == wanted


def test_rejects_have_the_row_as_it_came() -> None:
    rows = [
        {"Group": "g", "TOPIC": "t", "partition": "-1", "lag": "7", "snapshot_ts": TS, "region": "größe",
         "member": "c"},
        {"Group": "g", "TOPIC": None, "partition": "3000000000", "lag": "x", "snapshot_ts": TS, "region": None,
         "member": "-"},
    ]  # fmt: skip
    members = [{"snapshot_ts": TS, "group": "g", "consumer_id": "m", "weight": -2.0, "topics": ["t"]}]
    checked = rules(rows, members).checked(batches(rows, members))
    assert checked is not None
    assert checked.read == {"offsets": 2, "members": 1, "log_ends": 0}
    first, second, third = checked.rejects()
    assert [json.loads(each["row"]) for each in (first, second, third)] == [*rows, *members]
    common = {"source": "offsets", "snapshot_ts": TS, "group": "g"}
    assert first | {"row": ""} == common | {
        "topic": "t", "partition": -1, "consumer_id": "c", "reason": "partition is negative", "row": "",
    }  # fmt: skip
    assert second | {"row": ""} == common | {
        "topic": None, "partition": None, "consumer_id": None, "reason": "topic is missing", "row": "",
    }  # fmt: skip
    assert third | {"row": ""} == common | {
        "source": "members", "topic": None, "partition": None, "consumer_id": "m",
        "reason": "weight is not a number from 1e-9 to 1e9", "row": "",
    }  # fmt: skip


def test_a_task_without_rows_has_nothing_to_check() -> None:
    rows = [OFFSETS_ROW]
    assert rules(rows).checked([]) is None
    empty = arrow(rows).slice(0, 0)
    checked = rules(empty).checked([batch.slice(0, 0) for batch in batches(rows)])
    assert checked is not None
    assert (len(checked.offsets), list(checked.rejects()), len(checked.groups())) == (0, [], 0)
