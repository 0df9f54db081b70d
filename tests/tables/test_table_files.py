import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenlag
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.tables import files
from evenlag.tables.columns import MEMBERS, OFFSETS, TABLES, TableKind
from evenlag.tables.formats import describe
from evenlag.tables.loading import read_table
from evenlag.tables.topics import TopicAddress, is_topic, topic_address
from evenlag.tables.writing import write_table, write_tables

TS = "2026-01-02T03:04:05.678Z"

# Printed by kafka-consumer-groups of Kafka 4.1.0 (--describe --all-groups); client ids and group with spaces.
KAFKA_4 = """
GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID                                HOST            CLIENT-ID
billing         orders          2          -               33              -               app 2-94ef9b17-7e7c-4a2c-877c-47b0ff6ca986 /127.0.0.1      app 2
billing         orders          0          5               34              29              app 0-8e898a64-da00-45a2-a2a4-7bc015ad9a01 /127.0.0.1      app 0

Consumer group 'night batch' has no active members.

GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID
night batch     payments        1          0               0               0               -               -               -
night batch     orders          0          5               34              29              -               -               -

"""  # noqa: E501
# The same with --verbose.
KAFKA_4_VERBOSE = """
GROUP           TOPIC           PARTITION  LEADER-EPOCH    CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID                                HOST            CLIENT-ID
billing         orders          2          -               -               33              -               app 2-94ef9b17-7e7c-4a2c-877c-47b0ff6ca986 /127.0.0.1      app 2
"""  # noqa: E501
# With --members in place of offsets.
KAFKA_4_MEMBERS = """
GROUP           CONSUMER-ID                                HOST            CLIENT-ID       #PARTITIONS     
billing         app 2-94ef9b17-7e7c-4a2c-877c-47b0ff6ca986 /127.0.0.1      app 2           1               
billing         app 3-549b3c1c-4d90-4470-b8ce-381a8920ef3b /127.0.0.1      app 3           0               

Consumer group 'night batch' has no active members.

GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     
"""  # noqa: W291
# The layout of Kafka 1: no GROUP, a note before, and members without a partition among the rows.
KAFKA_1 = """Note: This will not show information about old Zookeeper-based consumers.

TOPIC                          PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG        CONSUMER-ID                                       HOST                           CLIENT-ID
orders                         0          5               34              29         consumer-1-2f0f                                   /127.0.0.1                     consumer-1
-                              -          -               -               -          consumer-1-77aa                                   /127.0.0.1                     consumer-1
"""  # noqa: E501


def offsets_row(**values: object) -> dict[str, object]:
    return {column.name: values.get(column.name) for column in OFFSETS}


def members_row(**values: object) -> dict[str, object]:
    return {column.name: values.get(column.name) for column in MEMBERS}


ROWS: dict[TableKind, list[dict[str, object]]] = {
    "offsets": [
        offsets_row(
            snapshot_ts=TS,
            group="night, batch",
            topic="orders",
            partition=0,
            log_start_offset=0,
            log_end_offset=2**62,
            current_offset=5,
            lag=2**62 - 5,
            consumer_id='app "1"\nx',
            client_id="ürün",
            host="/10.0.0.1",
            auto_offset_reset="earliest",
        ),
        offsets_row(group="g", topic="orders", partition=1),
    ],
    "members": [
        members_row(snapshot_ts=TS, group="g", consumer_id="c", topics=["a", "b"], weight=0.5, max_partitions=3),
        members_row(group="g", consumer_id="d", group_instance_id="i", topics=[], weight=2.0, generation=7),
        members_row(group="g", consumer_id="e"),
    ],
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "ndjson", "json", "parquet"])
def test_written_tables_read_back_unchanged(tmp_path: Path, suffix: str, kind: TableKind) -> None:
    path = tmp_path / "new" / f"table.{suffix}"
    write_table(path, ROWS[kind], TABLES[kind])
    assert list(read_table(path, kind)) == ROWS[kind]
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_names_with_separators_and_ends_of_lines_read_back_unchanged(tmp_path: Path, suffix: str) -> None:
    lists = [[], [""], ["-"], ["a;b", ""], [" a "], ["[a"], ["a\r", "b\n"]]
    rows = [
        offsets_row(group="g\r", topic="a,b", partition=p, client_id='"\n', replica_racks=each)
        for p, each in enumerate(lists)
    ]
    write_table(tmp_path / f"a.{suffix}", rows, OFFSETS)
    assert list(read_table(tmp_path / f"a.{suffix}", "offsets")) == rows


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_folder_of_part_files(tmp_path: Path, suffix: str) -> None:
    for part, row in zip(("part-1", "part-0", "_part-2", ".part-3"), ROWS["members"] * 2, strict=False):
        write_table(tmp_path / f"{part}.{suffix}", [row], MEMBERS)
    (tmp_path / "_SUCCESS").touch()
    assert list(read_table(tmp_path, "members")) == [ROWS["members"][1], ROWS["members"][0]]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_compressed_text_is_read(tmp_path: Path, suffix: str) -> None:
    write_table(tmp_path / f"a.{suffix}", ROWS["offsets"], OFFSETS)
    text = (tmp_path / f"a.{suffix}").read_bytes()
    packed = tmp_path / f"b.{suffix}.gz"
    packed.write_bytes(gzip.compress(text))
    assert list(read_table(packed, "offsets")) == ROWS["offsets"]
    packed.write_bytes(gzip.compress(text)[:-12])
    with pytest.raises(SourceError, match=rf"b\.{suffix}\.gz: cannot be read, or is cut short"):
        list(read_table(packed, "offsets"))


