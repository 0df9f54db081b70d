"""Conversion of Spark's errors to one line, and a quick check of servers, which Spark would retry for minutes."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException, PythonException

from evenlag.errors import CHECK_LOGIN, SourceError

_RAISED = re.compile(r"^[\w.]+(?:Error|Exception): .*\S", re.MULTILINE)
_AROUND_FAILURE = re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: |\.? SQLSTATE: \w+$")

ADVICE = {
    "SaslAuthenticationException": CHECK_LOGIN,
    "TopicAuthorizationException": "the user needs the ACLs Describe and Read on the topic",
    "Not authorized to access group": "the user needs the ACL Describe on all groups whose names begin with "
    "spark-kafka-, or with the option groupIdPrefix",
}
"""Remedies by the words of Kafka's client before the colon."""


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
        raise _error(place, (_RAISED.findall(str(error)) or _lines(str(error)))[-1]) from error
    except PySparkException as error:
        raise _error(place, _AROUND_FAILURE.sub("", _lines(str(error))[0])) from error
    except Exception as error:
        cause: Any = getattr(error, "java_exception", None)  # an error of py4j, which clients of Spark Connect may lack
        if cause is None:
            raise
        while cause.getCause() is not None:
            cause = cause.getCause()
        raise _error(place, _lines(str(cause.toString()))[0]) from error


def _error(place: str | Path, line: str) -> SourceError:
    advice = next((remedy for name, remedy in ADVICE.items() if f"{name}: " in line), None)
    return SourceError(f"{place}: {line}" if advice is None else f"{place}: {line.rstrip('.')}; {advice}")


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()] or ["unknown error"]


WAIT = 5.0  # seconds to wait for a connection
ANSWER_LIMIT = 10.0  # seconds to wait for an answer


def unreachable(servers: Sequence[str], ask: Callable[[socket.socket, str], object] | None = None) -> str | None:
    """Return why none of several servers accepts a connection and answers; None if one does.

    Parameters
    ----------
    servers : sequence of str
        `host:port` each.
    ask : callable, optional
        Gets a connection and the name of its host, asks the server for something and waits for its answer. It raises
        `OSError` if none comes.
    """
    reasons = []
    for server in servers:
        host, _, port = server.rpartition(":")
        host = host.strip("[]")
        try:
            with socket.create_connection((host, int(port)), WAIT) as connection:
                connection.settimeout(ANSWER_LIMIT)
                if ask is not None:
                    ask(connection, host)
        except (OSError, OverflowError, ValueError) as error:
            reasons.append(f"{server}: {error}")
        else:
            return None
    return "; ".join(reasons)
