"""Audits compare strategies with the balance that they promise; frontiers are curves with true bounds."""

import io
from fractions import Fraction
from random import Random

import pytest
from rich.console import Console, RenderableType

import evenlag
from evenlag.compare import budgets
from evenlag.figures import number, percent
from evenlag.heuristics import HEURISTICS, PROMISED_BALANCE
from evenlag.model.balance import count_rule
from evenlag.model.check import violation
from evenlag.report.text import audit_report
from tests.support.exact import Goal, by_moves, exhaustive, within
from tests.support.problems import alike, random_owners


def group(seed: int, owned: bool = True) -> evenlag.Problem:
    random = Random(seed)
    lags = {name: [random.randint(0, 1000) for _ in range(random.randint(2, 5))] for name in ("t", "u")}
    owners = random_owners(random, lags, "aab")
    return alike(lags, "abc", owned=owners if owned else None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_excess_is_measured_from_the_true_optimum_of_the_promised_balance(seed: int) -> None:
    problem = group(seed)
    audit = evenlag.compare.audit(problem, time_limit=20)
    optimum = {
        balance: exhaustive(problem, Goal(balance=balance, stickiness=0)).objective
        for balance in ("topic", "group", "both", "none")
    }
    for row in audit.rows:
        if row.strategy == "optimal":
            assert (row.status, row.spread, row.excess, row.bound_excess) == ("OPTIMAL", optimum[row.balance], 0, 0)
            continue
        assert row.status == "HEURISTIC"
        assert row.valid
        if row.violation is None:
            assert row.excess == row.spread - optimum[row.balance] >= 0
        else:
            assert row.excess is row.bound_excess is None
    assert {(row.strategy, row.balance) for row in audit.rows} == {
        ("current", "none"),
        *PROMISED_BALANCE.items(),
        *(("optimal", balance) for balance in optimum),
    }


def test_every_heuristic_promises_a_balance() -> None:
    assert set(PROMISED_BALANCE) == set(HEURISTICS)


def test_the_audit_names_what_a_strategy_breaks() -> None:
    members = {"a": ["t"], "b": ["t", "u"]}
    problem = evenlag.Problem.from_lags({"t": [5, 5, 5, 5], "u": [1, 1]}, members, max_partitions={"a": 1})
    rows = {row.strategy: row for row in evenlag.compare.audit(problem, time_limit=2).rows}
    assert not rows["range"].valid
    assert "max_partitions is 1" in str(rows["range"].violation)
    assert "u" in str(rows["weighted-sticky"].violation) or "max_partitions" in str(rows["weighted-sticky"].violation)
    assert rows["constrained-sticky"].violation
    assert rows["constrained-sticky"].spread is None


@pytest.mark.parametrize(
    ("assignor", "balance"),
    [("cooperative-sticky", "group"), ("range", "topic"), ("lag", "topic"), ("of-our-own", "none"), (None, None)],
)
def test_todays_assignment_is_checked_against_the_balance_of_its_assignor(
    assignor: str | None, balance: str | None
) -> None:
    lags = {"t": [90, 80, 10, 0]}
    owned = {"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]}
    problem = evenlag.Problem.from_lags(lags, {"a": ["t"], "b": ["t"]}, owned=owned, assignor=assignor)
    assert evenlag.Problem.from_dict(problem.to_dict()).assignor == assignor
    audit = evenlag.compare.audit(problem, time_limit=5)
    rows = {row.strategy: row for row in audit.rows if row.strategy not in ("optimal", *HEURISTICS)}
    report = str(console_text(audit_report(audit)))
    if assignor is None:
        assert set(rows) == {"current"}
        assert "today" not in report
        return
    row = rows.pop(f"today: {assignor}")
    assert (row.balance, row.spread, row.moves, row.valid) == (balance, 160, 0, True)
    assert row.excess == 160 - exhaustive(problem, Goal(balance=str(balance), stickiness=0)).objective == 160
    above = "160 messages above the best plan of its balance, 177.78 % of that plan's largest load"  # which is 90
    assert f"today: {assignor}, {above}\n" in report
    assert [(name, each.balance) for name, each in rows.items()] == [("current", "none")]


def test_an_assignment_that_its_assignor_would_not_make_is_reported() -> None:
    owned = {"a": [("t", 0), ("t", 1), ("t", 2)]}
    problem = evenlag.Problem.from_lags({"t": [1, 2, 3]}, {"a": ["t"], "b": ["t"]}, owned=owned, assignor="uniform")
    audit = evenlag.compare.audit(problem, time_limit=5)
    (row,) = (row for row in audit.rows if row.strategy == "today: uniform")
    assert row.excess is row.bound_excess is None
    assert row.violation == "'a' has 3 partitions; group balance allows 1 to 2"
    printed = console_text(audit_report(audit))
    assert (
        "today: uniform, but it breaks the group balance that this assignor promises: 'a' has 3 partitions" in printed
    )


def console_text(report: RenderableType) -> str:
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(report)
    return console.export_text()


@pytest.mark.parametrize("seed", range(6))
def test_no_strategy_is_better_than_the_best_however_short_the_time(seed: int) -> None:
    random = Random(seed)
    topics = {f"t{t}": [int(1e3 * random.paretovariate(1.1)) for _ in range(210)] for t in range(10)}
    rows = evenlag.compare.audit(alike(topics, 60), time_limit=0.02).rows
    assert min(row.excess for row in rows if row.excess is not None) == 0


@pytest.mark.parametrize("seed", range(4))
def test_no_optimum_is_worse_than_a_plan_of_another_balance_that_keeps_its_own(seed: int) -> None:
    random = Random(seed)
    topics = {f"t{t}": [random.randint(0, 10**5) for _ in range(10)] for t in range(6)}
    problem = alike(topics, 7, weights={"c000": 2, "c001": 3})
    found = evenlag.compare.audit(problem, time_limit=60, work=0.05, deterministic=True).optima
    for balance, result in found.items():
        kept = [other for other in found.values() if violation(other.plan, count_rule(problem, balance)) is None]
        assert result.objective == min(other.objective for other in kept)


def test_an_audit_ended_by_its_work_limit_is_reproducible() -> None:
    random = Random(0)
    topics = {f"t{t}": [int(1e3 * random.paretovariate(1.1)) for _ in range(210)] for t in range(10)}
    one, same = (
        evenlag.compare.audit(alike(topics, 60), time_limit=60, work=0.02, deterministic=True) for _ in range(2)
    )
    assert min(row.excess for row in one.rows if row.excess is not None) == 0
    for balance, best in one.optima.items():
        again = same.optima[balance]
        assert (best.stopped_by, best.objective, best.bound) == ("work", again.objective, again.bound)


def test_an_infeasible_group_is_reported_in_rows() -> None:
    problem = alike([1, 2, 3], "a", max_partitions={"a": 1})
    rows = [row for row in evenlag.compare.audit(problem).rows if row.strategy == "optimal"]
    assert len(rows) == 4
    assert all(row.status == "ERROR" and "do not fit" in str(row.error) for row in rows)


def test_a_group_without_members_is_empty() -> None:
    rows = evenlag.compare.audit(evenlag.Problem.from_lags({"t": [1]}, {})).rows
    figures = {(row.status, row.objective, row.bound, row.gap, row.excess, row.spread, row.makespan) for row in rows}
    assert figures == {("EMPTY", None, None, None, None, None, None)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_frontier_points_are_optimal_for_their_moves(seed: int) -> None:
    problem = group(seed)
    curve = evenlag.compare.frontier(problem, time_limit=20)
    moves = [point.moves for point in curve.points]
    spreads = [point.spread for point in curve.points]
    assert moves == sorted(set(moves))
    assert spreads == sorted(spreads, reverse=True)
    for point in curve.points:
        best = exhaustive(problem, Goal(balance="both", stickiness=0, max_moves=point.moves)).objective
        assert point.bound <= best == point.spread
        assert point.plan.moves == point.moves
        assert set(point.assignment) == {"a", "b", "c"}
    assert 0 <= curve.knee < len(curve.points)


@pytest.mark.parametrize("seed", range(4))
def test_the_frontier_of_a_small_group_is_complete_and_proven(seed: int) -> None:
    """Compare with all plans: a point wherever another move lowers the spread, and the knee farthest below the line."""
    random = Random(seed)
    lags = {"t": [random.randint(1, 100) for _ in range(9)]}
    problem = alike(lags, "abc", owned={"a": [("t", p) for p in range(9)]})
    least = by_moves(problem, Goal(balance="none", stickiness=0))
    corners = [(m, within(least, m)) for m in sorted(least) if m == 0 or within(least, m) < within(least, m - 1)]
    curve = evenlag.compare.frontier(problem, balance="none", time_limit=60, work=10, deterministic=True)
    assert [(point.moves, point.spread) for point in curve.points] == corners
    assert all(point.bound == point.spread for point in curve.points)
    (x0, y0), (x1, y1) = corners[0], corners[-1]
    below = [(y0 - y) * (x1 - x0) - (x - x0) * (y0 - y1) for x, y in corners]  # of the line, up to a factor
    assert below[curve.knee] == max(below) > 0


def test_a_frontier_with_work_limits_is_reproducible() -> None:
    random = Random(1)
    lags = {"t": [random.randint(0, 10_000) for _ in range(40)]}
    owned = {f"c{m:03}": [("t", p) for p in range(8 * m, 8 * m + 8)] for m in range(5)}
    problem = alike(lags, 4, owned={m: held for m, held in owned.items() if m != "c004"})
    one, two = (evenlag.compare.frontier(problem, time_limit=600, work=2, deterministic=True).points for _ in range(2))
    assert [(p.moves, p.spread, p.bound, p.assignment) for p in one] == [
        (p.moves, p.spread, p.bound, p.assignment) for p in two
    ]


def test_a_frontier_without_owners_computes_no_bound_by_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "MoveBound", None)  # slow to make where members are many
    curve = evenlag.compare.frontier(evenlag.Problem.from_lags({"t": [5, 3, 9, 1]}, {"a": ["t"], "b": ["t"]}))
    assert [point.spread for point in curve.points] == [2]


def test_a_frontier_without_time_has_a_point() -> None:
    points = evenlag.compare.frontier(group(1), time_limit=1e-9).points
    assert all(0 <= point.bound <= point.spread for point in points)


def test_frontier_reports_its_progress_and_reaches_the_unbound_optimum() -> None:
    problem, seen = group(3), []
    curve = evenlag.compare.frontier(problem, time_limit=10, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, len(seen)) for done in range(len(seen))]
    assert curve.points[-1].spread == evenlag.solve(problem, stickiness=0).spread


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234567, "1,234,567"), (0.5, "0.50"), (Fraction(7, 2), "3.50"), (1e6 + 0.5, "1,000,000"), (None, "–")],
)
def test_numbers_are_formatted(value: object, shown: str) -> None:
    assert number(value) == shown  # type: ignore[arg-type]


@pytest.mark.parametrize(("share", "shown"), [(0, "0 %"), (0.5, "50.00 %"), (1e-7, "1e-05 %"), (None, "–")])
def test_percentages_are_formatted(share: float | None, shown: str) -> None:
    assert percent(share) == shown
