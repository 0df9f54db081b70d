"""The incumbent takes valid and better plans alone, and withdraws bounds that a plan refutes."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evenlag import Problem
from evenlag.errors import InfeasibleError
from evenlag.model.plan import Plan
from evenlag.model.result import StoppedBy
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent, begin
from evenlag.search.portfolio import AUTO
from evenlag.search.stage import Step, run_steps
from tests.support.problems import cases, problems
from tests.support.scripted import LAGS, Scripted, even_plan, group, task_for


def test_a_plan_that_breaks_a_rule_is_not_taken() -> None:
    problem = group()
    best = Incumbent(task_for(problem))
    best.take(Candidate(Plan(problem, np.zeros(len(LAGS), dtype=np.int32))), "all to one")
    assert not best.found
    best.take(Candidate(even_plan(problem)), "in turn")
    assert best.method == "in turn"


def test_a_plan_that_a_stage_yields_bare_is_refused_with_its_name() -> None:
    problem = group()
    with pytest.raises(TypeError, match="stage 'mine' yields a Plan; it must be one of Candidate, Bound"):
        Incumbent(task_for(problem)).take(even_plan(problem), "mine")


def test_a_worse_plan_is_not_taken_and_a_better_one_is() -> None:
    problem = group([90, 1, 1, 90], 2)
    best = Incumbent(task_for(problem))
    best.take(Candidate(Plan(problem, np.array([0, 1, 1, 0], dtype=np.int32))), "first")
    best.take(Candidate(Plan(problem, np.array([1, 0, 0, 1], dtype=np.int32))), "as good")
    assert best.method == "first"
    best.take(Candidate(Plan(problem, np.array([0, 1, 0, 1], dtype=np.int32))), "better")
    assert (best.method, best.value) == ("better", 0)


def test_a_bound_above_a_known_plan_is_withdrawn_and_noted_once() -> None:
    problem = group()
    best = Incumbent(task_for(problem))
    best.take(Candidate(even_plan(problem)), "in turn")
    best.take(Bound(5), "right")
    best.take(Bound(10), "wrong")
    assert (best.bound, best.bound_by) == (10, "wrong")
    for _ in range(2):
        best.take(Bound(best.value + 5), "wrong")
    assert (best.bound, best.bound_by) == (5, "right")
    (note,) = best.notes
    assert note == (
        f"wrong: withdrew its bounds, because the objective is at least {best.value + 5} by one of them and "
        f"{best.value} in a valid plan of in turn; please report this"
    )


def two_plans() -> tuple[Problem, Candidate, Candidate]:
    """Today's assignment comes to an objective of 4; the other plan has a spread of 174 and makes two moves."""
    owned = {"c0": [("t", 0), ("t", 2)], "c1": [("t", 1), ("t", 3)]}
    problem = group([90, 1, 5, 90], 2, owned=owned)
    worse, better = (Plan(problem, np.array(chosen, dtype=np.int32)) for chosen in ([0, 1, 1, 0], [0, 1, 0, 1]))
    return problem, Candidate(worse), Candidate(better)


def test_a_bound_that_a_later_plan_refutes_proves_nothing() -> None:
    problem, worse, better = two_plans()
    asked = task_for(problem)
    wrong = Step(Scripted((worse, Bound(174)), "wrong"))
    best = run_steps(asked, Incumbent(asked), (wrong,))
    assert (best.settled, best.bound_by) == (StoppedBy.PROOF, "wrong")
    run_steps(asked, best, (Step(Scripted((better, Bound(3)), "right"), though_settled=True),))
    run_steps(asked, best, (Step(Scripted((Bound(4),), "wrong")),))
    assert (best.value, best.bound, best.bound_by, best.settled) == (4, 3, "right", None)
    (note,) = best.notes
    assert note.startswith("wrong: withdrew its bounds, because the objective is at least 174 by one of them and 4 in")


@pytest.mark.parametrize(("figure", "bound"), [("objective", 5), ("base", 5), ("moves", 1)])
def test_bounds_that_rest_on_a_refuted_one_are_withdrawn_with_it(figure: str, bound: int) -> None:
    problem, worse, better = two_plans()
    best = Incumbent(task_for(problem, stickiness=100))
    best.take(worse, "first")
    best.take(Bound(3), "by itself")
    best.take(Bound(**{figure: bound}), "wrong")
    for value in (4, 6):  # one that the plan does not refute, and one that it does
        best.take(Bound(value, rests_on=best.authors), "built on it")
    assert (best.bound, best.bound_by) == (6, "built on it")
    best.take(better, "second")
    assert (best.bound, best.bound_by, best.base_bound, best.moves_bound) == (3, "by itself", 0, 0)
    assert [note.split(":")[0] for note in best.notes] == ["wrong"]
    best.take(Bound(4), "built on it")
    assert (best.proven, best.bound_by) == (True, "built on it")


def test_a_side_question_names_the_stage_that_proved_its_bound() -> None:
    best = Incumbent(task_for(group()))
    best.take(Bound(4, by="within"), "side question")
    best.take(Bound(4), "as high")
    assert best.bound_by == "within"


def test_bounds_only_rise() -> None:
    best = Incumbent(task_for(group()))
    best.take(Bound(5, 4, 3), "one")
    best.take(Bound(2, 1, 0), "another")
    assert (best.bound, best.base_bound, best.moves_bound) == (5, 4, 3)


@settings(max_examples=cases(40))
@given(problems())
def test_properties_of_an_incumbent_change_nothing(problem: Problem) -> None:
    assume(problem.active.any())
    try:
        asked = task_for(problem, time_limit=0.2)
    except InfeasibleError:
        assume(False)
    best = run_steps(asked, begin(Incumbent(asked)), AUTO)
    before = {name: copy.copy(value) if isinstance(value, list | dict) else value for name, value in vars(best).items()}
    for _ in range(2):
        for question in ("settled", "stopped_by", "proven", "gap", "wanted", "enough", "moves_worth", "value", "plan"):
            getattr(best, question)
    assert vars(best) == before


@settings(max_examples=cases(60))
@given(problems(), st.sampled_from([0, "0.1%", "fewest-moves"]), st.sampled_from(["spread", "makespan"]))
def test_stages_yield_plans_of_the_problem_and_true_bounds(problem: Problem, stickiness: Any, objective: str) -> None:
    assume(problem.active.any())
    try:
        asked = task_for(problem, work=0.05, deterministic=True, stickiness=stickiness, objective=objective)
    except InfeasibleError:
        assume(False)
    yielded: list[tuple[str, Finding]] = []

    class Watching(Incumbent):
        def take(self, finding: Finding, by: str) -> None:
            yielded.append((by, finding))
            super().take(finding, by)

    best = run_steps(asked, begin(Watching(asked)), AUTO)
    for by, finding in yielded:
        if isinstance(finding, Candidate):
            assert finding.plan.problem is problem, by
        elif isinstance(finding, Bound) and finding.objective is not None:
            assert finding.objective <= best.value, by
    assert not any("withdrew" in note for note in best.notes)
    assert {by for by, _ in yielded} <= {"current"} | {step.stage.name for step in AUTO}
