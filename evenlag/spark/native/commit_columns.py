"""Offset commits in `__consumer_offsets`, decoded in native Spark columns, and the kinds of all other records.

The rule is that of `protocol.record_decoding`, which tests compare with these columns. Expressions refer to columns of
the step before where they would be repeated, because Spark evaluates each copy.
"""

from __future__ import annotations

from functools import reduce
from operator import xor
from zlib import crc32

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from evenlag.protocol.coordinator_records import COMMITS, LEFT_OUT, TYPES
from evenlag.protocol.record_decoding import (
    BAD_KEY,
    BAD_VALUE,
    MOST_VARINT_BYTES,
    NO_KEY,
    NOT_OURS,
    UNKNOWN_TYPE,
    UNKNOWN_VERSION,
    UUID_BYTES,
)

_FLEXIBLE, _LAST = TYPES[COMMITS[0]].flexible, TYPES[COMMITS[0]].last
_COUNT, _TAG, _SIZE, _CONTENT, _END = range(5)  # what the next byte of the tagged fields belongs to
_WALK = (
    "STRUCT<part: INT, number: BIGINT, scale: BIGINT, left: BIGINT, last: BIGINT, skip: BIGINT, topic_at: INT, "
    "fits: BOOLEAN>"
)

KIND, GROUP, REASON = "kind", "group", "reason"


def decoded(records: DataFrame) -> DataFrame:
    """Decode the commits among records, and tell the others apart.

    Parameters
    ----------
    records : DataFrame
        `key` and `value` (BINARY) of each record; other columns are kept, if their names are none of those below.

    Returns
    -------
    DataFrame
        A row for each record with `kind` (BIGINT, the type of the record), `group` (STRING, null if the key does not
        have it), and `reason` (STRING, null if the record can be used; values of other types than commits are not
        looked at). For commits also `commit_topic, commit_partition, commit_offset` (null: a tombstone)`,
        leader_epoch, commit_metadata, commit_timestamp, expire_timestamp` (milliseconds) and `topic_id`.
    """
    key, value, version, flexible = (sf.col(name) for name in ("key", "value", "_version", "_flexible"))
    found = records
    for step in (*_heads(key, value), *_places(key, value)):
        found = found.withColumns(step)
    found = found.withColumns({"_walked": sf.when(sf.col("_other_tags"), _walked(value, sf.col("_after") + 8))})
    found = found.withColumns({REASON: _reason(key, value)})
    usable = sf.col("_commit") & sf.col(REASON).isNull()
    topic_at = sf.when(sf.col("_topic_alone"), sf.col("_after") + 11).otherwise(sf.col("_walked.topic_at"))
    epoch = sf.shiftleft("_c", 16).bitwiseOR(sf.shiftright("_d", 16))
    fields = {
        "commit_topic": sf.col("commit_topic"),
        "commit_partition": sf.col("commit_partition").cast("int"),
        "commit_offset": sf.shiftleft("_a", 48).bitwiseOR(sf.shiftleft("_b", 16)).bitwiseOR(sf.shiftright("_c", 16)),
        "leader_epoch": sf.when(version >= 3, _signed(epoch, 32)).cast("int"),
        "commit_metadata": sf.col("commit_metadata"),
        "commit_timestamp": _long("_time0", "_time1"),
        "expire_timestamp": sf.when(version == 1, _slow_long(value, sf.col("_after") + 8)),
        "topic_id": sf.when(flexible, _uuid(value, topic_at)),
    }
    kept = [sf.col(f"`{name}`") for name in records.columns]
    return found.select(
        *kept, KIND, GROUP, REASON, *(sf.when(usable, each).alias(name) for name, each in fields.items())
    )


