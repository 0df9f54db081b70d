"""Texts of kaf and kafkactl, and CSV files of Grafana."""

import csv
import io
import json
from pathlib import Path

import pytest

import evenlag
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.tables.read import read_group
from tests.support.monitors import notes, read, refused, rows

TEXTS = Path(__file__).parents[1] / "texts"
KAF, TABLES, DOCUMENT, PANEL = (
    (TEXTS / name).read_text() for name in ("kaf-members.txt", "kafkactl.txt", "kafkactl.json", "grafana.csv")
)
NAMED = '{{__name__="kafka_consumergroup_lag", consumergroup="g", topic="t", partition="{}"}}'


def panel(*lines: tuple[object, ...], times: str = "Time", mark: str = ",") -> str:
    """Return a CSV of two series."""
    text = io.StringIO()
    csv.writer(text, delimiter=mark, quoting=csv.QUOTE_NONNUMERIC).writerows(
        [[times, NAMED.format(0), NAMED.format(1)], *lines]
    )
    return text.getvalue()


def changed(field: str, value: object) -> str:
    """Return kafkactl's JSON with another value of a field."""
    return json.dumps(json.loads(DOCUMENT) | {field: value})


def test_kaf_shows_offsets_and_holders_of_each_topic() -> None:
    reading = read(KAF)
    assert rows(reading, "current_offset", "log_end_offset", "consumer_id") == [
        ("orders", 0, 100, 900, "app@/192.0.2.1"), ("orders", 1, 50, 60, "app@/192.0.2.1"),
        ("orders", 2, 40, 40, "app@/192.0.2.2"), ("refunds", 0, 7, 12, "app@/192.0.2.1"),
    ]  # fmt: skip
    assert reading.facts["billing"].told() == "state Stable, assignor range"
    assert [row["consumer_id"] for _, row in reading.members] == ["app@/192.0.2.1", "app@/192.0.2.2", "idle"]


def test_kaf_without_members_does_not_say_that_there_are_none() -> None:
    alone = KAF.partition("Members:")[0]
    with pytest.raises(InvalidProblemError, match="shows neither the members of group"):
        evenlag.read(alone)
    assert evenlag.read(alone, members=["a", "b"]).total_lag == 815


def test_several_descriptions_of_kaf_are_several_groups() -> None:
    both = read(KAF + KAF.replace("billing", "other"))
    assert {row["group"] for _, row in both.offsets} == {"billing", "other"}
    assert len(both.members) == 6


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("0          100           900             800   ", "0          100           900", "line 9: not a partition"),
        ("900             800", "900             801", "line 9: lag 801 does not follow from the offsets"),
    ],
)
def test_a_damaged_row_of_kaf_is_named(before: str, after: str, message: str) -> None:
    assert message in refused(KAF.replace(before, after))


def test_the_tables_of_kafkactl_are_read_as_its_document() -> None:
    reading = read(TABLES)
    assert rows(reading, "log_start_offset", "current_offset", "log_end_offset", "consumer_id") == [
        ("orders", 0, 20, 100, 900, "app@/192.0.2.1"), ("orders", 1, 0, 50, 60, "app@/192.0.2.2"),
        ("orders", 2, 0, None, 40, "app@/192.0.2.1"),
    ]  # fmt: skip
    document = json.loads(DOCUMENT)
    members = [("/192.0.2.1", "app-1", 0), ("/192.0.2.2", "app-2", 1)]
    text = TABLES.partition("CLIENT_HOST")[0].replace(
        "orders    2             40                0                 -1                  -1       41\n", ""
    )
    text += "CLIENT_HOST  CLIENT_ID  TOPIC  ASSIGNED_PARTITIONS\n"
    text += "".join(f"{host}  {client}  orders  {partition}\n" for host, client, partition in members)
    columns = ("log_start_offset", "current_offset", "log_end_offset", "consumer_id", "client_id", "host")
    assert rows(read(text), *columns) == rows(read(json.dumps(document)), *columns)


