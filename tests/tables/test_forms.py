"""A random group in every form that is read: the same problem, facts and notes from all, as far as each can tell."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import evenlag
from evenlag.tables.columns import MEMBERS, OFFSETS
from tests.support.problems import seeds
from tests.support.told_forms import FORMS, OF_MEMBERS, member_rows, offset_rows, to_arrow
from tests.support.told_groups import told_group
from tests.support.told_reference import TELLS, Told, of_problem, reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def differences(name: str, seed: int, folder: Path) -> dict[str, tuple[object, object]]:
    """Return where a form gives another group than the reference: what it gives, and what it should."""
    form, group = FORMS[name], told_group(seed)
    shown = form.shown(group)
    if shown is None:
        return {}
    wanted = reference(shown[0], form.facts(), form.source.format(folder))
    wanted.notes = sorted([*wanted.notes, *shown[1]])
    found = of_problem(evenlag.read(**form.write(group, folder)))
    return {
        field: (mine, theirs)
        for field in Told.__dataclass_fields__
        if (mine := getattr(found, field)) != (theirs := getattr(wanted, field))
    }


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_group_that_it_tells(name: str, tmp_path: Path) -> None:
    for seed in seeds(20):
        assert differences(name, seed, tmp_path) == {}, seed


@pytest.mark.spark
def test_frames_of_spark_give_the_same_groups(spark: "SparkSession", tmp_path: Path) -> None:
    from evenlag import pipeline

    groups = [replace(told_group(seed), name=f"g{seed}") for seed in seeds(20)]
    offsets, members = (
        spark.createDataFrame(to_arrow([row for group in groups for row in rows(group)], table.names, tmp_path))
        for rows, table in ((offset_rows, OFFSETS), (member_rows, MEMBERS))
    )
    for group in groups:
        problem = evenlag.read(offsets, members=members, group=group.name)
        assert of_problem(problem) == reference(group, f"{OF_MEMBERS} start".split(), "the DataFrame of members")
    solved = pipeline.solve(offsets, members, want="plan", method="lag-aware", time_limit=None)
    plans = solved.plans.collect()
    for group in groups:
        wanted = reference(group, f"{OF_MEMBERS} start".split(), "")
        mine = {(row["topic"], row["partition"]): row for row in plans if row["group"] == group.name}
        assert {place: row["lag"] for place, row in mine.items()} == wanted.lags
        owners = {place: row["previous_consumer_id"] for place, row in mine.items() if row["previous_consumer_id"]}
        assert owners == wanted.owners


def test_every_fact_is_told_by_a_form() -> None:
    assert {word for form in FORMS.values() for word in form.facts()} == {*TELLS}
