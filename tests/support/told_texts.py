"""A group in the texts of the tools that describe groups: Kafka's of several versions, rpk, kcl, Kafbat and Kestra."""

import csv
import io
import json
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.support.describe_texts import aligned
from tests.support.told_groups import Group, Member, Partition

NOTHING = "-"
NAMES = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")
LEAST = (15, 15, 10, 15, 15, 15, 15, 15, 0)
STAMPS = ("2026-11-20 10:00:00Z", "2026-11-20 10:01:00Z")


def dashed(value: object) -> str:
    """Return a value as Kafka's tools print it."""
    return NOTHING if value is None else str(value)


def kafka_lag(each: Partition) -> int | None:
    """Return the lag that Kafka's tools print."""
    return None if each.end is None or each.current is None else each.end - each.current


# ---- kafka-consumer-groups -------------------------------------------------------------------------------------------


def _message(group: Group) -> str:
    if group.state == "Empty":
        return f"\nConsumer group '{group.name}' has no active members.\n"
    return f"\nWarning: Consumer group '{group.name}' is rebalancing.\n" if group.is_rebalancing else ""


def _rows(group: Group, idle: bool = False) -> list[tuple[str, ...]]:
    rows = []
    for each in group.partitions:
        owner = group.member(each.owner)
        fields = (each.topic, each.number, each.current, each.end, kafka_lag(each), each.owner)
        rows.append(
            (group.name, *map(dashed, fields), owner.host if owner else NOTHING, owner.client if owner else NOTHING)
        )
    if idle:
        nowhere = [each for each in group.members if not group.held(each.name)]
        rows += [(group.name, *[NOTHING] * 5, each.name, each.host, each.client) for each in nowhere]
    return rows


def offsets(group: Group) -> str:
    """Return `--describe` of Kafka 2 to 4."""
    return _message(group) + "\n" + "\n".join(aligned([NAMES, *_rows(group)], LEAST, fitted=(0, 1, 6, 7))) + "\n"


def offsets_and_idle(group: Group) -> str:
    """Return `--describe` of Kafka 0.10.1 to 2, which has members without partitions and no column GROUP."""
    lines = aligned([NAMES, *_rows(group, idle=True)], LEAST, fitted=(0, 1, 6, 7), first=1)
    return _message(group) + "\n" + "\n".join(lines) + "\n"


def offsets_verbose(group: Group) -> str:
    """Return `--describe --offsets --verbose` of Kafka 4, with the epochs of leaders."""
    rows = [(*row[:3], "5", *row[3:]) for row in _rows(group)]
    names = (*NAMES[:3], "LEADER-EPOCH", *NAMES[3:])
    lines = aligned([names, *rows], (*LEAST[:3], 15, *LEAST[3:]), fitted=(0, 1, 7, 8))
    return _message(group) + "\n" + "\n".join(lines) + "\n"


def commas(group: Group) -> str:
    """Return the table of Kafka 0.8 and 0.9, with commas and unknown values in words."""
    lines = ["GROUP, TOPIC, PARTITION, CURRENT OFFSET, LOG END OFFSET, LAG, OWNER"]
    for each in group.partitions:
        numbers = ("unknown" if value is None else str(value) for value in (each.current, each.end, kafka_lag(each)))
        lines.append(", ".join([group.name, each.topic, str(each.number), *numbers, each.owner or "none"]))
    return "\n".join(lines) + "\n"


def checker(group: Group) -> str:
    """Return the table of ConsumerOffsetChecker."""
    lines = [f"{'Group':15} {'Topic':30} {'Pid':3} {'Offset':15} {'logSize':15} {'Lag':15} Owner"]
    for each in group.partitions:
        current = -1 if each.current is None else each.current
        end, lag = ("unknown" if value is None else str(value) for value in (each.end, kafka_lag(each)))
        numbers = f"{each.number:<3} {current:<15} {end:15} {lag:15}"
        lines.append(f"{group.name:15} {each.topic:30} {numbers} {each.owner or 'none'}")
    return "\n".join(lines) + "\n"


def _held(group: Group, member: Member, begin: str, end: str, between: str, nothing: str = NOTHING) -> str:
    held: dict[str, list[str]] = {}
    for each in group.held(member.name):
        held.setdefault(each.topic, []).append(str(each.number))
    return between.join(f"{topic}{begin}{','.join(numbers)}{end}" for topic, numbers in held.items()) or nothing


