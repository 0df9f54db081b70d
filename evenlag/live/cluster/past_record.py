"""A snapshot together with log ends of the past, written as one record that a later call can continue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.live.cluster.capture import Snapshot, cluster_at, file_names, snapshot, write_snapshot
from evenlag.live.cluster.past_ends import TIMES_A_CHECK, Ends, PastEnds
from evenlag.live.cluster.past_times import MOST_REQUESTS, PastTimes, as_text
from evenlag.live.group_state import Failure, TopicPartition
from evenlag.model.rates import time_micros
from evenlag.tables.columns import LOG_ONLY, OFFSETS, Row
from evenlag.tables.files import shown_files
from evenlag.tables.loading import read_table
from evenlag.tables.times_of_names import time_in_name
from evenlag.tables.writing import columns_of, write_tables

Place = tuple[str, str, int]  # group, topic, partition


@dataclass(frozen=True)
class Recorded:
    """The record that `snapshot_since` has written.

    Attributes
    ----------
    taken : Snapshot
        The snapshot of now, with the warnings and requests of the whole call.
    times : int
        Number of past times.
    since, until : str
        The first and the last of them, ISO 8601.
    rows : int
        Number of rows with past log ends that were written.
    already : int
        Number of past times for which the record had all rows before the call.
    files : list of Path
        The files written.
    """

    taken: Snapshot
    times: int
    since: str
    until: str
    rows: int = 0
    already: int = 0
    files: list[Path] = field(default_factory=list)


def snapshot_since(
    bootstrap_servers: str,
    out: str | Path,
    groups: Sequence[str] | None = None,
    *,
    since: float | str,
    every: float | str = "15m",
    format: str = "csv",  # noqa: A002 (the command's option)
    append: bool = False,
    timeout: float = 10.0,
    config: Mapping[str, str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Recorded:
    """Write a snapshot of now, and the log ends of its partitions at past times (docs/past.md).

    A past log end is a row of the offsets table with a true `log_only`: commits, members and owners of the past are not
    known. Each broker is asked once for each time, and once in ten times for its log starts. Nothing is written to the
    cluster.

    Parameters
    ----------
    bootstrap_servers, groups, config
        As in `snapshot`.
    out, format, append
        As in `write_snapshot`. With `append`, each past time is a file, written as soon as it is complete. Times that
        the record has are not asked for again, so an interrupted call can be continued. Without it, both tables are
        written when all is known.
    since : float or str
        Time to go back, in seconds or as text such as "7d"; or the first time, in ISO 8601.
    every : float or str
        Distance of the times, at least a second. They are multiples of it since 1970; the last is at least this old.
    timeout : float
        Seconds for the snapshot, and for each past time.
    progress : callable, optional
        Called as `progress(what, done, total)`.

    Returns
    -------
    Recorded
        Partitions and times without a log end are in the warnings of `taken`.

    Raises
    ------
    InvalidProblemError
        `since` or `every` is invalid, or they ask for too much.
    SourceError
        As in `snapshot` and `write_snapshot`; or the brokers stop answering, or the record in `out` is of an earlier
        version and cannot have past log ends.
    """
    times = PastTimes.of(since, every)
    record = Path(out) / "offsets"
    if append and LOG_ONLY not in columns_of(record, OFFSETS).names:
        raise SourceError(
            f"{record}: its files have no column {LOG_ONLY}, which marks log ends of the past; give another folder"
        )
    taken = snapshot(bootstrap_servers, groups, timeout=timeout, config=config, progress=progress)
    past = _Past(taken, times, progress or (lambda *_: None))
    with closing(cluster_at(bootstrap_servers, config, timeout)) as cluster:
        _check_requests(times, past.keys, cluster.partitions({topic for topic, _ in past.keys}), cluster.requests_for)
        reader = PastEnds(cluster, past.ends, past.micros)
        if append:
            files = [*write_snapshot(taken, out, format, append=True)]
            files += past.write_each(reader, record, format)
        else:
            files = [*write_snapshot(taken, out, format, past=past.rows_of(reader, lambda _: past.places))]
        requests = dict(Counter(taken.requests) + Counter(cluster.requests))
    whole = replace(taken, warnings=[*taken.warnings, *reader.warnings], requests=requests)
    return Recorded(whole, times.count, as_text(times.first), as_text(times.last), past.rows, past.already, files)


def _check_requests(
    times: PastTimes,
    keys: Collection[TopicPartition],
    layout: Mapping[str, Mapping[int, object] | Failure],
    requests_for: Callable[[Collection[TopicPartition]], int],
) -> None:
    """Raise an error if all times together may take too many requests."""
    each = requests_for([key for key in keys if not isinstance(layout[key[0]], Failure)])
    most = each * (times.count + -(-times.count // TIMES_A_CHECK))
    if most > MOST_REQUESTS:
        raise InvalidProblemError(
            f"{times.asked}: up to {most:,} requests, {each:,} for each of {times.count:,} times; at most "
            f"{MOST_REQUESTS:,} are sent: give a longer --every, a shorter --since, or some groups only (--group)"
        )


class _Past:
    """The rows of past times for the partitions of a snapshot, counted while they are made."""

    def __init__(self, taken: Snapshot, times: PastTimes, progress: Callable[[str, int, int], None]) -> None:
        self._times, self._progress = times, progress
        self.ends: Ends = {}
        self.places: list[Place] = []
        for row in taken.offsets:
            group, topic, partition, end = (row[name] for name in ("group", "topic", "partition", "log_end_offset"))
            if isinstance(end, int) and isinstance(partition, int):
                self.places.append((str(group), str(topic), partition))
                self.ends[str(topic), partition] = end
        self.keys = sorted(self.ends)
        self.micros = max((time_micros(row["snapshot_ts"]) or 0 for row in taken.offsets), default=times.last)
        self.rows = self.already = 0

    def rows_of(self, reader: PastEnds, wanted: Callable[[int], Collection[Place]]) -> Iterator[Row]:
        """Yield the rows of all past times."""
        for rows in self._each(reader, wanted):
            yield from rows

    def write_each(self, reader: PastEnds, folder: Path, form: str) -> list[Path]:
        """Write a file for each past time that has rows, and return the files."""
        recorded = _Files(folder, self._times.every)
        files: list[Path] = []
        for rows in self._each(reader, lambda micros: recorded.missing(micros, self.places)):
            if rows:
                paths = (folder / f"{name}.{form}" for name in file_names(str(rows[0]["snapshot_ts"])))
                path = next(path for path in paths if not path.exists())
                write_tables({path: (rows, OFFSETS)})
                files.append(path)
        return files

    def _each(self, reader: PastEnds, wanted: Callable[[int], Collection[Place]]) -> Iterator[list[Row]]:
        places: dict[int, Collection[Place]] = {}

        def keys(micros: int) -> set[TopicPartition]:
            places[micros] = wanted(micros)
            self.already += not places[micros]
            return {(topic, partition) for _, topic, partition in places[micros]}

        for done, (micros, ends) in enumerate(reader.at(self._times.each(), keys), 1):
            ts = as_text(micros)
            rows = [
                {column.name: None for column in OFFSETS}
                | {"snapshot_ts": ts, "group": group, "topic": topic, "partition": partition}
                | {"log_end_offset": ends[topic, partition], LOG_ONLY: True}
                for group, topic, partition in places.pop(micros)
                if (topic, partition) in ends
            ]
            self.rows += len(rows)
            self._progress("log ends of the past", done, self._times.count)
            yield rows


class _Files:
    """The files of a record by their times, and what they have."""

    def __init__(self, folder: Path, every: int) -> None:
        self._near = every // 2
        self._files: list[tuple[int, Path]] = []
        for path in shown_files(folder):
            name = time_in_name(path.stem)
            if name is not None:
                self._files.append((time_micros(name) or 0, path))

    def missing(self, micros: int, places: Sequence[Place]) -> Collection[Place]:
        """Return the places of which no file has a log end at this time, or nearer to it than to the next."""
        found: set[Place] = set()
        for at, path in self._files:
            if -self._near <= at - micros < self._near:
                rows = read_table(path, "offsets")
                found |= {
                    (row["group"], row["topic"], row["partition"])  # type: ignore[misc]
                    for row in rows
                    if row["log_end_offset"] is not None
                }
        return [place for place in places if place not in found] if found else places
