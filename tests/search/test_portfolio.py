"""The machinery of the search: what a stage may do, what the incumbent takes, what ends a search, the page of steps."""

import copy
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from math import inf
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evenlag import Problem, solve
from evenlag.errors import InfeasibleError, InvalidProblemError
from evenlag.heuristics import HEURISTICS
from evenlag.model.backends import BACKENDS, Outcome
from evenlag.model.objective import Across, Objective, ObjectiveKind
from evenlag.model.plan import Plan, current_plan
from evenlag.model.result import Binding, Status, StoppedBy
from evenlag.search.binding import find_binding
from evenlag.search.exact import mip
from evenlag.search.exact.relaxations import LoadsAlone
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent, Note, begin
from evenlag.search.options import METHODS, SolveKeywords, SolveOptions, solving_options
from evenlag.search.portfolio import AUTO, PORTFOLIOS, SCENARIOS, TERMS, portfolio_of
from evenlag.search.solver import search, task_of
from evenlag.search.stage import Step, round_length, run_steps
from evenlag.search.task import Task
from evenlag.spark import plans
from tests.support.pages import table
from tests.support.problems import alike, cases, problems, seeds

LAGS = [90, 70, 50, 40, 30, 20, 10, 5]


def group(lags: list[int] = LAGS, members: int = 3, **more: Any) -> Problem:
    """One topic that all members read."""
    return Problem.from_lags({"t": lags}, {f"c{i}": ["t"] for i in range(members)}, **more)


def even_plan(problem: Problem) -> Plan:
    """Keep every balance of one topic: partitions in turn."""
    return Plan(problem, (np.arange(len(problem.lags)) % len(problem.members)).astype(np.int32))


@dataclass(frozen=True)
class Scripted:
    """A stage that yields what it is told to, asks for more time in its first turns, and notes the time it had."""

    findings: tuple[Finding, ...] = ()
    name: str = "scripted"
    cut: int = 0
    runs: list[float] = field(default_factory=list)

    def applies(self, _task: Task, _best: Incumbent) -> bool:
        return True

    def run(self, task: Task, _best: Incumbent) -> Iterator[Finding]:
        self.runs.append(task.clock.limit)
        if len(self.runs) <= self.cut:
            task.clock.ended()
        yield from self.findings


def task(problem: Problem, **options: Any) -> Task:
    return task_of(problem, SolveOptions(**{"time_limit": 60.0, "stickiness": 0} | options))


# ---- the incumbent -----------------------------------------------------------------------------------------------


def test_a_plan_that_breaks_a_rule_is_not_taken() -> None:
    problem = group()
    best = Incumbent(task(problem))
    best.take(Candidate(Plan(problem, np.zeros(len(LAGS), dtype=np.int32))), "all to one")
    assert not best.found
    best.take(Candidate(even_plan(problem)), "in turn")
    assert best.method == "in turn"


def test_a_worse_plan_is_not_taken_and_a_better_one_is() -> None:
    problem = group([90, 1, 1, 90], 2)
    best = Incumbent(task(problem))
    best.take(Candidate(Plan(problem, np.array([0, 1, 1, 0], dtype=np.int32))), "first")
    best.take(Candidate(Plan(problem, np.array([1, 0, 0, 1], dtype=np.int32))), "as good")
    assert best.method == "first"
    best.take(Candidate(Plan(problem, np.array([0, 1, 0, 1], dtype=np.int32))), "better")
    assert (best.method, best.value) == ("better", 0)


def test_a_bound_above_a_known_plan_is_withdrawn_with_its_author_and_said_once() -> None:
    problem = group()
    best = Incumbent(task(problem))
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
    asked = task(problem)
    wrong = Step(Scripted((worse, Bound(174)), "wrong"))
    best = run_steps(asked, Incumbent(asked), (wrong,))
    assert (best.settled, best.bound_by) == (StoppedBy.PROOF, "wrong")
    run_steps(asked, best, (Step(Scripted((better, Bound(3)), "right"), though_settled=True),))
    run_steps(asked, best, (Step(Scripted((Bound(4),), "wrong")),))
    assert (best.value, best.bound, best.bound_by, best.settled) == (4, 3, "right", None)
    (note,) = best.notes
    assert note.startswith("wrong: withdrew its bounds, because the objective is at least 174 by one of them and 4 in")


