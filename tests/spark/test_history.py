"""The past of groups from `__consumer_offsets`: what its tables say, next to the same in plain Python."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenlag.compare.simulation import ReplayOptions, run
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.protocol.membership import BAD_ASSIGNMENT, BAD_SUBSCRIPTION, OTHER_KIND
from evenlag.protocol.record_decoding import CoordinatorRecord, decode_record
from evenlag.tables.measured import read_past
from evenlag.tables.read import read_snapshots
from tests.support.command import evenlag
from tests.support.coordinator_states import states_in_python
from tests.support.golden_records import golden_records
from tests.support.group_records import Raw
from tests.support.record_frames import records_frame, records_table
from tests.support.written_histories import damaged, log_ends, short_history, written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES = {"mZ0ZY75iQumd3bJW8IFBRA": "shop-orders"}  # of the golden records' topic
HISTORIES = 20
OF_MEMBERS = {OTHER_KIND, BAD_SUBSCRIPTION, BAD_ASSIGNMENT}


def golden() -> list[Raw]:
    return [raw for raw, _ in golden_records()]


def rows(table: "DataFrame", *names: str) -> list[tuple[Any, ...]]:
    found = table.select(*names).collect()
    return [tuple(tuple(each) if isinstance(each, list) else each for each in row) for row in found]


OFFSET_NAMES = ("snapshot_ts", "group", "topic", "partition", "current_offset", "consumer_id")
MEMBER_NAMES = ("snapshot_ts", "group", "consumer_id", "generation", "topics")


@pytest.mark.parametrize("every", [5, 0.4])
def test_snapshots_are_the_state_of_all_records_until_their_time(spark: "SparkSession", every: float) -> None:
    from evenlag.spark import history

    found = history(spark, records_frame(spark, golden()), every=every, topic_names=NAMES)
    assert (found.records, found.used, found.unnamed_topics) == (len(golden()), len(golden()), ())
    times = found.times if every > 1 else found.times[::9]
    offsets, members = states_in_python(golden(), times, NAMES)
    for expected, table, names in ((offsets, found.offsets, OFFSET_NAMES), (members, found.members, MEMBER_NAMES)):
        made = [row for row in rows(table, *names) if row[0] in times]
        assert len(made) == len(set(made))
        assert set(made) == expected
        assert len(made) > 20


def test_rebalances_and_commits_of_a_real_broker(spark: "SparkSession") -> None:
    from evenlag.spark import history

    found = history(spark, records_frame(spark, golden()), topic_names=NAMES)
    seen = rows(found.rebalances, "group", "generation", "why", "members_after", "moved", "forced")
    assert set(seen) >= {
        ("shop-static", 1, "join", 2, 0, 0),
        ("shop-static", 2, "leave", 0, 0, 4),
        ("shop-consumer", 1, "join", 1, 0, 0),
        ("shop-consumer", 2, "join", 2, 2, 0),  # the second member got two of the first's four partitions
        ("shop-consumer", 4, "leave", 0, 0, 4),
        ("shop-regex", 2, "subscription", 1, 0, 0),  # the broker has resolved the regular expression
    }
    [wait] = rows(found.rebalances.filter("`group` = 'shop-python' and generation = 1"), "next_commit_seconds")
    at = {raw.offset: raw.timestamp for raw in golden()}
    assert wait == ((at[56] - at[55]) / 1000,)
    commits = {row[0]: row[1:] for row in rows(found.commits.filter("partition = 1"), "group", "commits", "deleted")}
    assert commits["shop-static"] == (1, 1)  # the group was deleted
    assert commits["shop-commit"] == (1, 0)
    assert "shop-abort" not in commits


def histories() -> Iterator[tuple[str, str, Any]]:
    """Twenty histories of six hours, by the name of their group and the prefix of its topics."""
    for seed in range(HISTORIES):
        yield f"group {seed:02}", f"{seed:02}-", short_history(seed)


@pytest.mark.long
def test_replays_of_twenty_histories_are_the_same_after_a_way_through_kafkas_records(
    spark: "SparkSession", tmp_path: Path
) -> None:
    from evenlag.spark import history

    made = list(histories())
    records = [
        raw for n, (name, prefix, each) in enumerate(made) for raw in written(each, name, prefix, n % 5, 10**6 * n)
    ]
    ends = pa.concat_tables(log_ends(each, prefix) for _, prefix, each in made)
    random.Random(0).shuffle(records)
    found = history(spark, records_frame(spark, records), log_ends=spark.createDataFrame(ends), out=tmp_path / "past")
    assert found.used == found.records == len(records)
    tables = {name: tmp_path / f"{name}.parquet" for name in ("offsets", "members")}
    for name, path in tables.items():
        pq.write_table(pq.read_table(tmp_path / "past" / name), path)
    how = ReplayOptions.of(strategies=("range", "lag-aware"), horizon=0)
    for name, _, original in made:
        again, _ = read_snapshots(tables["offsets"], tables["members"], name, "latest", None)
        expected, got = run(original, how), run(again, how)
        assert [vars(row) for row in got.summary] == [vars(row) for row in expected.summary]
        assert (got.recorded_lag, got.capacity, got.snapshots) == (
            expected.recorded_lag, expected.capacity, expected.snapshots,
        )  # fmt: skip


def test_no_record_is_lost_with_one_in_twenty_damaged(spark: "SparkSession") -> None:
    from evenlag.spark import history

    raw = list(damaged([*golden() * 10, *written(short_history(0), "g", "t-", 1, 1000)], 0.05, random.Random(3)))
    reasons = Counter(
        found.reason for each in raw if not isinstance(found := decode_record(each.key, each.value), CoordinatorRecord)
    )
    assert len(reasons) >= 5
    made = [history(spark, records_frame(spark, raw), topic_names=NAMES, every=3600) for _ in range(2)]
    for each in made:
        passed = dict(rows(each.passed_over, "reason", "records"))
        assert each.records == len(raw) == each.used + sum(passed.values())
        # Members' subscriptions and assignments are looked at too, so that more records may be passed over.
        assert {
            reason: count
            for reason, count in passed.items()
            if "of a member" not in reason and "a classic" not in reason
        } == reasons
    for name in made[0].tables:
        first, second = (sorted(map(str, each.tables[name].collect())) for each in made)
        assert first == second


@pytest.mark.cluster
def test_the_command_writes_all_tables_and_reports_figures(tmp_path: Path) -> None:
    pq.write_table(records_table(golden()), tmp_path / "records.parquet")
    done = evenlag("history", tmp_path / "records.parquet", "--every", "10s", "--out", tmp_path / "past", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["records"], told["used"], told["passed_over"]) == (len(golden()), len(golden()), {})
    assert told["groups"] == 8
    assert "mZ0ZY75iQumd3bJW8IFBRA" in told["warnings"][0]
    tables = {name: pq.read_table(tmp_path / "past" / name) for name in ("offsets", "members", "rebalances", "commits")}
    assert tables["rebalances"].num_rows == told["rebalances"]
    assert sum(tables["commits"]["commits"].to_pylist()) == told["commits"]


@pytest.mark.cluster
def test_a_fleet_is_replayed_over_its_own_rebalances(tmp_path: Path) -> None:
    made = [each for each, _ in zip(histories(), range(2), strict=False)]
    records = [raw for n, (name, prefix, each) in enumerate(made) for raw in written(each, name, prefix, n, 10**6 * n)]
    pq.write_table(records_table(records), tmp_path / "records.parquet")
    pq.write_table(pa.concat_tables(log_ends(each, prefix) for _, prefix, each in made), tmp_path / "ends.parquet")
    past = tmp_path / "past"
    done = evenlag("history", tmp_path / "records.parquet", "--log-ends", tmp_path / "ends.parquet", "--out", past)
    assert done.returncode == 0, done.stderr
    done = evenlag(
        "fleet", "replay", past / "offsets", "--members", past / "members", "--past", past, "--strategies", "range",
        "--horizon", 0, "--out", tmp_path / "replay", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["groups"], told["errors"], told["rejects"]) == (2, [], 0)
    how = ReplayOptions.of(strategies=("range",), horizon=0)
    rows = pq.read_table(tmp_path / "replay" / "summary.parquet").to_pylist()
    for name, _, original in made:
        capacity = read_past(past)[name].capacity
        expected = run(original, replace(how, measured=capacity)).summary
        assert {row["strategy"]: row["mean_spread"] for row in rows if row["group"] == name} == {
            row.strategy: row.mean_spread for row in expected
        }


def test_records_that_cannot_be_used_are_named(spark: "SparkSession", tmp_path: Path) -> None:
    from evenlag.spark import history

    frame = records_frame(spark, golden())
    with pytest.raises(SourceError, match="no column partition; records have key"):
        history(spark, frame.drop("partition"))
    with pytest.raises(SourceError, match="key is string; it must be BINARY"):
        history(spark, frame.withColumn("key", frame["key"].cast("string")))
    with pytest.raises(SourceError, match=r"no record can be used \(the key is null: 1\)"):
        history(spark, records_frame(spark, [Raw(0, 0, 0, None, None)]))
    with pytest.raises(SourceError, match=r"records\.parquet: no such file or folder"):
        history(spark, tmp_path / "records.parquet")
    with pytest.raises(InvalidProblemError, match="every must be a time above 0 s, not 0"):
        history(spark, frame, every=0)
