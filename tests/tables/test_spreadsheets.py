"""Tables as spreadsheets and other tools export them: every line is a row, or an error with its line and value."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import evenlag
from evenlag.errors import EvenlagError, InvalidProblemError, SourceError
from evenlag.tables.read import read_group, read_snapshots

OF_KAFKA = "GROUP,TOPIC,PARTITION,CURRENT-OFFSET,LOG-END-OFFSET,LAG,CONSUMER-ID,HOST,CLIENT-ID"
ROWS = ["g,t,0,10,70,60,a,/192.0.2.1,app", "g,t,1,5,10,5,b,/192.0.2.2,app"]
NAMES = ["lags.csv", "lags.txt", "lags", "lags.log.txt"]


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("name", "before"), [*((name, ()) for name in NAMES), ("lags.txt", ("$ cat lags.txt",))])
@pytest.mark.parametrize(
    ("row", "value"),
    [
        ('g,t,2,"1,000","1,900",900,a,/192.0.2.1,app', "'1,[09]00'"),
        ("g,t,2,1.23457E+11,1.23457E+11,900,a,/192.0.2.1,app", r"'1.23457E\+11' \(a spreadsheet has rounded it"),
        ("g,t,2,1.000,1.900,900,a,/192.0.2.1,app", r"'1.[09]00' \(write it without marks between thousands\)"),
        ("g,t,2,2.000,2.000,0,a,/192.0.2.1,app", "'2.000'"),
        ("g,t,2,many,70,,a,/192.0.2.1,app", "'many'"),
        ("g,t,two,10,70,60,a,/192.0.2.1,app", "'two'"),
    ],
)
def test_a_value_that_cannot_be_read_is_named_with_its_line(
    row: str, value: str, name: str, before: tuple[str, ...], tmp_path: Path
) -> None:
    path = written(tmp_path / name, *before, OF_KAFKA, *ROWS, row)
    with pytest.raises(EvenlagError, match=rf"{name}, line {4 + len(before)}: .*{value}"):
        read_group(path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("nothing", ["", "-", "N/A", "n/a", "NaN"])
def test_a_partition_without_a_commit_is_a_row(name: str, nothing: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, OF_KAFKA, *ROWS, f"g,t,2,{nothing},70,{nothing},{nothing},{nothing},{nothing}")
    problem, notes = read_group(path, auto_offset_reset="latest")
    assert problem.lags.tolist() == [60, 5, 0]
    assert problem.owner.tolist() == [0, 1, -1]
    assert any(note.startswith("t-2: never committed") for note in notes)


@pytest.mark.parametrize("header", ["Group,Topic,Partition,Lag,Consumer_ID", "GROUP,TOPIC,PARTITION,LAG,CONSUMER_ID",
                                    "group.id,topic,partition,consumer lag,memberId"])  # fmt: skip
@pytest.mark.parametrize(
    "give",
    [
        lambda text, path: written(path / "lags.csv", text),
        lambda text, path: written(path / "lags.txt", text),
        lambda text, _: text,
        lambda text, _: io.StringIO(text),
        lambda text, _: pd.read_csv(io.StringIO(text)),
        lambda text, path: [pd.read_csv(io.StringIO(text)).to_parquet(path / "lags.parquet"), path / "lags.parquet"][1],
    ],
    ids=["CSV", "text file", "text", "open file", "DataFrame", "Parquet"],
)
def test_headings_in_any_case_are_read_by_every_door(
    header: str, give: Callable[[str, Path], object], tmp_path: Path
) -> None:
    problem = evenlag.read(give(f"{header}\ng,t,0,500,a\ng,t,1,10,b\n", tmp_path))  # type: ignore[arg-type]
    assert (problem.group, problem.lags.tolist(), [*problem.members]) == ("g", [500, 10], ["a", "b"])


def test_blanks_after_commas_are_not_part_of_a_value(tmp_path: Path) -> None:
    path = written(tmp_path / "lags.csv", "group, topic, partition, lag, member", "g, t, 0, 5, a", 'g, t, 1, 7, "b"')
    problem, _ = read_group(path)
    assert (problem.group, problem.topics, [*problem.members]) == ("g", ("t",), ["a", "b"])


def test_a_repeated_header_is_not_a_row(tmp_path: Path) -> None:
    tables = [f"timestamp,topic,partition,lag,owner\n2026-11-20T10:0{minute}:00Z,t,0,{minute},a" for minute in range(3)]
    snapshots, _ = read_snapshots(written(tmp_path / "lags.csv", *tables), group="g")
    assert [each.problem.lags.tolist() for each in snapshots] == [[0], [1], [2]]


# ---- tables without groups -----------------------------------------------------------------------------------------


def test_the_group_names_rows_of_a_table_without_groups(tmp_path: Path) -> None:
    path = written(
        tmp_path / "lag.csv", "timestamp,topic,partition,current_offset,log_end_offset,lag,member",
        "2026-11-20 10:00:00,t,0,1000,1500,500,a", "2026-11-20 10:00:05,t,0,1050,1650,600,a",
    )  # fmt: skip
    with pytest.raises(
        SourceError, match=r"no column group; .*name the group of a table .* with --group; this one has"
    ):
        read_group(path)
    with pytest.raises(SourceError, match="with `group`"):
        evenlag.read(path)
    snapshots, _ = read_snapshots(path, group="billing")
    assert [(each.problem.group, each.problem.lags.tolist()) for each in snapshots] == [
        ("billing", [500]), ("billing", [600])
    ]  # fmt: skip
    assert [each.ts for each in snapshots] == ["2026-11-20 10:00:00", "2026-11-20 10:00:05"]


def test_a_members_table_without_groups_is_of_the_same_group(tmp_path: Path) -> None:
    lags = written(tmp_path / "lags.jsonl", *(json.dumps({"topic": "t", "partition": n, "lag": n}) for n in range(3)))
    members = written(tmp_path / "members.csv", "member", "a", "b")
    problem, _ = read_group(lags, members, "billing")
    assert (problem.group, [*problem.members], problem.lags.tolist()) == ("billing", ["a", "b"], [0, 1, 2])


def test_a_table_with_groups_keeps_them(tmp_path: Path) -> None:
    path = written(tmp_path / "lags.csv", "group,topic,partition,lag,member", "g,t,0,5,a")
    with pytest.raises(InvalidProblemError, match="no group 'billing'; the input has g"):
        read_group(path, group="billing")


def test_an_export_of_topics_has_no_partitions(tmp_path: Path) -> None:
    path = written(tmp_path / "topics.csv", "Topic,Consumer lag", "orders,925")
    with pytest.raises(
        SourceError,
        match=r"no column partition; .*a list of topics without their partitions, .*this one has Consumer lag, Topic$",
    ):
        read_group(path, group="g")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("header", [OF_KAFKA, OF_KAFKA.title()])
@pytest.mark.parametrize("mark", [";", "; "])
@pytest.mark.parametrize("quoted", [False, True])
def test_columns_may_be_separated_by_semicolons(
    name: str, header: str, mark: str, quoted: bool, tmp_path: Path
) -> None:
    lines = [mark.join(f'"{cell}"' if quoted else cell for cell in line.split(",")) for line in (header, *ROWS)]
    problem, _ = read_group(written(tmp_path / name, *lines))
    assert (problem.group, problem.lags.tolist(), problem.members) == ("g", [60, 5], ("a", "b"))
    rounded = ROWS[0].replace("10,70", "1.000,1.900").split(",")
    refused = written(tmp_path / f"refused-{name}", *lines, mark.join(rounded))
    with pytest.raises(EvenlagError, match=r"line 4: .*'1.[09]00'"):
        read_group(refused)


def test_topics_of_a_table_with_semicolons_are_quoted(tmp_path: Path) -> None:
    offsets = written(tmp_path / "offsets.csv", "group;topic;partition;lag", "g;t;0;5", "g;u;0;7")
    members = written(tmp_path / "members.csv", "group;consumer_id;topics", 'g;a;"t;u"', "g;b;t")
    problem, _ = read_group(offsets, members)
    assert problem.subscribed.tolist() == [[True, True], [True, False]]
