"""The number of members that a group needs, as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from evenlag.compare.counted import PUBLISHED
from evenlag.compare.drain import NEVER, Time
from evenlag.compare.members_needed import Size, SizeRow
from evenlag.compare.size_moves import Handover
from evenlag.compare.speeds import Speeds
from evenlag.figures import duration, messages, number, quantity
from evenlag.model.explanation.phrases import joined, listed
from evenlag.model.problem import Problem
from evenlag.report.sheet import Sheet
from evenlag.report.text import capacity_origin, facts_lines

MOST_NAMED = 6  # items listed in a sentence before the rest are counted


def size_report(found: Size, sources: Sequence[str] = ()) -> RenderableType:
    """Return the answer, the table of all group sizes, and a sentence on each finding.

    `sources` holds sentences on the source of the capacity and the rates.
    """
    problem = found.problem
    head = Text(problem.group, style="bold")
    members = quantity(len(problem.members), "member")
    head.append(
        f"  {quantity(len(problem.lags), 'partition')}, {members} today, "
        f"{messages(problem.total_lag)} to be read within {duration(found.deadline)}",
        style="not bold",
    )
    style = "bold green" if found.fewest is not None and found.proven else "bold yellow"
    return Group(
        Text(found.verdict, style=style),
        head,
        *facts_lines(problem.facts),
        *(Text(sentence) for sentence in sources),
        *([] if found.fewest is None else [Text(_of_published(found))]),
        _table(found),
        *(Text(sentence) for sentence in _sentences(found)),
        *(Text(f"note: {note}", style="yellow") for note in (*found.notes, *_missing(found))),
    )


def speed_lines(known: Speeds, problem: Problem) -> list[str]:
    """Return a sentence each on the source of the capacity and of the incoming rates."""
    weights = "" if problem.equal_weights else " for each unit of weight"
    rate, incoming = (float(each) for each in (known.capacity.rate, sum(known.rates, Fraction(0))))
    return [
        f"A member reads {messages(rate)} per second{weights} ({capacity_origin(known.capacity)}).",
        f"Meanwhile {messages(incoming)} per second {'arrives' if incoming == 1 else 'arrive'}, as {_period(known)}."
        if known.recorded
        else "No messages are assumed to arrive meanwhile, because a single snapshot has no rates. For rates, read the "
        "past from the brokers: kafka://HOST:PORT as INPUT, with --since 1d.",
    ]


def _period(known: Speeds) -> str:
    """Return the time that the rates cover, in words."""
    if known.past_seconds is None:
        return "between the last two snapshots"
    return f"in the {duration(known.past_seconds)} before the snapshot"


def answer_to(found: Size) -> str:
    """Return the answer in a few sentences: what evenlag's plan needs, and what published strategies need."""
    return found.verdict if found.fewest is None else f"{found.verdict} {_of_published(found)}"


def _table(found: Size) -> Sheet:
    table = Sheet()
    table.columns("figure", "members", "best plan", "no plan beats", *PUBLISHED)
    table.columns("remark", "")
    for row in found.sizes:
        remarks = []
        if row.members == len(found.problem.members):
            remarks.append("today")
        if row.members == found.fewest:
            remarks.append("fewest" if found.proven else "meets the deadline")
        if row.members == found.binding_from:
            remarks.append("no gain beyond")
        if row.rule_seconds > 0:
            remarks.append("even counts cost time")
        times = [row.drain_seconds, row.bound_seconds, *published_times(row).values()]
        cells = [Text(duration(each), style="green" if _within(each, found) else "") for each in times]
        style = "bold" if row.members == found.fewest else ""
        table.row(f"{row.members:,}", *cells, Text(", ".join(remarks)), style=style)
    return table


def sizes_table(rows: Iterable[Mapping[str, Any]], title: str) -> Sheet:
    """Return a table of many groups, one row per group with the columns of `evenlag.tables.outputs.SIZES`."""
    table = Sheet(title)
    table.columns("name", "group")
    table.columns("figure", "members today", "fewest", "no gain beyond")
    table.columns("name", "hottest partition")
    table.columns("figure", "alone takes", "a member reads")
    for row in rows:
        fewest, hottest = row["fewest"], row["hottest_topic"] is not None
        found = "none" if fewest is None else f"{fewest:,}"
        alone = NEVER if row["hottest_seconds"] is None else row["hottest_seconds"]
        table.row(
            row["group"], f"{row['members']:,}", found if row["proven"] else f"{found} found",
            "–" if row["binding_from"] is None else f"{row['binding_from']:,}",
            f"{row['hottest_topic']}-{row['hottest_partition']}" if hottest else "–",
            duration(alone if hottest else None), f"{number(row['capacity'])} per second",
            style="bold" if fewest is None or fewest > row["members"] else "",
        )  # fmt: skip
    return table


