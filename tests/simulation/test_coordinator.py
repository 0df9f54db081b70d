"""The model of a classic group's coordinator, step by step, as KIP-345, KIP-394 and KIP-429 describe it."""

from evenlag.simulation.coordinator import Coordinator
from evenlag.simulation.group_answers import Answer, Code, Pending, State

SENT = {"range": b""}


def answered(pending: Pending) -> Answer:
    assert pending.answer is not None
    return pending.answer


def joined(coordinator: Coordinator, *names: str) -> dict[str, str]:
    """Let an empty group form within 3 s, and return the ids of its members by their names; the first one leads."""
    ids = {name: answered(coordinator.join(0.0, "", SENT, name=name)).member_id for name in names}
    pending = {name: coordinator.join(0.0, member_id, SENT) for name, member_id in ids.items()}
    coordinator.advance(3.0)
    assert {answered(each).leader for each in pending.values()} == {ids[names[0]]}
    for member_id in reversed(ids.values()):
        coordinator.sync(3.0, member_id, 1, {each: name for name, each in ids.items()})
    assert coordinator.state is State.STABLE
    return ids


def test_an_empty_group_waits_for_members() -> None:
    coordinator = Coordinator(initial_delay=3.0)
    first = answered(coordinator.join(0.0, "", SENT, name="a"))
    assert (first.code, first.generation) == (Code.MEMBER_ID_REQUIRED, -1)
    pending = coordinator.join(0.0, first.member_id, SENT)
    late = coordinator.join(2.0, answered(coordinator.join(2.0, "", SENT, name="b")).member_id, SENT)
    coordinator.advance(5.9)
    assert pending.answer is None  # the second member has prolonged the wait
    coordinator.advance(6.0)
    assert answered(pending).members.keys() == {answered(pending).member_id, answered(late).member_id}
    assert answered(late).members == {}
    assert coordinator.state is State.COMPLETING


def test_followers_wait_for_the_leader() -> None:
    coordinator = Coordinator(initial_delay=1.5)
    ids = joined(coordinator, "a", "b")
    assert answered(coordinator.sync(4.0, ids["b"], 1, {})).assignment == "b"
    assert coordinator.heartbeat(4.0, ids["a"], 1) is Code.NONE
    assert coordinator.heartbeat(4.0, ids["a"], 2) is Code.ILLEGAL_GENERATION
    assert coordinator.heartbeat(4.0, "c", 1) is Code.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_removed_and_the_others_rebalance() -> None:
    coordinator = Coordinator(initial_delay=1.5)
    ids = joined(coordinator, "a", "b")
    assert coordinator.heartbeat(12.9, ids["b"], 1) is Code.NONE
    assert coordinator.heartbeat(13.1, ids["b"], 1) is Code.REBALANCE_IN_PROGRESS
    assert coordinator.commit(13.1, ids["b"], 1) is Code.NONE  # what it has read until now counts
    assert coordinator.commit(13.1, ids["a"], 1) is Code.UNKNOWN_MEMBER_ID
    again = answered(coordinator.join(13.2, ids["b"], SENT))
    assert (again.generation, again.leader) == (2, ids["b"])
    assert coordinator.commit(13.2, ids["b"], 1) is Code.ILLEGAL_GENERATION
    assert coordinator.commit(13.2, ids["b"], 2) is Code.REBALANCE_IN_PROGRESS
    assert coordinator.commit(13.2, "", -1) is Code.UNKNOWN_MEMBER_ID
    assert coordinator.leave(13.3, ids["b"]) is Code.NONE
    assert coordinator.state is State.EMPTY
    assert coordinator.commit(13.3, "", -1) is Code.NONE


def test_a_member_that_does_not_join_again_holds_the_rebalance_up() -> None:
    coordinator = Coordinator(initial_delay=1.5)
    ids = joined(coordinator, "a", "b")
    pending = coordinator.join(4.0, ids["a"], SENT, rebalance=60.0)
    for second in range(5, 64):
        assert coordinator.heartbeat(float(second), ids["b"], 1) is Code.REBALANCE_IN_PROGRESS
    assert pending.answer is None
    coordinator.advance(64.0)
    assert answered(pending).members.keys() == {ids["a"]}
    assert coordinator.heartbeat(64.0, ids["b"], 1) is Code.UNKNOWN_MEMBER_ID


def test_a_leader_that_does_not_sync_is_removed() -> None:
    coordinator = Coordinator(initial_delay=1.5)
    ids = joined(coordinator, "a", "b")
    coordinator.join(4.0, ids["b"], {"range": b"changed"})
    assert answered(coordinator.join(4.0, ids["a"], SENT)).generation == 2
    waits = coordinator.sync(4.0, ids["b"], 2, {})
    assert coordinator.heartbeat(13.0, ids["a"], 2) is Code.NONE
    coordinator.advance(23.0)
    assert answered(waits).code is Code.REBALANCE_IN_PROGRESS
    assert answered(coordinator.join(23.0, ids["b"], SENT)).leader == ids["b"]


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    coordinator = Coordinator()
    pending = coordinator.join(0.0, "", SENT, instance="s")
    coordinator.advance(3.0)
    old = answered(pending).member_id
    coordinator.sync(3.0, old, 1, {old: "all"})
    back = answered(coordinator.join(9.0, "", SENT, instance="s"))
    assert (back.code, back.generation, back.skip) == (Code.NONE, 1, True)
    assert answered(coordinator.sync(9.0, back.member_id, 1, {}, "s")).assignment == "all"
    assert coordinator.heartbeat(9.0, old, 1, "s") is Code.FENCED_INSTANCE_ID
    assert coordinator.commit(9.0, old, 1, "s") is Code.FENCED_INSTANCE_ID
    assert answered(coordinator.join(9.0, old, SENT, instance="s")).code is Code.FENCED_INSTANCE_ID
    coordinator.advance(19.1)
    assert coordinator.state is State.EMPTY


def test_another_coordinator_knows_what_was_stored() -> None:
    coordinator = Coordinator(initial_delay=1.5)
    ids = joined(coordinator, "a", "b")
    pending = coordinator.join(4.0, ids["a"], SENT)
    coordinator.move(5.0, 7.0)
    assert answered(pending).code is Code.NOT_COORDINATOR
    assert (coordinator.state, coordinator.generation) == (State.STABLE, 1)
    assert coordinator.heartbeat(16.9, ids["b"], 1) is Code.NONE
    assert coordinator.heartbeat(17.1, ids["b"], 1) is Code.REBALANCE_IN_PROGRESS  # the other one is silent


def test_members_need_a_protocol_in_common() -> None:
    coordinator = Coordinator()
    joined(coordinator, "a")
    refused = answered(coordinator.join(4.0, "", {"sticky": b""}, name="b"))
    assert refused.code is Code.INCONSISTENT_GROUP_PROTOCOL
