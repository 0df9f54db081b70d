"""Changes and steps for one group on the way to KIP-848; only those that apply to the group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from shlex import quote
from typing import Any

from evenlag.figures import quantity, some
from evenlag.heuristics import lag_aware, weighted_sticky
from evenlag.model.facts import CONNECT, CONSUMER, FOLLOW, STREAMS
from evenlag.model.problem import Problem
from evenlag.protocol.subscriptions import OWN, OWN_EAGER, PLAN, STICKY

COOPERATIVE_STICKY = "cooperative-sticky"
KAFKAS = ("range", "roundrobin", STICKY, COOPERATIVE_STICKY)
OWN_AIOKAFKA = "evenlag-aiokafka"
OURS = (OWN, OWN_EAGER, OWN_AIOKAFKA, PLAN)
EAGER = ("range", "roundrobin", STICKY, OWN_EAGER, OWN_AIOKAFKA, lag_aware.ASSIGNOR, weighted_sticky.ASSIGNOR)
RACK_AWARE = ("range", STICKY, COOPERATIVE_STICKY)
LIBRDKAFKA = "librdkafka"
_COOPERATIVE_TO_RANGE = (
    "restart each member with partition.assignment.strategy=range first; restarted members cannot join, and the others "
    "read their partitions, until the last member with cooperative-sticky has stopped"
)
MOST_NAMED = 3  # members that a remark names


class Online(StrEnum):
    """Outcome of the check for an upgrade while the group reads."""

    POSSIBLE = "possible"
    REFUSED = "refused"
    UNKNOWN = "unknown"  # the input does not contain the user data of assignments
    DONE = "done"  # the group uses KIP-848
    HALF_WAY = "half-way"  # the group uses KIP-848, some members do not
    NO_MEMBERS = "no-members"  # nothing to upgrade
    NOT_KAFKAS = "not-kafkas"  # the consumers follow a plan, so Kafka has no members


class Severity(StrEnum):
    """Kind of a remark."""

    STOPS = "stops"  # the online upgrade is refused
    CHANGES = "changes"  # something works differently, or no longer works
    CHECK = "check"  # brokers do not know it


@dataclass(frozen=True)
class Remark:
    """Something that breaks or changes.

    Attributes
    ----------
    topic : str
        A word for programs, such as "user-data".
    text, action : str
        The fact, and the remedy.
    """

    topic: str
    severity: Severity
    text: str
    action: str

    def to_dict(self) -> dict[str, Any]:
        """Return the remark for JSON."""
        return {"topic": self.topic, "severity": str(self.severity), "text": self.text, "action": self.action}


@dataclass(frozen=True)
class Step:
    """A step of the upgrade, with the settings and commands that it needs, one a line."""

    text: str
    lines: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the step for JSON."""
        return {"text": self.text, "lines": list(self.lines)}


@dataclass(frozen=True)
class Readiness:
    """A group and data on its members, from which remarks follow.

    Attributes
    ----------
    user_data : dict of str to int
        Bytes of user data in the assignment of each member of whom they are known.
    static, dynamic : list of str
        Members with and without a `group.instance.id`.
    crossings : dict of str to int
        Partitions (or traffic) read across racks under each strategy; empty without racks.
    """

    problem: Problem
    user_data: dict[str, int]
    static: list[str]
    dynamic: list[str]
    crossings: dict[str, int]

    @property
    def assignor(self) -> str | None:
        """Today's assignor."""
        return self.problem.assignor

    @property
    def online(self) -> Online:
        """The possibility of an upgrade while the group reads."""
        facts = self.problem.facts
        if facts.protocol == CONSUMER:
            return Online.HALF_WAY if facts.classic_members else Online.DONE
        if facts.protocol == FOLLOW:
            return Online.NOT_KAFKAS
        if not self.problem.members:
            return Online.NO_MEMBERS
        if self.is_streams or any(self.user_data.values()) or self.sends_later:
            return Online.REFUSED
        known = bool(self.user_data) or self.assignor in (*KAFKAS, *OURS)
        return Online.POSSIBLE if known else Online.UNKNOWN

    @property
    def sends_later(self) -> bool:
        """True if assignments get user data at the next rebalance: librdkafka echoes what members told of the last."""
        return self.assignor == COOPERATIVE_STICKY and self.problem.facts.client == LIBRDKAFKA

    @property
    def is_streams(self) -> bool:
        """True for a Kafka Streams application."""
        return self.problem.facts.application == STREAMS


