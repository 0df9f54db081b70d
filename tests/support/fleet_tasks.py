"""Tasks of a fleet without Spark: raw rows as a task reads them, its groups, and what it returns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from evenlag.search.options import SolveOptions
from evenlag.spark.worker.arrow_task import Solver
from evenlag.spark.worker.group_work import Want
from evenlag.spark.worker.packed_plans import unpacked
from evenlag.spark.worker.rows_of_task import TableRules
from evenlag.spark.worker.turns import Budget
from evenlag.tables.column_names import check_headings
from evenlag.tables.group import GroupRows
from evenlag.tables.outputs import SOLVED
from evenlag.tables.past import Past

Row = dict[str, Any]
SCHEMA = SOLVED.arrow()


def arrow(rows: Any) -> Any:
    """Return rows as an Arrow table; one is returned as it is."""
    if isinstance(rows, pa.Table):
        return rows
    names = dict.fromkeys(name for row in rows for name in row)  # Arrow looks at the first row alone
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def batches(offsets: Any, members: Any = None, size: int = 1000) -> list[Any]:
    """Return the rows of both tables as Spark moves them to a task: a column of structs for each table.

    Parameters
    ----------
    offsets, members : rows or pyarrow.Table
        `members` is None without a members table.
    size : int
        Most rows of a batch.
    """
    tables = {"offsets": arrow(offsets)} | ({} if members is None else {"members": arrow(members)})
    kinds = {kind: pa.struct(table.schema) for kind, table in tables.items()}
    made = []
    for kind, table in tables.items():
        for batch in table.to_batches(max_chunksize=size):
            columns = {other: pa.nulls(len(batch), kinds[other]) for other in kinds}
            columns[kind] = pa.StructArray.from_arrays(batch.columns, fields=list(table.schema))
            made.append(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))
    return made


def rules(offsets: Any, members: Any = None, **others: Any) -> TableRules:
    """Return the rules for tables with these columns; others are attributes of `TableRules`."""
    names = check_headings(arrow(offsets).column_names, "offsets", "offsets")
    of_members = None if members is None else check_headings(arrow(members).column_names, "members", "members")
    return TableRules(names, of_members, **others)


@dataclass(frozen=True)
class Returned:
    """What a task returned: the rows of its groups by time and name, those without a group, and its plans."""

    groups: dict[tuple[str, str], Row]
    own: list[Row]
    plans: list[Row]

    @property
    def rejects(self) -> list[Row]:
        """The rejected rows."""
        return [reject for row in self.own for reject in row["rejects"] or ()]

    def plan_of(self, group: str) -> dict[tuple[str, int], Row]:
        """The rows of a group's plan by topic and partition."""
        return {(row["topic"], row["partition"]): row for row in self.plans if row["group"] == group}


def returned(found: Iterable[Any]) -> Returned:
    """Read the batches that a task returned, each with the columns that Spark expects."""
    made = list(found)
    for batch in made:
        assert batch.schema.equals(SCHEMA)
    rows = [row for batch in made for row in batch.to_pylist()]
    of_groups = [row for row in rows if row["group"] is not None]
    groups = {(row["snapshot_ts"], row["group"]): row for row in of_groups}
    assert len(groups) == len(of_groups), "a group came twice"
    own = [row for row in rows if row["group"] is None]
    packed = [batch.filter(batch.column("plans").is_valid()) for batch in made]
    return Returned(groups, own, [row for batch in unpacked(packed) for row in batch.to_pylist()])


def solve_task(
    offsets: Any,
    members: Any = None,
    options: SolveOptions | None = None,
    want: Want = Want.PLAN,
    budget: Budget | None = None,
    *,
    of_rules: Mapping[str, Any] | None = None,
    **others: Any,
) -> Returned:
    """Solve the groups of a task; others are attributes of `Solver`."""
    solver = Solver(
        rules(offsets, members, **(of_rules or {})), options or SolveOptions(), budget or Budget(2.0), want, SCHEMA,
        **others,
    )  # fmt: skip
    return returned(solver(batches(offsets, members)))


class FewGroups:
    """Groups in place of a task's (`turns.TaskGroups`), none of which is planned by columns."""

    by_columns = False

    def __init__(
        self, groups: Sequence[GroupRows], options: SolveOptions | None = None, want: Want = Want.PLAN
    ) -> None:
        self._groups, self.options, self.want = groups, options or SolveOptions(), want
        self.table = _Lags(groups)

    def rows(self, g: int) -> GroupRows:
        """Return the rows of a group."""
        return self._groups[g]

    def past(self, _group: str) -> Past | None:
        """Return no past."""
        return None


class _Lags:
    """What turns look at in a table of groups: their number, and that of their rows."""

    def __init__(self, groups: Sequence[GroupRows]) -> None:
        self._groups = groups
        self.lags = np.concatenate([group.lags for group in groups])

    def __len__(self) -> int:
        return len(self._groups)


def chunked(column: Any, size: int) -> Any:
    """Return a column in chunks of this size."""
    return pa.chunked_array(list(_parts(column, size)), column.type)


def _parts(column: Any, size: int) -> Iterator[Any]:
    for start in range(0, len(column), size):
        yield column.slice(start, size)
