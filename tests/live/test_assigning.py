"""What the leader decides, without a broker: phases, baselines, the process that solves."""

import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.cluster import ClusterMetadata
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

import evenlag
from evenlag.errors import InvalidProblemError, SourceError, UserDataError
from evenlag.live import solver_process
from evenlag.live.assignor import AioEvenlagAssignor, Decision, EvenlagAssignor, course, evenlag_assignor
from evenlag.live.assignor.course import in_phases
from evenlag.live.assignor.deciding import dealt
from evenlag.live.cluster import group_offsets
from evenlag.live.cluster.group_offsets import Reader, Reading
from evenlag.live.group_state import Subscription
from evenlag.live.kafka_python import Consumer
from evenlag.live.solver_process import SolverError, SolverProcess
from evenlag.live.subscriptions import OWN, decode_subscription
from evenlag.live.user_data import decode_own, encode_own
from evenlag.search.options import SolveOptions
from tests.support.members import HANGS, STARTS_FOR_EVER, wait_until

T = [("t", p) for p in range(4)]


def told(*owned: int, generation: int | None = 5, topics: tuple[str, ...] = ("t",)) -> Subscription:
    return Subscription(topics, owned=tuple(("t", p) for p in owned), generation=generation, weight=1)


def test_a_partition_that_another_holds_waits() -> None:
    members = {"a": told(0, 1, 2), "b": told(3), "c": told(generation=None)}
    given, waiting = in_phases({"a": [T[0]], "b": [T[3], T[1]], "c": [T[2]]}, members)
    assert given == {"a": [T[0]], "b": [T[3]], "c": []}
    assert waiting == {T[1]: "b", T[2]: "c"}


def test_of_two_claims_the_later_one_counts_and_a_tie_waits() -> None:
    older = {"a": told(0, generation=4), "b": told(0, generation=5)}
    assert in_phases({"a": [], "b": [T[0]]}, older) == ({"a": [], "b": [T[0]]}, {})
    assert in_phases({"a": [T[0]], "b": []}, older) == ({"a": [], "b": []}, {T[0]: "a"})
    tie = {"a": told(0), "b": told(0)}
    assert in_phases({"a": [T[0]], "b": []}, tie) == ({"a": [], "b": []}, {T[0]: "a"})


def test_nobody_holds_what_is_free() -> None:
    assert in_phases({"a": T, "b": []}, {"a": told(), "b": told(3, generation=None)})[1] == {T[3]: "a"}
    assert in_phases({"a": T}, {"a": told(generation=None)}) == ({"a": T}, {})


def test_what_is_dealt_out_is_everything_and_owners_come_first() -> None:
    members = {"a": told(0, 1, 2), "b": told(topics=("t", "u")), "c": told(topics=())}
    assert dealt({"t": range(4), "u": [7], "v": [1]}, members) == {"a": T[:3], "b": [T[3], ("u", 7)], "c": []}


@pytest.mark.parametrize("weight", [1, 2, 2**31 - 1])
def test_the_weight_is_read_back_and_every_changed_bit_is_found(weight: int) -> None:
    data = encode_own(weight)
    assert decode_own(data) == weight
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(UserDataError):
            decode_own(bytes(changed))
    for size in range(len(data)):
        with pytest.raises(UserDataError):
            decode_own(data[:size])
    with pytest.raises(UserDataError):
        decode_own(data + b"\0")
    with pytest.raises(UserDataError):
        encode_own(0)


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


@pytest.mark.slow
def test_the_process_solves_again_and_again_and_is_begun_anew() -> None:
    solver, expected = SolverProcess(), evenlag.solve(PROBLEM)
    try:
        for _ in range(2):
            now = time.monotonic()
            result = solver.solve(PROBLEM, SolveOptions(), now + 50, now + 60)
            assert result.plan.problem is PROBLEM
            assert (result.assignment, result.status) == (expected.assignment, expected.status)
            solver.stop()
    finally:
        solver.stop()


@pytest.mark.parametrize(
    ("program", "why"), [(HANGS, "did not answer in time"), ("import os; os._exit(3)", "died"), ("1 / 0", "died")]
)
def test_a_process_that_does_not_solve_is_ended_in_time(
    monkeypatch: pytest.MonkeyPatch, program: str, why: str
) -> None:
    monkeypatch.setattr(solver_process, "SERVE", program)
    solver = SolverProcess()
    solver.start()
    assert solver._running is not None
    process, _ = solver._running
    with pytest.raises(SolverError, match=why):
        solver.solve(PROBLEM, SolveOptions(), time.monotonic() + 1, time.monotonic() + (1 if program == HANGS else 30))
    assert process.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


