"""Offset ranges packed into even tasks: compared with counting, brute force and max-flow, and read with Spark."""

import doctest
import itertools
import json
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag.errors import InvalidProblemError
from evenlag.pipeline import Packing, Task, pack_offset_ranges
from evenlag.spark.offsets import packing as packing_module
from evenlag.spark.offsets.offset_ranges import offset_ranges
from tests.support.problems import cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.broker import Broker

Offsets = dict[tuple[str, int], tuple[int, int]]

PARTITIONS = st.tuples(st.sampled_from(["orders", "payments", "ü.x_y-1"]), st.integers(0, 30))
SIZES = st.one_of(st.integers(0, 20), st.integers(0, 10**6), st.integers(2**60, 2**62 - 1))
OFFSETS = st.dictionaries(PARTITIONS, st.tuples(st.integers(0, 2**62), SIZES), max_size=25).map(
    lambda drawn: {key: (start, start + size) for key, (start, size) in drawn.items()}
)
TOLERANCES = st.sampled_from([0, 0.001, 0.02, 0.3, 3])


def zipf(exponent: float, partitions: int, seed: int = 0, total: int = 50_000_000) -> Offsets:
    weights = np.random.default_rng(seed).permutation(1 / np.arange(1, partitions + 1) ** exponent)
    sizes = np.rint(total * weights / weights.sum()).astype(int).tolist()
    return {("t", p): (1000 * p, 1000 * p + size) for p, size in enumerate(sizes)}


def with_growth(offsets: Offsets, factor: Callable[[int], float]) -> Offsets:
    """The next batch: it starts where the last one ended, unless that is far."""
    starts = {key: end if end < 2**61 else 0 for key, (_, end) in offsets.items()}
    return {key: (starts[key], starts[key] + int((end - at) * factor(key[1]))) for key, (at, end) in offsets.items()}


def mean_records(offsets: Offsets, tasks: int) -> Fraction:
    return Fraction(sum(end - start for start, end in offsets.values()), tasks)


