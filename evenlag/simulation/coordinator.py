"""A model of Kafka's coordinator of one classic group: its answers to requests at given times.

It has neither a clock nor a network, so that a test can compare it with the answers of real brokers. The names of
states and errors are Kafka's. References: KIP-62, KIP-345 (static members), KIP-394 (ids of new members), KIP-814.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

from evenlag.simulation.group_answers import NO_MEMBER, Answer, Code, Pending, State


@dataclass
class _Member:
    member_id: str
    instance: str | None
    protocols: Mapping[str, Any]
    session: float
    rebalance: float
    expires: float
    assignment: Any = None
    joining: Pending | None = None
    syncing: Pending | None = None
    synced: bool = True


class Coordinator:
    """The coordinator of a group.

    Each method takes place at `now`, after everything that the coordinator does by itself until then. Times are in
    seconds and must not fall.

    Parameters
    ----------
    initial_delay : float
        Seconds for which an empty group waits for more members (`group.initial.rebalance.delay.ms`).

    Attributes
    ----------
    state : State
    generation : int
    protocol : str or None
    """

    def __init__(self, initial_delay: float = 3.0) -> None:
        self.state, self.generation = State.EMPTY, 0
        self.protocol: str | None = None
        self._initial_delay, self._ids, self._now = initial_delay, 0, 0.0
        self._members: dict[str, _Member] = {}
        self._leader: str | None = None
        self._promised: dict[str, float] = {}  # ids given out and not used yet, with the times at which they expire
        self._due = math.inf  # when the rebalance ends, or the wait for the members' requests to sync
        self._initial: tuple[float, float] | None = None  # of an empty group: this delay and the rest of the time
        self._newcomer = False
        self._exists = False  # since the first member or commit
        self._stored: tuple[int, str | None, str | None, dict[str, _Member]] = (0, None, None, {})

    # ---- requests ------------------------------------------------------------------------------------------------

    def join(
        self, now: float, member_id: str, protocols: Mapping[str, Any], *, name: str = "", instance: str | None = None,
        session: float = 10.0, rebalance: float = 60.0,
    ) -> Pending:  # fmt: skip
        """Take a request to join: `protocols` maps names to metadata, the preferred one first."""
        self.advance(now)
        if (code := self._refusal_to_join(member_id, instance, protocols)) is not Code.NONE:
            return Pending(Answer(code, member_id))
        self._exists = True
        static = None if instance is None else self._static(instance)
        if member_id == NO_MEMBER and static is None:
            new = self._new_id(instance or name)
            if instance is None:
                self._promised[new] = now + session
                return Pending(Answer(Code.MEMBER_ID_REQUIRED, new))
            return self._add(_Member(new, instance, protocols, session, rebalance, now + session))
        if member_id == NO_MEMBER:
            assert static is not None
            return self._replace(static, protocols, session, rebalance)
        if member_id in self._promised:
            del self._promised[member_id]
            return self._add(_Member(member_id, instance, protocols, session, rebalance, now + session))
        return self._rejoin(self._members[member_id], protocols, session, rebalance)

    def sync(
        self, now: float, member_id: str, generation: int, assignments: Mapping[str, Any], instance: str | None = None
    ) -> Pending:
        """Take a request to sync; `assignments` maps member ids to anything, and counts if the leader sends it."""
        self.advance(now)
        if (code := self._refusal(member_id, generation, instance)) is not Code.NONE:
            return Pending(Answer(code))
        if self.state is State.PREPARING:
            return Pending(Answer(Code.REBALANCE_IN_PROGRESS))
        member, pending = self._members[member_id], Pending()
        member.synced, member.syncing = True, pending
        self._renew(member)
        if self.state is State.COMPLETING and member_id == self._leader:
            for each in self._members.values():
                each.assignment = assignments.get(each.member_id)
            self.state = State.STABLE
            self._store()
        if self.state is State.STABLE:
            for each in self._members.values():
                self._answer_sync(each, Answer(Code.NONE, assignment=each.assignment, protocol=self.protocol))
        return pending

    def heartbeat(self, now: float, member_id: str, generation: int, instance: str | None = None) -> Code:
        """Take a heartbeat."""
        self.advance(now)
        if (code := self._refusal(member_id, generation, instance)) is not Code.NONE:
            return code
        self._renew(self._members[member_id])
        return Code.REBALANCE_IN_PROGRESS if self.state is State.PREPARING else Code.NONE

    def commit(self, now: float, member_id: str, generation: int, instance: str | None = None) -> Code:
        """Return whether a commit of offsets is taken."""
        self.advance(now)
        if not self._exists and generation >= 0:
            return Code.ILLEGAL_GENERATION
        if generation < 0 and self.state is State.EMPTY:
            self._exists = True
            return Code.NONE
        if generation < 0 and member_id == NO_MEMBER and instance is None:
            return Code.UNKNOWN_MEMBER_ID
        if (code := self._refusal(member_id, generation, instance)) is not Code.NONE:
            return code
        if self.state is State.COMPLETING:
            return Code.REBALANCE_IN_PROGRESS
        self._renew(self._members[member_id])
        return Code.NONE

    def leave(self, now: float, member_id: str) -> Code:
        """Take a request to leave."""
        self.advance(now)
        if member_id in self._promised:
            del self._promised[member_id]
            self._rebalance_or_go_on()  # as if it had been a member
            return Code.NONE
        if member_id not in self._members:
            return Code.UNKNOWN_MEMBER_ID
        self._remove(self._members[member_id])
        return Code.NONE

    def move(self, now: float, until: float) -> None:
        """Let another broker coordinate the group from a time on: it knows what was stored, and open requests fail."""
        self.advance(now)
        for each in self._members.values():
            self._answer_join(each, Answer(Code.NOT_COORDINATOR))
            self._answer_sync(each, Answer(Code.NOT_COORDINATOR))
        self.generation, self.protocol, self._leader, stored = self._stored
        self._members = {name: copy(each) for name, each in stored.items()}
        self._promised, self._due, self._initial = {}, math.inf, None
        self.state = State.STABLE if self._members else State.EMPTY
        for each in self._members.values():
            each.expires = until + each.session

    def counts(self, now: float, member_id: str) -> bool:
        """Return whether it counts a member."""
        self.advance(now)
        return member_id in self._members

    def assignments(self, now: float) -> dict[str, Any]:
        """Return the assignments in force by member id; none during a rebalance."""
        self.advance(now)
        stable = self.state is State.STABLE
        return {name: each.assignment for name, each in self._members.items()} if stable else {}

    # ---- what it does by itself ----------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Let time pass."""
        while True:
            expiring = min(self._expiring(), default=(math.inf, ""))
            at = min(expiring[0], self._due)
            if at > now:
                self._now = now
                return
            self._now = at
            if at == self._due:
                self._end_wait()
            elif expiring[1] in self._promised:
                del self._promised[expiring[1]]
                self._go_on()
            else:
                self._remove(self._members[expiring[1]])

    def _expiring(self) -> list[tuple[float, str]]:
        waiting = [
            (each.expires, each.member_id)
            for each in self._members.values()
            if each.joining is None and each.syncing is None
        ]
        return waiting + [(at, name) for name, at in self._promised.items()]

    def _end_wait(self) -> None:
        if self.state is State.PREPARING and self._initial is not None and self._newcomer and self._initial[1] > 0:
            delay, rest = self._initial
            self._newcomer = False
            self._initial = min(self._initial_delay, rest), max(rest - delay, 0.0)
            self._due = self._now + self._initial[0]
        elif self.state is State.PREPARING:
            self._complete()
        else:  # the requests to sync are overdue
            self._due = math.inf
            late = [each for each in self._members.values() if not each.synced]
            for each in late:
                del self._members[each.member_id]
            if late:
                self._prepare()

    def _prepare(self) -> None:
        """Begin a rebalance."""
        for each in self._members.values():
            if self.state is State.COMPLETING:
                each.assignment = None
            self._answer_sync(each, Answer(Code.REBALANCE_IN_PROGRESS))
        longest = self._longest()
        self._initial = None
        self._due = self._now + longest
        if self.state is State.EMPTY:
            self._initial = self._initial_delay, max(longest - self._initial_delay, 0.0)
            self._newcomer = False
            self._due = self._now + self._initial_delay
        self.state = State.PREPARING
        self._go_on()

    def _go_on(self) -> None:
        """End a rebalance that waits for nobody."""
        joined = all(each.joining is not None for each in self._members.values())
        if joined and self.state is State.PREPARING and self._initial is None and not self._promised:
            self._complete()

    def _complete(self) -> None:
        """End a rebalance: those that have joined are the members."""
        self._initial = None
        gone = [each for each in self._members.values() if each.joining is None and each.instance is None]
        for each in gone:
            del self._members[each.member_id]
        joined = [each for each in self._members.values() if each.joining is not None]
        if self._members and not joined:
            self._due = self._now + self._longest()
            return
        if joined and (self._leader not in self._members or self._members[self._leader].joining is None):
            self._leader = joined[0].member_id
        self.generation += 1
        if not self._members:
            self.state, self.protocol, self._leader, self._due = State.EMPTY, None, None, math.inf
            self._store()
            return
        self.state, self.protocol = State.COMPLETING, self._chosen()
        self._due = self._now + self._longest()
        for each in self._members.values():
            each.synced = False
            self._renew(each)
            self._answer_join(each, self._joined(each))

    # ---- pieces --------------------------------------------------------------------------------------------------

    def _refusal_to_join(self, member_id: str, instance: str | None, protocols: Mapping[str, Any]) -> Code:
        others = [
            each
            for each in self._members.values()
            if each.member_id != member_id and (instance is None or each.instance != instance)
        ]
        if others and not set(protocols).intersection(*(each.protocols for each in others)):
            return Code.INCONSISTENT_GROUP_PROTOCOL
        if member_id == NO_MEMBER or member_id in self._promised:
            return Code.NONE
        return self._known(member_id, instance)

    def _known(self, member_id: str, instance: str | None) -> Code:
        if instance is not None:
            static = self._static(instance)
            if static is None:
                return Code.UNKNOWN_MEMBER_ID
            return Code.NONE if static.member_id == member_id else Code.FENCED_INSTANCE_ID
        return Code.NONE if member_id in self._members else Code.UNKNOWN_MEMBER_ID

    def _refusal(self, member_id: str, generation: int, instance: str | None) -> Code:
        if (code := self._known(member_id, instance)) is not Code.NONE:
            return code
        return Code.NONE if generation == self.generation else Code.ILLEGAL_GENERATION

    def _static(self, instance: str) -> _Member | None:
        return next((each for each in self._members.values() if each.instance == instance), None)

    def _new_id(self, name: str) -> str:
        self._ids += 1
        return f"{name}-{self._ids}"

    def _add(self, member: _Member) -> Pending:
        self._members[member.member_id] = member
        self._newcomer |= self.state is State.PREPARING and self.generation == 0
        if self._leader is None:
            self._leader = member.member_id
        return self._awaiting(member)

    def _rejoin(self, member: _Member, protocols: Mapping[str, Any], session: float, rebalance: float) -> Pending:
        same = member.protocols == protocols
        needless = (self.state is State.COMPLETING and same) or (
            self.state is State.STABLE and same and member.member_id != self._leader
        )
        if needless:
            self._renew(member)
            return Pending(self._joined(member))
        member.protocols, member.session, member.rebalance = protocols, session, rebalance
        self._renew(member)
        return self._awaiting(member)

    def _replace(self, old: _Member, protocols: Mapping[str, Any], session: float, rebalance: float) -> Pending:
        """Give the place of a static member to its next process, without a rebalance if the group is stable."""
        assert old.instance is not None
        for answer in (self._answer_join, self._answer_sync):
            answer(old, Answer(Code.FENCED_INSTANCE_ID, old.member_id))
        new = self._new_id(old.instance)
        member = _Member(new, old.instance, protocols, session, rebalance, self._now + session, old.assignment)
        self._members = {new if name == old.member_id else name: each for name, each in self._members.items()}
        self._members[new] = member
        before, leads = self._leader, self._leader == old.member_id
        if leads:
            self._leader = new
        if self.state is State.STABLE and self._chosen() == self.protocol:
            self._store()
            members = self._metadata() if leads else {}
            leader = new if leads else before or ""
            return Pending(Answer(Code.NONE, new, self.generation, self.protocol, leader, members, skip=leads))
        return self._awaiting(member)

    def _awaiting(self, member: _Member) -> Pending:
        """Let a member wait for the end of the rebalance, which begins unless one is under way."""
        member.joining = pending = Pending()
        if self.state is State.PREPARING:
            self._go_on()
        else:
            self._prepare()
        return pending

    def _remove(self, member: _Member) -> None:
        del self._members[member.member_id]
        self._answer_join(member, Answer(Code.UNKNOWN_MEMBER_ID))
        self._answer_sync(member, Answer(Code.UNKNOWN_MEMBER_ID))
        if member.member_id == self._leader:
            self._leader = next(iter(self._members), None)
        self._rebalance_or_go_on()

    def _rebalance_or_go_on(self) -> None:
        """Begin a rebalance after a member has gone, or end the one that waited for it."""
        if self.state in (State.STABLE, State.COMPLETING):
            self._prepare()
        else:
            self._go_on()

    def _joined(self, member: _Member) -> Answer:
        assert self._leader is not None
        members = self._metadata() if member.member_id == self._leader else {}
        return Answer(Code.NONE, member.member_id, self.generation, self.protocol, self._leader, members)

    def _metadata(self) -> dict[str, Any]:
        assert self.protocol is not None
        return {each.member_id: each.protocols[self.protocol] for each in self._members.values()}

    def _chosen(self) -> str:
        """Return the protocol that most members prefer among those that all have."""
        common = set.intersection(*(set(each.protocols) for each in self._members.values()))
        votes = Counter(next(name for name in each.protocols if name in common) for each in self._members.values())
        return votes.most_common(1)[0][0]

    def _longest(self) -> float:
        return max((each.rebalance for each in self._members.values()), default=0.0)

    def _renew(self, member: _Member) -> None:
        member.expires = self._now + member.session

    def _answer_join(self, member: _Member, answer: Answer) -> None:
        if member.joining is not None:
            member.joining.answer, member.joining = answer, None

    def _answer_sync(self, member: _Member, answer: Answer) -> None:
        if member.syncing is not None:
            member.syncing.answer, member.syncing = answer, None
            self._renew(member)

    def _store(self) -> None:
        members = {name: copy(each) for name, each in self._members.items()}
        for each in members.values():
            each.joining = each.syncing = None
        self._stored = self.generation, self.protocol, self._leader, members
