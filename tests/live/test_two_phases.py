"""Rebalances in two phases: a partition is revoked before another member gets it."""

from evenlag.live.assignor.course import in_phases
from evenlag.live.assignor.deciding import dealt
from evenlag.protocol.subscriptions import Subscription
from tests.support.leaders import T


def member_holding(*owned: int, generation: int | None = 5, topics: tuple[str, ...] = ("t",)) -> Subscription:
    return Subscription(topics, owned=tuple(("t", p) for p in owned), generation=generation, weight=1)


def test_a_partition_of_another_member_waits() -> None:
    members = {"a": member_holding(0, 1, 2), "b": member_holding(3), "c": member_holding(generation=None)}
    given, waiting = in_phases({"a": [T[0]], "b": [T[3], T[1]], "c": [T[2]]}, members)
    assert given == {"a": [T[0]], "b": [T[3]], "c": []}
    assert waiting == {T[1]: "b", T[2]: "c"}


def test_of_two_claims_the_later_generation_wins_and_a_tie_waits() -> None:
    older = {"a": member_holding(0, generation=4), "b": member_holding(0, generation=5)}
    assert in_phases({"a": [], "b": [T[0]]}, older) == ({"a": [], "b": [T[0]]}, {})
    assert in_phases({"a": [T[0]], "b": []}, older) == ({"a": [], "b": []}, {T[0]: "a"})
    tie = {"a": member_holding(0), "b": member_holding(0)}
    assert in_phases({"a": [T[0]], "b": []}, tie) == ({"a": [], "b": []}, {T[0]: "a"})


def test_an_unowned_partition_does_not_wait() -> None:
    assert in_phases({"a": T, "b": []}, {"a": member_holding(), "b": member_holding(3, generation=None)})[1] == {
        T[3]: "a"
    }
    assert in_phases({"a": T}, {"a": member_holding(generation=None)}) == ({"a": T}, {})


def test_the_fallback_assigns_every_partition_and_prefers_its_owner() -> None:
    members = {"a": member_holding(0, 1, 2), "b": member_holding(topics=("t", "u")), "c": member_holding(topics=())}
    assert dealt({"t": range(4), "u": [7], "v": [1]}, members) == {"a": T[:3], "b": [T[3], ("u", 7)], "c": []}
