"""Facts about a group beyond its partitions and members, and assumptions about missing ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from evenlag.errors import InvalidProblemError
from evenlag.figures import number, quantity
from evenlag.model.libraries import client_of
from evenlag.model.values import check_fields, check_name, is_whole, kind, shown

CLASSIC, CONSUMER, FOLLOW = "classic", "consumer", "follow"
UNIFORM, STREAM = "uniform", "stream"
STREAMS, CONNECT = "streams", "connect"
MEMBERSHIP = "membership"  # key in `Facts.assumed`
_SOME = "rebalancing"  # one of the states below, which one is unknown
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", _SOME)
STABLE, EMPTY = "Stable", "Empty"
_STATES = (STABLE, EMPTY, "Dead", *REBALANCING[:-1])

_OF_CLIENTS = ("roundrobin", "sticky", "cooperative-sticky", STREAM)
_MOST_NAMED = 5  # topics named in a note
_THREAD, _TASK = "-StreamThread-", "connector-consumer-"
_INTERNAL = ("-repartition", "-changelog")


class LeftOver(NamedTuple):
    """A topic of a group with owners, none of whose partitions has one: number of partitions, and lag in messages."""

    topic: str
    partitions: int
    lag: int


@dataclass(frozen=True)
class Facts:
    """Facts about a group beyond its partitions and members; None if the input does not contain them.

    Attributes
    ----------
    state : str or None
        Kafka's name of its state, such as "Stable"; "rebalancing" if no more is known.
    protocol : str or None
        Protocol of the group: "classic", "consumer" (KIP-848) or "follow".
    assignor : str or None
        The assignor that the group uses today, by Kafka's name.
    group_epoch, assignment_epoch : int or None
        Epochs of a KIP-848 group and of its target assignment.
    members : int or None
        Number of members that the group has; an input may name fewer.
    classic_members : int or None
        Number of members of a KIP-848 group that still use the classic protocol.
    application : str or None
        "streams" for Kafka Streams, "connect" for sink tasks of Kafka Connect.
    application_shown_by : str or None
        The sign of that application, such as a client id.
    client : str or None
        Client library of the members, by the names in `libraries.CLIENTS`.
    left_over : tuple of LeftOver
        Topics to which no member is assumed to subscribe, because none of their partitions has an owner.
    assumed : mapping of str to str
        Assumptions by a word for programs, such as "subscriptions": a sentence with the reason.
    """

    state: str | None = None
    protocol: str | None = None
    assignor: str | None = None
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    members: int | None = None
    classic_members: int | None = None
    application: str | None = None
    application_shown_by: str | None = None
    client: str | None = None
    left_over: tuple[LeftOver, ...] = ()
    assumed: Mapping[str, str] | None = None

    def __or__(self, other: Facts) -> Facts:
        """Update these facts with the ones known in `other`; only a named state replaces a named state."""
        known = {name: value for name, value in vars(other).items() if value is not None and value != ()}
        if other.state == _SOME and self.state in REBALANCING:
            del known["state"]
        return replace(self, **known)

    @property
    def left_over_topics(self) -> tuple[str, ...]:
        """Names of the topics in `left_over`."""
        return tuple(each.topic for each in self.left_over)

    @property
    def unsettled(self) -> str | None:
        """Warning that the group was rebalancing; None if it was not, or if its state is unknown."""
        if self.state not in REBALANCING:
            return None
        return (
            f"the group was rebalancing{'' if self.state == _SOME else f' (state {self.state})'}: owners and members "
            "may be those of a moment; read it again when it is stable"
        )

    def told(self) -> str:
        """Return the facts as a line of words, such as "state Stable, assignor uniform"; "" for none."""
        half = "" if not self.classic_members else f", {quantity(self.classic_members, 'member')} still classic"
        protocol = {CLASSIC: "classic protocol", CONSUMER: f"KIP-848 protocol{half}", FOLLOW: "follows a plan"}
        parts = [
            None if self.state is None else self.state if self.state == _SOME else f"state {self.state}",
            None if self.protocol is None else protocol.get(self.protocol, f"protocol {self.protocol}"),
            None if self.assignor is None else f"assignor {self.assignor}",
            None if self.group_epoch is None else f"epoch {self.group_epoch}",
            {STREAMS: "Kafka Streams", CONNECT: "Kafka Connect"}.get(self.application or ""),
            None if self.client is None else f"client {self.client}",
        ]
        return ", ".join(part for part in parts if part)

    def notes(self) -> list[str]:
        """Return what a user should know before relying on a plan, one sentence each."""
        found = [*(self.assumed or {}).values()]
        if self.left_over:
            found.append(self._left_over())
        if self.unsettled is not None:
            found.append(self.unsettled)
        if self.application == STREAMS:
            found.append(
                f"a Kafka Streams application ({self.application_shown_by}): partitions of one task go together "
                "(--together TOPIC,TOPIC joins them), and Streams assigns tasks by its own assignor, so it does not "
                "take up this plan"
            )
        if self.application == CONNECT:
            found.append(
                f"sink tasks of a Kafka Connect connector ({self.application_shown_by}): the members are tasks, which "
                "share the workers and the connector's settings; a task cannot be configured alone"
            )
        return found

    def _left_over(self) -> str:
        names = [
            f"{each.topic} ({quantity(each.partitions, 'partition')}, {quantity(each.lag, 'message')})"
            for each in self.left_over[:_MOST_NAMED]
        ]
        more = len(self.left_over) - len(names)
        listed = ", ".join(names) + (f" and {number(more)} more topics" if more > 0 else "")
        its = "its partitions" if len(self.left_over) == 1 else "their partitions"
        return (
            f"left over: {listed}: none of {its} has an owner, so it is assumed that no member subscribes to "
            f"{'it' if len(self.left_over) == 1 else 'them'}; not planned. If members do: --subscribed "
            f"{self.left_over[0].topic}, or a members table with topics"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as a document for JSON."""
        document = asdict(self) | {"assumed": dict(self.assumed or {})}
        document["left_over"] = [each._asdict() for each in self.left_over]
        return document

    def document(self) -> dict[str, Any]:
        """Return the known facts for a problem file, except the assignor."""
        whole = self.to_dict()
        return {name: whole[name] for name in _OF_DOCUMENT if whole[name] not in (None, [], {})}


