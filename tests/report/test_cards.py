"""HTML in notebooks: well-formed and without scripts for any names, and small for the largest groups."""

from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenlag
from evenlag.compare.history import Snapshot
from evenlag.markup import Bars, table
from tests.support.problems import alike, cases

TAGS = {"style", "div", "p", "span", "b", "table", "thead", "tbody", "tr", "th", "td", "i", "ul", "li"}
VOID = {"br", "hr", "img", "meta", "input"}
OWNED = {"a": [("t", 0), ("t", 1)], "b": [("t", 2)]}
PROBLEM = alike([100_000, 60_000, 50_000], "ab", owned=OWNED, group="billing")
NAMES = st.text(st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("<>&\"';/"), min_size=1, max_size=12)


class Parsed(HTMLParser):
    """The elements of a fragment, each closed in its turn, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def cards(problem: evenlag.Problem) -> list[Any]:
    result = evenlag.solve(problem, time_limit=1)
    reasons = [result.explain(), *(result.explain(name) for name in problem.partitions[:1])]
    return [
        *reasons, problem, result, result.plan,
        evenlag.audit(problem, time_limit=1), evenlag.frontier(problem, time_limit=1),
    ]  # fmt: skip


def test_a_result_shows_its_main_figures() -> None:
    result = evenlag.solve(PROBLEM, time_limit=5)
    text = Parsed(result._repr_html_()).text
    for expected in ("billing", "OPTIMAL", "110,000", "10,000", "10,105", "0 %", "t-1", "60,000"):
        assert expected in text
    assert "more" not in text


def test_a_result_shows_its_options() -> None:
    result = evenlag.solve(PROBLEM, objective="makespan", only_if_better="99%", time_limit=5)
    text = Parsed(result._repr_html_()).text
    for expected in ("makespan today", "160,000", "pays no", "the best plan found does not pay"):
        assert expected in text
    later = alike([1, 2, 3], "ab", scenarios=[(1, {"t": [3, 3, 3]}), (1, {"t": [9, 1, 1]})])
    found = Parsed(evenlag.solve(later, across="worst", time_limit=5)._repr_html_()).text
    assert "objective: the worst spread of 2 scenarios, moves paid" in found


def test_a_problem_shows_today_and_its_assumptions() -> None:
    problem = alike({"t": [5, 3], "u": [9]}, "ab", owned={"a": [("t", 0)], "z": [("t", 1)]}, group="g")
    text = Parsed(problem._repr_html_()).text
    for expected in ("17", "1 of 3", "u", "0: 9", "1 owned entries dropped: their member is not in the group"):
        assert expected in text


def test_an_audit_and_a_frontier_show_their_rows() -> None:
    *_, audit, curve = cards(PROBLEM)
    rows = Parsed(audit._repr_html_())
    assert rows.tags.count("tr") == len(audit.distinct) + 1
    assert all(row.strategy in rows.text for row in audit.rows)
    assert Parsed(curve._repr_html_()).tags.count("tr") == len(curve.points) + 1


def test_a_frontier_shows_the_cost_of_its_budgets() -> None:
    sizes = {topic: [7] * sum(name == topic for name, _ in PROBLEM.partitions) for topic in PROBLEM.topics}
    problem = PROBLEM.with_pair_data(move_sizes=sizes)
    curve = evenlag.frontier(problem, against="moved_size", time_limit=1)
    text = Parsed(curve._repr_html_()).text
    assert "least spread for a budget of moved size, balance both" in text
    assert all(f"{point.cost:,}" in text for point in curve.points)
    assert curve.points[-1].cost % 7 == 0 < curve.points[-1].cost
    nobody = evenlag.frontier(evenlag.Problem.from_lags({"t": [3]}, {}))
    assert "<tr" not in nobody._repr_html_()
    assert nobody.to_arrow().select(["spread", "bound"]).to_pylist() == [{"spread": None, "bound": None}]


def test_the_row_of_the_knee_stands_out() -> None:
    owned = {name: [("t", p) for p in range(first, first + 3)] for name, first in (("a", 0), ("b", 3), ("c", 6))}
    curve = evenlag.frontier(alike({"t": [90, 80, 70, 60, 50, 40, 3, 2, 1]}, "abc", owned=owned), time_limit=1)
    assert 0 < curve.knee < len(curve.points) - 1
    rows = curve._repr_html_().split("<tr")[2:]
    assert [n for n, row in enumerate(rows) if row.startswith(" class=best")] == [curve.knee]
    assert [n for n, row in enumerate(rows) if "knee: a larger budget brings little" in row] == [curve.knee]


@pytest.mark.parametrize(
    "problem",
    [
        evenlag.Problem.from_lags({}, {}),
        evenlag.Problem.from_lags({"t": [3]}, {}),
        evenlag.Problem.from_lags({"t": [0, 0]}, ["a"]),
        evenlag.Problem.from_lags({"t": [2**62] * 9}, ["a", "b"], owned={"a": [("t", 0)]}),
        evenlag.Problem.from_lags({"t": [5, 6]}, ["a", "b"], weights={"a": 2.5}, max_partitions={"b": 0}),
        evenlag.Problem.from_lags({"t": [5], "u": [1]}, {"a": ["t"]}, scenarios=[(1, {"t": [6], "u": [0]})]),
    ],
)
def test_edge_cases_are_shown(problem: evenlag.Problem) -> None:
    result = evenlag.solve(problem, time_limit=1)
    for each in (problem, result, result.plan, evenlag.audit(problem, time_limit=1)):
        assert problem.group in Parsed(each._repr_html_()).text


@settings(max_examples=cases(40), deadline=None)
@given(st.lists(NAMES, min_size=4, max_size=4))
def test_names_are_escaped(names: list[str]) -> None:
    group, topic, one, other = names
    problem = evenlag.Problem.from_lags({topic: [1, 2]}, dict.fromkeys((one, other), (topic,)), group=group)
    plan = evenlag.assign(problem, "range")
    for each in (problem, plan):
        parsed = Parsed(each._repr_html_())
        assert set(parsed.tags) <= TAGS
        assert parsed.attributes <= {"class", "style", "scope"}
        assert group in "".join(parsed.texts)
    assert one in "".join(parsed.texts)


def test_markup_in_names_stays_text() -> None:
    name = "<script>alert('x')</script>&amp;\""
    problem = evenlag.Problem.from_lags({name: [3, 2, 1]}, [name, "b"], group=name, owned={"b": [(name, 0), (name, 1)]})
    for each in cards(problem):
        html = each._repr_html_()
        assert "<script" not in html
        assert name in Parsed(html).text


def test_a_large_group_is_shortened_with_a_note() -> None:
    topics = {f"topic-{t}": [7 * t + p for p in range(100)] for t in range(50)}
    names = [f"member-{m:03}" for m in range(400)]
    owned = {names[0]: [(topic, p) for topic in topics for p in range(100)]}
    problem = evenlag.Problem.from_lags(topics, names, owned=owned)
    plan = evenlag.assign(problem, "range")
    assert max(len(problem._repr_html_()), len(plan._repr_html_())) < 12_000
    assert "… 42 topics more" in Parsed(problem._repr_html_()).text
    text = Parsed(plan._repr_html_()).text
    assert "… 388 more, with a lag of " in text
    assert f"… {plan.moves - 6:,} more moves" in text
    assert "style>" in plan._repr_html_()


def test_bars_are_proportional_to_their_values() -> None:
    html = table(["x"], [[Bars(1.0, 0.25)], [Bars(0.5)]])
    assert [part.split("%")[0] for part in html.split("width:")[1:]] == ["25.0", "100.0", "50.0"]


def test_reprs_are_one_short_line() -> None:
    problem = alike([100] * 500, 40, owned={"c000": [("t", p) for p in range(500)]})
    change = evenlag.whatif(problem, evenlag.Change(members=1), time_limit=1)
    needed = evenlag.size(problem, 60, 100, time_limit=1)
    snapshot = Snapshot("2026-01-01T00:00:00Z", 0, problem, [], problem.lags)
    moves = evenlag.rebalance(evenlag.assign(problem, "range"))
    for each in [*cards(problem), change, needed, snapshot, moves, *moves.phases]:
        assert len(repr(each)) < 200, each
        assert "\n" not in repr(each)
        assert "'group'" in repr(each)