def test_two_members_with_one_client_id_on_one_host_are_two() -> None:
    twice = TABLES.replace("/192.0.2.2", "/192.0.2.1")
    assert {row["consumer_id"] for _, row in read(twice).offsets} == {"app@/192.0.2.1", "app@/192.0.2.1#2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TABLES.replace("80       800", "80"), "line 2: does not fit its header TOPIC PARTITION"),
        (TABLES.replace("orders     0,2", "orders"), "line 7: does not fit its header CLIENT_HOST"),
        (TABLES.replace("80       800", "80       801"), "line 2: lag 801 of orders-0 does not follow"),
        (f"{TABLES}\n{TABLES}", "line 10: a second group, and the text names none"),
        (DOCUMENT.replace('"Lag": 800', '"Lag": "800"'), "item 1: not a partition with its offsets"),
        (changed("Topics", 0.5), "text: must be a list of topics, partitions or members: 0.5"),
        (changed("Members", 7), "text: must be a list of topics, partitions or members: 7"),
        (changed("Topics", [{"Name": "t", "Partitions": 7}]), "text: must be a list of topics"),
        (changed("Members", [{"assignedPartitions": 7}]), "item 3: must be a list of topics"),
    ],
)
def test_damaged_texts_of_kafkactl_are_refused(text: str, message: str) -> None:
    assert message in refused(text)


@pytest.mark.parametrize("before", ["", "\ufeff", "sep=,\n", "\ufeffsep=;\n"])
@pytest.mark.parametrize("times", [("1763632800000", "1763632860000"), ("2025-11-20 10:00:00", "2025-11-20 10:01:00"),
                                   ("2025-11-20T10:00:00Z", "2025-11-20T10:01:00Z")])  # fmt: skip
def test_each_line_of_a_panel_is_a_snapshot(before: str, times: tuple[str, str], tmp_path: Path) -> None:
    text = panel((times[0], 800, 10), (times[1], 860, 12), mark=";" if ";" in before else ",")
    (tmp_path / "lag.csv").write_text(before + text)
    snapshots = evenlag.read_history(tmp_path / "lag.csv", members=["a", "b"])
    assert [(each.ts[:16], each.problem.lags.tolist()) for each in snapshots] == [
        ("2025-11-20T10:00", [800, 10]), ("2025-11-20T10:01", [860, 12]),
    ]  # fmt: skip
    assert any("no zone and are read as UTC" in note for note in snapshots[-1].problem.warnings) == (" " in times[0])


def test_a_series_may_have_no_name_and_gaps() -> None:
    reading = read(PANEL)
    assert [(row["snapshot_ts"][11:16], row["partition"], row["lag"]) for _, row in reading.offsets] == [
        ("10:00", 0, 800), ("10:00", 1, 10), ("10:01", 0, 860), ("10:02", 0, 900), ("10:02", 1, 12),
    ]  # fmt: skip
    assert any("their values are read as lags" in note for note in notes(reading))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (panel((1763632800000, "1.2 K", 3)), "line 2: '1.2 K' is not a number; export without formatted data"),
        (panel(("yesterday", 5, 3)), "line 2: 'yesterday' is not a time"),
        (panel((1763632800000, 5)), "line 2: 2 fields, but the header has 3"),
        (panel((1763632800000, 5, 0.5)), "column 3: kafka_consumergroup_lag is 0.5, not a whole number"),
        (
            panel((1763632800000, 5, 3)).replace(NAMED.format(1).replace('"', '""'), "orders 1"),
            "set the panel's legend",
        ),
    ],
)
def test_panels_that_cannot_be_read_are_refused(text: str, message: str) -> None:
    assert message in refused(text)


def test_a_panel_of_another_metric_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cpu.csv"
    path.write_text(panel((1763632800000, 5, 3)).replace("kafka_consumergroup_lag", "node_cpu_seconds_total"))
    with pytest.raises(SourceError, match="no series reports the lag of a consumer group by partition"):
        read_group(path)
