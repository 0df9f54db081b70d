"""Decisions of a group's leader without a broker: plans, racks, rebalances that it requests, and failures."""

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

import evenlag
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.live.assignor import AioEvenlagAssignor, Decision, EvenlagAssignor, course, evenlag_assignor
from evenlag.live.kafka_python import Consumer
from evenlag.protocol.subscriptions import OWN, Subscription, decode_subscription
from tests.support.leaders import (
    Coordinator,
    Joined,
    LagReader,
    T,
    Topics,
    forbid_threads,
    last_decision,
    received,
    settled_leader,
)
from tests.support.members import wait_until

WRONG: list[dict[str, Any]] = [
    {"weight": 0}, {"weight": 1.5}, {"limit": 0}, {"stickiness": -1}, {"balance": "x"}, {"horizon": "soon"},
    {"read_every": 0}, {"rejoin_if_better": "much"}, {"rejoin_interval": -1},
    {"rack": ""}, {"rack": 3}, {"first": ["crosings"]}, {"budgets": {"nights": 3}}, {"max_load": -1},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_parameters_are_checked_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidProblemError, match=next(iter(wrong))):
        EvenlagAssignor("localhost:9", "g", **wrong)
    with pytest.raises(SourceError, match="acks"):
        EvenlagAssignor("localhost:9", "g", config={"acks": "all"})
    with pytest.raises(TypeError, match="pins"):
        EvenlagAssignor("localhost:9", "g", pins=[])  # type: ignore[call-arg]


PROBLEM = evenlag.Problem.from_lags({"t": [5, 4, 3, 3]}, {"a": ["t"], "b": ["t"]})


def test_no_failure_reaches_the_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_args: object, **_keywords: object) -> None:
        raise ZeroDivisionError("whatever")

    monkeypatch.setattr(evenlag_assignor, "decide", fails)
    assignor = EvenlagAssignor("localhost:9", "g", on_decision=lambda _: None)
    try:
        members = [Joined("a", assignor.metadata({"t"})), Joined("b", assignor.metadata({"t", "u"}))]
        made = assignor.assign(Topics(t=4), members)
        assert {name: len(received(each).partitions()) for name, each in made.items()} == {"a": 2, "b": 2}
    finally:
        assignor.close()


def test_a_member_sends_its_partitions_with_their_generation() -> None:
    assignor = EvenlagAssignor("localhost:9", "g", weight=3, limit=0.1)
    try:
        made = assignor.assign(Topics(t=4), [Joined("a", assignor.metadata({"t"}))])
        assignor.on_assignment(received(made["a"]), 7)
        sent = assignor.metadata({"t"})
        assert isinstance(sent, ConsumerProtocolSubscription)
        read = decode_subscription(sent.encode(), OWN)
        assert read == Subscription(("t",), owned=tuple(T), generation=7, weight=3)
    finally:
        assignor.close()


@pytest.mark.parametrize("kind", [EvenlagAssignor, AioEvenlagAssignor])
@pytest.mark.parametrize("rack", [None, "zone-ä"])
def test_a_member_sends_its_rack_to_the_leader(kind: type[EvenlagAssignor], rack: str | None) -> None:
    assignor = kind("localhost:9", "g", rack=rack, limit=0.1, horizon=0)
    reader = LagReader(p0=10, p1=10)
    assignor._reader = cast("Any", reader)
    try:
        sent = ConsumerProtocolSubscription.decode(assignor.metadata({"t"}).encode())
        if kind is AioEvenlagAssignor:
            member = SimpleNamespace(subscription=["t"], user_data=sent.user_data)
            assignor.assign(Topics(t=2), {"a": member})  # type: ignore[arg-type]
        else:
            assert decode_subscription(sent.encode(), OWN).rack == rack
            assignor.assign(Topics(t=2), [Joined("a", sent)])
        result = last_decision(assignor).result
        assert result is not None
        assert result.plan.problem.pairs.racks == (() if rack is None else (rack,))
    finally:
        assignor.close()


