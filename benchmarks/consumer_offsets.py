"""A synthetic `__consumer_offsets` as Parquet files, in the columns of Spark's Kafka source.

`python -m benchmarks.consumer_offsets FOLDER --commits 100000000` writes one. Spark makes all rows in native columns, a
task for each partition of the topic, in order of their offsets as in Kafka. A test compares rows of all kinds with the
bytes that Kafka's own serializer writes.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

TOPIC = "__consumer_offsets"
PARTITIONS = 50  # of the topic
START = 1_767_225_600_000  # 2026-01-01 in milliseconds
EVERY = 10_000  # milliseconds between two commits of a partition
MOST = 9  # partitions of a group: 1 to 9
REBALANCE = 360  # a group rebalances when its partitions have committed as often as this: once an hour


@dataclass(frozen=True)
class Shape:
    """A topic to make.

    Attributes
    ----------
    groups, commits : int
        Numbers of groups, and of commits: about as many, because all partitions commit equally often.
    hot : float
        Share of the groups in partition 0 of the topic; the others are spread evenly over all partitions.
    seed : int
    """

    groups: int = 20_000
    commits: int = 1_000_000
    hot: float = 0.0
    seed: int = 0


def records(spark: SparkSession, shape: Shape) -> DataFrame:
    """Return the records: `key, value, topic, partition, offset, timestamp, timestampType`."""
    members, commits = group_parts(spark, shape), commit_parts(spark, shape)
    held = members.unionByName(commits).persist()
    rounds = max(round(shape.commits / held.filter("commits").count()), 1)
    part = sf.struct(*(name for name in held.columns if name != "home"))
    lists = held.groupBy("home").agg(
        *(sf.sort_array(sf.collect_list(sf.when(each, part))).alias(name)
          for name, each in (("groups", ~sf.col("commits")), ("parts", sf.col("commits"))))
    )  # fmt: skip
    each_round = spark.range(0, PARTITIONS, 1, PARTITIONS).select(
        sf.col("id").cast("int").alias("home"), sf.explode(sf.sequence(sf.lit(0), sf.lit(rounds - 1))).alias("round")
    )
    due = sf.when(sf.col("round") % REBALANCE == 0, sf.concat("groups", "parts")).otherwise(sf.col("parts"))
    size = sf.size("groups") + sf.size("parts")
    before = sf.when(sf.col("round") % REBALANCE == 0, sf.lit(0)).otherwise(sf.size("groups"))
    rows = each_round.join(sf.broadcast(lists), on="home").select(
        "home", "round", size.alias("size"), before.alias("before"), sf.posexplode(due).alias("place", "part")
    )
    return rows.select("home", "round", "size", (sf.col("before") + sf.col("place")).alias("place"), "part.*").select(
        *_columns()
    )


def _columns() -> list[Column]:
    """Return the columns of Kafka's source, from those of a record's parts."""
    turn = sf.col("round").cast("bigint")
    millis = sf.lit(START) + turn * EVERY + sf.floor(sf.col("place") * EVERY / sf.col("size"))
    count = sf.when(sf.col("commits"), turn).otherwise(sf.floor(turn / REBALANCE))
    number = sf.lpad(sf.hex(sf.col("first") + count * sf.col("step")), sf.col("digits"), "0")
    tail = sf.when(sf.floor(turn / REBALANCE) % 2 == 0, sf.col("tail")).otherwise(sf.col("next_tail"))
    value = sf.concat("head", number, "middle", _hex(millis, 16), tail)
    return [
        sf.col("key"),
        sf.unhex(value).alias("value"),
        sf.lit(TOPIC).alias("topic"),
        sf.col("home").alias("partition"),
        (turn * sf.col("size") + sf.col("place")).alias("offset"),
        sf.timestamp_millis(millis).alias("timestamp"),
        sf.lit(0).alias("timestampType"),
    ]


# ---- parts of records: what does not change from one to the next, as hexadecimal text --------------------------------


def _groups(spark: SparkSession, shape: Shape) -> DataFrame:
    """Return the name, topic and number of partitions of each group, and where its commits are, `home`."""
    number = sf.col("id")
    drawn = sf.pmod(sf.xxhash64("id", sf.lit(shape.seed)), sf.lit(1 << 30))
    spread = sf.pmod(sf.xxhash64("id", sf.lit("home"), sf.lit(shape.seed)), sf.lit(PARTITIONS))
    is_hot = number < round(shape.hot * shape.groups)
    return spark.range(shape.groups).select(
        number.alias("group_number"),
        sf.concat(sf.lit("team-"), drawn % 97, sf.lit(".service-"), number).alias("group"),
        sf.concat(sf.lit("events.of-"), sf.floor(number / 4)).alias("topic"),
        (1 + drawn % MOST).cast("int").alias("count"),
        sf.when(is_hot, sf.lit(0)).otherwise(spread).cast("int").alias("home"),
    )


def commit_parts(spark: SparkSession, shape: Shape) -> DataFrame:
    """Return the parts of the commits of each group and partition, in version 3 or 4, some with topic ids or metadata.

    A fifth are of version 3, as brokers before 4.1 write them, and a fifth have ids of topics.
    """
    rows = _groups(spark, shape).select("*", sf.explode(sf.sequence(sf.lit(0), sf.col("count") - 1)).alias("partition"))
    drawn = sf.pmod(sf.xxhash64("group", "partition", sf.lit(shape.seed)), sf.lit(1 << 30))
    is_old, has_id = drawn % 5 == 0, drawn % 5 == 1
    text = sf.when(drawn % 100 >= 98, sf.concat(sf.lit("host-"), sf.col("partition"))).otherwise(sf.lit(""))
    metadata = sf.when(is_old, _text(text)).otherwise(sf.concat(_hex(sf.octet_length(text) + 1, 2), sf.hex(text)))
    tags = sf.when(has_id, sf.concat(sf.lit("010010"), sf.md5(sf.col("topic").cast("binary")))).otherwise(sf.lit("00"))
    tail = sf.when(is_old, sf.lit("")).otherwise(sf.upper(tags))
    key = sf.concat(sf.lit("0001"), _text(sf.col("group")), _text(sf.col("topic")), _hex(sf.col("partition"), 8))
    return rows.select(
        sf.unhex(key).alias("key"),
        sf.lit(True).alias("commits"),
        "home",
        sf.when(is_old, sf.lit("0003")).otherwise(sf.lit("0004")).alias("head"),
        (drawn % 1_000_000).alias("first"),
        (1 + drawn % 1_000).alias("step"),
        sf.lit(16).alias("digits"),
        sf.concat(_hex(drawn % 7, 8), metadata).alias("middle"),
        tail.alias("tail"),
        tail.alias("next_tail"),
    )


def group_parts(spark: SparkSession, shape: Shape) -> DataFrame:
    """Return the parts of the classic groups, which have one member and two members in turn."""
    rows = _groups(spark, shape)
    name, every = sf.lit("range"), sf.sequence(sf.lit(0), sf.col("count") - 1)
    even, odd = sf.filter(every, lambda n: n % 2 == 0), sf.filter(every, lambda n: n % 2 == 1)
    alone = sf.concat(sf.lit("00000001"), _member(0, every))
    both = sf.concat(sf.lit("00000002"), _member(0, even), _member(1, odd))
    return rows.select(
        sf.unhex(sf.concat(sf.lit("0002"), _text(sf.col("group")))).alias("key"),
        sf.lit(False).alias("commits"),
        "home",
        sf.concat(sf.lit("0003"), _text(sf.lit("consumer"))).alias("head"),
        sf.lit(1).cast("bigint").alias("first"),
        sf.lit(1).cast("bigint").alias("step"),
        sf.lit(8).alias("digits"),
        sf.concat(_text(name), _text(_member_id(0))).alias("middle"),
        alone.alias("tail"),
        both.alias("next_tail"),
    )


def _member_id(number: int) -> Column:
    return sf.concat(sf.lit(f"consumer-{number}-"), sf.md5(sf.col("group").cast("binary")))


def _member(number: int, partitions: Column) -> Column:
    """Return a member of a classic group in version 3, without an instance id."""
    topic = _text(sf.col("topic"))
    subscription = sf.concat(sf.lit("000100000001"), topic, sf.lit("0000000000000000"))  # no user data, none owned
    numbers = sf.array_join(sf.transform(partitions, lambda n: _hex(n, 8)), "")
    listed = sf.concat(sf.lit("00000001"), topic, _hex(sf.size(partitions), 8), numbers)
    held = sf.when(sf.size(partitions) > 0, listed).otherwise(sf.lit("00000000"))
    assignment = sf.concat(sf.lit("0000"), held, sf.lit("FFFFFFFF"))
    times = _hex(sf.lit(300_000), 8), _hex(sf.lit(45_000), 8)
    client = _text(sf.lit(f"consumer-{number}")), _text(sf.lit("/10.0.0.1"))
    return sf.concat(
        _text(_member_id(number)), sf.lit("FFFF"), *client, *times, *map(_blob, (subscription, assignment))
    )


def _hex(number: Column, digits: int) -> Column:
    return sf.lpad(sf.hex(number.cast("bigint")), digits, "0")


def _text(text: Column) -> Column:
    return sf.concat(_hex(sf.octet_length(text), 4), sf.hex(text))


def _blob(content: Column) -> Column:
    return sf.concat(_hex(sf.length(content) / 2, 8), content)


def write(spark: SparkSession, shape: Shape, folder: str | Path) -> None:
    """Write the records as Parquet, a file for each partition of the topic that has any."""
    records(spark, shape).write.parquet(str(folder))


def main() -> None:
    """Write a topic by the words of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.consumer_offsets")
    parser.add_argument("folder", type=Path)
    for name, kind in (("groups", int), ("commits", int), ("hot", float), ("seed", int)):
        parser.add_argument(f"--{name}", type=kind, default=getattr(Shape, name))
    options = parser.parse_args()
    from evenlag import pipeline

    spark = pipeline.local_session()
    write(spark, Shape(options.groups, options.commits, options.hot, options.seed), options.folder)
    spark.stop()


if __name__ == "__main__":
    main()
