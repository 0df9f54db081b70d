"""A group in the answers of monitors, and what of it they can tell."""

import json
from dataclasses import replace

from evenlag.figures import some
from evenlag.tables.formats.exporters import COLUMNS, Exporter
from tests.support.told_groups import Group, Member, Partition
from tests.support.told_texts import kafka_lag


def figures(exporter: Exporter, each: Partition) -> dict[str, int]:
    """Return the values of a partition's series, by column."""
    lag = kafka_lag(each)
    values = {"log_end_offset": each.end, "log_start_offset": each.start}
    if lag is not None:
        values |= {"lag": max(lag, 0), "current_offset": each.current}
    elif exporter.without_commit:
        values |= {"lag": -1, "current_offset": -1}
    return {
        name: value
        for name, value in values.items()
        if value is not None and each.end is not None and getattr(exporter, name) is not None
    }


def labels(exporter: Exporter, group: Group, column: str, each: Partition | None = None) -> dict[str, str]:
    """Return the labels of a series."""
    every = {exporter.group: group.name}
    if each is not None:
        every |= {exporter.topic: each.topic, exporter.partition: str(each.number)}
    mine = {label: every[label] for label in exporter.needs(column)}
    if exporter.kind:
        mine[exporter.kind] = exporter.kinds[column]
    if each is not None and exporter.owner and column in ("lag", "current_offset"):
        owner = group.member(each.owner)
        mine[exporter.owner] = owner.name if owner else exporter.nobody or ""
        for label, value in ((exporter.client, owner and owner.client), (exporter.host, owner and owner.host)):
            if label:
                mine[label] = value or ""
    return mine


def series(exporter: Exporter, group: Group) -> list[tuple[str, dict[str, str], int]]:
    """Return the series of a group: name, labels and value of each."""
    found = [
        (getattr(exporter, column), labels(exporter, group, column, each), value)
        for each in group.partitions
        for column, value in figures(exporter, each).items()
    ]
    if exporter.members:
        found.append((exporter.members, labels(exporter, group, "members"), len(group.members)))
    if exporter.info and exporter.state and exporter.assignor:
        mine = labels(exporter, group, "info")
        found.append((exporter.info, mine | {exporter.state: group.state, exporter.assignor: group.assignor or ""}, 1))
    return found


def exposition(exporter: Exporter, group: Group) -> str:
    """Return the text that an exporter exposes."""
    lines = []
    for name, mine, value in series(exporter, group):
        listed = ",".join(f'{label}="{text}"' for label, text in mine.items())
        lines.append(f"{name}{{{listed}}} {value}")
    return "\n".join([f"# TYPE {getattr(exporter, _lag(exporter))} gauge", *lines]) + "\n"


def promql(exporter: Exporter, group: Group) -> str:
    """Return the answer of Prometheus to a query for an exporter's series; it drops labels without a value."""
    result = [
        {
            "metric": {"__name__": name, **{label: text for label, text in mine.items() if text}},
            "value": [1795168800, str(value)],
        }
        for name, mine, value in series(exporter, group)
    ]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


def _lag(exporter: Exporter) -> str:
    return next(column for column in COLUMNS if getattr(exporter, column))


def tells_members(exporter: Exporter) -> bool:
    """Return whether an exporter names owners or counts members; else members are given by name."""
    return bool(exporter.owner or exporter.members)


def facts_told(exporter: Exporter) -> str:
    """Return the words of `told_reference.TELLS` for what an exporter tells."""
    words = ["idle", *([] if tells_members(exporter) else ["topics"])]
    words += ["owners"] if exporter.owner else []
    words += ["client"] if exporter.client else []
    words += ["start"] if exporter.log_start_offset else []
    words += ["count"] if exporter.members else []
    words += ["state", "assignor"] if exporter.info else []
    return " ".join(words)


# ---- what they tell --------------------------------------------------------------------------------------------------


