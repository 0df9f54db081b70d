"""Results of a replay: every strategy in every interval, and its summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from evenlag.compare.history import Capacity
from evenlag.figures import duration, messages, number, percent
from evenlag.model.explanation.phrases import listed
from evenlag.model.facts import NO_FACTS, Facts
from evenlag.model.figure_tables import GROUP, Figure, FigureTable, figures_of, values_of
from evenlag.model.names import one_of
from evenlag.model.plan import Number

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

RECORDED = "recorded"  # the strategy that follows the recorded assignment
MOST_NAMED = 3  # strategies that the verdict names

REPLAY_FIGURES = (
    GROUP,
    Figure("since", "string", "First snapshot."),
    Figure("until", "string", "Last snapshot."),
    Figure("snapshots", "integer", "Number of snapshots."),
    Figure("capacity", "number", "Messages per second that a member of weight 1 reads."),
    Figure("capacity_source", "string", "`given`, or the method of estimation: `backlog` or `highest`."),
    Figure("recorded_lag", "number", "Mean recorded lag of the group, in messages."),
)
"""Figures of a replay that are the same for all its strategies."""


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One strategy in one interval; figures in messages.

    Attributes
    ----------
    strategy : str
        Strategy.
    since : str
        Snapshot at the beginning of the interval.
    snapshot_ts : str
        Snapshot at its end.
    seconds : float
        Length of the interval.
    rebalance : str or None
        Reason for a rebalance at the beginning of the interval: `start`, `membership` (members or partitions changed),
        `threshold`; in the recorded history `recorded`; null if there was none.
    moves : int
        Partitions that left their owner in it.
    forced_moves : int
        Partitions without an owner that got one in it.
    members : int
        Active members.
    spread : number
        Spread at the end of the interval, under the assignment in force; by weight.
    makespan : number
        Largest load at the end of the interval; by weight.
    mean_load : number
        Mean load at the end of the interval.
    lag_before : number
        Lag of all partitions at the beginning of the interval.
    produced : number
        Messages that arrived.
    consumed : number
        Messages that were read.
    expired : number
        Messages that retention deleted before they were read.
    restated : number
        Total by which lags were set to the recorded ones; see `Interval.restated`.
    lag : number
        Lag at the end: lag_before + produced − consumed − expired + restated.
    """

    strategy: str
    since: str
    snapshot_ts: str
    seconds: float
    rebalance: str | None
    moves: int
    forced_moves: int
    members: int
    spread: Number
    makespan: Number
    mean_load: Number
    lag_before: Number
    produced: Number
    consumed: Number
    expired: Number
    restated: Number
    lag: Number


