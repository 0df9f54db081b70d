"""Streams of commits on a real broker: killed at any moment, and its own topic of commits."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from evenlag.live import snapshot
from tests.support.broker import Broker
from tests.support.command import evenlag
from tests.support.coordinator_states import states_in_python
from tests.support.group_records import Raw, commit_own, transact
from tests.support.streams import in_background, kill_at_random, running
from tests.support.traffic import QUIET, create_topics, produce, running_group
from tests.support.written_histories import short_history, written

pytestmark = pytest.mark.broker

STATE = ("group", "topic", "partition", "current_offset", "consumer_id")
PLACE = ("group", "topic", "partition")


def rows_of(out: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(out / name).to_pylist() if (out / name).exists() else []
    return rows


def steps_by_time(bootstrap: str, topic: str, records: Sequence[Raw]) -> Iterator[Callable[[], None]]:
    """Yield functions that write the records, each those of one time."""
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})

    def write(same: Sequence[Raw]) -> None:
        for each in same:
            producer.produce(topic, each.value, each.key, partition=each.partition, timestamp=each.timestamp)
        assert not producer.flush(60)

    for _, same in groupby(records, key=lambda each: each.timestamp):
        yield partial(write, list(same))


@pytest.mark.long
@pytest.mark.spark
def test_a_stream_of_commits_killed_twice_makes_each_snapshot_once(broker: Broker, tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rng, topic, out = random.Random(seed), f"commits-{seed}", tmp_path / "out"
    made = [(f"group {n}", f"{topic}-{n}-", short_history(n)) for n in range(3)]
    records = [raw for n, (name, prefix, each) in enumerate(made) for raw in written(each, name, prefix, n)]
    records.sort(key=lambda each: (each.timestamp, each.partition, each.offset))
    sizes: Counter[str] = Counter()
    for _, prefix, each in made:
        for name, number in each[0].problem.partitions:
            sizes[prefix + name] = max(sizes[prefix + name], number + 1)
    create_topics(broker.bootstrap, {topic: 3, **sizes}, **{"retention.ms": "-1"})  # the records are of the past
    words = ("--from-commits", "--every", "10m", "--group-time-limit", "0.05", "--gap", "0.2")
    place = f"kafka://{broker.bootstrap}/{topic}"
    with in_background(steps_by_time(broker.bootstrap, topic, records), pause=2):
        kill_at_random(place, out, words, rng)
    with running(place, out, *words, "--once") as process:
        output, wrong = process.communicate()
    assert process.returncode == 0, wrong
    batches = [json.loads(line) for line in output.splitlines()]
    assert batches[-1]["kept"] == len({each.key for each in records})
    offsets = rows_of(out, "offsets")
    times = sorted({row["snapshot_ts"] for row in offsets})
    expected, _ = states_in_python(records, times)
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


@pytest.mark.usefixtures("spark")  # the commands run in its session
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
