"""Rows of describe texts that were damaged, and headers that lack columns: read right, or refused with their line."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from evenlag.errors import SourceError
from evenlag.tables.formats import Reading, describe, rpk
from evenlag.tables.read import read_group

ID = "app-{}-00000000-0000-4000-8000-00000000000{}"
RPK = """GROUP        billing
COORDINATOR  1
STATE        Stable
BALANCER     range
MEMBERS      2
TOTAL-LAG    17

TOPIC   PARTITION  CURRENT-OFFSET  LOG-START-OFFSET  LOG-END-OFFSET  LAG   MEMBER-ID                                   CLIENT-ID  HOST
orders  0          80100           0                 80150           50    app-1-00000000-0000-4000-8000-000000000001  app-1      192.0.2.1
orders  12         80200           0                 81200           1000  app-2-00000000-0000-4000-8000-000000000002  app-2      192.0.2.2
orders  2          -               100               3151            3051
{}
"""  # noqa: E501
OF_KAFKA = "GROUP    TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST  CLIENT-ID"


def owners(read: Reading) -> dict[str, Any]:
    return {f"{row['topic']}-{row['partition']}": row.get("consumer_id") for _, row in read.offsets}


def test_a_text_of_rpk_is_read() -> None:
    assert owners(describe.read(RPK.format(""), "text")) == {
        "orders-0": ID.format(1, 1),
        "orders-12": ID.format(2, 2),
        "orders-2": None,
    }


@pytest.mark.parametrize(
    "row",
    [
        pytest.param("orders  4          9               0                 9               0     app-1-0000", id="cut"),
        pytest.param(
            "orders  4          9               0                 9               0     "
            "app-1-00000000-0000-4000-8000-000000000001\n  app-1      192.0.2.1",
            id="wrapped",
        ),
        pytest.param(
            "orders  4          9               0                 9    0 app-1      192.0.2.1", id="one dropped"
        ),
        pytest.param("orders  4  9  0  9  0  app-1  192.0.2.1", id="one dropped of a realigned row"),
        pytest.param(
            "orders  4          9               0                 9               0     "
            "app-1-00000000-0000-4000-8000-000000000001app-1  192.0.2.1",
            id="glued",
        ),
        pytest.param("orders  3 7         0               0                 0                0", id="a number split"),
        pytest.param("orders  3  7         0               0                 0                0", id="and realigned"),
        pytest.param("orders  4          5               0                 9               3", id="another lag"),
        pytest.param("orders  4          -               2                 9               3", id="nor all of the log"),
    ],
)
def test_a_damaged_row_of_rpk_is_refused_by_its_line(row: str) -> None:
    with pytest.raises(SourceError, match=r"^text, line 12: does not fit its header.*orders  [34]"):
        describe.read(RPK.format(row), "text")


@pytest.mark.parametrize(
    ("row", "current", "end"),
    [
        ("orders  4          12              0                 9               0", 12, 9),  # committed beyond the end
        ("orders  4          5               0                 0               -", 5, 0),
        ("orders  4          -               2                 9               7", None, 9),
        ("orders  4          -               2                 9               9", None, 9),  # of an rpk without starts
    ],
)
def test_lags_are_computed_as_rpk_does(row: str, current: int | None, end: int) -> None:
    (found,) = (row for _, row in describe.read(RPK.format(row), "text").offsets if row["partition"] == "4")
    assert (found["current_offset"], found["log_end_offset"]) == (None if current is None else str(current), str(end))


def test_a_lag_that_rpk_lacks_is_unknown_and_not_an_error() -> None:
    read = describe.read(RPK.format("orders  4          -               0                 9               -1"), "text")
    assert len(read.offsets) == 4
    assert [read.offsets[-1][1][name] for name in ("lag", "log_end_offset")] == [None, None]


def test_text_and_json_of_rpk_agree_on_partitions_without_a_commit(tmp_path: Path) -> None:
    text, document = tmp_path / "billing.txt", tmp_path / "billing.json"
    text.write_text(RPK.format("orders  3          -               0                 0               -"))
    names = ("topic", "partition", "current_offset", "log_start_offset", "log_end_offset", "lag")
    holder = {"member_id": ID.format(1, 1), "client_id": "app-1", "host": "192.0.2.1"}
    partitions = [
        dict(zip(names, values, strict=True)) | holder
        for values in (
            ("orders", 0, 80100, 0, 80150, 50),
            ("orders", 12, 80200, 0, 81200, 1000),
            ("orders", 2, -1, 100, 3151, 3051),
            ("orders", 3, -1, 0, 0, 0),
        )
    ]
    document.write_text(json.dumps([{"group_name": "billing", "partitions": partitions}]))
    assert rpk.recognises(document.read_text())
    lags = [read_group(path, auto_offset_reset="latest")[0].lags.tolist() for path in (text, document)]
    assert lags == [[50, 3051, 0, 1000]] * 2


def test_two_dashes_mean_no_member() -> None:
    with pytest.raises(SourceError, match=r"^text, line 2: .*: billing  orders"):
        describe.read(
            f"{OF_KAFKA}\nbilling  orders  9          71              72              1    --           -", "text"
        )


def test_a_member_has_a_host() -> None:
    row = "billing  orders  9          71              72              1    app-1        -     app-1"
    with pytest.raises(SourceError, match=r"^text, line 2: "):
        describe.read(f"{OF_KAFKA}\n{row}", "text")


def test_a_partition_is_not_a_member_of_the_table_above() -> None:
    """Both tables have nine columns, and the text was reversed."""
    text = f"""
