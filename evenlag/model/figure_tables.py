"""Rows of figures as tables for pandas and Arrow, with the same columns and types whatever the rows hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from inspect import getdoc
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FigureKind = Literal["string", "int", "integer", "number", "boolean"]

_ATTRIBUTE = re.compile(r"^(\w[\w, ]*) : .*\n((?:    .*\n?|\n(?=    ))*)", re.MULTILINE)
_KINDS: dict[type, FigureKind] = {
    str: "string", tuple: "string", bool: "boolean", float: "number", Fraction: "number", int: "integer"
}  # fmt: skip
_PANDAS = {"int": "Int32", "integer": "Int64", "number": "float64", "boolean": "boolean"}


class Figure(NamedTuple):
    """A column of a table of figures.

    Attributes
    ----------
    kind : str
        "string", "int" (32 bits), "integer" (64 bits), "boolean", or "number" (a float), as in `tables.columns.Column`.
    about : str
        Description for the docs, with the unit of its values.
    """

    name: str
    kind: FigureKind
    about: str = ""


Figures = tuple[Figure, ...]
GROUP = Figure("group", "string", "Group id.")


def figures_of(row: type) -> Figures:
    """Return the columns of a dataclass: types from its annotations, descriptions from its docstring."""
    about = {
        name: " ".join(text.split())
        for names, text in _ATTRIBUTE.findall((getdoc(row) or "").partition("Attributes\n----------\n")[2])
        for name in names.split(", ")
    }
    figures = []
    for name, hint in get_type_hints(row).items():
        parts = get_args(hint) if get_origin(hint) is UnionType else (get_origin(hint) or hint,)
        kind = next(_KINDS[each] for each in _KINDS if any(issubclass(part, each) for part in parts))
        figures.append(Figure(name, kind, about.get(name, "")))
    return tuple(figures)


def values_of(row: object, figures: Figures) -> dict[str, Any]:
    """Return the figures of a dataclass by name, as plain values: fractions as floats, several texts joined by `;`."""
    return {name: _plain(getattr(row, name), kind) for name, kind, _ in figures}


@dataclass(frozen=True)
class FigureTable:
    """Rows of figures.

    Attributes
    ----------
    figures : tuple of Figure
        The columns.
    rows : sequence of mapping
        The values of each row by name; one that is absent is null.
    """

    figures: Figures
    rows: Sequence[Mapping[str, Any]]

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame: text as objects, integers and booleans in types that can be null.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed.
        """
        pandas = needed("pandas", "to_pandas")
        columns = {
            name: objects(values) if kind == "string" else pandas.array(values, dtype=_PANDAS[kind])
            for name, kind, values in self._columns()
        }
        made: pd.DataFrame = pandas.DataFrame(columns)
        return made

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table.

        Raises
        ------
        ModuleNotFoundError
            pyarrow is not installed.
        """
        arrow = needed("pyarrow", "to_arrow")
        types = arrow_types()
        return arrow.table({name: arrow.array(values, types[kind]) for name, kind, values in self._columns()})

    def _columns(self) -> Iterable[tuple[str, FigureKind, list[Any]]]:
        for name, kind, _ in self.figures:
            yield name, kind, [_plain(row.get(name), kind) for row in self.rows]


def arrow_types() -> dict[str, Any]:
    """Return the Arrow type of each kind. Needs pyarrow."""
    arrow = import_module("pyarrow")
    return {
        "string": arrow.string(), "int": arrow.int32(), "integer": arrow.int64(), "number": arrow.float64(),
        "boolean": arrow.bool_(),
    }  # fmt: skip


def _plain(value: Any, kind: FigureKind) -> Any:
    """Return a value as its column holds it; an empty tuple of texts is null."""
    if value is None:
        return None
    if kind == "number":
        return float(value)
    if kind == "string":
        return (";".join(value) or None) if isinstance(value, tuple) else str(value)
    return value


def objects(values: list[Any]) -> Any:
    """Return texts as an object array, for which pandas does not infer a type, even if empty."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def needed(name: str, call: str) -> Any:
    """Import a package that only this call needs; name both in the error if it is missing."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(
            f"{call}() needs {name}, which is not installed: pip install {name}", name=name
        ) from None
