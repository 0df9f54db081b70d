"""The consumer loop of a follower, which reads the partitions that a published plan assigns (docs/follow.md).

Written for confluent-kafka, which has no pluggable assignors. No coordinator assigns the partitions, so the metadata of
each committed offset name the partition's owner (`evenlag.live.ownership`). A partition therefore has one owner at a
time, even if members have seen different plans. `holdings` implements the handover; this module the messages and the
plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException

from evenlag.errors import EvenlagError, InvalidProblemError
from evenlag.figures import some
from evenlag.live import time_source
from evenlag.live.follow.group_commits import GroupCommits
from evenlag.live.follow.holdings import Holdings
from evenlag.live.follow.passing import passes
from evenlag.live.follow.plan_topics import ABSENT, PlanTopics
from evenlag.live.followed_plan import FollowedPlan, Plans
from evenlag.live.group_state import TopicPartition
from evenlag.live.ownership import LEASE, MOST_BYTES
from evenlag.search.options import check_seconds

LOOKS, COMMITS = 30, 6  # number in the time of a lease
CLAIM_LOOKS = 2  # looks for which a claim must stand
RESETS = ("latest", "earliest")

log = logging.getLogger("evenlag.live.follow")  # named in docs/follow.md

Callback = Callable[["Follow", list[TopicPartition]], object]


class Follow:
    """Follower that reads the partitions assigned to a consumer by a published plan, and commits processed offsets.

    When a partition moves, its old owner gives it up in the commit of the last processed offset, and the new owner
    reads it from there. A message counts as processed when the loop over `consume` asks for the next one. All work is
    done in that loop, in the caller's thread; the object is not thread-safe. Call `close` at the end, or use the object
    in a `with` statement.

    Parameters
    ----------
    consumer : confluent_kafka.Consumer
        A consumer with `enable.auto.commit` false and without subscriptions. The caller closes it after this object.
    plans : PlanFile or PlanTopic
        The place where the group's plan is published.
    member : str
        The consumer's name in the plan, which must be unique in the group.
    auto_offset_reset : str
        Start of a partition without a commit: `latest` or `earliest`. Set the consumer's `auto.offset.reset` to the
        same value; it applies if the log no longer has the committed offset.
    lease : float
        Seconds without a commit after which a member may take a partition from its owner, if the plan assigns it to
        that member. It must be longer than the processing of any message or batch. In each lease, the follower reads
        the plan and the others' commits 30 times, and commits 6 times.
    rack : str, optional
        The consumer's `client.rack`, which snapshots show, so that the next plan can keep traffic in the rack. Set it
        only when all consumers of the group run a version of evenlag with this parameter; older ones cannot read the
        commits.
    on_assign, on_revoke, on_lost : callable, optional
        Called with this object and a list of (topic, partition): after partitions were taken, before they are handed
        on, and after they were lost to others.

    Attributes
    ----------
    troubles : dict of str to str
        Current problems by subject. Each is logged as a warning when it begins, and as information when it ends.

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value. The message names both.
    """

    def __init__(
        self,
        consumer: Any,
        plans: Plans,
        member: str,
        *,
        auto_offset_reset: str = "latest",
        lease: float = LEASE,
        rack: str | None = None,
        on_assign: Callback | None = None,
        on_revoke: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        check_seconds("lease", lease)
        if not isinstance(member, str) or not member:
            raise InvalidProblemError(f"member must be the consumer's name in the plan, not {member!r}")
        if auto_offset_reset not in RESETS:
            raise InvalidProblemError(
                f"auto_offset_reset must be one of {', '.join(RESETS)}, not {auto_offset_reset!r}"
            )
        if rack is not None and not (isinstance(rack, str) and 0 < len(rack.encode()) <= MOST_BYTES):
            raise InvalidProblemError(
                f"rack must be the name of a rack, such as the zone, of up to {MOST_BYTES} bytes, not {rack!r:.300}"
            )
        self.troubles: dict[str, str] = {}
        self._consumer, self._plans, self._member, self._lease = consumer, plans, member, lease
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost
        earliest, patience = auto_offset_reset == "earliest", lease / COMMITS
        self._topics = PlanTopics(consumer, self._say, every=lease, patience=patience)
        commits = GroupCommits(consumer, member, rack, earliest=earliest, patience=patience)
        self._holdings = Holdings(
            consumer, member, commits, self._topics, lease=lease, standing=CLAIM_LOOKS * lease / LOOKS,
            on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost,
        )  # fmt: skip
        self._closed = False
        self._at_hand: list[Any] = []  # messages that are not processed yet
        self._next_look = self._next_commit = time_source.now()

    # ---- public interface ----------------------------------------------------------------------------------------

    @property
    def plan(self) -> FollowedPlan | None:
        """The plan that is followed."""
        return self._holdings.plan

    @property
    def holds(self) -> list[TopicPartition]:
        """The partitions that this member holds."""
        return self._holdings.partitions()

    @property
    def waiting(self) -> dict[TopicPartition, str]:
        """The partitions of this member that it does not read yet, with the reasons."""
        return self._holdings.waiting

    def consume(self, timeout: float = 1.0) -> Iterator[Any]:
        """Yield the messages of the next seconds, one by one.

        A message counts as processed when the loop asks for the next one. If the loop is left by an exception or a
        `break`, the message is not processed, and the next call yields it again. Messages with an error are left out.

        Parameters
        ----------
        timeout : float
            Seconds after which to stop.

        Yields
        ------
        confluent_kafka.Message

        Raises
        ------
        KafkaException
            The cause does not pass by itself, such as a missing ACL; the next call tries again. Other errors are waited
            out, and `troubles` and the log have them.
        FollowError
            Another client commits this consumer's partitions, as the message explains. This consumer holds none now.
        """
        for batch in self._given(timeout, self._one):
            yield from batch

    def batches(self, size: int = 500, timeout: float = 1.0) -> Iterator[list[Any]]:
        """Yield the messages of the next seconds in lists of up to `size`; otherwise like `consume`.

        A list counts as processed when the loop asks for the next one.
        """
        yield from self._given(timeout, lambda wait: self._consumer.consume(size, wait))

    def commit(self) -> None:
        """Commit the processed offsets now.

        Raises
        ------
        KafkaException
            The commit failed, for any reason.
        FollowError
            As in `consume`.
        """
        if time_source.now() >= self._next_look:  # so as not to overwrite commits of others
            self._holdings.look()
        self._commit_processed()

    def close(self) -> None:
        """Commit the processed offsets and give up all partitions, so that other members may take them at once.

        Raises
        ------
        KafkaException, FollowError
            As in `commit`.
        """
        self._closed = True
        try:
            self._holdings.give_up_all()
        finally:
            self._plans.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # ---- messages ------------------------------------------------------------------------------------------------

    def _given(self, timeout: float, fetch: Callable[[float], list[Any]]) -> Iterator[list[Any]]:
        end = time_source.now() + timeout
        while not self._closed:
            self._attend()
            if not self._at_hand:
                now = time_source.now()
                self._have_at_hand(fetch(max(0.0, min(end, self._next_look) - now)))
            if self._at_hand:
                yield list(self._at_hand)
                for message in self._at_hand:  # messages of partitions lost meanwhile have been removed
                    self._holdings.processed((message.topic(), message.partition()), message.offset() + 1)
                self._at_hand = []
            if time_source.now() >= end:
                return

    def _one(self, wait: float) -> list[Any]:
        message = self._consumer.poll(wait)
        return [] if message is None else [message]

    def _have_at_hand(self, messages: list[Any]) -> None:
        """Keep the messages of held partitions for this or the next call, then raise the first error, if any."""
        errors = []
        for message in messages:
            error = message.error()
            if error is None:
                if (message.topic(), message.partition()) in self._holdings:
                    self._at_hand.append(message)
            elif error.code() in ABSENT:
                self._topics.expire()
            elif error.code() != KafkaError._PARTITION_EOF and not passes(error):  # the client tries again itself
                errors.append(error)
        if errors:
            raise KafkaException(errors[0])

    # ---- work between messages -----------------------------------------------------------------------------------

    def _attend(self) -> None:
        """Read new plans, give up and take partitions, and commit, if the next look is due."""
        now = time_source.now()
        if now < self._next_look:
            return
        news = self._plans.news()
        for each in news:
            known = 0 if self.plan is None else self.plan.version
            if (
                each is news[-1] or isinstance(each, EvenlagError) or each.version > known
            ):  # skips older plans in a topic
                self._consider(each)
        if self.plan is None and "plan" not in self.troubles:
            self._say("plan", f"no plan of group {self._plans.group!r} in {self._plans}: nothing is read")
        try:
            if self._holdings.settle() and now >= self._next_commit:
                self._commit_processed()
        except KafkaException as error:
            if not passes(error):
                raise
            if "brokers" not in self.troubles:  # one line, though further errors may differ
                self._say("brokers", f"waits for the brokers ({error.args[0].str()})")
        else:
            self._say("brokers", None)
        self._forget(self._holdings.rest())
        self._next_look = time_source.now() + self._lease / LOOKS

    def _consider(self, news: FollowedPlan | EvenlagError) -> None:
        """Follow a plan if it is valid and newer than the current one."""
        keeping = "; nothing is read" if self.plan is None else f"; this consumer stays at version {self.plan.version}"
        if isinstance(news, EvenlagError):
            self._say("plan", f"{news}{keeping}")
        elif self.plan is not None and news.version < self.plan.version:
            self._say(
                "plan", f"{self._plans}: version {news.version} is older{keeping}; to go back to it, publish it again"
            )
        elif self.plan is not None and news.version == self.plan.version and news.owners != self.plan.owners:
            self._say("plan", f"{self._plans}: another plan of the same version{keeping}; publish it again")
        else:
            self._say("plan", None)
            if self.plan is None or news.version > self.plan.version:
                self._holdings.follow(news)
                mine = news.assignment.get(self._member)
                log.info("%s follows plan %s: %s partitions", self._member, news.version, len(mine or ()))
                known = some(sorted(news.assignment))
                absent = f"plan {news.version} has no member {self._member!r}, so nothing is read; it has {known}"
                self._say("member", absent if mine is None else None)

    def _commit_processed(self) -> None:
        self._holdings.commit()
        self._next_commit = time_source.now() + self._lease / COMMITS

    # ---- callbacks and log ---------------------------------------------------------------------------------------

    def _assigned(self, keys: list[TopicPartition]) -> None:
        if self._on_assign is not None:
            self._on_assign(self, keys)

    def _revoked(self, keys: list[TopicPartition]) -> None:
        self._forget(keys)
        if self._on_revoke is not None:
            self._on_revoke(self, keys)

    def _lost(self, keys: list[TopicPartition]) -> None:
        self._forget(keys)
        if self._on_lost is not None:
            self._on_lost(self, keys)

    def _forget(self, keys: list[TopicPartition]) -> None:
        """Drop the messages of partitions that are no longer read, so that they do not count as processed."""
        self._at_hand[:] = [each for each in self._at_hand if (each.topic(), each.partition()) not in keys]

    def _say(self, about: str, trouble: str | None) -> None:
        """Log a problem when it begins or changes, and when it ends."""
        if trouble is None:
            if (over := self.troubles.pop(about, None)) is not None:
                log.info("%s: resolved: %s", self._member, over)
        elif self.troubles.get(about) != trouble:
            self.troubles[about] = trouble
            log.warning("%s: %s", self._member, trouble)
