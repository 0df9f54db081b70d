"""The time that followers, assignors and the loop live in; a simulation replaces `now`."""

from time import monotonic as now

__all__ = ["now"]
