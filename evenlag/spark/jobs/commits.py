"""Output that grows by atomic commits, which publish all their tables or none and survive a kill.

A commit is written to `_part` and becomes final when it is renamed to `_commit-N-B`. Its tables are then renamed to
`TABLE/batch=N`, and its state to `_state/N-B`. If the process is killed in between, the next one completes this.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from evenlag.errors import SourceError
from evenlag.spark.driver.error_lines import blamed
from evenlag.spark.driver.sources import is_table
from evenlag.spark.driver.storage import Storage

STATE = "_state"
_PART = "_part"
_WHOLE = "_commit"
_NONE = (-1, -1)


class Commits:
    """The commits in a folder, numbered from 0, each with its position in the source.

    Parameters
    ----------
    out : str or Path
        A folder that is missing, empty, or has earlier commits.
    tables : tuple of str
        Tables that a commit may have, in addition to its state.

    Attributes
    ----------
    path : str
        The folder.
    number, position : int
        Number and position of the last commit; −1 without one.

    Raises
    ------
    SourceError
        The folder has other contents, cannot be written, or is in an object store or a catalog.
    """

    def __init__(self, spark: SparkSession, out: str | Path, tables: tuple[str, ...]) -> None:
        if is_table(out):
            raise SourceError(f"{out}: a stream can only write to a folder; name a folder")
        self._storage, self._tables = Storage(spark, out), tables
        if not self._storage.renames:
            raise SourceError(
                f"{out}: a stream commits by renaming folders, which object stores do not support; choose another place"
            )
        self.path = self._storage.path
        with blamed(out):
            names = self._storage.names(self.path) or []
            whole = [name for name in names if name.startswith(f"{_WHOLE}-")]
            known = {*tables} if whole or STATE in names else set()
            foreign = [name for name in names if name[0] != "_" and name not in known]
            if foreign:
                raise SourceError(f"{out}: contains {foreign[0]!r}, which is not from a stream; choose another folder")
            self._storage.remove(f"{self.path}/{_PART}")
            for name in whole:
                self._publish(name)
            # There are two states if a process was killed before it removed the older one.
            self.number, self.position = max(map(_numbers, self._storage.names(self._state()) or ()), default=_NONE)

    @property
    def state(self) -> str | None:
        """The folder of the last commit's state; None without one."""
        return None if self.number < 0 else self._state(f"{self.number}-{self.position}")

    def begin(self) -> str:
        """Return an empty folder for the next commit's tables and its state, named `STATE`."""
        self._storage.remove(f"{self.path}/{_PART}")
        self._storage.make(f"{self.path}/{_PART}")
        return f"{self.path}/{_PART}"

    def adopt(self, job: str, tables: Sequence[str]) -> None:
        """Move tables of a job from its folder to that of the next commit."""
        for table in tables:
            self._storage.rename(f"{job}/{table}", f"{self.path}/{_PART}/{table}")

    def commit(self, position: int) -> None:
        """Commit the contents of the folder."""
        old, name = self.state, f"{_WHOLE}-{self.number + 1}-{position}"
        self._storage.rename(f"{self.path}/{_PART}", f"{self.path}/{name}")
        self._publish(name)
        self.number, self.position = self.number + 1, position
        if old is not None:
            self._storage.remove(old)

    def _publish(self, name: str) -> None:
        number, position = _numbers(name)
        whole = f"{self.path}/{name}"
        places = {table: f"{self.path}/{table}/batch={number}" for table in self._tables}
        places[STATE] = self._state(f"{number}-{position}")  # last, because it marks the commit as published
        for part, place in places.items():
            if self._storage.exists(f"{whole}/{part}"):
                self._storage.make(place.rpartition("/")[0])
                self._storage.rename(f"{whole}/{part}", place)
        self._storage.remove(whole)

    def _state(self, name: str = "") -> str:
        return f"{self.path}/{STATE}/{name}".rstrip("/")


def _numbers(name: str) -> tuple[int, int]:
    number, position = name.rsplit("-", 2)[-2:]
    return int(number), int(position)
