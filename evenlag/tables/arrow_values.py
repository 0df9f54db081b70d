"""Values of an Arrow column in the type that its declaration names, for whole columns at once.

Plain numbers and texts are converted by Arrow. The others, such as `7.0` or ` true`, are converted once each by
`values.plain_value`, so the rule of a value stands there alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Whole
from evenlag.tables.typed_values import is_null, plain_value, text_of

_PLAIN_WHOLE = r"^[+-]?[0-9]{1,18}$"  # Arrow casts these to integers as Python does


@dataclass(frozen=True, eq=False)
class Values:
    """A column of N values.

    Attributes
    ----------
    data : array (N,)
        int64, float64 or bool; for texts and lists the index of each value in `names`, −1 for null.
    null : bool array (N,)
        True where the row has no value.
    wrong : bool array (N,)
        True where the row has a value of another type, which `data` lacks.
    names : sequence
        Texts in order, or tuples of texts; each once.
    """

    data: NDArray[Any]
    null: Bools
    wrong: Bools
    names: Sequence[Any] = ()

    @classmethod
    def nothing(cls, count: int, kind: str) -> Values:
        """Return a column without a value."""
        data = np.full(count, -1) if kind in ("string", "strings", "racks") else np.zeros(count, _DTYPES[kind])
        return cls(data, np.ones(count, dtype=bool), np.zeros(count, dtype=bool))

    @property
    def silent(self) -> bool:
        """True if no row has a usable value."""
        return bool((self.null | self.wrong).all())

    def known(self, unknown: int) -> Whole:
        """Return integers with another value where there is none."""
        return np.where(self.null | self.wrong, unknown, self.data)

    def take(self, rows: NDArray[Any]) -> Values:
        """Return the values of some rows."""
        return replace(self, data=self.data[rows], null=self.null[rows], wrong=self.wrong[rows])

    def named(self) -> NDArray[Any]:
        """Return the value of each row as an object: a text or a tuple, None without one."""
        names = np.empty(len(self.names) + 1, dtype=object)  # index −1, for null, is the last entry
        names[:-1] = self.names
        return np.asarray(names[self.data])


_DTYPES: dict[str, Any] = {"integer": np.int64, "int": np.int64, "number": np.float64, "boolean": np.bool_}


def column_values(column: Any, kind: str) -> Values:
    """Convert a column of any Arrow type.

    Parameters
    ----------
    kind : str
        `Column.kind`: "string", "integer", "number", "boolean", "strings" or "racks".
    """
    if isinstance(column.type, pa.ExtensionType):
        column = column.cast(column.type.storage_type)
    if pa.types.is_dictionary(column.type) and not _is_text(column.type):
        column = column.cast(column.type.value_type)
    if len(column) == column.null_count:
        return Values.nothing(len(column), kind)
    if kind in ("strings", "racks"):
        return _lists(column, kind)
    if _is_text(column.type):
        return _of_texts(column, kind)
    convert = {"string": _as_text, "number": _as_number, "boolean": _as_boolean}
    return convert.get(kind, _as_whole)(column)


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _flags(column: Any) -> Bools:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=bool) if len(column) else np.zeros(0, dtype=bool)


def _nulls(column: Any) -> Bools:
    return _flags(pc.is_null(column)) if column.null_count else np.zeros(len(column), dtype=bool)


# ---- columns of text -------------------------------------------------------------------------------------------------


def _of_texts(column: Any, kind: str) -> Values:
    if kind == "integer" and (quick := _plain_wholes(column)) is not None:
        return quick
    codes, texts = _encoded(column)
    if kind == "string":
        return _sorted_texts(codes, [None if is_null(text) else text for text in texts])
    return _distinct(codes, [plain_value(text, kind) for text in texts], kind)


def _plain_wholes(column: Any) -> Values | None:
    """Return a column of plain whole numbers; None if it has another text."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):  # Arrow's regular expressions do not support this type
        column = column.cast(pa.string())
    if pc.all(pc.match_substring_regex(column, _PLAIN_WHOLE)).as_py() is not True:
        return None
    null = _nulls(column)
    whole = pc.cast(pc.replace_substring_regex(column, r"^\+", ""), pa.int64()).fill_null(0)
    return Values(_numbers(whole), null, np.zeros(len(column), dtype=bool))