def reported(exporter: Exporter, group: Group, *, drops_empty: bool = False) -> tuple[Group, list[str]] | None:
    """Return the group as an exporter's series show it, and notes on the gaps; None if they cannot show it at all.

    Where Prometheus `drops_empty` labels and no partition has an owner, nothing tells that the exporter names owners.
    """
    if group.is_huge or not (tells_members(exporter) or group.members):
        return None
    notes = []
    known = [each for each in group.partitions if each.end is not None]
    committed = [each for each in known if each.current is not None]
    read = {each.topic for each in committed}
    if exporter.without_commit:
        if read and (unread := {each.topic for each in known} - read):
            notes.append(
                f"{some(sorted(unread))}: no commits in any partition, so the group is assumed not to read the topic; "
                "left out"
            )
            known = [each for each in known if each.topic in read]
    else:
        known = [each for each in known if each.topic in read] if exporter.log_end_offset else committed
        silent = [each for each in known if each.current is None]
        if silent and exporter.owner:
            names = [f"{each.topic}-{each.number}" for each in silent]
            notes.append(f"{some(sorted(names))}: reported without a commit and an owner; taken as held by nobody")
        known = [replace(each, owner=None) if each in silent else each for each in known]
    if not known:
        return None
    notes += _gaps(known)
    if not exporter.owner:
        known = [replace(each, owner=None) for each in known]
    if exporter.lag:  # a lag below 0 shows as 0, and the commit follows from lag and end
        known = [
            replace(each, current=None if each.current is None else min(each.current, each.end or 0)) for each in known
        ]
    is_silent = drops_empty and exporter.nobody is None and not any(each.owner for each in known)
    if is_silent and not exporter.members and exporter.owner:
        return None
    names_owners = exporter.owner is not None and not is_silent
    return _with_placeholders(exporter, replace(group, partitions=tuple(known)), notes, names_owners=names_owners)


def _gaps(known: list[Partition]) -> list[str]:
    gaps = []
    for topic in sorted({each.topic for each in known}):
        numbers = {each.number for each in known if each.topic == topic}
        missing = [number for number in range(max(numbers)) if number not in numbers]
        many = len(missing) > len(numbers)
        gaps += [f"{len(missing)} of {topic}"] if many else [f"{topic}-{number}" for number in missing]
    said = "not reported, although the topic has higher partition numbers; left out of the plan"
    return [f"{some(sorted(gaps))}: {said}"] if gaps else []


def _with_placeholders(
    exporter: Exporter, group: Group, notes: list[str], *, names_owners: bool
) -> tuple[Group, list[str]]:
    """Return a group with the members that an exporter names, and names for those that it counts."""
    owners = {each.owner for each in group.partitions} - {None}
    named = [each for each in group.members if each.name in owners or not tells_members(exporter)]
    if not names_owners:
        notes.append(
            f"{exporter.name} does not report the owners of partitions, so the current assignment is unknown and the "
            "plan is computed without it"
        )
    more = len(group.members) - len(named) if exporter.members else 0
    stand = "member-1 stands" if more == 1 else f"member-1 … member-{more} stand"
    if exporter.members and not group.members:
        notes.append("the group currently has no members; name those to plan for with `members`")
    elif more and names_owners:
        noun = "1 more member" if more == 1 else f"{more} more members"
        notes.append(f"the group has {noun}, without partitions and names; {stand} for {'it' if more == 1 else 'them'}")
    elif more:
        noun = "1 member without a name" if more == 1 else f"{more} members without names"
        pronoun = "it" if more == 1 else "them"
        notes.append(f"the group has {noun}; {stand} for {pronoun}; name {pronoun} with `members`")
    free = [Member(f"member-{number}", "", "", (), "classic") for number in range(1, more + 1)]
    return replace(group, members=tuple(sorted([*named, *free], key=lambda each: each.name))), notes


# ---- monitors that answer in JSON about one group --------------------------------------------------------------------