def check_packing(packing: Packing, offsets: Offsets, tasks: int, tolerance: float) -> None:
    """Count again, in plain Python: everything once, as even as promised, as few cuts as promised."""
    ranges = defaultdict(list)
    for task in packing.tasks:
        assert len({each[:2] for each in task.ranges}) == len(task.ranges)
        for topic, partition, start, end in task.ranges:
            assert start < end
            ranges[topic, partition].append((start, end))
    for key, (start, end) in offsets.items():
        at = start
        for piece in sorted(ranges.pop(key, [])):
            assert piece[0] == at
            at = piece[1]
        assert at == end
    assert not ranges
    loads = [sum(end - start for *_, start, end in task.ranges) for task in packing.tasks]
    share = mean_records(offsets, tasks)
    assert len(loads) == tasks
    assert packing.makespan == max(loads) <= packing.limit <= max((1 + Fraction(tolerance)) * share, -(-share // 1))
    assert packing.bound == -(-share // 1) <= packing.makespan
    pieces = sum(len(task.ranges) for task in packing.tasks)
    assert packing.cuts == pieces - sum(end > start for start, end in offsets.values())
    assert packing.cuts_bound <= packing.cuts <= max(tasks - 1, 0)


@pytest.mark.slow
@given(OFFSETS, st.integers(1, 20), TOLERANCES)
@settings(max_examples=cases(300))
def test_every_offset_is_packed_once_into_even_tasks(offsets: Offsets, tasks: int, tolerance: float) -> None:
    packing = pack_offset_ranges(offsets, tasks, tolerance=tolerance)
    check_packing(packing, offsets, tasks, tolerance)
    assert packing.moves == 0
    assert packing == pack_offset_ranges(dict(reversed(offsets.items())), tasks, tolerance=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.5, 3.0])
@pytest.mark.parametrize("partitions", [1, 20, 64, 200])
@pytest.mark.parametrize("tolerance", [0.0, 0.02])
def test_skewed_topics_are_packed_evenly(exponent: float, partitions: int, tolerance: float) -> None:
    for seed in range(3):
        offsets = zipf(exponent, partitions, seed)
        packing = pack_offset_ranges(offsets, 16, tolerance=tolerance)
        check_packing(packing, offsets, 16, tolerance)
        if tolerance and exponent and partitions == 200:
            assert packing.cuts == packing.cuts_bound


@pytest.mark.slow
def test_cuts_are_few_against_all_packings_of_whole_partitions() -> None:
    """Compare with all packings of whole partitions: nothing is cut if they fit within the limit."""
    rng = np.random.default_rng(5)
    ways = np.array(list(itertools.product(range(3), repeat=8)))
    fitting = 0
    for _ in range(60):
        sizes = rng.integers(1, 100, 8).tolist()
        offsets = {("t", p): (0, size) for p, size in enumerate(sizes)}
        packing = pack_offset_ranges(offsets, 3, tolerance=0.1)
        best = min(np.max([(ways == task) @ sizes for task in range(3)], axis=0))
        assert (packing.cuts == 0) == (best <= packing.limit)
        fitting += best <= packing.limit
    assert fitting > 10


def test_more_tasks_than_partitions_and_empty_topics() -> None:
    one = pack_offset_ranges({"t": {0: (5, 12)}}, 3)
    assert [task.records for task in one.tasks] == [2, 2, 3]
    few = pack_offset_ranges({"t": {0: (5, 7)}}, 4)
    assert sorted(task.records for task in few.tasks) == [0, 0, 1, 1]
    for offsets in ({}, {"t": {0: (5, 5)}}, []):
        empty = pack_offset_ranges(offsets, 2)
        assert [task.options for task in empty.tasks] == [{}, {}]
        assert (empty.records, empty.makespan, empty.bound, empty.gap, empty.cuts) == (0, 0, 0, 0.0, 0)


def test_the_options_are_those_of_sparks_kafka_source() -> None:
    (task,) = pack_offset_ranges({"b": {"1": [2**62, 2**62 + 3]}, "a": {0: (4, 6), 10: (0, 1)}}, 1).tasks
    assert {name: json.loads(text) for name, text in task.options.items()} == {
        "assign": {"a": [0, 10], "b": [1]},
        "startingOffsets": {"a": {"0": 4, "10": 0}, "b": {"1": 2**62}},
        "endingOffsets": {"a": {"0": 6, "10": 1}, "b": {"1": 2**62 + 3}},
    }


@pytest.mark.parametrize("module", [packing_module, None])
def test_the_examples_run(module: Any) -> None:
    page = Path(__file__).parents[2] / "docs" / "fleet-packing.md"
    failed, tried = doctest.testmod(module) if module else doctest.testfile(str(page), module_relative=False)
    assert failed == 0 < tried


# ---- stickiness ---------------------------------------------------------------------------------------------------


def tasks_of_partitions(packing: Packing) -> dict[tuple[str, int], set[int]]:
    found = defaultdict(set)
    for nth, task in enumerate(packing.tasks):
        for topic, partition, *_ in task.ranges:
            found[topic, partition].add(nth)
    return found


def fits_at_home(offsets: Offsets, where: dict[tuple[str, int], set[int]], tasks: int, limit: int) -> bool:
    """Check Hall's condition for every set of tasks: the records tied to it do not exceed its limit."""
    sizes = {key: end - start for key, (start, end) in offsets.items() if key in where}
    return all(
        sum(size for key, size in sizes.items() if where[key] <= set(chosen)) <= limit * len(chosen)
        for count in range(1, tasks + 1)
        for chosen in itertools.combinations(range(tasks), count)
    )


def test_ranges_beyond_64_bits_are_packed() -> None:
    """Three of 2^62 + 1 records in two tasks: the solver takes none of them, so one is cut where it fits nowhere."""
    offsets = {("t", p): (0, 2**62 + 1) for p in range(3)}
    packing = pack_offset_ranges(offsets, 2, tolerance=0)
    check_packing(packing, offsets, 2, 0)
    assert packing.cuts == 1


@pytest.mark.slow
@given(st.data(), OFFSETS, st.integers(1, 6), st.integers(1, 6), TOLERANCES)
@settings(max_examples=cases(300))
def test_a_partition_stays_in_its_task_if_it_fits(
    data: st.DataObject, before: Offsets, tasks_before: int, tasks: int, tolerance: float
) -> None:
    previous = pack_offset_ranges(before, tasks_before, tolerance=data.draw(TOLERANCES))
    factors = data.draw(st.lists(st.sampled_from([0, 0.1, 0.9, 1, 1.1, 1.7]), min_size=1, max_size=9))
    offsets = with_growth(before, lambda p: factors[p % len(factors)]) | data.draw(OFFSETS)
    packing = pack_offset_ranges(offsets, tasks, tolerance=tolerance, previous=previous)
    check_packing(packing, offsets, tasks, tolerance)
    where = {
        key: at
        for key, all_ in tasks_of_partitions(previous).items()
        if (at := {task for task in all_ if task < tasks})
    }
    now = tasks_of_partitions(packing)
    assert packing.moves == sum(len(now[key] - at) for key, at in where.items())
    if fits_at_home(offsets, where, tasks, packing.limit):
        assert packing.moves == 0


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(1, 12), st.sets(st.integers(0, 3))), min_size=1, max_size=8),
    st.sampled_from([0, 0.1, 0.3, 1]),
)
@settings(max_examples=cases(500))
def test_cuts_move_so_that_partitions_need_not(drawn: list[tuple[int, set[int]]], tolerance: float) -> None:
    offsets = {("t", p): (0, size) for p, (size, _) in enumerate(drawn)}
    previous = [[("t", p) for p, (_, tasks) in enumerate(drawn) if task in tasks] for task in range(4)]
    packing = pack_offset_ranges(offsets, 4, tolerance=tolerance, previous=previous)
    check_packing(packing, offsets, 4, tolerance)
    where = {("t", p): tasks for p, (_, tasks) in enumerate(drawn) if tasks}
    if fits_at_home(offsets, where, 4, packing.limit):
        assert packing.moves == 0


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("partitions", [20, 64, 200])
def test_partitions_keep_their_tasks_over_batches(exponent: float, partitions: int) -> None:
    offsets = zipf(exponent, partitions)
    packing = pack_offset_ranges(offsets, 16)
    again = pack_offset_ranges(with_growth(offsets, lambda _: 1), 16, previous=packing)
    assert again.moves == 0
    assert again.cuts <= packing.cuts
    rng = np.random.default_rng(1)
    for _ in range(5):  # cuts do not pile up, and few partitions move
        factors = rng.uniform(0.8, 1.25, partitions)
        offsets = with_growth(offsets, lambda p, factors=factors: factors[p])  # type: ignore[misc]
        packing = pack_offset_ranges(offsets, 16, previous=packing)
        check_packing(packing, offsets, 16, 0.02)
        assert packing.moves <= 16