def _numbers(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_numpy())


def _encoded(column: Any) -> tuple[Whole, list[str]]:
    """Return the index of each row's text in the distinct texts, −1 for null, and these texts."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pa.ChunkedArray):  # Arrow returns one where nothing is to be combined
        column = column.unify_dictionaries().chunk(0)
    texts = ["" if text is None else text for text in _listed(column.dictionary)]
    codes = _numbers(column.indices.fill_null(-1)).astype(np.int64)
    if len({*texts}) < len(texts):  # after unreadable bytes were replaced, or from a caller's dictionary
        place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        codes = np.array([*(place[text] for text in texts), -1])[codes]
        texts = list(place)
    return codes, texts


def _listed(column: Any) -> list[Any]:
    """Return the values of a column, with invalid UTF-8 replaced."""
    try:
        found: list[Any] = column.to_pylist()
    except UnicodeDecodeError:  # Spark passes on any bytes
        found = [None if raw is None else raw.decode(errors="replace") for raw in column.cast(pa.binary()).to_pylist()]
    return found


def _sorted_texts(codes: Whole, texts: Sequence[str | None]) -> Values:
    """Return texts by their index in the sorted distinct ones."""
    names = sorted({text for text in texts if text is not None})
    rank = {name: number for number, name in enumerate(names)}
    number_of = np.array([*(-1 if text is None else rank[text] for text in texts), -1], dtype=np.int64)
    data = number_of[codes]
    return Values(data, data < 0, np.zeros(len(data), dtype=bool), names)


def _distinct(codes: Whole, values: Sequence[Any], kind: str) -> Values:
    """Return the values of rows from the converted distinct ones, of which those of another type are wrong."""
    if kind in ("strings", "racks"):
        return _coded_lists(codes, values, kind)
    fits = _FITS[kind]
    data = np.zeros(len(values) + 1, dtype=_DTYPES[kind])
    null, wrong = np.ones(len(values) + 1, dtype=bool), np.zeros(len(values) + 1, dtype=bool)
    for place, value in enumerate(values):
        null[place] = value is None
        wrong[place] = value is not None and not fits(value)
        if not (null[place] or wrong[place]):
            data[place] = value
    return Values(data[codes], null[codes], wrong[codes])


def _is_int64(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


_FITS: dict[str, Callable[[Any], bool]] = {
    "integer": _is_int64,
    "int": _is_int64,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
}


# ---- columns of other types ------------------------------------------------------------------------------------------


def _as_text(column: Any) -> Values:
    """Return numbers, times and the like as texts, each distinct value once; lists and rows are refused."""
    if pa.types.is_nested(column.type):
        null = _nulls(column)
        return Values(np.full(len(column), -1), null, ~null)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    try:
        encoded = column.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # such as structs
        texts = [text_of(value) for value in column.to_pylist()]
        place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return _sorted_texts(np.array([place[text] for text in texts]), list(place))
    encoded = encoded.unify_dictionaries()
    codes = np.concatenate([_numbers(chunk.indices.fill_null(-1)).astype(np.int64) for chunk in encoded.chunks])
    return _sorted_texts(codes, [text_of(value) for value in encoded.chunk(0).dictionary.to_pylist()])


def _as_whole(column: Any) -> Values:
    kind, null = column.type, _nulls(column)
    if pa.types.is_unsigned_integer(kind) and kind.bit_width == 64:
        wrong = _flags(pc.fill_null(pc.greater(column, pa.scalar(2**63 - 1, kind)), False))
        column = pc.if_else(pa.array(wrong), pa.scalar(0, kind), column) if wrong.any() else column
        return Values(_numbers(column.cast(pa.int64()).fill_null(0)), null, wrong)
    if pa.types.is_integer(kind):
        return Values(_numbers(column.cast(pa.int64()).fill_null(0)), null, np.zeros(len(column), dtype=bool))
    if pa.types.is_floating(kind):
        numbers = _numbers(column.cast(pa.float64()).fill_null(np.nan))
        null = np.isnan(numbers)  # a null in pandas
        whole = ~null & (np.floor(numbers) == numbers) & (numbers >= -(2.0**63)) & (numbers < 2.0**63)
        return Values(np.where(whole, numbers, 0).astype(np.int64), null, ~null & ~whole)
    if pa.types.is_decimal(kind):
        return _objects(column, "integer")
    return Values(np.zeros(len(column), dtype=np.int64), null, ~null)


def _as_number(column: Any) -> Values:
    null = _nulls(column)
    if pa.types.is_decimal(column.type):
        return _objects(column, "number")
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return Values(np.zeros(len(column)), null, ~null)
    numbers = _numbers(column.cast(pa.float64(), safe=False).fill_null(np.nan))
    null = np.isnan(numbers)
    return Values(np.where(null, 0.0, numbers), null, np.zeros(len(column), dtype=bool))


def _as_boolean(column: Any) -> Values:
    null = _nulls(column)
    if not pa.types.is_boolean(column.type):
        return Values(np.zeros(len(column), dtype=bool), null, ~null)
    return Values(_flags(column.fill_null(False)), null, np.zeros(len(column), dtype=bool))


def _objects(column: Any, kind: str) -> Values:
    """Return a column of Python objects such as decimals, converted one by one."""
    values = [_plain_number(value) for value in column.to_pylist()]
    return _distinct(np.arange(len(values)), [plain_value(value, kind) for value in values], kind)


def _plain_number(value: Any) -> Any:
    if not isinstance(value, Decimal) or not value.is_finite():
        return None if value is None else float(value)
    return int(value) if value == value.to_integral_value() else float(value)


# ---- lists of names --------------------------------------------------------------------------------------------------


def _lists(column: Any, kind: str) -> Values:
    if _is_text(column.type):
        codes, texts = _encoded(column)
        return _coded_lists(codes, [plain_value(text, kind) for text in texts], kind)
    null = _nulls(column)
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return Values(np.full(len(column), -1), null, ~null)
    place: dict[Any, int] = {}
    keys = (None if each is None else (*each,) for each in _rows_of_lists(column))
    codes = np.array([-1 if key is None else place.setdefault(key, len(place)) for key in keys], dtype=np.int64)
    return _coded_lists(codes, [[*key] for key in place], kind)


def _rows_of_lists(column: Any) -> list[Any]:
    try:
        found: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        raw = column.cast(pa.list_(pa.binary())).to_pylist()
        found = [row and [name and name.decode(errors="replace") for name in row] for row in raw]
    return found


def _coded_lists(codes: Whole, values: Sequence[Any], kind: str) -> Values:
    blanks = kind == "racks"
    right = [isinstance(value, list) and all(_is_name(name, blanks) for name in value) for value in values]
    null = np.array([*(value is None for value in values), True])[codes]
    wrong = np.array([*(not fits and value is not None for fits, value in zip(right, values, strict=True)), False])[
        codes
    ]
    names = [tuple(value) if fits else () for fits, value in zip(right, values, strict=True)]
    order = sorted({name for name, fits in zip(names, right, strict=True) if fits})
    rank = {name: number for number, name in enumerate(order)}
    number_of = np.array([*(rank[name] if fits else -1 for name, fits in zip(names, right, strict=True)), -1])
    return Values(number_of[codes], null, wrong, order)


def _is_name(name: Any, blanks: bool) -> bool:
    return isinstance(name, str) and (blanks or name != "")


def row_texts(table: Any, rows: NDArray[Any], kept: Sequence[str] = ()) -> list[str]:
    """Return some rows of a table as JSON objects.

    Parameters
    ----------
    rows : int array (K,)
    kept : sequence of str
        Columns that may have the text of the whole row instead, and are left out of the object.
    """
    chosen = table.take(pa.array(rows))
    columns = [(name, list(map(_json_value, _listed(chosen.column(name))))) for name in chosen.column_names]
    plain = [(name, values) for name, values in columns if name not in kept]
    texts = [values for name, values in columns if name in kept]
    found = []
    for row in range(len(rows)):
        text = next((values[row] for values in texts if values[row] is not None), None)
        if text is None:
            fields = {name: values[row] for name, values in plain}
            text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=text_of)
        found.append(text)
    return found


def _json_value(value: Any) -> Any:
    """Return a value with texts in place of the numbers that JSON lacks."""
    if isinstance(value, list):
        return [_json_value(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
