"""Tables that users meet, as objects that list their columns: here those that are read, in `outputs` the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from evenlag.tables import columns
from evenlag.tables.columns import Column, Table


class Schema(Table):
    """The columns of a table, in order. `repr`, `help` and notebooks list them.

    A column has a `name`, a `kind` (its type in a word), and a sentence `about` its values.

    Attributes
    ----------
    about : str
        One or more sentences on the rows of the table.
    """

    about: str

    def __new__(cls, columns: Iterable[Column], about: str) -> Self:
        """Make the text that `help` shows."""
        schema = super().__new__(cls, columns)
        schema.about = about
        types = [_type(column) + (", required" if column.required else "") for column in schema]
        listed = [f"{column.name} : {of}\n    {column.about}" for column, of in zip(schema, types, strict=True)]
        schema.__doc__ = "\n".join([about, "", "Columns", "-------", *listed])  # shown by help(schema)
        return schema

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self), self.about

    def __repr__(self) -> str:
        return f"<Schema: {', '.join(f'{column.name} {_type(column)}' for column in self)}>"

    def _repr_markdown_(self) -> str:
        """Return what notebooks show."""
        return f"{self.about}\n\n{self.markdown()}"


def _type(column: Column) -> str:
    """Return the type as Spark DDL, without the columns of rows within a row."""
    return {"struct": "STRUCT", "structs": "ARRAY<STRUCT>"}.get(column.kind, column.ddl)


OFFSETS = Schema(
    columns.OFFSETS,
    "The offsets table, which is read: one row per snapshot, group and partition, with `log_end_offset` or `lag`.",
)
MEMBERS = Schema(columns.MEMBERS, "The members table, which is read: one row per snapshot, group and member.")
