"""Schemas of `evenlag.spark`: importable without Spark, they list their columns wherever Python shows an object."""

import copy
import pickle
import pydoc
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from evenlag import spark as package
from evenlag.tables import columns, outputs, schemas
from evenlag.tables.columns import Column, Table
from evenlag.tables.schemas import Schema
from tests.support.column_tables import PAGES, ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = [name for name in package.__all__ if name.isupper()]
ALL = {name: getattr(package, name) for name in NAMES}


def test_every_schema_is_a_name_of_the_package() -> None:
    declared = {name for home in (outputs, schemas) for name, value in vars(home).items() if isinstance(value, Schema)}
    assert set(NAMES) == declared
    assert {"PLANS", "AUDIT", "GROUPS", "REJECTS", "OFFSETS", "MEMBERS", "SIZES", "REPLAY_SUMMARY"} <= declared


def test_schemas_are_imported_without_spark() -> None:
    code = (
        "import sys\n"
        "sys.modules['pyspark'] = None\n"  # whoever imports it fails
        f"from evenlag.spark import {', '.join(NAMES)}\n"
        "print(PLANS.names[0], len(SIZES.arrow()), OFFSETS.ddl[:8])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["snapshot_ts", str(len(outputs.SIZES)), "`snapsho"]


def test_the_tables_that_are_read_have_the_columns_that_are_checked() -> None:
    assert schemas.OFFSETS == columns.OFFSETS
    assert schemas.MEMBERS == columns.MEMBERS


@pytest.mark.parametrize("name", NAMES)
def test_the_representation_names_every_column_and_its_type(name: str) -> None:
    listed = re.fullmatch(r"<Schema: (.*)>", repr(ALL[name]))
    assert listed is not None
    pairs = [tuple(pair.split(" ")) for pair in listed[1].split(", ")]
    kinds = [column.ddl if column.of is None else re.sub(r"<`.*", "", column.ddl) for column in ALL[name]]
    assert [pair[0] for pair in pairs] == list(ALL[name].names)
    assert all(shown.startswith(kind) for (_, shown), kind in zip(pairs, kinds, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_help_describes_every_column(name: str) -> None:
    text = pydoc.render_doc(ALL[name], renderer=pydoc.plaintext)
    assert ALL[name].about in text
    assert len(ALL[name].about) > 20
    for column in ALL[name]:
        assert re.search(rf"^ +{column.name} : [A-Z]", text, re.MULTILINE)
        assert column.about
        assert column.about in text


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_show_the_sentences_and_the_columns(name: str) -> None:
    assert ALL[name]._repr_markdown_() == f"{ALL[name].about}\n\n{ALL[name].markdown()}"
    assert [row.split("`")[1] for row in ALL[name].markdown().splitlines()[2:]] == list(ALL[name].names)


def test_help_on_the_package_lists_the_schemas() -> None:
    text = pydoc.render_doc(package, renderer=pydoc.plaintext)
    for name, schema in ALL.items():
        listed = re.search(rf"^    {name} = <Schema: .*\n        (.*)$", text, re.MULTILINE)
        assert listed is not None, name
        assert listed[1] == schema.about


def test_required_columns_are_marked() -> None:
    schema = Schema((Column("topic", "string", "Topic.", required=True), Column("lag", "integer", "Lag.")), "One row.")
    assert schema.__doc__ == (
        "One row.\n\nColumns\n-------\ntopic : STRING, required\n    Topic.\nlag : BIGINT\n    Lag."
    )
    assert repr(schema) == "<Schema: topic STRING, lag BIGINT>"


def test_arrow_types_of_rows_within_a_row() -> None:
    inner = Table(
        (Column("topic", "string"), Column("racks", "racks"), Column("deeper", "structs", of=columns.PLANNED))
    )
    schema = Schema((Column("one", "struct", of=inner), Column("several", "structs", of=inner)), "One row.")
    deeper = pa.list_(pa.struct(list(columns.PLANNED.arrow())))
    row = pa.struct([("topic", pa.string()), ("racks", pa.list_(pa.string())), ("deeper", deeper)])
    assert schema.arrow() == pa.schema([("one", row), ("several", pa.list_(row))])
    flat = [name for name in NAMES if all(column.of is None for column in ALL[name])]
    assert len(flat) == len(NAMES) - 2
    assert all(ALL[name].arrow() == Table(ALL[name]).arrow() for name in flat)


def test_copies_of_a_schema_keep_its_sentences() -> None:
    for again in (pickle.loads(pickle.dumps(outputs.PLANS)), copy.copy(outputs.PLANS), copy.deepcopy(outputs.PLANS)):
        assert isinstance(again, Schema)
        assert again == outputs.PLANS
        assert (again.about, again.__doc__, again.ddl) == (
            outputs.PLANS.about,
            outputs.PLANS.__doc__,
            outputs.PLANS.ddl,
        )


@pytest.mark.parametrize("name", NAMES)
def test_the_docs_list_the_columns_of_every_schema(name: str) -> None:
    assert f"\n<!-- columns: {name} -->\n\n" in "".join((ROOT / page).read_text() for page in PAGES)
    assert f"\n::: evenlag.spark.{name}\n" in (ROOT / "docs/reference/tables.md").read_text()


@pytest.mark.spark
@pytest.mark.parametrize("name", NAMES)
def test_spark_and_arrow_have_the_same_types(spark: "SparkSession", name: str) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    made = spark.createDataFrame([], ALL[name].ddl)
    assert to_arrow_schema(made.schema).remove_metadata().equals(ALL[name].arrow())