@pytest.mark.parametrize(("figure", "bound"), [("objective", 5), ("base", 5), ("moves", 1)])
def test_bounds_that_rest_on_a_refuted_one_go_with_it_and_others_stay(figure: str, bound: int) -> None:
    problem, worse, better = two_plans()
    best = Incumbent(task(problem, stickiness=100))
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
    best = Incumbent(task(group()))
    best.take(Bound(4, by="within"), "side question")
    best.take(Bound(4), "as high")
    assert best.bound_by == "within"


def test_bounds_only_rise() -> None:
    best = Incumbent(task(group()))
    best.take(Bound(5, 4, 3), "one")
    best.take(Bound(2, 1, 0), "another")
    assert (best.bound, best.base_bound, best.moves_bound) == (5, 4, 3)


@settings(max_examples=cases(40))
@given(problems())
def test_a_question_changes_nothing(problem: Problem) -> None:
    assume(problem.active.any())
    try:
        asked = task(problem, time_limit=0.2)
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
def test_what_stages_yield_is_sound(problem: Problem, stickiness: Any, objective: str) -> None:
    assume(problem.active.any())
    try:
        asked = task(problem, work=0.05, deterministic=True, stickiness=stickiness, objective=objective)
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


# ---- steps -------------------------------------------------------------------------------------------------------


def test_steps_run_in_order_with_their_shares_of_a_round_until_the_task_is_settled() -> None:
    problem = group([5, 5], 2)
    good = Candidate(even_plan(problem))
    first, second, third, last = (Scripted((good,) if i == 1 else (), f"s{i}") for i in range(4))
    steps = (Step(first, 0.3), Step(second, 0.5), Step(third), Step(last, though_settled=True))
    asked = task(problem)
    best = run_steps(asked, Incumbent(asked), steps)
    length = round_length(asked)
    assert [stage.runs for stage in (first, second, third)] == [[0.3 * length], [0.5 * length], []]
    assert last.runs == [pytest.approx(60, abs=1)]
    assert best.settled == StoppedBy.PROOF
    assert list(best.seconds) == ["s0", "s1", "s3"]


def test_a_step_that_its_turn_cut_has_one_twice_as_long_and_others_are_done() -> None:
    cut, whole, again = Scripted(cut=2), Scripted(), Scripted(cut=1)
    asked = task(group())
    run_steps(asked, Incumbent(asked), (Step(cut, 0.5), Step(whole, 0.5), Step(again, 0.5, again=True)))
    half = round_length(asked) / 2
    assert cut.runs == again.runs == [half, 2 * half, 4 * half]
    assert whole.runs == [half]


def test_a_round_is_longer_for_larger_groups() -> None:
    small, large = (task(group(LAGS * n)) for n in (1, 1000))
    assert round_length(small) < round_length(large)


def test_a_step_runs_only_when_it_should() -> None:
    stages = [Scripted(), Scripted()]
    run_steps(task(group()), Incumbent(task(group())), (Step(stages[0], when=lambda *_: False), Step(stages[1])))
    assert [len(stage.runs) for stage in stages] == [0, 1]


class Recording(Incumbent):
    """Note after each finding who had it, the objective and the bound."""

    def take(self, finding: Finding, by: str) -> None:
        super().take(finding, by)
        self.record = [*getattr(self, "record", []), (by, self.value if self.found else None, self.bound)]


def recorded(problem: Problem, work: float, **options: Any) -> Recording:
    asked = task(problem, deterministic=True, work=work, **options)
    best = Recording(asked)
    run_steps(asked, begin(best), portfolio_of(problem, asked.goal))
    return best


@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((40, 8), {"balance": "group"}),
        ((60, 10), {"balance": "group", "max_moves": 10}),
        ((48, 6), {"balance": "group", "stickiness": "0.1%"}),
        ((30, 5), {"max_moves": 8, "objective": "makespan"}),
        ((120, 12), {"balance": "none"}),
    ],
)
def test_with_more_work_the_same_is_done_first(size: tuple[int, int], options: dict[str, Any]) -> None:
    """Up to the step in which the work was used up, all findings are the same; so more work is never worse."""
    rng = np.random.default_rng(size)
    partitions, members = size
    lags = rng.lognormal(8, 1, partitions).astype(np.int64).tolist()
    owned = {f"c{m}": [("t", p) for p in range(partitions) if p % members == m] for m in range(members)}
    problem = group(lags, members, owned=owned)
    runs = [recorded(problem, work, **options) for work in (0.1, 0.4, 1.6)]
    for less, more in pairwise(runs):
        records = less.record, more.record
        same = next((n for n, (one, two) in enumerate(zip(*records, strict=False)) if one != two), len(less.record))
        assert len({by for by, *_ in less.record[same:]}) <= 1
        assert same > 0.5 * len(less.record)
        assert more.value <= less.value
        assert more.bound >= less.bound


