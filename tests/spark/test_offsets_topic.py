"""The synthetic `__consumer_offsets` of the benchmarks."""

from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks.consumer_offsets import Shape, records
from evenlag.protocol.record_decoding import CoordinatorRecord, decode_record
from tests.support.group_records import rewritten_by_kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
