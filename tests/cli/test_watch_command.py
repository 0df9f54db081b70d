"""The command `evenlag watch` as a user meets it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.command import evenlag, refused

HEADER = "group,topic,partition,lag,consumer_id\n"
UNEVEN = "g,t,0,100,a\ng,t,1,60,a\ng,t,2,50,b\ng,t,3,10,b\n"
EVEN = "g,t,0,100,a\ng,t,1,60,b\ng,t,2,50,b\ng,t,3,10,a\n"
PATIENCE = 60.0  # seconds until something that must happen has happened, on a busy machine


def values(text: str) -> dict[str, float]:
    return {each.name: each.value for family in text_string_to_metric_families(text) for each in family.samples}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "offsets.csv"
    path.write_text(HEADER + UNEVEN)
    os.utime(path, (1e9, 1e9))  # written long ago
    return path


def test_once_prints_metrics_and_nothing_else(table: Path) -> None:
    done = evenlag("watch", table, "--once", "--drain", "11s", "--capacity", 10)
    assert (done.returncode, done.stderr) == (0, "")
    found = values(done.stdout)
    assert found["evenlag_recoverable_messages"] == 100
    assert found["evenlag_fewest_members"] == 2
    assert (found["evenlag_drain_seconds"], found["evenlag_best_drain_seconds"]) == (16, 11)
    assert found["evenlag_group_age_seconds"] > 1e8  # old data are printed, with their age
    assert not [name for name in found if name.startswith("process_")]  # node_exporter has its own


def test_options_of_plans_are_heeded(table: Path) -> None:
    assert values(evenlag("watch", table, "--once", "--only-if-better", "99%").stdout)["evenlag_rebalance_pays"] == 0
    assert values(evenlag("watch", table, "--once", "--stickiness", 60).stdout)["evenlag_plan_moves"] == 0
    assert "evenlag_lag_messages" not in values(evenlag("watch", table, "--once", "--group", "h*").stdout)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--only-if-better", "much"), "--only-if-better must be a share"),
        (("--every", "0"), "every must be a time > 0"),
        (("--drain", "soon"), "drain"),
        (("--metrics", "192.0.2.1:1"), "cannot listen on 192.0.2.1:1"),
    ],
)
def test_wrong_values(table: Path, words: tuple[str, ...], says: str) -> None:
    done = evenlag("watch", table, *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("http://localhost", "'http://localhost' is neither a path nor kafka://HOST:PORT"),
        ("kafka://", "kafka://: not the address of a cluster; write kafka://HOST:PORT"),
        ("kafka://localhost:9092/topic", "kafka://localhost:9092/topic: not the address of a cluster"),
    ],
)
def test_wrong_sources(source: str, said: str) -> None:
    done = evenlag("watch", source, "--once")
    assert done.returncode == 2
    assert said in done.stderr


CLUSTER = "kafka://127.0.0.1:1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("offsets.csv", "--group", "g", "--publish", "plans.json"),
            "--publish needs a cluster as INPUT: kafka://HOST:PORT",
        ),
        ((CLUSTER, "--publish", "plans.json"), "--publish needs --group: the groups whose plans it may publish"),
        ((CLUSTER, "--group", "g", "--publish", "plans.json", "--once"), "omit --once"),
        (
            (CLUSTER, "--group", "g*", "--publish", "plans.json"),
            "--publish plans.json: a file has the plan of one group",
        ),
        ((CLUSTER, "--group", "g", "--group", "h", "--publish", "plans.json"), "a file has the plan of one group"),
        ((CLUSTER, "--dry-run"), "--dry-run needs --publish PLACE"),
        ((CLUSTER, "--max-moves", 3), "--max-moves needs --publish PLACE"),
    ],
)
def test_options_that_do_not_go_together(words: tuple[object, ...], said: str) -> None:
    done = evenlag("watch", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("plans/", "plans/: is a folder; name a file, such as plans/published.json"),
        ("kafka://127.0.0.1:1/a,b", "kafka://127.0.0.1:1/a,b: several topics; name one topic of plans"),
    ],
)
def test_places_that_are_no_places(place: str, said: str) -> None:
    refused(evenlag("watch", CLUSTER, "--group", "g", "--publish", place), said)


@pytest.mark.parametrize("option", ["--least", "--horizon"])
def test_a_time_of_the_loop_that_is_none_is_refused(option: str) -> None:
    refused(
        evenlag("watch", CLUSTER, "--group", "g", "--publish", "plans.json", option, "soon"),
        f"{option} must be seconds or a time",
    )


@pytest.mark.parametrize("address", ["9779", "localhost:", ":9779", "localhost:99999", "localhost:http"])
def test_wrong_addresses(table: Path, address: str) -> None:
    done = evenlag("watch", table, "--metrics", address)
    assert done.returncode == 2
    assert f"{address!r} is not HOST:PORT, such as 127.0.0.1:9779" in done.stderr


def test_a_source_that_cannot_be_read_once_is_an_error(tmp_path: Path) -> None:
    done = evenlag("watch", tmp_path / "none.csv", "--once")
    assert done.returncode == 1
    assert "read failed: " in done.stderr
    assert done.stderr.count("none.csv") == 1
    refused(evenlag("watch", "kafka://127.0.0.1:1", "--members", tmp_path), "omit --members")


# ---- a process that is watched -------------------------------------------------------------------------------------


class Running:
    """`evenlag watch` in a process of its own, on a free port."""

    def __init__(self, *words: object) -> None:
        command = [sys.executable, "-m", "evenlag", "watch", *map(str, words), "--metrics", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        found = re.search(r"serving (http://127\.0\.0\.1:[0-9]+)/metrics", said)
        assert found is not None, said
        self.address = found[1]

    def get(self, path: str) -> str:
        with urlopen(self.address + path, timeout=PATIENCE) as answer:
            return str(answer.read().decode())

    def wait_for(self, holds: Callable[[dict[str, float]], bool]) -> dict[str, float]:
        end = time.monotonic() + PATIENCE
        while not holds(found := values(self.get("/metrics"))):
            assert time.monotonic() < end, found
            time.sleep(0.1)
        return found

    def end(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        assert out == ""
        return self.process.returncode, err


@contextmanager
def running(*words: object) -> Iterator[Running]:
    started = Running(*words)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


@pytest.mark.slow
def test_a_file_is_watched_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(HEADER + UNEVEN)
    with running(path, "--every", "1s", "--stale-after", 1000) as watched:
        watched.wait_for(lambda found: found.get("evenlag_recoverable_messages") == 100)
        assert json.loads(watched.get("/groups/g"))["recoverable_messages"] == 100
        path.write_text(HEADER + UNEVEN[:-4])
        failed = watched.wait_for(lambda found: found["evenlag_read_failures_total"] >= 1)
        assert failed["evenlag_recoverable_messages"] == 100
        assert failed["evenlag_read_success"] == 0
        path.write_text(HEADER + EVEN)
        quiet = watched.wait_for(lambda found: found["evenlag_recoverable_messages"] == 0)
        assert quiet["evenlag_read_success"] == quiet["evenlag_plan_proven"] == 1
        status, said = watched.end(signal.SIGTERM)
    assert status == 0
    lines = said.splitlines()
    assert lines[-1].endswith("Z evenlag watch: terminated")
    assert all("evenlag watch: read failed: " in line and "offsets.csv" in line for line in lines[:-1])


@pytest.mark.slow
def test_figures_of_a_dead_writer_are_withdrawn(table: Path) -> None:
    with running(table, "--every", "1s") as watched:
        found = watched.wait_for(lambda found: found["evenlag_reads_total"] >= 1)
        assert "evenlag_recoverable_messages" not in found
        assert found["evenlag_read_success"] == 1
        assert watched.end(signal.SIGINT)[0] == 130


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_long_search(tmp_path: Path, number: int) -> None:
    random = Random(5)
    path = tmp_path / "offsets.csv"
    lags = [int(random.lognormvariate(8, 1.5)) for _ in range(600)]
    path.write_text(HEADER + "".join(f"g{p // 60},t,{p % 60},{lag},m{p % 10}\n" for p, lag in enumerate(lags)))
    with running(path, "--every", "1h", "--group-time-limit", 900) as watched:
        watched.wait_for(lambda found: found["evenlag_reads_total"] == 1)
        assert watched.process.poll() is None
        status, said = watched.end(number)
    assert (status, said.rstrip().endswith("terminated")) == ((0, True) if number == signal.SIGTERM else (130, False))


@pytest.mark.slow
def test_groups_that_come_and_go(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"

    def write(names: str) -> None:
        other = tmp_path / "next"
        other.write_text(HEADER + "".join(UNEVEN.replace("g,", f"{name},") for name in names))
        other.rename(path)

    write("abc")
    with running(path, "--every", "1s", "--most-groups", 2, "--stale-after", 1000) as watched:

        def served(name: str) -> bool:
            return f'evenlag_spread_messages{{group="{name}"}}' in watched.get("/metrics")

        found = watched.wait_for(lambda found: found["evenlag_groups"] == 2)
        assert found["evenlag_groups_left_out"] == 1
        assert not served("c")
        for names in ("bc", "de"):
            write(names)
            watched.wait_for(lambda _, names=names: all(map(served, names)))  # type: ignore[misc]
            assert not served("a")
