"""The model of a KIP-848 group where no small story can show it: another coordinator, and an assignor of our own."""

from evenlag.simulation.consumer_group import JOIN, ConsumerGroup, Heartbeat
from evenlag.simulation.group_answers import Code

TOPICS = {"t": 4}
WHOLE = frozenset(("t", number) for number in range(4))


def joined(group: ConsumerGroup, now: float, name: str) -> int:
    answer = group.heartbeat(now, Heartbeat(name, JOIN, name=f"client-{name}", topics=["t"], owned=(), rebalance=20.0))
    assert answer.code is Code.NONE
    return answer.generation


def test_another_coordinator_knows_everything_and_gives_members_a_session_again() -> None:
    group = ConsumerGroup(TOPICS, session=10.0)
    epoch = joined(group, 0.0, "a")
    before = group.describe(9.0)
    group.move(9.0, 12.0)
    assert group.describe(21.9) == before
    assert group.heartbeat(21.9, Heartbeat("a", epoch)).code is Code.NONE
    group.advance(32.0)
    assert group.describe(32.0).state == "Empty"


def test_time_to_give_up_begins_anew_with_another_coordinator() -> None:
    group = ConsumerGroup(TOPICS, session=100.0)
    epoch = joined(group, 0.0, "a")
    joined(group, 1.0, "b")
    assert group.heartbeat(2.0, Heartbeat("a", epoch)).assignment == frozenset([("t", 0), ("t", 1)])
    group.move(21.0, 23.0)
    assert group.counts(42.9, "a")
    assert not group.counts(43.1, "a")


def test_an_assignor_gets_members_in_order_and_the_last_target() -> None:
    asked = []

    def assign(members, topics, before):  # type: ignore[no-untyped-def]
        asked.append(([each.client_id for each in members], dict(topics), {n: set(keys) for n, keys in before.items()}))
        return {"b": WHOLE} if len(members) > 1 else {"a": WHOLE}

    group = ConsumerGroup(TOPICS, {"own": assign})
    epoch = joined(group, 0.0, "a")
    joined(group, 1.0, "b")
    assert asked == [(["client-a"], TOPICS, {}), (["client-a", "client-b"], TOPICS, {"a": set(WHOLE)})]
    assert group.heartbeat(2.0, Heartbeat("a", epoch, owned=())).generation == 2
    assert group.heartbeat(3.0, Heartbeat("b", 2)).assignment == WHOLE
    assert (group.describe(3.0).state, group.describe(3.0).assignor) == ("Stable", "own")
