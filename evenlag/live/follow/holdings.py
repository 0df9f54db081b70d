"""The partitions that a follower holds: how it takes them, hands them on, and loses them.

Only the owner of a partition commits, and it hands the partition on by a commit that names the next owner. If the owner
is gone, a member that takes the partition first commits its own name, waits, and checks that the name is still there.
This is Fischer's algorithm, in L. Lamport, A fast mutual exclusion algorithm, ACM TOCS 5 (1987).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as Part

from evenlag.errors import FollowError
from evenlag.live import time_source
from evenlag.live.follow.group_commits import GroupCommits
from evenlag.live.follow.plan_topics import ABSENT, PlanTopics
from evenlag.live.followed_plan import FollowedPlan
from evenlag.live.group_state import TopicPartition
from evenlag.live.ownership import Ownership
from evenlag.live.wording import named

CLAIMED = "claimed, waiting for the claim to stand"
RUN_OUT = "the lease has run out, waiting for a commit"

log = logging.getLogger("evenlag.live.follow")  # named in docs/follow.md

Callback = Callable[[list[TopicPartition]], object]


class Holdings:
    """The partitions that one consumer holds under a plan.

    Parameters
    ----------
    consumer : confluent_kafka.Consumer
        Consumer that gets the held partitions assigned.
    member : str
        Its name in the plan.
    commits, topics
        The group's commits, and the existing partitions.
    lease : float
        Seconds without a commit after which a partition may be taken from its owner.
    standing : float
        Seconds for which a claim must stand.
    on_assign, on_revoke, on_lost : callable
        Called with partitions after they were taken, before they are handed on, and after they were lost to others.

    Attributes
    ----------
    plan : FollowedPlan or None
        The plan that is followed.
    waiting : dict of (topic, partition) to str
        Partitions of this member that it does not read yet, with the reasons.
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
        on_assign: Callback,
        on_revoke: Callback,
        on_lost: Callback,
    ) -> None:
        self.plan: FollowedPlan | None = None
        self.waiting: dict[TopicPartition, str] = {}
        self._consumer, self._member, self._commits, self._topics = consumer, member, commits, topics
        self._lease, self._standing = lease, standing
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost
        self._held: dict[TopicPartition, int] = {}  # with the first offset that is not processed yet
        self._stopped: set[TopicPartition] = set()  # held partitions that are no longer read and not yet handed on
        self._resting: set[TopicPartition] = set()  # held partitions that are not read until their lease is renewed
        self._renewed: dict[TopicPartition, float] = {}  # time before this consumer's last commit
        self._committed: dict[TopicPartition, float] = {}  # time after it
        self._claims: dict[TopicPartition, float] = {}  # with the time of the claim
        self._failed: dict[TopicPartition, float] = {}  # time of the last failure to get the first offset

    # ---- what is held --------------------------------------------------------------------------------------------

    def __contains__(self, key: TopicPartition) -> bool:
        return key in self._held

    def partitions(self) -> list[TopicPartition]:
        """Return the held partitions, sorted, without those whose lease has run out."""
        return sorted(self._held.keys() - self._resting)

    def processed(self, key: TopicPartition, offset: int) -> None:
        """Record that a partition was processed up to but not including this offset."""
        self._held[key] = offset

    def commit(self) -> None:
        """Commit the processed offsets."""
        self._commit({key: (offset, self._commits.own(self._version())) for key, offset in self._held.items()})

    # ---- the plan ------------------------------------------------------------------------------------------------

    def follow(self, plan: FollowedPlan) -> None:
        """Follow this plan from now on."""
        self.plan = plan
        self._topics.expire()

    def settle(self) -> bool:
        """Read the commits, hand on partitions that the plan gives to others, and take those that it gives this member.

        Return False if there is no plan yet. Errors are those of `look`.
        """
        if self.plan is None:
            return False
        if self._topics.due():
            self._look_at_topics(self.plan)
        asked = time_source.now()  # the answer may be as old as this
        self.look()
        self._go_on(asked)
        self._hand_on(self.plan)
        self._take(self.plan, asked)
        return True

    # ---- the lease -----------------------------------------------------------------------------------------------

    def rest(self) -> list[TopicPartition]:
        """Stop reading the partitions whose lease has run out, as others may take them; return them.

        They stay this consumer's until it sees that others hold them.
        """
        now = time_source.now()
        over = sorted(
            key for key in self._held.keys() - self._stopped - self._resting if now - self._renewed[key] >= self._lease
        )
        if over:
            self._consumer.incremental_unassign([Part(*key) for key in over])
            self._resting |= set(over)
            log.warning("%s stops reading %s: %s", self._member, named(over), RUN_OUT)
        self.waiting |= dict.fromkeys(over, RUN_OUT)
        return over

    def _go_on(self, asked: float) -> None:
        """Read partitions again whose lease is renewed, once that commit has stood as long as a claim must."""
        over = time_source.now() - self._lease
        stood = asked - self._standing
        ready = sorted(key for key in self._resting if over < self._renewed[key] and self._committed[key] <= stood)
        if ready:
            self._consumer.incremental_assign([Part(*key, self._held[key]) for key in ready])
            self._resting -= set(ready)
            log.info("%s reads %s again", self._member, named(ready))

    # ---- looking at the cluster ----------------------------------------------------------------------------------

    def look(self) -> None:
        """Read the commits of the plan's partitions, and drop partitions that others hold.

        Raises
        ------
        FollowError
            Another client commits this consumer's partitions.
        KafkaException
            The commits could not be read.
        """
        owned = () if self.plan is None else self.plan.owners
        keys = {key for key in owned if self._topics.exists(key)} | self._held.keys() | self._claims.keys()
        if keys:
            self._commits.look(sorted(keys))
            self._yield_to_others()

    def _look_at_topics(self, plan: FollowedPlan) -> None:
        """Read which partitions exist, and drop held ones that were deleted."""
        self._topics.look(plan, self._held)
        self._lose({key for key in self._held if not self._topics.exists(key)}, "they no longer exist")

    def _yield_to_others(self) -> None:
        """Drop partitions that another follower holds; raise an error if a namesake or another client does."""
        others = [key for key in sorted(self._held) if not self._commits.is_own(key)]
        foreign = [key for key in others if self._commits[key].is_foreign()]
        twins = [key for key in others if self._commits.is_namesakes(key)]
        handed = self._stopped.intersection(others)  # handed on by a commit whose answer was lost
        for key in handed:
            del self._held[key]
        self._stopped -= handed
        self._resting -= handed
        if foreign or twins:
            self._lose(set(self._held), "this consumer stops")
        if foreign:
            raise FollowError(
                f"{named(foreign)}: another client has committed; set enable.auto.commit to false and let only Follow "
                "commit. After a reset of offsets, restart this consumer"
            )
        if twins:
            raise FollowError(
                f"{named(twins)}: taken by another consumer with the same name {self._member!r}; give each consumer "
                "its own name"
            )
        lost = set(others) - handed
        gone = {key for key in lost if self._commits[key].ownership() is None}
        if gone:  # such as after the topic was deleted
            self._topics.expire()
            self._lose(gone, "their commits are gone")
        self._lose(lost - gone, "others have taken them; messages processed since the last commit will be read again")

    # ---- handing on ----------------------------------------------------------------------------------------------

    def give_up_all(self) -> None:
        """Commit the processed offsets, and give up all partitions without naming a successor."""
        if self._held or self._claims:
            self.look()
            self._hand_over(dict.fromkeys(self._held, None))
            claimed = [key for key in self._claims if self._commits.is_own(key)]
            self._commit({key: (self._commits[key].offset, Ownership(self._version(), None)) for key in claimed})
            self._claims.clear()

    def _hand_on(self, plan: FollowedPlan) -> None:
        """Hand over partitions that the plan gives to others, including any handed to this member under older plans."""
        owners = plan.owners
        # A partition that was stopped under an older plan and now belongs to this member again is handed to itself, so
        # that it is read again.
        leaving = {key for key in self._held if owners.get(key) != self._member} | self._stopped
        self._hand_over({key: owners.get(key) for key in leaving})
        passing = {}
        for key in self._commits:
            owned = self._commits[key].ownership()
            handed = isinstance(owned, Ownership) and owned.plan < plan.version and owned.goes_to(self._member)
            claimed = key in self._claims and self._commits.is_own(key)
            if owners.get(key) != self._member and (handed or claimed):
                passing[key] = self._commits[key].offset, Ownership(plan.version, owners.get(key))
                self._claims.pop(key, None)
        self._commit(passing)

    def _hand_over(self, to: Mapping[TopicPartition, str | None]) -> None:
        """Stop reading partitions, and commit their processed offsets with the next owners."""
        fresh = sorted(to.keys() - self._stopped)
        if fresh:
            self._consumer.incremental_unassign([Part(*key) for key in fresh if key not in self._resting])
            self._stopped |= set(fresh)
            self._on_revoke(fresh)
        if to:
            version = self._version()
            self._commit({key: (self._held[key], Ownership(version, to[key])) for key in to if key in self._held})
            log.info("%s gave up %s", self._member, named(sorted(to)))
        for key in to:
            self._held.pop(key, None)
        self._stopped -= to.keys()
        self._resting -= to.keys()

    # ---- taking --------------------------------------------------------------------------------------------------

    def _take(self, plan: FollowedPlan, asked: float) -> None:
        """Take partitions handed to this member, claim free ones, and start reading those whose claims have stood.

        `asked` is the time when the request for the commits was sent.
        """
        before, self.waiting = self.waiting, dict.fromkeys(self._resting, RUN_OUT)
        marks: dict[TopicPartition, tuple[int, Ownership]] = {}
        starting: list[TopicPartition] = []
        unanswered: str | None = None
        for key in sorted(plan.assignment.get(self._member, ()), key=lambda key: (self._failed.get(key, 0.0), key)):
            if key in self._held or key not in self._commits:
                continue
            if key in self._claims and self._commits.is_own(key):
                if asked - self._claims[key] >= self._standing:
                    starting.append(key)
                else:
                    self.waiting[key] = CLAIMED
                continue
            self._claims.pop(key, None)
            if why := self._commits[key].not_free(self._member, plan.version, self._lease):
                self.waiting[key] = why
                continue
            if (
                unanswered is not None and self._commits[key].offset < 0
            ):  # further requests might take longer than a lease
                self.waiting[key] = unanswered
                continue
            try:
                offset = self._commits.first_offset(key)
            except KafkaException as error:
                self.waiting[key] = unanswered = f"the start offset is unknown ({error.args[0].str()})"
                self._failed[key] = time_source.now()
                continue
            self._failed.pop(key, None)
            marks[key] = offset, self._commits.own(plan.version)
            owned = self._commits[key].ownership()
            if isinstance(owned, Ownership) and owned.goes_to(self._member):
                starting.append(key)
            else:
                self.waiting[key] = CLAIMED
        committed = self._commit(marks)
        self._claims |= dict.fromkeys(committed - set(starting), time_source.now())
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
        log.info("%s took %s", self._member, named(keys))
        self._on_assign(keys)

    # ---- the rest ------------------------------------------------------------------------------------------------

    def _lose(self, keys: Collection[TopicPartition], why: str) -> None:
        lost = sorted(keys)
        if not lost:
            return
        unread = self._stopped | self._resting
        self._consumer.incremental_unassign([Part(*key) for key in lost if key not in unread])
        for key in lost:
            del self._held[key]
        self._stopped -= set(lost)
        self._resting -= set(lost)
        log.warning("%s lost %s: %s", self._member, named(lost), why)
        self._on_lost(lost)

    def _commit(self, marks: Mapping[TopicPartition, tuple[int, Ownership]]) -> set[TopicPartition]:
        """Commit offsets and owners; return the partitions that were committed, without those that no longer exist."""
        left = dict(marks)
        while left:
            began = time_source.now()
            try:
                self._commits.write(left)
                self._renewed |= dict.fromkeys(left, began)
                self._committed |= dict.fromkeys(left, time_source.now())
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
        assert self.plan is not None  # nothing is held without a plan
        return self.plan.version
