"""A fleet is solved once: results do not change, and a deadline is kept whatever Spark does."""

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Barrier, Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from evenlag.spark.worker.group_work import LATE
from tests.support.cut_jobs import cut_job
from tests.support.frames import assert_same_rows, tables

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def slow_task(seconds: float, of: int = 0) -> Any:
    """Return a function of a task that waits first: every task, or the first of several."""

    def wait(batches: Any) -> Any:
        import time

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if not of or context.partitionId() == 0:
            time.sleep(seconds)
        yield from batches

    return wait


@contextmanager
def occupied_slots(spark: "SparkSession", seconds: float) -> Iterator[None]:
    """Occupy all slots of Spark with another job."""
    from pyspark import InheritableThread

    slots = spark.sparkContext.defaultParallelism

    def work() -> None:
        spark.sparkContext.addJobTag("other")
        with pytest.raises(Exception, match="cancelled"):
            spark.range(0, slots, 1, slots).mapInArrow(slow_task(seconds), "id BIGINT").count()

    thread = InheritableThread(target=work)
    thread.start()
    tracker = spark.sparkContext.statusTracker()
    while sum(info.numActiveTasks for info in map(tracker.getStageInfo, tracker.getActiveStageIds()) if info) < slots:
        time.sleep(0.1)
    try:
        yield
    finally:
        spark.sparkContext.cancelJobsWithTag("other")
        thread.join()


def solving(df: "DataFrame") -> bool:
    """Return whether reading a table runs a task of evenlag, but for taking plans apart."""
    return bool(re.search("MapInArrow (?!unpacked)", df._jdf.queryExecution().toString()))


def test_results_are_read_and_not_computed_again(spark: "SparkSession") -> None:
    from evenlag import pipeline

    offsets, members = tables(spark, 5)
    solved = pipeline.solve(offsets, members, time_limit=None, group_time_limit=0.02)
    frames = {name: getattr(solved, name) for name in ("plans", "audit", "groups")}
    for name, frame in frames.items():
        assert not solving(frame), name
    before = {name: frame.toArrow() for name, frame in frames.items()}
    spark.catalog.clearCache()
    for name, frame in frames.items():
        assert frame.toArrow().equals(before[name]), name
    groups = {row["group"]: row for row in solved.groups.collect()}
    assert sorted(groups) == [f"g{g:03}" for g in range(5)]
    for row in groups.values():
        assert (row["late"], row["attempt"], row["error"]) == (False, 0, None)
        assert row["objective"] >= row["bound"] >= 0
        assert row["gap"] >= 0
        assert (row["status"] == "OPTIMAL") == (row["gap"] <= 1e-9)
    assert solved.rejects.count() == 0
    assert_same_rows(solved.plans.select("group").distinct(), solved.groups.select("group"))


