"""Sources that are read again and again: a cluster, or files that others write."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.figures import quantity
from evenlag.live import time_source
from evenlag.live.cluster.capture import Snapshot, snapshots
from evenlag.live.cluster.stopped import Pulse
from evenlag.model.in_memory import File
from evenlag.model.problem_files import read_problem
from evenlag.model.rates import time_text
from evenlag.tables.columns import TableKind
from evenlag.tables.every_group import Choice, Found, GroupNow, every_group, of_problem, of_rows
from evenlag.tables.formats import Reading
from evenlag.tables.loading import form_of, latest_parts, read_file
from evenlag.tables.read import is_problem

LATEST = 2  # snapshots to read from a folder of dated files; rates need two
QUIET = 1.0  # seconds for which a file must not have changed before it is read
LONGEST_WAIT = 5.0  # seconds to wait for that
PAUSE = 0.1  # seconds between looks
_RENAME = "write a file under another name, then rename it"


class Seen(NamedTuple):
    """A group in a source, or the reason why its rows cannot be used, and their time in seconds since 1970.

    `stopped` is the number of members that have stopped and are left out; None if the source does not report it.
    """

    name: str
    found: GroupNow | InvalidProblemError
    as_of: float
    stopped: int | None = None


class Input(Protocol):
    """A source of groups."""

    def read(self, choice: Choice, warn: Callable[[str], None]) -> Iterator[Seen]:
        """Yield the chosen groups; call `warn` with each warning.

        Raises
        ------
        EvenlagError
            The source cannot be read.
        """


@dataclass(frozen=True)
class ClusterInput:
    """The consumer groups of a running cluster, read by `evenlag.live.cluster.capture.snapshots`.

    A group fails if it cannot be read, or if a topic or a partition's log end offset is not reported: its lag would
    seem to have fallen.

    Attributes
    ----------
    pulse : Pulse or None
        Remembers followers from one reading to the next; None to wait for their commits in each reading.
    first_answer : float or None
        Seconds to wait for a broker that answers, before the timeout begins; None for as long as the timeout.
    """

    bootstrap_servers: str
    timeout: float
    config: Mapping[str, str]
    auto_offset_reset: str = "latest"
    pulse: Pulse | None = None
    first_answer: float | None = None

    def read(self, choice: Choice, warn: Callable[[str], None]) -> Iterator[Seen]:
        """Yield the chosen groups."""
        for snapshot in self._parts(choice):
            now = time_source.wall()
            endless = Counter(str(row["group"]) for row in snapshot.offsets if row["log_end_offset"] is None)
            unread = {name: _partly_read(name, count, snapshot.warnings) for name, count in endless.items()}
            unread |= {name: InvalidProblemError(why) for name, why in snapshot.unread.items()}
            of_unread = tuple(f"group '{name}'" for name in unread)  # their errors have these warnings
            for warning in snapshot.warnings:
                if not warning.startswith(of_unread):
                    warn(warning)
            rows = snapshot.offsets, snapshot.members
            for name, found in of_rows(self.bootstrap_servers, *rows, self.auto_offset_reset):
                yield Seen(name, unread.pop(name, found), now, snapshot.stopped.get(name))
            for name, why in unread.items():
                yield Seen(name, why, now)

    def _parts(self, choice: Choice) -> Iterator[Snapshot]:  # a simulation replaces it
        return snapshots(
            self.bootstrap_servers, choice, timeout=self.timeout, first_answer=self.first_answer, config=self.config,
            pulse=self.pulse,
        )  # fmt: skip


@dataclass(frozen=True)
class FileInput:
    """A problem file, a snapshot table or a text, or a folder of them, that others write.

    Attributes
    ----------
    path : Path
        If the names of all files in a folder have times, only the files of the `LATEST` times are read unless `whole`.
    members : Path or None
        Members table for an offsets table.
    form : str or None
        The format of `path`, as in `evenlag.read`.
    subscribed : sequence of str
        Topics that members subscribe to although none of their partitions has an owner; a group may lack them.
    quiet : float
        Seconds for which the files must not have changed.
    whole : bool
        As in `every_group`.
    """

    path: Path
    members: Path | None = None
    form: str | None = None
    auto_offset_reset: str = "latest"
    subscribed: Sequence[str] = ()
    quiet: float = QUIET
    whole: bool = False

    def read(self, choice: Choice, warn: Callable[[str], None]) -> Iterator[Seen]:
        """Yield the chosen groups, once all files are whole."""
        before = self._settled()
        offsets_at = max(changed for file, (changed, _) in before.items() if not self._is_of_members(file)) / 1e9
        groups: Iterator[Found]
        ts = time_text(datetime.fromtimestamp(offsets_at, UTC))
        if is_problem(self.path, self.form):
            if self.members is not None:
                raise SourceError(f"{self.path}: a problem file lists its members itself; omit --members")
            only = of_problem(read_problem(self.path), ts)
            groups = iter([only] if choice([only[0]]) else [])
        else:
            offsets = self._readings(self.path, "offsets", self.form)
            members = None if self.members is None else self._readings(self.members, "members", None)
            for reading in (*offsets, *(members or ())):
                for note in reading.notes:
                    warn(note)
            groups = every_group(
                str(self.path), offsets, members, choice=choice, auto_offset_reset=self.auto_offset_reset, ts=ts,
                whole=self.whole,
            )  # fmt: skip
        self._check_unchanged(before)
        for name, found in groups:
            yield Seen(name, found.subscribing(self.subscribed) if isinstance(found, GroupNow) else found, offsets_at)

    def _readings(self, path: Path, kind: TableKind, form: str | None) -> list[Reading]:
        for part in latest_parts(path, self._latest):
            _check_whole(part, form)
        return read_file(path, kind, form, self._latest)

    def _is_of_members(self, file: Path) -> bool:
        return self.members is not None and self.members in (file, *file.parents)

    @property
    def _latest(self) -> int | None:
        return None if self.whole else LATEST

    def _stamps(self) -> dict[Path, tuple[int, int]]:
        """Return the time of change, in nanoseconds, and the size of each file."""
        paths = [self.path, *([] if self.members is None else [self.members])]
        try:
            stats = {part: part.stat() for path in paths for part in map(_on_disk, latest_parts(path, self._latest))}
        except FileNotFoundError as error:
            raise SourceError(f"{error.filename}: no such file or folder") from None
        except OSError as error:
            raise SourceError(f"{error.filename or self.path}: cannot be read: {error.strerror}") from error
        return {part: (stat.st_mtime_ns, stat.st_size) for part, stat in stats.items()}

    def _settled(self) -> dict[Path, tuple[int, int]]:
        """Wait until no file has changed for `quiet` seconds; return the state of the files."""
        until = time.monotonic() + LONGEST_WAIT
        while True:
            stamps = self._stamps()
            age = time.time() - max(changed for changed, _ in stamps.values()) / 1e9
            if not 0 <= age < self.quiet:  # an age below 0 is that of a file with a time in the future
                return stamps
            if time.monotonic() > until:
                raise SourceError(f"{self.path}: is being written for more than {LONGEST_WAIT:g} s; {_RENAME}")
            time.sleep(PAUSE)

    def _check_unchanged(self, before: Mapping[Path, tuple[int, int]]) -> None:
        if self._stamps() != before:
            raise SourceError(f"{self.path}: was written while it was read; {_RENAME}")


def _partly_read(group: str, partitions: int, warnings: Iterable[str]) -> InvalidProblemError:
    unread, begin = quantity(partitions, "partition"), f"group '{group}', "
    reasons = [warning.removeprefix(begin) for warning in warnings if warning.startswith(begin)]
    return InvalidProblemError(
        f"the brokers report no log end offset of {unread}, so the group's lag is unknown"
        + (f": {'; '.join(reasons)}" if reasons else "")
    )


def _on_disk(part: File) -> Path:
    return Path(str(part))


def _check_whole(part: File, form: str | None) -> None:
    """Refuse a table of lines whose last line has no end, as it may have been cut.

    Raises
    ------
    SourceError
        The message names the file.
    """
    path = _on_disk(part)
    if path.suffix.lower() == ".gz" or form_of(part, form) not in ("csv", "jsonl"):
        return
    with path.open("rb") as file:
        file.seek(0, 2)
        if file.tell():
            file.seek(-1, 2)
        if file.read(1) not in (b"\n", b"\r"):
            raise SourceError(f"{path}: the last line has no line break, so the file may be half written; {_RENAME}")
