"""Consumers that have no assignors of one's own follow a published plan by `assign()` (docs/follow.md).

Written for confluent-kafka. There is no coordinator here that says who holds what, so each partition carries it itself:
the metadata of its committed offset name its owner (`evenlag.live.ownership`). So it has one owner at a time, whatever
plans its members have seen. How it changes hands is in `holdings`; here are the messages and the plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from time import monotonic
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException

from evenlag.errors import EvenlagError, InvalidProblemError
from evenlag.live.follow.group_commits import GroupCommits
from evenlag.live.follow.holdings import Holdings
from evenlag.live.follow.plan_topics import ABSENT, PlanTopics
from evenlag.live.followed_plan import FollowedPlan, Plans
from evenlag.live.group_state import TopicPartition
from evenlag.live.ownership import MOST_BYTES
from evenlag.live.wording import some
from evenlag.search.options import check_seconds

LEASE = 30.0  # seconds
LOOKS, COMMITS = 30, 6  # in the time of a lease
CLAIM_LOOKS = 2  # that a claim has to stand for
RESETS = ("latest", "earliest")

log = logging.getLogger("evenlag.live.follow")  # the one that docs/follow.md names

Told = Callable[["Follow", list[TopicPartition]], object]


class Follow:
    """Lets a consumer read the partitions that the group's plan gives it, and commits what it has processed.

    A partition that moves is first given up by its old owner, in the commit that says how far it was processed, and
    then read by the new one from there on. A message counts as processed when the loop over `consume` asks for the
    next. All is done in that loop, in the caller's thread; the object is not for several threads. Leave it by `close`,
    or use it in a `with`.

    Parameters
    ----------
    consumer : confluent_kafka.Consumer
        With `enable.auto.commit` false, and subscribed to nothing. It stays the caller's to close, after this.
    plans : PlanFile or PlanTopic
        Where the group's plan is published.
    member : str
        The consumer's name in the plan; no other consumer of the group may have it.
    auto_offset_reset : str
        Where to begin in a partition without a commit: `latest` or `earliest`. Give the consumer the same as its
        `auto.offset.reset`, by which it goes on where the log no longer has the committed offset.
    lease : float
        Seconds without a commit after which a partition is taken from its owner, where the plan gives it to another;
        longer than the longest time that a message, or a batch, may take. The plan and the commits of others are looked
        at 30 times in this time, and commits are made 6 times.
    rack : str, optional
        The consumer's `client.rack`, for snapshots: the next plan can then keep traffic in the rack. Give it once all
        consumers of the group run a version of evenlag that has this parameter; older ones cannot read its commits.
    on_assign, on_revoke, on_lost : callable, optional
        Called with this object and a list of (topic, partition): after they were taken, before they are handed on, and
        after they were taken away.

    Attributes
    ----------
    troubles : dict of str to str
        What is not as it should be now, by what it is about. The log has had each as a warning, and says when it is
        over.

    Raises
    ------
    InvalidProblemError
        A parameter has a value that it cannot have; the message names both.
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
        on_assign: Told | None = None,
        on_revoke: Told | None = None,
        on_lost: Told | None = None,
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
        commits = GroupCommits(
            consumer, member, rack, self._say, earliest=earliest, patience=patience, silence=lease / 2
        )
        self._holdings = Holdings(
            consumer, member, commits, self._topics, lease=lease, standing=CLAIM_LOOKS * lease / LOOKS,
            on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost,
        )  # fmt: skip
        self._closed = False
        self._at_hand: list[Any] = []  # messages that came and are not processed yet
        self._next_look = self._next_commit = monotonic()

    # ---- what an application calls -------------------------------------------------------------------------------

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
        """The partitions of this member that it does not read yet, and why."""
        return self._holdings.waiting

    def consume(self, timeout: float = 1.0) -> Iterator[Any]:
        """Give the messages of the next seconds, one by one.

        A message counts as processed once the loop asks for the next one. If the loop is left by an exception or a
        `break` it does not, and is given again by the next call. Messages with an error are not given.

        Parameters
        ----------
        timeout : float
            Seconds after which to end.

        Yields
        ------
        confluent_kafka.Message

        Raises
        ------
        KafkaException
            A commit failed, half a lease has passed without an answer, or the consumer has told of an error; the next
            call tries again.
        FollowError
            Others commit in the place of this consumer: see its message. It holds nothing any more.
        """
        for batch in self._given(timeout, self._one):
            yield from batch

    def batches(self, size: int = 500, timeout: float = 1.0) -> Iterator[list[Any]]:
        """Give the messages of the next seconds in lists of up to `size`; as `consume` otherwise.

        A list counts as processed once the loop asks for the next one.
        """
        yield from self._given(timeout, lambda wait: self._consumer.consume(size, wait))

    def commit(self) -> None:
        """Commit what was processed, now.

        Raises
        ------
        KafkaException, FollowError
            As in `consume`.
        """
        if monotonic() >= self._next_look:  # not over the commits of somebody else
            self._holdings.look()
        self._commit_processed()

    def close(self) -> None:
        """Commit what was processed, and give up all partitions; members of the plan may take them at once.

        Raises
        ------
        KafkaException, FollowError
            As in `consume`.
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
        end = monotonic() + timeout
        while not self._closed:
            self._attend()
            if not self._at_hand:
                now = monotonic()
                self._have_at_hand(fetch(max(0.0, min(end, self._next_look) - now)))
            if self._at_hand:
                yield list(self._at_hand)
                for message in self._at_hand:  # those of partitions that were lost meanwhile are no longer among them
                    self._holdings.processed((message.topic(), message.partition()), message.offset() + 1)
                self._at_hand = []
            if monotonic() >= end:
                return

    def _one(self, wait: float) -> list[Any]:
        message = self._consumer.poll(wait)
        return [] if message is None else [message]

    def _have_at_hand(self, messages: list[Any]) -> None:
        """Keep the messages of partitions that are held, and raise what else there is: the next call gives them."""
        errors = []
        for message in messages:
            error = message.error()
            if error is None:
                if (message.topic(), message.partition()) in self._holdings:
                    self._at_hand.append(message)
            elif error.code() in ABSENT:
                self._topics.expire()
            elif error.code() != KafkaError._PARTITION_EOF:
                errors.append(error)
        if errors:
            raise KafkaException(errors[0])

    # ---- what is done between messages ---------------------------------------------------------------------------

    def _attend(self) -> None:
        """See what is new, give up and take what the plan says, and commit; at most once in a while."""
        now = monotonic()
        if now < self._next_look:
            return
        news = self._plans.news()
        for each in news:
            known = 0 if self.plan is None else self.plan.version
            if each is news[-1] or isinstance(each, EvenlagError) or each.version > known:  # not the history of a topic
                self._hear(each)
        if self.plan is None and "plan" not in self.troubles:
            self._say("plan", f"no plan of group {self._plans.group!r} at {self._plans}: nothing is read")
        if self._holdings.settle() and now >= self._next_commit:
            self._commit_processed()
        self._next_look = monotonic() + self._lease / LOOKS

    def _hear(self, news: FollowedPlan | EvenlagError) -> None:
        """Follow a plan, unless it is none, or not newer than the one that is followed."""
        keeping = "; nothing is read" if self.plan is None else f"; this consumer keeps to version {self.plan.version}"
        if isinstance(news, EvenlagError):
            self._say("plan", f"{news}{keeping}")
        elif self.plan is not None and news.version < self.plan.version:
            self._say(
                "plan", f"{self._plans}: version {news.version} is older{keeping}; publish it anew to go back to it"
            )
        elif self.plan is not None and news.version == self.plan.version and news.owners != self.plan.owners:
            self._say("plan", f"{self._plans}: another plan of the same version{keeping}; publish it anew")
        else:
            self._say("plan", None)
            if self.plan is None or news.version > self.plan.version:
                self._holdings.follow(news)
                mine = news.assignment.get(self._member)
                log.info("%s follows plan %s: %s partitions", self._member, news.version, len(mine or ()))
                known = some(sorted(news.assignment))
                absent = f"plan {news.version} does not name {self._member!r}, which gets nothing; it names {known}"
                self._say("member", absent if mine is None else None)

    def _commit_processed(self) -> None:
        self._holdings.commit()
        self._next_commit = monotonic() + self._lease / COMMITS

    # ---- what the application is told ----------------------------------------------------------------------------

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
        """Let the messages of partitions that are no longer read not count as processed."""
        self._at_hand[:] = [each for each in self._at_hand if (each.topic(), each.partition()) not in keys]

    def _say(self, about: str, trouble: str | None) -> None:
        """Log a trouble when it begins or changes, and when it is over."""
        if trouble is None:
            if (over := self.troubles.pop(about, None)) is not None:
                log.info("%s: no longer: %s", self._member, over)
        elif self.troubles.get(about) != trouble:
            self.troubles[about] = trouble
            log.warning("%s: %s", self._member, trouble)
