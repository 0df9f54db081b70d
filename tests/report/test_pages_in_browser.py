"""Pages in a real browser, where there is one: slider, search, sort and drill-down by keyboard; a silent console."""

import html
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evenlag import report
from evenlag.figures import messages, number, quantity
from evenlag.model.problem import Problem
from tests.support.browser import PATH, Page, browser
from tests.support.pages import (
    HOSTILE_GROUP,
    HOSTILE_NAME,
    audit_row,
    group_row,
    load_row,
    owned_group,
    seen_and_document,
    total_row,
    two_groups,
)

MADE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
pytestmark = pytest.mark.skipif(PATH is None, reason="no Chromium here")
FOCUS = """(() => {const e = document.activeElement, s = getComputedStyle(e);
return {tag: e.tagName, id: e.id, text: e.textContent.trim().slice(0, 60), outline: s.outlineStyle}})()"""
ORDER = "[...document.querySelectorAll('#table tbody th')].map((each) => each.textContent)"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Page]:
    with browser() as page:
        yield page


@pytest.fixture
def page(chromium: Page) -> Iterator[Page]:
    """A page whose console must stay silent."""
    chromium.messages.clear()
    yield chromium.look(1280)
    assert chromium.messages == []


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    seen, document = seen_and_document(owned_group(HOSTILE_NAME), capacity=2.0)
    path = tmp_path_factory.mktemp("group") / "page.html"
    path.write_text(report.group_page(seen, document, MADE), encoding="utf-8")
    return path, document


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet") / "page.html"
    path.write_text(report.fleet_page(two_groups(), MADE), encoding="utf-8")
    return path


def bar_labels(page: Page) -> dict[str, str]:
    """What a screen reader says of each member's bar."""
    labels = page.value("[...document.querySelectorAll('.tracks')].map((each) => each.getAttribute('aria-label'))")
    return dict(label.split(": ", 1) for label in labels)


def focused(page: Page) -> dict[str, str]:
    return dict(page.value(FOCUS))


def tab_to(page: Page, wanted: str, most: int = 60) -> dict[str, str]:
    """Press Tab until something with this id or text has the focus, as a person does who sees where it is."""
    for _ in range(most):
        found = focused(page.press("Tab"))
        assert found["tag"] != "BODY", f"the keyboard does not reach {wanted!r}"
        assert found["outline"] != "none", f"nothing shows the focus on {found}"
        if wanted in (found["id"], found["text"]):
            return found
    raise AssertionError(f"{wanted!r} is not among the first {most} that Tab reaches")


@pytest.mark.slow
def test_members_are_drawn_with_their_plan(group: tuple[Path, dict[str, Any]], page: Page) -> None:
    path, document = group
    labels = bar_labels(page.open(path))
    for row in document["members"]:
        planned, today = row["planned"], row["today"]
        said = f"{quantity(planned['partitions'], 'partition')}, {messages(planned['lag'])}"
        assert labels[row["member"]] == f"{said}; today {today['partitions']}, {number(today['lag'])}"


def test_figures_are_written_as_by_python(group: tuple[Path, dict[str, Any]], page: Page) -> None:
    values = [0, 1, 0.5, 12.5, 0.125, 999.99, 999.996, 1000.5, 1001.5, 2**53, None]
    assert page.open(group[0]).value(f"{json.dumps(values)}.map(figure)") == [*map(number, values)]
    counts = [0, 1, 2, 1000]
    texts = page.value(f"{counts}.map((count) => quantity(count, 'move'))")
    assert texts == [quantity(count, "move") for count in counts]


def test_arrow_keys_move_the_slider_and_draw_the_plan_of_each_point(
    group: tuple[Path, dict[str, Any]], page: Page
) -> None:
    path, document = group
    lags, owners = ([row[i] for row in document["partitions"]] for i in (2, 3))
    points = document["frontier"]["points"]
    assert len(points) > 2
    tab_to(page.open(path), "point")
    page.press("Home")
    for place, point in enumerate(points):
        if place:
            page.press("ArrowRight")
        said = page.value("document.getElementById('chosen').textContent")
        start = (
            "the plan" if place == 0 and said.startswith("the plan") else f"{quantity(point['moves'], 'move')}: spread"
        )
        assert said.startswith(start)
        holder = dict(enumerate(owners)) | dict(point["changes"])
        labels = bar_labels(page)
        for m, row in enumerate(document["members"]):
            load = sum(lag for p, lag in enumerate(lags) if holder[p] == m)
            assert f", {messages(load)}; today" in f", {labels[row['member']].split(', ', 1)[1]}"
        assert page.value("document.getElementById('point').getAttribute('aria-valuetext')") == said
    page.press("ArrowLeft")
    assert f"{points[-2]['moves']} move" in page.value("document.getElementById('chosen').textContent")