@contextmanager
def leader_in_racks(reader: LagReader, **options: Any) -> Iterator[Callable[[], Decision]]:
    """Lead two members in two racks; the body gets a function that decides on four partitions."""
    assignors = {
        rack: EvenlagAssignor(
            "localhost:9", "g", limit=60, horizon=0, auto_offset_reset="earliest", rack=rack, **options
        )
        for rack in ("x", "y")
    }
    leader = assignors["x"]
    leader._reader = cast("Any", reader)
    members = [Joined(f"in-{rack}", assignor.metadata({"t"})) for rack, assignor in assignors.items()]

    def decided() -> Decision:
        leader._heading = None
        leader.assign(Topics(t=4), members)
        return last_decision(leader)

    try:
        yield decided
    finally:
        for assignor in assignors.values():
            assignor.close()


@pytest.mark.slow
def test_partitions_go_to_members_in_the_racks_of_their_replicas_on_request() -> None:
    reader = LagReader(p0=10, p1=10, p2=1, p3=1)
    reader.racks = {("t", 0): ("x",), ("t", 1): ("x", "z"), ("t", 2): ("y",), ("t", 3): ("z", "y")}
    with leader_in_racks(reader, first=["crossings"]) as decided:
        decision = decided()
        assert decision.solved
        assert decision.assignment == {"in-x": T[:2], "in-y": T[2:]}
        assert "; 0 partitions read across racks" in str(decision)
        reader.racks = {("t", p): ("elsewhere",) for p in range(4)}
        assert "; 4 partitions read across racks" in str(decided())
        reader.racks = {("t", p): ("elsewhere", "x") for p in range(4)}
        assert "; 2 partitions read across racks" in str(decided())
        reader.racks = {}
        decision = decided()
        assert decision.result is not None
        assert decision.result.crossings is None
        assert [note for note in decision.result.warnings if note.startswith("crossings are not counted")]
    with leader_in_racks(reader, first=["crossings"], fetch_from="leader") as decided:
        reader.racks = {("t", p): ("elsewhere", "x") for p in range(4)}
        assert "; 4 partitions read across racks" in str(decided())
    with leader_in_racks(reader, stickiness=0) as decided:
        reader.racks = {("t", 0): ("x",), ("t", 1): ("x",), ("t", 2): ("y",), ("t", 3): ("y",)}
        decision = decided()
        assert decision.result is not None
        assert decision.result.spread == 0


@pytest.mark.slow
def test_a_limit_that_no_plan_keeps_is_reported_and_the_group_still_reads() -> None:
    reader = LagReader(p0=10, p1=10, p2=1, p3=1)
    reader.racks = {("t", p): ("x",) for p in range(4)}
    with leader_in_racks(reader, max_crossings=1) as decided:
        decision = decided()
        assert not decision.solved
        assert "the budget of crossings is 1, but both balance needs 2" in str(decision)
        assert {name: len(mine) for name, mine in decision.assignment.items()} == {"in-x": 2, "in-y": 2}


def planned_for_a(assignor: EvenlagAssignor) -> set[int]:
    return {p for _, p in last_decision(assignor).assignment["a"]}


def test_the_leader_requests_a_rebalance_that_pays_and_assigns_that_plan() -> None:
    with settled_leader(rejoin_if_better="20%", rejoin_interval=0.01, horizon=0) as (
        assignor,
        reader,
        coordinator,
        partitions_of_a,
    ):
        time.sleep(0.01)
        assignor._look()
        assert coordinator.rejoins == 0
        mine = planned_for_a(assignor)
        reader.ends = {f"p{p}": 1000 * (p in mine) for p in range(4)}
        coordinator.steady = False
        assignor._look()
        assert coordinator.rejoins == 0  # it is not in a group now
        coordinator.steady = True
        assignor._look()
        assert coordinator.rejoins == 0  # so much has just come in that a pause would cost more
        assignor._look()
        assert coordinator.rejoins == 1
        reader.ends = {}  # nothing is read, nothing solved any more
        assignor._solver.stop()
        assert len(partitions_of_a() & mine) == 1
        assert last_decision(assignor).why == (
            evenlag_assignor.AGAIN,
            "requested: the plan saves 1,998 of 2,000 messages of spread once its moves are paid, 99.9 %",
        )


