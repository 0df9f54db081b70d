"""Output that grows commit by commit: all tables of a commit come into view, or none, and a kill undoes nothing.

A commit is written to `_part` and renamed to `_commit-N-B`; from then on it stands. Its tables are then renamed to
their places, `TABLE/batch=N`, and its state to `_state/N-B`. Whoever is killed on the way leaves this to the next.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from evenlag.errors import SourceError
from evenlag.spark.driver.errors import blamed
from evenlag.spark.driver.sources import is_table
from evenlag.spark.driver.storage import Storage

STATE = "_state"
_PART = "_part"
_WHOLE = "_commit"
_NONE = (-1, -1)


class Commits:
    """The commits in a folder: their numbers count from 0, each with how far it got in its source.

    Parameters
    ----------
    spark : SparkSession
    out : str or Path
        Missing, empty, or as commits have left it.
    tables : tuple of str
        What a commit may have, beside its state.

    Attributes
    ----------
    path : str
        The folder.
    number, position : int
        Of the last commit; −1 where there is none.

    Raises
    ------
    SourceError
        The folder holds something else, cannot be written, or is of an object store or a catalog.
    """

    def __init__(self, spark: SparkSession, out: str | Path, tables: tuple[str, ...]) -> None:
        if is_table(out):
            raise SourceError(f"{out}: a stream writes to a folder; name one")
        self._storage, self._tables = Storage(spark, out), tables
        if not self._storage.renames:
            raise SourceError(f"{out}: a stream commits by renaming, which an object store cannot; name another place")
        self.path = self._storage.path
        with blamed(out):
            names = self._storage.names(self.path) or []
            whole = [name for name in names if name.startswith(f"{_WHOLE}-")]
            known = {*tables} if whole or STATE in names else set()
            foreign = [name for name in names if name[0] != "_" and name not in known]
            if foreign:
                raise SourceError(f"{out}: holds {foreign[0]!r}, which is not a stream's; name another folder")
            self._storage.remove(f"{self.path}/{_PART}")
            for name in whole:
                self._publish(name)
            # Two states stand side by side where a kill came before the older one was removed.
            self.number, self.position = max(map(_numbers, self._storage.names(self._state()) or ()), default=_NONE)

    @property
    def state(self) -> str | None:
        """The folder of the last commit's state."""
        return None if self.number < 0 else self._state(f"{self.number}-{self.position}")

    def begin(self) -> str:
        """Give an empty folder for the next commit: its tables by their names, and its state as `STATE`."""
        self._storage.remove(f"{self.path}/{_PART}")
        self._storage.make(f"{self.path}/{_PART}")
        return f"{self.path}/{_PART}"

    def adopt(self, job: str) -> None:
        """Take the tables that a job has written to a folder within that of the next commit."""
        for table in self._tables:
            self._storage.rename(f"{job}/{table}", f"{self.path}/{_PART}/{table}")

    def commit(self, position: int) -> None:
        """Let what is in the folder stand."""
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
        places[STATE] = self._state(f"{number}-{position}")  # the last, since by it the commit is known
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
