"""Racks, sizes and traffic in tables: one group and Spark read them as `from_lags` takes them."""

import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import evenlag
from evenlag import Problem
from evenlag.errors import InvalidProblemError
from evenlag.model.pair_data import NO_PAIR_DATA
from evenlag.tables import read_snapshots
from evenlag.tables.columns import MEMBERS, OFFSETS
from evenlag.tables.pair_columns import NO_PAIR_COLUMNS, PairColumns
from evenlag.tables.writing import write_table
from tests.support.fleet_tasks import batches, rules
from tests.support.problems import seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[dict[str, Any]]
ZONES = ["a", "b", "c"]


def random_tables(random: Random, ts: str = "2026-01-01T00:00:00Z") -> tuple[Rows, Rows, Problem]:
    """Rows of both tables with racks, sizes and traffic, some of them null, and the problem that they are of."""
    keys = [(topic, i) for topic in ("orders", "paid") for i in range(random.randint(1, 4))]
    names = ["x", "y", "z"][: random.randint(1, 3)]
    racks = {name: random.choice([None, *ZONES]) for name in names}
    replicas: dict[str, Any] = {"orders": {}, "paid": {}}
    sizes: dict[str, Any] = {"orders": {}, "paid": {}}
    traffic: dict[str, Any] = {"orders": {}, "paid": {}}
    offsets = []
    for topic, i in keys:
        row: dict[str, Any] = {"snapshot_ts": ts, "group": "g", "topic": topic, "partition": i}
        row |= {"lag": random.randint(0, 9)}
        if random.random() < 0.7:
            row["replica_racks"] = replicas[topic][i] = random.sample([*ZONES, ""], random.randint(1, 3))
        if random.random() < 0.5:
            row["move_size"] = sizes[topic][i] = random.choice([0, 7, 2**53 - 1])
        if random.random() < 0.5:
            row["traffic"] = traffic[topic][i] = random.choice([0, 5])
        offsets.append({name: row.get(name) for name in OFFSETS.names})
    members = [{"snapshot_ts": ts, "group": "g", "consumer_id": name, "rack": racks[name]} for name in names]
    lags = {topic: {i: row["lag"] for (t, i), row in zip(keys, offsets, strict=True) if t == topic} for topic in sizes}
    problem = Problem.from_lags(
        lags, names, group="g", racks=racks, partition_racks=replicas,
        move_sizes=sizes if any(sizes.values()) else None, traffic=traffic if any(traffic.values()) else None,
    )  # fmt: skip
    random.shuffle(offsets)
    return offsets, [{name: row.get(name) for name in MEMBERS.names} for row in members], problem


def write_both(folder: Path, suffix: str, offsets: Rows, members: Rows) -> tuple[Path, Path]:
    paths = folder / f"offsets.{suffix}", folder / f"members.{suffix}"
    write_table(paths[0], offsets, OFFSETS)
    write_table(paths[1], members, MEMBERS)
    return paths


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("seed", seeds(10))
def test_a_table_gives_the_problem_of_plain_values(tmp_path: Path, suffix: str, seed: int) -> None:
    offsets, members, wanted = random_tables(Random(seed))
    paths = write_both(tmp_path, suffix, offsets, members)
    read = evenlag.read(paths[0], members=paths[1])
    assert read.same_structure(wanted)
    assert read.pairs.same_as(wanted.pairs)
    assert {field: value for field, value in read.to_dict().items() if field != "group"} == {
        field: value for field, value in wanted.to_dict().items() if field != "group"
    }


def test_a_frame_gives_the_problem_of_plain_values() -> None:
    pd = pytest.importorskip("pandas")
    offsets, members, wanted = random_tables(Random(3))
    read = evenlag.read(pd.DataFrame(offsets), members=pd.DataFrame(members))
    assert read.pairs.same_as(wanted.pairs)
    assert wanted.pairs.partition_racks
    assert wanted.pairs.racks


