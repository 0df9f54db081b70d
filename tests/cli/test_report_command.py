"""`evenlag report`: the page, its document, and what is refused."""

import json
import re
import shlex
from html import unescape
from pathlib import Path

import pytest

from tests.support.command import evenlag, refused

MEMBERS = {"c0": {"owned": [["orders", 0], ["orders", 1]]}, "c1": {"owned": [["orders", 2]]}}
GROUP = {"group": "g", "topics": {"orders": [9, 5, 4]}, "members": MEMBERS}


@pytest.fixture
def group(tmp_path: Path) -> Path:
    path = tmp_path / "group.json"
    path.write_text(json.dumps(GROUP))
    return path


def test_a_page_is_written_and_its_first_sentence_printed(group: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = evenlag("report", group, "--out", page, "--capacity", "2", "--time-limit", "1")
    assert (done.returncode, done.stderr) == (0, "")
    headline, written = done.stdout.splitlines()
    assert written == f"written: {page}"
    assert f"<h1>{headline}</h1>" in page.read_text().replace("&#39;", "'")


def test_json_is_the_document_of_the_page(group: Path, tmp_path: Path) -> None:
    done = evenlag("report", group, "--out", tmp_path / "page.html", "--json", "--time-limit", "1")
    document = json.loads(done.stdout)
    assert (document["kind"], document["group"], document["source"]) == ("group", "g", str(group))
    assert len(document["partitions"]) == 3


@pytest.mark.slow
def test_commands_on_the_page_run_as_written(group: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    subscribed = {name: {**member, "topics": ["orders"]} for name, member in MEMBERS.items()}
    group.write_text(json.dumps(GROUP | {"members": subscribed}))
    page = tmp_path / "page.html"
    evenlag("report", group, "--out", page, "--time-limit", "1")
    section = page.read_text().partition('<h2 id="apply">')[2].partition("</section>")[0]
    lines = [unescape(line) for line in re.findall(r"evenlag [^<\n]*", section)]
    commands = [shlex.split(line)[1:] for line in lines if "HOST" not in line]
    assert [words[0] for words in commands] == ["plan", "verify", "publish"]
    for words in commands:
        assert evenlag(*words).returncode == 0, words


def test_commands_on_the_page_name_every_input(tmp_path: Path) -> None:
    table, members = tmp_path / "the offsets.csv", tmp_path / "members.csv"
    table.write_text("group,topic,partition,lag,consumer_id\nshop,t,0,5,a\nother,t,0,1,b\n")
    members.write_text("group,consumer_id,topics\nshop,a,t\nother,b,t\n")
    page = tmp_path / "p.html"
    given = ["--members", members, "--group=shop", "--balance", "none", "--max-moves=1", "--time-limit", "1"]
    done = evenlag("report", table, *given, "--capacity", "9", "--drain", "1m", "--out", page, "--json")
    document = json.loads(done.stdout)
    assert document["source"] == f"'{table}' --members {members} --group shop --capacity 9"
    assert document["options"] == "--balance none --max-moves 1 --time-limit 1"


def test_the_commands_on_the_page_make_and_verify_its_plan(tmp_path: Path) -> None:
    table, page, plan = tmp_path / "the offsets.csv", tmp_path / "page.html", tmp_path / "plan.json"
    rows = "".join(f"shop,t,{p},{lag},{owner}\n" for p, (lag, owner) in enumerate([(50, "a"), (40, "a"), (3, "b")]))
    table.write_text("group,topic,partition,lag,consumer_id\n" + rows)
    evenlag("report", table, "--balance", "none", "--max-moves", "1", "--out", page, "--time-limit", "1")
    commands = [shlex.split(unescape(text)) for text in re.findall(r"<code>(evenlag [^<]*)</code>", page.read_text())]
    make, check = (next(each for each in commands if each[1] == name) for name in ("plan", "verify"))
    options = ["--balance", "none", "--max-moves", "1", "--time-limit", "1"]
    assert make[1:] == ["plan", str(table), *options, "--out", "plan.json"]
    evenlag(*make[1:-1], plan)
    assert check[1:] == ["verify", "plan.json", str(table)]
    assert "verified" in evenlag("verify", plan, table).stdout


def test_an_input_is_not_overwritten(group: Path) -> None:
    before = group.read_text()
    refused(evenlag("report", group, "--out", group), "is also the input and would be overwritten")
    assert group.read_text() == before


def test_a_page_needs_a_place(group: Path) -> None:
    done = evenlag("report", group)
    assert (done.returncode, "missing option '--out'" in done.stderr) == (2, True)


def test_nothing_is_written_for_input_that_is_refused(tmp_path: Path) -> None:
    broken, page = tmp_path / "group.json", tmp_path / "page.html"
    broken.write_text("{")
    refused(evenlag("report", broken, "--out", page), "invalid JSON at line 1")
    assert not page.exists()


@pytest.mark.spark
def test_tables_of_an_audit_make_a_page_about_the_fleet(tmp_path: Path) -> None:
    rows = [f"2026-01-02T03:04:05Z,g{g},t,{p},{10 * p + g},{'ab'[p % 2]}" for g in range(3) for p in range(4)]
    table = tmp_path / "offsets.csv"
    table.write_text("\n".join(["snapshot_ts,group,topic,partition,lag,consumer_id", *rows]) + "\n")
    done = evenlag("fleet", "audit", table, "--out", tmp_path / "out", "--group-time-limit", "0.2")
    assert done.returncode == 0, done
    said = evenlag("report", tmp_path / "out", "--out", tmp_path / "page.html", "--json")
    document = json.loads(said.stdout)
    assert document["kind"] == "fleet"
    found = {row["group"]: row for row in document["groups"]}
    assert {name: row["makespan_today"] for name, row in found.items()} == {"g0": 40, "g1": 42, "g2": 44}
    assert {name: row["partitions"] for name, row in found.items()} == {"g0": 4, "g1": 4, "g2": 4}
    assert all(sum(today for _, today, _ in row["loads"]) == sum(planned for *_, planned in row["loads"])
               for row in found.values())  # fmt: skip
    assert "<h1>" in (tmp_path / "page.html").read_text()


@pytest.mark.spark
def test_a_folder_without_tables_is_named(tmp_path: Path) -> None:
    refused(evenlag("report", f"file://{tmp_path}/none", "--out", tmp_path / "p.html"), "none")
