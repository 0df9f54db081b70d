"""Tables of Spark in tests: made from dicts, and compared with a difference that can be read."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.support.fleet import fleet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Values: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = "DataFrame | Iterable[Any]"  # of Spark's rows, dicts or tuples

OFFSETS_DDL = (
    "snapshot_ts STRING, `group` STRING, topic STRING, `partition` INT, log_start_offset BIGINT, "
    "log_end_offset BIGINT, current_offset BIGINT, lag BIGINT, consumer_id STRING"
)
MEMBERS_DDL = (
    "snapshot_ts STRING, `group` STRING, consumer_id STRING, topics ARRAY<STRING>, weight DOUBLE, "
    "max_partitions BIGINT, generation BIGINT"
)
SHOWN = 10  # rows of each kind


def table(spark: "SparkSession", rows: Iterable[Mapping[str, Any]], ddl: str) -> "DataFrame":
    """Return a table of these rows; missing columns are null, and unknown ones are left out."""
    names = [field.split()[0].strip("`") for field in ddl.split(", ")]
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], ddl)


def tables(spark: "SparkSession", groups: int, **options: Any) -> tuple["DataFrame", "DataFrame"]:
    """Both tables of a fleet; options are those of `fleet.fleet`."""
    offsets, members = fleet(groups, **options)
    return table(spark, offsets, OFFSETS_DDL), table(spark, members, MEMBERS_DDL)


def assert_same_rows(actual: Rows, expected: Rows, *, without: Sequence[str] = (), ordered: bool = False) -> None:
    """Assert that two tables hold the same rows, each as often, and in the same order if `ordered`.

    Columns of a table or dict go by name, those of tuples by place; those in `without` are not looked at.
    """
    names, found = _read(actual, without)
    others, wanted = _read(expected, without)
    if names and others:
        assert sorted(names) == sorted(others), f"columns {names}, but {others} are expected"
        wanted = [tuple(row[others.index(name)] for name in names) for row in wanted]
    if found == wanted if ordered else Counter(map(repr, found)) == Counter(map(repr, wanted)):
        return
    raise AssertionError(_difference(names or others, found, wanted))


def _read(rows: Rows, without: Sequence[str]) -> tuple[list[str], list[Values]]:
    """The names of the columns, where there are any, and the values."""
    columns: list[str] | None = getattr(rows, "columns", None)
    each = list(rows.collect() if columns is not None else rows)  # type: ignore[union-attr]
    if columns is None and each:
        columns = list(each[0] if isinstance(each[0], Mapping) else getattr(each[0], "__fields__", []))
    if not columns:
        return [], [tuple(row) for row in each]
    kept = [name for name in columns if name not in without]
    keys: Sequence[Any] = kept if each and isinstance(each[0], Mapping) else [columns.index(name) for name in kept]
    return kept, [tuple(row[key] for key in keys) for row in each]


def _difference(names: Sequence[str], found: Sequence[Values], wanted: Sequence[Values]) -> str:
    """Say which rows are too many and which are missing, a line each, equal columns under each other."""
    mine, theirs = Counter(map(repr, found)), Counter(map(repr, wanted))
    unexpected, missing = _left(found, mine - theirs), _left(wanted, theirs - mine)
    if not unexpected and not missing:
        at = next(n for n, (one, other) in enumerate(zip(found, wanted, strict=True)) if one != other)
        head = f"the same {len(found)} rows in another order, first at row {at}"
        unexpected, missing = [found[at]], [wanted[at]]
    else:
        head = f"{len(unexpected)} of {len(found)} rows are unexpected, {len(missing)} of {len(wanted)} are missing"
    lines = [["", *names]] if names else []
    for kind, rows in (("unexpected", unexpected), ("missing", missing)):
        lines += [[kind, *map(_cell, row)] for row in rows[:SHOWN]]
        if len(rows) > SHOWN:
            lines.append([kind, f"and {len(rows) - SHOWN} more"])
    widths = [max(len(line[n]) for line in lines if n < len(line)) for n in range(max(map(len, lines)))]
    shown = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return "\n".join([head, *shown])


def _left(rows: Sequence[Values], counts: "Counter[str]") -> list[Values]:
    """As many of each row as counted, sorted so that rows that are nearly alike stand together."""
    left = []
    for row in sorted(rows, key=repr):
        if counts[repr(row)] > 0:
            counts[repr(row)] -= 1
            left.append(row)
    return left


def _cell(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