NO_FACTS = Facts()
_TEXTS = ("state", "protocol", "application", "application_shown_by")
_NUMBERS = ("group_epoch", "assignment_epoch", "members", "classic_members")
_OF_DOCUMENT = (*_TEXTS, *_NUMBERS, "left_over", "assumed")


def state_named(text: str | None) -> str | None:
    """Return Kafka's name of a state, which clients of some languages spell as `PREPARING_REBALANCE`."""
    plain = None if text is None else text.replace("_", "").lower()
    return next((state for state in _STATES if state.lower() == plain), text)


def facts_of(document: Any, assignor: Any) -> Facts:
    """Return the facts in a problem file.

    Raises
    ------
    InvalidProblemError
        The message names the field.
    """
    given = {} if document is None else document
    if not isinstance(given, Mapping):
        raise InvalidProblemError(f"'facts' must be an object; got {kind(document)}")
    check_fields(given, _OF_DOCUMENT, "facts")
    texts: dict[str, Any] = {
        name: check_name(given[name], f"facts: {name}") for name in _TEXTS if given.get(name) is not None
    }
    counts: dict[str, Any] = {name: _count(name, given[name]) for name in _NUMBERS if given.get(name) is not None}
    if "application" in texts:
        texts.setdefault("application_shown_by", "as the problem file says")
    assumed = given.get("assumed") or None
    if not isinstance(assumed, Mapping | None):
        raise InvalidProblemError(f"facts: 'assumed' must be an object of sentences; got {kind(assumed)}")
    left_over = given.get("left_over") or []
    if not isinstance(left_over, Sequence):
        raise InvalidProblemError(f"facts: 'left_over' must be a list; got {kind(left_over)}")
    return Facts(
        assignor=None if assignor is None else check_name(assignor, "the assignor"),
        left_over=tuple(map(_left_over, left_over)),
        assumed=assumed and {str(name): str(text) for name, text in assumed.items()},
        **texts,
        **counts,
    )


def _left_over(entry: Any) -> LeftOver:
    if not isinstance(entry, Mapping) or set(entry) != set(LeftOver._fields):
        raise InvalidProblemError(f"facts: left_over: must have {', '.join(LeftOver._fields)}; got {kind(entry)}")
    return LeftOver(
        check_name(entry["topic"], "facts: left_over: topic"),
        *(_count(f"left_over: {name}", entry[name]) for name in ("partitions", "lag")),
    )


def _count(name: str, value: Any) -> int:
    if not is_whole(value) or value < 0:
        raise InvalidProblemError(f"facts: {name}: must be a whole number >= 0, not {shown(value)}")
    return int(value)


def completed(facts: Facts, group: str, topics: Iterable[str], members: Sequence[str]) -> Facts:
    """Return the facts with those that follow from them and from names.

    A group of the assignor `uniform`, or with an epoch, uses KIP-848; one whose assignor only clients have does not,
    while brokers and clients both have a `range`. Kafka Streams shows by its assignor, its client ids or its internal
    topics, which begin with the application's id; Connect by the client ids of sink tasks; other clients by the default
    client ids of their libraries. Member ids begin with client ids, except those of static members and of KIP-848:
    there, the facts have the application that client ids show.
    """
    if facts.protocol is None and (facts.assignor == UNIFORM or facts.group_epoch is not None):
        facts = replace(facts, protocol=CONSUMER)
    elif facts.protocol is None and facts.assignor in _OF_CLIENTS:
        facts = replace(facts, protocol=CLASSIC)
    if members and (facts.members or 0) > len(members):
        few = f"the group has {facts.members} members, but the input names {len(members)}"
        told = {"members": f"{few}; the plan covers only these; to plan for all, give a members table"}
        facts = replace(facts, assumed={**(facts.assumed or {}), **told})
    application, why = _application(facts, group, topics, members)
    client = None if application is not None else client_of(group, members)
    return replace(
        facts, application=application, application_shown_by=why, client=None if client is None else client.name
    )


def protocol_by(epoch: object) -> str:
    """Return the protocol of a group, by an epoch that is None in classic groups."""
    return CLASSIC if epoch is None else CONSUMER


def shown_by_clients(names: Iterable[str]) -> tuple[str | None, str | None]:
    """Return the application that client ids show, or member ids that begin with them, and the sign of it."""
    for name in names:
        if _THREAD in name:
            return STREAMS, f"client id {name.split(_THREAD)[0]}{_THREAD}…"
        if name.startswith(_TASK):
            return CONNECT, f"client ids {_TASK}…"
    return None, None


def _application(
    facts: Facts, group: str, topics: Iterable[str], members: Sequence[str]
) -> tuple[str | None, str | None]:
    if facts.assignor == STREAM or facts.protocol == STREAMS:
        return STREAMS, f"assignor {STREAM}" if facts.assignor == STREAM else "protocol streams"
    if facts.application is not None:
        return facts.application, facts.application_shown_by
    by_members = shown_by_clients(members)
    if by_members[0] is not None:
        return by_members
    for topic in topics:
        if topic.startswith(f"{group}-") and topic.endswith(_INTERNAL):
            return STREAMS, f"internal topic {topic}"
    return None, None
