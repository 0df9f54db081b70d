"""A running cluster as an input: the groups that its brokers tell, as rows like those of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from evenlag.errors import SourceError
from evenlag.live.cluster.capture import snapshot
from evenlag.live.cluster.past_record import snapshot_since
from evenlag.tables.formats import Reading
from evenlag.tables.loading import read_file

SCHEME = "kafka://"
TIMEOUT = 10.0  # seconds to wait for the brokers


@dataclass(frozen=True)
class Brokers:
    """The brokers of a cluster as an input, given as `kafka://HOST:PORT`.

    Attributes
    ----------
    servers : str
        `host:port`, several joined by commas.
    config : mapping
        Properties of the client, as in `snapshot`.
    since : str or None
        How far back to read log ends, from which the rates of incoming messages follow; see `snapshot_since`.
    timeout : float
        Seconds to wait for the brokers.
    """

    servers: str
    config: Mapping[str, str] = field(default_factory=dict)
    since: str | None = None
    timeout: float = TIMEOUT

    def __str__(self) -> str:
        return f"{SCHEME}{self.servers}"

    def readings(
        self, group: str | None = None, progress: Callable[[str, int, int], None] | None = None
    ) -> tuple[list[Reading], list[Reading]]:
        """Return the rows of partitions and of members; of all groups that the user may see if none is named.

        Raises
        ------
        SourceError
            As in `snapshot`.
        """
        groups = None if group is None else [group]
        if self.since is None:
            taken = snapshot(self.servers, groups, timeout=self.timeout, config=self.config, progress=progress)
            offsets = [Reading(offsets=list(enumerate(taken.offsets, 1)))]
            members = [Reading(members=list(enumerate(taken.members, 1)))]
        else:
            with TemporaryDirectory(prefix="evenlag-since-") as folder:
                recorded = snapshot_since(
                    self.servers, folder, groups, since=self.since, format="jsonl", timeout=self.timeout,
                    config=self.config, progress=progress,
                )  # fmt: skip
                taken = recorded.taken
                offsets, members = (read_file(Path(folder) / f"{kind}.jsonl", kind) for kind in ("offsets", "members"))
        for reading in (*offsets, *members):
            reading.source, reading.unit = str(self), "row"
        offsets[0].notes += taken.warnings
        return offsets, members


def check_alone(brokers: Brokers, others: bool) -> None:
    """Raise an error if a members table or a format is given with a cluster.

    Raises
    ------
    SourceError
        It is; the message names the cluster.
    """
    if others:
        raise SourceError(f"{brokers}: a cluster lists its members itself; omit --members and --format")


def brokers_of(place: str) -> Brokers | None:
    """Return the brokers that a text names; None if it is not the address of a cluster.

    Raises
    ------
    SourceError
        It begins like the address of a cluster, but is none.

    Examples
    --------
    >>> brokers_of("kafka://a:9092,b:9092/").servers
    'a:9092,b:9092'
    """
    if not place.startswith("kafka:"):
        return None
    servers = place.removeprefix(SCHEME).rstrip("/")
    if not place.startswith(SCHEME) or not servers or "/" in servers:
        raise SourceError(f"{place}: not the address of a cluster; write kafka://HOST:PORT, several joined by commas")
    return Brokers(servers)
