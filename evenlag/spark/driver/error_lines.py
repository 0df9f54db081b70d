"""Conversion of Spark's errors to one line, and a quick check of servers, which Spark would retry for minutes."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException, PythonException

from evenlag.errors import SourceError

_RAISED = re.compile(r"^[\w.]+(?:Error|Exception): .*\S", re.MULTILINE)
_AROUND_FAILURE = re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: |\.? SQLSTATE: \w+$")


@contextmanager
def blamed(place: str | Path) -> Iterator[None]:
    """Convert errors of Spark to one line that names the place.

    Raises
    ------
    SourceError
        Spark raised an error; the message contains it.
    """
    try:
        yield
    except PythonException as error:  # a traceback from an executor, with the error in its last line
        raise SourceError(f"{place}: {(_RAISED.findall(str(error)) or _lines(str(error)))[-1]}") from error
    except PySparkException as error:
        raise SourceError(f"{place}: {_AROUND_FAILURE.sub('', _lines(str(error))[0])}") from error
    except Exception as error:
        cause: Any = getattr(error, "java_exception", None)  # an error of py4j, which clients of Spark Connect may lack
        if cause is None:
            raise
        while cause.getCause() is not None:
            cause = cause.getCause()
        raise SourceError(f"{place}: {_lines(str(cause.toString()))[0]}") from error


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()] or ["unknown error"]


WAIT = 5.0  # seconds to wait for a connection


def reach(url: str, servers: Sequence[str], what: str) -> None:
    """Check that one of several servers accepts connections.

    Parameters
    ----------
    url : str
        Name of the servers in the message.
    servers : sequence of str
        `host:port` each.
    what : str
        Kind of server.

    Raises
    ------
    SourceError
        No server accepts a connection.
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
    raise SourceError(f"{url}: no {what} accepts a connection ({'; '.join(reasons)}); check the address")
