"""All groups of an input at once are those that are read one by one."""

from pathlib import Path

import pytest

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.tables.every_group import GroupNow, every_group, of_rows
from evenlag.tables.loading import latest_parts, read_file, read_table
from evenlag.tables.read import read_group, read_recorded_group

ROOT = Path(__file__).parents[2]
SNAPSHOT = ROOT / "examples" / "snapshot"
NOW = "2026-01-31T12:00:00Z"


def found(offsets: Path, members: Path | None = None) -> dict[str, GroupNow | InvalidProblemError]:
    readings = read_file(offsets, "offsets")
    listed = None if members is None else read_file(members, "members")
    return dict(every_group(str(offsets), readings, listed, ts=NOW))


def usable(offsets: Path, members: Path | None = None) -> dict[str, GroupNow]:
    return {name: group for name, group in found(offsets, members).items() if isinstance(group, GroupNow)}


@pytest.mark.parametrize("with_members", [True, False])
def test_groups_of_a_table(with_members: bool) -> None:
    offsets, members = SNAPSHOT / "offsets.csv", SNAPSHOT / "members.csv" if with_members else None
    groups = usable(offsets, members)
    assert len(groups) == 8
    for name, group in groups.items():
        problem, _ = read_group(offsets, members, name)
        assert group.problem.to_dict() == problem.to_dict()
        assert group.record[-1].ts == next(iter(read_table(offsets, "offsets")))["snapshot_ts"]


def test_rows_of_a_snapshot_are_read_as_their_file_is() -> None:
    offsets, members = (list(read_table(SNAPSHOT / f"{kind}.csv", kind)) for kind in ("offsets", "members"))  # type: ignore[arg-type]
    groups = dict(of_rows("the cluster", offsets, members, "latest"))
    expected = usable(SNAPSHOT / "offsets.csv", SNAPSHOT / "members.csv")
    assert list(groups) == list(expected)
    for name, group in groups.items():
        assert isinstance(group, GroupNow)
        assert group.problem.to_dict() == expected[name].problem.to_dict()


TEXT = """\
GROUP    TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST        CLIENT-ID
billing  t      0          5               9               4    c-1          /10.0.0.1   c
billing  t      1          5               6               1    c-2          /10.0.0.2   c
orders   t      0          1               8               7    d-1          /10.0.0.3   d
orders   t      1          -               8               -    d-1          /10.0.0.3   d

GROUP    CONSUMER-ID  HOST       CLIENT-ID  #PARTITIONS
billing  c-1          /10.0.0.1  c          1
billing  c-2          /10.0.0.2  c          1
billing  c-3          /10.0.0.4  c          0
"""


def test_groups_of_a_text_have_their_own_members(tmp_path: Path) -> None:
    path = tmp_path / "groups.txt"
    path.write_text(TEXT)
    groups = usable(path)
    assert {name: group.problem.members for name, group in groups.items()} == {
        "billing": ("c-1", "c-2", "c-3"), "orders": ("d-1",),
    }  # fmt: skip
    for name, group in groups.items():
        assert group.problem.to_dict() == read_group(path, None, name)[0].to_dict()
        assert group.record[-1].ts == NOW  # the text has no time


def test_the_last_two_snapshots_are_the_record(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    lines = [
        f"2026-01-31T12:0{minute}:00Z,{group},t,0,{10 * minute},0,a\n" for minute in (2, 0, 1) for group in ("g", "h")
    ]
    path.write_text("snapshot_ts,group,topic,partition,log_end_offset,current_offset,consumer_id\n" + "".join(lines))
    for name, group in usable(path).items():
        _, _, record = read_recorded_group(path, None, name)
        assert [each.ts for each in group.record] == [each.ts for each in record][-2:]
        assert [each.problem.total_lag for each in group.record] == [10, 20]


def test_a_bad_row_is_its_own_groups_error(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text("group,topic,partition,lag,consumer_id\ng,t,0,many,a\nh,t,0,5,b\n")
    groups = found(path)
    assert isinstance(groups["h"], GroupNow)
    assert str(groups["g"]).startswith(f"{path}, line 2: t-0: lag is not a whole number")


def test_a_row_without_a_group_is_an_error_of_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text("group,topic,partition,lag,consumer_id\n,t,0,1,a\n")
    with pytest.raises(InvalidProblemError, match="no group found"):
        found(path)


def test_only_the_chosen_groups_are_read() -> None:
    seen = []

    def choice(names: object) -> list[str]:
        seen.append(names)
        return ["billing"]

    offsets = read_file(SNAPSHOT / "offsets.csv", "offsets")
    assert [name for name, _ in every_group("x", offsets, None, choice=choice, ts=NOW)] == ["billing"]
    assert seen == [sorted(usable(SNAPSHOT / "offsets.csv"))]


def test_the_latest_files_of_a_folder(tmp_path: Path) -> None:
    names = ["20260131T120000Z.csv", "20260131T120500Z.csv", "20260131T121000Z.csv", "20260131T121000Z-2.csv"]
    for name in names:
        (tmp_path / name).write_text("")
    assert [part.name for part in latest_parts(tmp_path, 1)] == sorted(names[2:])
    assert [part.name for part in latest_parts(tmp_path, 2)] == sorted(names[1:])
    assert len(latest_parts(tmp_path)) == 4
    (tmp_path / "part-0.csv").write_text("")  # a name without a time: all files are parts of one table
    assert len(latest_parts(tmp_path, 1)) == 5
    with pytest.raises(SourceError, match="the folder has no file"):
        latest_parts(tmp_path.joinpath("empty").mkdir() or tmp_path / "empty", 1)


def test_a_single_group_is_chosen_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text("group,topic,partition,lag\ng,t,0,5\n")
    readings = read_file(path, "offsets")
    chosen = [
        dict(every_group(str(path), readings, None, choice=lambda names, take=take: [n for n in names if take], ts=NOW))
        for take in (True, False)
    ]
    assert [list(groups) for groups in chosen] == [["g"], []]
