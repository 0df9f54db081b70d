"""Published plans for followers, in a file or in a compacted topic keyed by group (docs/formats.md)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from evenlag.errors import EvenlagError, InvalidPlanError, SourceError, no_broker, to_get
from evenlag.live import time_source
from evenlag.live.bearers import note_on_names
from evenlag.live.group_state import TopicPartition
from evenlag.live.wording import CHECK_NAME, login_fails, missing_acl
from evenlag.model.problem_files import unique, write_json
from evenlag.tables.topics import is_topic, topic_address

ANSWER_LIMIT = 10.0  # seconds to wait for the brokers
REPAIRS = 3  # times that a plan is written again so that it is the last record
REFUSAL_LIMIT = 1.0  # seconds after which to look whether they refuse the connection or the login
CONSUMER_ONLY = (
    "auto.offset.reset", "enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof", "group.id",
    "group.instance.id", "isolation.level", "max.poll.interval.ms", "partition.assignment.strategy",
    "session.timeout.ms",
)  # fmt: skip
"""Properties that a producer does not accept."""
AROUND_REASON = re.compile(r"^\S+/\S+: | \(after [^()]*\)$")
"""The address and the state that librdkafka writes before and after the reason of a connection's error."""
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")  # valid topic names
NUMBER = re.compile(r"[0-9]{1,9}")  # of a partition
MEMBER_FIELDS = ("group_instance_id", "client_id", "rack", "host")


@dataclass(frozen=True)
class FollowedPlan:
    """A published plan.

    Attributes
    ----------
    group : str
    version : int
        Version of the plan; a higher one is newer.
    assignment : mapping of member to (topic, partition) pairs
    members : mapping of member to what was known of it, by the names in `MEMBER_FIELDS`
        Java's assignors find a member by it that has restarted under another id.
    lags : mapping of topic to lags
        Lags when the plan was made, in the form of a problem file's `topics`. Java's assignors share out by them what
        the plan gives to nobody.
    warnings : tuple of str
        Notes on its publication; they do not belong to the plan.
    """

    group: str
    version: int
    assignment: Mapping[str, tuple[TopicPartition, ...]]
    members: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    lags: Mapping[str, list[int] | Mapping[str, int]] = field(default_factory=dict)
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @property
    def owners(self) -> dict[TopicPartition, str]:
        """The member of each partition."""
        return {key: member for member, keys in self.assignment.items() for key in keys}

    @classmethod
    def from_dict(cls, document: Any, version: int | None = None) -> FollowedPlan:
        """Parse the JSON of a plan, or of a result file, which has no version.

        Parameters
        ----------
        document : object
            The parsed JSON.
        version : int, optional
            Replaces the version of the document.

        Raises
        ------
        InvalidPlanError
            The document is not a plan. The message names the invalid part.
        """
        if not isinstance(document, dict):
            raise InvalidPlanError("a plan must be a JSON object with group, version and assignment")
        group, assignment = document.get("group"), document.get("assignment")
        if not isinstance(group, str) or not _is_name(group):
            raise InvalidPlanError(f"group must be a name, not {group!r}")
        if version is None:
            version = document.get("version")
            if version is None:
                raise InvalidPlanError("the plan has no version; publish it by `evenlag publish`, which adds one")
        if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version < 2**63:
            raise InvalidPlanError(f"version must be a whole number from 1, not {version!r}")
        if assignment is None and "topics" in document:
            raise InvalidPlanError("is a problem file, not a plan; make one by `evenlag plan … --out plan.json`")
        if not isinstance(assignment, dict):
            raise InvalidPlanError(f"assignment must map each member to its partitions, not {assignment!s:.60}")
        owners: dict[TopicPartition, str] = {}
        for member, keys in assignment.items():
            if not _is_name(member):
                raise InvalidPlanError(f"{member!r:.60} is not a valid member name")
            if not isinstance(keys, list | tuple):
                raise InvalidPlanError(f"member {member!r}: partitions must be a list, not {keys!s:.60}")
            for key in keys:
                topic, partition = _partition(member, key)
                if (topic, partition) in owners:
                    other = owners[topic, partition]
                    raise InvalidPlanError(f"the plan assigns {topic}-{partition} to both {other!r} and {member!r}")
                owners[topic, partition] = member
        ordered = {name: tuple(sorted(map(tuple, keys))) for name, keys in assignment.items()}
        return cls(group, version, ordered, _members(document.get("members")), _lags(document.get("lags")))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of the plan."""
        assignment = {member: [list(key) for key in keys] for member, keys in self.assignment.items()}
        document = {"group": self.group, "version": self.version, "assignment": assignment}
        if self.members:
            document["members"] = {member: dict(known) for member, known in self.members.items()}
        if self.lags:
            document["lags"] = dict(self.lags)
        return document


class Plans(Protocol):
    """Interface of a place where the plans of a group are published."""

    group: str

    def news(self) -> list[FollowedPlan | EvenlagError]:
        """Return the plans published since the last call, oldest first, with errors in place of invalid ones."""
        ...

    def write(self, plan: FollowedPlan) -> None:
        """Publish a plan."""
        ...

    def close(self) -> None:
        """Close the place; the next call of `news` returns everything again."""
        ...


class UnreadError(SourceError):
    """Error for a place of plans that could not be read, so that its plans are unknown."""


class UnacknowledgedError(SourceError):
    """Error for a plan that the brokers may have taken, although their answer did not come."""


class PlanFile:
    """A plan in a file, which may be replaced at any time.

    Parameters
    ----------
    path : str or Path
        The file, which all consumers of the group must see, or a copy of it.
    group : str
        The group that the plan must be for.
    """

    def __init__(self, path: str | Path, group: str) -> None:
        self.path, self.group = Path(path), group
        self._last: bytes | tuple[type[SourceError], str] | None = None

    def __str__(self) -> str:
        return str(self.path)

    def news(self) -> list[FollowedPlan | EvenlagError]:
        """Return the plan in the file, or the error that it causes, if either has changed."""
        content = self._content()
        if content == self._last:
            return []
        self._last = content
        if isinstance(content, bytes):
            return [_parsed(content, self.group, str(self))]
        kind, text = content
        return [kind(text)]

    def _content(self) -> bytes | tuple[type[SourceError], str]:
        """Return the content of the file, or the kind and text of an error."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            kind = SourceError if isinstance(error, FileNotFoundError) else UnreadError
            return kind, f"{self}: cannot be read ({(error.strerror or str(error)).lower()})"

    def write(self, plan: FollowedPlan) -> None:
        """Replace the file atomically."""
        write_json(self.path, plan.to_dict())

    def close(self) -> None:
        """Forget the last content, so that the next call of `news` returns it again."""
        self._last = None