@dataclass(frozen=True)
class ReplaySummary:
    """One strategy over the whole history; None if it failed or a figure does not exist.

    Means and `p99_spread` are taken over the time with active members. A value has the weight of the interval at whose
    end it was taken.

    Attributes
    ----------
    strategy : str
        Strategy.
    best : bool
        True for the strategy that would have served the group best: the least time above the lag limit, then the lowest
        cost, then the fewest moves. If several tie, True for each. The recorded history does not compete.
    rebalances : int or None
        Number of rebalances, including the first assignment.
    moves : int or None
        Partitions that left their owner.
    forced_moves : int or None
        Partitions without an owner that got one.
    mean_spread : number or None
        Mean spread; messages.
    p99_spread : number or None
        Spread that was not exceeded during 99 % of the time; messages.
    mean_makespan : number or None
        Mean of the largest load; messages.
    cost : number or None
        Mean of spread + stickiness · moves, the objective of `solve`; with "fewest-moves" the mean spread, and moves
        come first.
    mean_lag : number or None
        Messages still to be read in the whole group.
    seconds_above : float or None
        Seconds during which a member had more than `lag_limit` to read, by weight; None without a limit.
    error : str or None
        Reason why the strategy could not be run to the end.
    """

    strategy: str
    best: bool = False
    rebalances: int | None = None
    moves: int | None = None
    forced_moves: int | None = None
    mean_spread: float | int | None = None
    p99_spread: float | int | None = None
    mean_makespan: float | int | None = None
    cost: float | int | None = None
    mean_lag: float | int | None = None
    seconds_above: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class Replay:
    """The outcome of a replay.

    Attributes
    ----------
    group : str
    since, until : str
        The first and the last snapshot.
    snapshots : int
    capacity : Capacity
        The members' capacity.
    lag_limit : float or None
    steps : list of ReplayStep
        By strategy, then in order of time; if a strategy failed, the steps up to there.
    summary : list of ReplaySummary
        The recorded history first, then the requested strategies.
    recorded_lag : number
        Mean lag of the group as recorded. Compare it with the model's value for the recorded assignment (`mean_lag` of
        "recorded") to see how far the model can be trusted.
    notes : tuple of str
        Remarks on the record.
    facts : Facts
        Facts of the group at the last snapshot.
    """

    group: str
    since: str
    until: str
    snapshots: int
    capacity: Capacity
    lag_limit: float | None
    steps: list[ReplayStep]
    summary: list[ReplaySummary]
    recorded_lag: float | int
    notes: tuple[str, ...] = ()
    facts: Facts = NO_FACTS

    def __repr__(self) -> str:
        record = f"snapshots={self.snapshots}, {self.since} to {self.until}"
        return f"<Replay {self.group!r}: {record}, best={self.best}>"

    @property
    def best(self) -> str | None:
        """The strategy that would have served the group best; None if several tie, or if all failed."""
        return None if len(self.tied) > 1 else next(iter(self.tied), None)

    @property
    def tied(self) -> list[str]:
        """The strategies that no other beats: one, or several in a tie; empty if all failed."""
        return [row.strategy for row in self.summary if row.best]

    @property
    def verdict(self) -> str:
        """One sentence: the strategies that no other beats, and their cost compared with the recorded history's."""
        if not self.tied:
            return "No strategy could be run."
        best = next(row for row in self.summary if row.best)
        recorded = next((row for row in self.summary if row.strategy == RECORDED), None)
        names = listed(self.tied[:MOST_NAMED], len(self.tied))
        head = f"{names} {'serves the group best' if self.best else 'tie as the best'} in this replay"
        if recorded is None or recorded.error is not None:
            return f"{head}."
        parts = [f"a mean spread of {messages(best.cost or 0)} with moves paid, {_change(best.cost, recorded.cost)}"]
        then, now = duration(recorded.seconds_above), duration(best.seconds_above)
        if then != now:
            parts.insert(0, f"{now} above the limit instead of {then}")
        return f"{head}: {', and '.join(parts)}."

    @property
    def figures(self) -> dict[str, Any]:
        """The figures that are the same for all strategies, by the names of `REPLAY_FIGURES`."""
        return {
            "group": self.group,
            "since": self.since,
            "until": self.until,
            "snapshots": self.snapshots,
            "capacity": float(self.capacity.rate),
            "capacity_source": self.capacity.source,
            "recorded_lag": float(self.recorded_lag),
        }

    def to_pandas(self, rows: Literal["summary", "steps"] = "summary") -> pd.DataFrame:
        """Return the summary as a pandas DataFrame with one row per strategy, or all steps, one row per interval.

        Columns of the summary: group; since, until (times of the first and last snapshot); snapshots; capacity
        (messages per second); capacity_source; recorded_lag (messages); strategy; best; rebalances; moves, forced_moves
        (partitions); mean_spread, p99_spread, mean_makespan, cost, mean_lag (messages); seconds_above (seconds); error.

        Columns of the steps: group; strategy; since, snapshot_ts (times of the snapshots at both ends); seconds;
        rebalance; moves, forced_moves (partitions); members; spread, makespan, mean_load, lag_before, produced,
        consumed, expired, restated, lag (messages).

        They have the names and types of the tables `summary` and `steps` of a fleet (`evenlag.spark.REPLAY_SUMMARY`,
        `evenlag.spark.REPLAY_STEPS`), which describe each.

        Parameters
        ----------
        rows : {"summary", "steps"}

        Raises
        ------
        InvalidProblemError
            `rows` has another value.
        ModuleNotFoundError
            pandas is not installed.
        """
        return self._table(rows).to_pandas()

    def to_arrow(self, rows: Literal["summary", "steps"] = "summary") -> pa.Table:
        """Return the summary or the steps as a pyarrow Table with the columns of `to_pandas`."""
        return self._table(rows).to_arrow()

    def _table(self, rows: str) -> FigureTable:
        if one_of(("summary", "steps"), rows, "rows") == "summary":
            figures = figures_of(ReplaySummary)
            strategies = [self.figures | values_of(row, figures) for row in self.summary]
            return FigureTable((*REPLAY_FIGURES, *figures), strategies)
        figures, group = figures_of(ReplayStep), {GROUP.name: self.group}
        return FigureTable((GROUP, *figures), [group | values_of(row, figures) for row in self.steps])


def _change(cost: float | None, recorded: float | None) -> str:
    """Describe a cost relative to the recorded cost."""
    if cost is None or recorded is None or number(cost) == number(recorded):
        return "as recorded"
    way = "less" if cost < recorded else "more"
    share = f" ({percent(abs(recorded - cost) / recorded)} {way})" if recorded else ""
    return f"instead of {number(recorded)} as recorded{share}"