def members(group: Group, *, verbose: str = "") -> str:
    """Return `--describe --members`; with `verbose`, the columns of Kafka "2" or "4"."""
    if not group.members:
        return _message(group)
    static = any(each.instance for each in group.members)
    half = len({each.protocol for each in group.members}) > 1
    names = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if static else []), "HOST", "CLIENT-ID", "#PARTITIONS"]
    rows: list[Sequence[str]] = []
    for each in group.members:
        number = len(group.held(each.name))
        row = [group.name, each.name, *([each.instance or ""] if static else []), each.host, each.client, str(number)]
        if verbose == "2":
            row += [_held(group, each, "(", ")", ", ")]
        elif verbose == "4":
            assignment = _held(group, each, ":", "", ";")
            row += [dashed(group.epoch), assignment]
            row += [dashed(group.assignment_epoch), assignment if group.protocol == "consumer" else NOTHING]
            row += [str(each.protocol == "consumer").lower()] if half else []
        rows.append(row)
    if verbose == "2":
        names += ["ASSIGNMENT"]
    elif verbose == "4":
        names += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        names += ["UPGRADED"] if half else []
    least = [max(15, len(name)) for name in names]
    lines = aligned([names, *rows], least, fitted=range(len(names)))
    return _message(group) + "\n" + "\n".join(lines) + "\n"


def state(group: Group, *, verbose: bool = False) -> str:
    """Return `--describe --state`, with `verbose` that of Kafka 4 with epochs."""
    names = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    row = [group.name, "192.0.2.9:9092  (1)", group.assignor or NOTHING, group.state]
    least = [15, 25, 20, 20]
    if verbose:
        names += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row += [dashed(group.epoch), dashed(group.assignment_epoch)]
        least += [15, 25]
    lines = aligned([[*names, "#MEMBERS"], [*row, str(len(group.members))]], [*least, 0], fitted=(0, 1))
    return _message(group) + "\n" + "\n".join(lines) + "\n"


def loop(group: Group) -> str:
    """Return a text of two descriptions with their times, the last of the group."""
    before = group.later(Random(1))
    return f"{STAMPS[0]}\n{offsets(before)}\n{STAMPS[1]}\n{offsets(group)}"


# ---- rpk and kcl -----------------------------------------------------------------------------------------------------


def whole_log_lag(each: Partition, *, start: bool) -> int | None:
    """Return the lag that these tools print: of a partition without a commit, that of its whole log."""
    if each.end is None:
        return None
    if each.current is None:
        return each.end - (each.start if start else 0)
    return each.end - each.current


def _summary(group: Group, coordinator: str) -> str:
    fields = {
        "GROUP": group.name, coordinator: "1", "STATE": group.state, "BALANCER": group.assignor or "",
        "MEMBERS": str(len(group.members)), "TOTAL-LAG": "1",
    }  # fmt: skip
    return "".join(f"{name:22}{value}\n" for name, value in fields.items())