def test_no_step_begins_after_the_time_is_up() -> None:
    problem = group()
    asked = task(problem, time_limit=1e-9)
    late = Scripted()
    run_steps(asked, begin(Incumbent(asked), even_plan(problem)), (Step(late),))
    assert late.runs == []


def test_another_stage_is_one_step_more() -> None:
    problem = group(owned={"c0": [("t", 0)]})
    best = solve(problem, stickiness=0)
    found = Scripted((Candidate(best.plan), Note("so it is")), "oracle")
    result = search(problem, SolveOptions(stickiness=0), steps=(Step(found),))
    assert (result.method, result.objective) == ("oracle", best.objective)
    assert "so it is" in result.warnings


def test_the_current_assignment_is_there_before_any_stage() -> None:
    problem = group([5, 5], 2, owned={"c0": [("t", 0)], "c1": [("t", 1)]})
    result = search(problem, SolveOptions(), steps=(Step(Scripted()),))
    assert (result.method, result.status) == ("current", Status.OPTIMAL)


# ---- what ended it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stopped", ["time", "work"])
def test_a_backend_that_the_clock_ended_is_not_said_to_have_ended_by_work(
    stopped: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mip, "run_backend", lambda *_: Outcome(stopped=stopped))
    problem = group([91, 83, 71, 60, 53, 41, 37, 29, 11], 4)
    result = solve(problem, method="cbc", stickiness=0, deterministic=True, time_limit=60.0)
    assert (result.status, result.stopped_by) == ("FEASIBLE", stopped)


# ---- when a bound meets an objective ---------------------------------------------------------------------------


@pytest.mark.parametrize("hot", [10**9, 10**12, 10**15])
def test_fractions_of_a_message_count_beside_a_giant(hot: int) -> None:
    """A bound that lies a few messages below is no proof, however large the loads are."""
    lags = [hot, 728, 309, 197, 780, 21, 10, 7, 225, 8, 870]
    owners = dict(zip("abc", ([1, 3, 4, 5, 7, 8], [2, 6, 9], [0, 10]), strict=True))
    owned = {name: [("t", p) for p in held] for name, held in owners.items()}
    group = alike(lags, "abc", owned=owned)
    twice = alike([2 * lag for lag in lags], "abc", owned=owned)
    rules: dict[str, Any] = {"balance": "group", "slack": 1, "objective": "makespan"}
    found = solve(group, stickiness=0.5, **rules)
    expected = solve(twice, stickiness=1, **rules)
    assert (expected.status, found.status) == ("OPTIMAL", "OPTIMAL")
    assert (2 * found.objective, found.moves) == (expected.objective, expected.moves)


@given(problems(partitions=8, members=4, plain=False), st.sampled_from([0, 0.1, 0.5, 3, 1.25]), st.data())
def test_every_objective_is_a_multiple_of_the_step(problem: Problem, stickiness: float, data: st.DataObject) -> None:
    kind, across = data.draw(st.sampled_from(list(ObjectiveKind))), data.draw(st.sampled_from(list(Across)))
    goal = Objective(kind, Fraction(stickiness), across=across)
    random = data.draw(st.randoms(use_true_random=False))
    takers = [range(-1, len(problem.members) if taken else 0) for taken in problem.assignable]
    member_of = np.array([random.choice(each) for each in takers], np.int32)
    assert (goal.value(Plan(problem, member_of)) / goal.step(problem)).denominator == 1


# ---- options -----------------------------------------------------------------------------------------------------

