"""The time that followers live in; a simulation replaces `now`."""

from time import monotonic as now

__all__ = ["now"]
