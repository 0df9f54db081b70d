"""The address of a cluster, accepted in place of a path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenlag.errors import SourceError

SCHEME = "kafka://"
TIMEOUT = 10.0  # seconds


@dataclass(frozen=True)
class Brokers:
    """The brokers of a cluster as an input, given as `kafka://HOST:PORT`.

    Attributes
    ----------
    servers : str
        `host:port`, several joined by commas.
    config : mapping
        Properties of the client, by librdkafka's names.
    since : str or None
        Time to go back for log ends, from which the rates of incoming messages follow.
    timeout : float
        Seconds to wait for the brokers.
    """

    servers: str
    config: Mapping[str, str] = field(default_factory=dict)
    since: str | None = None
    timeout: float = TIMEOUT

    def __str__(self) -> str:
        return f"{SCHEME}{self.servers}"

    def check_alone(self, *others: object) -> None:
        """Raise an error if a members table or a format is given too.

        Raises
        ------
        SourceError
            One of `others` is not None; the message names the cluster.
        """
        if any(other is not None for other in others):
            raise SourceError(f"{self}: a cluster lists its members itself; omit --members and --format")


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