def _heads(key: Column, value: Column) -> list[dict[str, Column]]:
    """Return the steps that read the first bytes: `kind, group`, and of commits `_version` and `_m`.

    `_m` is the length of the metadata, which begins at `_at`. `_a` to `_d` are the first four words of the value. They
    have, in turn, the version and the offset; from version 3 on also the leader's epoch; and the metadata's length.
    """
    a, c, d = (sf.col(f"_{name}") for name in "acd")
    key_word, version, flexible = sf.col("_k"), sf.col("_version"), sf.col("_flexible")
    sums = {"_k": _checksum(_padded(key)), "_a": _checksum(_padded(value))}
    sums |= {f"_{name}": _checksum(value, at) for name, at in (("b", 5), ("c", 9), ("d", 13))}
    first = sf.shiftright(d, 8).bitwiseAND(sf.lit(0xFF))  # byte of a length
    fixed = _signed(sf.when(version == 3, d).otherwise(c), 16)
    return [
        sums,
        {name: _word(sf.col(name)) for name in sums},
        {
            KIND: sf.when(sf.length(key) >= 2, _signed(sf.shiftright(key_word, 16), 16)),
            "_g": _signed(key_word, 16).cast("int"),
            "_version": _signed(sf.shiftright(a, 16), 16),
        },
        {
            "_commit": sf.coalesce(sf.col(KIND).isin(*COMMITS), sf.lit(False)),
            "_flexible": version >= _FLEXIBLE,
            "_long": (version >= _FLEXIBLE) & (first >= 0x80),
        },
        {"_varint": sf.when(sf.col("_commit") & sf.col("_long"), sf.get(_varint(value, 15), sf.lit(0)))},
        {
            "_m": sf.when(~flexible, fixed).when(sf.col("_long"), sf.col("_varint.number") - 1).otherwise(first - 1),
            "_at": sf.when(version < 3, sf.lit(13))
            .when(version == 3, sf.lit(17))
            .when(sf.col("_long"), sf.col("_varint.bytes") + 15)
            .otherwise(sf.lit(16)),
        },
    ]


def _places(key: Column, value: Column) -> list[dict[str, Column]]:
    """Return the steps that read the fields of commits behind those of `_heads`.

    `_after` is the place of the commit's time. Tagged fields are none (`_no_tags`), only the topic's id
    (`_topic_alone`), or others (`_other_tags`).
    """
    g, t, m, after, rest = (sf.col(f"_{name}") for name in ("g", "t", "m", "after", "rest"))
    start = sf.substring(value, after + 8, sf.lit(3))
    tagged = sf.col("_commit") & sf.col("_flexible")
    none = (rest == 1) & (start == sf.lit(b"\0"))
    alone = (rest == 3 + UUID_BYTES) & (start == sf.lit(bytes([1, 0, UUID_BYTES])))
    return [
        {
            GROUP: _text(key, sf.lit(5), g),
            "_t": _checksum(key, g + 5),
            "_m": sf.when(m.between(0, sf.length(value)), m.cast("int")),
        },
        {"_t": _word(t)},
        {"_t": _signed(sf.shiftright(t, 16), 16).cast("int"), "_after": sf.col("_at") + m},
        {
            "commit_topic": _text(key, g + 7, t),
            "commit_partition": _checksum(key, g + t + 7),
            "commit_metadata": _text(value, sf.col("_at"), m),
            "_rest": sf.length(value) - after - 7,
            **{f"_time{n}": _checksum(value, after + 4 * n) for n in range(2)},
        },
        {
            "commit_partition": _word(sf.col("commit_partition")),
            **{f"_time{n}": _word(sf.col(f"_time{n}")) for n in range(2)},
            "_no_tags": sf.coalesce(tagged & none, sf.lit(False)),
            "_topic_alone": sf.coalesce(tagged & alone, sf.lit(False)),
        },
        {
            "commit_partition": _signed(sf.col("commit_partition"), 32),
            "_other_tags": tagged & (rest >= 1) & ~sf.col("_no_tags") & ~sf.col("_topic_alone"),
        },
    ]


def _reason(key: Column, value: Column) -> Column:
    """Return why a record is passed over; null if it can be used."""
    kind, is_commit, version = sf.col(KIND), sf.col("_commit"), sf.col("_version")
    fits_key = (
        (sf.col("_t") >= 0)
        & (sf.length(key) == sf.col("_g") + sf.col("_t") + 10)
        & sf.col(GROUP).isNotNull()
        & sf.col("commit_topic").isNotNull()
        & (sf.col("commit_partition") >= 0)
    )
    times = sf.when(version == 1, sf.lit(16)).otherwise(sf.lit(8))
    fits_tags = sf.col("_no_tags") | sf.col("_topic_alone") | sf.coalesce(sf.col("_walked.fits"), sf.lit(False))
    ends = sf.when(sf.col("_flexible"), fits_tags).otherwise(sf.length(value) + 1 == sf.col("_after") + times)
    is_negative = sf.col("_a").bitwiseAND(sf.lit(0x8000)) > 0  # the sign of the offset
    fits_value = ~is_negative & sf.col("commit_metadata").isNotNull() & ends
    left_out = {name: [n for n, each in LEFT_OUT.items() if each == name] for name in dict.fromkeys(LEFT_OUT.values())}
    rules: list[tuple[Column, str | None]] = [
        (key.isNull(), NO_KEY),
        (sf.length(key) < 2, BAD_KEY),
        *((kind.isin(*numbers), NOT_OURS.format(name)) for name, numbers in left_out.items()),
        (~kind.isin(*TYPES), UNKNOWN_TYPE),
        (is_commit & ~sf.coalesce(fits_key, sf.lit(False)), BAD_KEY),
        (~is_commit | value.isNull(), None),
        (sf.length(value) < 2, BAD_VALUE),
        (~version.between(0, _LAST), UNKNOWN_VERSION),
        (~sf.coalesce(fits_value, sf.lit(False)), BAD_VALUE),
    ]
    chosen = sf.when(sf.lit(False), sf.lit(None).cast("string"))
    for applies, reason in rules:
        chosen = chosen.when(applies, sf.lit(reason).cast("string"))
    return chosen


