"""Answers of monitors about consumer groups, read as tables."""

import re
from pathlib import Path

import pytest

from evenlag.model.lag import partition_lag
from evenlag.tables.formats import FORMATS
from evenlag.tables.formats.exporters import COLUMNS, EXPORTERS, Exporter
from tests.support.monitors import (
    ANSWERS,
    DESCRIBED,
    OFFSETS,
    OWNED,
    PLAIN,
    lags,
    notes,
    read,
    recorded,
    recorded_rows,
    refused,
    rows,
)

# ---- recorded answers of real exporters ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ANSWERS)
def test_recorded_answers_give_the_lags_of_a_simultaneous_snapshot(name: str) -> None:
    reading = read(recorded(name))
    lags_of: dict[str, dict[tuple[str, int], int]] = {}
    for row in recorded_rows():
        offsets = (int(row[column]) if row[column] else None for column in OFFSETS)
        lags_of.setdefault(row["group"], {})[row["topic"], int(row["partition"])] = partition_lag(*offsets).messages
    assert len(lags_of) == 2
    for group, expected in lags_of.items():
        mine = lags(reading, group)
        missing = expected.keys() - mine.keys()
        assert mine == {key: lag for key, lag in expected.items() if key not in missing}
        assert not any(expected[key] for key in missing)
        assert group != "billing" or not missing


@pytest.mark.parametrize("name", ANSWERS)
def test_recorded_answers_name_owners_or_count_members(name: str) -> None:
    reading = read(recorded(name))
    held = {(row["topic"], int(row["partition"])): row for row in recorded_rows() if row["group"] == "billing"}
    members = {row["consumer_id"] for _, row in reading.members if row["group"] == "billing"}
    named = {
        (row["topic"], row["partition"]): row["client_id"] for _, row in reading.offsets if row["group"] == "billing"
    }
    if any(named.values()):
        left_out = {key for key, row in held.items() if not row["current_offset"] and named[key] is None}
        assert named == {key: row["client_id"] for key, row in held.items()} | dict.fromkeys(left_out)
        assert bool(left_out) == any("held by nobody" in note for note in notes(reading))
        assert len(members) == 2
    else:
        assert members == {"member-1", "member-2"}
        assert any("plan is computed without it" in note for note in notes(reading))


@pytest.mark.parametrize(
    "text",
    [
        *map(recorded, ANSWERS), DESCRIBED, OWNED.format(0, "c1", 5), '[{"metric": {}, "value": [1, "2"]}]',
        '{"status": "error", "errorType": "bad_data", "error": "parse error"}',
        '{"kind": "KafkaConsumerLagList", "data": []}',
    ],
)  # fmt: skip
def test_no_text_is_recognised_by_two_formats(text: str) -> None:
    assert len([name for name, form in FORMATS.items() if form.recognises(text)]) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "[1]",
        "topic,partition,lag\nt,0,5\n",
        '{"topics": {"t": [1]}, "members": {}}',
        "t 5",
        "# a comment",
    ],
)
def test_other_texts_are_not_recognised(text: str) -> None:
    assert not [name for name, form in FORMATS.items() if form.recognises(text)]


# ---- the series of each tool ---------------------------------------------------------------------------------


def series(exporter: Exporter, column: str, value: float, partition: int = 0, owner: str = "c1") -> str:
    labels = {exporter.group: "g", exporter.topic: "t", exporter.partition: str(partition)}
    mine = {label: labels[label] for label in exporter.needs(column)}
    if exporter.owner and column in ("lag", "current_offset"):
        mine[exporter.owner] = owner
    if exporter.kind:
        mine[exporter.kind] = exporter.kinds[column]
    listed = ",".join(f'{name}="{text}"' for name, text in mine.items())
    return f"{getattr(exporter, column)}{{{listed}}} {value}"