WRONG: dict[str, list[Any]] = {
    "balance": ["even", None, 3, []],
    "objective": ["lag", None, True],
    "stickiness": ["much", -1, True, "nan", None, "-1%", "1e999999999", "1e-999999999%", 1e200],
    "max_moves": [-1, 1.5, True, "3"],
    "slack": [-1, 0.5, True, None],
    "method": ["best", None, ""],
    "time_limit": [0, -1, "10", None, True, float("nan")],
    "gap": [-0.1, "0", None, True, float("nan")],
    "seed": [1.5, "1", None, True, -1, 2**31],
    "deterministic": ["no", None, 1],
    "threads": [0, -1, 1.5, "2", True, 1025, 10**20],
    "work": [0, -1, "1", True],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_option_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidProblemError, match=name):
        SolveOptions(**{name: value})
    with pytest.raises(InvalidProblemError, match=name):
        solve(group(), **{name: value})


@pytest.mark.parametrize("value", [np.int64(3), 2**31 - 1, 0])
def test_any_whole_number_is_a_seed(value: Any) -> None:
    assert solve(group(), seed=value, time_limit=1.0).status == "OPTIMAL"


@pytest.mark.parametrize("name", ["slack", "max_moves", "threads", "stickiness", "time_limit", "gap"])
def test_numbers_of_numpy_are_numbers(name: str) -> None:
    one, same = (solve(group(), **{"time_limit": 9.0, name: number}).to_dict() for number in (np.int64(2), 2))
    assert json.dumps(one | {"seconds": 0}) == json.dumps(same | {"seconds": 0})


@pytest.mark.parametrize("parameters", [{"time_limit": 10**400}, {"gap": 10**400}, {"work": float("inf")}])
def test_no_limit_is_too_large(parameters: dict[str, Any]) -> None:
    assert solve(group(), deterministic="work" in parameters, **parameters).status in ("OPTIMAL", "FEASIBLE")


def test_a_start_of_another_problem_is_refused() -> None:
    yesterday = solve(group(LAGS[::-1]), time_limit=1.0)
    with pytest.raises(InvalidProblemError, match="same problem"):
        solve(group(), start=yesterday.plan)
    with pytest.raises(InvalidProblemError, match="same problem"):
        solve(group(), start=yesterday)


def test_a_result_is_a_start_as_its_plan_is() -> None:
    problem = group()
    narrow = solve(problem, balance="both", time_limit=1.0)
    of_result, of_plan = (solve(problem, balance="none", gap=1e9, start=start) for start in (narrow, narrow.plan))
    assert of_result.objective == of_plan.objective <= narrow.objective


@pytest.mark.parametrize("start", [5, "plan.json", {"c0": [("t", 0)]}])
def test_what_is_no_plan_is_no_start(start: Any) -> None:
    with pytest.raises(InvalidProblemError, match=f"start must be a Plan or a Result .*; got {type(start).__name__}"):
        solve(group(), start=start)


@pytest.mark.parametrize("rates", [5, [], "x", [1.0]])
def test_what_is_no_mapping_has_no_rates(rates: Any) -> None:
    with pytest.raises(InvalidProblemError, match=f"rates must be a mapping .*; got {type(rates).__name__}"):
        solve(group(), rates=rates)


def test_keywords_that_are_handed_on_are_options() -> None:
    assert set(SolveKeywords.__annotations__) < set(SolveOptions.__dataclass_fields__)
    with pytest.raises(TypeError, match=r"plans\(\) got an unexpected keyword argument 'threads'"):
        solving_options("plans", {"threads": 4}, plans)  # type: ignore[typeddict-unknown-key]
    assert solving_options("plans", {"slack": 1}, plans) == SolveOptions(slack=1)


def test_options_do_not_change() -> None:
    options = SolveOptions()
    with pytest.raises(FrozenInstanceError):
        options.gap = 1.0  # type: ignore[misc]
    assert options.within(3.0, 2.0) == SolveOptions(time_limit=3.0, work=2.0)


def test_defaults_are_those_of_solve() -> None:
    parameters = inspect.signature(solve).parameters.items()
    defaults = {name: each.default for name, each in parameters if name not in ("problem", "start", "rates")}
    assert len(defaults) > 10
    assert defaults == {name: getattr(SolveOptions(), name) for name in defaults}


def test_names_are_strings() -> None:
    result = solve(group(), time_limit=1.0)
    assert (repr(result.status), f"{result.balance}") in {("'OPTIMAL'", "both"), ("'FEASIBLE'", "both")}
    assert isinstance(result.status, str)


