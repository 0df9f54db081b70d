"""Comparisons that count racks, sizes and limits: audits, frontiers, changes and sizes of a group."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import highspy
import pytest

import evenlag
from evenlag.compare.traffic_price import TrafficPrice
from evenlag.heuristics import HEURISTICS
from evenlag.model.plan import Plan, current_plan
from tests.support.command import evenlag as run
from tests.support.exact import every_plan
from tests.support.racked import ZONES, crossings, moved_size, shop
from tests.support.terms import pair_tables

# ---- audits ----------------------------------------------------------------------------------------------------------


def spread(problem: evenlag.Problem, assignment: Any) -> int:
    lag = dict(zip(problem.partitions, problem.lags.tolist(), strict=True))
    loads = [sum(lag[name] for name in names) for names in assignment.values()]
    return max(loads) - min(loads)


@pytest.mark.parametrize("fetch_from", ["followers", "leader"])
def test_every_strategy_has_its_crossings_and_moved_size(fetch_from: Any) -> None:
    problem = shop(2, fetch_from=fetch_from)
    audited = evenlag.audit(problem)
    seen = 0
    for row in audited.rows:
        if row.strategy == "optimal":
            assignment = audited.optima[row.balance].assignment
        elif row.strategy == "current":
            assignment = current_plan(problem).assignment
        else:
            assignment = HEURISTICS[row.strategy](problem).assignment
        assert row.crossings == crossings(problem, assignment)
        assert row.moved_size == moved_size(problem, assignment)
        seen += 1
    assert seen > len(HEURISTICS)


@pytest.mark.parametrize(
    "terms",
    [
        {"rack_price": 9}, {"rack_price": "1%"}, {"max_crossings": 15}, {"max_load": 1900},
        {"prices": {"night": 40}}, {"first": ["crossings"]}, {"first": ["night", "crossings"], "rack_price": 5},
        {"budgets": {"night": 10, "crossings": 40}},
    ],
)  # fmt: skip
def test_optima_and_strategies_are_compared_under_the_same_terms(terms: dict[str, Any]) -> None:
    fetch_from = "leader" if terms.get("rack_price") == "1%" else None
    problem = shop(2, costs={"night": {"c1": 3, ("t", 0, "c2"): 1}}, fetch_from=fetch_from)
    audited = evenlag.audit(problem, time_limit=8, **terms)
    price = problem.mean_load / 100 if terms.get("rack_price") == "1%" else terms.get("rack_price", 0)
    price = 0 if "crossings" in terms.get("first", ()) else -(-price // 1)
    for row in audited.rows:
        optimum = audited.optima[row.balance]
        assert optimum.status == "OPTIMAL"
        if row.strategy == "optimal":
            expected = evenlag.solve(problem, balance=row.balance, stickiness=0, time_limit=8, **terms)
            assert (row.objective, row.crossings) == (expected.objective, expected.crossings)
            continue
        today = row.strategy == "current"
        plan = current_plan(problem) if today else HEURISTICS[row.strategy](problem)
        night = sum(3 * (m == "c1") + (m == "c2" and name == ("t", 0)) for m, names in plan.assignment.items()
                    for name in names)  # fmt: skip
        crossed = crossings(problem, plan.assignment)
        value = spread(problem, plan.assignment) + price * crossed + night * terms.get("prices", {}).get("night", 0)
        assert row.objective == value
        spent = {"night": night, "crossings": crossed}
        broken = spent["crossings"] > terms.get("max_crossings", 10**9) or plan.makespan > terms.get("max_load", 10**9)
        broken |= any(spent[name] > most for name, most in terms.get("budgets", {}).items())
        best = {"night": optimum.costs["night"], "crossings": optimum.costs["crossings"]}
        broken |= any(spent[name] != best[name] for name in terms.get("first", ()))
        if broken:
            assert (row.excess, row.bound_excess) == (None, None)
            assert row.violation is not None
        else:
            assert row.excess == value - optimum.objective
            assert row.excess >= 0


@pytest.mark.parametrize("term", [{"first": ["nothing"]}, {"prices": {"nothing": 1}}, {"budgets": {"nothing": 1}}])
@pytest.mark.parametrize("members", [[], ["a", "b"]])
def test_an_unknown_cost_is_no_row_of_an_audit(term: dict[str, Any], members: list[str]) -> None:
    with pytest.raises(evenlag.errors.InvalidProblemError, match="must be one of moves, crossings, moved_size"):
        evenlag.audit(evenlag.Problem.from_lags({"t": [1, 2]}, members), **term)


def test_an_audit_ignores_terms_of_moves() -> None:
    problem = shop(2)
    free = evenlag.audit(problem)
    asked = evenlag.audit(problem, first=["moves"], prices={"moved_size": 100}, budgets={"moved_size": 0})
    assert [row.objective for row in asked.rows] == [row.objective for row in free.rows]


def test_strategies_that_split_a_unit_break_their_promise() -> None:
    lags = {"a": [9, 1, 5, 3], "b": [2, 8, 4, 4]}
    problem = evenlag.Problem.from_lags(lags, {"x": ["a", "b"], "y": ["a", "b"]}, together=[("a", "b")])
    audited = evenlag.audit(problem)
    rows = {row.strategy: row for row in audited.rows if row.strategy != "optimal"}
    assert rows["range"].violation is None  # it counts topic by topic
    assert rows["range"].excess == spread(problem, HEURISTICS["range"](problem).assignment) - audited.optima[
        "topic"].spread  # fmt: skip
    parted = [row for row in rows.values() if "go together" in (row.violation or "")]
    assert parted
    assert all(row.excess is None for row in parted)
    assert {result.status for result in audited.optima.values()} == {"OPTIMAL"}


@pytest.mark.slow
def test_the_command_audits_under_terms(tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    problem = shop(2)
    path.write_text(json.dumps(problem.to_dict()))
    words = ("--rack-price", "9", "--traffic-price", "1/GB", "--deterministic")
    done = run("audit", path, *words, "--json")
    (document,) = json.loads(done.stdout)
    expected = evenlag.audit(problem, rack_price=9, deterministic=True)
    assert [row["objective"] for row in document["rows"]] == [row.objective for row in expected.rows]
    for row in document["rows"]:
        assert row["traffic_month"] == pytest.approx(row["crossings"] * 730 * 3600 / 10**9)
    output = run("audit", path, *words).stdout
    header = next(line for line in output.splitlines() if "strategy" in line)
    assert all(word in header for word in ("objective", "size", "crossings", "month"))
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps(shop(2, racks=None, move_sizes=None).to_dict()))
    output = run("audit", plain).stdout
    assert "crossings" not in output
    assert "objective" not in output


# ---- frontiers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("against", "more"),
    [
        ("crossings", {}), ("crossings", {"fetch_from": "leader"}), ("crossings", {"balance": "none"}),
        ("moved_size", {}), ("night", {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("seed", [1, 4])
def test_points_are_the_best_of_all_plans_with_their_budgets(seed: int, against: str, more: dict[str, Any]) -> None:
    rng = random.Random(seed)
    racks = [rng.sample(ZONES, 1) for _ in range(7)]
    night = {"night": {("t", p, "c1"): 2 * p + 1 for p in range(7)} | {("t", p, "c2"): 9 - p for p in range(7)}}
    data = {name: more.pop(name) for name in [*more] if name == "fetch_from"}
    problem = shop(seed, partitions=7, partition_racks={"t": racks}, costs=night, **data)
    curve = evenlag.frontier(problem, against=against, time_limit=20, **more)
    costs = pair_tables(problem)[against]
    plans = every_plan(problem, more.get("balance", "both"))
    spent = [sum(costs[p][m] for p, m in enumerate(row)) for row in plans.tolist()]
    spreads = [spread(problem, Plan(problem, row).assignment) for row in plans]
    assert curve.points[0].cost == min(spent)
    assert curve.points[-1].spread == min(spreads)
    assert len(curve.points) > 1
    for point in curve.points:
        best = min(value for cost, value in zip(spent, spreads, strict=True) if cost <= point.cost)
        assert (point.bound, point.spread) == (best, best)
        assert point.cost == sum(costs[p][m] for p, m in enumerate(point.plan.member_of.tolist()))
        assert point.moves == point.plan.moves
    assert [point.cost for point in curve.points] == sorted({point.cost for point in curve.points})
    assert curve.against == against


def test_a_frontier_with_units_moves_whole_units() -> None:
    lags = {"a": [9, 1, 5, 3], "b": [2, 8, 4, 4]}
    owned = {"x": [(topic, p) for topic in "ab" for p in (0, 1)], "y": [(topic, p) for topic in "ab" for p in (2, 3)]}
    problem = evenlag.Problem.from_lags(lags, {"x": ["a", "b"], "y": ["a", "b"]}, owned=owned, together=[("a", "b")])
    curve = evenlag.frontier(problem)
    assert [(point.cost, point.spread, point.bound) for point in curve.points] == [(0, 4, 4), (4, 0, 0)]


@pytest.mark.parametrize(
    ("against", "message"),
    [
        ("crossing", "did you mean 'crossings'"), ("crossings", "racks of members and of partitions are needed"),
        ("moved_size", "the problem needs move_sizes"), ("spread", "against must be one of"),
    ],
)  # fmt: skip
def test_a_frontier_refuses_other_axes(against: str, message: str) -> None:
    with pytest.raises(evenlag.errors.InvalidProblemError, match=message):
        evenlag.frontier(shop(racks=None, move_sizes=None), against=against)


@pytest.mark.slow
def test_the_command_draws_a_frontier_against_crossings(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path, picture = tmp_path / "group.json", tmp_path / "curve.png"
    problem = shop(2)
    path.write_text(json.dumps(problem.to_dict()))
    words = ("--against", "crossings", "--traffic-price", "1/MB", "--deterministic")
    document = json.loads(run("frontier", path, *words, "--json").stdout)
    curve = evenlag.frontier(problem, against="crossings", deterministic=True)
    assert document["against"] == "crossings"
    for row, point in zip(document["points"], curve.points, strict=True):
        assignment = {member: [tuple(name) for name in names] for member, names in row["assignment"].items()}
        assert row["cost"] == row["costs"]["crossings"] == crossings(problem, assignment) == point.cost
        assert row["costs"]["moved_size"] == moved_size(problem, assignment)
        assert row["traffic_month"] == pytest.approx(point.cost * 730 * 3600 / 10**6)
    output = run("frontier", path, *words, "--plot", picture).stdout
    assert f"written: {picture}" in output
    assert "least spread for a budget of crossings" in output
    assert "per month" in output
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert json.loads(run("frontier", path, "--json", "--deterministic").stdout)["against"] == "moves"


def test_pictures_of_frontiers_label_their_axes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figure is looked at before it is written: its axes, and where nothing can be."""
    pytest.importorskip("matplotlib")
    from evenlag.report import frontier_picture

    figures: list[Any] = []
    monkeypatch.setattr(frontier_picture, "save", lambda figure, _path: figures.append(figure))
    problem = shop(2)
    curve = evenlag.frontier(problem, against="crossings")
    frontier_picture.draw_frontier(curve, tmp_path / "x.png", TrafficPrice.of("1/MB"))
    figures[0].draw_without_rendering()
    (axes,) = figures[0].axes
    assert axes.get_xlabel() == "budget of traffic across racks"
    assert [child.get_xlabel() for child in axes.child_axes] == ["per month at 1/MB"]
    assert axes.child_axes[0].get_xlim()[1] == pytest.approx(axes.get_xlim()[1] * 730 * 3600 / 10**6)
    drawn = axes.lines[0].get_xydata().tolist()
    assert drawn[: len(curve.points)] == [[point.cost, point.spread] for point in curve.points]
    frontier_picture.draw_frontier(evenlag.frontier(problem), tmp_path / "x.png", TrafficPrice.of("1/MB"))
    assert figures[1].axes[0].get_xlabel() == "budget of moves"
    assert not figures[1].axes[0].child_axes
    frontier_picture.draw_frontier(evenlag.frontier(evenlag.Problem.from_lags({"t": [5]}, [])), tmp_path / "x.png")
    assert figures[2].axes[0].get_xlabel() == "budget of moves"