def test_a_cut_partition_is_joined_once_it_cools_down() -> None:
    hot = pack_offset_ranges({"t": {0: (0, 8000), 1: (0, 10), 2: (0, 10)}}, 4)
    assert hot.cuts > 0
    cold = pack_offset_ranges({"t": {0: (0, 30), 1: (0, 5), 2: (0, 5)}}, 4, tolerance=4, previous=hot)
    assert (cold.cuts, cold.moves) == (0, 0)


def test_a_previous_packing_may_be_lists() -> None:
    offsets = {("t", p): (0, 10) for p in range(4)}
    kept = json.loads(json.dumps([[("t", 3), ("t", 1)], [("t", 0)], [("gone", 0)]]))
    packing = pack_offset_ranges(offsets, 2, previous=kept)
    assert [{each.partition for each in task.ranges} for task in packing.tasks] == [{1, 3}, {0, 2}]
    with pytest.raises(InvalidProblemError, match=r"previous: 't' in task 0 is not a pair \(topic, partition\)"):
        pack_offset_ranges(offsets, 2, previous=["t"])  # type: ignore[list-item]


# ---- what comes in ------------------------------------------------------------------------------------------------

EXPLICIT = [{"topic": "t", "partition": p, "start_offset": s, "end_offset": e} for p, s, e in [(0, 3, 9), (1, 4, 4)]]


