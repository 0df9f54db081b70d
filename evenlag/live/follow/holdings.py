"""The partitions that a follower of a plan holds: how it comes by them, hands them on, and loses them.

Only the owner of a partition commits, and hands it on by a commit that names the next one. Who takes a partition that
was not handed to it, because its owner is gone, first commits its own name, waits, and looks whether the name is still
there: Fischer's algorithm, in L. Lamport, A fast mutual exclusion algorithm, ACM TOCS 5 (1987).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from time import monotonic
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as Part

from evenlag.errors import FollowError
from evenlag.live.follow.group_commits import GroupCommits
from evenlag.live.follow.plan_topics import ABSENT, PlanTopics
from evenlag.live.followed_plan import FollowedPlan
from evenlag.live.group_state import TopicPartition
from evenlag.live.ownership import Ownership
from evenlag.live.wording import named

CLAIMED = "claimed a moment ago"

log = logging.getLogger("evenlag.live.follow")  # the one that docs/follow.md names

Told = Callable[[list[TopicPartition]], object]


class Holdings:
    """What one consumer holds of the partitions that a plan gives it.

    Parameters
    ----------
    consumer : confluent_kafka.Consumer
        Assigned what is held.
    member : str
        Its name in the plan.
    commits, topics
        What the brokers tell of the group.
    lease : float
        Seconds without a commit after which a partition is taken from its owner.
    standing : float
        Seconds that a claim has to stand for.
    on_assign, on_revoke, on_lost : callable
        Called with partitions after they were taken, before they are handed on, and after they were taken away.

    Attributes
    ----------
    plan : FollowedPlan or None
        The one that is followed.
    waiting : dict of (topic, partition) to str
        Partitions of this member that it does not read yet, and why.
    """

    def __init__(
        self,
        consumer: Any,
        member: str,
        commits: GroupCommits,
        topics: PlanTopics,
        *,
        lease: float,
        standing: float,
        on_assign: Told,
        on_revoke: Told,
        on_lost: Told,
    ) -> None:
        self.plan: FollowedPlan | None = None
        self.waiting: dict[TopicPartition, str] = {}
        self._consumer, self._member, self._commits, self._topics = consumer, member, commits, topics
        self._lease, self._standing = lease, standing
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost
        self._held: dict[TopicPartition, int] = {}  # the offset that is not processed yet
        self._stopped: set[TopicPartition] = set()  # of those held: no longer read, not handed on yet
        self._claims: dict[TopicPartition, float] = {}  # since when
        self._untold: dict[TopicPartition, float] = {}  # when it was last not told where they begin

    # ---- what is held --------------------------------------------------------------------------------------------

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._held

    def partitions(self) -> list[TopicPartition]:
        """Those that are held."""
        return sorted(self._held)

    def processed(self, key: TopicPartition, offset: int) -> None:
        """Take note that a partition was processed up to before this offset."""
        self._held[key] = offset

    def commit(self) -> None:
        """Commit what was processed."""
        self._commit({key: (offset, self._commits.own(self._version())) for key, offset in self._held.items()})

    # ---- the plan ------------------------------------------------------------------------------------------------

    def follow(self, plan: FollowedPlan) -> None:
        """Go by this plan from now on."""
        self.plan = plan
        self._topics.expire()

    def settle(self) -> bool:
        """Look, hand on what the plan gives to others, and take what it gives this member.

        False where there is no plan yet, or nobody answers. Raises as `look` does.
        """
        if self.plan is None:
            return False
        if self._topics.due():
            self._look_at_topics(self.plan)
        if not self.look():
            return False
        self._hand_on(self.plan)
        self._take(self.plan)
        return True

    # ---- what is seen --------------------------------------------------------------------------------------------

    def look(self) -> bool:
        """Read the commits of the plan's partitions, and let go of what others hold; False where nobody answers.

        Raises
        ------
        FollowError
            Somebody else commits in the place of this consumer.
        KafkaException
            Nobody has answered for too long.
        """
        owned = () if self.plan is None else self.plan.owners
        keys = {key for key in owned if self._topics.exists(key)} | self._held.keys() | self._claims.keys()
        if not keys:
            return True
        if not self._commits.look(sorted(keys)):
            return False
        self._yield_to_others()
        return True

    def _look_at_topics(self, plan: FollowedPlan) -> None:
        """See which partitions of the plan there are, and let go of those that are no more."""
        self._topics.look(plan, self._held)
        self._lose({key for key in self._held if not self._topics.exists(key)}, "they do not exist any more")

    def _yield_to_others(self) -> None:
        """Let go of what is held by somebody else by now."""
        others = [key for key in sorted(self._held) if not self._commits.is_own(key)]
        foreign = [key for key in others if self._commits[key].is_foreign()]
        twins = [key for key in others if self._commits.is_namesakes(key)]
        handed = self._stopped.intersection(others)  # by a commit whose answer was lost
        for key in handed:
            del self._held[key]
        self._stopped -= handed
        if foreign or twins:
            self._lose(set(self._held), "this consumer stops")
        if foreign:
            raise FollowError(
                f"{named(foreign)}: a commit that is not evenlag's; set enable.auto.commit to false and leave commits "
                "to Follow. After a reset of the offsets, start this consumer anew"
            )
        if twins:
            raise FollowError(
                f"{named(twins)}: taken by another consumer that goes by the name {self._member!r} too; give each its "
                "own"
            )
        lost = set(others) - handed
        gone = {key for key in lost if self._commits[key].told() is None}
        if gone:  # as where the topic was deleted
            self._topics.expire()
            self._lose(gone, "their commits are gone")
        self._lose(lost - gone, "others have taken them; what was processed since the last commit will be again")

    # ---- what is handed on ---------------------------------------------------------------------------------------

    def give_up_all(self) -> None:
        """Commit what was processed, and give up everything, for nobody in particular."""
        if self._held or self._claims:
            self.look()
            self._hand_over(dict.fromkeys(self._held, None))
            claimed = [key for key in self._claims if self._commits.is_own(key)]
            self._commit({key: (self._commits[key].offset, Ownership(self._version(), None)) for key in claimed})
            self._claims.clear()

    def _hand_on(self, plan: FollowedPlan) -> None:
        """Hand over what the plan gives to others, also where it was handed to this member under an older plan."""
        owners = plan.owners
        # What was stopped for an older plan, and is this member's again, it hands to itself and so starts anew.
        leaving = {key for key in self._held if owners.get(key) != self._member} | self._stopped
        self._hand_over({key: owners.get(key) for key in leaving})
        passing = {}
        for key in self._commits:
            told = self._commits[key].told()
            handed = isinstance(told, Ownership) and told.plan < plan.version and told.goes_to(self._member)
            claimed = key in self._claims and self._commits.is_own(key)
            if owners.get(key) != self._member and (handed or claimed):
                passing[key] = self._commits[key].offset, Ownership(plan.version, owners.get(key))
                self._claims.pop(key, None)
        self._commit(passing)

    def _hand_over(self, to: Mapping[TopicPartition, str | None]) -> None:
        """Stop reading partitions, and commit what was processed together with whose they are now."""
        fresh = sorted(to.keys() - self._stopped)
        if fresh:
            self._consumer.incremental_unassign([Part(*key) for key in fresh])
            self._stopped |= set(fresh)
            self._on_revoke(fresh)
        if to:
            version = self._version()
            self._commit({key: (self._held[key], Ownership(version, to[key])) for key in to if key in self._held})
            log.info("%s has given up %s", self._member, named(sorted(to)))
        for key in to:
            self._held.pop(key, None)
        self._stopped -= to.keys()

    # ---- what is taken -------------------------------------------------------------------------------------------

    def _take(self, plan: FollowedPlan) -> None:
        """Take what was handed to this member, claim what nobody holds, and start to read what was claimed in time."""
        before, self.waiting = self.waiting, {}
        marks: dict[TopicPartition, tuple[int, Ownership]] = {}
        starting: list[TopicPartition] = []
        unanswered: str | None = None
        for key in sorted(plan.assignment.get(self._member, ()), key=lambda key: (self._untold.get(key, 0.0), key)):
            if key in self._held or key not in self._commits:
                continue
            if key in self._claims and self._commits.is_own(key):
                if monotonic() - self._claims[key] >= self._standing:
                    starting.append(key)
                else:
                    self.waiting[key] = CLAIMED
                continue
            self._claims.pop(key, None)
            if why := self._commits[key].not_free(self._member, plan.version, self._lease):
                self.waiting[key] = why
                continue
            if unanswered is not None and self._commits[key].offset < 0:  # to ask on might take longer than a lease
                self.waiting[key] = unanswered
                continue
            try:
                offset = self._commits.first_offset(key)
            except KafkaException as error:
                self.waiting[key] = unanswered = f"where to begin is not known ({error.args[0].str()})"
                self._untold[key] = monotonic()
                continue
            self._untold.pop(key, None)
            marks[key] = offset, self._commits.own(plan.version)
            told = self._commits[key].told()
            if isinstance(told, Ownership) and told.goes_to(self._member):
                starting.append(key)
            else:
                self.waiting[key] = CLAIMED
        committed = self._commit(marks)
        self._claims |= dict.fromkeys(committed - set(starting), monotonic())
        self._start([key for key in starting if key not in marks or key in committed])
        news: dict[str, list[TopicPartition]] = {}
        for key, why in sorted(self.waiting.items()):
            if before.get(key) != why:
                news.setdefault(why, []).append(key)
        for why, keys in news.items():
            log.info("%s waits for %s: %s", self._member, named(keys), why)

    def _start(self, keys: list[TopicPartition]) -> None:
        if not keys:
            return
        self._consumer.incremental_assign([Part(*key, self._commits[key].offset) for key in keys])
        for key in keys:
            self._held[key] = self._commits[key].offset
            self._claims.pop(key, None)
        log.info("%s has taken %s", self._member, named(keys))
        self._on_assign(keys)

    # ---- the rest ------------------------------------------------------------------------------------------------

    def _lose(self, keys: Collection[TopicPartition], why: str) -> None:
        lost = sorted(keys)
        if not lost:
            return
        self._consumer.incremental_unassign([Part(*key) for key in lost if key not in self._stopped])
        for key in lost:
            del self._held[key]
        self._stopped -= set(lost)
        log.warning("%s has lost %s: %s", self._member, named(lost), why)
        self._on_lost(lost)

    def _commit(self, marks: Mapping[TopicPartition, tuple[int, Ownership]]) -> set[TopicPartition]:
        """Commit offsets with whose the partitions are; give those that were committed, which still exist."""
        left = dict(marks)
        while left:
            try:
                self._commits.write(left)
                break
            except FollowError:
                self._lose(set(self._held), "this consumer stops")
                raise
            except KafkaException as error:
                if error.args[0].code() not in ABSENT or self.plan is None:
                    raise
                self._look_at_topics(self.plan)
                remaining = {key: mark for key, mark in left.items() if self._topics.exists(key)}
                if len(remaining) == len(left):
                    raise
                left = remaining
        return set(left)

    def _version(self) -> int:
        assert self.plan is not None  # or nothing would be held
        return self.plan.version