def remarks(group: Readiness) -> list[Remark]:
    """Return what breaks or changes for a group, most severe first."""
    if group.online in (Online.DONE, Online.NOT_KAFKAS, Online.NO_MEMBERS):
        return []
    found = [
        *_connect(group),
        *_user_data(group),
        *_assignor(group),
        *_members(group),
        *_racks(group),
        *_settings(group),
    ]
    return sorted(found, key=lambda remark: list(Severity).index(remark.severity))


def _connect(group: Readiness) -> Iterator[Remark]:
    if group.problem.facts.application == CONNECT:
        yield Remark(
            "connect", Severity.CHECK,
            "the members are sink tasks of a connector: a task cannot be configured or restarted with settings of its "
            "own",
            "set consumer.override.group.protocol in the connector's configuration, which restarts its tasks together",
        )  # fmt: skip


def _user_data(group: Readiness) -> Iterator[Remark]:
    if group.is_streams:
        yield Remark(
            "streams", Severity.STOPS,
            f"a Kafka Streams application ({group.problem.facts.application_shown_by}): group.protocol=consumer is not "
            "for Streams, and brokers refuse the online upgrade of assignments with user data, which Streams sends",
            "upgrade the application to the streams protocol (group.protocol=streams, KIP-1071) after a stop",
        )  # fmt: skip
        return
    with_data = sorted(name for name, size in group.user_data.items() if size)
    cooperative = group.assignor == COOPERATIVE_STICKY
    if with_data or group.sends_later:
        named = f"with the assignments of {some(with_data, MOST_NAMED)}" if with_data else "from the next rebalance on"
        yield Remark(
            "user-data", Severity.STOPS,
            f"the assignor {group.assignor} sends user data {named}: brokers refuse the online upgrade",
            (_COOPERATIVE_TO_RANGE if cooperative else "roll the group to range first")
            + ", or stop all members and start them with group.protocol=consumer",
        )  # fmt: skip
    elif cooperative and group.problem.facts.client is None:
        yield Remark(
            "user-data", Severity.CHECK,
            "the client library is unknown: librdkafka (confluent-kafka) sends user data with cooperative-sticky from "
            "the second rebalance on, and brokers then refuse the online upgrade",
            f"with librdkafka, {_COOPERATIVE_TO_RANGE}",
        )  # fmt: skip
    elif group.online is Online.UNKNOWN:
        yield Remark(
            "user-data", Severity.CHECK,
            f"the input does not show whether the assignor {group.assignor or '(unknown)'} sends user data with its "
            "assignments; if it does, brokers refuse the online upgrade",
            "read the group from kafka://HOST:PORT or with evenlag snapshot while it is stable",
        )  # fmt: skip


def _assignor(group: Readiness) -> Iterator[Remark]:
    name = group.assignor
    if name is not None and not group.is_streams:
        uses = "" if name in KAFKAS else f" and {name} is no longer used"
        yield Remark(
            "assignor", Severity.CHANGES,
            f"the broker assigns{uses}; a Java consumer does not start if partition.assignment.strategy is set",
            "remove that setting; group.remote.assignor names the broker's assignor",
        )  # fmt: skip
    if name in OURS:
        python = "" if name == PLAN else "; kafka-python and aiokafka do not support KIP-848, so take another client"
        yield Remark(
            "plans", Severity.CHANGES,
            f"no plan of evenlag's is computed or followed in rebalances{python}",
            "bring the best plan into force before the upgrade, or let the brokers follow it (docs/java-brokers.md)",
        )  # fmt: skip
        yield Remark(
            "enforce-rebalance", Severity.CHANGES,
            "a request for a rebalance (enforceRebalance, PlanWatcher, rejoin_if_better) has no effect",
            "remove it",
        )  # fmt: skip
    if name in EAGER:
        yield Remark(
            "eager", Severity.CHANGES,
            f"{name} is eager: until a member is restarted, it gives up all its partitions at each rebalance; the "
            "group may have members of both protocols meanwhile",
            "nothing to do: restarted members keep the partitions that do not move",
        )  # fmt: skip
    if not group.problem.equal_weights:
        yield Remark(
            "weights", Severity.CHANGES,
            "members have different weights, but a broker gives all of them as many partitions",
            "give all consumers the same capacity, or let them follow a plan (docs/follow.md)",
        )  # fmt: skip


