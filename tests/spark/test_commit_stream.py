"""Snapshots from a stream of commits: those that the batch job makes, from a state as large as the groups."""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenlag.errors import InvalidProblemError
from evenlag.protocol.record_decoding import CoordinatorRecord, decode_record
from tests.support import coordinator_bytes as encode
from tests.support.coordinator_states import millis
from tests.support.golden_records import golden_records
from tests.support.group_records import Raw
from tests.support.record_frames import records_frame
from tests.support.written_histories import damaged, log_ends, short_history, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from evenlag.spark.jobs.commit_stream import CommitBatch, CommitJob

pytestmark = pytest.mark.spark

NAMES = {"mZ0ZY75iQumd3bJW8IFBRA": "shop-orders"}  # of the golden records' topic
EVERY = 600_000  # milliseconds
OFFSETS = ("snapshot_ts", "group", "topic", "partition", "current_offset", "lag", "consumer_id", "client_id", "host")
MEMBERS = ("snapshot_ts", "group", "consumer_id", "client_id", "topics", "protocol", "generation", "group_epoch")


class KnownLogs:
    """Log ends by time from a table."""

    def __init__(self, ends: pa.Table) -> None:
        self.rows = ends.to_pylist()

    def topic_names(self) -> Mapping[str, str]:
        return NAMES

    def log_offsets(self, topics: Collection[str], at: int) -> list[tuple[str, int, int, int]]:
        return [
            (row["topic"], row["partition"], row["log_start_offset"], row["log_end_offset"])
            for row in self.rows
            if row["topic"] in topics and millis(row["snapshot_ts"]) == at
        ]


def job_in(
    spark: "SparkSession", out: Path, logs: Any, batches: list["CommitBatch"], every: int | None = EVERY
) -> "CommitJob":
    """Return a job that writes snapshots, and empty tables in place of plans."""
    from pyspark.sql import DataFrame

    from evenlag.spark.jobs.batch import TABLES as PLANNED
    from evenlag.spark.jobs.batch import RunReport
    from evenlag.spark.jobs.commit_stream import TABLES, CommitJob
    from evenlag.spark.jobs.commits import Commits

    def audit(offsets: DataFrame, _: DataFrame | None, folder: str) -> RunReport:
        for name in PLANNED:
            place = Path(folder.removeprefix("file://")) / name
            place.mkdir(parents=True)
            pq.write_table(pa.table({"n": [0]}), place / "rows.parquet")
        return RunReport(offsets.count(), 0, 0, 0, 0, 0, {}, (), (), 0.0, "")

    return CommitJob(spark, Commits(spark, out, TABLES), audit, batches.append, every=every, logs=logs)