@pytest.mark.parametrize(
    "offsets",
    [
        {("t", 0): (3, 9), ("t", 1): (4, 4)},
        {"t": {0: [3, 9], 1: (4, 4)}},
        {"t": {"0": (np.int64(3), 9), np.int32(1): (4, 4)}},
        EXPLICIT,
        iter(EXPLICIT),
        [{name: str(value) for name, value in row.items()} for row in EXPLICIT],
        pd.DataFrame(EXPLICIT),
        pd.DataFrame(EXPLICIT).astype({"start_offset": float}),
    ],
)
def test_equal_ranges_of_other_types_give_the_same_packing(offsets: Any) -> None:
    assert offset_ranges(offsets) == {("t", 0): (3, 9), ("t", 1): (4, 4)}


def test_rows_of_an_offsets_table_are_read_by_the_rules_of_the_lag() -> None:
    common = {"snapshot_ts": "now", "group": "g", "topic": "t", "log_start_offset": 10, "log_end_offset": 90}
    commits = [40, 5, 95, None, float("nan"), ""]
    rows = [common | {"partition": p, "current_offset": at} for p, at in enumerate(commits)]
    rows[-1] |= {"current_offset": None, "auto_offset_reset": "earliest"}
    starts = {p: start for (_, p), (start, end) in offset_ranges(rows).items() if end == 90}
    assert starts == {0: 40, 1: 10, 2: 90, 3: 90, 4: 90, 5: 10}
    assert offset_ranges(rows, "earliest")["t", 3] == (10, 90)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ({"t": {0: (5, 4)}}, "offsets of t-0: the end 4 is below the start 5"),
        ({"t": {0: (-2, 4)}}, r"offsets of t-0: the start is negative \(-2\)"),
        ({"t": {0: (0, 2**63)}}, "offsets of t-0: the end is above 9223372036854775807"),
        ({"t": {0: (0, "latest")}}, "offsets of t-0: the end is 'latest'; give a whole number"),
        ({"t": {0: (0, 1.5)}}, "offsets of t-0: the end is 1.5; give a whole number"),
        ({"t": {0: (False, 1)}}, "offsets of t-0: the start is False; give a whole number"),
        ({"t": {0: 7}}, r"offsets of t-0: 7 is not a pair \(start, end\)"),
        ({"t": {-1: (0, 1)}}, r"offsets of 't': a partition is negative \(-1\)"),
        ({"t": {2**31: (0, 1)}}, "offsets of 't': a partition is above 2147483647"),
        ({"t": {"x": (0, 1)}}, "offsets of 't': a partition is 'x'"),
        ({"t": {"1": (0, 1), 1: (0, 1)}}, "offsets of t-1 are given twice"),
        ({"t": (0, 1)}, r"'t' is neither a topic with its partitions nor \(topic, partition\)"),
        ({("", 0): (0, 1)}, "'' is not a topic name"),
        ("orders", "'orders' is not a mapping of ranges, rows, or a DataFrame"),
        (7, "7 is not a mapping of ranges, rows, or a DataFrame"),
        ([("t", 0, 1, 2)], r"\('t', 0, 1, 2\) is not a row with topic, partition"),
        ([{"topic": "t", "partition": 0}], "offsets of t-0: neither end_offset nor log_end_offset is known"),
        ([{"topic": "t", "partition": 0, "end_offset": 4}], "offsets of t-0: the start is None"),
        (
            [{"topic": "t", "partition": 0, "log_end_offset": 4, "log_start_offset": 7, "current_offset": 1}],
            "offsets of t-0: log_end_offset is below log_start_offset",
        ),
        ([{"partition": 0, "end_offset": 4}], "None is not a topic name"),
    ],
)
def test_invalid_ranges_are_named(offsets: Any, message: str) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        pack_offset_ranges(offsets, 2)


@pytest.mark.parametrize("tasks", [0, -1, 1.0, True, "2", None])
def test_tasks_are_a_whole_number(tasks: Any) -> None:
    with pytest.raises(InvalidProblemError, match="tasks must be a whole number of at least 1"):
        pack_offset_ranges({}, tasks)


