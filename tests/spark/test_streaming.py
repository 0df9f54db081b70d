"""Snapshots from a topic: each audited once and whole, however the stream ends."""

import contextlib
import json
import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evenlag import pipeline
from evenlag.errors import InvalidProblemError, SourceError
from tests.support.fleet import OFFSET_NAMES, fleet, write_csv
from tests.support.frames import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.broker import Broker

SIZE = os.environ.get("EVENLAG_STREAM", "6x4")  # snapshots x groups; the benchmark is 200x50


def rows_of_table(out: Path, name: str) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    return pq.read_table(out / name).to_pylist() if (out / name).exists() else []


def assert_each_audited_once(out: Path, taken: list[list[dict[str, Any]]], broken: int) -> None:
    """Each group and snapshot is audited once, in one batch, and every row that was written is in one place."""
    optima = [
        (row["snapshot_ts"], row["group"])
        for row in rows_of_table(out, "audit")
        if (row["strategy"], row["balance"]) == ("optimal", "both")
    ]
    batches = {(row["snapshot_ts"], row["group"], row["batch"]) for row in rows_of_table(out, "audit")}
    written = [row for rows in taken for row in rows]
    assert Counter(optima) == Counter({(row["snapshot_ts"], row["group"]) for row in written})
    assert len(batches) == len(optima)
    key = ("snapshot_ts", "group", "topic", "partition")
    planned = Counter((*(row[name] for name in key), row["lag"]) for row in rows_of_table(out, "plans"))
    lags = Counter((*(row[name] for name in key), row["log_end_offset"] - row["current_offset"]) for row in written)
    assert planned == lags
    from tests.support.streams import BROKEN

    rejects = rows_of_table(out, "rejects")
    assert Counter((row["reason"], row["row"]) for row in rejects) == Counter(
        {("the line could not be read", BROKEN): broken} if broken else {}
    )


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.broker
def test_a_stream_killed_twice_audits_every_snapshot_once(broker: "Broker", tmp_path: Path) -> None:
    from tests.support.streams import stream_with_kills

    count, groups = map(int, SIZE.split("x"))
    out = tmp_path / "out"
    taken, last = stream_with_kills(broker.bootstrap, out, count, groups, seconds=max(60, count / 2))
    assert_each_audited_once(out, taken, broken=count)
    assert last[-1]["waiting"] == 0
    assert sorted(path.name for path in out.iterdir()) == ["_checkpoint", "_state", "audit", "plans", "rejects"]
    assert len(list((out / "_state").iterdir())) == 1