@pytest.mark.slow
def test_a_process_that_is_still_starting_is_left_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = "import time; time.sleep(1.5)"
    monkeypatch.setattr(solver_process, "SERVE", f"{slow}; {solver_process.SERVE}")
    solver = SolverProcess()
    try:
        now = time.monotonic()
        with pytest.raises(SolverError, match="still starting"):
            solver.solve(PROBLEM, SolveOptions(), now + 0.2, now + 30)
        assert time.monotonic() < now + 1.5
        now = time.monotonic()
        assert solver.solve(PROBLEM, SolveOptions(), now + 50, now + 60).status == "OPTIMAL"
    finally:
        solver.stop()


@pytest.mark.slow
def test_threads_share_the_process_and_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_process, "SERVE", f"import time; time.sleep(1.5); {solver_process.SERVE}")
    solver = SolverProcess()
    solver.start()
    process, results = solver._running, []

    def solve() -> None:
        results.append(solver.solve(PROBLEM, SolveOptions(), time.monotonic() + 50, time.monotonic() + 60))

    other = threading.Thread(target=solve)
    other.start()
    try:
        wait_until(solver._solving.locked, "the other thread to solve")
        now = time.monotonic()
        with pytest.raises(SolverError, match="busy"):
            solver.solve(PROBLEM, SolveOptions(), now + 0.2, now + 30)
        solver.start()
        solve()
        other.join()
        assert [each.status for each in results] == ["OPTIMAL", "OPTIMAL"]
        assert solver._running is process
    finally:
        other.join()
        solver.stop()


def test_a_search_ends_by_itself_where_it_may_take_less_than_there_is_time_for() -> None:
    rng = random.Random(5)
    lags = {f"t{n}": [rng.randrange(10**6) for _ in range(60)] for n in range(5)}
    hard = evenlag.Problem.from_lags(lags, {f"m{n}": list(lags) for n in range(29)})
    solver = SolverProcess()
    try:
        now = time.monotonic()
        solver.solve(PROBLEM, SolveOptions(), now + 50, now + 60)
        now = time.monotonic()
        assert solver.solve(hard, SolveOptions(), now + 50, now + 60, 0.5).status == "FEASIBLE"
        assert time.monotonic() < now + 20
    finally:
        solver.stop()


def test_a_process_that_never_starts_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_process, "SERVE", STARTS_FOR_EVER)
    monkeypatch.setattr(solver_process, "STARTS_WITHIN", 0.5)
    solver = SolverProcess()
    with pytest.raises(SolverError, match="was killed"):
        solver.solve(PROBLEM, SolveOptions(), time.monotonic() + 1, time.monotonic() + 2)
    assert solver._running is None


