"""Pictures of small and of empty groups: true labels, inside the axes."""

import pytest

import evenlag
from evenlag.model.check import plan_violation
from evenlag.model.plan import current_plan
from evenlag.model.problem import Problem
from evenlag.report.frontier_picture import frontier_figure
from evenlag.report.size_picture import size_figure


def labels(axis: object) -> list[tuple[float, str]]:
    """The ticks of an axis with their labels."""
    places = axis.get_majorticklocs()  # type: ignore[attr-defined]
    return list(zip(places, axis.get_major_formatter().format_ticks(places), strict=True))  # type: ignore[attr-defined]


@pytest.mark.parametrize("lags", [[0, 0], [1, 0], [3, 1], [5_000_000, 7]])
def test_ticks_have_the_value_at_their_place(lags: list[int]) -> None:
    problem = Problem.from_lags({"t": lags}, ["a", "b"], owned={"a": [("t", 0)], "b": [("t", 1)]})
    (axes,) = frontier_figure(evenlag.frontier(problem)).axes
    for place, label in labels(axes.yaxis):
        assert float(label.replace(",", "")) == pytest.approx(place)


def test_a_group_without_members_has_a_frontier_without_a_plan() -> None:
    problem = Problem.from_lags({"t": [3, 4]}, [])
    assert plan_violation(current_plan(problem)) is None
    assert frontier_figure(evenlag.frontier(problem)).axes


def test_the_note_on_the_hottest_partition_stays_inside() -> None:
    problem = Problem.from_lags({"t": [7, 0]}, ["a"])
    found = evenlag.size(problem, 600, capacity=5)
    assert found.binding_from == found.sizes[0].members
    figure = size_figure(found)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    (note,) = (text for text in axes.texts if "hottest" in text.get_text())
    assert note.get_window_extent().x0 >= axes.get_window_extent().x0
