"""The board as Prometheus metrics, and as JSON for KEDA's metrics-api scaler."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
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
        text = f"1 for each group beyond the limit, the first {NAMED} by name."
        yield _by_group("group_left_out", text, ((name, 1) for name in board.left_out[:NAMED]))
        text = "1 for each group that could not be read or planned; the log says why."
        yield _by_group("group_failed", text, ((name, 1) for name in sorted(board.failures.copy())))

    def _figures(self) -> Iterator[Any]:
        now = time.time()
        groups = list(self._board.fresh(now))
        ages = ((name, max(now - entry.as_of, 0.0)) for name, entry in groups)
        yield _by_group("group_age_seconds", "Age of the data behind the group's figures.", ages)
        text = "1 for the cause of the group's state, with the first remedy; docs/diagnose.md lists both."
        causes = GaugeMetricFamily(f"{PREFIX}group_diagnosis", text, labels=["group", "cause", "remedy"])
        for name, entry in groups:
            if entry.standing.diagnosis is not None:
                causes.add_metric([name, entry.standing.diagnosis.cause, entry.standing.diagnosis.remedy], 1)
        yield causes
        values = [(name, entry.standing.figures.values()) for name, entry in groups]
        for figure, text in FIGURES.items():
            yield _by_group(figure, text, [(name, known[figure]) for name, known in values if figure in known])

    def _of_plans(self) -> Iterator[Any]:
        tallies = sorted(self._board.tallies.copy().items())
        text = "Plans published since the start."
        published = CounterMetricFamily(f"{PREFIX}plans_published", text, labels=["group"])
        text = "Decisions to publish no plan, by reason; docs/loop.md lists the reasons."
        waits = CounterMetricFamily(f"{PREFIX}plan_waits", text, labels=["group", "reason"])
        for name, tally in tallies:
            published.add_metric([name], tally.published)
            for reason, count in sorted(tally.waits.copy().items()):
                waits.add_metric([name, reason], count)
        yield published
        last = ((name, tally.last) for name, tally in tallies if tally.last is not None)
        text = "Time of the last plan published, in seconds since 1970."
        yield _by_group("last_plan_timestamp_seconds", text, last)
        yield waits


def registry_of(board: Board, every: float, *, process: bool) -> CollectorRegistry:
    """Return a registry with the board's metrics, and with those of this process if `process` is true."""
    registry = CollectorRegistry()
    registry.register(BoardCollector(board, every))
    if process:
        ProcessCollector(registry=registry)
    return registry


def text_of(board: Board, every: float) -> str:
    """Return the metrics in Prometheus' text format, without those of this process."""
    return generate_latest(registry_of(board, every, process=False)).decode()


def document_of(board: Board, name: str, now: float) -> dict[str, Any] | None:
    """Return the JSON of a group; None if there are no figures of it, or only stale ones."""
    entry = board.entries.get(name)
    if entry is None or board.is_stale(entry, now):
        return None
    return {"group": name, "age_seconds": round(max(now - entry.as_of, 0.0), 3), **entry.standing.document()}


def _gauge(name: str, text: str, value: float) -> Any:
    return GaugeMetricFamily(PREFIX + name, text, value)


def _by_group(name: str, text: str, values: Iterable[tuple[str, float]]) -> Any:
    family = GaugeMetricFamily(PREFIX + name, text, labels=["group"])
    for group, value in values:
        family.add_metric([group], value)
    return family
