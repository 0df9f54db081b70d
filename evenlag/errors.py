"""Every error that evenlag raises on purpose: one small tree, each message naming the place and what to do."""


class EvenlagError(Exception):
    """Base of all errors raised by evenlag."""


class InvalidProblemError(EvenlagError, ValueError):
    """The input does not describe a consumer group: the message names the row, topic, partition or member."""


class InfeasibleError(EvenlagError):
    """No plan can satisfy the pins, caps or budget asked for: the message says by how much."""


class NoPlanFoundError(InfeasibleError):
    """No plan within the limits was found in the time; there may be one: give it more time, or raise a limit."""


class InvalidPlanError(EvenlagError):
    """A plan breaks a rule that it must keep: the message names the partition or member."""


class SourceError(EvenlagError):
    """A file, table or broker could not be read or written: the message names it."""


class UserDataError(EvenlagError, ValueError):
    """What a member sent, or should send, to the leader is no such message: the message names the byte or value."""


class FollowError(EvenlagError):
    """Others commit offsets in the place of a follower: the message names the partition and what to do."""


EXTRAS = {"kafka": "kafka", "matplotlib": "plot", "pandas": "spark", "pyarrow": "spark", "pyspark": "spark"}
"""Which extra of evenlag brings a package that only a part of it needs."""


def lacking(error: ImportError) -> str | None:
    """Say how to get the package that an import lacks; None where it is none of evenlag's extras."""
    package = (error.name or "").partition(".")[0]
    return f"{package} is not installed; {to_get(package)}" if package in EXTRAS else None


def to_get(package: str) -> str:
    """Say how to get a package that an extra of evenlag brings."""
    return f"in a clone of evenlag: pip install '.[{EXTRAS[package]}]'"


def printable(text: str) -> str:
    """Return a text that fits on one line, its line breaks and control characters escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
