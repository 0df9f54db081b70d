"""A plan is used only where it saves enough: against all plans, by hand, with invalid input, on the command line."""

import json
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenlag
from evenlag import pipeline
from evenlag.compare.catch_up import Pace, pace_of
from evenlag.compare.history import Capacity
from evenlag.errors import InvalidProblemError
from evenlag.model.check import plan_violation
from evenlag.model.objective import Objective
from evenlag.model.payoff import parse_share, payoff
from evenlag.model.plan import Plan, current_plan
from evenlag.search.options import SolveOptions
from evenlag.spark.worker.group_work import Turn, decided, solve_group
from evenlag.spark.worker.packed_plans import MOVE_WORDS
from evenlag.tables.group import GroupRows
from tests.support.command import evenlag as run
from tests.support.command import refused
from tests.support.exact import Goal, exhaustive
from tests.support.frames import OFFSETS_DDL, table
from tests.support.problems import alike, problems, random_problem, seeds
from tests.support.racked import crossings, moved_size, shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHARES: list[Any] = ["0%", "10%", 0.5, "99.9%", "100%"]


def lopsided(**more: Any) -> evenlag.Problem:
    """Spread 80 today, 0 at best, when t-1 and t-2 are exchanged."""
    return alike([40, 40, 0, 0], "ab", owned={"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]}, **more)


# ---- when it pays ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(40))
def test_a_plan_pays_where_the_best_of_all_plans_saves_enough(seed: int) -> None:
    random = Random(seed)
    problem = random_problem(random, partitions=7, members=3)
    share, objective = random.choice(SHARES), random.choice(["spread", "makespan"])
    stickiness: Any = random.choice([0, "0.1%", 30])
    today = current_plan(problem)
    if not problem.active.any():
        return
    try:
        best = exhaustive(problem, Goal(stickiness=stickiness, objective=objective)).objective
    except Exception:  # too little capacity, or too many plans to look at
        return
    result = evenlag.solve(
        problem, stickiness=stickiness, objective=objective, only_if_better=share, time_limit=20, pause=5
    )
    had = today.spread if objective == "spread" else today.makespan
    asked = Fraction(str(share).rstrip("%")) / (100 if str(share).endswith("%") else 1)
    if plan_violation(today) is not None:
        assert result.pays is True
        assert result.payoff is not None
        assert "cannot stay" in result.payoff.reason
        return
    assert result.payoff is not None
    assert result.payoff.saved == had - best
    assert result.pays == (had - best > 0 and had - best >= asked * had)
    if result.pays:
        assert result.objective == best
    else:
        assert result.assignment == today.assignment
        assert (result.moves, result.objective) == (0, had)


@given(problems(partitions=6, members=3), st.sampled_from(SHARES))
def test_a_group_left_alone_is_a_sound_result(problem: evenlag.Problem, share: Any) -> None:
    try:
        result = evenlag.solve(problem, only_if_better=share, time_limit=5, balance="topic")
    except evenlag.errors.InfeasibleError:
        return
    assert result.pays in (True, False)
    assert (result.gap is None) == (result.violation is not None)
    if result.violation is None and result.status != "EMPTY":
        assert result.objective >= result.bound
        assert (result.status == "OPTIMAL") >= (result.objective == result.bound)
    if not result.pays:
        np.testing.assert_array_equal(result.plan.member_of, problem.owner)
    document = json.loads(json.dumps(result.to_dict()))
    assert document["pays"] is result.pays
    assert document["payoff"]["asked"] == pytest.approx(float(parse_share(share)))


@pytest.mark.slow
def test_the_more_is_asked_the_less_pays() -> None:
    found = [evenlag.solve(lopsided(), only_if_better=percent / 100, stickiness=10).pays for percent in range(101)]
    assert found == [percent <= 75 for percent in range(101)]  # (80 − 2 moves · 10) / 80


def test_without_a_threshold_the_plan_is_kept() -> None:
    result = evenlag.solve(lopsided(), stickiness=10)
    assert result.pays is None
    assert result.payoff is not None
    assert result.payoff.reason == "the plan saves 60 of 80 messages of spread once its moves are paid, 75 %"
    assert evenlag.solve(alike([4, 3], "ab")).payoff is None  # there is no today


@pytest.mark.parametrize(
    ("price", "reason", "pays"),
    [
        (39, "the plan saves 2 of 80 messages of spread once its moves are paid, 2.5 %", True),
        (Fraction(79, 2), "the plan saves 1 of 80 messages of spread once its moves are paid, 1.25 %", True),
        (40, "the plan saves nothing of 80 messages of spread once its moves are paid", False),
    ],
)
def test_at_zero_percent_one_message_pays_and_none_does_not(price: Fraction | int, reason: str, pays: bool) -> None:
    """Two moves save 80 messages less their price; at 0 % any saving is enough, but not zero."""
    problem = lopsided()
    planned = Plan.from_assignment(problem, {"a": [("t", 0), ("t", 2)], "b": [("t", 1), ("t", 3)]})
    found = payoff(planned, Objective(stickiness=price), asked=Fraction(0))
    assert (found.reason, found.pays) == (reason, pays)


def test_an_invalid_assignment_is_not_left_alone() -> None:
    members = {"a": ["t"], "b": ["t"]}
    half = evenlag.Problem.from_lags({"t": [5, 5]}, members, owned={"a": [("t", 0)]})
    pinned = alike([5, 5], "ab", owned={"a": [("t", 0)], "b": [("t", 1)]}, pins=[("t", 0, "b"), ("t", 1, "a")])
    capped = alike([5, 5], "ab", owned={"a": [("t", 0), ("t", 1)]}, max_partitions={"a": 1})
    for problem, why in ((half, "t-1 has no member"), (pinned, "pinned to 'b'"), (capped, "max_partitions is 1")):
        result = evenlag.solve(problem, only_if_better="100%")
        assert result.pays is True
        assert result.payoff is not None
        assert why in result.payoff.reason
        assert plan_violation(result.plan) is None


def test_uneven_counts_may_stay_and_are_reported() -> None:
    problem = alike([9, 0, 0, 9], "ab", owned={"a": [("t", 0)], "b": [("t", 1), ("t", 2), ("t", 3)]})
    result = evenlag.solve(problem, only_if_better="1%")
    assert (result.pays, result.status, result.gap) == (False, "HEURISTIC", None)
    assert "1" in str(result.violation)
    assert result.payoff is not None
    assert result.payoff.reason == "the plan saves nothing of 0 messages of spread once its moves are paid"
    same = evenlag.solve(alike([4, 4], "ab", owned={"a": [("t", 0)], "b": [("t", 1)]}), only_if_better=0)
    assert (same.pays, same.status) == (False, "OPTIMAL")
    assert same.payoff is not None
    assert same.payoff.reason == "the plan is today's assignment"
    nobody = evenlag.solve(alike([4, 4], ""), only_if_better=0)
    assert (nobody.status, nobody.pays) == ("EMPTY", False)
    assert nobody.payoff is not None
    assert nobody.payoff.reason == "there is nothing to assign"


@pytest.mark.parametrize(("across", "today"), [("mean", (4 + 2 * 10) / 3), ("worst", 10)])
def test_savings_are_measured_over_scenarios(across: str, today: float) -> None:
    problem = lopsided(scenarios=[(1, {"t": [2, 2, 0, 0]}), (2, {"t": [1, 9, 0, 0]})])
    for asked in ("1%", "100%"):
        result = evenlag.solve(problem, across=across, stickiness=0, only_if_better=asked)
        assert result.payoff is not None
        assert float(result.payoff.today) == pytest.approx(today)
        best = evenlag.solve(problem, across=across, stickiness=0)
        assert result.payoff.saved == result.payoff.today - best.objective > 0
        assert result.pays == (asked == "1%")
        assert result.objective == (best.objective if result.pays else result.payoff.today)
        assert f"messages of {across} spread" in result.payoff.reason


def test_a_pause_costs_the_messages_that_arrive_meanwhile() -> None:
    rates = {("t", p): Fraction(7, 2) for p in range(4)}
    for pause, cost, pays in ((0, 0, True), (1, 7, True), (3.3, 24, True), (10, 70, False)):
        result = evenlag.solve(lopsided(), stickiness=0, only_if_better="50%", pause=pause, rates=rates)
        assert result.payoff is not None
        assert (result.payoff.pause_cost, result.payoff.saved, result.pays) == (cost, 80 - cost, pays)
        assert result.payoff.moves == 2
    unknown = evenlag.solve(lopsided(), stickiness=0, only_if_better="50%", pause=10)
    assert unknown.payoff is not None
    assert (unknown.payoff.pause_cost, unknown.pays) == (None, True)
    one = evenlag.solve(lopsided(), stickiness=0, pause=10, rates={("t", 0): 3, ("t", 1): 3}).payoff
    assert one is not None
    assert one.pause_cost == 30  # one of the two moves, and one whose rate is not known


@pytest.mark.parametrize(
    "wrong",
    [
        {"only_if_better": "110%"}, {"only_if_better": 1.01}, {"only_if_better": -0.1}, {"only_if_better": "ten"},
        {"only_if_better": "10"}, {"only_if_better": "nan%"}, {"only_if_better": "1e400%"}, {"only_if_better": True},
        {"only_if_better": float("inf")}, {"only_if_better": ""}, {"only_if_better": []}, {"pause": -1},
        {"pause": float("nan")}, {"pause": float("inf")}, {"pause": "3"}, {"pause": 1e9}, {"rates": {("t", 9): 1}},
        {"rates": {("t", 0): -1}}, {"rates": {("t", 0): float("nan")}}, {"rates": {("t", 0): "5"}},
        {"rates": {"t": 5}},
    ],
)  # fmt: skip
def test_invalid_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidProblemError, match=next(iter(wrong))):
        evenlag.solve(lopsided(), **wrong)


def test_what_if_compares_plans_and_leaves_nothing_alone() -> None:
    with pytest.raises(InvalidProblemError, match="only_if_better"):
        evenlag.compare.whatif(lopsided(), evenlag.compare.Change(members=1), only_if_better="10%")


# ---- time to catch up ------------------------------------------------------------------------------------------------


@given(problems(partitions=8, members=4, plain=False), st.randoms(use_true_random=True))
def test_time_to_catch_up_is_exact(problem: evenlag.Problem, random: Random) -> None:
    plan = Plan(problem, np.array([random.randint(-1, len(problem.members) - 1) for _ in problem.lags], np.int32))
    rates = {name: Fraction(random.randint(0, 9), 3) for name in problem.partitions if random.random() < 0.8}
    capacity = Fraction(random.randint(1, 20))
    seconds = Pace(rates, Capacity(capacity, "given")).seconds(plan)

    def left(member: int, at: Fraction) -> Fraction:
        names = [name for name, m in zip(problem.partitions, plan.member_of, strict=True) if m == member]
        coming = sum((rates.get(name, Fraction(0)) for name in names), Fraction(0))
        return int(plan.loads[member]) + (coming - capacity * problem.weights[member]) * at

    everybody = range(len(problem.members))
    unread = any(m < 0 and some for m, some in zip(plan.member_of, problem.assignable, strict=True))
    if seconds is None:
        assert unread or any(left(m, Fraction(10**9)) > 0 for m in everybody)
        return
    assert not unread
    assert all(left(m, seconds) <= 0 for m in everybody if plan.loads[m])
    assert not seconds or any(left(m, seconds - Fraction(1, 10**6)) > 0 for m in everybody)


def test_without_a_record_no_rates_are_reported() -> None:
    assert pace_of([]) == Pace(None, None)
    assert pace_of([]).seconds(current_plan(lopsided())) is None
    assert pace_of([], 8.0).seconds(current_plan(lopsided())) == 10


# ---- fleets ----------------------------------------------------------------------------------------------------------


def rows(lags: list[int], owners: list[str | None]) -> GroupRows:
    count = len(lags)
    return GroupRows(
        "2026-01-01", "g", ("t",), np.zeros(count, dtype=np.int64), np.arange(count), np.array(lags), owners
    )


def test_a_group_of_a_fleet_is_left_alone_after_its_last_turn() -> None:
    group = rows([40, 40, 0, 0], ["a", "a", "b", "b"])
    for share, pays, moves in (("90%", True, {"kept", "moved"}), ("100%", False, {"kept"}), (None, None, None)):
        options = SolveOptions(only_if_better=share, stickiness=1)
        first = solve_group(Turn(group, 5), options, "both")
        again = solve_group(Turn(group, 5, earlier=first), options, "both")
        done = decided(again, options)
        assert again.result is not None
        assert again.result.spread == 0  # a turn goes on from the plan, whatever becomes of it
        assert done.result is not None
        assert done.result.pays is pays
        assert moves is None or {MOVE_WORDS[word] for word in done.moves.tolist()} == moves
        assert done.audited is again.audited


def test_spark_makes_no_decision_for_a_failed_group() -> None:
    options = SolveOptions(only_if_better="10%")
    failed = solve_group(Turn(rows([-5], ["a"]), 1), options, "plan")
    assert failed.error is not None
    assert decided(failed, options) is failed


@pytest.mark.spark
def test_spark_decides_for_each_group(spark: "SparkSession") -> None:
    groups = {"even": [40, 39, 0, 0], "lopsided": [40, 40, 0, 0], "new": [5, 5]}
    owners = {"even": "abab", "lopsided": "aabb", "new": ["a", None]}
    offset_rows = [
        {"snapshot_ts": "2026-01-01", "group": group, "topic": "t", "partition": p, "lag": lag, "consumer_id": owner}
        for group, lags in groups.items()
        for p, (lag, owner) in enumerate(zip(lags, owners[group], strict=True))
    ]
    offsets = table(spark, offset_rows, OFFSETS_DDL)
    solved = pipeline.solve(offsets, only_if_better="50%", stickiness=1)
    pays = {row["group"]: row["pays"] for row in solved.groups.collect()}
    assert pays == {"even": False, "lopsided": True, "new": True}
    moves = {(row["group"], row["move"]) for row in solved.plans.collect()}
    assert {move for group, move in moves if group == "even"} == {"kept"}
    assert {move for group, move in moves if group == "lopsided"} == {"kept", "moved"}
    assert {row["pays"] for row in pipeline.solve(offsets).groups.collect()} == {None}
    with pytest.raises(InvalidProblemError, match="only_if_better"):
        pipeline.solve(offsets, only_if_better="200%")


# ---- the command -----------------------------------------------------------------------------------------------------

GROUP = {
    "group": "g",
    "topics": {"t": [40, 40, 0, 0]},
    "members": {
        "a": {"topics": ["t"], "owned": [["t", 0], ["t", 1]]},
        "b": {"topics": ["t"], "owned": [["t", 2], ["t", 3]]},
    },
}


@pytest.fixture
def group(tmp_path: Path) -> Path:
    path = tmp_path / "group.json"
    path.write_text(json.dumps(GROUP))
    return path


def test_exit_status_3_leaves_the_group_alone(group: Path, tmp_path: Path) -> None:
    words = ("plan", group, "--stickiness", "1")
    done = run(*words, "--only-if-better", "98%")
    assert (done.returncode, done.stderr) == (3, "")
    reason = "the plan saves 78 of 80 messages of spread once its moves are paid, 97.5 %; 98 % are asked for"
    assert f"the group is left alone: {reason}\n" in done.stdout
    assert "today's assignment, kept after a search of " in done.stdout
    assert "the plan that was found saves 80 messages of spread (100.00 %)\n" in done.stdout
    assert "\n move" not in done.stdout
    as_json = run(*words, "--only-if-better", "98%", "--json", "--out", tmp_path / "plan.json")
    document = json.loads(as_json.stdout)
    assert as_json.returncode == 3
    assert (document["pays"], document["payoff"]["reason"], document["method"]) == (False, reason, "current")
    assert document["assignment"] == {"a": [["t", 0], ["t", 1]], "b": [["t", 2], ["t", 3]]}
    assert json.loads((tmp_path / "plan.json").read_text()) == document


def test_exit_status_0_reports_the_savings(group: Path) -> None:
    done = run("plan", group, "--stickiness", "1", "--only-if-better", "97%", "--capacity", "2")
    assert done.returncode == 0
    for line in (
        "spread 80 → 0, makespan 80 → 40; 2 moves, 0 newly assigned",
        "saves 80 messages of spread (100.00 %)",
        "its moves cost 2 messages, and 2 partitions are not read during the pause (3 s, assumed)",
        "caught up after 20 s; today 40 s",
        "members read 2 messages per second (weight 1): as given",
        "it pays: the plan saves 78 of 80 messages of spread once its moves are paid, 97.5 %",
    ):
        assert f"{line}\n" in done.stdout
    unasked = json.loads(run("plan", group, "--json").stdout)
    assert (unasked["pays"], unasked["payoff"]["saved"], unasked["catch_up"]) == (None, 78, None)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--only-if-better", "101%"], "from 0% to 100%, such as '10%' or 0.1, not '101%'"),
        (["--only-if-better", "10"], "such as '10%'"),
        (["--only-if-better", "much"], "not 'much'"),
        (["--pause", "inf"], "pause must be a number of seconds from 0 to a day"),
        (["--capacity", "nan"], "capacity must be messages per second > 0 and < 2^63, not nan"),
        (["--capacity", "inf"], "capacity must be messages per second > 0 and < 2^63, not inf"),
    ],
)
def test_invalid_options_are_refused_in_one_line(group: Path, words: list[str], expected: str) -> None:
    refused(run("plan", group, *words), expected)


