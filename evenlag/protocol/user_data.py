"""User data of members: Kafka's sticky format (KIP-54), the weighted assignor's, and evenlag's own two.

The bytes come from other processes and are not trusted: a wrong value raises an error, and no more memory is allocated
than the bytes can fill.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from zlib import crc32

from evenlag.errors import UserDataError

Partition = tuple[str, int]
Buffer = bytes | bytearray | memoryview

INT16, INT32, UINT32, INT64 = Struct(">h"), Struct(">i"), Struct(">I"), Struct(">q")
MOST_32 = 2**31 - 1
FEWEST_BYTES = INT16.size + 1 + INT32.size  # smallest size of a topic in the sticky assignor's format
KAFKA_PYTHON = INT16.pack(1)  # prefix of kafka-python's StickyPartitionAssignor
NO_GENERATION = -1  # Kafka's value for a member without a generation
OWN_VERSION = 1  # version of the format of evenlag's assignor
PLAN_VERSION = 1  # version of the format of evenlag's assignor for Java


@dataclass(frozen=True)
class StickyUserData:
    """User data of a member with Kafka's StickyAssignor.

    Attributes
    ----------
    owned : tuple of (topic, partition)
        Its previous assignment, each partition once.
    generation : int or None
        Generation of that assignment, −1 for none yet; None in version 0 of the format, which lacks the field.
    """

    owned: tuple[Partition, ...] = ()
    generation: int | None = None


@dataclass(frozen=True)
class WeightedUserData:
    """User data of a member with the weighted assignor.

    Attributes
    ----------
    weight : int
        Capacity relative to the other members; > 0.
    owned : tuple of (topic, partition)
        Its previous assignment, each partition once.
    """

    weight: int
    owned: tuple[Partition, ...] = ()


@dataclass(frozen=True)
class PlanUserData:
    """User data of a member with evenlag's assignor for Java, which follows a published plan.

    Attributes
    ----------
    weight : int
        Capacity relative to the other members; > 0.
    plan : int
        Version of the newest plan that the member had read; 0 for none.
    owned : tuple of (topic, partition)
        Its previous assignment under the eager protocol, each partition once.
    """

    weight: int
    plan: int = 0
    owned: tuple[Partition, ...] = ()


def decode_sticky(data: Buffer | None) -> StickyUserData:
    """Decode version 1 or 0 of Kafka's format; None or empty bytes mean that nothing is owned, as by a new member.

    The versions differ only in the four bytes of the generation at the end, so the length decides. kafka-python adds
    two bytes for version 1 at the beginning. In Kafka's format these would mean 65,536 topics or more.

    Raises
    ------
    UserDataError
        The bytes are in neither version. The message names the byte.
    """
    if data is None or not len(data):
        return StickyUserData()
    reader = Reader(data)
    if bytes(data[: INT16.size]) == KAFKA_PYTHON and len(data) < FEWEST_BYTES * 2**16:
        reader.integer(INT16, "version", 1)
    for _ in range(reader.count("topics", FEWEST_BYTES)):
        reader.take_topic(INT16)
    generation = reader.int32("generation", NO_GENERATION) if reader.left() else None
    reader.end()
    return StickyUserData(tuple(reader.owned), generation)


def decode_weighted(data: Buffer) -> WeightedUserData:
    """Decode the weighted assignor's format.

    Raises
    ------
    UserDataError
        The bytes are not in this format. The message names the byte.
    """
    reader = Reader(data)
    weight = reader.int32("weight", 1)
    while reader.left():
        reader.take_topic(INT32)
    return WeightedUserData(weight, tuple(reader.owned))


def encode_own(weight: int) -> bytes:
    """Encode the format of evenlag's assignor: version, weight, and the CRC-32 of both.

    Owned partitions and their generation are in fields of the consumer protocol itself.

    Raises
    ------
    UserDataError
        The weight does not fit the format.

    Examples
    --------
    >>> encode_own(2).hex(" ", 2)
    '0001 0000 0002 62ac e93f'
    >>> decode_own(encode_own(2))
    2
    """
    content = INT16.pack(OWN_VERSION) + _int32(weight, 1, "weight")
    return content + UINT32.pack(crc32(content))


def decode_own(data: Buffer) -> int:
    """Decode the weight from the format of evenlag's assignor.

    Raises
    ------
    UserDataError
        The bytes are not in this format, or in a later version of it. The message names the byte.
    """
    reader = Reader(data)
    version = reader.integer(INT16, "version", 0)
    if version != OWN_VERSION:
        raise UserDataError(f"byte 0: the version is {version}; it must be {OWN_VERSION}")
    weight = reader.int32("weight", 1)
    if reader.integer(UINT32, "checksum", 0) != crc32(bytes(data[: INT16.size + INT32.size])):
        raise UserDataError("the checksum does not match the bytes before it")
    reader.end()
    return weight


def decode_plan_member(data: Buffer) -> PlanUserData:
    """Decode the format of evenlag's assignor for Java: version, weight, version of the plan, then each topic.

    Raises
    ------
    UserDataError
        The bytes are not in this format, or in a later version of it. The message names the byte.

    Examples
    --------
    >>> decode_plan_member(bytes.fromhex("0001 00000002 0000000000000007 00000001 74 00000001 00000003"))
    PlanUserData(weight=2, plan=7, owned=(('t', 3),))
    """
    reader = Reader(data)
    version = reader.integer(INT16, "version", 0)
    if version != PLAN_VERSION:
        raise UserDataError(f"byte 0: the version is {version}; it must be {PLAN_VERSION}")
    weight = reader.int32("weight", 1)
    plan = reader.integer(INT64, "version of the plan", 0)
    while reader.left():
        reader.take_topic(INT32)
    return PlanUserData(weight, plan, tuple(reader.owned))


class Reader:
    """Reader of values from the front of untrusted bytes, with a check of each."""

    def __init__(self, data: Buffer) -> None:
        self._data = memoryview(data).cast("B")
        self._at = 0
        self.owned: dict[Partition, None] = {}

    def left(self) -> int:
        """Return the number of bytes left."""
        return len(self._data) - self._at

    def end(self) -> None:
        """Raise an error if bytes are left."""
        if self.left():
            raise UserDataError(f"byte {self._at}: {self.left()} bytes too many; the message ends here")

    def int32(self, what: str, least: int) -> int:
        """Read a whole number of 32 bits."""
        return self.integer(INT32, what, least)

    def count(self, what: str, size: int) -> int:
        """Read the number of entries that follow, each of at least `size` bytes."""
        start, count = self._at, self.integer(INT32, f"number of {what}", 0)
        if count * size > self.left():
            raise UserDataError(f"byte {start}: {count} {what} do not fit in the {self.left()} bytes that follow")
        return count

    def take_topic(self, length: Struct) -> None:
        """Read a topic and its partitions into `owned`; `length` is the format of its name's length."""
        topic = self.name(length)
        for _ in range(self.count("partitions", INT32.size)):
            start, partition = self._at, self.int32("partition number", 0)
            if (topic, partition) in self.owned:
                raise UserDataError(f"byte {start}: {_shown(topic)}-{partition} is given twice")
            self.owned[topic, partition] = None

    def name(self, length: Struct) -> str:
        """Read a topic's name; `length` is the format of its length."""
        return self._text("topic's name", length, 1)

    def text(self, what: str, length: Struct) -> str | None:
        """Read a text; return None if it is null (length −1) or empty."""
        return self._text(what, length, -1) or None

    def data(self, what: str) -> bytes:
        """Read bytes preceded by their length; null is read as empty."""
        start, size = self._at, self.int32(f"length of the {what}", -1)
        return self._take(max(size, 0), start, what)

    def _text(self, what: str, length: Struct, least: int) -> str:
        start, size = self._at, self.integer(length, f"length of a {what}", least)
        raw = self._take(max(size, 0), start, "name")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserDataError(f"byte {self._at - size + error.start}: a {what} is not UTF-8") from None

    def _take(self, size: int, start: int, what: str) -> bytes:
        if size > self.left():
            raise UserDataError(f"byte {start}: a {what} of {size} bytes does not fit in the {self.left()} that follow")
        self._at += size
        return bytes(self._data[self._at - size : self._at])

    def integer(self, form: Struct, what: str, least: int) -> int:
        """Read a whole number in this format."""
        if self.left() < form.size:
            raise UserDataError(f"byte {self._at}: the data ends within the {what}")
        value: int = form.unpack_from(self._data, self._at)[0]
        if value < least:
            raise UserDataError(f"byte {self._at}: the {what} is {value}; it must be at least {least}")
        self._at += form.size
        return value


def _int32(value: int, least: int, what: str) -> bytes:
    if not least <= value <= MOST_32:
        raise UserDataError(f"the {what} is {value}; it must lie between {least} and {MOST_32}")
    return INT32.pack(value)


def _shown(topic: str) -> str:
    return topic if len(topic) <= 60 else f"{topic[:60]}…"