def burrow(group: Group) -> str:
    """Return Burrow's answer about a group, in which a partition without a commit has no end."""
    partitions = []
    for each in group.partitions:
        owner, lag = group.member(each.owner), kafka_lag(each)
        end = None if lag is None else {"offset": each.current, "timestamp": 1, "lag": max(lag, 0)}
        partitions.append(
            {
                "topic": each.topic,
                "partition": each.number,
                "owner": owner.host if owner else "",
                "client_id": owner.client if owner else "",
                "status": "OK",
                "start": end,
                "end": end,
                "current_lag": max(lag or 0, 0),
                "complete": 1.0,
            }
        )
    status = {
        "cluster": "c", "group": group.name, "status": "OK", "complete": 1, "partitions": partitions,
        "partition_count": len(partitions),
    }  # fmt: skip
    request = {"url": f"/v3/kafka/c/consumer/{group.name}/lag", "host": "h"}
    return json.dumps({"error": False, "message": "consumer status returned", "status": status, "request": request})


def of_burrow(group: Group) -> tuple[Group, list[str]] | None:
    """Return a group as Burrow shows it: members by client id and host, and no log ends without a commit."""
    names = {each.name: f"{each.client}_{each.host}" for each in group.members}
    partitions = []
    for each in group.partitions:
        owner, lag = names.get(each.owner or ""), kafka_lag(each)
        blank = replace(each, start=0, owner=owner, current=0, end=0)
        partitions.append(blank if lag is None else replace(blank, end=max(lag, 0)))
    unknown = [f"{each.topic}-{each.number}" for each in group.partitions if kafka_lag(each) is None]
    notes = [f"{some(sorted(unknown))}: lag unknown, as there is no commit or no log end offset; lag taken as 0"]
    notes = (notes if unknown else []) + _gaps(list(group.partitions))
    members = {names[each.name]: replace(each, name=names[each.name], topics=()) for each in group.members}
    if not any(each.owner for each in group.partitions):
        return None
    notes.append("Burrow names members by client id and host: members that share both count as one")
    owned = {each.owner for each in partitions}
    found = tuple(sorted((each for name, each in members.items() if name in owned), key=lambda each: each.name))
    return replace(group, partitions=tuple(partitions), members=found), notes


def confluent(group: Group) -> list[dict[str, object]]:
    """Return the lags of Confluent's REST API."""
    lags: list[dict[str, object]] = []
    for each in group.partitions:
        owner = group.member(each.owner)
        of_owner = {
            "consumer_id": each.owner or "",
            "instance_id": (owner and owner.instance) or "",
            "client_id": owner.client if owner else "",
        }
        place = {
            "cluster_id": "c",
            "consumer_group_id": group.name,
            "topic_name": each.topic,
            "partition_id": each.number,
        }
        current = -1 if each.current is None else each.current
        offsets = {"current_offset": current, "log_end_offset": each.end, "lag": kafka_lag(each)}
        if each.end is not None:
            lags.append({**place, **of_owner, **offsets})
    return lags


def confluent_api(group: Group) -> str:
    """Return two pages of Confluent's REST API."""
    lags = confluent(group)
    half = len(lags) // 2
    pages = [
        {"kind": "KafkaConsumerLagList", "metadata": {"next": following}, "data": data}
        for data, following in ((lags[:half], "https://x/2"), (lags[half:], None))
    ]
    return "\n".join(map(json.dumps, pages))


def confluent_table(group: Group) -> str:
    """Return the table of Confluent's command."""
    titles = {
        "Cluster": "cluster_id", "Consumer Group": "consumer_group_id", "Lag": "lag",
        "Log End Offset": "log_end_offset", "Current Offset": "current_offset", "Consumer": "consumer_id",
        "Instance": "instance_id", "Client": "client_id", "Topic": "topic_name", "Partition": "partition_id",
    }  # fmt: skip
    rows = [[*titles], *([_shown(lag[name]) for name in titles.values()] for lag in confluent(group))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [" | ".join(f" {cell:{width}} " for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([lines[0], "+".join("-" * (width + 3) for width in widths), *lines[1:]]) + "\n"


def _shown(value: object) -> str:
    return "" if value is None else str(value)


def of_confluent(group: Group) -> tuple[Group, list[str]] | None:
    """Return a group as Confluent shows it: only partitions with a log end, and their owners."""
    known = tuple(each for each in group.partitions if each.end is not None)
    owners = {each.owner for each in known}
    members = tuple(each for each in group.members if each.name in owners)
    return replace(group, partitions=known, members=members), _gaps(list(known))
