"""The sources that a server reads: paths below its roots, and clusters that its start names."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from evenlag import live
from evenlag.door import is_text
from evenlag.errors import SourceError
from evenlag.model.explanation.phrases import joined
from evenlag.tables.cluster_address import Brokers, brokers_of

MOST_BYTES = 64 * 2**20  # largest source


@dataclass(frozen=True)
class Access:
    """Permissions of a server.

    Attributes
    ----------
    roots : tuple of str
        Files that may be read, and folders whose contents may be read. Symbolic links are resolved.
    clusters : tuple of str
        Addresses of clusters that may be read, as `kafka://HOST:PORT`.
    config : str or None
        Properties file of the Kafka client.
    """

    roots: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    config: str | None = None

    def __str__(self) -> str:
        paths = f"paths below {joined([*self.roots])}" if self.roots else "no paths"
        return f"This server reads texts; {paths}; {joined([*self.clusters]) if self.clusters else 'no clusters'}."

    def opened(self, source: str) -> str | Path:
        """Return a source as `evenlag.read` takes it: a text, a path, or the address of a cluster.

        Raises
        ------
        SourceError
            The server may not read the source, or it is too large.
        """
        if is_text(source):
            if len(source) > MOST_BYTES:
                raise SourceError(f"the text has {len(source):,} characters; a server reads at most {MOST_BYTES:,}")
            return source
        if (brokers := brokers_of(source)) is not None:
            if str(brokers) not in self.clusters:
                raise SourceError(f"{brokers}: this server may not read it; name it at its start, by --cluster. {self}")
            return str(brokers)
        if not source.strip():
            raise SourceError(f"the source is empty; give a text or a path. {self}")
        try:
            path = self._below_a_root(source)
            size = sum(each.stat().st_size for each in _files(path, self._holds))
        except (OSError, ValueError) as error:  # a null character is a ValueError
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise SourceError(f"{source!r:.200}: cannot be read ({reason}). {self}") from error
        if size > MOST_BYTES:
            raise SourceError(f"{source}: has {size:,} bytes; a server reads at most {MOST_BYTES:,}")
        return path

    def cluster_of(self, source: object) -> Brokers | None:
        """Return the cluster of an opened source, with the properties of the client; None if it is something else."""
        found = brokers_of(source) if isinstance(source, str) and not is_text(source) else None
        if found is None or self.config is None:
            return found
        return replace(found, config=live.read_client_config(Path(self.config)))

    def _below_a_root(self, source: str) -> Path:
        """Return the path with links resolved; a relative path is taken from each root in turn."""
        places = [Path(root, source).resolve() for root in self.roots]  # an absolute path stays itself
        allowed = [place for place in places if self._holds(place)]
        if not allowed:
            hint = "" if "/" in source or "\\" in source else " A text has a line break, or begins with { or [."
            raise SourceError(f"{source!r:.200}: this server may not read it. {self}{hint}")
        return next((place for place in allowed if place.exists()), allowed[0])

    def _holds(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self.roots)


def _files(path: Path, holds: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield a file, or the files of a folder.

    Raises
    ------
    SourceError
        There is something else, such as a pipe or a link to a place that may not be read.
    OSError
        It cannot be looked at.
    """
    if not stat.S_ISDIR(path.stat().st_mode):
        yield _regular(path)
        return
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            place = Path(folder, name)
            if place.is_symlink() and (name in folders or not holds(place.resolve())):
                raise SourceError(f"{place}: is a link, which this server does not follow")
            if name in files:
                yield _regular(place)


def _regular(path: Path) -> Path:
    if not stat.S_ISREG(path.stat().st_mode):
        raise SourceError(f"{path}: is neither a file nor a folder")
    return path