def newest_plan(news: Sequence[FollowedPlan | EvenlagError]) -> FollowedPlan | None:
    """Return the plan in force, which is the first of the highest version; None without a plan."""
    return max((each for each in news if isinstance(each, FollowedPlan)), key=lambda each: each.version, default=None)


class PlanTopic:
    """Plans in a compacted topic with the group as the key of each record (needs the extra `follow`).

    Parameters
    ----------
    topic : str
    config : mapping
        Configuration of the consumer that follows the plan, or of any client of the cluster.
    group : str, optional
        The group whose plans are read; by default the `group.id` of `config`.
    """

    def __init__(self, topic: str, config: Mapping[str, Any], group: str | None = None) -> None:
        name = config.get("group.id") if group is None else group
        if not isinstance(name, str) or not name:
            raise SourceError(f"topic {topic}: the group is unknown; give group, or a config with group.id")
        self.topic, self.group = topic, name
        self.config = dict(config)
        self._reader: Any = None
        self._unread: set[int] = set()
        self._found: list[FollowedPlan | EvenlagError] = []
        self._errors: dict[int, Any] = {}  # the last one of each code, of the reader's connections

    def __str__(self) -> str:
        return f"topic {self.topic}"

    # ---- clients, which a simulation replaces --------------------------------------------------------------------

    def admin(self) -> Any:
        """Return a new admin client."""
        from confluent_kafka.admin import AdminClient

        return AdminClient(self._sending)

    def _consumer(self, settings: Mapping[str, Any]) -> Any:
        from confluent_kafka import Consumer

        return Consumer({**self.config, **settings})

    def _producer(self, settings: Mapping[str, Any]) -> Any:
        from confluent_kafka import Producer

        return Producer({**self._sending, **settings})

    @property
    def _sending(self) -> dict[str, Any]:
        """The client's properties for clients that do not consume."""
        return {name: value for name, value in self.config.items() if name not in CONSUMER_ONLY}

    # ---- reading and writing -------------------------------------------------------------------------------------

    def news(self) -> list[FollowedPlan | EvenlagError]:
        """Return the group's plans since the last call; the first call reads the whole topic."""
        from confluent_kafka import KafkaException

        try:
            self._read()
        except (KafkaException, SourceError) as error:
            self.close()  # the next call reads from the beginning; followers ignore plans that they know
            return [UnreadError(str(error) if isinstance(error, SourceError) else self._unread_text(error.args[0]))]
        found, self._found = self._found, []
        return found

    def _unread_text(self, error: Any) -> str:
        """Return the text of a client's error, with advice if no broker answers."""
        from confluent_kafka import KafkaError

        text = f"{self}: cannot be read ({self._permitted(error, 'Read')})"
        if error.code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT):
            return text
        servers = self.config.get("bootstrap.servers")
        return f"{text}; check that a Kafka broker answers at {servers}"

    def _permitted(self, error: Any, of_topic: str) -> str:
        """Return the text of a client's error, with the ACL that the user lacks, if any."""
        text: str = error.str().rstrip(".")
        return text + missing_acl(error.name(), of_topic, self.group)

    def write(self, plan: FollowedPlan) -> None:
        """Append a plan, and write the newest one again if it is not the last record.

        If the brokers' answer is lost, look in the topic for the plan.

        Two writers may read the same previous plan. The one whose clock is behind may then write its lower version
        last. Followers that know the higher version keep it; after compaction, new ones would get only the lower one.

        Raises
        ------
        SourceError
            The plan was not written, another one is newer, or the last record is not the newest plan.
        """
        lost: UnacknowledgedError | None = None
        try:
            self._append(plan)
        except UnacknowledgedError as error:
            lost = error
        for _ in range(REPAIRS):
            news = self.news()
            newest = newest_plan(news)
            if plan in news:
                lost = None
            unread = any(isinstance(each, UnreadError) for each in news)
            if lost and not unread and (newest is None or newest.version < plan.version):
                raise lost
            done = "may have been written" if lost else "was written, but may not be the last one"
            unsure = f"plan {plan.version} {done}"
            if newest is None or not isinstance(news[-1], FollowedPlan):
                raise SourceError(f"{unsure}: {news[-1] if news else f'{self}: it has no plan'}")
            if news[-1] == newest:
                break
            try:
                self._append(newest)
            except SourceError as error:
                raise SourceError(f"{unsure}: {error}") from error
        else:
            raise SourceError(f"{unsure}: {self} does not end with its newest plan; give the topic one partition")
        if newest != plan:
            raise SourceError(
                f"{self}: another plan of group {plan.group!r} was published at the same time; publish again"
            )

    def _append(self, plan: FollowedPlan) -> None:
        from confluent_kafka import KafkaError, KafkaException

        trouble: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                trouble.append(error)

        try:
            if self._reader is None:
                self._open()  # a producer might create the topic, without compaction
            producer = self._producer({"acks": "all", "message.timeout.ms": int(1000 * ANSWER_LIMIT)})
            value = json.dumps(plan.to_dict())
            producer.produce(self.topic, value, plan.group, on_delivery=delivered)
            if producer.flush(2 * ANSWER_LIMIT) or trouble:
                why = self._permitted(trouble[0], "Write") if trouble else "no answer in time"
                raise UnacknowledgedError(f"{self}: the plan was not written ({why})")
        except KafkaException as error:
            raise SourceError(f"{self}: the plan was not written ({error.args[0].str()})") from error
        finally:
            self.close()

    def close(self) -> None:
        """Close the consumer that reads the topic; the next call of `news` reads it from the beginning."""
        if self._reader is not None:
            self._reader.close()
        self._reader, self._found = None, []

    def _read(self) -> None:
        from confluent_kafka import KafkaError, KafkaException

        if self._reader is None:
            self._open()
        while True:
            message = self._reader.poll(ANSWER_LIMIT if self._unread else 0.0)
            if message is None:
                if self._unread:
                    raise SourceError(f"{self}: not read to the end within {ANSWER_LIMIT:g} s")
                return
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                self._unread.discard(message.partition())
            elif error is not None:
                raise KafkaException(error)
            elif message.key() == self.group.encode():
                place = f"{self}, partition {message.partition()}, offset {message.offset()}"
                self._found.append(_parsed(message.value() or b"", self.group, place))

    def _open(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition

        reading = {"group.id": self.group, "enable.auto.commit": False, "enable.partition.eof": True}
        self._reader = self._consumer(reading | {"error_cb": self._note_error})
        found = self._described()
        if found.error is not None:
            advice = {
                KafkaError.UNKNOWN_TOPIC_OR_PART: "; create it with cleanup.policy=compact",
                KafkaError.TOPIC_AUTHORIZATION_FAILED: CHECK_NAME,
            }.get(found.error.code(), "")
            raise SourceError(f"{self}: {self._permitted(found.error, 'Describe')}{advice}")
        self._unread = set(found.partitions)
        self._reader.assign([TopicPartition(self.topic, number, OFFSET_BEGINNING) for number in found.partitions])

    def _note_error(self, error: Any) -> None:
        """Keep an error of a connection, and pass it on to the callback in the user's config."""
        self._errors[error.code()] = error
        if (callback := self.config.get("error_cb")) is not None:
            callback(error)

    def _described(self) -> Any:
        """Return the metadata of the topic.

        Raises
        ------
        SourceError
            No broker answers, or the brokers refuse the login. If all addresses refuse, the call ends after
            `REFUSAL_LIMIT`; the client would try again until the limit, and then not say why.
        """
        from confluent_kafka import KafkaError, KafkaException

        self._errors.clear()
        try:
            return self._reader.list_topics(self.topic, timeout=REFUSAL_LIMIT).topics[self.topic]
        except KafkaException:
            self._reader.poll(0)  # calls error_cb
        servers, errors = self.config["bootstrap.servers"], dict(self._errors)
        down = errors.pop(KafkaError._ALL_BROKERS_DOWN, None)
        reasons = {code: AROUND_REASON.sub("", error.str()) for code, error in errors.items()}
        if KafkaError._AUTHENTICATION in reasons:
            raise SourceError(f"{self}: {login_fails(servers, reasons[KafkaError._AUTHENTICATION])}")
        why = ", ".join(reasons.values())
        if down is not None:  # the client reports no reason if a broker closes the connection
            raise SourceError(f"{self}: {no_broker(servers, why or 'the connection is closed')}")
        try:
            return self._reader.list_topics(self.topic, timeout=ANSWER_LIMIT).topics[self.topic]
        except KafkaException as error:
            waited = REFUSAL_LIMIT + ANSWER_LIMIT
            raise SourceError(f"{self}: {no_broker(servers, why or 'no answer', waited)}") from error


def place_of(text: str, group: str, config: Mapping[str, str] | None = None) -> PlanFile | PlanTopic:
    """Return the place named by a path or by `kafka://HOST:PORT/TOPIC`.

    Logs of the topic's client are off unless `config` has a `log_level`, because errors contain its messages.

    Raises
    ------
    SourceError
        The path is that of a folder, the address of a topic is invalid or names several topics, or confluent-kafka is
        not installed.
    """
    if not is_topic(text):
        if text.endswith(("/", os.sep)) or Path(text).is_dir():
            raise SourceError(f"{text}: is a folder; name a file, such as {Path(text) / 'published.json'}")
        return PlanFile(text, group)
    address = topic_address(text)
    if "," in address.topics:
        raise SourceError(f"{text}: several topics; name one topic of plans")
    if find_spec("confluent_kafka") is None:
        raise SourceError(f"{text}: a topic needs confluent-kafka; {to_get('confluent_kafka')}")
    return PlanTopic(address.topics, {"log_level": 0, **(config or {}), "bootstrap.servers": address.servers}, group)


def publish(document: Mapping[str, Any], to: Plans) -> FollowedPlan:
    """Publish a plan for a group's followers, with a version above that of the previous plan.

    To roll back, publish the earlier plan again.

    Parameters
    ----------
    document : mapping
        A result file's content (`Result.to_dict`), or the JSON of a plan, whose version is ignored.
    to : PlanFile or PlanTopic

    Returns
    -------
    FollowedPlan
        The published plan. Its version is the time in milliseconds since 1970, or the previous version plus one if
        that is higher. With a topic, `warnings` says if the group has members but the plan names none of them.

    Raises
    ------
    InvalidPlanError
        The document is not a plan, assigns a partition to two members or none at all, or is for another group.
    SourceError
        The place cannot be read or written.
    """
    plan = FollowedPlan.from_dict(dict(document), version=1)
    if plan.group != to.group:
        raise InvalidPlanError(f"{to} is for group {to.group!r}, but the plan is for {plan.group!r}")
    if not plan.owners:
        raise InvalidPlanError(f"the plan of group {plan.group!r} assigns no partition; all its consumers would stop")
    to.close()
    try:
        news = to.news()
        for each in news:
            if isinstance(each, UnreadError):  # the version of the previous plan is unknown
                raise each
        before = [each.version for each in news if isinstance(each, FollowedPlan)]
        published = replace(plan, version=max([round(1000 * time_source.wall()), *(version + 1 for version in before)]))
        to.write(published)
    finally:
        to.close()
    note = note_on_names(published, to.admin(), ANSWER_LIMIT) if isinstance(to, PlanTopic) else None
    return published if note is None else replace(published, warnings=(note,))


def _partition(member: str, key: Any) -> TopicPartition:
    if isinstance(key, list | tuple) and len(key) == 2:
        topic, partition = key
        if isinstance(topic, str) and TOPIC.fullmatch(topic) and type(partition) is int and 0 <= partition < 2**31:
            return topic, partition
    raise InvalidPlanError(f"member {member!r}: {key!s:.60} is not a [topic, partition] pair")


def _members(given: Any) -> dict[str, dict[str, str]]:
    """Return what is known of each member, without other fields."""
    found: dict[str, dict[str, str]] = {}
    for member, known in _object(given, "members", "each member to what is known of it").items():
        fields = _object(known, f"members: {member!r:.60}", "names to texts")
        for name in MEMBER_FIELDS:
            if not isinstance(fields.get(name), str | None):
                raise InvalidPlanError(f"members: {member!r:.60}: {name} must be a text, not {fields[name]!s:.60}")
        found[member] = {name: fields[name] for name in MEMBER_FIELDS if fields.get(name) is not None}
    return found


def _lags(given: Any) -> dict[str, list[int] | dict[str, int]]:
    found: dict[str, list[int] | dict[str, int]] = {}
    for topic, lags in _object(given, "lags", "each topic to lags").items():
        if isinstance(lags, list):
            found[topic] = [_lag(topic, lag) for lag in lags]
            continue
        by_number = _object(lags, f"lags: {topic!r:.60}", "partitions to lags")
        for number in by_number:
            if not NUMBER.fullmatch(number):
                raise InvalidPlanError(f"lags: {topic!r:.60}: {number!r:.60} is not a partition")
        found[topic] = {number: _lag(topic, lag) for number, lag in by_number.items()}
    return found


def _lag(topic: str, lag: Any) -> int:
    if type(lag) is not int or not 0 <= lag < 2**63:
        raise InvalidPlanError(f"lags: {topic!r:.60}: a lag must be a whole number from 0, not {lag!s:.60}")
    return lag


def _object(given: Any, field: str, contents: str) -> dict[str, Any]:
    """Return an object of the JSON, empty if it is left out."""
    if not isinstance(given, dict | None):
        raise InvalidPlanError(f"{field} must map {contents}, not {given!s:.60}")
    return given or {}


def _is_name(text: str) -> bool:
    return text != "" and text.isprintable()


def _parsed(content: bytes, group: str, place: str) -> FollowedPlan | EvenlagError:
    if not content:
        return SourceError(f"{place}: no plan; it was deleted")
    try:
        plan = FollowedPlan.from_dict(json.loads(content, object_pairs_hook=unique))
    except (ValueError, RecursionError) as error:
        return InvalidPlanError(f"{place}: not valid JSON ({error})")
    except InvalidPlanError as error:
        return InvalidPlanError(f"{place}: {error}")
    if plan.group != group:
        return InvalidPlanError(f"{place}: a plan for group {plan.group!r}, not {group!r}")
    return plan