@pytest.mark.parametrize("exporter", EXPORTERS, ids=lambda exporter: exporter.name)
def test_the_series_of_each_tool_fill_the_columns_of_the_offsets_table(exporter: Exporter) -> None:
    values = {"lag": 60, "current_offset": 40, "log_end_offset": 100, "log_start_offset": 10, "members": 3}
    there = {column: value for column, value in values.items() if getattr(exporter, column)}
    reading = read("\n".join(series(exporter, column, value) for column, value in there.items()))
    (_, row), owner = reading.offsets[0], "c1" if exporter.owner else None
    assert lags(reading, "g") == {("t", 0): 60}
    assert row["consumer_id"] == owner
    for column in ("current_offset", "log_end_offset", "log_start_offset"):
        assert row[column] == values[column] or column not in there
    missing = 3 - (owner is not None) if "members" in there else 0
    assert [each["consumer_id"] for _, each in reading.members] == [
        *([owner] if owner else []), *(f"member-{number}" for number in range(1, missing + 1))
    ]  # fmt: skip


@pytest.mark.parametrize("exporter", EXPORTERS, ids=lambda exporter: exporter.name)
def test_the_documented_query_selects_exactly_the_series_of_a_tool(exporter: Exporter) -> None:
    page = (Path(__file__).parents[2] / "docs" / "monitors.md").read_text()
    block = page.split("```promql")[1].split("```")[0].strip().splitlines()
    matchers = [line[len('{__name__=~"') : -len('"}')] if "=~" in line else line for line in block[1::2]]
    mine = {getattr(exporter, column) for column in COLUMNS} - {None}
    names = {getattr(each, column) for each in EXPORTERS for column in COLUMNS} - {None}
    assert [matcher for matcher in matchers if {name for name in names if re.fullmatch(matcher, name)} == mine]


def test_the_label_of_a_figure_tells_apart_series_of_one_name() -> None:
    lag = 'kafka_consumer_group_ConsumerLagMetrics_Value{{groupId="g",name="{}",topic="t"{}}} {}'
    log = 'kafka_log_Log_Value{{name="{}",topic="t",partition="0",}} {}'
    sums = [lag.format("SumOffsetLag", "", 905), lag.format("EstimatedMaxTimeLag", "", 12.5)]
    by_partition = [lag.format("OffsetLag", f',partition="{n}",', n + 5) for n in range(2)]
    logs = [log.format(*each) for each in (("LogEndOffset", 100), ("LogStartOffset", 10), ("Size", 4096.5))]
    reading = read("\n".join([*sums, *by_partition, *logs]))
    assert rows(reading, "lag", "log_end_offset", "log_start_offset") == [("t", 0, 5, 100, 10), ("t", 1, 6, None, None)]
    assert "ConsumerLagMetrics_Value has the labels groupId, name, topic, none of which is the partition" in refused(
        "\n".join(sums)
    )


@pytest.mark.parametrize(
    ("series", "says"),
    [
        (
            'x_consumer_lag_offsets{topic="t",group_id="g"} 1',
            "has the labels topic, group_id, none of which is the part",
        ),
        ('x_lag{topic="t",partition_id="0"} 1', "x_lag has the labels topic, partition_id, evenlag does not know it"),
        ('x_flag{topic="t"} 1', "by partition; supported tools: "),
    ],
)
def test_unread_series_of_lags_are_named(series: str, says: str) -> None:
    assert says in refused(series)


def test_of_lag_commit_and_log_end_any_two_give_the_third() -> None:
    kminion = next(exporter for exporter in EXPORTERS if exporter.name == "KMinion")
    assert rows(read(f"{series(kminion, 'lag', 5)}\n{series(kminion, 'log_end_offset', 12)}"), "current_offset") == [
        ("t", 0, 7)
    ]
    text = f'{PLAIN.format(0, 5)}\nkafka_consumergroup_current_offset{{consumergroup="g",topic="t",partition="0"}} 7'
    assert rows(read(text), "log_end_offset") == [("t", 0, 12)]


def test_partitions_with_a_log_end_only_were_never_committed() -> None:
    log = 'kafka_topic_partition_current_offset{{topic="{}",partition="{}"}} {}'
    reading = read("\n".join([PLAIN.format(0, 5), log.format("t", 0, 9), log.format("t", 1, 8), log.format("u", 0, 7)]))
    assert rows(reading, "log_end_offset", "current_offset", "lag") == [("t", 0, 9, 4, 5), ("t", 1, 8, None, None)]
    gap = notes(read(f"{PLAIN.format(0, 5)}\n{PLAIN.format(2, 5)}"))
    assert any("t-1: not reported" in note for note in gap)


