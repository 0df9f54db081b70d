"""The board as Prometheus metrics, and as JSON for KEDA's metrics-api scaler."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.process_collector import ProcessCollector

from evenlag import __version__
from evenlag.watch.board import NAMED, Board
from evenlag.watch.group_figures import FIGURES

PREFIX = "evenlag_"


class BoardCollector:
    """A collector of prometheus_client that reads the board whenever it is asked, and keeps nothing.

    Parameters
    ----------
    board : Board
    every : float
        Seconds between readings.
    """

    def __init__(self, board: Board, every: float) -> None:
        self._board, self._every = board, every

    def collect(self) -> Iterator[Any]:
        """Yield the metrics."""
        yield InfoMetricFamily(f"{PREFIX}build", "Version of evenlag.", value={"version": __version__})
        yield from self._of_reads()
        yield from self._of_groups()
        yield from self._figures()
        if self._board.tallies:
            yield from self._of_plans()

    def _of_reads(self) -> Iterator[Any]:
        reads = self._board.reads
        yield CounterMetricFamily(f"{PREFIX}reads", "Readings of the source since the start.", reads.total)
        yield CounterMetricFamily(f"{PREFIX}read_failures", "Readings of the source that failed.", reads.failed)
        yield _gauge("read_success", "1 if the last reading of the source succeeded.", float(reads.succeeded))
        if reads.last_success is not None:
            text = "Time of the last reading that succeeded, in seconds since 1970."
            yield _gauge("last_read_timestamp_seconds", text, reads.last_success)
        yield _gauge("read_duration_seconds", "Duration of the last reading.", reads.seconds)
        yield _gauge("plan_duration_seconds", "Duration of the last round of plans.", reads.plan_seconds)
        yield _gauge("interval_seconds", "Seconds from one reading to the next.", self._every)

    def _of_groups(self) -> Iterator[Any]:
        board, now = self._board, time.time()
        yield _gauge("groups", "Groups with figures.", sum(1 for _ in board.fresh(now)))
        text = "Groups to watch without fresh figures, and patterns that match no group."
        yield _gauge("groups_without_figures", text, board.without_figures(now))
        yield _gauge("groups_unplanned", "Groups that got no turn in the last round.", board.unplanned)
        yield _gauge("groups_left_out", "Groups beyond the limit of groups.", len(board.left_out))
        named = _of_group("group_left_out", f"1 for each group beyond the limit, the first {NAMED} by name.")
        for name in board.left_out[:NAMED]:
            named.add_metric([name], 1)
        yield named
        failed = _of_group("group_failed", "1 for each group that could not be read or planned; the log says why.")
        for name in sorted(board.failures.copy()):
            failed.add_metric([name], 1)
        yield failed

    def _figures(self) -> Iterator[Any]:
        now = time.time()
        groups = [(name, entry, entry.standing.figures.values()) for name, entry in self._board.fresh(now)]
        ages = _of_group("group_age_seconds", "Age of the data behind the group's figures.")
        for name, entry, _ in groups:
            ages.add_metric([name], max(now - entry.as_of, 0.0))
        yield ages
        text = "1 for the cause of the group's state, with the first remedy; docs/diagnose.md lists both."
        causes = GaugeMetricFamily(f"{PREFIX}group_diagnosis", text, labels=["group", "cause", "remedy"])
        for name, entry in self._board.fresh(now):
            if entry.standing.diagnosis is not None:
                causes.add_metric([name, entry.standing.diagnosis.cause, entry.standing.diagnosis.remedy], 1)
        yield causes
        for figure in FIGURES:
            family = _of_group(figure.name, figure.help)
            for name, _, values in groups:
                if figure.name in values:
                    family.add_metric([name], values[figure.name])
            yield family

    def _of_plans(self) -> Iterator[Any]:
        published = CounterMetricFamily(
            f"{PREFIX}plans_published", "Plans published since the start.", labels=["group"]
        )
        last = _of_group("last_plan_timestamp_seconds", "Time of the last plan published, in seconds since 1970.")
        text = "Decisions to publish no plan, by reason; docs/loop.md lists the reasons."
        waits = CounterMetricFamily(f"{PREFIX}plan_waits", text, labels=["group", "reason"])
        for name, tally in sorted(self._board.tallies.copy().items()):
            published.add_metric([name], tally.published)
            if tally.last is not None:
                last.add_metric([name], tally.last)
            for reason, count in sorted(tally.waits.copy().items()):
                waits.add_metric([name, reason], count)
        yield from (published, last, waits)


def registry_of(board: Board, every: float, *, process: bool) -> CollectorRegistry:
    """Return a registry with the board's metrics, and with those of this process if `process` is true."""
    registry = CollectorRegistry()
    registry.register(BoardCollector(board, every))
    if process:
        ProcessCollector(registry=registry)
    return registry


def text_of(board: Board, every: float) -> str:
    """Return the metrics in Prometheus' text format, without those of this process."""
    text: str = generate_latest(registry_of(board, every, process=False)).decode()
    return text


def document_of(board: Board, name: str, now: float) -> dict[str, Any] | None:
    """Return the JSON of a group; None if there are no figures of it, or only stale ones."""
    entry = board.entries.get(name)
    if entry is None or board.is_stale(entry, now):
        return None
    return {"group": name, "age_seconds": round(max(now - entry.as_of, 0.0), 3), **entry.standing.document()}


def _gauge(name: str, text: str, value: float) -> Any:
    return GaugeMetricFamily(PREFIX + name, text, value)


def _of_group(name: str, text: str) -> Any:
    return GaugeMetricFamily(PREFIX + name, text, labels=["group"])
