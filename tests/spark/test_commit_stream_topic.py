"""Streams of commits on a real broker: killed at any moment, and its own topic of commits."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from benchmarks.weeks import KINDS
from benchmarks.weeks import history as synthetic_history
from evenlag.live import snapshot
from tests.support.broker import Broker
from tests.support.command import evenlag
from tests.support.group_records import Raw, commit_own, transact
from tests.support.record_frames import records_frame
from tests.support.streams import kill_at_random, running
from tests.support.traffic import QUIET, create_topics, produce, running_group
from tests.support.written_histories import written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.broker

STATE = ("group", "topic", "partition", "current_offset", "consumer_id")
PLACE = ("group", "topic", "partition")


def rows_of(out: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(out / name).to_pylist() if (out / name).exists() else []
    return rows


def written_slowly(bootstrap: str, topic: str, records: Sequence[Raw], seconds: float) -> threading.Thread:
    """Write records from a thread, those of one time at once."""
    times = [list(same) for _, same in groupby(records, key=lambda each: each.timestamp)]

    def write() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
        for same in times:
            for each in same:
                producer.produce(topic, each.value, each.key, partition=each.partition, timestamp=each.timestamp)
            assert not producer.flush(60)
            time.sleep(seconds / len(times))

    thread = threading.Thread(target=write)
    thread.start()
    return thread


@pytest.mark.spark
def test_a_stream_of_commits_killed_twice_makes_each_snapshot_once(
    spark: "SparkSession", broker: Broker, tmp_path: Path
) -> None:
    from evenlag.spark import history

    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rng, topic, out = random.Random(seed), f"commits-{seed}", tmp_path / "out"
    made = [(f"group {n}", f"{topic}-{n}-", synthetic_history(n, list(KINDS)[n], days=0.25)) for n in range(3)]
    records = [raw for n, (name, prefix, each) in enumerate(made) for raw in written(each, name, prefix, n)]
    records.sort(key=lambda each: (each.timestamp, each.partition, each.offset))
    sizes: Counter[str] = Counter()
    for _, prefix, each in made:
        for name, number in each[0].problem.partitions:
            sizes[prefix + name] = max(sizes[prefix + name], number + 1)
    create_topics(broker.bootstrap, {topic: 3, **sizes})
    words = ("--from-commits", "--every", "10m", "--group-time-limit", "0.05", "--gap", "0.2")
    place = f"kafka://{broker.bootstrap}/{topic}"
    writing = written_slowly(broker.bootstrap, topic, records, 40.0)
    kill_at_random(place, out, words, rng)
    writing.join()
    with running(place, out, *words, "--once") as process:
        output, wrong = process.communicate()
    assert process.returncode == 0, wrong
    batches = [json.loads(line) for line in output.splitlines()]
    assert batches[-1]["kept"] == len({each.key for each in records})
    offsets = rows_of(out, "offsets")
    times = sorted({row["snapshot_ts"] for row in offsets})
    ends = pa.table({"snapshot_ts": times, "topic": ["none"] * len(times), "partition": [0] * len(times),
                     "log_end_offset": [0] * len(times), "group": ["none"] * len(times)})  # fmt: skip
    whole = history(spark, records_frame(spark, records), log_ends=spark.createDataFrame(ends))
    expected = {tuple(row) for row in whole.offsets.select("snapshot_ts", *STATE).collect()}
    found = [(row["snapshot_ts"], *(row[name] for name in STATE)) for row in offsets]
    assert len(found) == len(set(found))
    assert {each for each in found if each[4] is not None or each[5] is not None} == expected
    audits = Counter(
        (row["snapshot_ts"], row["group"])
        for row in rows_of(out, "audit")
        if (row["strategy"], row["balance"]) == ("optimal", "both")
    )
    assert audits == Counter({(row["snapshot_ts"], row["group"]) for row in offsets})
    assert len(rows_of(out, "plans")) + len(rows_of(out, "rejects")) == len(offsets)
    assert sorted(path.name for path in out.iterdir() if path.name[0] == "_") == ["_checkpoint", "_state"]
    assert len(list((out / "_state").iterdir())) == 1


OFFSET_COLUMNS = ("log_start_offset", "log_end_offset", "current_offset", "lag", "consumer_id", "client_id", "host")
MEMBER_COLUMNS = ("client_id", "host", "topics", "protocol", "group_instance_id", "generation", "group_epoch")


def by_key(rows: Sequence[dict[str, Any]], key: Sequence[str], names: Sequence[str], batch: int | None) -> Any:
    """Return the values of rows of our groups by their key, of one batch."""
    return {
        tuple(row[name] for name in key): tuple(row[name] for name in names)
        for row in rows
        if row["group"].startswith("streamed-") and batch in (None, row.get("batch"))
    }


def test_snapshots_from_the_brokers_own_topic_are_what_the_brokers_describe(broker: Broker, tmp_path: Path) -> None:
    bootstrap, topic, out = broker.bootstrap, "streamed-orders", tmp_path / "out"
    create_topics(bootstrap, {topic: 4})
    produce(bootstrap, topic, [30, 0, 50, 70])
    offsets = {(topic, number): 10 * number for number in range(4)}
    groups, both = ["streamed-classic", "streamed-consumer", "streamed-commit"], {"c0": [topic], "c1": [topic]}
    command = ("stream", f"kafka://{bootstrap}", "--from-commits", "--once", "--out", out, "--method", "lag-aware")
    with (
        running_group(bootstrap, groups[0], both, {"c0": {"group.instance.id": "node-0"}}) as classic,
        running_group(bootstrap, groups[1], both, group_protocol="consumer") as consumer,
    ):
        for end in ("commit", "abort"):
            transact(bootstrap, f"streamed-{end}", {(topic, 0): 7}, end)
        for batch in range(2):
            for each in (classic, consumer):
                commit_own(each, {key: at + batch for key, at in offsets.items()})
            done = evenlag(*command, "--json")
            assert done.returncode == 0, done.stderr
            taken = snapshot(bootstrap, groups, timeout=60.0)
            told = [json.loads(line) for line in done.stdout.splitlines()]
            assert [each["snapshot_ts"] is None for each in told] == [True, False]
            made = told[-1]["number"]
            found = by_key(rows_of(out, "offsets"), PLACE, OFFSET_COLUMNS, made)
            assert found == by_key(taken.offsets, PLACE, OFFSET_COLUMNS, None)  # nothing of streamed-abort
            key = ("group", "consumer_id")
            found = by_key(rows_of(out, "members"), key, MEMBER_COLUMNS, made)
            assert found == by_key(taken.members, key, MEMBER_COLUMNS, None)
            planned = by_key(rows_of(out, "plans"), PLACE, ("lag",), made)
            lags = by_key(taken.offsets, PLACE, ("lag",), None)
            assert planned == {key: lag if lag != (None,) else (0,) for key, lag in lags.items()}
        text = evenlag(*command)
    assert text.returncode == 0, text.stderr
    assert text.stdout == "", "there are no new records"