def test_a_log_start_beyond_the_log_end_is_ignored() -> None:
    start = 'kafka_topic_partition_oldest_offset{topic="t",partition="0"} 99'
    commit = 'kafka_consumergroup_current_offset{consumergroup="g",topic="t",partition="0"} 7'
    assert lags(read(f"{PLAIN.format(0, 5)}\n{commit}\n{start}"), "g") == {("t", 0): 5}


def test_the_owner_unknown_of_kafka_lag_exporter_means_no_owner() -> None:
    labels = 'cluster_name="c",group="g",topic="t",partition="{}",member_host="{}",consumer_id="{}",client_id="{}"'
    lines = [
        "kafka_consumergroup_group_lag{" + labels.format(partition, *names) + "} 8.0"
        for partition, names in enumerate([("unknown",) * 3, ("/192.0.2.1", "app-1", "app")])
    ]
    found = FORMATS["prometheus"].read("\n".join(lines), "text")
    assert [row["consumer_id"] for _, row in found.offsets] == [None, "app-1"]
    assert [row["consumer_id"] for _, row in found.members] == ["app-1"]


def test_minus_one_of_kafka_exporter_means_no_commit() -> None:
    reading = read(f"{PLAIN.format(0, -1)}\n{PLAIN.format(1, 3)}")
    assert rows(reading, "current_offset", "lag") == [("t", 0, None, 0), ("t", 1, None, 3)]
    assert any("t-0" in note and "lag taken as 0" in note for note in notes(reading))


def test_topics_without_a_commit_are_not_read() -> None:
    lag = 'kafka_consumer_group_lag{{group="g",topic="{}",partition="{}"}} {}'
    reading = read("\n".join([lag.format("t", 0, -1), lag.format("t", 1, 4), lag.format("u", 0, -1)]))
    assert rows(reading) == [("t", 0), ("t", 1)]
    assert any("u: no commits" in note for note in notes(reading))
    assert rows(read(lag.format("u", 0, -1)), "lag") == [("u", 0, 0)]


def test_a_lag_and_a_log_end_win_over_a_commit_that_contradicts_them() -> None:
    exporter = next(each for each in EXPORTERS if each.name.startswith("OpenTelemetry"))
    values = {"lag": 5, "current_offset": 99, "log_end_offset": 12}
    reading = read("\n".join(series(exporter, column, value) for column, value in values.items()))
    assert rows(reading, "current_offset", "log_end_offset") == [("t", 0, 7, 12)]


def test_counted_members_beyond_the_named_ones_get_new_names() -> None:
    kommitted = next(exporter for exporter in EXPORTERS if exporter.name == "Kommitted")
    reading = read(f"{series(kommitted, 'lag', 5, owner='member-1')}\n{series(kommitted, 'members', 3)}")
    assert [row["consumer_id"] for _, row in reading.members] == ["member-1", "member-2", "member-3"]
    assert any("without partitions" in note for note in notes(reading))
    nobody = read(f'{PLAIN.format(0, 5)}\nkafka_consumergroup_members{{consumergroup="g"}} 0')
    assert not nobody.members
    assert any("has no members" in note for note in notes(nobody))
    assert read(PLAIN.format(0, 5)).unknown_members == {"g"}


def test_of_two_tools_the_one_that_names_owners_is_used() -> None:
    reading = read(f"{PLAIN.format(0, 7)}\n{OWNED.format(0, 'c1', 5)}")
    assert rows(reading, "lag", "consumer_id") == [("t", 0, 5, "c1")]
    assert any("kafka_exporter" in note and "are ignored" in note for note in notes(reading))


def test_groups_of_one_name_in_several_clusters_are_told_apart() -> None:
    other = OWNED.format(0, "c2", 6).replace("dev", "prod")
    reading = read(f"{OWNED.format(0, 'c1', 5)}\n{other}")
    assert [row["group"] for _, row in reading.offsets] == ["dev/g", "prod/g"]
    assert any("dev/g, prod/g" in note for note in notes(reading))
    assert [row["group"] for _, row in read(other).offsets] == ["g"]


