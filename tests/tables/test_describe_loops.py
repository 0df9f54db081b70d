"""Texts with several descriptions of a group, each with its time, as loops around kafka-consumer-groups write them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evenlag.errors import SourceError
from evenlag.tables.formats import describe
from evenlag.tables.formats.describe.lines import lines_of
from evenlag.tables.formats.describe.stamps import stamp_of
from evenlag.tables.read import read_group, read_snapshots
from evenlag.tables.times_of_names import time_in_name

HEADER = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
START = datetime(2026, 11, 20, 10, tzinfo=UTC)
AT = [(START + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z") for minute in range(3)]
ID = "app-{0}-00000000-0000-4000-8000-00000000000{0}"


def described(minute: int) -> str:
    rows = [
        f"billing orders {number} {minute} {minute + lag} {lag} {ID.format(number)} /192.0.2.{number} app-{number}"
        for number, lag in ((1, 50 + 10 * minute), (2, 7))
    ]
    return "\n".join([HEADER, *rows])


Printed = Callable[[datetime], str]
TIMES: dict[str, Printed] = {
    "date -u": lambda at: at.strftime("%a %b %e %H:%M:%S UTC %Y"),
    "date in 12 hours": lambda at: at.strftime("%a %d %b %Y %I:%M:%S %p UTC"),
    "date -Is elsewhere": lambda at: (at + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S+01:00"),
    "title": lambda at: at.strftime("===== %Y-%m-%d %H:%M:%S ====="),
    "label": lambda at: at.strftime("Lag at %d-%b-%Y %H:%M:%S:"),
    "slashes": lambda at: at.strftime("[%Y/%m/%d %H:%M:%S]"),
    "date +%s": lambda at: str(int(at.timestamp())),
    "milliseconds": lambda at: f"ts={int(at.timestamp())}000",
    "compact": lambda at: at.strftime("# %Y%m%dT%H%M%SZ"),
    "watch": lambda at: at.strftime("Every 60.0s: kafka-consumer-groups --describe --group billing  host: %c"),
}


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("name", TIMES)
def test_each_description_has_the_time_printed_next_to_it(name: str, below: bool, tmp_path: Path) -> None:
    text = ""
    for minute in range(3):
        time = TIMES[name](START + timedelta(minutes=minute))
        text += f"{described(minute)}\n{time}\n\n" if below else f"{time}\n\n{described(minute)}\n"
    path = tmp_path / "lag.log"
    path.write_text(text)
    snapshots, notes = read_snapshots(path)
    assert [(each.ts, each.problem.lags.tolist()) for each in snapshots] == [
        (at, [50 + 10 * minute, 7]) for minute, at in enumerate(AT)
    ]
    assert not [note for note in notes if "skipped" in note]
    assert read_group(path)[0].lags.tolist() == [70, 7]


LINES: dict[str, Printed] = {
    "kubectl logs --timestamps": lambda at: at.strftime("%Y-%m-%dT%H:%M:%S.123456789Z "),
    "a logger": lambda at: at.strftime("[%Y-%m-%d %H:%M:%S,123] "),
    "a logger with levels": lambda at: at.strftime("[%Y-%m-%d %H:%M:%S,123] INFO "),
    "ts": lambda at: at.strftime("%b %d %H:%M:%S "),
    "ts -s": lambda at: at.strftime("00:%M:%S "),
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("aligned", [False, True])
def test_a_time_before_every_line_is_not_a_part_of_it(name: str, aligned: bool, tmp_path: Path) -> None:
    lines = ["", *described(0).split("\n")]
    if aligned:
        lines = ["  ".join(word.ljust(45) for word in line.split(" ")) for line in lines]
    path = tmp_path / "lags.txt"
    path.write_text("".join(f"{LINES[name](START + timedelta(seconds=at))}{line}\n" for at, line in enumerate(lines)))
    problem, _ = read_group(path)
    assert (problem.group, problem.lags.tolist(), problem.owner.tolist()) == ("billing", [50, 7], [0, 1])


@pytest.mark.parametrize("name", ["kubectl logs --timestamps", "a logger"])
@pytest.mark.parametrize("nameless", [False, True])
def test_times_before_lines_tell_the_time_of_each_description(name: str, nameless: bool, tmp_path: Path) -> None:
    text = ""
    for minute in range(3):
        table = described(minute)
        if nameless:
            table = table.replace("GROUP ", "").replace("billing ", "")
        for second, line in enumerate(["", *table.split("\n")]):
            text += f"{LINES[name](START + timedelta(minutes=minute, seconds=second))}{line}\n"
    path = tmp_path / "billing.txt"
    path.write_text(text)
    snapshots, _ = read_snapshots(path)
    assert [snapshot.ts[:17] for snapshot in snapshots] == [at[:17] for at in AT]
    assert [snapshot.problem.lags.tolist() for snapshot in snapshots] == [[50, 7], [60, 7], [70, 7]]


def test_times_without_a_year_do_not_date_descriptions() -> None:
    text = "".join(f"Nov 20 10:0{minute}:00 {line}\n" for minute in (0, 1) for line in described(minute).split("\n"))
    with pytest.raises(SourceError, match="print date and time"):
        describe.read(text, "loop.txt")


def test_rows_may_follow_one_header() -> None:
    texts = [f"{at}\n{described(minute).removeprefix(HEADER)}" for minute, at in enumerate(AT)]
    read = describe.read("\n".join([HEADER, *texts]), "text")
    assert [row["snapshot_ts"] for _, row in read.offsets] == [at for at in AT for _ in range(2)]


def test_a_group_without_a_name_is_the_same_if_it_reads_the_same_topics() -> None:
    """Kafka 0.11 to 2.3 print no GROUP."""
    texts = [described(minute).replace("billing ", "").replace("GROUP ", "") for minute in range(3)]
    loop = "\n".join(f"{at}\n{text}" for at, text in zip(AT, texts, strict=True))
    assert [row["snapshot_ts"] for _, row in describe.read(loop, "text").offsets] == [at for at in AT for _ in range(2)]
    for text in (loop.replace("orders", "refunds", 2), f"{AT[0]}\n{texts[0]}\n{texts[1]}", "\n".join(texts)):
        with pytest.raises(SourceError, match=r"^text, line .*: one of several tables without the column GROUP"):
            describe.read(text, "text")


def test_a_task_of_spark_reads_the_times_too() -> None:
    from evenlag.spark.worker.describe_files import Describe

    text = "\n".join(f"{at}\n{described(minute)}" for minute, at in enumerate(AT))
    rows = [*Describe("offsets", lone=True)._rows("lag.txt", text)]
    assert [row["snapshot_ts"] for row in rows] == [at for at in AT for _ in range(2)]


def test_members_are_those_of_the_time() -> None:
    members = "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS\n" + "\n".join(
        f"billing {ID.format(number)} /192.0.2.{number} app-{number} 1" for number in (1, 2, 3)
    )
    read = describe.read(f"{AT[0]}\n{described(0)}\n{AT[1]}\n{described(1)}\n\n{members}", "text")
    assert [(row["snapshot_ts"], row["client_id"]) for _, row in read.members] == [
        (AT[1], f"app-{number}") for number in (1, 2, 3)
    ]


def test_a_failed_description_leaves_out_its_time() -> None:
    says = "Error: Executing consumer group command failed due to a timeout"
    texts = [described(0), says, described(2)]
    read = describe.read("\n".join(f"{at}\n{text}" for at, text in zip(AT, texts, strict=True)), "text")
    assert {row["snapshot_ts"] for _, row in read.offsets} == {AT[0], AT[2]}
    assert read.notes == [f"text, line 6: Kafka printed: {says}"]


@pytest.mark.parametrize("repeats", [1, 3])
def test_messages_of_kafka_are_counted_and_the_last_is_shown(repeats: int) -> None:
    says = "Warning: Consumer group 'billing' is rebalancing."
    text = "\n".join(f"{AT[minute]}\n{says if minute < repeats else ''}\n{described(minute)}" for minute in range(3))
    (note,) = describe.read(text, "text").notes_of["billing"]
    assert note == (
        f"text, line 2: Kafka printed: {says}"
        if repeats == 1
        else f"text: Kafka printed 3 such messages; the last is line 12: {says}"
    )


def test_a_single_description_has_no_time() -> None:
    read = describe.read(f"{AT[0]}\n{described(0)}", "text")
    assert all("snapshot_ts" not in row for _, row in read.offsets)
    other = described(1).replace("billing", "audit")
    read = describe.read(f"{AT[0]}\n{described(0)}\n{AT[1]}\n{other}", "text")
    assert all("snapshot_ts" not in row for _, row in read.offsets)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{described(0)}\n{described(1)}", r"line 5: the partition of line 2 again, .*print date and time"),
        (f"{AT[0]}\n{described(0)}\n{described(1)}", r"line 6: the partition of line 3 again"),
        (f"{described(0)}\n{AT[0]}\n{described(1)}", r"line 6: this row has no time, although others have one"),
        (f"{AT[1]}\n{described(0)}\n{AT[0]}\n{described(1)}", r"line 5: the time is before the time on line 1"),
    ],
    ids=["no times", "one time", "time between", "backwards"],
)  # fmt: skip
def test_descriptions_without_their_own_times_are_refused(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=rf"^text, {message}"):
        describe.read(text, "text")


def test_zones_without_an_offset_are_reported() -> None:
    text = "\n".join(f"Fri Nov 20 1{minute}:00:00 CET 2026\n{described(minute)}" for minute in range(2))
    read = describe.read(text, "text")
    assert {row["snapshot_ts"] for _, row in read.offsets} == {"2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z"}
    assert read.notes == ["text, line 1: times in CET are read as UTC"]


@pytest.mark.parametrize(
    "line",
    ["[2026-11-20 10:00:00,123] WARN retrying", "10:00:00", "2026-11-20", "Fri Nov 31 10:00:00 2026", "42", "",
     "took 12345678901 ms", "billing orders 0 1795168800 1795168801 1"],
)  # fmt: skip
def test_other_lines_are_no_times(line: str) -> None:
    (found,) = map(stamp_of, lines_of(line))
    assert found is None


@pytest.mark.parametrize(
    ("name", "time"),
    [
        ("2026-01-31T12:00:00-0500", "17:00:00"),
        ("2026-01-31T12:00-05:00", "17:00:00"),
        ("20260131T120000-0330", "15:30:00"),
        ("20260131T120000+02", "10:00:00"),
        ("20260131T120000-0001", "12:00:00"),
        ("2026-01-31_12-00-00-02", "12:00:00"),
        ("20260131T120000Z-2", "12:00:00"),
        ("2026-01-31", "00:00:00"),
    ],
)
def test_names_have_times_in_any_zone(name: str, time: str) -> None:
    assert time_in_name(name) == f"2026-01-31T{time}Z"


def test_an_hour_without_minutes_in_a_name_is_not_midnight() -> None:
    assert time_in_name("2026-01-31T12") is None
