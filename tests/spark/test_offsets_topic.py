"""The synthetic `__consumer_offsets` of the benchmarks, and the size of the code that Spark makes for its decoding."""

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks.consumer_offsets import Shape, records
from evenlag.protocol.record_decoding import CoordinatorRecord, decode_record
from tests.support.golden_records import golden_records
from tests.support.group_records import rewritten_by_kafka
from tests.support.record_frames import records_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGEST = 8000  # bytes of a method; Java compiles no larger one
OF_HISTORY = ("kind", "group", "reason", "commit_topic", "commit_partition", "commit_offset")


def test_its_records_are_the_bytes_that_kafka_writes(spark: "SparkSession") -> None:
    rows = records(spark, Shape(groups=30, commits=600, hot=0.2, seed=1)).collect()
    pairs = [(bytes(row["key"]), bytes(row["value"])) for row in rows]
    found = [decode_record(*pair) for pair in pairs]
    assert {(each.kind, each.version) for each in found if isinstance(each, CoordinatorRecord)} == {
        (1, 3), (1, 4), (2, 3),
    }  # fmt: skip
    assert any(each.value and "topicId" in each.value for each in found if isinstance(each, CoordinatorRecord))
    assert rewritten_by_kafka(pairs) == pairs
    places = [(row["partition"], row["offset"]) for row in rows]
    assert len({*places}) == len(places)
    by_place = {place: row["timestamp"] for place, row in zip(places, rows, strict=True)}
    for one, other in pairwise(sorted(by_place)):
        assert one[0] != other[0] or by_place[one] <= by_place[other]


def test_java_compiles_the_decoding(spark: "SparkSession", tmp_path: Path) -> None:
    from evenlag.spark.native.commit_columns import decoded

    path = tmp_path / "records.parquet"
    pq.write_table(records_table(raw for raw, _ in golden_records()), path)
    compiling = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    before = {name: str(spark.conf.get(name)) for name in compiling}
    try:
        for name, value in compiling.items():
            spark.conf.set(name, value)
        for names in (OF_HISTORY, ("*",)):
            plan: Any = decoded(spark.read.parquet(str(path))).select(*names)
            parts = plan._jdf.queryExecution().debug().codegenToSeq()
            sizes = [parts.apply(n)._3().maxMethodCodeSize() for n in range(parts.size())]
            assert sizes
            assert max(sizes) <= LARGEST, sizes
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