def test_series_that_contradict_one_another_are_refused_with_both_lines() -> None:
    assert "line 2" in (text := refused(f"{OWNED.format(0, 'c1', 5)}\n{OWNED.format(0, 'c2', 5)}"))
    assert "line 1" in text
    assert "'c1' and 'c2'" in text
    text = refused(f"{PLAIN.format(0, 5)}\n{PLAIN.format(0, 6)}")
    assert "text, line 2" in text
    assert "text, line 1" in text
    assert "t-0 of group 'g'" in text
    other = PLAIN.format(0, 6).replace("}", ',instance="b"}')
    assert "instance='b'" in refused(f"{PLAIN.format(0, 5)}\n{other}")
    assert rows(read(f"{PLAIN.format(0, 5)}\n{PLAIN.format(0, 5)}"), "lag") == [("t", 0, 5)]


def test_of_series_with_times_the_newest_is_used() -> None:
    reading = read(f"{OWNED.format(0, 'c1', 5)} 1000\n{OWNED.format(0, 'c2', 9)} 2000")
    assert rows(reading, "consumer_id", "lag") == [("t", 0, "c2", 9)]
    assert any("t-0: reported several times" in note for note in notes(reading))
    of_two = f"{PLAIN.format(0, 5)} 2000\n{PLAIN.format(0, 9)} 1000"  # one owner, or none
    assert rows(read(of_two), "lag") == [("t", 0, 5)]
    assert any("t-0: reported several times" in note for note in notes(read(of_two)))


def test_the_highest_offset_of_redpandas_brokers_is_used() -> None:
    labels = 'redpanda_topic="t",redpanda_partition="0"'
    text = f'redpanda_kafka_consumer_group_committed_offset{{redpanda_group="g",{labels}}} 4\n'
    ends = [f"redpanda_kafka_max_offset{{{labels}}} 7", f'redpanda_kafka_max_offset{{{labels},pod="b"}} 9']
    for order in (ends, ends[::-1]):
        assert lags(read(text + "\n".join(order)), "g") == {("t", 0): 5}
    assert "redpanda_kafka_max_offset" in refused(text)


def test_klags_log_ends_may_differ_between_groups_but_lags_may_not() -> None:
    def sample(name: str, group: str, value: int) -> str:
        return f'klag_{name}{{consumer_group="{group}",topic="t",partition="0"}} {value}'

    ends = [sample("partition_log_end_offset", "g", 10), sample("partition_log_end_offset", "h", 11)]
    text = "\n".join([sample("consumer_lag", "g", 3), sample("consumer_lag", "h", 4), *ends])
    assert lags(read(text), "g") == {("t", 0): 3}
    assert lags(read(text), "h") == {("t", 0): 4}
    assert "line 5" in refused(f"{text}\n{sample('consumer_lag', 'g', 5)}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (PLAIN.format(0, 1.5), "is 1.5, not a whole number below 2^53"),
        (PLAIN.format(0, "9007199254740992"), "not a whole number below 2^53"),
        (PLAIN.format(0, "+Inf"), "not a whole number"),
        (PLAIN.format("x", 1), "partition must be 0, 1, 2, …, not 'x'"),
        ('kafka_consumergroup_lag{consumergroup="g",topic="t"} 5', "has no label partition"),
        ('kafka_consumergroup_lag{consumergroup="g",topic="t",part', "truncated or broken"),
        (PLAIN.format('0",partition="1', 5), "truncated or broken"),
        (PLAIN.format('0","kafka_consumergroup_lag', 5), "truncated or broken"),
        ("# TYPE go_goroutines gauge\ngo_goroutines 8", "no series reports the lag"),
    ],
)
def test_an_unreadable_line_is_named(line: str, message: str) -> None:
    text = f"# TYPE kafka_consumergroup_lag gauge\n{line}\n"
    assert message in refused(text)
    assert "line 2: " in refused(text) or "no series" in message
