"""Columns are declared once: types, headers, checks and the docs follow."""

import dataclasses

import pyarrow as pa
import pytest

from evenlag.compare.replay_result import ReplayStep, ReplaySummary
from evenlag.compare.strategies import AuditRow
from evenlag.tables import outputs
from evenlag.tables.columns import MEMBERS, OFFSETS, PLANNED, Column, Table
from evenlag.tables.group import Member
from tests.column_tables import PAGES, ROOT, renewed

OUTPUTS = {name: value for name, value in vars(outputs).items() if isinstance(value, Table)}


def test_names_types_and_doubles_follow_from_the_columns() -> None:
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
    assert fields == ["consumer_id", *PLANNED.names]


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
def test_every_column_of_the_docs_is_explained(table: Table) -> None:
    assert [column.name for column in table if column.of is None and not column.about] == []
    assert len(set(table.names)) == len(table)


@pytest.mark.parametrize("page", PAGES)
def test_the_docs_have_the_columns_as_they_are(page: str) -> None:
    text = (ROOT / page).read_text()
    assert text.count("<!-- columns:") > 1
    assert renewed(text) == text, "python -m tests.column_tables"