def no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program have as many threads as it may."""

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)


def test_lags_without_a_thread_to_ask_in_are_told_and_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader("127.0.0.1:9", "g", {})
    with monkeypatch.context() as short:
        no_more_threads(short)
        for _ in range(2):
            with pytest.raises(SourceError, match=r"the lags could not be requested \(can't start new thread\)"):
                reader.read(["t"], time.monotonic() + 1)
    with pytest.raises(SourceError, match=r"no Kafka broker answers|did not arrive within"):
        reader.read(["t"], time.monotonic() + 1)


class Joined:
    """A member as kafka-python hands it to an assignor."""

    def __init__(self, member_id: str, metadata: object) -> None:
        self.member_id, self.metadata = member_id, metadata


class Topics(ClusterMetadata):  # type: ignore[misc]
    """What the consumer knows of the cluster."""

    def __init__(self, **partitions: int) -> None:
        self._counts = partitions

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self._counts[topic])) if topic in self._counts else None


def received(assignment: ConsumerProtocolAssignment) -> ConsumerProtocolAssignment:
    """The assignment as a member gets it, by way of the broker."""
    return ConsumerProtocolAssignment.decode(assignment.encode())


def test_nothing_that_fails_reaches_the_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_a_member_holds_is_told_with_its_generation_and_read_by_a_snapshot() -> None:
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


class Told:
    """A reader that knows."""

    def __init__(self, **ends: int) -> None:
        self.ends = ends
        self.racks: dict[tuple[str, int], tuple[str, ...]] = {}

    def read(self, _topics: object, _answer_by: float) -> Reading:
        if not self.ends:
            raise SourceError("nobody answers")
        return Reading({("t", int(name[1:])): (0, end, 0) for name, end in self.ends.items()}, {}, racks=self.racks)


@pytest.mark.parametrize("kind", [EvenlagAssignor, AioEvenlagAssignor])
@pytest.mark.parametrize("rack", [None, "zone-ä"])
def test_a_member_tells_its_rack_to_whichever_leader(kind: type[EvenlagAssignor], rack: str | None) -> None:
    assignor = kind("localhost:9", "g", rack=rack, limit=0.1, horizon=0)
    reader = Told(p0=10, p1=10)
    assignor._reader = cast("Any", reader)
    try:
        sent = ConsumerProtocolSubscription.decode(assignor.metadata({"t"}).encode())
        if kind is AioEvenlagAssignor:
            told = SimpleNamespace(subscription=["t"], user_data=sent.user_data)
            assignor.assign(Topics(t=2), {"a": told})  # type: ignore[arg-type]
        else:
            assert decode_subscription(sent.encode(), OWN).rack == rack
            assignor.assign(Topics(t=2), [Joined("a", sent)])
        result = last(assignor).result
        assert result is not None
        assert result.plan.problem.pairs.racks == (() if rack is None else (rack,))
    finally:
        assignor.close()


@contextmanager
def in_racks(reader: Told, **options: Any) -> Iterator[Callable[[], Decision]]:
    """The leader of two members in two racks; what it decides for four partitions."""
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
        return last(leader)

    try:
        yield decided
    finally:
        for assignor in assignors.values():
            assignor.close()


def test_partitions_go_where_their_replicas_are_as_far_as_that_is_asked_for() -> None:
    reader = Told(p0=10, p1=10, p2=1, p3=1)
    reader.racks = {("t", 0): ("x",), ("t", 1): ("x", "z"), ("t", 2): ("y",), ("t", 3): ("z", "y")}
    with in_racks(reader, first=["crossings"]) as decided:
        decision = decided()
        assert decision.solved
        assert decision.assignment == {"in-x": T[:2], "in-y": T[2:]}
        assert "; 0 partitions read across racks" in str(decision)
        reader.racks = {("t", p): ("elsewhere",) for p in range(4)}
        assert "; 4 partitions read across racks" in str(decided())
        reader.racks = {}
        decision = decided()
        assert decision.result is not None
        assert decision.result.crossings is None
        assert [note for note in decision.result.warnings if note.startswith("crossings are not counted")]
    with in_racks(reader, stickiness=0) as decided:
        reader.racks = {("t", 0): ("x",), ("t", 1): ("x",), ("t", 2): ("y",), ("t", 3): ("y",)}
        decision = decided()
        assert decision.result is not None
        assert decision.result.spread == 0


def test_a_limit_that_no_plan_keeps_is_told_and_the_group_reads_all_the_same() -> None:
    reader = Told(p0=10, p1=10, p2=1, p3=1)
    reader.racks = {("t", p): ("x",) for p in range(4)}
    with in_racks(reader, max_crossings=1) as decided:
        decision = decided()
        assert not decision.solved
        assert "the budget of crossings is 1, but both balance needs 2" in str(decision)
        assert {name: len(mine) for name, mine in decision.assignment.items()} == {"in-x": 2, "in-y": 2}


class Calling:
    """What an assignor knows of its consumer."""

    def __init__(self) -> None:
        self.steady, self.rejoins = True, 0

    def group(self) -> str:
        return "g"

    def stable(self) -> bool:
        return self.steady

    def request_rejoin(self) -> None:
        self.rejoins += 1


@contextmanager
def leading(**options: Any) -> Iterator[tuple[EvenlagAssignor, Told, Calling, Callable[[], set[int]]]]:
    """The leader of a group of two, settled with one partition of 10 messages and an empty one each."""
    assignor = EvenlagAssignor("localhost:9", "g", limit=60, read_every=3600, auto_offset_reset="earliest", **options)
    reader, calling = Told(p0=10, p1=10, p2=0, p3=0), Calling()
    assignor._reader = assignor._recorder = cast("Any", reader)
    members = [Joined(name, assignor.metadata({"t"})) for name in "ab"]
    assignor._coordinator = cast("Any", calling)

    def assigned() -> set[int]:
        """The partitions of `a`, as the leader assigns them, nobody holding anything yet."""
        return {each.partition for each in received(assignor.assign(Topics(t=4), members)["a"]).partitions()}

    try:
        assigned()
        yield assignor, reader, calling, assigned
    finally:
        assignor.close()


def last(assignor: EvenlagAssignor) -> Decision:
    assert assignor._heading is not None
    return assignor._heading.decision


def numbers_of_a(assignor: EvenlagAssignor) -> set[int]:
    return {p for _, p in last(assignor).assignment["a"]}


def test_the_leader_asks_for_a_rebalance_that_pays_and_answers_it_with_the_plan_that_does() -> None:
    with leading(rejoin_if_better="20%", rejoin_interval=0.01, horizon=0) as (assignor, reader, calling, assigned):
        time.sleep(0.01)
        assignor._look()
        assert calling.rejoins == 0
        mine = numbers_of_a(assignor)
        reader.ends = {f"p{p}": 1000 * (p in mine) for p in range(4)}
        calling.steady = False
        assignor._look()
        assert calling.rejoins == 0  # it is not in a group now
        calling.steady = True
        assignor._look()
        assert calling.rejoins == 0  # so much has just come in that a pause would cost more
        assignor._look()
        assert calling.rejoins == 1
        reader.ends = {}  # nothing is read, nothing solved any more
        assignor._solver.stop()
        assert len(assigned() & mine) == 1
        assert last(assignor).why == (
            evenlag_assignor.AGAIN,
            "requested: the plan saves 1,998 of 2,000 messages of spread once its moves are paid, 99.9 %",
        )


@pytest.mark.slow
def test_no_rebalance_is_asked_for_when_off_too_early_or_with_lags_that_are_not_known() -> None:
    cases: list[dict[str, Any]] = [{}, {"rejoin_if_better": 0.2}, {"rejoin_if_better": 0.2, "rejoin_interval": 0.01}]
    for options in cases:
        with leading(**options) as (assignor, reader, calling, _):
            time.sleep(0.01)
            mine = numbers_of_a(assignor)
            reader.ends = {f"p{p}": 1000 for p in mine} | ({} if "rejoin_interval" in options else {"p0": 1, "p1": 1})
            assignor._look()
            assert calling.rejoins == 0


def test_a_plan_that_was_asked_for_is_not_for_another_group_nor_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"rejoin_if_better": "20%", "rejoin_interval": 0.01, "horizon": 0}
    with leading(**options) as (assignor, reader, calling, assigned):
        time.sleep(0.01)
        mine = numbers_of_a(assignor)
        reader.ends = {f"p{p}": 1000 * (p in mine) for p in range(4)}
        assignor._look()
        assert calling.rejoins == 1
        monkeypatch.setattr(course, "STANDS", 0.0)
        assigned()
        assert last(assignor).why == ()


def test_a_rebalance_while_another_is_weighed_takes_the_solver_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, free = threading.Event(), threading.Event()

    def weighs_long(*_: object, **__: object) -> Decision:
        entered.set()
        assert free.wait(30)
        return Decision("g", {}, None, False, {}, (), 30.0)

    monkeypatch.setattr(evenlag_assignor, "better", weighs_long)
    with leading(rejoin_if_better="20%", rejoin_interval=0.01) as (assignor, _, calling, assigned):
        time.sleep(0.01)
        busy, process = assignor._solver, assignor._solver._running
        look = threading.Thread(target=assignor._look)
        look.start()
        assert entered.wait(30)
        monkeypatch.setattr(course, "STANDS", 0.0)
        assigned()
        assert last(assignor).solved
        assert assignor._solver is busy
        assert busy._running is process
        assignor.close()
        assert busy._running is process  # it is for the other thread to end
        free.set()
        look.join()
        assert busy._running is None
        assert calling.rejoins == 0


@pytest.mark.parametrize("meanwhile", ["the lags are read", "they are recorded"])
def test_a_look_that_is_under_way_when_the_assignor_is_closed_starts_no_solver(meanwhile: str) -> None:
    with leading(rejoin_if_better="20%", rejoin_interval=0.01) as (assignor, reader, calling, _):
        time.sleep(0.01)
        place, name = (reader, "read") if meanwhile == "the lags are read" else (assignor._record, "add")
        goes_on = getattr(place, name)

        def closes(*arguments: object) -> object:
            assignor.close()
            return goes_on(*arguments)

        setattr(place, name, closes)
        assignor._look()
        assert assignor._solver._running is None
        assert calling.rejoins == 0


def test_a_leader_that_has_not_heard_of_a_topic_yet_assigns_what_the_brokers_tell_of_it() -> None:
    with leading(horizon=0) as (assignor, reader, _, assigned):
        members = [Joined(name, assignor.metadata({"t", "gone"})) for name in "ab"]
        reader.ends |= {"p4": 1000}
        given = assignor.assign(Topics(), members)
        there = [each.partition for mine in given.values() for each in received(mine).partitions()]
        assert sorted(there) == [0, 1, 2, 3, 4]
        assert last(assignor).solved
        given = assignor.assign(Topics(t=5), members)  # once it has heard of it
        assert last(assignor).why == (evenlag_assignor.AGAIN,)
        assigned()
        assert sorted(p for mine in last(assignor).assignment.values() for _, p in mine) == [0, 1, 2, 3]
        reader.ends = {}
        assignor.assign(Topics(), members)
        assert last(assignor).assignment == {"a": [], "b": []}


def test_no_rebalance_is_asked_for_while_the_coordinator_is_away() -> None:
    calling = SimpleNamespace(stable=lambda: True, coordinator_id=None)
    coordinator = Consumer(cast("Any", calling))
    assert not coordinator.stable()
    calling.coordinator_id = "coordinator-1"
    assert coordinator.stable()


def test_whoever_leads_no_more_keeps_no_record_and_no_thread() -> None:
    with leading() as (assignor, reader, _, _):
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


def test_why_lags_cannot_be_looked_at_is_said_once_until_they_can(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "evenlag")
    gaps = "the lags of 2 partitions are unknown (the brokers do not know the partition)"
    with leading(rejoin_if_better="20%") as (assignor, reader, _, _):
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


def test_how_long_brokers_may_take_is_a_round_number(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def answers(*arguments: Any) -> Reading:
        asked.append(arguments[-1])
        return Reading({}, {})

    monkeypatch.setattr(group_offsets, "read_offsets", answers)
    for _ in range(2):  # what is said of it must not be another text each time
        Reader("localhost:9", "g", {}).read(["t"], time.monotonic() + 30)
    assert asked == [24.0, 24.0]


def test_why_the_brokers_tell_nothing_of_a_topic_is_said() -> None:
    reading = Reading({T[0]: (0, 5, 5)}, {T[1]: "no leader"}, {"u": "TOPIC_AUTHORIZATION_FAILED: no"})
    assert reading.gaps(T[:1]) is None
    assert reading.gaps([*T[:2], ("u", 0)]) == "the lags of 2 partitions are unknown (no leader)"
    assert reading.gaps([("u", 0), T[0]]) == "the lags of 1 partitions are unknown (TOPIC_AUTHORIZATION_FAILED: no)"


def test_lags_that_no_thread_can_look_at_are_said_once_and_looked_at_from_the_next_assignment_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with leading() as (assignor, _, _, assigned):
        assignor.close()
        with monkeypatch.context() as short:
            no_more_threads(short)
            assigned()
            assigned()
        said = [line for line in caplog.messages if "being checked" in line]
        assert said == ["group g: lags are not being checked: can't start new thread"]
        assigned()
        assert assignor._looks is not None


def test_a_decision_that_no_thread_can_tell_of_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with leading(on_decision=lambda _: None) as (_, _, _, assigned):
        no_more_threads(monkeypatch)
        assigned()
        assert "group g: on_decision was not called: can't start new thread" in caplog.messages


def test_what_fails_beside_the_consumer_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    told = threading.Event()

    def fails(_: Decision) -> None:
        told.set()
        raise ZeroDivisionError("whatever")

    with leading(on_decision=fails) as (assignor, _, _, _):
        assert told.wait(30)
        wait_until(lambda: "group g: on_decision failed" in caplog.messages, "the failure to be logged")
        caplog.clear()
        assignor._recorder = cast("Any", SimpleNamespace(read=lambda *_: 1 / 0))
        assignor._look()
        assignor._look()
        assert caplog.messages == ["group g: lags are not being checked: ZeroDivisionError: division by zero"]
        assert caplog.records[0].exc_info


def test_an_assignor_for_another_group_than_its_consumers_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    for group in ("g", "billing"):
        assignor = EvenlagAssignor("localhost:9", group)
        try:
            assignor._joining({"t"}, Calling())
            assignor._joining({"t"}, Calling())
        finally:
            assignor.close()
    said = "the consumer is in group g; give its assignor that group, or plans use the wrong lags"
    assert caplog.messages == [f"group billing: {said}"]


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


def test_a_decision_says_itself_in_a_line() -> None:
    result = evenlag.solve(PROBLEM)
    line = str(Decision("g", result.assignment, result, True, {("t", 0): "a"}, ("a reason",), 0.25, "the current lags"))
    assert line.startswith("group g: OPTIMAL by ")
    words = (
        "0 moves, 4 newly assigned; 1 still to be revoked; planned for the current lags; 2 members, 0.25 s; a reason"
    )
    assert line.endswith(f"; {words}")
    assert "\n" not in line
