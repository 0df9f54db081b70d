"""The time that followers, assignors and the loop live in; a simulation replaces `now` and `wall`."""

from time import monotonic as now
from time import time as wall

__all__ = ["now", "wall"]