# Spark has no expression that makes a number of bytes, and a text of hexadecimal digits takes long to parse. But it has
# CRC-32, for which Java has an instruction of the processor. The CRC-32 of four bytes is one-to-one, and linear in the
# bits but for a constant. So four tables, one for each byte of a CRC, turn it back into the four bytes.


def _inverse() -> list[list[int]]:
    """Return the tables: the exclusive or of one entry of each is the number whose CRC-32 was looked up."""
    zero = crc32(bytes(4))
    rows = [(crc32((1 << bit).to_bytes(4, "big")) ^ zero, 1 << bit) for bit in range(32)]
    solved: dict[int, int] = {}  # numbers by the only bit of their CRC, by Gauss and Jordan's elimination
    for bit in range(32):
        place = next(n for n, (check, _) in enumerate(rows) if check >> bit & 1 and n not in solved.values())
        check, number = rows[place]
        rows = [
            (each ^ check, of ^ number) if each >> bit & 1 and n != place else (each, of)
            for n, (each, of) in enumerate(rows)
        ]
        solved[bit] = place
    units = [rows[solved[bit]][1] for bit in range(32)]

    def number_of(check: int) -> int:
        return reduce(xor, (units[bit] for bit in range(32) if check >> bit & 1), 0)

    offset = number_of(zero)
    return [[number_of(byte << 8 * n) ^ (offset if n == 0 else 0) for byte in range(256)] for n in range(4)]


_INVERSE = [",".join(map(str, table)) for table in _inverse()]  # texts: a list would be a call to Java per number


def _checksum(data: Column, at: Column | int = 1) -> Column:
    """Return the CRC-32 of four bytes. Positions count from 1; beyond the end the bytes are fewer."""
    return sf.crc32(sf.substring(data, at if isinstance(at, Column) else sf.lit(at), sf.lit(4)))


def _word(checksum: Column) -> Column:
    """Return the unsigned number of four bytes from their `_checksum`; any number if they were fewer."""
    bytes_ = [checksum, *(sf.shiftright(checksum, 8 * n) for n in (1, 2, 3))]
    found = [
        sf.get(sf.split(sf.lit(table), ",").cast("array<bigint>"), byte.bitwiseAND(sf.lit(0xFF)).cast("int"))
        for table, byte in zip(_INVERSE, bytes_, strict=True)
    ]
    return reduce(lambda one, other: one.bitwiseXOR(other), found)


def _padded(data: Column) -> Column:
    """Return the first four bytes; zeros for those beyond the end."""
    return sf.rpad(sf.substring(data, sf.lit(1), sf.lit(4)), 4, sf.lit(b"\0"))


def _signed(number: Column, bits: int) -> Column:
    """Return the signed integer in the last bits of a BIGINT, as a BIGINT."""
    return sf.shiftright(sf.shiftleft(number, 64 - bits), 64 - bits)


def _long(high: str, low: str) -> Column:
    """Return the signed integer of two words."""
    return sf.shiftleft(high, 32).bitwiseOR(sf.col(low))


def _slow_long(data: Column, at: Column) -> Column:
    """Return a signed integer of eight bytes, slowly: for fields of old records."""
    return sf.conv(sf.hex(sf.substring(data, at, sf.lit(8))), 16, -10).cast("bigint")


def _byte(data: Column, at: Column) -> Column:
    """Return a byte, slowly: for single ones that are rarely looked at."""
    return sf.conv(sf.hex(sf.substring(data, at, sf.lit(1))), 16, 10).cast("bigint")


