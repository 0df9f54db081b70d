"""Consumers that have no assignors of one's own follow a published plan by `assign()` (docs/follow.md).

Written for confluent-kafka. There is no coordinator here that says who holds what, so each partition carries it itself:
the metadata of its committed offset name its owner (`evenlag.live.ownership`). Only the owner commits, and hands the
partition on by a commit that names the next one. So it has one owner at a time, whatever plans its members have seen.
Who takes a partition that was not handed to it, because its owner is gone, first commits its own name, waits, and looks
whether the name is still there: Fischer's algorithm, in L. Lamport, A fast mutual exclusion algorithm, ACM TOCS 5
(1987).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from evenlag.errors import EvenlagError, FollowError, InvalidProblemError, UserDataError
from evenlag.live.groups import TopicPartition as Partition
from evenlag.live.ownership import Ownership
from evenlag.live.plans import FollowedPlan, PlanFile, Plans, PlanTopic, publish
from evenlag.live.rows import some
from evenlag.search.options import check_seconds

__all__ = ["Follow", "FollowedPlan", "PlanFile", "PlanTopic", "publish"]

LEASE = 30.0  # seconds
LOOKS, COMMITS = 30, 6  # in the time of a lease
CLAIM_LOOKS = 2  # that a claim has to stand for
RESETS = ("latest", "earliest")
ABSENT = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
SUBSCRIBED = (
    "the group has members that subscribe to topics: stop them before consumers follow a plan, and let none subscribe "
    "with this group.id while they do"
)

log = logging.getLogger(__name__)

Told = Callable[["Follow", list[Partition]], object]


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
        Where to begin in a partition without a commit: `latest` or `earliest`.
    lease : float
        Seconds without a commit after which a partition is taken from its owner, where the plan gives it to another;
        longer than the longest time that a message, or a batch, may take. The plan and the commits of others are looked
        at 30 times in this time, and commits are made 6 times.
    on_assign, on_revoke, on_lost : callable, optional
        Called with this object and a list of (topic, partition): after they were taken, before they are handed on, and
        after they were taken away.

    Attributes
    ----------
    plan : FollowedPlan or None
        The one that is followed.
    waiting : dict of (topic, partition) to str
        Partitions of this member that it does not read yet, and why.
    troubles : dict of str to str
        What is not as it should be now, by what it is about. The log has had each as a warning.

    Raises
    ------
    InvalidProblemError
        A parameter is no such thing; the message names it.
    """

    def __init__(
        self,
        consumer: Any,
        plans: Plans,
        member: str,
        *,
        auto_offset_reset: str = "latest",
        lease: float = LEASE,
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
        self.plan: FollowedPlan | None = None
        self.waiting: dict[Partition, str] = {}
        self.troubles: dict[str, str] = {}
        self._consumer, self._plans, self._member = consumer, plans, member
        self._auto_offset_reset, self._lease = auto_offset_reset, lease
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost
        self._instance = secrets.token_hex(6)
        self._beat = 0
        self._held: dict[Partition, int] = {}  # the offset that is not processed yet
        self._stopped: set[Partition] = set()  # of those held: no longer read, not handed on yet
        self._claims: dict[Partition, float] = {}  # since when
        self._seen: dict[Partition, _Seen] = {}
        self._there: dict[str, Collection[int]] = {}  # the partitions of the plan's topics
        self._closed = False
        self._at_hand: list[Any] = []  # messages that the application has been given and has not processed
        self._looked = monotonic()
        self._next_look = self._next_commit = self._next_topics = self._looked

    # ---- what an application calls -------------------------------------------------------------------------------

    @property
    def holds(self) -> list[Partition]:
        """The partitions that this member holds."""
        return sorted(self._held)

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
            A commit failed, or half a lease has passed without an answer; the next call tries again.
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
            self._look()
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
            if self._held or self._claims:
                self._look()
                self._hand_over(dict.fromkeys(self._held, None))
                claimed = [key for key in self._claims if self._is_mine(key)]
                self._commit({key: (self._seen[key].offset, self._given_up(None)) for key in claimed})
                self._claims.clear()
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
                self._at_hand = self._sound(fetch(max(0.0, min(end, self._next_look) - now)))
            if self._at_hand:
                yield list(self._at_hand)
                for message in self._at_hand:  # those of partitions that were lost meanwhile are no longer among them
                    self._held[message.topic(), message.partition()] = message.offset() + 1
                self._at_hand = []
            if monotonic() >= end:
                return

    def _one(self, wait: float) -> list[Any]:
        message = self._consumer.poll(wait)
        return [] if message is None else [message]

    def _sound(self, messages: list[Any]) -> list[Any]:
        """The messages of partitions that are held; the next call raises what else there is."""
        found = []
        for message in messages:
            error = message.error()
            if error is None:
                if (message.topic(), message.partition()) in self._held:
                    found.append(message)
            elif error.code() in ABSENT:
                self._next_topics = 0.0
            elif error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
        return found

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
        if self.plan is not None:
            if now >= self._next_topics:
                self._look_at_topics(self.plan)
            if self._look():
                self._let_go(self.plan)
                self._take(self.plan)
                if now >= self._next_commit:
                    self._commit_processed()
        elif "plan" not in self.troubles:
            self._say("plan", f"no plan of group {self._plans.group!r} at {self._plans}: nothing is read")
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
                self.plan, self._next_topics = news, 0.0
                mine = news.assignment.get(self._member)
                log.info("%s follows plan %s: %s partitions", self._member, news.version, len(mine or ()))
                known = some(sorted(news.assignment))
                absent = f"plan {news.version} does not name {self._member!r}, which gets nothing; it names {known}"
                self._say("member", absent if mine is None else None)

    def _look_at_topics(self, plan: FollowedPlan) -> None:
        """See which partitions there are, and let go of those that are no more."""
        topics = {topic for topic, _ in (*plan.owners, *self._held)}
        unknown: dict[str, object] = {}
        for topic in sorted(topics):
            try:
                found = self._consumer.list_topics(topic, timeout=self._patience()).topics[topic]
            except KafkaException as error:  # of the other topics the same would be heard
                unknown[topic] = error.args[0]
                break
            if found.error is None or found.error.code() in ABSENT:
                self._there[topic] = frozenset(found.partitions)
            else:
                unknown[topic] = found.error
        told = "; ".join(f"topic {topic}: its partitions are not known ({why})" for topic, why in unknown.items())
        self._say("topics", told or None)
        if not unknown:
            self._next_topics = monotonic() + self._lease
        topics &= self._there.keys() - unknown.keys()
        absent = sorted(key for key in plan.owners if key[0] in topics and not self._exists(key))
        self._say("absent", f"plan {plan.version} gives out {_named(absent)}, which do not exist" if absent else None)
        given = plan.owners.keys()
        left = sorted((topic, each) for topic in topics for each in self._there[topic] if (topic, each) not in given)
        self._say("left out", f"plan {plan.version} leaves out {_named(left)}: nobody reads them" if left else None)
        self._lose({key for key in self._held if not self._exists(key)}, "they do not exist any more")

    def _look(self) -> bool:
        """Read the commits of the plan's partitions; False where nobody answers.

        Raises
        ------
        FollowError
            Somebody else commits in the place of this consumer.
        KafkaException
            Nobody has answered for half a lease: others will soon take this one for dead.
        """
        owned = () if self.plan is None else self.plan.owners
        keys = sorted({key for key in owned if self._exists(key)} | self._held.keys() | self._claims.keys())
        if not keys:
            return True
        try:
            found = self._consumer.committed([TopicPartition(*key) for key in keys], timeout=self._patience())
            for each in found:
                if each.error is not None:
                    raise KafkaException(each.error)
        except KafkaException as error:
            if monotonic() - self._looked > self._lease / 2:
                raise
            self._say("commits", f"the group's commits cannot be read ({error.args[0]})")
            return False
        self._say("commits", None)
        self._looked = now = monotonic()
        before, self._seen = self._seen, {}
        for each in found:
            key = each.topic, each.partition
            seen = before.get(key)
            same = seen is not None and (seen.offset, seen.metadata) == (each.offset, each.metadata)
            self._seen[key] = seen if seen is not None and same else _Seen(each.offset, each.metadata, now)
        self._yield_to_others()
        return True

    def _yield_to_others(self) -> None:
        """Let go of what is held by somebody else by now."""
        others = {key for key in self._held if not self._is_mine(key)}
        foreign: list[Partition] = []
        twins: list[Partition] = []
        taken: list[Partition] = []
        gone: list[Partition] = []
        for key in sorted(others):
            told = self._seen[key].told()
            if told is None:
                if self._seen[key].offset >= 0:
                    foreign.append(key)
                elif key not in self._stopped:
                    gone.append(key)
            elif isinstance(told, Ownership) and told.owner == self._member and told.instance is not None:
                twins.append(key)
            elif key not in self._stopped:
                taken.append(key)
        handed = others & self._stopped  # by a commit whose answer was lost
        for key in handed:
            del self._held[key]
        self._stopped -= handed
        if foreign or twins:
            self._lose(set(self._held), "this consumer stops")
        if foreign:
            raise FollowError(
                f"{_named(foreign)}: a commit that is not evenlag's; set enable.auto.commit to false and leave commits "
                "to Follow. After a reset of the offsets, start this consumer anew"
            )
        if twins:
            raise FollowError(
                f"{_named(twins)}: taken by another consumer that goes by the name {self._member!r} too; give each its "
                "own"
            )
        if gone:  # as where the topic was deleted
            self._next_topics = 0.0
            self._lose(gone, "their commits are gone")
        self._lose(taken, "others have taken them; what was processed since the last commit will be again")

    def _let_go(self, plan: FollowedPlan) -> None:
        """Hand over what the plan gives to others, also where it was handed to this member under an older plan."""
        owners = plan.owners
        # What was stopped for an older plan, and is this member's again, it hands to itself and so starts anew.
        leaving = {key for key in self._held if owners.get(key) != self._member} | self._stopped
        self._hand_over({key: owners.get(key) for key in leaving})
        passing = {}
        for key, seen in self._seen.items():
            told = seen.told()
            handed = isinstance(told, Ownership) and told.plan < plan.version and told.goes_to(self._member)
            claimed = key in self._claims and self._is_mine(key)
            if owners.get(key) != self._member and (handed or claimed):
                passing[key] = seen.offset, self._given_up(owners.get(key))
                self._claims.pop(key, None)
        self._commit(passing)

    def _hand_over(self, to: Mapping[Partition, str | None]) -> None:
        """Stop reading partitions, and commit what was processed together with whose they are now."""
        fresh = sorted(to.keys() - self._stopped)
        if fresh:
            self._stop_reading(fresh)
            self._stopped |= set(fresh)
            if self._on_revoke is not None:
                self._on_revoke(self, fresh)
        if to:
            self._commit(
                {key: (self._held[key], self._given_up(owner)) for key, owner in to.items() if key in self._held}
            )
            log.info("%s has given up %s", self._member, _named(sorted(to)))
        for key in to:
            self._held.pop(key, None)
        self._stopped -= to.keys()

    def _take(self, plan: FollowedPlan) -> None:
        """Take what was handed to this member, claim what nobody holds, and start to read what was claimed in time."""
        before, self.waiting = self.waiting, {}
        marks: dict[Partition, tuple[int, Ownership]] = {}
        starting: list[Partition] = []
        for key in plan.assignment.get(self._member, ()):
            if key in self._held or key not in self._seen:
                continue
            if key in self._claims and self._is_mine(key):
                if monotonic() - self._claims[key] >= CLAIM_LOOKS * self._lease / LOOKS:
                    starting.append(key)
                else:
                    self.waiting[key] = "claimed a moment ago"
                continue
            self._claims.pop(key, None)
            told = self._seen[key].told()
            if why := self._not_free(plan, told, self._seen[key].since):
                self.waiting[key] = why
                continue
            try:
                offset = self._first_offset(key)
            except KafkaException as error:
                self.waiting[key] = f"where to begin is not known ({error.args[0]})"
                continue
            marks[key] = offset, self._mine()
            if isinstance(told, Ownership) and told.goes_to(self._member):
                starting.append(key)
            else:
                self.waiting[key] = "claimed a moment ago"
        committed = self._commit(marks)
        self._claims |= dict.fromkeys(committed - set(starting), monotonic())
        self._start([key for key in starting if key not in marks or key in committed])
        for key, why in self.waiting.items():
            if before.get(key) != why:
                log.info("%s waits for %s: %s", self._member, _named([key]), why)

    def _not_free(self, plan: FollowedPlan, told: Ownership | UserDataError | None, since: float) -> str | None:
        """Why a partition may not be taken now."""
        if isinstance(told, UserDataError):
            return str(told)
        if told is None or (told.owner is None and told.plan <= plan.version):
            return None
        if told.plan > plan.version:
            return f"it is held under plan {told.plan}, and this consumer knows no newer one than {plan.version}"
        if told.owner == self._member or monotonic() - since >= self._lease:
            return None
        return f"{told.owner} has not given it up" if told.instance else f"it was handed to {told.owner}"

    def _start(self, keys: list[Partition]) -> None:
        if not keys:
            return
        self._consumer.incremental_assign([TopicPartition(*key, self._seen[key].offset) for key in keys])
        for key in keys:
            self._held[key] = self._seen[key].offset
            self._claims.pop(key, None)
        log.info("%s has taken %s", self._member, _named(keys))
        if self._on_assign is not None:
            self._on_assign(self, keys)

    def _lose(self, keys: Collection[Partition], why: str) -> None:
        lost = sorted(keys)
        if not lost:
            return
        self._stop_reading([key for key in lost if key not in self._stopped])
        for key in lost:
            del self._held[key]
        self._stopped -= set(lost)
        log.warning("%s has lost %s: %s", self._member, _named(lost), why)
        if self._on_lost is not None:
            self._on_lost(self, lost)

    def _stop_reading(self, keys: list[Partition]) -> None:
        self._consumer.incremental_unassign([TopicPartition(*key) for key in keys])
        self._at_hand[:] = [each for each in self._at_hand if (each.topic(), each.partition()) not in keys]

    # ---- commits -------------------------------------------------------------------------------------------------

    def _commit(self, marks: Mapping[Partition, tuple[int, Ownership]]) -> set[Partition]:
        """Commit offsets with whose the partitions are; give those that were committed, which still exist."""
        left = dict(marks)
        while left:
            parts = [TopicPartition(*key, offset, told.encode()) for key, (offset, told) in left.items()]
            try:
                for each in self._consumer.commit(offsets=parts, asynchronous=False):
                    if each.error is not None:
                        raise KafkaException(each.error)
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.UNKNOWN_MEMBER_ID:
                    self._lose(set(self._held), "this consumer stops")
                    raise FollowError(f"{error.args[0].str()}: {SUBSCRIBED}") from error
                if code not in ABSENT or self.plan is None:
                    raise
                self._look_at_topics(self.plan)
                remaining = {key: mark for key, mark in left.items() if self._exists(key)}
                if len(remaining) == len(left):
                    raise
                left = remaining
                continue
            now = monotonic()
            self._seen |= {key: _Seen(offset, told.encode(), now) for key, (offset, told) in left.items()}
            break
        return set(left)

    def _commit_processed(self) -> None:
        self._commit({key: (offset, self._mine()) for key, offset in self._held.items()})
        self._next_commit = monotonic() + self._lease / COMMITS

    def _mine(self) -> Ownership:
        assert self.plan is not None  # or nothing would be held
        self._beat += 1
        return Ownership(self.plan.version, self._member, self._instance, self._beat)

    def _given_up(self, owner: str | None) -> Ownership:
        assert self.plan is not None
        return Ownership(self.plan.version, owner)

    def _is_mine(self, key: Partition) -> bool:
        told = self._seen[key].told()
        return isinstance(told, Ownership) and (told.owner, told.instance) == (self._member, self._instance)

    def _first_offset(self, key: Partition) -> int:
        if self._seen[key].offset >= 0:
            return self._seen[key].offset
        low, high = self._consumer.get_watermark_offsets(TopicPartition(*key), timeout=self._patience(), cached=False)
        return int(low if self._auto_offset_reset == "earliest" else high)

    # ---- the rest ------------------------------------------------------------------------------------------------

    def _exists(self, key: Partition) -> bool:
        return key[1] in self._there.get(key[0], ())

    def _patience(self) -> float:
        """Seconds that an answer may take."""
        return self._lease / COMMITS

    def _say(self, about: str, trouble: str | None) -> None:
        """Log a trouble when it begins or changes."""
        if trouble is None:
            self.troubles.pop(about, None)
        elif self.troubles.get(about) != trouble:
            self.troubles[about] = trouble
            log.warning("%s: %s", self._member, trouble)


@dataclass(frozen=True)
class _Seen:
    """A commit, and since when it has been as it is (of `monotonic`)."""

    offset: int
    metadata: str | None
    since: float

    def told(self) -> Ownership | UserDataError | None:
        """Whose the partition is; an error where that cannot be read."""
        try:
            return Ownership.decode(self.metadata)
        except UserDataError as error:
            return error


def _named(keys: Collection[Partition]) -> str:
    return some([f"{topic}-{partition}" for topic, partition in keys])
