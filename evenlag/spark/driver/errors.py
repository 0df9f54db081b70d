"""Errors of Spark in one line, and servers that do not answer, found before Spark tries for minutes."""

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


@contextmanager
def blamed(place: str | Path) -> Iterator[None]:
    """Turn what goes wrong in Spark into one line that names the place.

    Raises
    ------
    SourceError
        With Spark's own words.
    """
    try:
        yield
    except PythonException as error:  # a traceback from an executor: what it is comes last
        raise SourceError(f"{place}: {(_RAISED.findall(str(error)) or _lines(str(error)))[-1]}") from error
    except PySparkException as error:
        raise SourceError(f"{place}: {_lines(str(error))[0]}") from error
    except Exception as error:
        cause: Any = getattr(error, "java_exception", None)  # of py4j, which a client of Spark Connect need not have
        if cause is None:
            raise
        while cause.getCause() is not None:
            cause = cause.getCause()
        raise SourceError(f"{place}: {_lines(str(cause.toString()))[0]}") from error


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()] or ["unknown error"]


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
