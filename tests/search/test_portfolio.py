"""The portfolio of stages, and the pages that list its steps and methods."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings

from evenlag import Problem, solve
from evenlag.errors import InfeasibleError
from evenlag.heuristics import HEURISTICS
from evenlag.model.backends import BACKENDS
from evenlag.model.plan import current_plan
from evenlag.search.exact import mip
from evenlag.search.incumbent import Incumbent, begin
from evenlag.search.options import METHODS
from evenlag.search.portfolio import AUTO, PORTFOLIOS, SCENARIOS, TERMS
from evenlag.search.stage import run_steps
from tests.support import step_tables
from tests.support.doc_tables import table
from tests.support.problems import problems
from tests.support.scripted import Scripted, even_plan, group, task_for


@pytest.mark.parametrize(
    ("owned", "options", "turns"),
    [
        (False, {"stickiness": 0}, 0),  # large and even: equalizing does better
        (True, {"stickiness": 0}, 0),
        (True, {"stickiness": "1%"}, 1),
        (True, {"max_moves": 3}, 1),
        (True, {"stickiness": "fewest-moves"}, 1),
    ],
)
def test_the_mip_has_one_turn_at_most(owned: bool, options: dict[str, Any], turns: int) -> None:
    problem = group([n * n * 7919 % 10_007 for n in range(120)], members=8)
    if owned:
        problem = problem.at(problem.lags, even_plan(problem).member_of)
    asked, backend = task_for(problem, **options), Scripted(name="cp-sat")
    steps = tuple(replace(step, stage=backend) for step in AUTO if isinstance(step.stage, mip.MipStage))
    run_steps(asked, begin(Incumbent(asked), even_plan(problem)), steps)
    assert len(backend.runs) == turns


def test_the_docs_list_the_steps_of_each_portfolio() -> None:
    page = step_tables.PAGE.read_text()
    rows = [table("solver.md", heading) for heading in step_tables.TABLES]
    assert [len(each) for each in rows] == [*map(len, step_tables.TABLES.values())]
    assert step_tables.renewed(page) == page, "python -m tests.support.step_tables"


def documented_methods() -> set[str]:
    rows = table("glossary.md", "## Values of `method`")
    others = {name for row in rows for name in re.findall(r"`([^`]+)`", row[0])}
    strategies = {row[0].strip("`") for row in table("heuristics.md", "# Published strategies")}
    return others | strategies | {row[0] for heading in step_tables.TABLES for row in table("solver.md", heading)}


def test_every_method_is_in_the_docs() -> None:
    stages = {step.stage.name for steps in (*PORTFOLIOS.values(), SCENARIOS, TERMS) for step in steps}
    assert documented_methods() == {*stages, *HEURISTICS, "greedy", "current", "start", "none"}
    assert set(METHODS) == {"auto", *BACKENDS, *HEURISTICS}


@settings(max_examples=30)
@given(problems())
def test_every_result_names_a_documented_method(problem: Problem) -> None:
    try:
        assert solve(problem, time_limit=0.1).method in documented_methods()
    except InfeasibleError:
        assume(False)


def test_the_current_plan_follows_the_owners() -> None:
    problem = group(owned={"c0": [("t", 0)]})
    assert (current_plan(problem).member_of == problem.owner).all()