def test_space_on_the_button_shows_the_plan_again(group: tuple[Path, dict[str, Any]], page: Page) -> None:
    path, document = group
    tab_to(page.open(path), "point")
    page.press("Home")
    assert tab_to(page, "reset")["tag"] == "BUTTON"
    page.press(" ")
    moves, spread = document["result"]["moves"], number(document["result"]["spread"])
    assert (
        page.value("document.getElementById('chosen').textContent")
        == f"the plan: {quantity(moves, 'move')}, spread {spread}"
    )
    planned = {row["member"]: row["planned"]["lag"] for row in document["members"]}
    assert all(f", {number(planned[name])} messages" in label for name, label in bar_labels(page).items())


def test_enter_opens_a_table_that_is_folded(group: tuple[Path, dict[str, Any]], page: Page) -> None:
    path, _ = group
    assert tab_to(page.open(path), "As a table")["tag"] == "SUMMARY"
    shown = "document.activeElement.parentElement.open"
    assert page.value(shown) is False
    assert page.press("Enter").value(shown) is True


@pytest.mark.slow
def test_the_members_beyond_the_first_are_shown_by_keyboard(tmp_path: Path, page: Page) -> None:
    lags = list(range(1, 51))
    members = [f"m{number}" for number in range(50)]
    problem = Problem.from_lags({"t": lags}, members, owned={m: [("t", p)] for p, m in enumerate(members)})
    seen, document = seen_and_document(problem)
    path = tmp_path / "page.html"
    path.write_text(report.group_page(seen, document, MADE), encoding="utf-8")
    page.open(path)
    assert len(bar_labels(page)) == 40
    assert len(bar_labels(page.look(390).open(path))) == 15
    tab_to(page, "Show 35 other members")
    page.press("Enter")
    assert len(bar_labels(page)) == 50
    assert focused(page)["id"] == "bars"


def test_groups_are_sorted_by_keyboard(fleet: Path, page: Page) -> None:
    page.open(fleet)
    assert page.value(ORDER) == [HOSTILE_GROUP, "even"]
    assert tab_to(page, "falls by")["tag"] == "BUTTON"
    page.press("Enter")
    assert page.value(ORDER) == ["even", HOSTILE_GROUP]
    assert page.value("document.activeElement.parentElement.getAttribute('aria-sort')") == "ascending"
    page.press(" ")
    assert page.value(ORDER) == [HOSTILE_GROUP, "even"]
    assert page.value("document.activeElement.parentElement.getAttribute('aria-sort')") == "descending"
    assert focused(page.press("Tab", shift=True))["text"] == "group"


def test_groups_are_searched_by_keyboard(fleet: Path, page: Page) -> None:
    assert tab_to(page.open(fleet), "search")["tag"] == "INPUT"
    page.write("HOT")
    assert page.value(ORDER) == [HOSTILE_GROUP]
    assert page.value("document.getElementById('found').textContent") == "1 of 2 groups"


def test_enter_on_a_group_opens_it_and_takes_the_focus_there(fleet: Path, page: Page) -> None:
    page.open(fleet)
    assert page.value("document.getElementById('detail').hidden")
    tab_to(page, "even")
    page.press("Enter")
    page.value("new Promise((done) => setTimeout(done, 50))")
    assert not page.value("document.getElementById('detail').hidden")
    assert focused(page)["id"] == "one"
    assert bar_labels(page) == {"a": "7 messages planned, 3 today"}
    assert page.value("document.getElementById('own').textContent").endswith("--group even --out group.html")
    tab_to(page, "All groups")


def test_a_link_to_a_group_opens_it(fleet: Path, page: Page) -> None:
    page.open(fleet, "#group=even")
    assert bar_labels(page) == {"a": "7 messages planned, 3 today"}
    assert page.open(fleet, "#group=%").value("document.getElementById('detail').hidden")


def test_a_page_is_as_wide_as_a_phone_and_its_columns_are_not_lost(
    group: tuple[Path, dict[str, Any]], fleet: Path, page: Page
) -> None:
    for path in (group[0], fleet):
        page.look(390, dark=True).open(path)
        assert page.value("document.documentElement.scrollWidth") == 390
        hidden = page.value("""[...document.querySelectorAll('.wide')].filter((each) =>
            each.scrollWidth > each.clientWidth && each.tabIndex !== 0).length""")
        assert hidden == 0  # a table that is wider can be scrolled by keyboard


@pytest.mark.slow
def test_all_groups_of_a_fleet_are_reached(tmp_path: Path, page: Page) -> None:
    names = [f"g{number:03}" for number in range(250)]
    rows = [audit_row(name, strategy, 5) for name in names for strategy in ("optimal", "current")]
    document = report.fleet_document(
        map(group_row, names), rows, [load_row(name, "m", 1, 1) for name in names],
        [total_row(name, 1, 1, 0) for name in names], "out",
    )  # fmt: skip
    path = tmp_path / "page.html"
    path.write_text(report.fleet_page(document, MADE), encoding="utf-8")
    page.open(path)
    for shown in (100, 200, 250):
        assert len(page.value(ORDER)) == shown
        if shown < 250:
            page.value("document.querySelector('#more button').focus()")
            page.press("Enter")
    assert page.value("document.getElementById('more').hidden")
    assert [html.unescape(name) for name in page.value(ORDER)] == names
