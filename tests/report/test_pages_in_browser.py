"""Pages in a real browser, where there is one: bars, slider, search, sort, drill-down, and a silent console."""

import html
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evenlag import report
from evenlag.figures import number
from tests.support.pages import HOSTILE_GROUP, HOSTILE_NAME, owned_group, seen_and_document, two_groups

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
MADE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here")


def drawn(page: str, tmp_path: Path, script: str = "", anchor: str = "") -> str:
    """The page's document once its scripts have run, and then one of the test's; the console must stay silent."""
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    words = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    shown = subprocess.run([*words, path.as_uri() + anchor], capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in shown.stderr
    return shown.stdout


@pytest.fixture(scope="module")
def group() -> tuple[str, dict[str, Any]]:
    seen, document = seen_and_document(owned_group(HOSTILE_NAME), capacity=2.0)
    return report.group_page(seen, document, MADE), document


def bar_labels(shown: str) -> dict[str, str]:
    """What a screen reader says of each member's bar."""
    labels = re.findall(r'class="tracks" role="img" aria-label="([^"]*)"', shown)
    return dict(html.unescape(label).split(": ", 1) for label in labels)


def test_members_are_drawn_with_their_plan(group: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    page, document = group
    labels = bar_labels(drawn(page, tmp_path))
    for row in document["members"]:
        planned, today = row["planned"], row["today"]
        said = f"{planned['partitions']} partitions, {number(planned['lag'])} messages"
        assert labels[row["member"]] == f"{said}; today {today['partitions']}, {number(today['lag'])}"


def test_the_slider_draws_the_plan_of_each_point(group: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    page, document = group
    lags, owners = ([row[i] for row in document["partitions"]] for i in (2, 3))
    for place, point in enumerate(document["frontier"]["points"]):
        move = f"const s=document.getElementById('point'); s.value={place}; s.dispatchEvent(new Event('input'));"
        shown = drawn(page, tmp_path, move)
        assert f"{point['moves']} moves: spread {number(point['spread'])}, proven at least" in shown
        holder = dict(enumerate(owners)) | dict(point["changes"])
        for m, row in enumerate(document["members"]):
            load = sum(lag for p, lag in enumerate(lags) if holder[p] == m)
            assert f", {number(load)} messages; today" in f", {bar_labels(shown)[row['member']].split(', ', 1)[1]}"


def group_order(shown: str) -> list[str]:
    body = re.search(r"<tbody>(.*?)</tbody>", shown, re.DOTALL)
    assert body is not None
    return [html.unescape(name) for name in re.findall(r"<a [^>]*>([^<]*)</a>", body[1])]


def test_groups_are_sorted_and_searched(tmp_path: Path) -> None:
    page = report.fleet_page(two_groups(), MADE)
    assert group_order(drawn(page, tmp_path)) == [HOSTILE_GROUP, "even"]
    click = "document.querySelector('th[data-by=makespan_saved] button').click();"
    assert group_order(drawn(page, tmp_path, click)) == ["even", HOSTILE_GROUP]
    search = "const s=document.getElementById('search'); s.value='HOT'; s.dispatchEvent(new Event('input'));"
    assert group_order(drawn(page, tmp_path, search)) == [HOSTILE_GROUP]


def test_a_link_to_a_group_opens_it(tmp_path: Path) -> None:
    page = report.fleet_page(two_groups(), MADE)
    closed, opened = drawn(page, tmp_path), drawn(page, tmp_path, anchor="#group=even")
    assert re.search(r'<section id="detail"[^>]* hidden', closed)
    assert not re.search(r'<section id="detail"[^>]* hidden', opened)
    assert bar_labels(opened) == {"a": "7 messages planned, 3 today"}
