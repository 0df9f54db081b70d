"""Pages of the docs: their length, their place in the navigation, and the index of decisions."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MOST_LINES = 250
NAVIGATION = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1].split("\n\n")[0]


def pages() -> list[Path]:
    """Return all pages but the tables: reference pages and benchmarks."""
    return [path for path in sorted(DOCS.rglob("*.md")) if path.parent.name not in ("reference", "benchmarks")]


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(DOCS)))
def test_pages_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES


def test_every_page_has_one_place_in_the_navigation() -> None:
    linked = re.findall(r": (\S+\.md)$", NAVIGATION, flags=re.MULTILINE)
    assert len(linked) == len(set(linked))
    assert {str(path.relative_to(DOCS)) for path in pages()} <= set(linked)


def test_kinds_of_pages_are_told_apart() -> None:
    kinds = re.findall(r"^  - ([^:]+):", NAVIGATION, flags=re.MULTILINE)
    assert kinds == ["Home", "Tutorial", "How-to", "Reference", "Explanation", "Contributing"]


def test_the_index_of_decisions_lists_each_decision() -> None:
    listed = re.split(r"^## \[.*\]\((.*)\)$", (DOCS / "decisions" / "index.md").read_text(), flags=re.MULTILINE)[1:]
    by_page = dict(zip(listed[::2], listed[1::2], strict=True))
    for path in sorted((DOCS / "decisions").glob("*.md")):
        if path.name != "index.md":
            headings = re.findall(r"^## (.*)$", path.read_text(), flags=re.MULTILINE)
            assert re.findall(r"^\* (.*)$", by_page[path.name], flags=re.MULTILINE) == headings


@pytest.mark.parametrize(
    "path",
    [path for path in pages() if path.parent.name == "decisions" and path.name != "index.md"],
    ids=lambda path: path.stem,
)
def test_each_decision_has_its_day(path: Path) -> None:
    sections = re.split(r"^## .*\n", path.read_text(), flags=re.MULTILINE)[1:]
    assert [section for section in sections if not re.match(r"\n\*20\d\d-\d\d-\d\d\*\n\n\S", section)] == []
