"""The text of kafka-consumer-groups of many groups, as it was printed, through the pipeline."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evenlag import pipeline
from evenlag.errors import SourceError
from tests.support.command import evenlag
from tests.support.fleet import fleet
from tests.support.frames import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
COLUMNS = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
QUICK: dict[str, Any] = {"method": "lag-aware", "group_time_limit": 0.05}


def printed_offsets(offsets: list[dict[str, Any]]) -> str:
    """Return the text as Kafka prints it: a header for each group, and a message for groups without members."""
    lines = []
    for group in sorted({row["group"] for row in offsets}):
        lines += ["", f"Consumer group '{group}' has no active members.", "", COLUMNS.replace(" ", "   ")]
        for row in (row for row in offsets if row["group"] == group):
            start, end, owner = row["current_offset"], row["log_end_offset"], row["consumer_id"] or "-"
            fields = (group, row["topic"], row["partition"], start, end, end - start, owner, "/10.0.0.1", "client")
            lines.append("  ".join(map(str, fields)))
    return "\n".join(lines) + "\n"


def printed_members(members: list[dict[str, Any]]) -> str:
    lines = ["GROUP  CONSUMER-ID  HOST  CLIENT-ID  #PARTITIONS"]
    return "\n".join(lines + [f"{row['group']}  {row['consumer_id']}  /10.0.0.1  client  0" for row in members]) + "\n"


def test_every_row_of_a_text_of_many_groups_is_planned(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(5)
    (tmp_path / "groups.txt").write_text(printed_offsets(offsets) + "g004  orders  77  1\n")
    (tmp_path / "members.txt").write_text(printed_members(members))
    out = tmp_path / "out"
    summary = pipeline.run(spark, tmp_path / "groups.txt", tmp_path / "members.txt", out=out, **QUICK)
    assert (summary.rows, summary.plans, summary.member_rows) == (61, 60, len(members))
    (reject,) = spark.read.parquet(f"{out}/rejects").collect()
    assert (reject["reason"], reject["row"]) == ("the line could not be read", "g004  orders  77  1")
    plans = spark.read.parquet(f"{out}/plans")
    key = ("group", "topic", "partition")
    assert_same_rows(
        plans.select("snapshot_ts", *key, "lag"),
        [("snapshot", *(row[name] for name in key), row["log_end_offset"] - row["current_offset"]) for row in offsets],
    )
    held = {row["consumer_id"] for row in plans.filter("`group` = 'g000'").collect()}
    assert held == {row["consumer_id"] for row in members if row["group"] == "g000"}


def test_each_text_of_a_folder_has_its_time(spark: "SparkSession", tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    offsets, _ = fleet(2)
    with gzip.open(folder / "20260131T120000Z.txt.gz", "wt") as file:
        file.write(printed_offsets(offsets))
    (folder / "2026-01-31T13-00-00Z.txt").write_text(printed_offsets(offsets[:12]))
    read = pipeline.read_table(spark, folder, "offsets")
    assert Counter(row["snapshot_ts"] for row in read.collect()) == {
        "2026-01-31T12:00:00Z": 24,
        "2026-01-31T13:00:00Z": 12,
    }
    owners = pipeline.read_table(spark, folder, "members").filter("snapshot_ts like '%T12%'")
    expected = {(row["group"], row["consumer_id"]) for row in offsets} - {("g000", None), ("g001", None)}
    assert_same_rows(owners.select("group", "consumer_id"), expected)  # those that the text names, each once
    (folder / "notes.txt").write_text("nothing of the kind\n")
    with pytest.raises(SourceError, match="no header with TOPIC, PARTITION, CURRENT-OFFSET"):
        pipeline.run(spark, folder, out=tmp_path / "out", **QUICK)


def test_lines_of_other_programs_are_rejects_and_idle_members_are_planned_for(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """The text is sorted, so that its header is somewhere; it names its members too."""
    offsets, members = fleet(2)
    text = printed_members(members) + printed_offsets(offsets) + "[2026-01-31 12:00:01,123] WARN no broker (kafka)\n"
    place = tmp_path / "offsets-2026-01-31_12-00.txt"
    place.write_text("\n".join(sorted(text.splitlines())))
    summary = pipeline.run(spark, place, place, out=tmp_path / "out", **QUICK)
    assert (summary.rows, summary.plans) == (len(offsets) + 1, len(offsets))
    rejects = spark.read.parquet(f"{tmp_path}/out/rejects").filter("source = 'offsets'").collect()
    assert [(row["reason"], row["row"][:23]) for row in rejects] == [
        ("the line could not be read", "[2026-01-31 12:00:01,12")
    ]
    plans = spark.read.parquet(f"{tmp_path}/out/plans").filter("`group` = 'g000'").collect()
    assert {row["snapshot_ts"] for row in plans} == {"2026-01-31T12:00:00Z"}
    named = {row["consumer_id"] for row in (*members, *offsets) if row["group"] == "g000"} - {None}
    assert {row["consumer_id"] for row in plans} == named


@pytest.mark.usefixtures("spark")
def test_the_command_audits_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets, _ = fleet(2)
    (tmp_path / "groups.txt").write_text(printed_offsets(offsets))
    monkeypatch.chdir(tmp_path)
    done = evenlag("fleet", "audit", "groups.txt", "--out", "out", "--group-time-limit", 0.2, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["plans"] == 24
    assert (tmp_path / "out" / "plans").is_dir()