# ---- commits ------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_commit_killed_anywhere_is_complete_or_absent(spark: "SparkSession", tmp_path: Path) -> None:
    from evenlag.spark.driver.storage import Storage
    from evenlag.spark.jobs.commits import STATE, Commits

    class Killed(BaseException):
        pass

    def write(folder: str, text: str) -> None:
        for name in ("one", "two", STATE):
            path = Path(folder.removeprefix("file://")) / name
            path.mkdir()
            (path / "file").write_text(text)

    table_names = ("one", "two", "three")
    reached = set()
    for steps in range(40):
        out, left = tmp_path / str(steps), [steps]

        def dying(act: Any, left: list[int] = left) -> Any:
            def call(*arguments: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
                return act(*arguments)

            return call

        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
            for name in ("rename", "remove", "make"):
                patch.setattr(Storage, name, dying(getattr(Storage, name)))
            commits = Commits(spark, out, table_names)
            for position, text in ((4, "first"), (5, "second")):
                write(commits.begin(), text)
                commits.commit(position)
        again = Commits(spark, out, table_names)
        assert (again.number, again.position) in {(-1, -1), (0, 4), (1, 5)}
        reached.add(again.number)
        texts = ["first", "second"][: again.number + 1]
        for table in ("one", "two"):
            found = {path.name: (path / "file").read_text() for path in (out / table).glob("*")}
            assert found == {f"batch={number}": text for number, text in enumerate(texts)}
        if again.state is not None:
            assert (Path(again.state.removeprefix("file://")) / "file").read_text() == texts[-1]
        assert not list(out.glob("_commit*"))
        if left[0] >= 0:
            break
    assert reached == {-1, 0, 1}
    assert left[0] >= 0, "one was not killed"


# ---- which snapshots are whole ------------------------------------------------------------------------------------


class Model:
    """The rule in plain Python: the fate of rows (group, time, number, announced, at), batch by batch."""

    def __init__(self, settle: int) -> None:
        self.settle = settle
        self.waiting: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self.audited: dict[str, list[int]] = {}

    def take(self, rows: list[dict[str, Any]], flush: bool = False) -> tuple[set[str], set[str]]:
        from evenlag.spark.native.fates import REMEMBERED

        latest = {group: max(times) for group, times in self.audited.items() if times}
        for group, time in self.waiting:
            latest[group] = max(latest.get(group, 0), time)
        late, newest = [], max((row["at"] for row in rows), default=0)
        old = set(self.waiting)
        for row in rows:
            key, done = (row["group"], row["time"]), self.audited.get(row["group"], [])
            full = len(done) >= REMEMBERED
            if key not in old and (row["time"] in done or (full and row["time"] < min(done))):
                late.append(row["id"])
            else:
                self.waiting.setdefault(key, []).append(row)
        due = []
        for (group, time), mine in list(self.waiting.items()):
            announced = max((row["announced"] for row in mine if row["announced"]), default=None)
            came = len({row["id"] for row in mine})
            whole = time < latest.get(group, -1) if announced is None else came >= announced
            quiet = bool(rows) and max(row["at"] for row in mine) < newest - self.settle
            if whole or quiet or flush:
                due += [row["id"] for row in self.waiting.pop((group, time))]
                self.audited[group] = sorted({*self.audited.get(group, []), time})[-REMEMBERED:]
        return set(due), set(late)


@pytest.mark.spark
def test_complete_late_and_waiting_snapshots_equal_the_rule_in_plain_python(spark: "SparkSession") -> None:
    from pyspark.sql import functions as sf

    from evenlag.spark.native import fates as found

    rng = random.Random(1)
    model = Model(settle=40)
    waiting, audited = spark.createDataFrame([], found.ROWS), spark.createDataFrame([], found.AUDITED)
    fates: Counter[str] = Counter()
    for step in range(7):
        rows = []
        for n in range(60):
            time = max(0, step * 6 + rng.choice([-30, -4, -1, 0, 1, 2, 3]))
            group = rng.choice("abc") if step < 4 else rng.choice("ab")
            announced = 3 if group == "b" else None
            text = {"group": group, "snapshot_ts": time, "id": f"{step}-{n}"}
            row = {"group": group, "time": time, "announced": announced, "at": step * 20 + rng.randrange(20)}
            line = json.dumps(text | ({"snapshot_rows": announced} if announced else {}))
            rows.append(row | {"id": line})
        flush = step == 6
        rows = [] if flush else rows
        due, late = model.take(rows, flush)
        df = spark.createDataFrame([(row["id"], row["at"] * 10**6) for row in rows], found.ROWS)
        newest = max((row["at"] for row in rows), default=None)
        judged = found.with_fates(
            df, waiting, audited, newest=None if newest is None else newest * 10**6, settle=40, flush=flush
        ).localCheckpoint()
        by_fate = {fate: {row[0] for row in judged.filter(sf.col("fate") == fate).select(found.LINE).collect()}
                   for fate in (found.DUE, found.LATE, found.WAITS)}  # fmt: skip
        assert (by_fate[found.DUE], by_fate[found.LATE]) == (due, late), step
        assert by_fate[found.WAITS] == {row["id"] for mine in model.waiting.values() for row in mine}
        fates.update({fate: len(lines) for fate, lines in by_fate.items()})
        waiting = judged.filter(sf.col("fate") == found.WAITS).select(found.LINE, "at").localCheckpoint()
        keys = judged.filter(sf.col("fate") == found.DUE).select("snapshot_ts", "group").distinct()
        audited = found.latest(audited.unionByName(keys)).localCheckpoint()
    assert min(fates.values()) > 5, "each fate was met"


# ---- the topic ----------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.broker
def test_a_topic_read_as_a_batch_equals_the_table(
    kafka_spark: "SparkSession", broker: "Broker", tmp_path: Path
) -> None:
    from tests.support.streams import send
    from tests.support.traffic import create_topics

    create_topics(broker.bootstrap, {"batch-rows": 2})
    offsets, _ = fleet(3)
    broken: list[str | bytes | None] = ["[1]", "null", "", None, b"\xff{", '{"a": 1', '{"group": "g"}']
    send(broker.bootstrap, "batch-rows", [*(json.dumps(row) for row in offsets), *broken])
    topic = f"kafka://{broker.bootstrap}/batch-rows"
    quick: dict[str, Any] = {"method": "lag-aware", "group_time_limit": 0.2}
    pipeline.run(kafka_spark, topic, out=tmp_path / "topic", **quick)
    pipeline.run(kafka_spark, write_csv(tmp_path / "o.csv", offsets, OFFSET_NAMES), out=tmp_path / "file", **quick)
    one, two = (kafka_spark.read.parquet(f"{tmp_path}/{each}/plans") for each in ("topic", "file"))
    assert_same_rows(one, two)
    unread = "the line could not be read"
    assert_same_rows(
        kafka_spark.read.parquet(f"{tmp_path}/topic/rejects").select("reason", "row"),
        [(unread, text) for text in ("[1]", "null", "", "", "\ufffd{", '{"a": 1')]
        + [("snapshot_ts is missing", '{"group": "g"}')],
    )


@pytest.mark.spark
@pytest.mark.broker
def test_a_stream_audits_each_snapshot_without_a_forecast(
    kafka_spark: "SparkSession", broker: "Broker", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenlag.compare import audit
    from evenlag.model.problem import Problem
    from evenlag.spark.jobs.commits import Commits
    from tests.support.streams import send
    from tests.support.traffic import create_topics

    create_topics(broker.bootstrap, {"hourly-rows": 1})
    ends = [[100 + (p + 1) ** 2 * 1_000 * hour for p in range(5)] for hour in range(3)]
    rows = [
        {
            "snapshot_ts": f"2026-01-01T0{hour}:00:00Z", "group": "g", "topic": "t", "partition": p,
            "log_start_offset": 0, "log_end_offset": ends[hour][p], "current_offset": 10 * p,
            "consumer_id": f"c{p % 2}",
        }
        for hour in range(3)
        for p in range(5)
    ]  # fmt: skip
    send(broker.bootstrap, "hourly-rows", [json.dumps(row) for row in rows])
    topic = f"kafka://{broker.bootstrap}/hourly-rows"
    written, adopt = [], Commits.adopt

    def listed(commits: "Commits", job: str, tables: Sequence[str]) -> None:
        written.append({path.name for path in Path(job.removeprefix("file://")).iterdir()})
        adopt(commits, job, tables)

    monkeypatch.setattr(Commits, "adopt", listed)
    batches = pipeline.stream(kafka_spark, topic, out=tmp_path / "out", once=True, group_time_limit=0.2)
    assert max(batch.snapshots for batch in batches) > 1, "there would be a record"
    assert written == [{"plans", "audit", "rejects"}] * len(written), "the stream discards other tables"
    owned = {"c0": [("t", 0), ("t", 2), ("t", 4)], "c1": [("t", 1), ("t", 3)]}
    wanted = {}
    for hour in range(3):
        lags = {"t": [end - 10 * p for p, end in enumerate(ends[hour])]}
        problem = Problem.from_lags(lags, {"c0": ["t"], "c1": ["t"]}, owned=owned)
        wanted |= {(f"2026-01-01T0{hour}:00:00Z", row.strategy): row.spread for row in audit(problem).rows}
    found = {(row["snapshot_ts"], row["strategy"]): row["spread"] for row in rows_of_table(tmp_path / "out", "audit")}
    assert found.keys() == wanted.keys()
    assert all(found[key] == wanted[key] for key in wanted if key[1] != "optimal")


@pytest.mark.spark
@pytest.mark.broker
def test_invalid_addresses_and_foreign_folders_are_refused(
    kafka_spark: "SparkSession", broker: "Broker", tmp_path: Path
) -> None:
    from tests.support.streams import send, snapshots
    from tests.support.traffic import create_topics

    for place in ("kafka://", "kafka:a:1/t", "kafka://a:1", "kafka://a:1/t t", "kafka://a/t"):
        with pytest.raises(SourceError, match="not a topic address; write kafka://HOST:PORT/TOPIC"):
            pipeline.read_table(kafka_spark, place, "offsets")
    with pytest.raises(SourceError, match="no Kafka broker answers"):
        pipeline.stream(kafka_spark, "kafka://127.0.0.1:1/t", out=tmp_path / "out")
    topic = f"kafka://{broker.bootstrap}/places"
    with pytest.raises(InvalidProblemError, match="interval"):
        pipeline.stream(kafka_spark, topic, out=tmp_path / "out", interval=-1)
    with pytest.raises(SourceError, match=r"places.*(UnknownTopic|does not host)"):
        pipeline.stream(kafka_spark, topic, out=tmp_path / "out", once=True)
    create_topics(broker.bootstrap, {"places": 1})
    for rows in snapshots(1, 2):
        send(broker.bootstrap, "places", [json.dumps(row | {"snapshot_rows": 6}) for row in rows])
    done = pipeline.stream(
        kafka_spark, topic, out=tmp_path / "out", checkpoint=tmp_path / "notes", once=True, method="lag-aware"
    )
    assert [(batch.rows, batch.snapshots, batch.plans, batch.waiting) for batch in done] == [(12, 2, 12, 0)]
    assert pipeline.stream(kafka_spark, topic, out=tmp_path / "out", checkpoint=tmp_path / "notes", once=True) == []
    with pytest.raises(SourceError, match="use the checkpoint that belongs to this folder"):
        pipeline.stream(kafka_spark, topic, out=tmp_path / "out", once=True)
    with pytest.raises(SourceError, match="use the checkpoint that belongs to this folder"):
        pipeline.stream(kafka_spark, topic, out=tmp_path / "other", checkpoint=tmp_path / "notes", once=True)
    (tmp_path / "full" / "plans").mkdir(parents=True)
    with pytest.raises(SourceError, match="contains 'plans', which is not from a stream"):
        pipeline.stream(kafka_spark, topic, out=tmp_path / "full", once=True)


@pytest.mark.spark
@pytest.mark.broker
def test_waiting_snapshots_are_audited_when_the_topic_falls_silent(
    kafka_spark: "SparkSession", broker: "Broker", tmp_path: Path
) -> None:
    from tests.support.streams import send, snapshots
    from tests.support.traffic import create_topics

    class Enough(Exception):  # noqa: N818
        pass

    batches = []

    def listen(batch: pipeline.Batch) -> None:
        batches.append((batch.rows, batch.snapshots, batch.plans, batch.waiting))
        if batch.snapshots == 2:
            raise Enough

    create_topics(broker.bootstrap, {"silent": 2})
    topic = f"kafka://{broker.bootstrap}/silent"
    for rows in snapshots(1, 2):
        send(broker.bootstrap, "silent", [json.dumps(row) for row in rows])
    with pytest.raises(Enough):
        pipeline.stream(
            kafka_spark, topic, out=tmp_path / "out", interval=0.2, settle=1, method="lag-aware", progress=listen
        )
    assert batches == [(12, 0, 0, 12), (0, 2, 12, 0)]
    send(broker.bootstrap, "silent", [json.dumps(rows[0])])  # again, after its snapshot was audited
    (late,) = pipeline.stream(kafka_spark, topic, out=tmp_path / "out", once=True)
    assert (late.rows, late.snapshots, late.rejects, late.waiting) == (1, 0, 1, 0)
    reject = next(row for row in rows_of_table(tmp_path / "out", "rejects"))
    assert (reject["reason"], json.loads(reject["row"])) == ("arrived after its snapshot was audited", rows[0])
