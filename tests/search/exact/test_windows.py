"""Windows of loads that prices leave open, compared with every window."""

from random import Random

import numpy as np
import pytest

from evenlag.search.exact.windows import Prices


@pytest.mark.parametrize("seed", range(20))
def test_the_least_high_end_is_that_of_all_windows(seed: int) -> None:
    random = Random(seed)
    largest = random.randrange(1, 14)
    held = [np.array([random.randrange(30) for _ in range(largest + 1)], dtype=np.int64) for _ in range(3)]
    prices = Prices(np.zeros(1, dtype=np.int64), held, total=random.randrange(40, 90))
    first, last = sorted((random.randrange(largest + 1), random.randrange(largest + 1)))
    wanted = []
    for low in range(first, last + 1):
        open_ends = [
            high
            for high in range(low, largest + 1)
            if sum(int(most[low : high + 1].max()) for most in held) >= prices.total
        ]
        wanted.append(min(open_ends, default=largest + 1))
    assert prices.least_highs(first, last, largest).tolist() == wanted
