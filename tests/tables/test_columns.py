"""Columns are declared once: types, headers, checks and the docs follow."""

import dataclasses

import pyarrow as pa
import pytest

from evenlag.compare.replay_result import ReplayStep, ReplaySummary
from evenlag.compare.strategies import AuditRow
from evenlag.model.from_rows import Member
from evenlag.tables import outputs
from evenlag.tables.columns import MEMBERS, OFFSETS, PLANNED, TABLES, Column, Table, TableKind
from evenlag.tables.rows import Rows
from evenlag.tables.rules import check_rows
from tests.support.column_tables import PAGES, ROOT, renewed

OUTPUTS = {name: value for name, value in vars(outputs).items() if isinstance(value, Table)}


def test_names_and_types_follow_from_the_columns() -> None:
    table = Table((Column("group", "string"), Column("partition", "int"), Column("load", "number")))
    assert table.names == ("group", "partition", "load")
    assert table.ddl == "`group` STRING, `partition` INT, `load` DOUBLE"
    assert table.doubles == ("load",)
    assert table.arrow() == pa.schema([("group", pa.string()), ("partition", pa.int32()), ("load", pa.float64())])


def test_rows_within_a_row_have_their_own_columns() -> None:
    inner = Table((Column("topic", "string"), Column("lag", "integer")))
    one, several = Column("one", "struct", of=inner), Column("several", "structs", of=inner)
    assert one.ddl == "STRUCT<`topic` STRING, `lag` BIGINT>"
    assert several.ddl == "ARRAY<STRUCT<`topic` STRING, `lag` BIGINT>>"


def test_members_have_a_field_for_each_planned_column() -> None:
    fields = [field.name for field in dataclasses.fields(Member)]
    assert fields == ["consumer_id", *PLANNED.names, "registration"]


@pytest.mark.parametrize("row", [AuditRow, ReplaySummary, ReplayStep])
def test_figures_take_type_and_sentence_from_their_class(row: type) -> None:
    table = outputs.figures_of(row)
    assert list(table.names) == [field.name for field in dataclasses.fields(row)]
    assert [column.name for column in table if not column.about.endswith(".")] == []


def test_a_figure_without_a_sentence_has_none() -> None:
    @dataclasses.dataclass
    class Figures:
        """Two figures.

        Attributes
        ----------
        loads : float or None
            Messages,
            by weight.
        """

        loads: float | None
        moves: int

    table = outputs.figures_of(Figures)
    assert table == (Column("loads", "number", "Messages, by weight."), Column("moves", "integer"))


@pytest.mark.parametrize("table", [OFFSETS, MEMBERS, *(OUTPUTS[name] for name in OUTPUTS if name != "ROWS")])
def test_every_documented_column_is_explained(table: Table) -> None:
    assert [column.name for column in table if column.of is None and not column.about] == []
    assert len(set(table.names)) == len(table)


@pytest.mark.parametrize("page", PAGES)
def test_the_docs_list_the_declared_columns(page: str) -> None:
    text = (ROOT / page).read_text()
    assert text.count("<!-- columns:") > 1
    assert renewed(text) == text, "python -m tests.support.column_tables"


# ---- checks follow from the columns ----------------------------------------------------------------------------------

FITTING = {"string": "a", "integer": 0, "number": 1.0, "boolean": False, "strings": ["a"], "racks": ["", "a"]}
WRONG: dict[str, tuple[object, ...]] = {
    "string": (["a"],),
    "integer": ("x", 1.5, True, 2**63),
    "strings": ([1], "[1]", [""]),
    "racks": ([1], "[1]"),
    "boolean": ("yes", 1),
}


def row_of(table: Table, **values: object) -> dict[str, object]:
    return {column.name: FITTING[column.kind] for column in table} | values


def reason(kind: TableKind, **values: object) -> str | None:
    """Return why a row cannot be used that fits but for these values; None if it can."""
    rows = Rows.of_dicts([(1, row_of(TABLES[kind], **values))], TABLES[kind])
    checked = check_rows(rows.table, {name: name for name in rows.table.column_names}, kind)
    return None if checked.usable[0] else checked.reasons[checked.reason_of[0]]


def checked_columns(kind: TableKind) -> list[Column]:
    return [column for column in TABLES[kind] if column.checked]


@pytest.mark.parametrize("column", checked_columns("offsets"), ids=lambda column: column.name)
def test_values_that_do_not_fit_their_column_are_refused_in_the_offsets_table(column: Column) -> None:
    assert reason("offsets") is None
    beyond = [
        bound for bound, by in ((column.least, -1), (column.most, 1)) if bound is not None for bound in [bound + by]
    ]
    for value in (*WRONG[column.kind], *map(int, beyond)):
        assert (reason("offsets", **{column.name: value}) or "").startswith(f"{column.name} is ")


@pytest.mark.parametrize("column", checked_columns("members"), ids=lambda column: column.name)
def test_values_that_do_not_fit_their_column_are_refused_in_the_members_table(column: Column) -> None:
    assert reason("members") is None
    for value in (*WRONG.get(column.kind, ("x", 0)), *([-1] if column.least == 0 else [])):
        assert (reason("members", **{column.name: value}) or "").startswith(f"{column.name} is ")


@pytest.mark.parametrize(
    ("kind", "column"),
    [(kind, each) for kind in TABLES for each in TABLES[kind] if not each.checked and each.name != "snapshot_ts"],
    ids=lambda each: getattr(each, "name", each),
)
def test_other_columns_are_ignored(kind: TableKind, column: Column) -> None:
    assert reason(kind, **{column.name: ["of", "any", "type"]}) is None
