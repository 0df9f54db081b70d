"""Whether a server takes a connection: asked before Spark is, which tries for minutes."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from evenlag.errors import SourceError

WAIT = 5.0  # seconds that a server has to take a connection


def reach(url: str, servers: Sequence[str], what: str) -> None:
    """Connect to one of some servers, `host:port` each.

    Parameters
    ----------
    url : str
        What the message calls them.
    servers : sequence of str
    what : str
        The kind of server.

    Raises
    ------
    SourceError
        None of them takes a connection.
    """
    reasons = []
    for server in servers:
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), WAIT).close()
        except (OSError, OverflowError, ValueError) as error:
            reasons.append(f"{server}: {error}")
        else:
            return
    raise SourceError(f"{url}: no {what} takes a connection ({'; '.join(reasons)}); is the address right?")
