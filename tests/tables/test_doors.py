"""Every door reads a table as every other: the same groups with the same notes, or the same reasons.

Rows have faults, nulls, copies, contradictions, other spellings of times and headings, and values of several types.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import evenlag
from evenlag.errors import InvalidProblemError
from evenlag.tables.columns import MEMBERS, OFFSETS, Column, Table
from evenlag.tables.group import GroupRows
from evenlag.tables.rules import LAG_UNKNOWN
from evenlag.tables.typed_values import snapshot_order
from tests.support.fleet_tasks import Row, batches, rules
from tests.support.problems import cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Columns = Mapping[str, Sequence[Any]]  # values by heading
Outcome = tuple[Any, ...]

NULLS = [None, "", "-", "N/A", "NaN", " - "]
TIMES = ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z", "2026-01-31T13:00:00+01:00", "2026-01-31T11:00:00Z"]
VALUES: dict[str, list[Any]] = {
    "snapshot_ts": TIMES,
    "group": ["g", "g", "g", "h"],
    "topic": ["t", "t", "u"],
    "consumer_id": ["a", "b", None],
    "auto_offset_reset": ["latest", "earliest", "EARLIEST", None],
    "replica_racks": [["r", "s"], ["", "s"], ["r"], None],
    "topics": [["t"], ["t", "u"], None],
    "weight": [1, 2, "2.0", 0.5],
    "partition": [0, 1, 2, "1", "2.0"],
    "log_start_offset": [0, 0, 5, "-"],
    "log_end_offset": [10, 50, "50", "6e1"],
    "current_offset": [3, 10, 60, "7", 0],
    "lag": [7, "7", 0],
    "move_size": [1, 2],
    "traffic": [1, "9"],
    "max_partitions": [1, 5, "3"],
    "generation": [1, 2.0],
    "assignor": ["range"],
    "rack": ["r", "s"],
    "protocol": ["classic", "consumer"],
    "client_id": ["app"],
    "log_only": [False, None, "false"],
}
FAULTS: dict[str, list[Any]] = {
    "integer": [-1, -2, 1.5, "many", True, 2**63, 10**40, "1_0"],
    "number": [0, -1, "much", 1e300],
    "string": NULLS,
    "strings": ["[1]"],
    "racks": ["[1]"],
    "boolean": ["perhaps"],
}


@st.composite
def tables(draw: st.DrawFn, table: Table, needed: Sequence[str], rows: int) -> Columns:
    """Columns of a table under some of their headings, and one that is unknown."""
    others = [column for column in table if column.name in VALUES and column.name not in needed]
    chosen = [column for column in table if column.name in needed]
    chosen += draw(st.lists(st.sampled_from(others), unique=True, max_size=6))
    count = draw(st.integers(1, rows))
    found: dict[str, Sequence[Any]] = {}
    for column in draw(st.permutations(chosen)):
        likely = st.sampled_from(VALUES[column.name])
        faulty = st.sampled_from([*FAULTS[column.kind], *NULLS])
        usual = draw(st.integers(0, 3))  # most columns are without a fault
        values = st.one_of(*[likely] * 30, faulty) if usual == 0 else likely
        found[draw(headings(column))] = draw(st.lists(values, min_size=count, max_size=count))
    if draw(st.booleans()):
        found["colour"] = ["blue"] * count
    copies = draw(st.lists(st.integers(0, count - 1), max_size=2))
    return {name: [*values, *(values[row] for row in copies)] for name, values in found.items()}


def headings(column: Column) -> st.SearchStrategy[str]:
    name = column.name
    return st.sampled_from([name, name.upper().replace("_", "-"), name.title().replace("_", " "), *column.also])


# ---- doors -----------------------------------------------------------------------------------------------------------


def text(value: Any) -> str:
    """Return a value as CSV has it."""
    if isinstance(value, list):
        return ";".join(value)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def in_one_type(values: Sequence[Any]) -> list[Any]:
    """Return a column as it is, or as texts where its values have several types."""
    kinds = {type(value) for value in values} - {type(None)}
    large = any(isinstance(value, int) and abs(value) >= 2**63 for value in values)
    mixed = len(kinds) > 1 or large
    return [None if value is None else text(value) for value in values] if mixed else list(values)


def to_csv(columns: Columns, path: Path) -> Path:
    frame = pd.DataFrame({name: [*map(text, values)] for name, values in columns.items()})
    frame.to_csv(path.with_suffix(".csv"), index=False)
    return path.with_suffix(".csv")


def to_jsonl(columns: Columns, path: Path) -> Path:
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    path.with_suffix(".jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path.with_suffix(".jsonl")


def to_arrow(columns: Columns, _: Path) -> pa.Table:
    return pa.table({name: pa.array(in_one_type(values)) for name, values in columns.items()})


def to_parquet(columns: Columns, path: Path) -> Path:
    pq.write_table(to_arrow(columns, path), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def to_polars(columns: Columns, _: Path) -> pl.DataFrame:
    return pl.DataFrame({name: in_one_type(values) for name, values in columns.items()}, strict=True)


def to_pandas(columns: Columns, _: Path) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(list(values)) for name, values in columns.items()})


def to_objects(columns: Columns, _: Path) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(list(values), dtype=object) for name, values in columns.items()})


Door = tuple[Callable[[Columns, Path], Any], int]
DOORS: dict[str, Door] = {  # with the number of the first row
    "CSV": (to_csv, 2),
    "JSON Lines": (to_jsonl, 1),
    "Parquet": (to_parquet, 1),
    "pandas": (to_pandas, 0),
    "pandas of objects": (to_objects, 0),
    "Polars": (to_polars, 0),
    "Arrow": (to_arrow, 0),
}

_NAME = re.compile(r"(?:/\S*/(?:offsets|members)\.\w+|the DataFrame(?: of members)?)")


def plain(message: str, first: int) -> str:
    """Return a message with rows numbered from 0, and without the names of sources, values and lines."""
    numbered = re.sub(
        r"\b(?:line|row) (\d+)", lambda match: f"row {int(match[1]) - first}", _NAME.sub("SOURCE", message)
    )
    parts = numbered.split(": ")
    if not re.fullmatch(r"SOURCE, row \d+", parts[0]):
        return numbered
    said = next(place for place, part in enumerate(parts) if " is " in part or "known" in part)
    return ": ".join(parts[: said + 1])


def outcomes(door: str, offsets: Columns, members: Columns | None, folder: Path) -> dict[str, Outcome]:
    """Return each group with its notes, or the reason why it cannot be read."""
    make, first = DOORS[door]
    source = make(offsets, folder / "offsets")
    listed = None if members is None else make(members, folder / "members")
    try:
        groups = evenlag.read_groups(source, members=listed, skip_errors=True)
    except InvalidProblemError as error:
        return {"": (plain(str(error), first),)}
    found: dict[str, Outcome] = {name: (plain(str(error), first),) for name, error in groups.errors.items()}
    for name, problem in groups.items():
        found[name] = (problem.to_dict(), [plain(note, first) for note in problem.warnings])
    return found


NEEDED = ("group", "topic", "partition", "log_end_offset", "current_offset", "consumer_id")


SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=cases(300), deadline=None, suppress_health_check=SLOW)
@given(
    offsets=tables(OFFSETS, NEEDED, 8),
    members=st.none() | tables(MEMBERS, ("group", "consumer_id"), 5),
)
@pytest.mark.slow
def test_every_door_reads_the_same(offsets: Columns, members: Columns | None, tmp_path: Path) -> None:
    found = {door: outcomes(door, offsets, members, tmp_path) for door in DOORS}
    for door in DOORS:
        assert found[door] == found["CSV"], door


def planned_for(document: dict[str, Any]) -> dict[str, Any]:
    """Return a problem's document without what a task of Spark leaves out, because plans do not depend on it."""
    facts = {name: value for name, value in document.get("facts", {}).items() if name != "protocol"}
    return document | {"facts": facts}


