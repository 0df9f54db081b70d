"""Pages of the docs: their length, their place in the navigation, and the index of decisions."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.phrases import PHRASES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MOST_LINES = 250
GENERATED = re.compile(r"<!-- columns: \w+ -->.*?<!-- end -->", re.DOTALL)
NAVIGATION = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1].split("\n\n")[0]


def pages() -> list[Path]:
    """Return all pages but the tables: reference pages and benchmarks."""
    return [path for path in sorted(DOCS.rglob("*.md")) if path.parent.name not in ("reference", "benchmarks")]


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(DOCS)))
def test_pages_are_short(path: Path) -> None:
    if path == DOCS / "decisions" / "index.md":
        pytest.skip("it is a list of titles")
    assert len(GENERATED.sub("", path.read_text()).splitlines()) <= MOST_LINES


def sentences(page: str) -> Iterator[str]:
    """Yield the sentences of a page's prose: code, tables and headings have their own form."""
    prose = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\n|\n(?=\s*(?:[*|#>-]|\d+\.) ?)", prose):
        if not block.lstrip().startswith(("|", "#", "<")):
            text = " ".join(re.sub(r"^\s*([*>-]|\d+\.) ", "", block).split())
            yield from filter(None, re.split(r"(?<=[.:!?]) ", text))


@pytest.mark.parametrize("path", [*pages(), ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda path: path.stem)
def test_sentences_of_pages_begin_with_their_subject(path: Path) -> None:
    begun = re.compile(r"(What(?! if)|Whether|Which|Who|Whoever|Whose|Of)\b")
    assert [each for each in sentences(path.read_text()) if begun.match(each) and "?" not in each] == []


@pytest.mark.parametrize("path", [*pages(), ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda path: path.stem)
def test_pages_avoid_phrases_that_are_read_twice(path: Path) -> None:
    assert [each for each in sentences(path.read_text()) if PHRASES.search(each)] == []


def test_sentences_are_found() -> None:
    page = "# Title\n\nOne. Two:\n\n* Of three.\n  Four?\n\n```sh\nWhat\n```\n\n| Whether |\n"
    assert list(sentences(page)) == ["One.", "Two:", "Of three.", "Four?"]


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
