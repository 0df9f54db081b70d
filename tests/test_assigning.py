"""What the leader decides, without a broker: phases, baselines, the process that solves."""

import os
import time
from typing import Any

import pytest
from kafka.cluster import ClusterMetadata
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

import evenlag
from evenlag.errors import InvalidProblemError, SourceError, UserDataError
from evenlag.live import assignor as live_assignor
from evenlag.live import solver_process
from evenlag.live.assignor import EvenlagAssignor, in_phases
from evenlag.live.deciding import Decision, dealt
from evenlag.live.groups import Subscription
from evenlag.live.solver_process import SolverError, SolverProcess
from evenlag.live.subscriptions import OWN, decode_subscription
from evenlag.live.user_data import decode_own, encode_own
from evenlag.search.options import SolveOptions
from tests.members import HANGS

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


@pytest.mark.parametrize("wrong", [{"weight": 0}, {"weight": 1.5}, {"limit": 0}, {"stickiness": -1}, {"balance": "x"}])
def test_parameters_are_checked_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidProblemError, match=next(iter(wrong))):
        EvenlagAssignor("localhost:9", "g", **wrong)
    with pytest.raises(SourceError, match="acks"):
        EvenlagAssignor("localhost:9", "g", config={"acks": "all"})
    with pytest.raises(TypeError, match="pins"):
        EvenlagAssignor("localhost:9", "g", pins=[])  # type: ignore[call-arg]


PROBLEM = evenlag.Problem.from_lags({"t": [5, 4, 3, 3]}, {"a": ["t"], "b": ["t"]})


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

    monkeypatch.setattr(live_assignor, "decide", fails)
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


def test_a_decision_says_itself_in_a_line() -> None:
    result = evenlag.solve(PROBLEM)
    line = str(Decision("g", result.assignment, result, True, {("t", 0): "a"}, ("a reason",), 0.25))
    assert line.startswith("group g: OPTIMAL by ")
    assert line.endswith("; 0 moves, 4 newly assigned; 1 wait to be given up; 2 members, 0.25 s; a reason")
    assert "\n" not in line