# ---- the page and the docs ---------------------------------------------------------------------------------------


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
    asked, backend = task(problem, **options), Scripted(name="cp-sat")
    steps = tuple(replace(step, stage=backend) for step in AUTO if isinstance(step.stage, mip.MipStage))
    run_steps(asked, begin(Incumbent(asked), even_plan(problem)), steps)
    assert len(backend.runs) == turns


@pytest.mark.parametrize(
    ("heading", "steps"),
    [("## The steps", AUTO), ("## With scenarios", SCENARIOS), ("## With costs of pairs or a ceiling", TERMS)],
)
def test_the_tables_of_the_docs_are_the_page(heading: str, steps: tuple[Step, ...]) -> None:
    rows = table("solver.md", heading)
    assert [row[0] for row in rows] == [f"{step.stage.name}" for step in steps]
    for row, step in zip(rows, steps, strict=True):
        assert row[1] == ("all" if step.share == inf else f"{step.share:g}"), row
        module = type(step.stage).__module__.replace(".", "/") + ".py"
        assert row[2] == f"`{module.removeprefix('evenlag/')}`"


HEADINGS = ("## The steps", "## With scenarios", "## With costs of pairs or a ceiling")


def documented_methods() -> set[str]:
    rows = table("glossary.md", "## Values of `method`")
    others = {name for row in rows for name in re.findall(r"`([^`]+)`", row[0])}
    strategies = {row[0].strip("`") for row in table("heuristics.md", "# Published strategies")}
    return (
        others
        | strategies
        | {
            row[0]
            for heading in ("## The steps", "## With scenarios", "## With costs of pairs or a ceiling")
            for row in table("solver.md", heading)
        }
    )


def test_every_method_is_in_the_docs() -> None:
    stages = {step.stage.name for steps in (*PORTFOLIOS.values(), SCENARIOS, TERMS) for step in steps}
    assert documented_methods() == {*stages, *HEURISTICS, "greedy", "current", "start", "none"}
    assert set(METHODS) == {"auto", *BACKENDS, *HEURISTICS}


@settings(max_examples=30)
@given(problems())
def test_a_result_names_one_of_them(problem: Problem) -> None:
    try:
        assert solve(problem, time_limit=0.1).method in documented_methods()
    except InfeasibleError:
        assume(False)


def test_todays_assignment_is_a_plan_of_its_own() -> None:
    problem = group(owned={"c0": [("t", 0)]})
    assert (current_plan(problem).member_of == problem.owner).all()


# ---- loads alone -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(5))
def test_the_best_loads_go_to_those_who_hold_most_of_them(seed: int) -> None:
    lags = Random(seed).sample(range(1, 100), 9)
    even = solve(group(lags), stickiness=0)
    assert even.status is Status.OPTIMAL
    topic = even.plan.problem.topics[0]
    owned = {
        f"c{(m + 1) % 3}": [(topic, p) for p in np.flatnonzero(even.plan.member_of == m).tolist()] for m in range(3)
    }
    asked = task(group(lags, owned=owned), max_moves=8)
    best = begin(Incumbent(asked))
    found = [f for f in LoadsAlone(lambda: AUTO).run(asked, best) if isinstance(f, Candidate)]
    assert [(plan.plan.spread, plan.plan.moves) for plan in found] == [(even.spread, 0)]


def test_what_binds_does_not_depend_on_the_wall_clock_where_work_is_limited() -> None:
    """However long the bounds took."""
    binding = []
    for seconds in (0.0, 1e9):
        asked = task(group([5_000, 1, 1, 1, 1, 1]), deterministic=True, work=1.0)
        best = run_steps(asked, begin(Incumbent(asked)), AUTO)
        best.seconds["bounds"] = seconds
        binding.append(find_binding(asked, best, AUTO))
        assert not best.notes
    assert binding == [(Binding.HOT_PARTITION, Binding.COUNT_BALANCE)] * 2


def test_a_budget_that_hardly_binds_is_settled_by_the_loads_alone() -> None:
    lags = np.random.default_rng(3).integers(1, 10**6, 30).tolist()
    owned = {f"c{m}": [("t", p) for p in range(m, 30, 6)] for m in range(6)}
    loose = group(lags, 6, owned=owned)
    steps = [step for step in AUTO if isinstance(step.stage, LoadsAlone)]
    best = begin(Incumbent(task(loose)))
    runs = [[step.when(task(loose, max_moves=most), best) for step in steps] for most in (20, 19)]
    assert runs == [[True, False], [False, True]]