@pytest.mark.parametrize("words", [["--pause", "-1"], ["--pause", "long"], ["--capacity", "0"]])
def test_wrong_usage_is_status_2(group: Path, words: list[str]) -> None:
    done = run("plan", group, *words)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("rate", ["60/s", "0", "-3", ""])
def test_a_capacity_is_a_number_of_messages_per_second(group: Path, rate: str) -> None:
    done = run("plan", group, "--capacity", rate)
    expected = f"must be a number of messages per second above 0, such as 60, not {rate!r}"
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in " ".join(done.stderr.split())


HEADER = "snapshot_ts,group,topic,partition,log_start_offset,log_end_offset,current_offset,consumer_id\n"


def record(path: Path, *more: str) -> Path:
    """Every 10 s: a reads 100 messages in all, b whatever comes, 10 a partition; t-0 grows by 50, the others by 10."""
    lines = []
    for step in range(3):
        ends = [1_000 + 50 * step, *(1_000 + 10 * step for _ in range(3))]
        reads = [50 * step, 50 * step, *(1_000 + 10 * step for _ in range(2))]
        for p, owner in enumerate("aabb"):
            lines.append(f"2026-01-01T00:00:{10 * step:02}Z,g,t,{p},0,{ends[p]},{reads[p]},{owner}\n")
    path.write_text(HEADER + "".join([*more, *lines]))
    return path


