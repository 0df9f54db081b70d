"""`evenlag migrate` on files; on a broker see tests/live/test_migration.py."""

import json
from pathlib import Path

from tests.support.command import evenlag

OFFSETS = "snapshot_ts,group,topic,partition,lag,consumer_id\n" + "".join(
    f"2026-01-01T00:00:00.000Z,billing,orders,{p},{100 * p},c{p % 2}\n" for p in range(6)
)
MEMBERS = "snapshot_ts,group,consumer_id,protocol,assignor,group_instance_id,assignment_user_data\n" + "".join(
    f"2026-01-01T00:00:00.000Z,billing,c{m},classic,{{assignor}},{{instance}},{{user_data}}\n" for m in range(2)
)


def tables(folder: Path, assignor: str = "range", instance: str = "", user_data: str = "0") -> list[str]:
    """Write the tables; return the words that name them."""
    (folder / "offsets.csv").write_text(OFFSETS)
    members = MEMBERS.format(assignor=assignor, instance=instance, user_data=user_data)
    (folder / "members.csv").write_text(members)
    return [str(folder / "offsets.csv"), "--members", str(folder / "members.csv")]


def test_a_group_gets_a_report(tmp_path: Path) -> None:
    done = evenlag("migrate", *tables(tmp_path), "--deterministic")
    assert done.returncode == 0, done.stderr
    assert "billing, classic protocol, assignor range" in done.stdout
    assert done.stdout.startswith("The group can be upgraded online, one member after the other; ")
    assert "group.remote.assignor=uniform" in done.stdout


def test_columns_of_members_reach_the_forecast(tmp_path: Path) -> None:
    static = json.loads(evenlag("migrate", *tables(tmp_path, instance="host"), "--json").stdout)["groups"][0]
    assert [each["topic"] for each in static["remarks"]][:3] == ["assignor", "eager", "static"]
    refused = json.loads(evenlag("migrate", *tables(tmp_path, "mine", user_data="8"), "--json").stdout)["groups"][0]
    assert refused["online_upgrade"] == "refused"
    unknown = json.loads(evenlag("migrate", *tables(tmp_path, "mine", user_data=""), "--json").stdout)["groups"][0]
    assert unknown["online_upgrade"] == "unknown"


def test_several_groups_get_a_line_each(tmp_path: Path) -> None:
    words = tables(tmp_path)
    more = OFFSETS + OFFSETS.split("\n", 1)[1].replace("billing", "audit")
    (tmp_path / "offsets.csv").write_text(more)
    done = evenlag("migrate", *words, "--deterministic")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines if "  possible" in line or "  no-members" in line] == ["audit", "billing"]
    (empty,) = [line for line in lines if "  no-members" in line]
    assert empty.split()[3:] == ["–"] * 5 + ["0"]
    chosen = json.loads(evenlag("migrate", *words, "--group", "bill*", "--json").stdout)["groups"]
    assert [each["group"] for each in chosen] == ["billing"]


def test_errors_name_the_input(tmp_path: Path) -> None:
    words = tables(tmp_path)
    done = evenlag("migrate", *words, "--group", "other")
    assert (done.returncode, "other: no group of the input matches; it has " in done.stderr) == (1, True)
    done = evenlag("migrate", "kafka://127.0.0.1:9", "--members", words[-1])
    assert (done.returncode, "a cluster lists its members itself" in done.stderr) == (1, True)
    done = evenlag("migrate", *words, "--assignor", "uniform2")
    assert (done.returncode, "uniform" in done.stderr) == (2, True)


def test_a_group_without_a_plan_does_not_end_the_others(tmp_path: Path) -> None:
    (tmp_path / "offsets.csv").write_text(OFFSETS + OFFSETS.split("\n", 1)[1].replace("billing", "audit"))
    members = "snapshot_ts,group,consumer_id,max_partitions\n" + "".join(
        f"2026-01-01T00:00:00.000Z,{group},c{m},{most}\n"
        for group, most in (("audit", 9), ("billing", 1))
        for m in range(2)
    )
    (tmp_path / "members.csv").write_text(members)
    words = [str(tmp_path / "offsets.csv"), "--members", str(tmp_path / "members.csv"), "--deterministic", "--json"]
    done = evenlag("migrate", *words)
    document = json.loads(done.stdout)
    assert (done.returncode, [each["group"] for each in document["groups"]]) == (1, ["audit"])
    (left_out,) = [note for note in document["notes"] if note.startswith("group 'billing' is left out: ")]
    assert "do not fit" in left_out
    alone = evenlag("migrate", *words, "--group", "billing")
    assert (alone.returncode, alone.stdout, "do not fit" in alone.stderr) == (1, "", True)
