"""Plans as tables with one row per partition: as plain columns, and for pandas, Arrow and Polars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evenlag.model.arrays import NOBODY
from evenlag.model.figure_tables import needed, objects
from evenlag.model.pair_costs import crosses

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from evenlag.model.plan import Plan


def moves_of(plan: Plan) -> list[str]:
    """Return the move of each partition: kept, moved, forced (without an owner before) or unassigned."""
    to, owner = plan.member_of, plan.problem.owner
    moves: list[str] = np.select(
        [to == NOBODY, owner == NOBODY, owner == to], ["unassigned", "forced", "kept"], "moved"
    ).tolist()
    return moves


def plan_columns(plan: Plan) -> dict[str, Any]:
    """Return the columns by name, as lists and arrays of shape (P,), in the order of the problem's partitions.

    The columns are topic, partition, lag (messages), previous_member (None without an owner), member (None without a
    subscriber) and move. If racks of members are known, also member_rack (None if unknown) and crossing, which is True
    if the member reads across racks and None if a rack is unknown.
    """
    problem = plan.problem
    topics = np.array([*problem.topics, None], dtype=object)
    members = np.array([*problem.members, None], dtype=object)  # NOBODY is -1, the last place
    columns = {
        "topic": topics[problem.topic_of].tolist(),
        "partition": problem.partition_ids.astype(np.int32),
        "lag": problem.lags.astype(np.int64),  # a single lag is at most 2**62
        "previous_member": members[problem.owner].tolist(),
        "member": members[plan.member_of].tolist(),
        "move": moves_of(plan),
    }
    if problem.pairs.racks:
        columns["member_rack"] = np.array([*problem.pairs.racks, None], dtype=object)[plan.member_of].tolist()
        columns["crossing"] = crosses(problem, plan.member_of)
    return columns


def to_pandas(plan: Plan) -> pd.DataFrame:
    """Return a plan as a pandas DataFrame; None if there is no member."""
    columns = plan_columns(plan)
    pandas = needed("pandas", "to_pandas")
    frame = {name: value if isinstance(value, np.ndarray) else objects(value) for name, value in columns.items()}
    made: pd.DataFrame = pandas.DataFrame(frame)
    return made


def to_arrow(plan: Plan) -> pa.Table:
    """Return a plan as an Arrow table; null if there is no member."""
    arrow = needed("pyarrow", "to_arrow")
    columns = plan_columns(plan)
    kinds = {"partition": arrow.int32(), "lag": arrow.int64(), "crossing": arrow.bool_()}
    return arrow.table({name: arrow.array(value, kinds.get(name, arrow.string())) for name, value in columns.items()})


def to_polars(plan: Plan) -> pl.DataFrame:
    """Return a plan as a Polars DataFrame; null if there is no member."""
    polars = needed("polars", "to_polars")
    kinds = {"partition": polars.Int32, "lag": polars.Int64, "crossing": polars.Boolean}
    columns = plan_columns(plan)
    made: pl.DataFrame = polars.DataFrame(columns, schema={name: kinds.get(name, polars.String) for name in columns})
    return made
