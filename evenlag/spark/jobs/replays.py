"""The replay of a fleet on Spark: every group's recorded history under every strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from evenlag.compare.foresight import AUTO
from evenlag.compare.simulation import CLOSE, STRATEGIES, ReplayOptions
from evenlag.errors import SourceError
from evenlag.model.objective import DEFAULT_STICKINESS
from evenlag.spark.defaults import AUTO_OFFSET_RESET
from evenlag.spark.driver.catalog import is_table
from evenlag.spark.driver.descriptions import described
from evenlag.spark.driver.drivers import driver_of
from evenlag.spark.driver.errors import blamed
from evenlag.spark.driver.protocol import Progress
from evenlag.spark.driver.sinks import sink
from evenlag.spark.jobs.whole_histories import by_whole_histories
from evenlag.spark.worker.replaying import not_replayed, replayed
from evenlag.tables.outputs import REPLAY_KEY, REPLAY_STEPS, REPLAY_SUMMARY, REPLAYS, columns

Form = Literal["parquet", "csv"]


@dataclass(frozen=True)
class Replays:
    """The replays of a fleet.

    Attributes
    ----------
    groups : DataFrame
        A row per group (`schemas.REPLAYS`); it only reads what was worked out once.
    """

    groups: DataFrame

    @property
    def summary(self) -> DataFrame:
        """A row per group and strategy (`schemas.REPLAY_SUMMARY`)."""
        return self.groups.select(*columns(REPLAY_KEY), sf.inline("summary")).select(*columns(REPLAY_SUMMARY))

    @property
    def steps(self) -> DataFrame:
        """A row per group, strategy and interval (`schemas.REPLAY_STEPS`)."""
        return self.groups.select("group", sf.inline("steps")).select(*columns(REPLAY_STEPS))

    def write(self, out: str | Path, form: Form = "parquet", overwrite: bool = False) -> list[str]:
        """Write `summary` and `steps`, both or neither, to a place as `run` takes one; return where they are.

        Raises
        ------
        SourceError
            The place is taken or cannot be written.
        """
        if is_table(out) and form != "parquet":
            raise SourceError(f"{out}: its catalog has a format of its own; leave {form} out")
        suffix = "" if is_table(out) else f".{form}"
        tables = {f"summary{suffix}": self.summary, f"steps{suffix}": self.steps}
        place = sink(self.groups.sparkSession, out)
        with place.whole(list(tables), overwrite) as folder, blamed("the replay"):
            for name, table in tables.items():
                order = ("group", "strategy", *(("snapshot_ts",) if "steps" in name else ()))
                with described(table.sparkSession, f"writing {name}"):
                    table.orderBy(*order).write.format(form).option("header", True).save(f"{folder}/{name}")
        return place.names(list(tables))


def replay(
    offsets_df: DataFrame,
    members_df: DataFrame | None = None,
    *,
    strategies: Sequence[str] = STRATEGIES,
    horizon: float | str = AUTO,
    lag_limit: float | None = None,
    rebalance_above: float | None = None,
    capacity: float | None = None,
    balance: str = "both",
    slack: int = 0,
    stickiness: float | str = DEFAULT_STICKINESS,
    group_time_limit: float = 1.0,
    gap: float = CLOSE,
    seed: int = 0,
    deterministic: bool = False,
    auto_offset_reset: str = AUTO_OFFSET_RESET,
    tasks: int | None = None,
    progress: Progress | None = None,
) -> Replays:
    """Run strategies over the recorded history of every group; see `evenlag.compare.replay`.

    The work is done within the call, and its result is kept as that of `solve`. Rows that cannot be used are left out
    (`rejects` gives them); a group that cannot be replayed is a row with its error.

    Parameters
    ----------
    offsets_df, members_df, auto_offset_reset, tasks, progress
        As in `plans`.
    strategies, horizon, lag_limit, rebalance_above, capacity, balance, slack, stickiness, gap, seed, deterministic
        As in `evenlag.compare.replay`, for every group.
    group_time_limit : float
        Seconds, the most that "evenlag" gets for one rebalance of one group.

    Raises
    ------
    InvalidProblemError
        An option has a value that it cannot have.
    SourceError
        A table lacks a required column.
    """
    driver = driver_of(offsets_df.sparkSession)
    options = ReplayOptions.of(
        strategies=tuple(strategies), horizon=horizon, lag_limit=lag_limit, rebalance_above=rebalance_above,
        capacity=capacity, balance=balance, slack=slack, stickiness=stickiness, time_limit=group_time_limit, gap=gap,
        seed=seed, deterministic=deterministic, threads=driver.task_cpus(),
    )  # fmt: skip
    return Replays(
        by_whole_histories(
            offsets_df, members_df, partial(replayed, options=options), not_replayed, REPLAYS,
            doing="replaying", auto_offset_reset=auto_offset_reset, tasks=tasks, progress=progress,
        )
    )  # fmt: skip