@pytest.mark.parametrize("rate", ["nan", "inf"])
def test_an_invalid_capacity_is_refused_in_one_line_with_a_record_too(tmp_path: Path, rate: str) -> None:
    for horizon in ("auto", "0"):
        words = ("plan", record(tmp_path / "billing.csv"), "--capacity", rate, "--horizon", horizon)
        refused(run(*words), f"capacity must be messages per second > 0 and < 2^63, not {rate}")


def test_rates_and_capacity_come_from_the_record(tmp_path: Path) -> None:
    document = json.loads(
        run("plan", record(tmp_path / "offsets.csv"), "--json", "--stickiness", 0, "--horizon", 0).stdout
    )
    # Lags are 1,000, 920, 0 and 0. a had a backlog and read 10 a second, 6 coming in: 1,920 / 4 s. With t-1 at b it
    # has t-0 and 5 a second (and 1 for what it got): 1,000 / 4 s; b has 920 and 2 a second coming in.
    assert document["catch_up"] == {
        "capacity": 10, "capacity_source": "backlog", "today_seconds": 480, "planned_seconds": 250,
    }  # fmt: skip
    assert document["payoff"]["pause_cost"] == 6  # 2 partitions, 1 a second, 3 s
    today = ("plan", tmp_path / "offsets.csv", "--horizon", 0, "--capacity", 5)
    given = json.loads(run(*today, "--json").stdout)["catch_up"]
    assert (given["capacity_source"], given["today_seconds"]) == ("given", None)  # 6 come in
    assert "the plan never catches up; nor does today's assignment\n" in run(*today).stdout