def check_task(offsets: Columns, members: Columns | None, rejects: Sequence[Row], groups: Sequence[GroupRows]) -> None:
    """Compare the groups and rejects of a task with what the door of Arrow makes of the same tables."""
    tables = to_arrow(offsets, Path()), None if members is None else to_arrow(members, Path())
    latest = {rows.group: rows for rows in sorted(groups, key=lambda rows: snapshot_order(rows.snapshot_ts))}
    reasons = {reject["reason"] for reject in rejects}
    for name, outcome in outcomes("Arrow", offsets, members, Path()).items():
        if len(outcome) == 1:  # an error there; Spark rejects the rows, and goes on
            unknown = LAG_UNKNOWN in reasons and "has a known lag" in outcome[0]  # a door leaves these out
            assert unknown or any(reason in outcome[0] for reason in reasons) or "differ" in outcome[0], outcome
        else:
            document, notes = outcome
            assert planned_for(latest[name].problem().to_dict()) == planned_for(document)
            counts = {note for note in latest[name].notes if not note.endswith(" rejected")}
            assert counts <= {*notes}
    assert len(tables[0]) == sum(len(rows.lags) for rows in groups) + sum(r["source"] == "offsets" for r in rejects)


@settings(max_examples=cases(300), deadline=None, suppress_health_check=SLOW)
@given(
    offsets=tables(OFFSETS, (*NEEDED, "snapshot_ts"), 8),
    members=st.none() | tables(MEMBERS, ("group", "consumer_id", "snapshot_ts"), 5),
)
@pytest.mark.slow
def test_a_task_of_spark_reads_the_same(offsets: Columns, members: Columns | None) -> None:
    made = to_arrow(offsets, Path()), None if members is None else to_arrow(members, Path())
    checked = rules(*made).checked(batches(*made))
    assert checked is not None
    assume(not {"snapshot_ts is missing", "group is missing"} & {each["reason"] for each in checked.rejects()})
    check_task(offsets, members, list(checked.rejects()), list(checked.groups().groups()))