def _text(data: Column, at: Column, size: Column) -> Column:
    """Return a text; null if it does not lie within the data or is not UTF-8."""
    text = sf.substring(data, at, size).cast("string")
    within = (size >= 0) & (at + size <= sf.length(data) + 1)
    return sf.when(within & sf.is_valid_utf8(text), text)


def _uuid(data: Column, at: Column) -> Column:
    return sf.translate(sf.base64(sf.substring(data, at, sf.lit(UUID_BYTES))), "+/=", "-_")


def _varint(data: Column, at: int) -> Column:
    """Return a list with the `number` and `bytes` of an unsigned varint, or an empty one if it has above 31 bits.

    Like all functions of arrays it is not part of the code that Spark compiles for a step, so that this stays short.
    """
    known = "STRUCT<number: BIGINT, scale: BIGINT, bytes: INT, ends: BOOLEAN>"
    places = sf.array(*map(sf.lit, range(MOST_VARINT_BYTES)))

    def longer(state: Column, place: Column) -> Column:
        byte = _byte(data, place + at)
        more = state["number"] + byte.bitwiseAND(sf.lit(0x7F)) * state["scale"]
        return sf.when(state["ends"], state).otherwise(
            sf.struct(more, state["scale"] * 128, place + 1, byte < 0x80).cast(known)
        )

    start = sf.struct(sf.lit(0), sf.lit(1), sf.lit(0), sf.lit(False)).cast(known)
    found = sf.aggregate(places, start, longer)
    return sf.filter(sf.array(found), lambda end: end["ends"] & (end["number"] < 2**31))


def _walked(data: Column, at: Column) -> Column:
    """Walk through tagged fields byte by byte; return whether they `fits` and the topic id's place, `topic_at`."""
    walked = sf.aggregate(sf.sequence(at, sf.length(data)), _first_state(), lambda s, n: _next(s, n, data))
    end = sf.transform(
        sf.array(walked),
        lambda s: sf.struct((s["fits"] & (s["part"] == _END)).alias("fits"), s["topic_at"].alias("topic_at")),
    )
    return end[0]


def _state(fields: dict[str, Column]) -> Column:
    return sf.struct(*(column.alias(name) for name, column in fields.items())).cast(_WALK)


def _first_state() -> Column:
    values = {"part": _COUNT, "number": 0, "scale": 1, "left": 0, "last": -1, "skip": 0, "topic_at": None, "fits": True}
    return _state({name: sf.lit(value) for name, value in values.items()})


def _next(state: Column, at: Column, data: Column) -> Column:
    """Return the state after one more byte of the tagged fields."""
    judged = sf.transform(sf.array(_byte(data, at)), lambda byte: _after_byte(state, at, byte))
    return judged[0]


def _after_byte(state: Column, at: Column, byte: Column) -> Column:
    part = state["part"]
    number = state["number"] + byte.bitwiseAND(sf.lit(0x7F)) * state["scale"]
    goes_on = (part < _CONTENT) & (byte >= 0x80)
    whole = {name: (part == place) & ~goes_on for name, place in (("count", _COUNT), ("tag", _TAG), ("size", _SIZE))}
    left = sf.when(whole["count"], number).when(whole["size"], state["left"] - 1).otherwise(state["left"])
    skip = sf.when(whole["size"], number).when(part == _CONTENT, state["skip"] - 1).otherwise(state["skip"])
    is_topic = whole["size"] & (state["last"] == 0)
    wrong = (
        (goes_on & (state["scale"] >= 2**28))
        | (~goes_on & (part < _CONTENT) & (number >= 2**31))
        | (whole["tag"] & (number <= state["last"]))
        | (is_topic & (number != UUID_BYTES))
        | (part == _END)
    )
    next_tag = sf.when(left > 0, sf.lit(_TAG)).otherwise(sf.lit(_END))
    after = (
        sf.when(goes_on | (part == _END), part)
        .when(whole["tag"], sf.lit(_SIZE))
        .when((whole["size"] | (part == _CONTENT)) & (skip > 0), sf.lit(_CONTENT))
        .otherwise(next_tag)
    )
    return _state(
        {
            "part": after,
            "number": sf.when(goes_on, number).otherwise(sf.lit(0)),
            "scale": sf.when(goes_on, sf.least(state["scale"] * 128, sf.lit(2**35))).otherwise(sf.lit(1)),
            "left": left,
            "last": sf.when(whole["tag"], number).otherwise(state["last"]),
            "skip": skip,
            "topic_at": sf.when(is_topic, at + 1).otherwise(state["topic_at"]),
            "fits": state["fits"] & ~wrong,
        }
    )