# ---- what if ---------------------------------------------------------------------------------------------------------


def test_a_change_is_compared_under_terms(tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    problem = shop(2)
    path.write_text(json.dumps(problem.to_dict()))
    words = ("--change-members", "-1", "--rack-price", "9", "--traffic-price", "1/MB", "--deterministic")
    document = json.loads(run("whatif", path, *words, "--json").stdout)
    found = evenlag.whatif(problem, evenlag.Change(members=-1), rack_price=9, deterministic=True)
    held = {"today": current_plan(problem).assignment}
    for when, result in (("before", found.before), ("after", found.after)):
        held[when] = result.assignment
        assert document[when]["objective"] == result.objective
        assert document[when]["costs"]["moved_size"] == moved_size(result.plan.problem, result.assignment)
    crossed = {when: crossings(problem, assignment) for when, assignment in held.items()}
    assert {when: document[when]["costs"]["crossings"] for when in crossed} == crossed
    month = 730 * 3600 / 10**6
    assert document["traffic_cost"] == {"price": "1/MB"} | {
        f"{when}_month": pytest.approx(traffic * month) for when, traffic in crossed.items()
    }
    output = run("whatif", path, *words).stdout.splitlines()
    (line,) = (line.split() for line in output if line.split()[:1] == ["crossings"])
    assert line[1:] == [str(crossed[when]) for when in ("today", "before", "after")]
    assert any(line.split()[:3] == ["traffic", "per", "month"] for line in output)


# ---- export ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "terms"),
    [
        (("--rack-price", "9", "--stickiness", "1"), {"rack_price": 9, "stickiness": 1}),
        (("--max-crossings", "12", "--max-moved", "90", "--stickiness", "0"),
         {"max_crossings": 12, "max_moved": 90, "stickiness": 0}),
        (("--max-load", "1900", "--price", "night=40", "--fetch-from", "leader"),
         {"max_load": 1900, "prices": {"night": 40}}),
        (("--together", "t,u", "--rack-price", "3"), {"rack_price": 3}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["lp", "mps"])
def test_an_exported_model_includes_all_terms(
    tmp_path: Path, words: tuple[str, ...], terms: dict[str, Any], form: str
) -> None:
    problem = shop(2, costs={"night": {"c1": 3}})
    if "--together" in words:
        lags, members = {"t": [5, 9, 1, 0], "u": [7, 2, 2, 8]}, {"x": ["t", "u"], "y": ["t", "u"]}
        racks = {topic: [["a"], ["b"], ["a"], ["a"]] for topic in lags}
        problem = evenlag.Problem.from_lags(lags, members, racks={"x": "a", "y": "b"}, partition_racks=racks)
    path, model = tmp_path / "group.json", tmp_path / f"model.{form}"
    path.write_text(json.dumps(problem.to_dict()))
    assert run("export", path, "--format", form, "--out", model, *words).returncode == 0
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(model))
    solver.run()
    data: Any = {"together": [("t", "u")]} if "--together" in words else {}
    data |= {"fetch_from": "leader"} if "leader" in words else {}
    expected = evenlag.solve(problem.with_pair_data(**data), **terms)
    assert expected.status == "OPTIMAL"
    assert solver.getInfo().objective_function_value == pytest.approx(float(expected.objective))


def test_an_order_of_criteria_cannot_be_exported(tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    path.write_text(json.dumps(shop().to_dict()))
    done = run("export", path, "--format", "lp", "--first", "crossings,moves")
    assert done.returncode == 2
    assert "each criterion is a program of its own" in done.stderr