@pytest.mark.spark
def test_spark_takes_a_lag_below_0_as_every_door_does(spark: "SparkSession", tmp_path: Path) -> None:
    from evenlag import pipeline

    offsets: Columns = {
        "Timestamp": TIMES[:1] * 4, "Group": ["g"] * 4, "topic": ["t"] * 4, "partition": [0, 1, 2, 2],
        "LAG": [-1, 7, 5, 5], "owner": ["a", "b", "-", "-"],
    }  # fmt: skip
    found = {door: outcomes(door, offsets, None, tmp_path)["g"] for door in DOORS}
    solved = pipeline.solve(
        spark.createDataFrame(to_arrow(offsets, tmp_path)), want="plan", method="lag-aware", time_limit=None
    )
    plans, (group,) = solved.plans.orderBy("partition").collect(), solved.groups.collect()
    assert [row["lag"] for row in plans] == [0, 7, 5]
    assert [row["reason"] for row in solved.rejects.collect()] == ["the same row for this partition again"]
    assert "1 lag below 0: taken as 0" in group["warnings"]
    for document, notes in found.values():
        assert document["topics"] == {"t": [0, 7, 5]}
        assert "1 lag below 0: taken as 0" in notes


@pytest.mark.parametrize("door", DOORS)
def test_aliases_nulls_times_and_unused_columns_mean_the_same(door: str, tmp_path: Path) -> None:
    offsets: Columns = {
        "Timestamp": ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z", "2026-01-31T12:00:00Z"],
        "consumer group": ["g"] * 3,
        "TOPIC": ["t"] * 3,
        "Partition": [0, 1, 2],
        "LAG": [5.0, 7.0, math.nan],
        "log-end-offset": ["-", "", "9"],
        "committed_offset": ["N/A", None, "3"],
        "owner": ["a", "-", "b"],
        "colour": ["blue"] * 3,
    }
    members: Columns = {"Time stamp": ["2026-01-31T13:00:00+01:00"] * 2, "group_id": ["g"] * 2, "Member": ["a", "b"]}
    found = outcomes(door, offsets, members, tmp_path)
    document, notes = found["g"]
    assert document["topics"] == {"t": [5, 7, 6]}
    assert {name: member["owned"] for name, member in document["members"].items()} == {"a": [["t", 0]], "b": [["t", 2]]}
    assert notes == ["SOURCE: ignored columns: colour"]
