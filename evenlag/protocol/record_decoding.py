"""Decoding of the records in `__consumer_offsets`, in plain Python: the readable rule.

`commit_arrays.py` follows the same rule for whole arrays of offset commits. The bytes may be damaged: every field is
checked, and a message must end where its fields end.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from struct import Struct
from typing import Any

from evenlag.errors import UserDataError
from evenlag.protocol.coordinator_records import COMMITS, LEFT_OUT, TYPES, Field
from evenlag.protocol.user_data import INT16, INT32, Reader

INT8, INT64 = Struct(">b"), Struct(">q")
INTEGERS = {"int8": INT8, "int16": INT16, "int32": INT32, "int64": INT64}
UUID_BYTES = 16
MOST_VARINT_BYTES = 5

# Reasons why a record is passed over.
NO_KEY = "the key is null"
NOT_OURS = "a record of a {}"
UNKNOWN_TYPE = "the type of the record is not known"
BAD_KEY = "the key cannot be decoded"
UNKNOWN_VERSION = "the version of the value is not known"
BAD_VALUE = "the value cannot be decoded"


@dataclass(frozen=True)
class CoordinatorRecord:
    """A decoded record.

    Attributes
    ----------
    kind : int
        Its type, a key of `coordinator_records.TYPES`.
    key : dict
        Fields of the key by Kafka's names.
    value : dict or None
        Fields of the value, without absent tagged ones; None for a tombstone.
    version : int or None
        Version of the value; None for a tombstone.
    """

    kind: int
    key: dict[str, Any]
    value: dict[str, Any] | None
    version: int | None


@dataclass(frozen=True)
class PassedOver:
    """A record that is not read.

    Attributes
    ----------
    reason : str
        One of a few reasons, for counts.
    detail : str
        The byte and the fault; empty if the reason says all.
    """

    reason: str
    detail: str = ""


def decode_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord | PassedOver:
    """Decode a record, or return why it is passed over.

    Texts are `str`, bytes `bytes`, UUIDs Kafka's text of them (base64 without padding).

    Examples
    --------
    >>> decode_record(bytes.fromhex("0001 0001 67 0001 74 00000003"), None)
    CoordinatorRecord(kind=1, key={'group': 'g', 'topic': 't', 'partition': 3}, value=None, version=None)
    >>> decode_record(bytes.fromhex("0001 0001 67"), None)
    PassedOver(reason='the key cannot be decoded', detail='byte 5: the data ends within the length of the topic')
    """
    if key is None:
        return PassedOver(NO_KEY)
    if len(key) < INT16.size:
        return PassedOver(BAD_KEY, "the key has no type")
    kind: int = INT16.unpack_from(key)[0]
    if kind in LEFT_OUT:
        return PassedOver(NOT_OURS.format(LEFT_OUT[kind]))
    if kind not in TYPES:
        return PassedOver(UNKNOWN_TYPE, f"type {kind}")
    layout = TYPES[kind]
    try:
        named = _message(key, layout.key, 0, flexible=False)
        if kind in COMMITS and named["partition"] < 0:
            raise UserDataError(f"the partition is {named['partition']}")
    except UserDataError as error:
        return PassedOver(BAD_KEY, str(error))
    if value is None:
        return CoordinatorRecord(kind, named, None, None)
    if len(value) < INT16.size:
        return PassedOver(BAD_VALUE, "the value has no version")
    version: int = INT16.unpack_from(value)[0]
    if not 0 <= version <= layout.last:
        return PassedOver(UNKNOWN_VERSION, f"{layout.name}, version {version}")
    try:
        content = _message(value, layout.value, version, flexible=version >= layout.flexible)
        if kind in COMMITS and content["offset"] < 0:
            raise UserDataError(f"the offset is {content['offset']}")
    except UserDataError as error:
        return PassedOver(BAD_VALUE, str(error))
    return CoordinatorRecord(kind, named, content, version)


def _message(data: bytes, fields: tuple[Field, ...], version: int, *, flexible: bool) -> dict[str, Any]:
    """Decode the bytes after the first 16 bits."""
    reader = _RecordReader(data, version, flexible=flexible)
    reader.integer(INT16, "version", 0)
    values = reader.struct(fields)
    reader.end()
    return values


class _RecordReader(Reader):
    """Reader of one message in a given version."""

    def __init__(self, data: bytes, version: int, *, flexible: bool) -> None:
        super().__init__(data)
        self._version, self._flexible = version, flexible

    def struct(self, fields: tuple[Field, ...]) -> dict[str, Any]:
        """Read the fields of a struct, and its tagged fields at the end."""
        here = [each for each in fields if each.present(self._version)]
        values = {each.name: self._value(each) for each in here if each.tag is None}
        if self._flexible:
            self._tagged({each.tag: each for each in here if each.tag is not None}, values)
        return values

    def _value(self, which: Field) -> Any:
        if which.kind in INTEGERS:
            form = INTEGERS[which.kind]
            return self.integer(form, which.name, -(2 ** (8 * form.size - 1)))
        if which.kind == "uuid":
            return uuid_text(self._bytes(UUID_BYTES, which.name))
        if which.kind == "struct":
            # A tagged struct that may be null begins with 0 if it is, and 1 if not.
            return None if which.nullable and self.varint(which.name) == 0 else self.struct(which.of)
        size = self._length(which)
        if size is None:
            return None
        if which.kind == "array":
            if size > self.left():  # an element has a byte at least
                raise UserDataError(f"{size} {which.name} do not fit in the {self.left()} bytes that follow")
            [element, *more] = which.of
            if not element.name:
                return [self._value(element) for _ in range(size)]
            return [self.struct((element, *more)) for _ in range(size)]
        raw = self._bytes(size, which.name)
        if which.kind == "bytes":
            return raw
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserDataError(f"the {which.name} is not UTF-8: {error.reason}") from None

    def _length(self, which: Field) -> int | None:
        if self._flexible:
            size = self.varint(f"length of the {which.name}") - 1
        else:
            size = self.integer(INT16 if which.kind == "string" else INT32, f"length of the {which.name}", -1)
        if size < 0 and not which.nullable:
            raise UserDataError(f"the {which.name} is null")
        return None if size < 0 else size

    def _tagged(self, known: dict[int | None, Field], values: dict[str, Any]) -> None:
        """Read tagged fields in rising order of their tags, and skip unknown ones."""
        last = -1
        for _ in range(self.varint("number of tagged fields")):
            tag, size = self.varint("tag"), self.varint("size of a tagged field")
            if tag <= last:
                raise UserDataError(f"tag {tag} follows tag {last}")
            last, before = tag, self.left()
            if size > before:
                raise UserDataError(f"tagged field {tag} does not fit in the {before} bytes that follow")
            if tag in known:
                values[known[tag].name] = self._value(known[tag])
                if before - self.left() != size:
                    raise UserDataError(f"{known[tag].name} does not have the {size} bytes that its tag says")
            else:
                self._bytes(size, "tagged field")

    def varint(self, what: str) -> int:
        """Read an unsigned varint of at most 31 bits."""
        value = 0
        for place in range(MOST_VARINT_BYTES):
            byte = self.integer(INT8, what, -128) & 0xFF
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                break
        else:
            raise UserDataError(f"the {what} has more than {MOST_VARINT_BYTES} bytes")
        if value >= 2**31:
            raise UserDataError(f"the {what} is {value}")
        return value

    def _bytes(self, size: int, what: str) -> bytes:
        return self._take(size, self._at, what)


def uuid_text(raw: bytes) -> str:
    """Return Kafka's text of a UUID: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