| GROUP | CONSUMER-ID | HOST | CLIENT-ID | #PARTITIONS | CURRENT-EPOCH | CURRENT-ASSIGNMENT | TARGET-EPOCH | TARGET-ASSIGNMENT |
|---|---|---|---|---|---|---|---|---|
| billing | audit | 6 | 567850 | 567971 | 121 | - | - | - |
| billing | orders | 1 | 5 | 9 | 4 | {ID.format(1, 1)} | /192.0.2.1 | app-1 |
|---|---|---|---|---|---|---|---|---|
| GROUP | TOPIC | PARTITION | CURRENT-OFFSET | LOG-END-OFFSET | LAG | CONSUMER-ID | HOST | CLIENT-ID |
"""  # noqa: E501
    read = describe.read(text, "text")
    assert (owners(read), read.members) == ({"audit-6": None, "orders-1": ID.format(1, 1)}, [])


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            f"3          71              72              1    {ID.format(1, 1)}  /192.0.2.1  app-1", id="no names"
        ),
        pytest.param(
            f"  3          71              72              1    {ID.format(1, 1)}/192.0.2.1  app", id="glued too"
        ),
        pytest.param("3          71              72              1    -            -     -", id="nor an owner"),
        pytest.param("3          -               72              -", id="nor a commit"),
        pytest.param("billing  ord", id="cut within the topic"),
        pytest.param("bil", id="cut within the group"),
    ],
)
def test_a_row_that_lost_its_beginning_or_end_is_refused_by_its_line(row: str) -> None:
    rows = [
        f"billing  orders  {number}          71              72              1    -            -     -"
        for number in (1, 2)
    ]
    text = "\n".join([OF_KAFKA, rows[0], row, rows[1]])
    with pytest.raises(SourceError, match=rf"^text, line 3: .*: {row.strip()}$"):
        describe.read(text, "text")
    read = describe.read("\n".join([OF_KAFKA, rows[0], "billing", rows[1]]), "text")  # a title
    assert read.passed_over == [(3, "billing")]


# ---- headers that end in CONSUMER-ID ---------------------------------------------------------------------------------

ENDS = "TOPIC                          PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG        CONSUMER-ID"
ROWS = (
    "logs                           0          76              90              14         {}",
    "logs                           1          70              70              0          {}",
    "logs                           2          1               4               3          -",
)
NAMES = ("zk-group_host-1-1506-0", "zk-group_host-2-1507-0")


def ending(header: str, names: tuple[str, str]) -> str:
    return "\n".join([header, *(row.format(*names[at : at + 1]) for at, row in enumerate(ROWS))])


@pytest.mark.parametrize(
    ("text", "names", "notes"),
    [
        pytest.param(
            "Note: This will only show information about consumers that use ZooKeeper (not those using the Java "
            "consumer API).\n" + ending(ENDS, NAMES),
            NAMES,
            0,
            id="Kafka 0.11 with --zookeeper",
        ),
        pytest.param(ending(ENDS.ljust(130), NAMES), NAMES, 0, id="wider than all ids"),
        pytest.param(
            ending(ENDS, (f"{ID.format(1, 1)}", "app-2-...")), (ID.format(1, 1), "app-2-..."), 1, id="whole ids"
        ),
        pytest.param(
            ending(ENDS, ("zk-1-host-...", "zk-2-host-...")),
            ("zk-1-host-...", "zk-2-host-..."),
            1,
            id="shortened by the writer",
        ),
    ],
)
def test_a_header_may_end_in_consumer_id(text: str, names: tuple[str, str], notes: int) -> None:
    read = describe.read(text, "text")
    assert owners(read) == {"logs-0": names[0], "logs-1": names[1], "logs-2": None}
    assert len(read.notes) == notes
    assert all("the header has no HOST and CLIENT-ID; if they were cut off" in note for note in read.notes)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (ending(ENDS, NAMES), 1),  # nothing tells that ids are whole
        (ending(ENDS, ("app-1-00000000-0000-4", "app-1-00000000-0000-4")), 1),
        (ending(ENDS.ljust(130), ("app 1 host app", "app-2")), 2),  # blanks: an id, or columns without names
        (ending(f"{ENDS[:-6]}", NAMES), 1),  # within the word
    ],
)
def test_a_cut_header_is_refused(text: str, line: int) -> None:
    with pytest.raises(SourceError, match=rf"^text, line {line}: "):
        describe.read(text, "text")


# ---- what else a text says -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["...", "…", "[...]", "(12 more rows)", "... and 3 more"])
def test_a_line_that_abbreviates_others_is_reported(line: str) -> None:
    text = RPK.format(line)
    read = describe.read(text, "text")
    assert read.passed_over == [(12, line)]
    assert read.notes[0] == (f"text: skipped 1 line that is not a row; line 12: {line}; rows may be missing there")
    (note,) = describe.read(f"rpk says:\n{text}", "text").notes
    assert note.endswith(f"the first is line 1: rpk says:; rows may be missing at line 13: {line}")


@pytest.mark.parametrize(
    "says", ["Warning: Consumer group 'billing' is rebalancing.", "Consumer group 'billing' has no active members."]
)
def test_messages_of_kafka_about_the_group_are_repeated(says: str, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(
        f"Consumer group 'other' has no active members.\n{says}\n\n{OF_KAFKA}\nbilling orders 0 1 2 1 - - -\n"
    )
    _, notes = read_group(text)
    assert [note.removeprefix(f"{text}, ") for note in notes if "Kafka" in note] == [f"line 2: Kafka printed: {says}"]


@pytest.mark.parametrize("of_kafka_4", [False, True])
def test_a_member_whose_row_was_cut_is_read_whole_or_refused(of_kafka_4: bool) -> None:
    """Cut anywhere behind the group and a blank, a row is not taken for a foreign line: its member would be missing."""
    ids = ["Xr3v9kF2TQO1p9XKp0kQ2w", "t7bC3n-dQzGmJ2yV_aLh1A"] if of_kafka_4 else [ID.format(1, 1), ID.format(2, 2)]
    table = [
        "GROUP    CONSUMER-ID  HOST        CLIENT-ID  #PARTITIONS  ASSIGNMENT",
        f"billing  {ids[0]}  /192.0.2.1  app-1      2            orders(0,1)",
        f"billing  {ids[1]}  /192.0.2.2  app-2      1            orders(2)",
    ]
    needed = table[1].index("2      ")  # with the number of partitions, only the assignment is missing
    for end in range(len("billing  a"), len(table[1])):
        text = "\n".join([table[0], table[1][:end], table[2]])
        if end < needed:
            with pytest.raises(SourceError, match="text, line 2"):
                describe.read(text, "text")
        else:
            with contextlib.suppress(SourceError):
                assert [row["consumer_id"] for _, row in describe.read(text, "text").members] == ids