def test_tables_without_them_have_no_pair_data(tmp_path: Path) -> None:
    (tmp_path / "offsets.csv").write_text("group,topic,partition,lag,consumer_id\ng,orders,0,5,x\ng,orders,1,3,\n")
    assert evenlag.read(tmp_path / "offsets.csv").pairs is NO_PAIR_DATA
    assert PairColumns.of_rows([(None, None, None)] * 3) is NO_PAIR_COLUMNS


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("move_size", "2.5", r"offsets\.csv, line 3: orders-1: move_size is not a whole number: '2.5'"),
        ("move_size", "-1", r"line 3: orders-1: move_size is negative: -1"),
        ("traffic", str(2**53), r"line 3: orders-1: traffic is above 9007199254740991: 9007199254740992"),
        ("replica_racks", "[1]", r"line 3: orders-1: replica_racks is not a list of names"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(tmp_path: Path, column: str, value: str, message: str) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(f"group,topic,partition,lag,{column}\ng,orders,0,5,\ng,orders,1,3,{value}\n")
    with pytest.raises(InvalidProblemError, match=message):
        evenlag.read(path)


def test_a_lost_row_keeps_its_racks_in_a_history(tmp_path: Path) -> None:
    whole = "g,orders,0,5,x,a;b,7,2\ng,orders,1,3,x,b,,\n".splitlines()
    rows = [f"2026-01-01T0{hour}:00:00Z,{row}" for hour in range(3) for row in whole[: 2 - hour % 2]]
    path = tmp_path / "offsets.csv"
    path.write_text(
        "\n".join(["snapshot_ts,group,topic,partition,lag,consumer_id,replica_racks,move_size,traffic", *rows, ""])
    )
    history, _ = read_snapshots(path)
    assert [len(snapshot.problem.lags) for snapshot in history] == [2, 2, 2]
    first, between, last = (snapshot.problem.pairs for snapshot in history)
    assert between.partition_racks == (("a", "b"), ("b",))
    assert between.same_as(first)
    assert between.same_as(last)


def test_groups_of_a_task_give_the_problem_of_plain_values(tmp_path: Path) -> None:
    offsets: Rows = []
    members: Rows = []
    wanted = {}
    for seed in range(12):
        more_offsets, more_members, problem = random_tables(Random(seed))
        name = f"g{seed:02}"
        offsets += [row | {"group": name} for row in more_offsets]
        members += [row | {"group": name} for row in more_members]
        wanted[name] = problem
    typed = [pq.read_table(path) for path in write_both(tmp_path, "parquet", offsets, members)]
    texts = [as_texts(path) for path in write_both(tmp_path, "csv", offsets, members)]
    for tables in (typed, texts):
        checked = rules(*tables).checked(batches(*tables))
        assert checked is not None
        assert list(checked.rejects()) == []
        groups = list(checked.groups().groups())
        assert [rows.group for rows in groups] == sorted(wanted)
        for rows in groups:
            assert rows.problem().pairs.same_as(wanted[rows.group].pairs), rows.group
            assert rows.problem().same_structure(wanted[rows.group])


def as_texts(path: Path) -> Any:
    """Read a CSV file as Spark does, with all columns as text."""
    names = path.read_text().partition("\n")[0].strip().split(",")
    options = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True)
    return csv.read_csv(path, convert_options=options)


@pytest.mark.spark
def test_a_fleet_with_racks_is_planned_as_before_and_bad_values_are_rejected(spark: "SparkSession") -> None:
    from evenlag.pipeline import plans, rejects

    rows = [("1", "g", "t", p, lag, json.dumps(["a"]), 3) for p, lag in enumerate([9, 7, 4, 2])]
    wrong = [("1", "g", "t", 4, 5, "[1", 3), ("1", "g", "t", 5, 5, None, -1)]
    ddl = "snapshot_ts STRING, `group` STRING, topic STRING, `partition` INT, lag BIGINT, replica_racks STRING"
    df = spark.createDataFrame(rows + wrong, f"{ddl}, move_size BIGINT")
    members = spark.createDataFrame(
        [("1", "g", name, rack) for name, rack in (("x", "a"), ("y", None))],
        "snapshot_ts STRING, `group` STRING, consumer_id STRING, rack STRING",
    )
    bare = plans(df.drop("replica_racks", "move_size").filter("`partition` < 4"), members.drop("rack"))
    for planned in (plans(df, members).collect(), bare.collect()):
        held = {name: {row["partition"] for row in planned if row["consumer_id"] == name} for name in "xy"}
        assert sorted(map(sorted, held.values())) == [[0, 3], [1, 2]]  # 9 + 2 and 7 + 4
        assert len(planned) == 4
    reasons = {row["partition"]: row["reason"] for row in rejects(df, members).collect()}
    assert reasons == {4: "replica_racks is not a list of names", 5: "move_size is negative"}
