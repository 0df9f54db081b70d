"""Errors that evenlag raises on purpose. Each message names the place of the error and says what to do."""

from collections.abc import Iterable, Mapping
from typing import Any


class EvenlagError(Exception):
    """Base class of evenlag's errors."""


class InvalidProblemError(EvenlagError, ValueError):
    """The input does not describe a consumer group; the message names the row, topic, partition or member."""


class InfeasibleError(EvenlagError):
    """No plan can satisfy the given pins, caps or budgets; the message says by how much they fall short.

    Attributes
    ----------
    enough : mapping of str to number
        Limits, by the name of the parameter or the cost, each with a value; with these values a plan exists. Empty if
        none is known.
    """

    def __init__(self, message: str, enough: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.enough = dict(enough or {})


class NoPlanFoundError(InfeasibleError):
    """No plan within the limits was found, though one may exist; raise a limit, or allow more time if that ended."""


class InvalidPlanError(EvenlagError):
    """A plan breaks a rule; the message names the partition or member."""


class SourceError(EvenlagError):
    """A file, table or broker could not be read or written; the message names it."""


class UserDataError(EvenlagError, ValueError):
    """A member's user data cannot be encoded or decoded; the message names the byte or value."""


class FollowError(EvenlagError):
    """Another process commits offsets in place of a follower; the message names the partition and what to do."""


CHECK_LOGIN = "check sasl.mechanism, sasl.username and sasl.password in the client configuration"
"""Advice if a broker refuses a login."""


def no_broker(servers: str, why: object, waited: float | None = None) -> str:
    """Return the error of an address without a broker, with advice; `waited` is the limit if it has passed."""
    within = "" if waited is None else f" within {waited:g} s"
    return (
        f"no Kafka broker answers at {servers}{within} ({why}); check the address, and security.protocol and its "
        "properties in the client configuration"
    )


def exists_already(place: object, kind: str = "folder") -> SourceError:
    """Return the error of a place for results that has some; `kind` is what to choose another of."""
    return SourceError(f"{place}: exists already; choose another {kind}, or give --overwrite (overwrite=True)")


def foreign(place: object, name: str, tables: Iterable[str]) -> SourceError:
    """Return the error of a folder for results that has something else, of this name."""
    return SourceError(f"{place}: contains {name!r}, which is not one of {', '.join(tables)}; choose another folder")


EXTRAS = {
    "aiokafka": "aiokafka",
    "confluent_kafka": "follow",
    "jinja2": "pages",
    "kafka": "kafka",
    "matplotlib": "pictures",
    "mcp": "mcp",
    "pandas": "spark",
    "prometheus_client": "watch",
    "pyspark": "spark",
}
"""The extra of evenlag that installs each optional package, by the package's name in an import."""


def lacking(error: ImportError) -> str | None:
    """Return how to install the package that an import lacks; None if no extra of evenlag installs it."""
    package = (error.name or "").partition(".")[0]
    return f"{package.replace('_', '-')} is not installed; {to_get(package)}" if package in EXTRAS else None


def to_get(package: str) -> str:
    """Return how to install an optional package with evenlag's extra."""
    return f"in a clone of evenlag: pip install '.[{EXTRAS[package]}]'"


def in_words(error: Exception) -> str:
    """Return the message of an error, after its class if evenlag did not raise it on purpose."""
    return str(error) if isinstance(error, EvenlagError) else f"{type(error).__name__}: {error}"


def printable(text: str) -> str:
    """Return the text with line breaks and other control characters escaped, so that it fits on one line."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
