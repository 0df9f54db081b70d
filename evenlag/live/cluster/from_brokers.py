"""A running cluster as an input: its groups, in rows like those of a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from evenlag.live.cluster.capture import snapshot
from evenlag.live.cluster.past_record import snapshot_since
from evenlag.model.rates import SECOND, horizon_micros, time_micros
from evenlag.tables.cluster_address import Brokers
from evenlag.tables.formats import Reading
from evenlag.tables.loading import read_file

LONGEST_STEP = 900.0  # seconds between past times
LEAST_TIMES = 4


def readings_of(
    brokers: Brokers, group: str | None = None, progress: Callable[[str, int, int], None] | None = None
) -> tuple[list[Reading], list[Reading]]:
    """Return the rows of partitions and of members; of all groups that the user may see if none is named.

    Raises
    ------
    SourceError
        As in `snapshot`.
    """
    groups = None if group is None else [group]
    if brokers.since is None:
        taken = snapshot(brokers.servers, groups, timeout=brokers.timeout, config=brokers.config, progress=progress)
        offsets = [Reading(offsets=list(enumerate(taken.offsets, 1)))]
        members = [Reading(members=list(enumerate(taken.members, 1)))]
    else:
        with TemporaryDirectory(prefix="evenlag-since-") as folder:
            taken = snapshot_since(
                brokers.servers, folder, groups, since=brokers.since, every=_step(brokers.since), format="jsonl",
                timeout=brokers.timeout, config=brokers.config, progress=progress,
            ).taken  # fmt: skip
            offsets, members = (read_file(Path(folder) / f"{kind}.jsonl", kind) for kind in ("offsets", "members"))
    for reading in (*offsets, *members):
        reading.source, reading.unit = str(brokers), "row"
    offsets[0].notes += taken.warnings
    offsets[0].facts.update(taken.facts.items())
    return offsets, members


def _step(since: str) -> float:
    """Return the seconds between past times: the interval of a record, or less if the time is short."""
    if time_micros(since) is not None:  # a date
        return LONGEST_STEP
    seconds = horizon_micros(since, "since (--since)", ", or a date") / SECOND
    return min(LONGEST_STEP, max(seconds / LEAST_TIMES, 1.0))
