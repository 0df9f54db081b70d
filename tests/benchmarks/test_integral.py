"""The primal integral, by hand and of a search."""

import pytest

import evenlag
from benchmarks.few_moves import round_robin
from benchmarks.integral import integral, recorded


def test_the_integral_is_the_area_above_the_best_objective() -> None:
    steps = [(0.5, 30.0), (1.0, 20.0), (3.0, 10.0)]
    assert integral(steps, best=10.0, scale=10.0, limit=2.0) == (1.0 * 20 + 1.0 * 10) / (2.0 * 10)
    assert integral([(0.5, 10.0)], best=10.0, scale=10.0, limit=2.0) == 0


@pytest.mark.slow
def test_the_course_of_a_search_ends_at_its_objective() -> None:
    times = iter(range(1_000_000))
    with recorded(lambda: float(next(times))) as steps:
        result = evenlag.solve(round_robin(60, 10, 0), balance="group", stickiness="1%", time_limit=0.5)
    assert steps[-1][1] == result.objective
    values, seconds = [value for _, value in steps], [second for second, _ in steps]
    assert values == sorted(set(values), reverse=True)
    assert seconds == sorted(set(seconds))
    assert len(steps) > 1
