"""Sentences of docstrings, comments and messages: beginnings and phrases that slow a reader down."""

import ast
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.phrases import PHRASES

ROOT = Path(__file__).parents[2]
MODULES = sorted(ROOT.glob("evenlag/**/*.py"))
BEGINNINGS = re.compile(r"(What(?!-if)|Whether|How|Who|Which|Of|So|That|Those|Say|Tell)\b")
SENTENCES = re.compile(r"(?:\n\s+|[.:] )(What(?!-if)|Whether|How|Who|Whose|Which|Why|Of)\b")
TOLD = re.compile(r"\b(un)?told\b")
COUNTED = re.compile(r" (messages|partitions|members|groups|moves|rows|records|snapshots|topics|units|times)\b(?!/s)")


@cache
def texts_of(path: Path) -> tuple[list[str], list[str]]:
    """The docstrings of a module, with texts below constants; and the texts in its code: errors, notes and helps."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    described = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    docstrings = [str(node.value) for node in texts if id(node) in described]
    return docstrings, [" ".join(str(node.value).split()) for node in texts if id(node) not in described]


def comments(path: Path) -> Iterator[str]:
    """Yield the comments of a module, without the marks of tools."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.string.lstrip("# ").split(" # ")[0]


def always_plural(path: Path) -> Iterator[str]:
    """Yield a formatted number with the plural noun after it, in functions that do not ask whether the number is 1."""
    for function in ast.walk(ast.parse(path.read_text())):
        nodes = list(ast.walk(function)) if isinstance(function, ast.FunctionDef) else []
        if any(isinstance(node, ast.Compare) for node in nodes if "1" in ast.unparse(node)):
            continue
        for text in (node for node in nodes if isinstance(node, ast.JoinedStr)):
            for figure, after in pairwise(text.values):
                shown = ast.unparse(figure) if isinstance(figure, ast.FormattedValue) else ""
                noun = COUNTED.match(after.value) if isinstance(after, ast.Constant) else None
                if noun and (shown.startswith("{number(") or shown.endswith(":,}")):
                    yield shown + noun[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_begin_with_a_verb_or_a_noun(path: Path) -> None:
    assert [text for text in texts_of(path)[0] if BEGINNINGS.match(text)] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sentence_of_a_docstring_begins_with_a_question_word(path: Path) -> None:
    assert [text for text in texts_of(path)[0] if SENTENCES.search(text)] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_and_comments_avoid_phrases_that_need_a_second_reading(path: Path) -> None:
    texts = [" ".join(text.split()) for text in (*texts_of(path)[0], *comments(path))]
    assert [found[0] + " … " + text for text in texts if (found := PHRASES.search(text))] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_messages_avoid_phrases_that_need_a_second_reading(path: Path) -> None:
    found = [(text, PHRASES.search(text) or TOLD.search(text)) for text in texts_of(path)[1]]
    assert [text for text, phrase in found if phrase] == []


ROOMS = ("cli", "compare", "model", "report", "watch")


@pytest.mark.parametrize("room", ROOMS)
def test_one_of_a_thing_is_written_in_the_singular(room: str) -> None:
    """`quantity` and `messages` choose the noun."""
    modules = ROOT.glob(f"evenlag/{room}/**/*.py")
    assert [found for path in modules for found in always_plural(path)] == []


def test_old_sentences_are_found() -> None:
    assert BEGINNINGS.match("Whether they do, and all that members may give and take can be listed.")
    assert SENTENCES.search("Return a plan.\n\n    limit : float\n        How long it may take.")
    assert not SENTENCES.search("Return a plan,\n    or the reason why there is none.")
    assert TOLD.search("brokers were not told")
    assert PHRASES.search("What is masked is not there, and a time is no number.")
    assert not PHRASES.search("There is no plan within the budget.".replace("is no plan", "is not a plan"))