def test_work_that_ends_in_time_is_complete(spark: "SparkSession") -> None:
    from evenlag.spark.driver.kept import within

    assert within(spark, None, lambda: spark.range(3).count()) == 3
    assert within(spark, time.time() + 60, lambda: spark.range(4).count()) == 4
    with pytest.raises(ZeroDivisionError):
        within(spark, time.time() + 60, lambda: 1 // 0)
    assert within(spark, time.time() - 1, lambda: pytest.fail("too late to begin")) is None


def test_results_at_the_deadline_are_kept(spark: "SparkSession", tmp_path: "Path") -> None:
    from evenlag.spark.driver.kept import kept, within
    from evenlag.spark.driver.storage import Folder

    numbers = spark.range(0, 8, 1, 4).mapInArrow(slow_task(60.0, of=4), "id BIGINT")
    started = time.time()
    place = Folder(spark, f"file://{tmp_path}/kept", "id BIGINT")
    assert within(spark, started + 8, lambda: kept(numbers, place)) is None
    assert time.time() - started < 40  # the slow task takes 60
    assert sorted(row["id"] for row in place.read().collect()) == [2, 3, 4, 5, 6, 7]


def test_work_that_starts_a_job_after_the_deadline_is_cancelled(spark: "SparkSession") -> None:
    from evenlag.spark.driver.kept import within

    ended: Queue[str] = Queue()

    def work() -> None:
        time.sleep(2)  # as the driver may take to plan a query
        try:
            spark.range(0, 1, 1, 1).mapInArrow(slow_task(60.0), "id BIGINT").count()
        except Exception as error:
            ended.put(str(error))
        else:
            ended.put("the job was not cancelled")

    assert within(spark, time.time() + 0.1, work) is None
    assert "cancelled" in ended.get(timeout=50)


def test_works_at_once_return_their_results_or_the_first_error(spark: "SparkSession") -> None:
    from evenlag.spark.driver.kept import at_once

    both = Barrier(2, timeout=60)
    works = {name: lambda: (both.wait(), spark.range(3).count())[1] for name in ("one", "other")}
    assert at_once(spark, works) == {"one": 3, "other": 3}
    with pytest.raises(ZeroDivisionError):
        at_once(spark, {"count": spark.range(3).count, "wrong": lambda: 1 // 0})


def test_what_is_reserved_for_writing_follows_what_reading_took() -> None:
    from evenlag.spark.jobs.fleet_options import FleetOptions
    from evenlag.spark.jobs.fleet_solver import FleetSolver
    from evenlag.spark.worker.group_work import Want

    def share(want: str, limit: float | None, taken: float) -> float:
        solver = FleetSolver(FleetOptions(want=Want(want), time_limit=limit))
        solver.started -= taken
        return solver._reserve()

    assert share("both", 100.0, 1.0) == 0.2
    assert share("both", 100.0, 20.0) == pytest.approx(0.35, abs=0.01)
    assert share("both", 20.0, 10.0) == pytest.approx(0.4, abs=0.01)  # no more than 0.8 of the 10 s left
    assert share("plan", 100.0, 20.0) == share("both", None, 20.0) == 0.03


def test_a_folder_left_by_its_readers_is_removed_by_a_late_write(spark: "SparkSession", tmp_path: "Path") -> None:
    from evenlag.spark.driver.kept import kept, within
    from evenlag.spark.driver.sinks import FolderSink
    from evenlag.spark.driver.storage import Folder

    ended = Event()

    class Late(Folder):
        def write(self, df: "DataFrame") -> None:
            time.sleep(10)
            try:
                super().write(df)
            finally:
                ended.set()

    with FolderSink(spark, tmp_path / "out").whole(("plans",), overwrite=False) as aside:
        place = Late(spark, f"{aside}/solved", "id BIGINT")
        assert within(spark, time.time() + 0.1, lambda: kept(spark.range(3), place)) is None
        spark.range(3).write.parquet(f"{aside}/plans")
        place.leave()
    assert not ended.is_set()
    assert ended.wait(60)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_when_no_task_can_start_all_groups_are_late(spark: "SparkSession") -> None:
    from evenlag import pipeline

    offsets, members = tables(spark, 3)
    with occupied_slots(spark, 120.0):
        started = time.time()
        solved = pipeline.solve(offsets, members, time_limit=2.0).now()
        assert time.time() - started < 40  # slots are taken for 120
    groups = solved.groups.collect()
    assert sorted(str(row["group"]) for row in groups) == ["g000", "g001", "g002"]
    assert {(row["late"], row["error"]) for row in groups} == {(True, None)}
    assert {row["status"] for row in groups} <= {"OPTIMAL", "FEASIBLE"}
    keys = ("group", "topic", "partition")
    assert_same_rows(solved.plans.select(*keys), offsets.select(*keys))
    assert solved.plans.filter("consumer_id is null or move is null").count() == 0
    assert sorted(row["group"] for row in solved.audit.collect()) == ["g000", "g001", "g002"]


def test_a_call_is_back_in_time_and_its_results_are_waited_for(spark: "SparkSession") -> None:
    from evenlag import pipeline

    offsets, members = tables(spark, 3)
    with occupied_slots(spark, 120.0):
        started = time.time()
        solved = pipeline.solve(offsets, members, want="plan", time_limit=2.0)
        assert time.time() - started < 40  # slots are taken for 120
    assert solved.plans.count() == offsets.count()
    assert not solving(solved.groups)  # its tasks have run in the meantime
    assert {row["error"] for row in solved.groups.collect()} == {None}


def test_groups_of_tasks_that_did_not_end_have_late_plans(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenlag import pipeline

    offsets, members = tables(spark, 6)
    broken = offsets.filter("`group` = 'g004'").selectExpr(
        *(name for name in offsets.columns if name != "partition"), "-1 - `partition` as `partition`"
    )
    offsets = offsets.unionByName(offsets).unionByName(broken)  # each twice, and as many that cannot be used
    asked: dict[str, Any] = {"stickiness": 0, "method": "lag-aware", "tasks": 3}
    whole = pipeline.solve(offsets, members, time_limit=None, **asked)
    cut_job(monkeypatch, "task = 0")
    for want in ("both", "plan", "audit"):
        cut = pipeline.solve(offsets, members, want=want, time_limit=60.0, **asked)
        assert solving(cut.groups)
        groups = {row["group"]: row for row in cut.groups.collect()}
        assert sorted(groups) == [f"g{g:03}" for g in range(6)]
        late = {name for name, row in groups.items() if row["late"]}
        assert 0 < len(late) < 6
        assert all((LATE in row["warnings"]) == (name in late) for name, row in groups.items())
        assert {row["error"] for row in groups.values()} == {None}
        assert {name: row["rejected_rows"] for name, row in groups.items()} == dict.fromkeys(groups, 12) | {"g004": 24}
        assert offsets.count() == whole.plans.count() + cut.rejects.count()
        assert_same_rows(cut.rejects, whole.rejects)
        audited = {row["group"] for row in cut.audit.collect()}
        assert audited == (set() if want == "plan" else set(groups))
        if want != "audit":
            assert_same_rows(cut.plans, whole.plans)  # the same heuristic, whenever it is called
        else:
            assert cut.plans.count() == 0


def test_a_job_without_executors_ends_in_one_line(
    spark: "SparkSession", tmp_path: "Path", monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenlag import pipeline
    from evenlag.errors import SourceError
    from evenlag.spark.jobs import batch

    monkeypatch.setattr(batch, "LEAST_WAIT", 3.0)
    (tmp_path / "offsets.csv").write_text("snapshot_ts,group,topic,partition,lag\nnow,g,t,0,5\n")
    offsets, _ = tables(spark, 1)
    out = tmp_path / "out"
    with occupied_slots(spark, 120.0):
        for place in (str(tmp_path / "offsets.csv"), offsets):
            started = time.time()
            message = "Spark could not run all tasks within the time limit of 2 s, .*; raise --time-limit"
            with pytest.raises(SourceError, match=f"^{out}: {message}"):
                pipeline.run(spark, place, out=out, time_limit=2.0)
            assert time.time() - started < 45  # slots are taken for 120
    assert [path.name for path in tmp_path.iterdir()] == ["offsets.csv"]


def test_waiting_for_executors_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenlag.spark.driver import classic

    active: list[int] = []  # tasks of each stage
    tracker = SimpleNamespace(getActiveStageIds=lambda: list(range(len(active))))
    now = [0.0]
    monkeypatch.setattr(classic.time, "monotonic", lambda: now[0])
    watch = classic.IdleWatch(tracker, lambda: any(active))  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING, logger="evenlag.pipeline"):
        for tasks, seconds in (([], 20), ([0], 4), ([0, 1], 4), ([0], 4)):
            active[:] = tasks
            now[0] += seconds
            watch.look()
        assert not caplog.messages
        for _ in range(5):
            now[0] += 2
            watch.look()
    assert caplog.messages == ["Spark has started no task for 5 s: waiting for executors"]