def plain(row: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    """Return values of a row, with its time in milliseconds."""
    values = {name: tuple(row[name]) if isinstance(row[name], list) else row[name] for name in names}
    return tuple((values | ({"snapshot_ts": millis(row["snapshot_ts"])} if "snapshot_ts" in names else {})).values())


def rows_of(out: Path, name: str, names: Sequence[str]) -> list[tuple[Any, ...]]:
    return [plain(row, names) for row in pq.read_table(out / name).to_pylist()]


def collected(table: Any, names: Sequence[str]) -> set[tuple[Any, ...]]:
    return {plain(row.asDict(), names) for row in table.select(*names).collect()}


def micro_batches(records: Sequence[Raw], count: int, rng: random.Random) -> Iterator[list[Raw]]:
    """Yield the records in order of their time, in batches that repeat some of those before, in any order."""
    ordered = sorted(records, key=lambda each: (each.timestamp, each.partition, each.offset))
    cuts = [0, *sorted(rng.sample(range(1, len(ordered)), count - 1)), len(ordered)]
    for n in range(count):
        batch = ordered[cuts[n] : cuts[n + 1]] + rng.sample(ordered[: cuts[n]], min(cuts[n], 20))
        rng.shuffle(batch)
        yield batch


def test_snapshots_of_a_stream_are_those_of_the_batch_job(spark: "SparkSession", tmp_path: Path) -> None:
    from evenlag.spark import history

    rng = random.Random(5)
    made = [(f"group {n}", f"{n}-", short_history(n)) for n in range(3)]
    records = [raw for n, (name, prefix, each) in enumerate(made) for raw in written(each, name, prefix, n, 10**6 * n)]
    ends = pa.concat_tables(log_ends(each, prefix) for _, prefix, each in made)
    whole = history(spark, records_frame(spark, records), log_ends=spark.createDataFrame(ends))
    batches: list[CommitBatch] = []
    for number, batch in enumerate(micro_batches(records, 3, rng)):
        job = job_in(spark, tmp_path / "out", KnownLogs(ends), batches)  # a new one: it has its state in the folder
        job(records_frame(spark, batch), number)
        job(records_frame(spark, batch), number)  # Spark repeats a batch that it did not record
        assert job.error is None
    job_in(spark, tmp_path / "out", KnownLogs(ends), batches).flush()
    assert [each.number for each in batches] == list(range(4))
    times = {millis(each.snapshot_ts) for each in batches if each.snapshot_ts is not None}
    assert len(times) >= 4
    assert max(times) == millis(whole.times[-1])
    for name, names in (("offsets", OFFSETS), ("members", MEMBERS)):
        found = rows_of(tmp_path / "out", name, names)
        assert len(found) == len(set(found))
        assert set(found) == {row for row in collected(whole.tables[name], names) if row[0] in times}
    assert batches[-1].kept == len({each.key for each in records})
    assert sorted(path.name for path in (tmp_path / "out" / "_state").iterdir()) == ["3-2"]


@pytest.mark.long
def test_the_last_state_of_real_records_is_that_of_the_batch_job(spark: "SparkSession", tmp_path: Path) -> None:
    """With damaged and repeated records, KIP-848 groups, and a group that was deleted."""
    from evenlag.spark import history

    rng = random.Random(2)
    records = list(damaged([raw for raw, _ in golden_records()] * 2, 0.05, rng))
    records = [each._replace(offset=n, timestamp=each.timestamp + n) for n, each in enumerate(records)]
    whole = history(spark, records_frame(spark, records), topic_names=NAMES, every=3600)
    logs = KnownLogs(pa.table({"topic": pa.array([], pa.string())}))
    batches: list[CommitBatch] = []
    job = job_in(spark, tmp_path / "out", logs, batches, every=None)
    step = len(records) // 3 + 1
    for number in range(3):
        job(records_frame(spark, records[number * step : (number + 1) * step]), number)
    job.flush()
    job.flush()
    assert [each.snapshot_ts is None for each in batches] == [True, True, True, False]
    used = sum(isinstance(decode_record(each.key, each.value), CoordinatorRecord) for each in records)
    assert sum(each.records for each in batches) == len(records)
    assert sum(each.used for each in batches) == whole.used <= used < len(records)
    passed = sum(row[0] for row in rows_of(tmp_path / "out", "passed_over", ["records"]))
    assert passed == len(records) - whole.used
    for name, names in (("offsets", OFFSETS), ("members", MEMBERS)):
        last = {row[1:] for row in collected(whole.tables[name], names) if row[0] == millis(whole.times[-1])}
        assert {row[1:] for row in rows_of(tmp_path / "out", name, names)} == last
        assert name == "members" or len(last) > 3


def test_groups_that_end_leave_nothing_in_the_state(spark: "SparkSession", tmp_path: Path) -> None:
    keys = [
        encode.group_key("classic"),
        *(encode.consumer_key(kind, "new") for kind in (3, 6)),
        *(encode.consumer_key(kind, "new", "m") for kind in (5, 7, 8)),
        *(encode.commit_key(group, "t", 0, kind) for group in ("classic", "new") for kind in (0, 1)),
    ]
    values = [
        encode.group_value(1, "range", []), encode.epoch_value(1), encode.epoch_value(1), encode.member_value(["t"]),
        encode.target_value([]), encode.current_value(1, []), *(encode.commit_value(5) for _ in range(4)),
    ]  # fmt: skip
    begun = [Raw(0, n, 1000 + n, key, value) for n, (key, value) in enumerate(zip(keys, values, strict=True))]
    ended = [Raw(0, 100 + n, 2000 + n, key, None) for n, key in enumerate(keys)]
    batches: list[CommitBatch] = []
    job = job_in(spark, tmp_path / "out", KnownLogs(pa.table({"topic": pa.array([], pa.string())})), batches)
    job(records_frame(spark, begun), 0)
    job(records_frame(spark, [*ended, *begun[:3]]), 1)  # three that are late, because they were read again
    assert [each.kept for each in batches] == [8, 0]  # both versions of a commit's key are one
    state = tmp_path / "out" / "_state"
    assert pq.read_table(next(state.glob("1-1")) / "records").num_rows == 0


def test_options_that_make_no_sense_are_refused(spark: "SparkSession", tmp_path: Path) -> None:
    from evenlag.spark import stream_commits

    logs: Any = KnownLogs(pa.table({}))
    with pytest.raises(InvalidProblemError, match="maxOffsetsPerTrigger: a stream of commits reads all partitions"):
        stream_commits(spark, "kafka://h:1", logs, out=tmp_path, options={"maxOffsetsPerTrigger": "5"})
    with pytest.raises(InvalidProblemError, match="every"):
        stream_commits(spark, "kafka://h:1", logs, out=tmp_path, every=0)