def test_csv_values_get_the_type_of_their_column_or_stay(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(
        "\ufeffpartition, group ,topic,lag,log_end_offset,extra\r\n"
        "7,g,t,12.0,-3,x\r\n\r\n"
        "seven,g,t,1.5,1e3,x\r\n"
        f"1_0,g,t,{'9' * 41},٣,x\r\n"
        " 4 ,007,,,,\r\n"
    )
    names = ("partition", "group", "topic", "lag", "log_end_offset")
    assert [tuple(row[name] for name in names) for row in read_table(path, "offsets")] == [
        (7, "g", "t", 12, -3),
        ("seven", "g", "t", "1.5", 1000),
        ("1_0", "g", "t", "9" * 41, "٣"),
        (4, "007", None, None, None),
    ]


@pytest.mark.parametrize("cell", ["0", '"0"'])
def test_lines_of_blanks_in_csv_are_skipped(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(f"\ufeff\r\n  \r\ngroup,topic,partition,lag\r\n \t\r\ng,t,{cell},x\r\n   ")
    with pytest.raises(InvalidProblemError, match=r"offsets\.csv, line 5: t-0: lag is not a whole number"):
        evenlag.read(path)


def test_members_are_read_from_csv(tmp_path: Path) -> None:
    path = tmp_path / "members.csv"
    path.write_text('group,consumer_id,topics,weight\ng,a,x; y;,1e1\ng,b,,nan\ng,c,;,1_0\ng,d," [""x""]",\n')
    rows = [(row["topics"], row["weight"]) for row in read_table(path, "members")]
    assert rows == [(["x", "y"], 10.0), (None, None), ([], "1_0"), (["x"], None)]


@pytest.mark.parametrize("header", ["group,consumer_id", "Group; Member", "consumer_id,topics"])
def test_a_table_of_two_columns_is_csv_by_any_name(tmp_path: Path, header: str) -> None:
    rows = "g,a\ng,b\n" if "roup" in header else "a,t\nb,t\n"
    text = f"{header}\n{rows}".replace(",", ";" if ";" in header else ",")
    offsets = "group,topic,partition,lag\ng,t,0,5\n"
    for members in (text, tmp_path / "members", tmp_path / "members.txt"):
        if isinstance(members, Path):
            members.write_text(text)
        assert evenlag.read(offsets, members=members, group="g").members == ("a", "b")


def test_json_values_get_the_type_of_their_column_or_stay(tmp_path: Path) -> None:
    path = tmp_path / "members.jsonl"
    rows = [
        {"group": "g", "consumer_id": "a", "topics": ["x"], "weight": 2, "generation": 3.0},
        {"group": 5, "consumer_id": None, "topics": "x;y", "weight": "2.5", "generation": "4"},
        {"group": "g", "consumer_id": "b", "topics": "", "weight": float("nan"), "generation": 1.5, "more": {}},
    ]
    path.write_text("\n\n".join(map(json.dumps, rows)))
    names = ("group", "consumer_id", "topics", "weight", "generation")
    assert [tuple(row[name] for name in names) for row in read_table(path, "members")] == [
        ("g", "a", ["x"], 2, 3),
        ("5", None, ["x", "y"], 2.5, 4),
        ("g", "b", None, None, 1.5),
    ]


def test_json_may_omit_nulls(tmp_path: Path) -> None:
    path = tmp_path / "offsets.jsonl"
    path.write_text('{"group": "g", "topic": "t", "partition": 0}\n{"group": "g", "lag": 3}\n')
    assert list(read_table(path, "offsets")) == [
        offsets_row(group="g", topic="t", partition=0),
        offsets_row(group="g", lag=3),
    ]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.txt", "a"])
@pytest.mark.parametrize("count", [1, 2])
def test_rows_without_a_group_are_read_as_json_lines_by_any_name(tmp_path: Path, name: str, count: int) -> None:
    rows = [{"topic_name": "t", "partition": p, "lag": 5, "owner": "a"} for p in range(count)]
    (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    problem = evenlag.read(tmp_path / name, group="billing")
    assert (problem.group, problem.lags.tolist(), problem.members) == ("billing", [5] * count, ("a",))
    with pytest.raises(SourceError, match=r"no column group; .* name the group of a table without"):
        evenlag.read(tmp_path / name)


@pytest.mark.slow
def test_a_csv_file_without_quotes_is_read_as_one_with_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome() -> object:
        try:
            rows = files.table_rows(path, "csv", lambda headings: {name: name for name in headings})
        except SourceError as error:
            return str(error)
        return list(rows.raw())

    path, quick = tmp_path / "a.csv", 0
    for seed in range(300):
        rng = random.Random(seed)
        cells = ["a", "", "1", " x", "é", "-", "\t", "NaN", "null", "#N/A"]
        rows = [[rng.choice(cells) for _ in range(2 if rng.random() < 0.03 else 3)] for _ in range(rng.randint(0, 4))]
        end = rng.choice(["\n", "\r\n", "\r"])
        text = end.join(["a,b,c", *map(",".join, rows)]) + rng.choice([end, "", end * 2])
        path.write_text(text, newline="")
        found = outcome()
        quick += files._without_quotes(text, 3, {"a": 0}, ",") is not None
        with monkeypatch.context() as patch:
            patch.setattr(files, "_without_quotes", lambda *_: None)
            assert outcome() == found, text
    assert 50 < quick < 250


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_parquet_of_pandas_is_read(tmp_path: Path, zone: str | None) -> None:
    time = pd.Timestamp("2026-01-02T03:04:05.678901234", tz=zone)
    frame = pd.DataFrame(
        {"snapshot_ts": [time], "group": ["g"], "topic": ["t"], "partition": [1], "lag": [float("nan")], "other": [0]}
    )
    path = tmp_path / "offsets.snappy.parquet"
    frame.to_parquet(path)
    hour = 2 if zone == "Europe/Berlin" else 3
    expected = offsets_row(snapshot_ts=f"2026-01-02T{hour:02}:04:05.678901Z", group="g", topic="t", partition=1)
    assert list(read_table(path, "offsets")) == [expected]


def test_parquet_with_spark_types_is_read(tmp_path: Path) -> None:
    path = tmp_path / "members.parquet"
    columns = {
        "group": pa.array(["g", "h"]).dictionary_encode(),
        "consumer_id": ["c", None],
        "topics": [["a"], None],
        "snapshot_ts": pa.array([datetime(2026, 1, 2, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "generation": pa.array([3, None], pa.int32()),
    }
    pq.write_table(pa.table(columns), path)
    assert list(read_table(path, "members")) == [
        members_row(snapshot_ts="2026-01-02T00:00:00.000Z", group="g", consumer_id="c", topics=["a"], generation=3),
        members_row(group="h"),
    ]


def broken(name: str, content: bytes | str, message: str) -> object:
    return pytest.param(name, content.encode() if isinstance(content, str) else content, message, id=message[:40])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        broken(
            "a.csv", "", r"no column group, topic, partition, log_end_offset \(or lag\); the offsets table has snap"
        ),
        broken("a.csv", "group,topic,lag\n", r"no column partition; the offsets"),
        broken("a.csv", "group;topic\n", r"no column partition, log_end_offset \(or lag\); the offsets"),
        broken("a.csv", "group|topic\n", r"no column .*; separate columns by commas"),
        broken("a.csv", "group,topic,partition\n", r"no column log_end_offset \(or lag\); the offsets"),
        broken("a.csv", "group,topic,partition,lag,lag\n", r"column lag appears twice"),
        broken("a.csv", "group,topic,partition,lag\ng,t,0,5\ng,t\n", r", line 3: 2 fields, but the header has 4"),
        broken("a.csv", 'group,topic,partition,lag\ng,t,0,"5\n', r", line 2: broken CSV"),
        broken("a.csv", b"group,topic,partition,lag\ng\xff,t,0,5\n", r"is not UTF-8 text"),
        broken("a.jsonl", '{"group": "g"}\n', r"no column topic, partition"),
        broken("a.jsonl", '{"group": "g", "topic": "t", "partition": 0}\n{"gro', r", line 2: broken JSON"),
        broken("a.jsonl", '{"group":"g","topic":"t","partition":0,"lag":5,"lag":6}', r", line 1: 'lag' is given twice"),
        broken("a.json", "[1]\n", r"unknown JSON format; evenlag reads a problem file, "),
        broken("a.jsonl", '{"group":"g","topic":"t","partition":0}\n[1]\n', r", line 2: not a JSON object"),
        broken("a.json", "[" * 100_000, r", line 1: broken JSON"),
        broken("a.csv.gz", b"no gzip", r"cannot be read, or is cut short: Not a gzipped file"),
        broken("a.parquet", b"PAR1 and no more", r"broken Parquet"),
        broken("a.parquet", b"", r"broken Parquet"),
        broken("a.xls", "group,other\n", r"unknown format; give the file a suffix of \.csv, \.txt"),
        broken(
            "a.txt", "GROUP TOPIC\n", r"no header with TOPIC, PARTITION, CURRENT-OFFSET, LOG-END-OFFSET, LAG; give the"
        ),
        broken(
            "a.txt",
            "Error: Consumer group 'x' does not exist.\n",
            r", line 1: Kafka printed an error instead of a table: Error: ",
        ),
        broken("a.txt", "TOPIC PARTITION CURRENT-OFFSET\nt 0\n", r", line 1: header without LOG-END-OFFSET, LAG, CONS"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=rf"{name}(: )?{message}") as caught:
        list(read_table(tmp_path / name, "offsets"))
    assert "\n" not in str(caught.value)


def test_truncated_parquet_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_table(path, ROWS["offsets"] * 1000, OFFSETS)
    whole = path.read_bytes()
    middle = len(whole) // 2
    for bytes_ in (whole[:middle], whole[:100] + b"\0" * (len(whole) - 600) + whole[-500:]):
        path.write_bytes(bytes_)
        with pytest.raises(SourceError, match=r"a\.parquet"):
            list(read_table(path, "offsets"))


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"absent\.csv: no such file or folder"):
        list(read_table(tmp_path / "absent.csv", "offsets"))
    with pytest.raises(SourceError, match=r"the folder has no file with a suffix of \.csv"):
        list(read_table(tmp_path, "offsets"))


def test_tables_and_snapshots_need_no_spark() -> None:
    code = "import sys, evenlag.live; print({'pyspark', 'kafka'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("name", ["lags.txt", "lags.csv", "lags", "lags.out.gz"])
def test_kafkas_text_is_recognised_by_its_header(tmp_path: Path, name: str) -> None:
    content = KAFKA_4.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    ids = ("app 2-94ef9b17-7e7c-4a2c-877c-47b0ff6ca986", "app 0-8e898a64-da00-45a2-a2a4-7bc015ad9a01")
    orders = {"topic": "orders", "host": "/127.0.0.1", "group": "billing"}
    assert list(read_table(tmp_path / name, "offsets")) == [
        offsets_row(**orders, partition=2, log_end_offset=33, consumer_id=ids[0], client_id="app 2"),
        offsets_row(
            **orders, partition=0, log_end_offset=34, current_offset=5, lag=29, consumer_id=ids[1], client_id="app 0"
        ),
        offsets_row(group="night batch", topic="payments", partition=1, log_end_offset=0, current_offset=0, lag=0),
        offsets_row(group="night batch", topic="orders", partition=0, log_end_offset=34, current_offset=5, lag=29),
    ]
    members = [(row["group"], row["client_id"]) for row in read_table(tmp_path / name, "members")]
    assert members == [("billing", "app 2"), ("billing", "app 0")]


def test_kafkas_text_with_leader_epochs_is_read() -> None:
    ((_, row),) = describe.read(KAFKA_4_VERBOSE, "text").offsets
    assert [row[name] for name in ("partition", "current_offset", "log_end_offset", "client_id")] == [
        "2", None, "33", "app 2"
    ]  # fmt: skip


def test_kafkas_text_of_members_is_read(tmp_path: Path) -> None:
    path = tmp_path / "members.txt"
    path.write_text(KAFKA_4_MEMBERS)
    members = [(row["group"], row["client_id"]) for row in read_table(path, "members")]
    assert members == [("billing", "app 2"), ("billing", "app 3")]


@pytest.mark.parametrize("name", ["billing.v2.txt", "billing.v2.txt.gz"])
def test_kafkas_text_without_a_group_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(KAFKA_1.encode()) if name.endswith(".gz") else KAFKA_1.encode())
    (row,) = read_table(path, "offsets")
    assert (row["group"], row["topic"], row["lag"]) == ("billing.v2", "orders", 29)
    members = [(row["group"], row["consumer_id"]) for row in read_table(path, "members")]
    assert members == [("billing.v2", "consumer-1-2f0f"), ("billing.v2", "consumer-1-77aa")]


def test_kafkas_text_without_its_layout_is_refused() -> None:
    text = KAFKA_4.replace("night batch     payments", "night batch payments")
    with pytest.raises(SourceError, match=r"text, line 9: does not fit its header \(10 fields for 9 columns\)"):
        describe.read(text, "text")


def assert_write_fails(path: Path, message: str, write: Callable[[], None]) -> None:
    before = sorted(path.rglob("*"))
    with pytest.raises(SourceError, match=message):
        write()
    assert sorted(path.rglob("*")) == before


def test_two_threads_may_write_one_table(tmp_path: Path) -> None:
    path, rows = tmp_path / "offsets.csv", ROWS["offsets"]

    def rows_while_another_writes() -> Iterator[dict[str, object]]:
        yield rows[0]
        write_table(path, rows[:1], OFFSETS)
        yield from rows[1:]

    write_table(path, rows_while_another_writes(), OFFSETS)
    assert len(list(read_table(path, "offsets"))) == len(rows) > 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_has_the_rights_of_new_files(tmp_path: Path) -> None:
    path, other = tmp_path / "offsets.csv", tmp_path / "other"
    before = os.umask(0o027)
    try:
        write_table(path, ROWS["offsets"], OFFSETS)
        other.touch()
    finally:
        os.umask(before)
    assert path.stat().st_mode == other.stat().st_mode


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    good, blocked = tmp_path / "good.csv", tmp_path / "blocked.csv"
    good.write_text("old")
    blocked.mkdir()
    rows = ROWS["offsets"]
    both = {good: (rows, OFFSETS), blocked: (rows, OFFSETS)}
    assert_write_fails(tmp_path, r"blocked\.csv: is a folder; name a file", lambda: write_tables(both))
    assert good.read_text() == "old"
    assert_write_fails(tmp_path, r"x\.csv: cannot be written \(", lambda: write_table(good / "x.csv", rows, OFFSETS))
    assert_write_fails(tmp_path, r"a\.xls: unknown format", lambda: write_table(tmp_path / "a.xls", rows, OFFSETS))
    odd = [*rows, offsets_row(partition=object())]
    for suffix in ("jsonl", "parquet"):
        write = partial(write_table, tmp_path / f"a.{suffix}", odd, OFFSETS)
        assert_write_fails(tmp_path, rf"a\.{suffix}: a value does not fit its column", write)
    beyond = [offsets_row(lag=2**63)]
    assert_write_fails(
        tmp_path, "does not fit its column", lambda: write_table(tmp_path / "a.parquet", beyond, OFFSETS)
    )


def test_topic_addresses_are_parsed() -> None:
    assert topic_address("kafka://a:1,[::1]:2/t.1,u-_") == TopicAddress("a:1,[::1]:2", "t.1,u-_")
    for place in ("kafka://", "kafka:a:1/t", "kafka://a:1", "kafka://a:1/t t", "kafka://a/t", "kafka://a:1/t/u", "t"):
        with pytest.raises(SourceError, match=f"^{place}: not a topic address; write kafka://HOST:PORT/TOPIC, several"):
            topic_address(place)
    assert is_topic("kafka:a")
    assert not is_topic("kafka")
    assert not is_topic(Path("kafka:a"))
