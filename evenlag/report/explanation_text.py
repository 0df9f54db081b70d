"""Explanations as text for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from evenlag.model.explanation.reasons import Explanation
from evenlag.report.text import facts_lines

ON_MOVES = {"step", "more steps", "assigned"}  # kinds of claims on single moves, which read best as a list


def explanation_report(explanation: Explanation) -> RenderableType:
    """Return the sentences of an explanation, one below the other, the first in bold."""
    of = f"  {explanation.name}" if explanation.name else ""
    parts: list[RenderableType] = [Text.assemble((explanation.group, "bold"), of)]
    if explanation.objection is not None:
        parts.append(Text(explanation.objection, style="bold yellow"))
    parts += facts_lines(explanation.facts)
    for place, (claim, sentence) in enumerate(zip(explanation.claims, explanation.sentences, strict=True)):
        text = Text(sentence, style="" if place else "bold")
        parts.append(Padding(text, (0, 0, 0, 2), expand=False) if claim.kind in ON_MOVES else text)
    return Group(*parts)
