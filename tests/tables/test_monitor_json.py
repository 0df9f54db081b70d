"""Answers of monitors in JSON: Burrow's, Confluent's, Prometheus'."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.errors import EvenlagError, SourceError
from evenlag.tables.loading import form_of
from evenlag.tables.read import read_group
from tests.support.monitors import lags, notes, read, refused, rows


def partition(number: int, lag: int | None = 5, **fields: Any) -> dict[str, Any]:
    end = None if lag is None else {"offset": 10, "timestamp": 1, "lag": 1}
    there = {"topic": "t", "partition": number, "owner": "/h", "client_id": "app", "status": "OK"}
    return there | {"start": end, "end": end, "current_lag": lag or 0, "complete": 1} | fields


def burrow(*partitions: object, **status: Any) -> str:
    answer = {
        "cluster": "c",
        "group": "g",
        "status": "OK",
        "partitions": partitions,
        "partition_count": len(partitions),
    }
    request = {"url": "/v3/kafka/c/consumer/g/lag", "host": "h"}
    return json.dumps(
        {"error": False, "message": "consumer status returned", "status": answer | status, "request": request}
    )


def test_burrow_gives_lag_and_owner() -> None:
    reading = read(burrow(partition(0), partition(1, None, client_id="", owner="")))
    assert rows(reading, "current_offset", "log_end_offset", "lag", "consumer_id") == [
        ("t", 0, 10, 15, 5, "app_/h"), ("t", 1, None, None, 0, None)
    ]  # fmt: skip
    assert [row["consumer_id"] for _, row in reading.members] == ["app_/h"]
    assert any("t-1" in note for note in notes(reading))
    del (old := partition(0))["client_id"]
    assert rows(read(burrow(old)), "consumer_id") == [("t", 0, "/h")]
    assert any("whole of Burrow's window" in note for note in notes(read(burrow(partition(0, complete=0.5)))))


def test_burrows_answers_of_several_groups_may_follow_one_another() -> None:
    text = burrow(partition(0)) + "\n" + burrow(partition(0, 7), group="h")
    assert lags(read(text), "g") == {("t", 0): 5}
    assert lags(read(text), "h") == {("t", 0): 7}
    assert "is in cluster 'd', but before it was in cluster 'c'" in refused(
        burrow(partition(0)) + burrow(partition(1), cluster="d")
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (burrow(partition(0), partition_count=7), "has only 1 of the group's 7 partitions"),
        (burrow(status="NOTFOUND"), "knows no partition of group 'g' (NOTFOUND)"),
        (json.dumps({"error": True, "message": "no", "request": {"url": "/v3/kafka/c"}}), "error: no"),
        (
            json.dumps({"error": False, "message": "", "topics": {}, "request": {"url": "/v3/kafka/c"}}),
            "no lag by partition",
        ),
        (burrow(partition(0, current_lag=1.5)), "item 1: t-0: offset and lag must be whole numbers"),
        (burrow(partition(0, owner=["a"])), "item 1: t-0: owner must be a text, not ['a']"),
        (burrow(partition(0, client_id=7), partition(1)), "item 1: t-0: client_id must be a text, not 7"),
        (burrow(partition(0, end=4)), "item 1: t-0: `end` must be an offset"),
        (burrow(partition(0), partition(1, topic=7)), "item 2: has no topic and partition"),
        (burrow(partition(0), []), "item 2: not a partition: []"),
        (burrow(partition(0)) + "\n{", "line 2: not valid JSON"),
        (burrow(partition(0)) + "\n[]", "line 2: not a response of Burrow"),
    ],
)
def test_burrows_other_answers_are_refused(text: str, message: str) -> None:
    assert message in refused(text)


def lag_of(number: int, lag: int | None = 5, **fields: Any) -> dict[str, Any]:
    ids = {"cluster_id": "c", "consumer_group_id": "g", "topic_name": "t", "partition_id": number}
    names = {"consumer_id": "c1", "instance_id": "", "client_id": "app"}
    return ids | names | {"current_offset": 7, "log_end_offset": 12, "lag": lag} | fields


def page(*data: dict[str, Any], following: str | None = None) -> str:
    return json.dumps({"kind": "KafkaConsumerLagList", "metadata": {"next": following}, "data": data})


@pytest.mark.parametrize("count", [1, 2])
def test_confluents_lags_one_per_line_are_no_rows_of_a_table(count: int, tmp_path: Path) -> None:
    (tmp_path / "lags.jsonl").write_text("".join(json.dumps(lag_of(number)) + "\n" for number in range(count)))
    assert form_of(tmp_path / "lags.jsonl") == "confluent"


def test_confluents_command_and_its_rest_api_agree() -> None:
    names = {"cluster_id": "cluster", "consumer_group_id": "consumer_group", "topic_name": "topic"}
    names |= {"partition_id": "partition", "consumer_id": "consumer", "instance_id": "instance", "client_id": "client"}
    listed = [lag_of(0), lag_of(1, consumer_id="", client_id="", current_offset=-1)]
    command = json.dumps([{names.get(name, name): value for name, value in each.items()} for each in listed])
    for text in (command, page(*listed), page(listed[0], following="https://x/2") + page(listed[1])):
        reading = read(text)
        assert rows(reading, "current_offset", "log_end_offset", "lag", "consumer_id", "client_id") == [
            ("t", 0, 7, 12, 5, "c1", "app"), ("t", 1, None, 12, None, None, None)
        ]  # fmt: skip
        assert [row["consumer_id"] for _, row in reading.members] == ["c1"]
    assert read(page(lag_of(0, consumer_id=None))).unknown_members == {"g"}


TABLE = """
  Cluster  | Consumer Group | Lag | Log End Offset | Current Offset | Consumer | Instance | Client | Topic | Partition