def _tabbed(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as Go's tabwriter aligns them, at least two blanks apart."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    lines = aligned([names, *rows], [width + 1 for width in widths], fitted=())
    return "\n".join(lines) + "\n"


def rpk(group: Group) -> str:
    """Return `rpk group describe`."""
    static = any(each.instance for each in group.members)
    wrong = any(each.end is None for each in group.partitions)
    names = ["TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-START-OFFSET", "LOG-END-OFFSET", "LAG", "MEMBER-ID"]
    names += [*(["INSTANCE-ID"] if static else []), "CLIENT-ID", "HOST", *(["ERROR"] if wrong else [])]
    rows = []
    for each in group.partitions:
        owner, lag = group.member(each.owner), whole_log_lag(each, start=True)
        row = [each.topic, str(each.number), dashed(each.current), *map(str, rpk_log(each))]
        row += [NOTHING if each.end == 0 else str(-1 if lag is None else max(lag, 0))]
        row += [owner.name, *([owner.instance or ""] if static else []), owner.client, owner.host] if owner else [
            "", *([""] if static else []), "", ""
        ]  # fmt: skip
        rows.append([*row, *(["NOT_LEADER" if each.end is None else ""] if wrong else [])])
    return _summary(group, "COORDINATOR-NODE") + "\n" + _tabbed(names, rows)


def rpk_log(each: Partition) -> tuple[int, int]:
    """Return the ends of a log as rpk has them: −1 where it could not read them."""
    return (-1, -1) if each.end is None else (each.start, each.end)


def rpk_json(group: Group) -> str:
    """Return `rpk group describe --format json`."""
    partitions = []
    for each in group.partitions:
        owner, lag = group.member(each.owner), whole_log_lag(each, start=True)
        start, end = rpk_log(each)
        partitions.append(
            {
                "topic": each.topic,
                "partition": each.number,
                "log_start_offset": start,
                "log_end_offset": end,
                "current_offset": -1 if each.current is None else each.current,
                "lag": -1 if lag is None else max(lag, 0),
                "member_id": each.owner or "",
                "client_id": owner.client if owner else "",
                "host": owner.host if owner else "",
                "instance_id": owner.instance if owner else None,
            }
        )
    details = [
        {"member_id": each.name, "client_id": each.client, "host": each.host, "instance_id": each.instance}
        for each in group.members
    ]
    return json.dumps(
        [
            {
                "group_name": group.name,
                "state": group.state,
                "balancer": group.assignor or "",
                "members": len(group.members),
                "partitions": partitions,
                "members_details": details,
            }
        ]
    )


def kcl(group: Group, *, newer: bool = False) -> str:
    """Return `kcl group describe`, of the KIP-848 protocol or of a newer kcl with subscriptions and racks."""
    names = ["TOPIC", "PARTITION", "CURRENT-OFFSET", *(["LOG-START-OFFSET"] if newer else []), "LOG-END-OFFSET", "LAG"]
    names += ["MEMBER-ID", "CLIENT-ID", "HOST", *(["RACK", "ERROR", "MESSAGE"] if newer else [])]
    rows = []
    for each in group.partitions:
        owner = group.member(each.owner)
        lag = None if each.end == 0 and each.current is None else whole_log_lag(each, start=newer)
        start = [dashed(None if each.end is None else each.start)] if newer else []
        row = [each.topic, str(each.number), dashed(each.current), *start, dashed(each.end), dashed(lag)]
        row += [owner.name, owner.client, owner.host] if owner else [""] * 3
        if newer:
            row += [dashed(owner.rack) if owner else "", "NOT_LEADER" if each.end is None else "", ""]
        rows.append(row)
    text = _summary(group, "COORDINATOR") + _tabbed(names, rows)
    if not group.members:
        return text
    names = ["MEMBER-ID", "CLIENT-ID", "HOST", *(["RACK", "MEMBER-EPOCH", "SUBSCRIBED-TOPICS"] if newer else [])]
    names += ["ASSIGNMENT", *(["TARGET-ASSIGNMENT"] if newer else [])]
    rows = []
    for member in group.members:
        extras = f" (instance={member.instance})" if member.instance else ""
        row = [member.name, member.client, member.host + extras]
        if newer:
            row += [dashed(member.rack), dashed(group.epoch), ",".join(member.topics)]
        row += [_held(group, member, ":", "", " ", nothing="")]
        rows.append([*row, *([NOTHING] if newer else [])])
    return text + _tabbed(names, rows)


def kcl_json(group: Group, *, newer: bool = False) -> str:
    """Return `kcl group describe --format json`, of an older kcl or of a newer one with subscriptions and racks."""
    lags = []
    for each in group.partitions:
        owner, lag = group.member(each.owner), whole_log_lag(each, start=newer)
        row: dict[str, Any] = {
            "topic": each.topic, "partition": each.number, "member_id": each.owner or "",
            "client_id": owner.client if owner else "", "host": owner.host if owner else "",
        }  # fmt: skip
        absent = None if newer else -1
        row |= {
            "current_offset": absent if each.current is None else each.current,
            "log_end_offset": absent if each.end is None else each.end,
            "lag": (None if newer else 0) if lag is None else lag,
        }
        if newer:
            row |= {"log_start_offset": None if each.end is None else each.start, "rack": owner and owner.rack}
        lags.append(row)
    listed = []
    for member in group.members:
        row = {"member_id": member.name, "client_id": member.client, "host": member.host}
        row |= {"instance_id": member.instance} if member.instance else {}
        if newer:
            row |= {"subscribed_topics": member.topics, "rack": member.rack, "member_epoch": group.epoch}
        listed.append(row)
    fields = {"group": group.name, "state": group.state, "balancer": group.assignor or "", "error": ""}
    return json.dumps({"_command": "group.describe", "groups": [{**fields, "members": listed, "lag": lags}]})


# ---- other tools -----------------------------------------------------------------------------------------------------


def _of_java(state: str) -> str:
    """Return a state as Java's clients spell it, such as PREPARING_REBALANCE."""
    return "".join(f"_{char}" if char.isupper() else char for char in state).upper().removeprefix("_")


def kafbat_json(group: Group) -> str:
    """Return the answer of Kafbat's API about a group."""
    rows = []
    for each in group.partitions:
        owner = group.member(each.owner)
        rows.append(
            {
                "topic": each.topic,
                "partition": each.number,
                "currentOffset": each.current,
                "endOffset": each.end,
                "consumerLag": kafka_lag(each),
                "consumerId": each.owner,
                "host": owner.host if owner else None,
            }
        )
    return json.dumps(
        {
            "groupId": group.name,
            "members": len(group.members),
            "partitionAssignor": group.assignor or "",
            "state": _of_java(group.state),
            "partitions": rows,
        }
    )


def kafbat_csv(group: Group) -> str:
    """Return Kafbat's export of a group's partitions."""
    out = io.StringIO()
    rows = json.loads(kafbat_json(group))["partitions"]
    writer = csv.DictWriter(out, [*rows[0]])
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def kestra(group: Group) -> str:
    """Return Kestra's description of a group."""
    listed = [
        {
            "memberId": each.name, "clientId": each.client, "host": each.host,
            "assignedPartitions": [{"topic": held.topic, "partition": held.number} for held in group.held(each.name)],
        }
        for each in group.members
    ]  # fmt: skip
    rows = [
        {
            "topic": each.topic, "partition": each.number, "currentOffset": each.current, "endOffset": each.end,
            "lag": kafka_lag(each),
        }
        for each in group.partitions
    ]  # fmt: skip
    return json.dumps(
        {"groups": [{"groupId": group.name, "state": _of_java(group.state), "members": listed, "offsets": rows}]}
    )
