"""The problem, facts and notes that a form of a group must give: what the form tells, and what follows from it.

It shares no rule with the readers, only sentences of `Facts`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

import evenlag
from evenlag.figures import some
from evenlag.model.facts import Facts, LeftOver
from tests.support.told_groups import Group, Member, Partition

TELLS = (
    "owners",  # of partitions
    "idle",  # members without partitions
    "topics",  # subscriptions
    "assignment",  # partitions of each member in place of subscriptions
    "nobody",  # a table of members, which has no row of an empty group
    "start",  # log start offsets
    "whole",  # the lag of partitions without a commit, from their whole log
    "final",  # lags as they were resolved, so that no note says how
    "zero",  # with it, also of an empty log
    "rows",  # members without partitions in rows of their own, which an input without such members lacks
    "statics",  # instance ids of owners, in a column that an input without static owners lacks
    "twice",  # that in two texts
    "loop",  # an earlier description
    "message",  # the state in a message: none, that there are no members, or that the group is rebalancing
    "state", "assignor", "epoch", "assignment_epoch",
    "count",  # of members
    "protocol",
    "classic",  # members of a KIP-848 group that are still classic
    "instance", "client", "rack", "generation",
)  # fmt: skip
"""What a form can tell of a group beyond topics, partitions and lags."""

ONLY_OWNERS = (
    "no members table: the owners of partitions are assumed to be the members, each subscribed to all topics with "
    "owners"
)
NO_OWNERS = (
    "no members table, and no partition has an owner: it is assumed that the group has no members; if it has, give a "
    "members table"
)
_PRINTED = re.compile(r"^.*: Kafka printed(?: 2 such messages; the last is line \d+)?: ")  # with its place
OF_CLIENTS = ("roundrobin", "sticky", "cooperative-sticky", "stream")


@dataclass
class Told:
    """A group as a form tells it."""

    lags: dict[tuple[str, int], int]
    owners: dict[tuple[str, int], str]
    members: dict[str, dict[str, Any]]
    facts: Facts
    notes: list[str] = field(default_factory=list)


def of_problem(problem: evenlag.Problem) -> Told:
    """Return a problem as a form must tell it."""
    registrations = problem.origin.registrations
    document = problem.to_dict()["members"]
    lags = problem.lags.tolist()
    owners = zip(problem.partitions, problem.owner.tolist(), strict=True)
    return Told(
        dict(zip(problem.partitions, lags, strict=True)),
        {place: problem.members[owner] for place, owner in owners if owner >= 0},
        {
            name: {
                "topics": each["topics"], "generation": each["generation"], "rack": each.get("rack"),
                "instance": registrations[name].group_instance_id if name in registrations else None,
            }
            for name, each in document.items()
        },
        problem.facts,
        sorted(_PRINTED.sub("Kafka printed: ", note) for note in problem.warnings),
    )  # fmt: skip


def reference(group: Group, tells: Iterable[str], source: str) -> Told:
    """Return a group as a form tells it; `source` is the name of the form in notes."""
    can = {*tells}
    there = [each for each in group.partitions if each.end is not None]
    held = {each.place: each.owner for each in group.partitions if each.owner and "owners" in can}
    members = [each for each in group.members if "idle" in can or each.name in held.values()]
    is_table = _is_table(group, can, members)
    facts, notes = _facts(group, can, members), _lag_notes(group, there, can)
    topics = {each.topic for each in there}
    with_owners = {topic for topic, _ in held} & topics or topics
    if members and "topics" not in can:
        left_over = topics - with_owners
        facts["left_over"] = tuple(_left_over(topic, there, can) for topic in sorted(left_over))
        facts["assumed"] = {"subscriptions": _assumed(group, can, members, source, bool(held), is_table=is_table)}
        if not (is_table and "assignment" in can):
            notes += _doubts(topics, held, {each.place for each in there})
    elif not members and "nobody" not in can and facts.get("state") != "Empty":
        facts["assumed"] = {"membership": NO_OWNERS}
    told = {each.name: _member(group, each, can, topics, with_owners) for each in members}
    strange = sum(len({*each} - topics) for each in (_topics(group, each, can, with_owners) for each in members))
    if strange:
        notes.append(f"{strange} subscriptions ignored: the topic has no partitions in the input")
    if "loop" in can:
        notes.append("2 snapshots in the file; planning for the latest, 2026-11-20T10:01:00Z")
    if "message" in can and group.state == "Empty":
        notes.append(f"Kafka printed: Consumer group '{group.name}' has no active members.")
    elif "message" in can and group.is_rebalancing:
        notes += [f"Kafka printed: Warning: Consumer group '{group.name}' is rebalancing."] * (1 + ("twice" in can))
    if "nobody" in can and not group.members:
        notes.append(
            f"{source}: has no row of group {group.name!r}, so the group has no members; check that `group` and "
            "`snapshot_ts` match in both tables"
        )
    if "final" in can:
        notes = []
    found = Facts(**_completed(group, facts, members, topics, can))
    return Told(
        {each.place: _lag(each, can) for each in there},
        {place: owner for place, owner in held.items() if place in {each.place for each in there}},
        told,
        found,
        sorted([*notes, *found.notes()]),
    )


def _is_table(group: Group, can: set[str], members: list[Member]) -> bool:
    """Return whether a form has rows of members, rather than of owners alone."""
    if "rows" in can:
        return any(not group.held(each.name) for each in members)
    return bool(members) and ("idle" in can or ("statics" in can and any(each.instance for each in members)))


def _lag(each: Partition, can: set[str]) -> int:
    assert each.end is not None
    start = each.start if "start" in can else 0
    if each.current is None:
        return each.end - start if "whole" in can else 0
    return max(each.end - max(each.current, start), 0)


def _lag_notes(group: Group, there: list[Partition], can: set[str]) -> list[str]:
    notes = []
    if unknown := [_label(each) for each in group.partitions if each.end is None]:
        notes.append(
            f"{some(sorted(unknown))}: lag unknown, as there is no log end offset (no leader, no permission, or the "
            "topic was deleted); left out of the plan, so not moved"
        )
    absent = [each for each in there if each.current is None]
    told = [each for each in absent if "whole" in can and (each.end or "zero" in can)]
    reported, reset = map(_label, told), [_label(each) for each in absent if each not in told]
    if reset:
        notes.append(f"{some(sorted(reset))}: never committed; lag taken as 0 (auto.offset.reset latest)")
    if told:
        notes.append(f"{some(sorted(reported))}: never committed; lag taken as the text reports it")
    beyond = sum(each.current is not None and each.current > (each.end or 0) for each in there)
    if beyond:
        notes.append(f"{_counted(beyond, 'commit')} beyond the log end: lag taken as 0")
    before = sum(each.current is not None and each.current < each.start for each in there)
    if before and "start" in can:
        notes.append(f"{_counted(before, 'commit')} before the log start: lag counted from the log start")
    return notes


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _label(each: Partition) -> str:
    return f"{each.topic}-{each.number}"


def _topics(group: Group, member: Member, can: set[str], with_owners: set[str]) -> set[str]:
    if "topics" in can:
        return {*member.topics}
    mine = {each.topic for each in group.held(member.name)}
    return mine if "assignment" in can and mine else with_owners


def _member(group: Group, member: Member, can: set[str], topics: set[str], with_owners: set[str]) -> dict[str, Any]:
    return {
        "topics": sorted(_topics(group, member, can, with_owners) & topics),
        "generation": group.epoch if "generation" in can else None,
        "rack": member.rack if "rack" in can else None,
        "instance": member.instance if "instance" in can else None,
    }


def _left_over(topic: str, there: list[Partition], can: set[str]) -> LeftOver:
    lags = [_lag(each, can) for each in there if each.topic == topic]
    return LeftOver(topic, len(lags), sum(lags))


def _assumed(
    group: Group, can: set[str], members: list[Member], source: str, has_owners: bool, *, is_table: bool
) -> str:
    if not is_table:
        return ONLY_OWNERS
    every = "all topics with owners" if has_owners else "all topics"
    begin = f"{source}: lists no subscriptions, so each member is assumed to subscribe to "
    idle = sum(not group.held(each.name) for each in members)
    if "assignment" not in can or idle == len(members):
        return begin + every
    idle_read = f"; {idle} without a partition: to {every}" if idle else ""
    change = "; to change this, give a members table with the topics of each member"
    return f"{begin}the topics in its ASSIGNMENT only{idle_read}{change}"


def _doubts(topics: set[str], held: dict[tuple[str, int], str], known: set[tuple[str, int]]) -> list[str]:
    """Return a note if the topics fall into parts that no owner joins, although an owner could."""
    owned = {place: owner for place, owner in held.items() if place in known}
    counts = [[*owned.values()].count(owner) for owner in owned.values()]
    if len(topics) < 2 or max(counts, default=0) < 2:
        return []
    part = {topic: topic for topic, _ in owned}
    for (one, _), mine in owned.items():
        for (other, _), theirs in owned.items():
            if mine == theirs and part[one] != part[other]:
                low, high = sorted((part[one], part[other]))
                part = {topic: low if name == high else name for topic, name in part.items()}
    first = min(part)
    apart = sorted(topic for topic in part if part[topic] != part[first])
    if not apart:
        return []
    return [
        f"no owner holds partitions of both {first} and {apart[0]}: if not every member subscribes to both, give a "
        "members table with the topics of each member"
    ]


# ---- facts -----------------------------------------------------------------------------------------------------------


def _facts(group: Group, can: set[str], members: list[Member]) -> dict[str, Any]:
    """Return what a form tells itself; a table of members tells facts of the group only in the rows of members."""
    by_rows = "nobody" in can
    if by_rows and not members:
        return {}
    facts: dict[str, Any] = {}
    if "message" in can:
        facts["state"] = "Empty" if group.state == "Empty" else "rebalancing" if group.is_rebalancing else None
    if "state" in can:
        facts["state"] = group.state
    if "assignor" in can:
        facts["assignor"] = group.assignor
    if "epoch" in can:
        facts["group_epoch"] = group.epoch
    if "assignment_epoch" in can and (members or "epoch" in can):
        facts["assignment_epoch"] = group.assignment_epoch
    if "count" in can:
        facts["members"] = len(group.members)
    if "protocol" in can and (members or "epoch" in can):
        facts["protocol"] = group.protocol
        if group.protocol == "consumer" and "classic" in can:
            facts["classic_members"] = sum(each.protocol == "classic" for each in members) or None
    return facts


def _completed(
    group: Group, facts: dict[str, Any], members: list[Member], topics: set[str], can: set[str]
) -> dict[str, Any]:
    """Add what follows from facts and names."""
    assignor = facts.get("assignor")
    if facts.get("protocol") is None:
        if assignor == "uniform" or facts.get("group_epoch") is not None:
            facts["protocol"] = "consumer"
        elif assignor in OF_CLIENTS:
            facts["protocol"] = "classic"
    if members and facts.get("members", 0) > len(members):
        few = f"the group has {facts['members']} members, but the input names {len(members)}"
        facts.setdefault("assumed", {})["members"] = (
            f"{few}; the plan covers only these; to plan for all, give a members table"
        )
    facts["application"], facts["application_shown_by"] = _application(group, assignor, members, topics, can)
    assert {*facts} <= {each.name for each in fields(Facts)}
    return facts


def _application(
    group: Group, assignor: str | None, members: list[Member], topics: set[str], can: set[str]
) -> tuple[str | None, str | None]:
    if assignor == "stream":
        return "streams", "assignor stream"
    for member in members:
        shown = [member.name, *([member.client] if "client" in can else [])]
        for name in shown:
            if "-StreamThread-" in name:
                return "streams", f"client id {name.split('-StreamThread-')[0]}-StreamThread-…"
            if name.startswith("connector-consumer-"):
                return "connect", "client ids connector-consumer-…"
    for topic in sorted(topics):
        if topic.startswith(f"{group.name}-") and topic.endswith("-changelog"):
            return "streams", f"internal topic {topic}"
    return None, None
