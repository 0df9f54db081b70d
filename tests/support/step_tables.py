"""The tables of steps in docs/solver.md: their first three columns follow from the portfolios.

`python -m tests.support.step_tables` writes them anew. A new step gets what its stage's docstrings say.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from math import inf

from evenlag.search.portfolio import AUTO, SCENARIOS, TERMS
from evenlag.search.stage import Step
from tests.support.doc_tables import DOCS

PAGE = DOCS / "solver.md"
TABLES = {"## The steps": AUTO, "## With scenarios": SCENARIOS, "## With costs of pairs or a ceiling": TERMS}


def renewed(text: str) -> str:
    """Return the text of the page with its tables written anew; rows keep their last two cells."""
    for heading, steps in TABLES.items():
        pattern = re.compile(rf"({re.escape(heading)}\n.*?\n\|(?:---\|)+\n)((?:\|[^\n]*\n)+)", re.DOTALL)
        found = pattern.search(text)
        assert found is not None, heading
        text = text.replace(found[2], _rows(steps, found[2]), 1)
    return text


def _rows(steps: Iterable[Step], before: str) -> str:
    said: defaultdict[str, list[str]] = defaultdict(list)
    for row in before.splitlines():
        name, _, _, *cells = row.strip("| ").split(" | ")
        said[name].append(" | ".join(cells))
    lines = []
    for step in steps:
        stage = type(step.stage)
        turn = "all" if step.share == inf else f"{step.share:g}"
        module = stage.__module__.removeprefix("evenlag.").replace(".", "/")
        own = f"{_sentence(stage.applies.__doc__).removeprefix('Return True if ')} | {_sentence(stage.__doc__)}"
        prose = said[step.stage.name].pop(0) if said[step.stage.name] else own
        lines.append(f"| {step.stage.name} | {turn} | `{module}.py` | {prose} |\n")
    return "".join(lines)


def _sentence(docstring: str | None) -> str:
    return (docstring or "").split("\n", 1)[0].rstrip(".")


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