@pytest.mark.parametrize("tolerance", [-0.1, float("nan"), float("inf"), "2%", True])
def test_the_tolerance_is_a_share(tolerance: Any) -> None:
    with pytest.raises(InvalidProblemError, match="tolerance must be a share of at least 0"):
        pack_offset_ranges({}, 2, tolerance=tolerance)


# ---- Spark and a real broker --------------------------------------------------------------------------------------


@pytest.mark.spark
def test_an_offsets_table_of_spark_is_packed(spark: "SparkSession") -> None:
    columns = "`group` STRING, topic STRING, `partition` INT, log_end_offset BIGINT, current_offset BIGINT"
    df = spark.createDataFrame([("g", "t", 0, 90, 40), ("g", "t", 1, 9, None)], columns)
    assert offset_ranges(df) == {("t", 0): (40, 90), ("t", 1): (9, 9)}
    assert offset_ranges(df.select(*(df[name].cast("string") for name in df.columns))) == offset_ranges(df)
    with pytest.raises(InvalidProblemError, match="offsets of t-0 are given twice; keep one group and one snapshot"):
        offset_ranges(df.union(df))


@pytest.mark.spark
@pytest.mark.broker
def test_spark_reads_every_record_once(kafka_spark: "SparkSession", broker: "Broker") -> None:
    from pyspark.sql import functions as sf

    from evenlag.pipeline import read_packing
    from tests.support.traffic import create_topics, produce

    ends = {"skewed": [5000, 30, 0, 700, 1, 900], "other": [40, 1800]}
    create_topics(broker.bootstrap, {topic: len(counts) for topic, counts in ends.items()})
    for topic, counts in ends.items():
        produce(broker.bootstrap, topic, counts)
    offsets = {(topic, p): (min(7, end), end) for topic, counts in ends.items() for p, end in enumerate(counts)}
    packing = pack_offset_ranges(offsets, 8)
    assert {len(task.ranges) for task in packing.tasks} > {1}, "tasks of one range, and of more"

    df = read_packing(kafka_spark, packing, {"kafka.bootstrap.servers": broker.bootstrap})
    read = df.select("topic", "partition", "offset", sf.spark_partition_id().alias("task")).collect()
    expected = [(*key, at) for key, (start, end) in offsets.items() for at in range(start, end)]
    assert sorted((row.topic, row.partition, row.offset) for row in read) == sorted(expected)

    by_task = defaultdict(set)
    for row in read:
        by_task[row.task].add((row.topic, row.partition, row.offset))
    as_packed = [
        {(topic, partition, at) for topic, partition, start, end in task.ranges for at in range(start, end)}
        for task in packing.tasks
    ]
    assert sorted(map(sorted, by_task.values())) == sorted(map(sorted, as_packed))


@pytest.mark.spark
@pytest.mark.broker
def test_empty_packings_and_conflicting_options(kafka_spark: "SparkSession", broker: "Broker") -> None:
    from evenlag.pipeline import read_packing
    from tests.support.traffic import create_topics

    create_topics(broker.bootstrap, {"unread": 1})
    options = {"kafka.bootstrap.servers": broker.bootstrap}
    nothing = pack_offset_ranges({"unread": {0: (0, 0)}}, 3)
    for more in ({}, {"includeHeaders": "true"}):
        df = read_packing(kafka_spark, nothing, options | more)
        assert df.count() == 0
        of_spark = kafka_spark.read.format("kafka").options(**options, **more, subscribe="unread").load()
        assert df.schema == of_spark.schema
    with pytest.raises(InvalidProblemError, match="options: minPartitions is set by the packing; omit it"):
        read_packing(kafka_spark, nothing, options | {"minpartitions": "4"})


def test_a_task_lists_its_ranges() -> None:
    packing = pack_offset_ranges({"t": {0: (0, 6)}}, 2)
    assert packing.tasks == (Task(((("t", 0, 0, 3)),)), Task(((("t", 0, 3, 6)),)))  # type: ignore[arg-type]
    assert packing.tasks[1].ranges[0].records == 3