def _members(group: Readiness) -> Iterator[Remark]:
    if group.static:
        yield Remark(
            "static", Severity.CHANGES,
            f"{_counted(group.static)} with a group.instance.id: a restarted member gets its partitions back and no "
            "assignor is asked, so today's assignment stays",
            "keep each group.instance.id; the assignor is asked when a member joins or leaves, or a topic changes",
        )  # fmt: skip
    if group.dynamic:
        yield Remark(
            "dynamic", Severity.CHANGES,
            f"{_counted(group.dynamic)} without a group.instance.id: the partitions of a restarted member go to "
            "others, and it comes back as a new member that gets different ones",
            "give each consumer a group.instance.id in an earlier rolling restart; then the upgrade moves nothing",
        )  # fmt: skip
    patterns = [name for name, each in group.problem.origin.registrations.items() if each.topics_regex]
    if patterns:
        yield Remark(
            "regex", Severity.CHANGES,
            f"{_counted(sorted(patterns))} with a regular expression, which the broker reads as RE2",
            "check that it has no back references and no look-around",
        )  # fmt: skip


def _racks(group: Readiness) -> Iterator[Remark]:
    if group.crossings and group.assignor in (*RACK_AWARE, *OURS):
        counted = ", ".join(f"{name} {cost:,}" for name, cost in group.crossings.items())
        yield Remark(
            "racks", Severity.CHANGES,
            f"a broker's uniform and range do not look at racks; reads across racks: {counted}",
            "bring a plan with few such reads into force before the upgrade, or follow one (docs/racks.md)",
        )  # fmt: skip


def _settings(group: Readiness) -> Iterator[Remark]:
    yield Remark(
        "session-timeout", Severity.CHANGES,
        "a Java consumer does not start if session.timeout.ms or heartbeat.interval.ms is set; the broker's values "
        "are in force",
        "remove both; if needed, set consumer.session.timeout.ms and consumer.heartbeat.interval.ms of the group",
    )  # fmt: skip
    if group.assignor not in OURS:
        yield Remark(
            "application", Severity.CHECK,
            "evenlag cannot see these in an application: enforceRebalance has no effect any more, and brokers read "
            "subscriptions by SubscriptionPattern (Java) or ^… (librdkafka) as RE2; java.util.regex.Pattern works as "
            "before",
            "search the application's code for them",
        )  # fmt: skip


def steps(group: Readiness, uses: str) -> list[Step]:
    """Return the steps of an upgrade to the broker's assignor `uses`; none if there is nothing to upgrade."""
    name = quote(group.problem.group)  # for the shell
    if group.online in (Online.NOT_KAFKAS, Online.NO_MEMBERS) or group.is_streams:
        return []
    plans = Step(
        "To bring a plan into force from then on, put BrokerPlanAssignor into the brokers (docs/java-brokers.md), "
        "restart each member with its name, and publish plans. The broker's own assignors take up no plan.",
        (
            "group.consumer.assignors=uniform,range,io.evenlag.BrokerPlanAssignor",
            "set     group.remote.assignor=evenlag-plan",
            f"evenlag snapshot --bootstrap-server HOST:PORT --group {name} --out snapshot",
            "evenlag plan snapshot/offsets.csv --members snapshot/members.csv --out plan.json",
            "evenlag publish plan.json kafka://HOST:PORT/plans",
        ),
    )
    if group.online is Online.DONE:
        return [plans]
    stop = group.online is Online.REFUSED
    describe = f"kafka-consumer-groups --bootstrap-server HOST:PORT --describe --group {name}"
    settings = (
        "set     group.protocol=consumer",
        f"set     group.remote.assignor={uses}",
        "remove  partition.assignment.strategy, session.timeout.ms, heartbeat.interval.ms",
        *(("keep    group.instance.id",) if group.static else ()),
    )
    first = Step(
        "Check the brokers: Kafka 4.0 or newer, these two settings (the defaults), and the feature group.version at "
        "level 1. A cluster that was upgraded from 3.x has level 0 until you run the last command.",
        (
            "group.consumer.migration.policy=bidirectional",
            "group.consumer.assignors=uniform,range",
            "kafka-features --bootstrap-server HOST:PORT describe",
            "kafka-features --bootstrap-server HOST:PORT upgrade --feature group.version=1",
        ),
    )
    restart = Step(
        "Stop all members, wait until the group is empty, and start them with these settings."
        if stop
        else "Restart one member with these settings. Wait until the group is stable before the next one.",
        settings,
    )
    state = Step("Check the state and the assignments.", (f"{describe} --state", describe))
    back = Step(
        "To go back, restart each member with group.protocol=classic and its earlier settings. The group is classic "
        "again once no member uses the new protocol."
    )
    return [first, restart, state, plans, back]


def _counted(names: Sequence[str]) -> str:
    return f"{quantity(len(names), 'member')} ({some(names, MOST_NAMED)})"
