"""A group's way to KIP-848 as text for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from evenlag.compare.migration import EVENLAG, TODAY, Forecast, Migration
from evenlag.compare.migration_remarks import Online, Remark, Severity
from evenlag.figures import number, quantity
from evenlag.model.facts import STREAMS
from evenlag.model.plan import Number
from evenlag.report.sheet import Sheet

_STYLES = {Severity.STOPS: "bold red", Severity.CHANGES: "yellow", Severity.CHECK: "cyan"}


def migration_report(found: Migration) -> RenderableType:
    """Return the forecasts, the remarks and the steps of one group."""
    told, best = found.problem.facts.told(), found.best
    proof = f"\nevenlag's plan: {best.status}, objective {number(best.objective)}, bound {number(best.bound)}"
    return Group(
        Text(found.verdict, style="bold"),
        Text.assemble((found.problem.group, "bold"), f", {told}" if told else ""),
        *([] if found.online is Online.NO_MEMBERS else [_forecasts(found)]),
        *_kept(found),
        *_remarks(found.remarks),
        *_steps(found),
        *([] if found.online is Online.NO_MEMBERS else [Text(proof)]),
    )


def _forecasts(found: Migration) -> Sheet:
    restarts = any(each.rolling is not None for each in found.forecasts)
    table = Sheet()
    table.columns("name", "")
    table.columns("figure", "per member", "spread", "makespan", "moves")
    if restarts:
        table.columns("figure", "spread after restarts", "moves in restarts")
    for each in found.forecasts:
        plan, rolling = each.plan, each.rolling
        moves = "" if each.strategy == TODAY else f"{plan.moves:,}"
        figures = [_range(each.counts), number(plan.spread), number(plan.makespan), moves]
        if restarts:
            figures += ["", ""] if rolling is None else [_range(rolling.spread), _range(rolling.moves)]
        table.row(each.strategy, *figures, style="bold" if each.strategy == EVENLAG else "")
    return table


def _range(both: tuple[Number, Number] | None) -> str:
    if both is None:
        return "–"
    low, high = (number(each) for each in both)
    return low if low == high else f"{low}–{high}"


def _kept(found: Migration) -> Iterator[Text]:
    best = found.forecast(EVENLAG)
    if best is None or found.online is Online.NOT_KAFKAS or found.problem.facts.application == STREAMS:
        return
    if found.kept:
        away = f"{quantity(found.kept, 'partition')} away from it"
        yield Text(f"once evenlag's plan is in force, uniform would move {away}")
    else:
        yield Text("once evenlag's plan is in force, uniform keeps it until members, topics or partitions change")


def _remarks(remarks: Sequence[Remark]) -> Iterator[Text]:
    for each in remarks:
        label = (f"{each.severity}: ", _STYLES[each.severity])
        yield Text.assemble("\n", label, f"{each.text}", ("\n  → ", "dim"), each.action)


def _steps(found: Migration) -> Iterator[Text]:
    if found.steps:
        yield Text("\nsteps", style="bold")
    for place, each in enumerate(found.steps, 1):
        yield Text(f"{place}. {each.text}" + "".join(f"\n     {line}" for line in each.lines))


def migration_lines(found: Sequence[Migration]) -> RenderableType:
    """Count the groups that can and cannot be upgraded online, and list each."""
    counts = Counter(str(each.online) for each in found)
    listed = ", ".join(f"{count:,} {online}" for online, count in counts.items())
    return Group(Text(f"Online upgrade of {quantity(len(found), 'group')}: {listed}.", style="bold"), _lines(found))


def _lines(found: Sequence[Migration]) -> Sheet:
    table = Sheet()
    table.columns("name", "group", "assignor", "online upgrade")
    table.columns("figure", "spread today", "uniform", "after restarts", "range", "evenlag", "changes")
    for each in found:
        table.row(
            each.problem.group, each.problem.assignor or "–", str(each.online),
            _figure(each, TODAY, _spread), _figure(each, "uniform", _spread), _figure(each, "uniform", _after_restarts),
            _figure(each, "range", _spread), _figure(each, EVENLAG, _spread), f"{len(each.remarks):,}",
        )  # fmt: skip
    return table


def _spread(forecast: Forecast) -> str:
    return number(forecast.plan.spread)


def _after_restarts(forecast: Forecast) -> str:
    return _range(None if forecast.rolling is None else forecast.rolling.spread)


def _figure(found: Migration, strategy: str, of: Callable[[Forecast], str]) -> str:
    forecast = found.forecast(strategy)
    return "–" if forecast is None or found.online is Online.NO_MEMBERS else of(forecast)
