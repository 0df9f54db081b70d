"""The server over real HTTP on loopback, and what it serves."""

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from http.client import HTTPConnection
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from evenlag.errors import SourceError
from evenlag.model.facts import NO_FACTS
from evenlag.watch import exposition
from evenlag.watch.board import Board, Entry, Reads
from evenlag.watch.group_figures import FIGURES, Figures
from evenlag.watch.server import serving
from evenlag.watch.standing import Standing

STRANGE = 'a "group"/ß\\ & co'
KNOWN = Figures(
    lag_messages=220, partitions=4, members=2, unowned_partitions=0, spread_messages=100, best_spread_messages=0,
    objective_messages=2, objective_bound_messages=Fraction(3, 2), plan_proven=True, plan_moves=2,
    rebalance_pays=True, recoverable_messages=100, capacity_messages_per_second=Fraction(10),
    drain_seconds=float("inf"), best_drain_seconds=Fraction(11), fewest_members=2, fewest_members_proven=True,
    members_wanted=2,
)  # fmt: skip
UNKNOWN = replace(KNOWN, spread_messages=None, recoverable_messages=None, drain_seconds=None)


def entry(figures: Figures, as_of: float) -> Entry:
    snapshot: Any = SimpleNamespace(problem=SimpleNamespace(facts=NO_FACTS))
    nothing: Any = None
    return Entry(Standing(figures, (snapshot,), nothing, nothing, None), as_of, as_of)


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Board:
    """A board at the time 1000."""
    from evenlag.watch import server

    now = SimpleNamespace(time=lambda: 1000.0)
    monkeypatch.setattr(server, "time", now)
    monkeypatch.setattr(exposition, "time", now)
    board = Board(most=9, lifetime=180.0)
    board.put("billing", entry(KNOWN, 990.0))
    board.put(STRANGE, entry(UNKNOWN, 900.0))
    board.put("old", entry(KNOWN, 800.0))
    board.failures["refused"] = "offsets.csv, line 3: lag must be a whole number"
    board.left_out = ["x", "y"]
    board.reads = Reads(total=7, failed=2, succeeded=True, last_success=995.5, seconds=0.25, plan_seconds=1.5)
    return board


@pytest.fixture
def address(board: Board) -> Iterator[str]:
    with serving(board, "127.0.0.1", 0, 60.0) as address:
        yield address


def asked(address: str, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    connection = HTTPConnection(str(urlsplit(address).netloc), timeout=30)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, str(answer.getheader("Content-Type")), answer.read().decode()
    finally:
        connection.close()


def samples(text: str) -> dict[tuple[str, str], float]:
    """Values by name and group."""
    families = text_string_to_metric_families(text)
    return {(each.name, each.labels.get("group", "")): each.value for family in families for each in family.samples}


def test_metrics(address: str) -> None:
    status, kind, text = asked(address, "/metrics")
    assert status == 200
    assert kind.startswith("text/plain; version=")
    found = samples(text)
    expected = {f"evenlag_{name}": value for name, value in KNOWN.values().items()}
    assert {name: value for (name, group), value in found.items() if group == "billing"} == {
        **expected, "evenlag_group_age_seconds": 10.0,
    }  # fmt: skip
    assert found["evenlag_drain_seconds", "billing"] == float("inf")
    assert {name for name, group in found if group == STRANGE} == {
        *(f"evenlag_{name}" for name in UNKNOWN.values()), "evenlag_group_age_seconds",
    }  # fmt: skip
    assert not [name for name, group in found if group == "old"]  # stale
    plain = {name: value for (name, group), value in found.items() if not group}
    assert plain.items() >= {
        "evenlag_reads_total": 7, "evenlag_read_failures_total": 2, "evenlag_read_success": 1,
        "evenlag_last_read_timestamp_seconds": 995.5, "evenlag_read_duration_seconds": 0.25,
        "evenlag_plan_duration_seconds": 1.5, "evenlag_interval_seconds": 60, "evenlag_groups": 2,
        "evenlag_groups_left_out": 2, "evenlag_groups_unplanned": 0, "evenlag_build_info": 1,
    }.items()  # fmt: skip
    assert plain["process_resident_memory_bytes"] > 1e6
    assert found["evenlag_group_left_out", "y"] == found["evenlag_group_failed", "refused"] == 1


def test_names_follow_the_conventions(address: str) -> None:
    # What promtool's linter asks for: help, lower case, base units, `_total` for counters and for nothing else.
    families = list(text_string_to_metric_families(asked(address, "/metrics")[2]))
    assert len(families) > len(FIGURES)
    for family in families:
        if family.name.startswith("process_"):
            continue
        assert re.fullmatch(r"evenlag_[a-z]+(_[a-z]+)*", family.name)
        assert family.documentation.endswith(".")
        assert (family.type == "counter") == any(each.name.endswith("_total") for each in family.samples)
        assert not re.search("milli|minute|hour|percent|kilo|_ms|_count$|_sum$|_bucket$", family.name)
        assert {label for each in family.samples for label in each.labels} <= {"group", "version"}


def test_open_metrics_where_it_is_asked_for(address: str) -> None:
    _, kind, text = asked(address, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


def test_json_of_a_group_has_a_number_for_keda(address: str) -> None:
    status, kind, text = asked(address, "/groups/billing")
    assert (status, kind) == (200, "application/json")
    document = json.loads(text)
    assert document["members_wanted"] == 2
    assert document["drain_seconds"] is None  # JSON has no infinity
    assert document["objective_bound_messages"] == 1.5
    assert set(document) == {"group", "age_seconds", "facts", "diagnosis", *FIGURES}


def test_every_group_is_found_by_its_listed_address(address: str) -> None:
    listed = json.loads(asked(address, "/groups")[2])["groups"]
    assert sorted(listed) == sorted(["billing", STRANGE])
    for name, place in listed.items():
        assert json.loads(asked(address, place)[2])["group"] == name


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/groups/old", 404, "or none that are fresh"),
        ("/groups/nobody", 404, "no figures of group 'nobody'"),
        ("/groups/refused", 503, "line 3"),
        ("/metrics/", 404, "/groups"),
        ("/../etc/passwd", 404, "/metrics"),
        ("//[", 404, "/metrics"),
    ],
)
def test_what_is_not_there_is_an_error(address: str, path: str, status: int, says: str) -> None:
    got, kind, text = asked(address, path)
    assert (got, kind) == (status, "application/json")
    assert says in json.loads(text)["error"]


def test_only_reading_is_answered(address: str) -> None:
    assert asked(address, "/metrics", "HEAD")[2] == ""
    assert asked(address, "/metrics", "POST")[0] == 501


@pytest.mark.slow
def test_clients_that_say_nothing_do_not_keep_others_waiting(address: str) -> None:
    where = urlsplit(address)
    silent = [socket.create_connection((where.hostname, where.port)) for _ in range(20)]
    assert asked(address, "/metrics")[0] == 200
    for each in silent:
        each.close()


def test_a_taken_address_is_an_error(address: str, board: Board) -> None:
    port = urlsplit(address).port or 0
    said = rf"cannot listen on 127.0.0.1:{port}: .*; give another --metrics"
    with pytest.raises(SourceError, match=said), serving(board, "127.0.0.1", port, 60.0):
        pass
