"""Steps run in rounds, in order and within their shares, until the task is settled."""

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest

from evenlag import Problem, solve
from evenlag.model.backends import Outcome
from evenlag.model.result import Status, StoppedBy
from evenlag.search.exact import mip
from evenlag.search.incumbent import Bound, Candidate, Finding, Incumbent, Note, begin
from evenlag.search.options import SolveOptions
from evenlag.search.portfolio import portfolio_of
from evenlag.search.solver import search
from evenlag.search.stage import Stage, Step, round_length, run_steps
from tests.support.scripted import LAGS, Scripted, even_plan, group, task_for


def test_steps_run_in_order_with_their_shares_of_a_round_until_the_task_is_settled() -> None:
    problem = group([5, 5], 2)
    good = Candidate(even_plan(problem))
    first, second, third, last = (Scripted((good,) if i == 1 else (), f"s{i}") for i in range(4))
    steps = (Step(first, 0.3), Step(second, 0.5), Step(third), Step(last, though_settled=True))
    asked = task_for(problem)
    best = run_steps(asked, Incumbent(asked), steps)
    length = round_length(asked)
    assert [stage.runs for stage in (first, second, third)] == [[0.3 * length], [0.5 * length], []]
    assert last.runs == [pytest.approx(60, abs=1)]
    assert best.settled == StoppedBy.PROOF
    assert list(best.seconds) == ["s0", "s1", "s3"]


def test_a_step_cut_by_its_turn_gets_one_twice_as_long() -> None:
    cut, whole, again = Scripted(cut=2), Scripted(), Scripted(cut=1)
    asked = task_for(group())
    run_steps(asked, Incumbent(asked), (Step(cut, 0.5), Step(whole, 0.5), Step(again, 0.5, again=True)))
    half = round_length(asked) / 2
    assert cut.runs == again.runs == [half, 2 * half, 4 * half]
    assert whole.runs == [half]


def test_a_step_that_starts_over_sits_out_a_round_after_a_turn_that_gained_little() -> None:
    problem = group()
    asked = task_for(problem)
    some = Incumbent(asked)
    some.take(Candidate(even_plan(problem)), "start")
    gap = some.value - some.bound
    halves, thousandths = (
        tuple(Bound(some.value - gap * share**turn) for turn in range(1, 4)) for share in (0.5, 0.999)
    )
    gains, starts_over, goes_on = (
        Scripted(cut=3, starts_over=over, each_turn=each)
        for over, each in ((True, halves), (True, thousandths), (False, thousandths))
    )
    for stage in (gains, starts_over, goes_on):
        best = Incumbent(asked)
        best.take(Candidate(even_plan(problem)), "start")
        run_steps(asked, best, (Step(stage, 1.0),))
    length = round_length(asked)
    assert gains.runs == goes_on.runs == [length, 2 * length, 4 * length, 8 * length]
    assert starts_over.runs == [length, 4 * length, 16 * length, 64 * length]


def test_a_round_is_longer_for_larger_groups() -> None:
    small, large = (task_for(group(LAGS * n)) for n in (1, 1000))
    assert round_length(small) < round_length(large)


def test_a_step_runs_only_when_it_should() -> None:
    stages = [Scripted(), Scripted()]
    run_steps(
        task_for(group()), Incumbent(task_for(group())), (Step(stages[0], when=lambda *_: False), Step(stages[1]))
    )
    assert [len(stage.runs) for stage in stages] == [0, 1]


class Recording(Incumbent):
    """Record after each finding its author, the objective and the bound."""

    def take(self, finding: Finding, by: str) -> None:
        super().take(finding, by)
        self.record = [*getattr(self, "record", []), (by, self.value if self.found else None, self.bound)]


def run_recorded(problem: Problem, work: float, **options: Any) -> Recording:
    asked = task_for(problem, deterministic=True, work=work, **options)
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
def test_more_work_repeats_the_findings_of_less_work_first(size: tuple[int, int], options: dict[str, Any]) -> None:
    """All findings before the step that used up the work are the same, so more work is never worse."""
    rng = np.random.default_rng(size)
    partitions, members = size
    lags = rng.lognormal(8, 1, partitions).astype(np.int64).tolist()
    owned = {f"c{m}": [("t", p) for p in range(partitions) if p % members == m] for m in range(members)}
    problem = group(lags, members, owned=owned)
    runs = [run_recorded(problem, work, **options) for work in (0.1, 0.4, 1.6)]
    for less, more in pairwise(runs):
        records = less.record, more.record
        same = next((n for n, (one, two) in enumerate(zip(*records, strict=False)) if one != two), len(less.record))
        assert len({by for by, *_ in less.record[same:]}) <= 1
        assert same > 0.5 * len(less.record)
        assert more.value <= less.value
        assert more.bound >= less.bound


def test_no_step_begins_after_the_time_is_up() -> None:
    problem = group()
    asked = task_for(problem, time_limit=1e-9)
    late = Scripted()
    run_steps(asked, begin(Incumbent(asked), even_plan(problem)), (Step(late),))
    assert late.runs == []


def test_a_new_stage_takes_one_step() -> None:
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


@pytest.mark.parametrize("stopped", ["time", "work"])
def test_a_result_reports_whether_time_or_work_ended_the_backend(stopped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mip, "run_backend", lambda *_: Outcome(stopped=stopped))
    problem = group([91, 83, 71, 60, 53, 41, 37, 29, 11], 4)
    result = solve(problem, method="cbc", stickiness=0, deterministic=True, time_limit=60.0)
    assert (result.status, result.stopped_by) == ("FEASIBLE", stopped)


def test_a_stage_without_a_name_is_refused() -> None:
    class Nameless(Stage):
        applies, run = Scripted.applies, Scripted.run

    with pytest.raises(TypeError, match=r"Nameless .* method '?name"):
        Nameless()  # type: ignore[abstract]


def test_a_misspelt_class_variable_of_a_stage_is_refused() -> None:
    with pytest.raises(TypeError, match="Wrong: no stage has the class variable 'handels'"):

        class Wrong(Stage):
            handels: ClassVar[frozenset[str]] = frozenset()


def test_a_misspelt_term_of_a_stage_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Wrong: no objective has the term 'celling', only .*'ceiling'"):

        class Wrong(Stage):
            handles: ClassVar[frozenset[str]] = frozenset({"celling"})
