"""Plans from relaxed problems: best loads go to the members that hold most of them."""

from random import Random

import numpy as np
import pytest

from evenlag import solve
from evenlag.model.result import Status
from evenlag.search.exact.relaxations import LoadsAlone
from evenlag.search.incumbent import Candidate, Incumbent, begin
from evenlag.search.portfolio import AUTO
from tests.support.problems import seeds
from tests.support.scripted import group, task_for


@pytest.mark.parametrize("seed", seeds(5))
def test_the_best_loads_are_given_to_the_members_that_own_most_of_them(seed: int) -> None:
    lags = Random(seed).sample(range(1, 100), 9)
    even = solve(group(lags), stickiness=0)
    assert even.status is Status.OPTIMAL
    topic = even.plan.problem.topics[0]
    owned = {
        f"c{(m + 1) % 3}": [(topic, p) for p in np.flatnonzero(even.plan.member_of == m).tolist()] for m in range(3)
    }
    asked = task_for(group(lags, owned=owned), max_moves=8)
    best = begin(Incumbent(asked))
    found = [f for f in LoadsAlone(lambda: AUTO).run(asked, best) if isinstance(f, Candidate)]
    assert [(plan.plan.spread, plan.plan.moves) for plan in found] == [(even.spread, 0)]


def test_a_budget_that_hardly_binds_is_settled_by_the_loads_alone() -> None:
    lags = np.random.default_rng(3).integers(1, 10**6, 30).tolist()
    owned = {f"c{m}": [("t", p) for p in range(m, 30, 6)] for m in range(6)}
    loose = group(lags, 6, owned=owned)
    steps = [step for step in AUTO if isinstance(step.stage, LoadsAlone)]
    best = begin(Incumbent(task_for(loose)))
    runs = [[step.when(task_for(loose, max_moves=most), best) for step in steps] for most in (20, 19)]
    assert runs == [[True, False], [False, True]]