@pytest.mark.slow
def test_no_rebalance_is_requested_when_off_too_early_or_without_lags() -> None:
    cases: list[dict[str, Any]] = [{}, {"rejoin_if_better": 0.2}, {"rejoin_if_better": 0.2, "rejoin_interval": 0.01}]
    for options in cases:
        with settled_leader(**options) as (assignor, reader, coordinator, _):
            time.sleep(0.01)
            mine = planned_for_a(assignor)
            reader.ends = {f"p{p}": 1000 for p in mine} | ({} if "rejoin_interval" in options else {"p0": 1, "p1": 1})
            assignor._look()
            assert coordinator.rejoins == 0


def test_the_plan_of_a_requested_rebalance_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"rejoin_if_better": "20%", "rejoin_interval": 0.01, "horizon": 0}
    with settled_leader(**options) as (assignor, reader, coordinator, partitions_of_a):
        time.sleep(0.01)
        mine = planned_for_a(assignor)
        reader.ends = {f"p{p}": 1000 * (p in mine) for p in range(4)}
        assignor._look()
        assert coordinator.rejoins == 1
        monkeypatch.setattr(course, "STANDS", 0.0)
        partitions_of_a()
        assert last_decision(assignor).why == ()


def test_a_rebalance_during_a_look_uses_the_running_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, free = threading.Event(), threading.Event()

    def weighs_long(*_: object, **__: object) -> Decision:
        entered.set()
        assert free.wait(30)
        return Decision("g", {}, None, False, {}, (), 30.0)

    monkeypatch.setattr(evenlag_assignor, "better", weighs_long)
    with settled_leader(rejoin_if_better="20%", rejoin_interval=0.01) as (assignor, _, coordinator, partitions_of_a):
        time.sleep(0.01)
        busy, process = assignor._solver, assignor._solver._running
        look = threading.Thread(target=assignor._look)
        look.start()
        assert entered.wait(30)
        monkeypatch.setattr(course, "STANDS", 0.0)
        partitions_of_a()
        assert last_decision(assignor).solved
        assert assignor._solver is busy
        assert busy._running is process
        assignor.close()
        assert busy._running is process  # it is for the other thread to end
        free.set()
        look.join()
        assert busy._running is None
        assert coordinator.rejoins == 0


@pytest.mark.parametrize("meanwhile", ["the lags are read", "they are recorded"])
def test_a_look_during_which_the_assignor_is_closed_starts_no_solver(meanwhile: str) -> None:
    with settled_leader(rejoin_if_better="20%", rejoin_interval=0.01) as (assignor, reader, coordinator, _):
        time.sleep(0.01)
        place, name = (reader, "read") if meanwhile == "the lags are read" else (assignor._record, "add")
        goes_on = getattr(place, name)

        def closes(*arguments: object) -> object:
            assignor.close()
            return goes_on(*arguments)

        setattr(place, name, closes)
        assignor._look()
        assert assignor._solver._running is None
        assert coordinator.rejoins == 0


def test_a_leader_assigns_partitions_of_a_topic_that_only_the_brokers_know() -> None:
    with settled_leader(horizon=0) as (assignor, reader, _, partitions_of_a):
        members = [Joined(name, assignor.metadata({"t", "gone"})) for name in "ab"]
        reader.ends |= {"p4": 1000}
        given = assignor.assign(Topics(), members)
        there = [each.partition for mine in given.values() for each in received(mine).partitions()]
        assert sorted(there) == [0, 1, 2, 3, 4]
        assert last_decision(assignor).solved
        given = assignor.assign(Topics(t=5), members)  # once it has heard of it
        assert last_decision(assignor).why == (evenlag_assignor.AGAIN,)
        partitions_of_a()
        assert sorted(p for mine in last_decision(assignor).assignment.values() for _, p in mine) == [0, 1, 2, 3]
        reader.ends = {}
        assignor.assign(Topics(), members)
        assert last_decision(assignor).assignment == {"a": [], "b": []}


def test_a_group_without_a_coordinator_is_not_stable() -> None:
    kafka_python = SimpleNamespace(stable=lambda: True, coordinator_id=None)
    consumer = Consumer(cast("Any", kafka_python))
    assert not consumer.stable()
    kafka_python.coordinator_id = "coordinator-1"
    assert consumer.stable()


