"""Pauses of rebalances and rates of members, from groups in which both are known."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from evenlag.model.rates import time_text
from evenlag.tables.measured import read_past
from tests.support.record_frames import records_frame
from tests.support.scripted_pasts import EVERY, START, TOPIC, TOPIC_ID, ScriptedPast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTE = 60
LASTED = 601  # seconds from the first record of all groups to the last one


def eager() -> ScriptedPast:
    """All stop at 300.0 and commit; the rebalance ends at 300.5, and readers commit 3 s later."""
    past = ScriptedPast("eager", 0)
    past.rebalance(0, {"a": [0, 1]})
    past.commits(1, 300, [0, 1])
    past.commit(300.0, {0: 0, 1: 0})
    past.rebalance(300.5, {"a": [0], "b": [1]})
    past.commits(303.5, 600, [0, 1])
    return past


def cooperative() -> ScriptedPast:
    """Partition 1 is revoked at 300.0, after the first rebalance, and given away by the second at 303.0."""
    past = ScriptedPast("cooperative", 1)
    past.rebalance(0, {"a": [0, 1]})
    past.commits(1, 299, [0, 1])
    past.rebalance(299.9, {"a": [0], "b": []})
    past.commit(300.0, {0: 0, 1: 0})
    past.rebalance(303.0, {"a": [0], "b": [1]})
    past.commits(301, 600, [0])
    past.commits(305, 600, [1])
    return past


def consumer() -> ScriptedPast:
    """KIP-848: the target is made at 300, a gives partition 1 up at 301 and b has it at 304, but warms up for 30 s."""
    past = ScriptedPast("consumer", 2)
    past.target(0, 1, {"a": [0, 1]})
    past.current(0, "a", 1, [0, 1])
    past.commits(1, 300, [0, 1])
    past.target(300, 2, {"a": [0], "b": [1]})
    past.current(300.2, "a", 1, [0, 1])
    past.commit(301.0, {1: 0})
    past.current(301.1, "a", 2, [0])
    past.current(304.0, "b", 2, [1])
    past.commits(302, 600, [0])
    past.commits(304 + 30 + EVERY, 600, [1])
    return past


def crashed() -> ScriptedPast:
    """Member b dies right after its commit at 296; its session ends at 341. Partition 2 has hardly any messages."""
    past = ScriptedPast("crashed", 3)
    past.rebalance(0, {"a": [0], "b": [1, 2]})
    past.commits(1, 297, [0, 1])
    past.commit(10, {2: 0})
    past.commit(200, {2: 1})
    past.commits(301, 600, [0])
    past.rebalance(341.0, {"a": [0, 1, 2]})
    past.commits(344, 600, [1])
    past.commit(500, {2: 2})
    return past


def emptied() -> ScriptedPast:
    """Everybody leaves for two minutes: a deployment, and no rebalance makes anybody wait."""
    past = ScriptedPast("emptied", 4)
    past.rebalance(0, {"a": [0]})
    past.commits(1, 300, [0])
    past.rebalance(300.0, {})
    past.rebalance(420.0, {"c": [0]})
    past.commits(425, 600, [0])
    return past


def rare() -> ScriptedPast:
    """Commits every five minutes, none when partitions are revoked: nobody knows when a stopped to read."""
    past = ScriptedPast("rare", 5)
    past.rebalance(0, {"a": [0, 1]})
    for at in (1, 301, 601):
        past.commit(at, {0: at, 1: at})
    past.rebalance(400.0, {"a": [0], "b": [1]})
    return past


def chased() -> ScriptedPast:
    """Partition 1 goes to b at 310 and on to c at 320, and nobody commits it between 300 and 321."""
    past = ScriptedPast("chased", 6)
    past.rebalance(0, {"a": [0, 1]})
    past.commits(1, 300, [0, 1])
    past.commit(300.0, {0: 0, 1: 0})
    past.rebalance(310.0, {"a": [0], "b": [1]})
    past.rebalance(320.0, {"a": [0], "c": [1]})
    past.commits(301, 600, [0])
    past.commits(320 + EVERY, 600, [1])
    return past


EXPECTED = {
    "eager": [0.5],
    "cooperative": [3.0],
    "consumer": [3.0 + 30.0],
    "crashed": [45.0],
    "emptied": [],
    "rare": [],
    "chased": [20.0, 20.0],
}
PAUSED = {name: sum(pauses) for name, pauses in EXPECTED.items()} | {"chased": 20.0}  # both pauses are the same 20 s


@pytest.fixture(scope="module")
def scripted(spark: "SparkSession") -> Any:
    from evenlag.spark import history

    records = [
        raw for make in (eager, cooperative, consumer, crashed, emptied, rare, chased) for raw in make().records()
    ]
    return history(spark, records_frame(spark, records), every=MINUTE, topic_names={TOPIC_ID: TOPIC})


def test_pauses_are_those_that_the_groups_were_made_with(scripted: Any) -> None:
    found: dict[str, list[float]] = {name: [] for name in EXPECTED}
    for row in scripted.rebalances.filter("pause_seconds is not null").collect():
        found[row["group"]].append(row["pause_seconds"])
    assert {name: pytest.approx(each) for name, each in EXPECTED.items()} == found


def test_groups_are_counted_by_their_rebalances(scripted: Any) -> None:
    groups = {row["group"]: row.asDict() for row in scripted.groups.collect()}
    assert set(groups) == set(EXPECTED)
    each = groups["crashed"]
    # The first rebalance is the group's own beginning, which the records show.
    assert (each["rebalances"], each["joins"], each["leaves"], each["others"], each["forced"]) == (2, 1, 1, 0, 2)
    assert (each["pauses"], each["pause_seconds"], each["paused_seconds"]) == (1, 45.0, 45.0)
    assert each["paused_share"] == pytest.approx(45 / LASTED)
    assert {name: group["paused_seconds"] for name, group in groups.items()} == pytest.approx(PAUSED)
    assert each["rebalances_per_hour"] == 2  # of ten minutes, which count as an hour
    assert groups["cooperative"]["moved"] == 1
    assert groups["cooperative"]["others"] == 1  # its second step
    assert (groups["emptied"]["pauses"], groups["emptied"]["pause_seconds"]) == (0, None)


def test_tables_have_their_declared_columns(scripted: Any, spark: "SparkSession") -> None:
    from evenlag.spark import COMMITS, PASSED_OVER, PAST_GROUPS, REBALANCES

    declared = {"rebalances": REBALANCES, "commits": COMMITS, "groups": PAST_GROUPS, "passed_over": PASSED_OVER}
    for name, schema in declared.items():
        wanted = spark.createDataFrame([], schema.ddl).schema.simpleString()
        assert scripted.tables[name].schema.simpleString() == wanted, name


def test_readers_get_what_was_written(scripted: Any, spark: "SparkSession", tmp_path: Path) -> None:
    from evenlag.spark.jobs.by_history import past_at
    from evenlag.spark.jobs.history import past_figures

    scripted.write(tmp_path / "past")
    past = read_past(tmp_path / "past")
    assert past == past_at(spark, tmp_path / "past")
    assert {name: each.pause for name, each in past.items()} == {
        name: each[0] if each else None for name, each in EXPECTED.items()
    }
    found = past_figures(spark, tmp_path / "past", 2)
    assert (found["groups"], found["rebalancing"], found["rebalances"]) == (7, 7, 17)
    assert [row["group"] for row in found["most_rebalances"]] == ["chased", "cooperative"]  # three in ten minutes
    assert found["paused_seconds"] == pytest.approx(sum(PAUSED.values()))


RATE = 40  # messages a second of each partition while a member has a backlog


def reading(name: str, partition: int) -> tuple[ScriptedPast, dict[int, dict[int, int]]]:
    """Member a reads 80 messages a second from 600 to 1500 s, with messages left, and 2 a second at other times.

    Member b never has a backlog; at 1000 s it skips a million messages.
    """
    past = ScriptedPast(name, partition)
    past.rebalance(0, {"a": [0, 1], "b": [2]})
    past.commits(0, 600, [0, 1], 0, 1)
    past.commits(600, 1500, [0, 1], 600, RATE)
    past.commits(1500, 2400, [0, 1], 600 + RATE * 900, 1)
    past.commits(0, 1000, [2], 0, 10)
    past.commits(1000, 12_000, [2], 10_000_000, 10)
    until = 600 + RATE * 900
    ends = {}
    for at in range(0, 2400, 300):
        end = at if at < 600 else max(until, until + at - 1500)
        ends[at] = {0: end, 1: end, 2: 10 * at if at < 1000 else 10_000_000 + 10 * (at - 1000)}
    return past, ends


def test_rates_of_members_with_a_backlog_are_the_capacity(spark: "SparkSession") -> None:
    from evenlag.spark import history

    past, ends = reading("reading", 0)
    rows = [
        {
            "snapshot_ts": time_text(datetime.fromtimestamp(START + at, UTC)),
            "topic": TOPIC,
            "partition": number,
            "log_end_offset": end,
        }
        for at, of in ends.items()
        for number, end in of.items()
    ]
    frame = records_frame(spark, past.records())
    with_ends = history(spark, frame, log_ends=spark.createDataFrame(pa.Table.from_pylist(rows)))
    [known] = with_ends.groups.collect()
    assert (known["capacity"], known["capacity_source"]) == (2 * RATE, "backlog")
    assert 10 <= known["capacity_cases"] <= 15

    [least] = history(spark, frame, every=5 * MINUTE).groups.collect()
    assert least["capacity_source"] == "highest"
    assert 10 <= least["capacity"] <= 2 * RATE  # of b's 200 minutes, one has the skipped messages