def _sentences(found: Size) -> list[str]:
    sentences = []
    if found.hottest is not None and found.floor not in (0, NEVER):
        name, alone = f"{found.hottest[0]}-{found.hottest[1]}", duration(found.floor)
        if found.binding_from is not None:
            sentences.append(
                f"From {quantity(found.binding_from, 'member')} on, the hottest partition, {name}, sets the time: it "
                f"alone takes {alone}, so more members do not help."
            )
        else:
            sentences.append(
                f"No group size is faster than {alone}: {name}, the hottest partition, takes that long alone."
            )
    if found.costly:
        costs = _costs(found)
        sentences.append(
            f"Even partition counts cost time at {listed(costs[:MOST_NAMED], len(costs))} members: the best plan "
            f"without them is faster by the time in brackets{_divides(found)}."
        )
    for row, less in found.slower[:MOST_NAMED]:
        sentences.append(
            f"{quantity(row.members, 'member')} are slower than {less.members:,} while counts must be even: at least "
            f"{duration(row.bound_seconds)}, compared with {duration(less.drain_seconds)}."
        )
    if found.handover is not None:
        sentences.append(_way_there(found.handover))
    beaten = ((row.bound_seconds, time) for row in found.sizes for time in published_times(row).values())
    if any(time is not None and time < bound for bound, time in beaten):
        sentences.append(
            f"A published strategy that is faster than the best plan breaks the counts asked for "
            f"(--balance {found.balance})."
        )
    return sentences


def _way_there(least: Handover) -> str:
    """Return a sentence on the moves from today's assignment to the smaller or larger group."""
    if not least.moves:
        return "Getting there from today's assignment needs no move."
    moves = f"Getting there from today's assignment moves {quantity(least.moves, 'partition')}"
    if least.sized:
        moves += f" of size {least.units:,} in total"
    if least.bound >= least.units:
        return f"{moves}, the least possible."
    return f"{moves}; the least possible is between {least.bound:,} and {least.units:,}."


def _divides(found: Size) -> str:
    """Return the reason, if all these sizes leave a remainder when they divide the number of partitions."""
    partitions = len(found.problem.lags)
    uneven = all(partitions % row.members for row in found.costly)
    return f", because {quantity(partitions, 'partition')} cannot be divided evenly among them" if uneven else ""


def _costs(found: Size) -> list[str]:
    """Return the group sizes at which the balance costs time, merging neighbours with the same cost."""
    places = {row.members: place for place, row in enumerate(found.sizes)}
    runs: list[list[SizeRow]] = []
    for row in found.costly:
        last = runs[-1][-1] if runs else None
        follows = last is not None and places[last.members] + 1 == places[row.members]
        if last is not None and follows and duration(last.rule_seconds) == duration(row.rule_seconds):
            runs[-1].append(row)
        else:
            runs.append([row])
    return [
        f"{run[0].members:,}{f'–{run[-1].members:,}' if len(run) > 1 else ''} ({duration(run[0].rule_seconds)})"
        for run in runs
    ]


def _of_published(found: Size) -> str:
    """Return a sentence on the group size that each published strategy needs, among the sizes tried."""
    made, never = [], []
    for name in PUBLISHED:
        members = next((row.members for row in found.sizes if _within(published_times(row)[name], found)), None)
        if members is None:
            never.append(name)
        else:
            made.append(f"{name} needs {members:,}")
    parts = [f"among the sizes tried, {joined(made)}"] if made else []
    if never:
        names = " or ".join(filter(None, [", ".join(never[:-1]), never[-1]]))
        parts.append(f"{'none' if made else 'none of the sizes tried'} is enough for {names}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _within(time: Time | None, found: Size) -> bool:
    return time is not None and time <= found.deadline


def _missing(found: Size) -> list[str]:
    if not found.not_reached:
        return []
    counts = listed([f"{members:,}" for members in found.not_reached[:MOST_NAMED]], len(found.not_reached))
    return [f"there was no time to try {counts} members; raise --time-limit"]


def published_times(row: SizeRow) -> dict[str, Time | None]:
    """Return the time to drain under each published strategy; None if it is unknown."""
    return dict(zip(PUBLISHED, (row.range_seconds, row.cooperative_sticky_seconds, row.uniform_seconds), strict=True))