def test_a_former_leader_keeps_neither_record_nor_thread() -> None:
    with settled_leader() as (assignor, reader, _, _):
        assignor._look()
        reader.ends["p0"] = 50
        assignor._look()
        assert assignor._record.rates
        assignor.metadata({"t"})
        assignor._look()
        assignor.assign(Topics(t=4), [Joined("a", assignor.metadata({"t"}))])
        assert assignor._record.rates  # it leads on
        assignor.metadata({"t"})
        looks = assignor._looks
        assert looks is not None
        assignor.on_assignment(ConsumerProtocolAssignment(version=2, assigned_partitions=[], user_data=b""), 3)
        assert assignor._record.rates is None
        assert looks.is_set()
        assignor._look()
        assert assignor._record.rates is None


def test_why_lags_are_unknown_is_logged_once_until_they_are_known(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "evenlag")
    gaps = "the lags of 2 partitions are unknown (the brokers do not know the partition)"
    with settled_leader(rejoin_if_better="20%") as (assignor, reader, _, _):
        caplog.clear()
        for ends in ({}, {"p0": 10, "p1": 10}) * 2:
            reader.ends = ends
            assignor._look()
        assert caplog.messages == [
            "group g: lags are not being recorded: nobody answers",
            f"group g: {gaps}; until they are known, no rebalance is requested",
        ]
        caplog.clear()
        reader.ends = {f"p{p}": 10 for p in range(4)}
        assignor._look()
        assignor._look()
        assert caplog.messages == ["group g: lags are being checked again"]


@pytest.mark.slow
def test_a_failed_start_of_the_lag_thread_is_logged_once_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with settled_leader() as (assignor, _, _, partitions_of_a):
        assignor.close()
        with monkeypatch.context() as short:
            forbid_threads(short)
            partitions_of_a()
            partitions_of_a()
        lines = [line for line in caplog.messages if "being checked" in line]
        assert lines == ["group g: lags are not being checked: can't start new thread"]
        partitions_of_a()
        assert assignor._looks is not None


def test_a_callback_that_no_thread_can_run_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with settled_leader(on_decision=lambda _: None) as (_, _, _, partitions_of_a):
        forbid_threads(monkeypatch)
        partitions_of_a()
        assert "group g: on_decision was not called: can't start new thread" in caplog.messages


def test_failures_outside_the_consumer_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    called = threading.Event()

    def fails(_: Decision) -> None:
        called.set()
        raise ZeroDivisionError("whatever")

    with settled_leader(on_decision=fails) as (assignor, _, _, _):
        assert called.wait(30)
        wait_until(lambda: "group g: on_decision failed" in caplog.messages, "the failure to be logged")
        caplog.clear()
        assignor._recorder = cast("Any", SimpleNamespace(read=lambda *_: 1 / 0))
        assignor._look()
        assignor._look()
        assert caplog.messages == ["group g: lags are not being checked: ZeroDivisionError: division by zero"]
        assert caplog.records[0].exc_info


def test_an_assignor_for_the_wrong_group_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    for group in ("g", "billing"):
        assignor = EvenlagAssignor("localhost:9", group)
        try:
            assignor._joining({"t"}, Coordinator())
            assignor._joining({"t"}, Coordinator())
        finally:
            assignor.close()
    message = "the consumer is in group g; give its assignor that group, or plans use the wrong lags"
    assert caplog.messages == [f"group billing: {message}"]


def test_the_thread_ends_with_its_assignor() -> None:
    done = threading.Event()

    class Once:
        def look(self) -> None:
            done.set()

    once = Once()
    thread = threading.Thread(
        target=evenlag_assignor._again_and_again, args=(weakref.WeakMethod(once.look), 0.01, threading.Event())
    )
    thread.start()
    assert done.wait(30)
    del once
    thread.join(30)
    assert not thread.is_alive()


def test_a_decision_is_printed_on_one_line() -> None:
    result = evenlag.solve(PROBLEM)
    line = str(Decision("g", result.assignment, result, True, {("t", 0): "a"}, ("a reason",), 0.25, "the current lags"))
    assert line.startswith("group g: OPTIMAL by ")
    words = (
        "0 moves, 4 newly assigned; 1 still to be revoked; planned for the current lags; 2 members, 0.25 s; a reason"
    )
    assert line.endswith(f"; {words}")
    assert "\n" not in line
