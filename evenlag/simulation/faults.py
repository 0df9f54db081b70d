"""Faults put into our code or into the model, one at a time, and the promises by which each is found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from evenlag.errors import SourceError
from evenlag.live.assignor import evenlag_assignor
from evenlag.live.assignor.course import Heading
from evenlag.live.assignor.evenlag_assignor import EvenlagAssignor
from evenlag.live.assignor.lag_record import LagRecord
from evenlag.live.cluster.stopped import Pulse
from evenlag.live.follow import consumer_loop
from evenlag.live.follow.group_commits import Commit, GroupCommits
from evenlag.live.follow.holdings import Holdings
from evenlag.live.followed_plan import PlanTopic, UnacknowledgedError, newest_plan
from evenlag.simulation.assigned_member import AssignedMember, PlanSolver, VirtualAssignor
from evenlag.simulation.classic_membership import Membership
from evenlag.simulation.consumer_group import NOTHING, ConsumerGroup, Stage, Subscriber
from evenlag.simulation.consuming_member import ConsumingMember
from evenlag.simulation.coordinator import Coordinator
from evenlag.simulation.group_answers import Code
from evenlag.simulation.planned_group import PlannedGroup
from evenlag.simulation.trials import simulate
from evenlag.simulation.watch_loop import Brokers
from evenlag.simulation.world import BrokenPromiseError
from evenlag.watch import loop_decision
from evenlag.watch.loop import Loop
from evenlag.watch.loop_decision import Caution, Published
from evenlag.watch.sole_writer import TopicWriter

ENOUGH = 12  # seeds within which a fault is found
TAKEN = "still reads|back|repeats"  # promises about a partition that two members read
UNREAD = "does not (hold|read)"  # and about one that nobody reads


@dataclass(frozen=True)
class Fault:
    """A part of the code, and what replaces it.

    Attributes
    ----------
    name : str
    home, attribute
        The class or module, and the name of the part in it.
    value : object
        Replaces the part.
    promise : str
        Regular expression for the promises that the fault breaks.
    rare : bool
        True if it takes more than some seconds to find.
    """

    name: str
    home: Any
    attribute: str
    value: Any
    promise: str
    rare: bool = False

    @contextmanager
    def put_in(self) -> Iterator[None]:
        """Put the fault in inside the block."""
        before = getattr(self.home, self.attribute)
        setattr(self.home, self.attribute, self.value)
        try:
            yield
        finally:
            setattr(self.home, self.attribute, before)

    def found(self, kind: str, hours: float) -> tuple[int, str] | None:
        """Return the first seed that finds the fault, and the promise that it breaks; None if none of `ENOUGH` does."""
        with self.put_in():
            for seed in range(ENOUGH):
                try:
                    simulate(seed, hours, kind)
                except BrokenPromiseError as error:
                    return seed, str(error).splitlines()[0]
        return None


# ---- followers -------------------------------------------------------------------------------------------------------


def _not_free_without(words: str) -> Any:
    before = Commit.not_free

    def not_free(self: Commit, *arguments: Any) -> str | None:
        why = before(self, *arguments)
        return None if why is not None and words in why else why

    return not_free


def _counted_early(self: Holdings, key: Any, offset: int) -> None:
    self._held[key] = offset + 1


def _always_new(self: GroupCommits, keys: Any, look: Any = GroupCommits.look) -> None:
    self._seen = {}
    look(self, keys)


def _once(self: PlanTopic, news: Any = PlanTopic.news) -> Any:
    found = [] if hasattr(self, "_has_read") else news(self)
    self._has_read = bool(found)  # type: ignore[attr-defined]
    return found


# ---- assignors -------------------------------------------------------------------------------------------------------


def _without_phases(target: Any, _members: Any) -> Any:
    return target, {}


def _at_every_look(self: EvenlagAssignor, look: Any = EvenlagAssignor._look) -> None:
    self._rebalanced = -math.inf
    look(self)


def _from_the_first(self: LagRecord, *arguments: Any, add: Any = LagRecord.add) -> None:
    before = self._last
    add(self, *arguments)
    self._last = before or self._last


def _claiming_nothing(self: VirtualAssignor, topics: Any) -> Any:
    self._held = []
    return self._joining(topics, self._member)


def _failing(*_: Any) -> Any:
    raise ZeroDivisionError


def _keeping(self: AssignedMember, assignment: Any, generation: int, take: Any = AssignedMember.assigned) -> None:
    before = dict(self._positions)
    take(self, assignment, generation)
    self._positions |= before


# ---- loops -----------------------------------------------------------------------------------------------------------


def _unclaimed(_: TopicWriter, consumer: Any, partitions: Any) -> None:
    consumer.incremental_unassign(partitions)


def _refused_if_unanswered(self: PlanTopic, plan: Any, append: Any = PlanTopic._append) -> None:
    try:
        append(self, plan)
    except UnacknowledgedError as error:
        raise SourceError(str(error)) from None


def _garbage_left_out(self: Loop, place: Any) -> Published:
    place.close()
    plan = newest_plan(place.news())
    return Published(plan, other_loop=None if self.writer is None else self.writer.objection())


# ---- brokers ---------------------------------------------------------------------------------------------------------


def _assigned_before_it_is_free(self: ConsumerGroup, member: Subscriber, _owned: Any) -> None:
    member.previous, member.epoch, member.stage = member.epoch, self.assignment_epoch, Stage.STABLE
    member.assigned = self._target.get(member.member_id, NOTHING)


def _given_nothing_up(self: ConsumingMember[Any], keys: Any, take: Any = ConsumingMember.take) -> bool:
    return bool(take(self, self._positions.keys() | set(keys)))


def _nudged_once(self: PlannedGroup, look: Any = PlannedGroup._look) -> None:
    before = self._nudged
    look(self)
    self._nudged = self._nudged or before


def _described_once(self: Brokers, protocols: Any, describe: Any = Brokers.describe) -> Any:
    return vars(self).setdefault("first", describe(self, protocols))


_FOLLOWERS = (
    Fault("an outage ends the program", consumer_loop, "passes", lambda _: False, "ended by itself"),
    Fault("reads on after its lease", Holdings, "rest", lambda _: [], TAKEN, rare=True),
    Fault("a claim need not stand", consumer_loop, "CLAIM_LOOKS", 0, TAKEN, rare=True),
    Fault("takes what another holds", Commit, "not_free", _not_free_without("has not given it up"), TAKEN, rare=True),
    Fault(
        "acts under an older plan", Commit, "not_free", _not_free_without("held under"), "acts under plan", rare=True
    ),
    Fault("does not see that others have taken it", Holdings, "_yield_to_others", lambda _: None, TAKEN, rare=True),
    Fault("counts the next message too", Holdings, "processed", _counted_early, "skips|repeats"),
    Fault("begins at the end of the log", GroupCommits, "first_offset", lambda *_: 10**6, UNREAD, rare=True),
    Fault("every look renews the others' leases", GroupCommits, "look", _always_new, UNREAD, rare=True),
    Fault("never goes on after its lease", Holdings, "_go_on", lambda *_: None, UNREAD),
    Fault("hands nothing on", Holdings, "_hand_on", lambda *_: None, UNREAD),
    Fault("reads no second plan", PlanTopic, "news", _once, UNREAD),
)
_ASSIGNORS = (
    Fault("gives what another still holds", evenlag_assignor, "in_phases", _without_phases, TAKEN),
    Fault("claims nothing", VirtualAssignor, "metadata", _claiming_nothing, TAKEN, rare=True),
    Fault("reuses a plan whoever is there", Heading, "still", lambda *_: True, "the plan is for|has no plan"),
    Fault("asks for rebalances without a rest", EvenlagAssignor, "_look", _at_every_look, "after the last", rare=True),
    Fault("records from the beginning", LagRecord, "add", _from_the_first, "rates that it has not seen"),
    Fault("a failure of the solver is not caught", PlanSolver, "solve", _failing, "has no plan"),
    Fault("commits of any generation count", Coordinator, "commit", lambda *_: Code.NONE, "back|repeats"),
    Fault("heartbeats say nothing", Coordinator, "heartbeat", lambda *_: Code.NONE, f"settle|{UNREAD}"),
    Fault("keeps what it must give up", AssignedMember, "assigned", _keeping, f"{TAKEN}|settle", rare=True),
    Fault("keeps what it has lost", ConsumingMember, "lost", lambda _: None, TAKEN, rare=True),
    Fault("never joins again", Membership, "request_rejoin", lambda _: None, "the plan is for|revoked|settle"),
)
_LOOPS = (
    Fault("every loop is the writer", TopicWriter, "objection", lambda _: None, "is the writer|after", rare=True),
    Fault("a lost claim counts", TopicWriter, "_revoked", _unclaimed, "is the writer|after the last", rare=True),
    Fault("plans without a rest", Caution, "_too_early", lambda *_: None, "after the last one"),
    Fault("looks at no plan in force", loop_decision, "_not_taken_up", lambda *_: None, "not for", rare=True),
    Fault("a dead follower counts", Pulse, "still", lambda *_: (), "has long been dead", rare=True),
    Fault("a lower plan stays the last record", PlanTopic, "write", PlanTopic._append, "as the last record", rare=True),
    Fault(
        "a lost answer is a refusal", PlanTopic, "_append", _refused_if_unanswered, "reports that it has not", rare=True
    ),
    Fault("plans over what cannot be read", Loop, "_read", _garbage_left_out, "cannot be read", rare=True),
)
_BROKERS = (
    Fault("gives what another still holds", ConsumerGroup, "_reconcile", _assigned_before_it_is_free, TAKEN),
    Fault("commits of any epoch count", ConsumerGroup, "commit", lambda *_: Code.NONE, "back|repeats"),
    Fault("gives nothing up", ConsumingMember, "take", _given_nothing_up, f"{TAKEN}|settled"),
    Fault("keeps what it has lost", ConsumingMember, "lost", lambda _: None, "the group has"),
    Fault("the broker does not nudge", PlannedGroup, "_nudge", lambda _: None, "not in force"),
    Fault("the broker nudges at every look", PlannedGroup, "_look", lambda self: self._nudge(), "settle"),
    Fault(
        "the broker nudges once for each plan and membership",
        PlannedGroup,
        "_look",
        _nudged_once,
        "not in force",
        rare=True,
    ),
    Fault("a loop describes the group once", Brokers, "describe", _described_once, "long gone", rare=True),
)
FAULTS: Mapping[str, tuple[Fault, ...]] = {
    "followers": _FOLLOWERS, "assignors": _ASSIGNORS, "loops": _LOOPS, "brokers": _BROKERS,
}  # fmt: skip
"""The faults by the kind of group that finds them."""
