"""The time that followers, assignors and the loop live in; a simulation replaces `now`, `sleep` and `wall`."""

import time
from collections.abc import Callable

now: Callable[[], float] = time.monotonic
sleep: Callable[[float], None] = time.sleep
wall: Callable[[], float] = time.time