-----------+----------------+-----+----------------+----------------+----------+----------+--------+-------+------------
  lkc-1234 | g              |   5 |             12 |              7 | c1       |          | app    | t     |         0
  lkc-1234 | g              |     |             12 |             -1 |          |          |        | t     |         1
"""


def test_the_table_of_confluents_command_is_read() -> None:
    reading = read(TABLE)
    assert rows(reading, "current_offset", "log_end_offset", "lag", "consumer_id", "client_id") == [
        ("t", 0, 7, 12, 5, "c1", "app"), ("t", 1, None, 12, None, None, None)
    ]  # fmt: skip
    assert [number for number, _ in reading.offsets] == [4, 5]
    framed = "\n".join(f"|{line}|" for line in TABLE.strip("\n").split("\n"))
    assert rows(read(framed), "lag") == rows(reading, "lag")
    assert "line 6: 2 fields, but the table has 10" in refused(TABLE + "a | b\n")
    assert "line 4: lag of t-0 must be a whole number, not 'x'" in refused(TABLE.replace("   5 |", "   x |"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (page(lag_of(0), following="https://x/2"), "add the response of https://x/2"),
        (page(), "the list is empty"),
        (page(lag_of(0, current_offset=1.5)), "item 1: current_offset of t-0 must be a whole number, not 1.5"),
        (page(lag_of(0), {"topic_name": "t"}), "item 2: not the lag of a partition"),
        (page(lag_of(0)) + page(lag_of(1, cluster_id="d")), "item 2: group 'g' is in cluster 'd'"),
        (page(lag_of(0, topic_name=3)), "item 1: has no group, topic and partition"),
        (page(lag_of(0), lag_of(1, consumer_id=3)), "item 2: t-1: consumer_id must be a text, not 3"),
        (page(lag_of(0, lag=None, log_end_offset=None)), "has neither lag nor log_end_offset"),
        (page(lag_of(0)) + '{"a": 1, "a": 2}', "'a' is given twice"),
        (page(lag_of(0)) + "{}", "not a list of lags"),
    ],
)
def test_confluents_broken_lists_are_refused(text: str, message: str) -> None:
    assert message in refused(text)


def test_a_list_of_confluent_may_lack_its_metadata_and_write_numbers_with_a_fraction() -> None:
    document = json.loads(page(lag_of(0, 5.0, current_offset=7.0, log_end_offset=12.0)))
    for metadata in (None, "none", [], 0):
        assert lags(read(json.dumps(document | {"metadata": metadata})), "g") == {("t", 0): 5}


def test_confluents_lag_without_a_commit_and_a_log_end_is_unknown() -> None:
    reading = read(page(lag_of(0), lag_of(1, current_offset=-1, log_end_offset=None)))
    assert lags(reading, "g") == {("t", 0): 5, ("t", 1): 0}
    assert any("t-1: lag unknown" in note for note in notes(reading))


def group_of_rpk(**fields: Any) -> str:
    there = {"topic": "t", "partition": 0, "current_offset": 7, "log_start_offset": 0, "log_end_offset": 12, "lag": 5}
    return json.dumps([{"group_name": "g", "partitions": [there], "members_details": [{"member_id": "c"}]} | fields])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"group_name": 7}, "line 1: not a group of rpk"),
        ({"partitions": 7}, "line 1: not a group of rpk"),
        ({"members_details": True}, "line 1: not a group of rpk"),
        ({"partitions": [[]]}, "item 1: not a partition: []"),
        ({"partitions": [{"topic": "t"}]}, "item 1: the topic or a number is missing"),
        ({"members_details": [{"client_id": "c"}]}, "item 2: not a member"),
    ],
)
def test_other_groups_of_rpk_are_refused(fields: dict[str, Any], message: str) -> None:
    assert lags(read(group_of_rpk()), "g") == {("t", 0): 5}
    assert message in refused(group_of_rpk(**fields))


def series(number: int, *samples: tuple[float, str], name: str | None = "kafka_consumergroup_lag") -> dict[str, Any]:
    metric = {"consumergroup": "g", "topic": "t", "partition": str(number)} | ({"__name__": name} if name else {})
    values = [[at, value] for at, value in samples]
    return {"metric": metric} | ({"value": values[0]} if len(values) == 1 else {"values": values})


def answer(*result: dict[str, Any], kind: str = "vector", **fields: Any) -> str:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}} | fields)


def test_an_answer_to_query_is_a_snapshot() -> None:
    reading = read(answer(series(0, (1767323045.678, "5")), series(1, (1767323045.678, "1e+3")), warnings=["slow"]))
    assert rows(reading, "lag", "snapshot_ts") == [
        ("t", 0, 5, "2026-01-02T03:04:05.678Z"), ("t", 1, 1000, "2026-01-02T03:04:05.678Z")
    ]  # fmt: skip
    assert any("warns: slow" in note for note in notes(reading))
    bare = json.loads(answer(series(0, (1, "5"))))["data"]
    assert rows(read(json.dumps(bare)), "lag") == rows(read(json.dumps(bare["result"])), "lag") == [("t", 0, 5)]


def test_an_answer_to_query_range_is_a_record() -> None:
    commits = series(0, (1.0, "10"), (61.0, "70"), name="kafka_consumergroup_current_offset")
    reading = read(answer(series(0, (1.0, "5"), (61.0, "9")), commits, kind="matrix"))
    assert rows(reading, "snapshot_ts", "current_offset", "log_end_offset") == [
        ("t", 0, "1970-01-01T00:00:01.000Z", 10, 15), ("t", 0, "1970-01-01T00:01:01.000Z", 70, 79)
    ]  # fmt: skip


@given(st.randoms(use_true_random=False), st.integers(1, 4), st.integers(0, 3))
def test_the_order_of_series_and_pages_changes_nothing(chance: random.Random, partitions: int, foreign: int) -> None:
    own = [series(number, (1.0, str(5 + number)), (61.0, "9")) for number in range(partitions)]
    own += [
        series(number, (1.0, "10"), (61.0, "70"), name="kafka_consumergroup_current_offset")
        for number in range(partitions)
    ]
    others = [{"metric": {"__name__": "up", "job": str(number)}, "values": [[1.0, "1"]]} for number in range(foreign)]
    shuffled = chance.sample(own + others, len(own) + foreign)
    expected = rows(read(answer(*own, kind="matrix")), "snapshot_ts", "lag", "current_offset", "log_end_offset")
    assert (
        rows(read(answer(*shuffled, kind="matrix")), "snapshot_ts", "lag", "current_offset", "log_end_offset")
        == expected
    )
    cut = chance.randint(0, len(shuffled) - 1)
    pages = answer(*shuffled[cut:], kind="matrix") + "\n" + answer(*shuffled[:cut], kind="matrix")
    assert rows(read(pages), "snapshot_ts", "lag", "current_offset", "log_end_offset") == expected
    listed = [partition(number, number) for number in range(partitions)]
    assert sorted(rows(read(burrow(*chance.sample(listed, partitions))), "lag")) == rows(read(burrow(*listed)), "lag")


def test_series_with_different_times_are_refused() -> None:
    apart = [series(number, (float(number), "5"), (10.0 + number, "5")) for number in range(3)]
    assert "query_range with a step" in refused(answer(*apart, kind="matrix"))


def test_series_without_a_name_are_lags() -> None:
    reading = read(answer(series(0, (1.0, "5"), name=None)))
    assert lags(reading, "g") == {("t", 0): 5}
    assert any("have no metric name" in note for note in notes(reading))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"status": "error", "errorType": "bad_data", "error": "1:2: parse error"}', "error: 1:2: parse error"),
        (answer(), "found no series"),
        (answer(kind="scalar"), "of type 'scalar'"),
        (answer({"metric": {"a": "b"}, "value": [1, "2"]}), "no series reports the lag"),
        (answer({"metric": {"a": "b"}}), "series 1: not a series"),
        (answer(series(0, (1.0, "five"))), 'series 1: a sample must be [seconds, "number"]'),
        (answer(series(0, (1.0, "0.5"))), "series 1: kafka_consumergroup_lag is 0.5"),
        (answer({"metric": {"topic": 1}, "value": [1, "2"]}), "series 1: labels must be text"),
        (answer(series(0, (1.0, "5"))) + "\n[", "not valid JSON"),
    ],
)
def test_other_answers_of_prometheus_are_refused(text: str, message: str) -> None:
    assert message in refused(text)


@pytest.mark.parametrize(
    ("name", "document"),
    [
        (
            "akhq.json",
            {"id": "billing", "state": "STABLE", "offsets": [{"topic": "orders"}], "members": [{"id": "a-1"}]},
        ),
        ("kafka-ui.json", {"groupId": "billing", "members": 1, "topics": 1, "partitions": [{"topic": "orders"}]}),
        ("export.jsonl", {"metric": {"__name__": "kafka_lag"}, "values": [5, 6], "timestamps": [1, 2]}),
    ],
)
@pytest.mark.parametrize("times", [1, 2])
def test_other_json_is_refused_with_the_known_formats(
    name: str, document: dict[str, Any], times: int, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(f"{json.dumps(document)}\n" * times)
    with pytest.raises(SourceError, match=r"unknown JSON format; evenlag reads a problem file, a snapshot") as error:
        form_of(path)
    assert str(error.value).endswith(f"; this one has {', '.join(sorted(document))}")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"topics": {"t": [1]}, "member": {"c": {"topics": ["t"]}}}, "unknown field 'member'.*did you mean 'members'"),
        ({"topic": {"t": [1]}, "members": {"c": {"topics": ["t"]}}}, "unknown field 'topic'.*did you mean 'topics'"),
        ({"topics": [1], "members": ["c"]}, "'topics' must be an object of names"),
    ],
)
def test_a_mistake_in_a_problem_file_is_named(document: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    path.write_text(json.dumps(document))
    with pytest.raises(EvenlagError, match=message):
        read_group(path)
