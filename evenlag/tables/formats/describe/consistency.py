"""Checks that fields form a consistent row: the form of each value, the lag, and the owner's columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evenlag.tables.formats.describe.headers import Layout, Shape
from evenlag.tables.typed_values import advice

Fields = dict[str, str | None]

IP = r"(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]*:[0-9a-fA-F:.]+(?:%\w+)?)"
HOST = re.compile(rf"[^\s/]*/{IP}")  # an address as Java prints it: HOST/IP, where HOST may be empty
_RANDOM = re.compile(r"[A-Za-z0-9+/]{22}", re.ASCII)  # member id of librdkafka under KIP-848; may begin with a slash
MEMBER = re.compile(r"\S*[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ASSIGNMENT = re.compile(
    r"-|[\w.-]+\([\d, ]*\)(?:, *[\w.-]+\([\d, ]*\))*|[\w.-]+:[\d,]+(?:[; ][\w.-]+:[\d,]+)*", re.ASCII
)
_SHAPES: dict[Shape, re.Pattern[str]] = {
    "topic": re.compile(r"[A-Za-z0-9._-]{1,249}"),
    "partition": re.compile(r"[0-9]{1,10}|-"),
    "number": re.compile(r"-?[0-9]{1,19}|-|unknown"),
    "count": re.compile(r"[0-9]{1,10}|-"),
}
_WHOLE = re.compile(rf"(?:.* )?{MEMBER.pattern}|.*(?:\.{{3}}|…)")
_DASHES = re.compile("--+")  # two placeholders for null without a blank between them
_NULLS = {"", "-", "unknown"}


def is_shaped(value: str, shape: Shape) -> bool:
    """Return whether a value has the form of its column."""
    if shape == "assignment":
        return _ASSIGNMENT.fullmatch(value) is not None
    pattern = _SHAPES.get(shape)
    return pattern is None or pattern.fullmatch(value) is not None


def sound(values: Sequence[str], layout: Layout, *, given: bool = False) -> Fields | None:
    """Return the fields of a row if they are consistent, else None.

    Parameters
    ----------
    values : sequence of str
        A value for each column.
    given : bool
        True if the layout fixes where each field begins and ends, so that a host may have any form.
    """
    row: dict[str, str] = {}
    for name, value, heading in zip(layout.names, values, layout.headings, strict=True):
        empty = value == "" and heading.shape in ("optional", "assignment", "free", "host")
        if not empty and not (value and is_shaped(value, heading.shape)):
            return None
        row[heading.field or name] = value
    if not (_offsets_agree(row, layout) and _member_agrees(row, layout, given=given)):
        return None
    fields = {name: _null(value, name) for name, value in row.items()}
    if layout.is_rpk and fields.get("lag") == "-1":  # rpk failed to read the log, so its offsets are not valid
        fields |= {"log_start_offset": None, "log_end_offset": None, "lag": None}
    return fields


def fault(values: Sequence[str], layout: Layout) -> str:
    """Return the reason why fields are not a row: a malformed value or an inconsistent lag; empty if none is found."""
    for name, value, heading in zip(layout.names, values, layout.headings, strict=True):
        if not is_shaped(value, heading.shape):
            pulsar = heading.shape == "topic" and value.startswith(("persistent://", "non-persistent://"))
            why = (
                " (a name of Pulsar: KoP prints one topic under two names; keep one row per partition)"
                if pulsar
                else ""
            )
            return f"{name} is {value!r}{why or advice(value)}"
    row = {
        heading.field or name: value for name, value, heading in zip(layout.names, values, layout.headings, strict=True)
    }
    if layout.kind == "offsets" and not _offsets_agree(row, layout):
        return f"LAG {row['lag']} does not follow from the offsets"
    return ""


def _null(value: str, name: str) -> str | None:
    """Return a value, or None if it means null; old tools write -1 for no commit and `none` for no owner."""
    nothing = value in _NULLS or (value, name) in {("-1", "current_offset"), ("none", "consumer_id")}
    return None if nothing else value


def _offsets_agree(row: Mapping[str, str], layout: Layout) -> bool:
    """Return whether the lag equals the difference of the offsets, and is null if one of them is."""
    if layout.kind != "offsets":
        return True
    numbers = [_number(row, name) for name in ("log_start_offset", "current_offset", "log_end_offset", "lag")]
    start, current, end, lag = numbers
    if row["topic"] == "-":  # a member without partitions
        return row["partition"] == "-" and numbers == [None] * 4 and row.get("consumer_id", "-") not in ("-", "none")
    if row["partition"] == "-":
        return False
    if layout.is_rpk:
        return _rpk_lag_agrees(start, current, end, lag)
    if current is None or end is None:
        return lag is None
    return lag == end - current


def _rpk_lag_agrees(start: int | None, current: int | None, end: int | None, lag: int | None) -> bool:
    """Return whether a lag is the one that `rpk` computes from the offsets.

    Without a commit, its lag is the whole log; with a commit beyond the log end, it is 0. `rpk` prints no lag for an
    empty log, whose end is 0, and -1 after an error.
    """
    if lag is None or lag == -1:
        return True
    if end is None:
        return False
    if current is None:
        return lag in {end, end - (start or 0)}
    return lag == end - current or (lag == 0 and 0 < end < current)


def _number(row: Mapping[str, str], name: str) -> int | None:
    value = _null(row.get(name, "-"), name)
    return None if value is None else int(value)


def _member_agrees(row: Mapping[str, str], layout: Layout, *, given: bool) -> bool:
    """Return whether member id, host and client id can belong to one member, or mean that there is no owner."""
    if any(_DASHES.fullmatch(row.get(name, "")) for name in ("consumer_id", "host", "client_id")):
        return False
    if "HOST" not in layout.names:
        held = row.get("consumer_id", "-")
        if "OWNER" in layout.names:
            return True
        return not any(HOST.fullmatch(word) for word in held.split(" ")) and (" " not in held or is_whole(held))
    member, host, client = row["consumer_id"], row["host"], row["client_id"]
    if layout.is_rpk and layout.kind == "members":  # of kcl
        return bool(member) and HOST.match(host) is not None
    if layout.is_rpk:
        return _rpk_member_agrees(member, host, client, given=given)
    words = (*member.split(" "), *client.split(" "))
    if any(word.startswith("/") and len(word) > 1 and not _RANDOM.fullmatch(word) for word in words):
        return False
    if member == "-":  # no owner
        return bool(client) and (host == "-" or host.startswith("/") or HOST.fullmatch(host) is not None)
    if host.startswith("/") or HOST.fullmatch(host):
        return bool(member)
    if host == "-" or (not host and layout.kind == "members"):
        return False
    if given and layout.kind == "offsets":
        return bool(member and host)
    return bool(client) and member.startswith(client) and "/" not in member  # a host that was redacted


def _rpk_member_agrees(member: str, host: str, client: str, *, given: bool) -> bool:
    """Return whether member id, host and client id are all set or all empty.

    If `given`, a member may have an empty client id.
    """
    is_held, has_host, has_client = (value not in ("", "-") for value in (member, host, client))
    return is_held == has_host and (is_held == has_client or (given and is_held))


def is_whole(member: str) -> bool:
    """Return whether a member id was not cut off: it ends with a UUID, or with an ellipsis."""
    return _WHOLE.fullmatch(member) is not None