def test_an_unusable_record_is_left_out_and_reported(tmp_path: Path) -> None:
    odd = "2025-12-31T00:00:00Z,g,t,0,0,-5,0,a\n"
    done = run("plan", record(tmp_path / "offsets.csv", odd), "--json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["catch_up"] is None
    assert any(
        "rates and capacity unknown" in note and "log_end_offset is negative" in note for note in document["warnings"]
    )


# ---- costs of pairs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("sized", [True, False])
def test_costs_of_pairs_are_weighed_at_their_prices(seed: int, sized: bool) -> None:
    """Crossings today and planned count on either side, sizes or moves as the price of moving; all computed anew."""
    problem = shop(seed, fetch_from="leader", **({} if sized else {"move_sizes": None}))
    result = evenlag.solve(problem, rack_price=13, stickiness=2, only_if_better="0%")
    plan = result.payoff.plan
    moved = moved_size(problem, plan.assignment)
    today = problem_spread(problem, current_plan(problem).assignment)
    today += 13 * crossings(problem, current_plan(problem).assignment)
    planned = problem_spread(problem, plan.assignment) + 13 * crossings(problem, plan.assignment)
    found = result.payoff
    assert (found.today, found.planned, found.move_cost) == (today, planned, 2 * moved)
    assert found.saved == today - planned - 2 * moved
    assert result.pays == (found.saved > 0)
    assert found.what == "spread and crossings"
    if not result.left_alone:
        assert result.objective == planned + 2 * moved


def problem_spread(problem: evenlag.Problem, assignment: Any) -> int:
    lag = dict(zip(problem.partitions, problem.lags.tolist(), strict=True))
    loads = [sum(lag[name] for name in names) for names in assignment.values()]
    return max(loads) - min(loads)


def test_a_group_left_alone_has_the_costs_of_today() -> None:
    problem = shop(3)
    result = evenlag.solve(problem, rack_price=1, only_if_better="100%", stickiness=1)
    today = current_plan(problem).assignment
    assert result.left_alone
    assert result.costs == {"crossings": crossings(problem, today), "moved_size": 0}
    assert result.objective == problem_spread(problem, today) + crossings(problem, today)


@pytest.mark.parametrize("limit", ["max_load", "max_crossings"])
def test_a_group_over_its_budget_is_not_left_alone(limit: str) -> None:
    problem = shop(3)
    today = current_plan(problem)
    broken = today.makespan if limit == "max_load" else crossings(problem, today.assignment)
    kept = evenlag.solve(problem, only_if_better="100%", **{limit: broken})
    assert (kept.pays, kept.left_alone) == (False, True)
    result = evenlag.solve(problem, only_if_better="100%", **{limit: broken - 1})
    assert (result.pays, result.left_alone) == (True, False)
    assert result.payoff.reason.startswith("today's assignment cannot stay: ")


def test_a_group_left_alone_is_optimal_only_if_its_first_criterion_is() -> None:
    """Today is as even as any plan with the fewest crossings, but crosses more."""
    problem = evenlag.Problem.from_lags(
        {"t": [5, 5]}, {"a": ["t"], "b": ["t"]}, owned={"a": [("t", 0)], "b": [("t", 1)]},
        racks={"a": "x", "b": "y"}, partition_racks={"t": [["y"], ["x"]]},
    )  # fmt: skip
    result = evenlag.solve(problem, first=["crossings"], only_if_better="10%")
    assert (result.left_alone, result.crossings, result.crossings_bound) == (True, 2, 0)
    assert result.status == "FEASIBLE"
