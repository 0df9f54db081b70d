"""Diagnoses as text for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from evenlag.compare.causes import Cause
from evenlag.compare.diagnosis import Diagnosis
from evenlag.figures import messages, quantity

WITHOUT_BOUND = (Cause.NO_MEMBERS, Cause.UNSETTLED)


def diagnosis_report(found: Diagnosis) -> RenderableType:
    """Return the verdict in bold, the remedies in order of effort, the bound, and the assumptions."""
    problem = found.case.problem
    lag = quantity(problem.whole_lag, "message")
    size = f"{quantity(len(problem.lags), 'partition')}, {quantity(len(problem.members), 'member')}, {lag} of lag"
    told = found.facts.told()
    parts: list[RenderableType] = [
        Text(found.verdict, style="bold"),
        Text.assemble((found.group, "bold"), f"  {size}{f'; {told}' if told else ''}"),
    ]
    for place, remedy in enumerate(found.remedies, 1):
        of = f"{place}. " if len(found.remedies) > 1 else ""
        parts.append(Padding(Text(of + remedy.sentence), (0, 0, 0, 2), expand=False))
    if found.cause not in WITHOUT_BOUND and found.bound:
        rule = f"balance {found.case.options.balance}"
        least = f"spread and price of moves come to at least {messages(found.bound)}"
        parts.append(Text(f"Proven for these members and partitions: under the count rule ({rule}), {least}."))
    parts += [Text(f"assumed: {sentence}", style="yellow") for sentence in found.assumed]
    return Group(*parts)
