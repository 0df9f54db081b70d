"""The primal integral: how far the best plan so far is from the best known one, on average over a search.

Source: Berthold 2013, "Measuring the impact of primal heuristics"; here in shares of the mean load.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from unittest.mock import patch

from evenlag.search.incumbent import Finding, Incumbent

Step = tuple[float, float]  # seconds since the start, and the objective in messages from then on


@contextmanager
def recorded(clock: Callable[[], float] = time.perf_counter) -> Iterator[list[Step]]:
    """Record when each better plan of a search came, in seconds since the start of the block."""
    steps, started, take, asked = list[Step](), clock(), Incumbent.take, list[Incumbent]()

    def noted(self: Incumbent, finding: Finding, by: str) -> None:
        take(self, finding, by)
        asked[:] = asked or [self]  # the others belong to side questions, such as the spread if moves were free
        if self is asked[0] and self.found and (not steps or float(self.value) < steps[-1][1]):
            steps.append((clock() - started, float(self.value)))

    with patch.object(Incumbent, "take", noted):
        yield steps


def integral(steps: Sequence[Step], best: float, scale: float, limit: float) -> float:
    """Return the mean distance from the best objective until the limit; before the first plan, that plan's distance.

    Parameters
    ----------
    steps
        As recorded.
    best : float
        The best known objective, in messages.
    scale : float
        The mean load, in messages.
    limit : float
        In seconds.
    """
    course = [(0.0, steps[0][1]), *((seconds, value) for seconds, value in steps if seconds < limit), (limit, best)]
    area = sum((later - earlier) * (value - best) for (earlier, value), (later, _) in pairwise(course))
    return area / (limit * max(scale, 1.0))
