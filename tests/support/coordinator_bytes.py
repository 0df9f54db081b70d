"""An encoder of records in `__consumer_offsets`, written out by hand: it shares nothing with the decoder it tests."""

import base64
import struct
from collections.abc import Iterable, Sequence

Partitions = Sequence[tuple[str, Sequence[int]]]


def short(value: int) -> bytes:
    return struct.pack(">h", value)


def number(value: int) -> bytes:
    return struct.pack(">i", value)


def long(value: int) -> bytes:
    return struct.pack(">q", value)


def text(value: str | None) -> bytes:
    """16 bits of length, −1 for null."""
    raw = None if value is None else value.encode()
    return short(-1) if raw is None else short(len(raw)) + raw


def blob(value: bytes) -> bytes:
    return number(len(value)) + value


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def compact(value: str | bytes | None) -> bytes:
    """A varint of the length + 1, 0 for null."""
    raw = value.encode() if isinstance(value, str) else value
    return b"\0" if raw is None else varint(len(raw) + 1) + raw


def listed(parts: Iterable[bytes]) -> bytes:
    """A compact array."""
    made = list(parts)
    return varint(len(made) + 1) + b"".join(made)


def tags(fields: dict[int, bytes] | None = None) -> bytes:
    parts = [varint(tag) + varint(len(raw)) + raw for tag, raw in sorted((fields or {}).items())]
    return varint(len(parts)) + b"".join(parts)


def uuid(name: str) -> bytes:
    return base64.urlsafe_b64decode(name + "=" * (-len(name) % 4))


def commit_key(group: str, topic: str, partition: int, kind: int = 1) -> bytes:
    return short(kind) + text(group) + text(topic) + number(partition)


def commit_value(
    offset: int, metadata: str = "", at: int = 0, *, version: int = 3, epoch: int = -1, expires: int = -1,
    tagged: dict[int, bytes] | None = None,
) -> bytes:  # fmt: skip
    """Return the value of a commit; `at` in milliseconds."""
    if version == 4:
        return short(4) + long(offset) + number(epoch) + compact(metadata) + long(at) + tags(tagged)
    leader = number(epoch) if version == 3 else b""
    return short(version) + long(offset) + leader + text(metadata) + long(at) + (long(expires) if version == 1 else b"")


def subscription(
    topics: Sequence[str], owned: Partitions = (), generation: int = -1, rack: str | None = None, *, version: int = 3,
    user_data: bytes = b"",
) -> bytes:  # fmt: skip
    """Return a member's ConsumerProtocolSubscription."""
    out = short(version) + number(len(topics)) + b"".join(map(text, topics)) + blob(user_data)
    out += _owned(owned) if version >= 1 else b""
    out += number(generation) if version >= 2 else b""
    return out + (text(rack) if version >= 3 else b"")


def assignment(partitions: Partitions) -> bytes:
    """Return a member's ConsumerProtocolAssignment."""
    return short(0) + _owned(partitions) + number(-1)


def _owned(partitions: Partitions) -> bytes:
    topics = [text(topic) + number(len(ids)) + b"".join(map(number, ids)) for topic, ids in partitions]
    return number(len(topics)) + b"".join(topics)


def group_key(group: str) -> bytes:
    return short(2) + text(group)


def group_value(
    generation: int, protocol: str | None, members: Sequence[dict[str, object]], *, version: int = 3, at: int = -1,
    leader: str | None = None, kind: str = "consumer",
) -> bytes:  # fmt: skip
    """Return the value of a classic group.

    A member has `member_id`, `subscription` and `assignment`, and may have `client_id`, `host` and `instance`.
    """
    flat = version < 4
    string, data = (text, blob) if flat else (compact, compact)
    parts = []
    for each in members:
        part = string(str(each["member_id"]))
        part += string(each.get("instance")) if version >= 3 else b""  # type: ignore[arg-type]
        part += string(str(each.get("client_id", ""))) + string(str(each.get("host", "")))
        part += (number(300_000) if version >= 1 else b"") + number(45_000)
        part += data(each["subscription"]) + data(each["assignment"])  # type: ignore[arg-type]
        parts.append(part if flat else part + tags())
    out = short(version) + string(kind) + number(generation) + string(protocol) + string(leader)
    out += long(at) if version >= 2 else b""
    return out + (number(len(parts)) + b"".join(parts) if flat else listed(parts) + tags())


def consumer_key(kind: int, *names: str) -> bytes:
    """Return the key of a KIP-848 record: a group, and for some a member or a regular expression."""
    return short(kind) + b"".join(map(text, names))


def epoch_value(epoch: int) -> bytes:
    """Return the value of types 3 and 6."""
    return short(0) + number(epoch) + tags()


def topics_value(topics: Sequence[tuple[str, str, int]]) -> bytes:
    """Return the value of type 4: ids, names and numbers of partitions."""
    return (
        short(0) + listed(uuid(i) + compact(name) + number(n) + listed([]) + tags() for i, name, n in topics) + tags()
    )


def member_value(
    topics: Sequence[str], *, client_id: str = "", host: str = "", instance: str | None = None,
    rack: str | None = None, regex: str | None = None, assignor: str | None = None,
) -> bytes:  # fmt: skip
    """Return the value of type 5."""
    out = short(0) + compact(instance) + compact(rack) + compact(client_id) + compact(host)
    return out + listed(map(compact, topics)) + compact(regex) + number(300_000) + compact(assignor) + tags()


def _by_id(partitions: Partitions) -> bytes:
    return listed(uuid(topic) + listed(map(number, ids)) + tags() for topic, ids in partitions)


def target_value(partitions: Partitions) -> bytes:
    """Return the value of type 7; topics by their ids."""
    return short(0) + _by_id(partitions) + tags()


def current_value(epoch: int, partitions: Partitions, pending: Partitions = (), *, state: int = 0) -> bytes:
    """Return the value of type 8."""
    return short(0) + number(epoch) + number(epoch - 1) + bytes([state]) + _by_id(partitions) + _by_id(pending) + tags()


def regex_value(topics: Sequence[str], at: int = 0) -> bytes:
    """Return the value of type 16."""
    return short(0) + listed(map(compact, topics)) + long(1) + long(at) + tags()
