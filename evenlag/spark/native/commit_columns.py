"""Offset commits in `__consumer_offsets`, decoded in native Spark columns, and the kinds of all other records.

The rule is that of `protocol.record_decoding`, which tests compare with these columns. Expressions refer to columns of
the step before where they would be repeated, because Spark evaluates each copy.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    key, value, version = sf.col("key"), sf.col("value"), sf.col("_version")
    flexible = version >= _FLEXIBLE
    text_at = sf.when(version >= 3, sf.lit(15)).otherwise(sf.lit(11))
    steps: list[dict[str, Column]] = [
        {KIND: _integer(key, 1, 2), "_g": _integer(key, 3, 2), "_version": _integer(value, 1, 2)},
        {"_commit": sf.coalesce(sf.col(KIND).isin(*COMMITS), sf.lit(False))},
        {
            GROUP: _text(key, sf.lit(5), sf.col("_g")),
            "_t": sf.when(sf.col("_commit") & (sf.col("_g") >= 0), _integer(key, sf.col("_g") + 5, 2)),
            "_offset": sf.when(sf.col("_commit"), _integer(value, 3, 8)),
            "_plain": sf.when(sf.col("_commit") & ~flexible, _integer(value, text_at, 2)),
            "_length": sf.when(
                sf.col("_commit") & flexible,
                sf.array(*(_unsigned(value, text_at + n, 1) for n in range(MOST_VARINT_BYTES))),
            ),
        },
        {f"_{name}": each for name, each in _varint(sf.col("_length")).items()},
        {
            "_m": sf.when(flexible, sf.col("_value") - 1).otherwise(sf.col("_plain")),
            "_at": sf.when(flexible, text_at + sf.col("_bytes")).otherwise(text_at + 2),
            "commit_topic": _text(key, sf.col("_g") + 7, sf.col("_t")),
            "commit_partition": _integer(key, sf.col("_g") + sf.col("_t") + 7, 4),
        },
        {"_after": sf.col("_at") + sf.col("_m"), "commit_metadata": _text(value, sf.col("_at"), sf.col("_m"))},
        {"_tags": sf.when(flexible, _tags(value, sf.col("_after") + 8))},
        {REASON: _reason(key, value, version, flexible)},
    ]
    found = records
    for step in steps:
        found = found.withColumns(step)
    usable = sf.col("_commit") & sf.col(REASON).isNull()
    fields = {
        "commit_topic": sf.col("commit_topic"),
        "commit_partition": sf.col("commit_partition").cast("int"),
        "commit_offset": sf.col("_offset"),
        "leader_epoch": sf.when(version >= 3, _integer(value, 11, 4)).cast("int"),
        "commit_metadata": sf.col("commit_metadata"),
        "commit_timestamp": _integer(value, sf.col("_after"), 8),
        "expire_timestamp": sf.when(version == 1, _integer(value, sf.col("_after") + 8, 8)),
        "topic_id": _uuid(value, sf.col("_tags.topic_at")),
    }
    kept = [sf.col(f"`{name}`") for name in records.columns]
    return found.select(
        *kept, KIND, GROUP, REASON, *(sf.when(usable, each).alias(name) for name, each in fields.items())
    )


def _reason(key: Column, value: Column, version: Column, flexible: Column) -> Column:
    """Return why a record is passed over; null if it can be used."""
    kind, is_commit = sf.col(KIND), sf.col("_commit")
    fits_key = (
        (sf.col("_t") >= 0)
        & (sf.length(key) == sf.col("_g") + sf.col("_t") + 10)
        & sf.col(GROUP).isNotNull()
        & sf.col("commit_topic").isNotNull()
        & (sf.col("commit_partition") >= 0)
    )
    times = sf.when(version == 1, sf.lit(16)).otherwise(sf.lit(8))
    ends = sf.when(flexible, sf.col("_tags.fits")).otherwise(sf.length(value) + 1 == sf.col("_after") + times)
    fits_value = (sf.col("_offset") >= 0) & sf.col("commit_metadata").isNotNull() & ends
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


def _unsigned(data: Column, at: Column | int, size: int) -> Column:
    """Return up to four bytes as a BIGINT; null beyond the end. Positions count from 1."""
    return sf.conv(sf.hex(_part(data, at, sf.lit(size))), 16, 10).cast("bigint")


def _integer(data: Column, at: Column | int, size: int) -> Column:
    """Return a signed integer of 2, 4 or 8 bytes; of any value if the data end within it."""
    place = at if isinstance(at, Column) else sf.lit(at)
    if size == 8:
        return sf.shiftleft(_integer(data, place, 4), 32).bitwiseOR(_unsigned(data, place + 4, 4))
    half = 1 << 8 * size - 1
    return (_unsigned(data, place, size) + half) % (2 * half) - half


def _part(data: Column, at: Column | int, size: Column) -> Column:
    return sf.substring(data, at.cast("int") if isinstance(at, Column) else sf.lit(at), size.cast("int"))


def _text(data: Column, at: Column, size: Column) -> Column:
    """Return a text; null if it does not lie within the data or is not UTF-8."""
    text = _part(data, at, size).cast("string")
    within = (size >= 0) & (at + size <= sf.length(data) + 1)
    return sf.when(within & sf.is_valid_utf8(text), text)


def _uuid(data: Column, at: Column) -> Column:
    return sf.translate(sf.base64(_part(data, at, sf.lit(UUID_BYTES))), "+/=", "-_")


def _varint(bytes_: Column) -> dict[str, Column]:
    """Return the `value` and the number of `bytes` of an unsigned varint; null if there is none of at most 31 bits."""
    each = [bytes_[n] for n in range(MOST_VARINT_BYTES)]
    value = count = sf.lit(None).cast("bigint")
    for n in reversed(range(MOST_VARINT_BYTES)):
        total = _sum(
            [sf.shiftleft(byte.bitwiseAND(sf.lit(0x7F)), 7 * place) for place, byte in enumerate(each[: n + 1])]
        )
        value = sf.when(each[n] < 0x80, sf.when(total < 2**31, total)).when(each[n] >= 0x80, value)
        count = sf.when(each[n] < 0x80, sf.lit(n + 1).cast("bigint")).when(each[n] >= 0x80, count)
    return {"value": value, "bytes": count}


def _sum(columns: Sequence[Column]) -> Column:
    total = columns[0]
    for column in columns[1:]:
        total = total + column
    return total


def _tags(data: Column, at: Column) -> Column:
    """Return whether the tagged fields at the end of a commit `fits`, and the place of the topic id, `topic_at`.

    Usually there are none, or the topic id alone. Otherwise the bytes are walked through one by one.
    """
    rest = sf.length(data) - at + 1
    start = sf.hex(_part(data, at, sf.lit(3)))
    walked = sf.aggregate(sf.sequence(at.cast("int"), sf.length(data)), _first_state(), lambda s, n: _next(s, n, data))
    alone = sf.struct(sf.lit(True).alias("fits"), (at + 3).cast("int").alias("topic_at"))
    none = sf.struct(sf.lit(True).alias("fits"), sf.lit(None).cast("int").alias("topic_at"))
    end = sf.transform(
        sf.array(walked),
        lambda s: sf.struct((s["fits"] & (s["part"] == _END)).alias("fits"), s["topic_at"].alias("topic_at")),
    )[0]
    return sf.when(start == "00", none).when((start == "010010") & (rest == 3 + UUID_BYTES), alone).when(rest >= 1, end)


def _state(fields: dict[str, Column]) -> Column:
    return sf.struct(*(column.alias(name) for name, column in fields.items())).cast(_WALK)


def _first_state() -> Column:
    values = {"part": _COUNT, "number": 0, "scale": 1, "left": 0, "last": -1, "skip": 0, "topic_at": None, "fits": True}
    return _state({name: sf.lit(value) for name, value in values.items()})


def _next(state: Column, at: Column, data: Column) -> Column:
    """Return the state after one more byte of the tagged fields."""
    judged = sf.transform(sf.array(_unsigned(data, at, 1)), lambda byte: _after_byte(state, at, byte))
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
