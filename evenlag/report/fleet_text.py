"""Text reports of the fleet commands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from evenlag.compare.replay_result import RECORDED
from evenlag.compare.traffic_price import TrafficPrice
from evenlag.figures import messages, number, percent, quantity
from evenlag.model.explanation.phrases import joined
from evenlag.report.costs_text import months_document, traffic_fields
from evenlag.report.replay_text import fleet_table
from evenlag.report.sheet import Sheet
from evenlag.report.size_text import sizes_table

if TYPE_CHECKING:
    from pathlib import Path

MOST_GROUPS = 15  # rows in a table of groups
MOST_REMEDIES = 8  # remedies listed
MOST_FAILED = 100_000  # failed groups counted in a report on sizes or replays
MOST_ERRORS = 20  # kinds of errors listed there
MOST_REASONS = 5  # reasons listed for rejected rows

ANSWERS = {
    "more": ("needs more members", "need more members"),
    "enough": ("has as many as it needs", "have as many as they need"),
    "fewer": ("needs fewer than it has", "need fewer than they have"),
    "none": ("misses the deadline at every size tried", "miss the deadline at every size tried"),
    "failed": ("failed", "failed"),
}


@dataclass(frozen=True)
class FleetAudit:
    """The outcome of a fleet audit.

    Attributes
    ----------
    out : str or Path
        Folder or namespace that holds the tables.
    groups : list of dict
        The groups whose spread the plan reduces most; figures in messages.
    strategies : dict of strategy to figures
        For each strategy: `groups`; `best`, the groups in which it reaches the optimum; the `median`, `p90`, `p99` and
        `worst` excess as a share of the optimum's largest load; `broken`, the groups in which it breaks its balance.
    remedies : list of dict
        The most frequent diagnoses: `cause`, `remedy`, `change`, `groups`, and `recovers`, the mean share of today's
        spread (or drain time) that the remedy saves.
    rejected : list of dict
        Reasons for rejected rows, the most frequent first: `source` (the table), `reason`, `count`.
    written : list of str
        The tables and files written, with their places.
    price : TrafficPrice or None
        Price of traffic between racks. With it `groups` have the traffic that crosses racks: `crossings` by the plan,
        `crossings_today`; None where racks or traffic are not known.
    recoverable : dict or None
        By the latest snapshot of each group with a plan and an assignment today: their number, `compared`; the number
        of `groups` whose plan has a lower spread; `saved`, the sum of these gains; `today`, the sum of all spreads.
    traffic : dict or None
        With a price, by the latest snapshot of each group: `groups` whose traffic can be priced, the traffic that
        crosses racks in all of them by the plan (`planned`), and `today`, None where one has no assignment today.
    """

    summary: Any
    out: str | Path
    groups: list[dict[str, Any]]
    strategies: dict[str, dict[str, Any]]
    remedies: list[dict[str, Any]]
    rejected: list[dict[str, Any]]
    written: list[str]
    price: TrafficPrice | None = None
    traffic: dict[str, Any] | None = None
    recoverable: dict[str, Any] | None = None

    @property
    def verdict(self) -> str:
        """One sentence: the groups that can be balanced better, what that recovers, and the groups without a plan."""
        without = f"; {quantity(self.summary.failed, 'group')} got no plan" if self.summary.failed else ""
        found = self.recoverable
        if found is None or not found["compared"]:
            return f"No group has both a plan and an assignment today{without}."
        if not found["groups"]:
            return f"No plan is better than today's assignments of {quantity(found['compared'], 'group')}{without}."
        better = f"{found['groups']:,} of {quantity(found['compared'], 'group')} can be balanced better"
        saved = f"the best plans recover {number(found['saved'])} of {messages(found['today'])} of spread"
        return f"{better}: {saved}{without}."

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as a document for JSON."""
        document = {
            "out": str(self.out),
            "written": self.written,
            "verdict": self.verdict,
            "recoverable": self.recoverable,
            "summary": asdict(self.summary),
            "groups": self._priced_groups,
            "strategies": self.strategies,
            "remedies": self.remedies,
            "rejected": self.rejected,
        }
        if self.price is not None and self.traffic is not None:
            months = {f"{when}_month": self.traffic[when] for when in ("planned", "today")}
            head = {"price": self.price.text, "groups": self.traffic["groups"]}
            document["traffic_cost"] = head | months_document(months, self.price)
        return document

    def _month(self, traffic: int | None) -> float | None:
        """Return the monthly cost of traffic between racks; None if unknown."""
        return traffic_fields(traffic, self.price).get("traffic_month")

    @property
    def _priced_groups(self) -> list[dict[str, Any]]:
        """The groups, with the monthly cost of their traffic between racks."""
        if self.price is None:
            return self.groups
        figures = {"traffic_month_today": "crossings_today", "traffic_month": "crossings"}
        return [row | {name: self._month(row[traffic]) for name, traffic in figures.items()} for row in self.groups]

    def report(self) -> RenderableType:
        """Return the outcome as tables and notes."""
        summary = self.summary
        notes = [Text(f"failed: {error}", style="red") for error in summary.errors]
        notes += [Text(f"rejected: {reason}", style="yellow") for reason in self._reasons()]
        notes += [Text(f"note: {note}", style="yellow") for note in (*self._hurried(), *summary.notes)]
        notes += [Text(self._money_line())] if self.price is not None else []
        written = Text("written: " + ", ".join(self.written))
        return Group(*self._head(), *self._remedies(), self._groups_table(), self._strategies_table(), *notes, written)

    def _head(self) -> list[Text]:
        """Return the verdict, and the sums of groups and rows below it."""
        summary = self.summary
        statuses = ", ".join(f"{count:,} {status}" for status, count in summary.statuses.items())
        lines = [self.verdict]
        if summary.failed:
            empty = summary.statuses.get("EMPTY", 0)
            planned = f"planned {summary.groups - summary.failed - empty:,} of {quantity(summary.groups, 'group')}"
            without = f"{summary.failed:,} without a plan"
            lines.append(", ".join([planned, without, *([f"{empty:,} EMPTY"] if empty else [])]))
        lines.append(f"{quantity(summary.groups, 'group')}: {statuses}")
        parts = {
            "planned": summary.planned, "unassigned": summary.unassigned, "without a plan": summary.without_plan,
            "rejected": summary.rejects, "log ends of the past": summary.log_ends,
        }  # fmt: skip
        shown = [f"{count:,} {name}" for name, count in parts.items() if count or name in ("planned", "rejected")]
        rows = f"{quantity(summary.rows, 'row')} = {' + '.join(shown)}"
        lines.append(f"{rows}, in {summary.seconds:.1f} s on {summary.master}")
        return [Text(line, style="" if place else "bold") for place, line in enumerate(lines)]

    def _remedies(self) -> list[Text]:
        """Return a line for each remedy, with the number of groups and the share that it recovers."""
        lines = []
        for row in self.remedies:
            share = "" if row["recovers"] is None else f", recovers {percent(row['recovers'])} on average"
            lines.append(Text(f"  {quantity(row['groups'], 'group')}: {row['change']} ({row['cause']}){share}"))
        return lines

    def _hurried(self) -> Iterator[str]:
        """Yield notes on the groups for which the time limit came too early."""
        if alone := self.summary.not_compared:
            compared = f"{quantity(alone, 'group')} could be compared with the published strategies"
            yield f"the time limit came before {compared}; first plans stand"
        if late := self.summary.late:
            yield f"{quantity(late, 'group')} reached only after the time limit (late)"

    def _reasons(self) -> Iterator[str]:
        """Yield the most frequent reasons for rejected rows, and the number of rows rejected for others."""
        for each in self.rejected:
            yield f"{quantity(each['count'], 'row')} of {each['source']}: {each['reason']}"
        if rest := self.summary.rejects + self.summary.member_rejects - sum(each["count"] for each in self.rejected):
            yield f"{quantity(rest, 'row')} for other reasons; see the table rejects"

    def _money_line(self) -> str:
        """Return a sentence on the monthly cost of traffic between racks, over all groups for which it is known."""
        assert self.price is not None
        assert self.traffic is not None
        groups, planned, today = (self.traffic[name] for name in ("groups", "planned", "today"))
        if not groups:
            return "no traffic is priced: no group has racks of both members and partitions, and bytes per second"
        more = "" if today is None else f", today {number(self._month(today))}"
        of = f"in {quantity(groups, 'group')} of {self.summary.groups:,}"
        return f"traffic across racks costs {number(self._month(planned))} per month {of}{more} (at {self.price.text})"

    def _groups_table(self) -> Sheet:
        title = "groups whose spread the plan reduces most" if len(self.groups) == MOST_GROUPS else "groups"
        months = {"traffic_month_today": "traffic per month, today", "traffic_month": "planned traffic per month"}
        months = {} if self.price is None else months
        table = Sheet(title)
        table.columns("name", "group")
        table.columns("figure", "partitions", "busy members", "spread today", "best spread", "proven bound")
        table.columns("figure", "planned moves", *months.values())
        table.columns("name", "limited by", "status")
        for row in self._priced_groups:
            style = "green" if row["status"] == "OPTIMAL" else "yellow"
            table.row(
                row["group"], f"{row['partitions']:,}", f"{row['busy_members']:,}", number(row["today"]),
                number(row["best"]), number(row["bound"]), f"{row['moves']:,}",
                *(number(row[month]) for month in months),
                (row["binding"] or "").replace(";", ", "), Text(row["status"], style=style),
            )  # fmt: skip
        return table

    def _strategies_table(self) -> Sheet:
        table = Sheet("spread above the best under the same balance, as a share of the best plan's largest load")
        table.columns("name", "strategy")
        table.columns("figure", "groups", "optimal in", "median", "p90", "p99", "worst", "breaks its balance")
        for strategy, row in self.strategies.items():
            table.row(
                strategy, f"{row['groups']:,}", f"{row['best']:,}",
                *(percent(row[name]) for name in ("median", "p90", "p99", "worst")), f"{row['broken']:,}",
            )  # fmt: skip
        return table


@dataclass(frozen=True)
class FleetSizes:
    """The number of members that each group of a fleet needs.

    Attributes
    ----------
    answers : dict of answer to groups
        Number of groups by answer: `more`, they need more members than they have; `enough`; `fewer`; `none`, no size
        was found that meets the deadline; `failed`.
    groups : list of dict
        The groups that lack most members, first those without an answer: `group, snapshot_ts, members` (today)`,
        fewest, proven, binding_from, hottest_topic, hottest_partition, hottest_seconds, capacity, capacity_source`.
    errors : list of str
        The groups that could not be sized, each followed by `: ` and its error.
    rejects : int
        Rows of both tables that could not be used.
    members : dict of answer to members
        Number of members that all groups with the answer `more` lack, and that those with `fewer` can do without.
    """

    answers: dict[str, int]
    groups: list[dict[str, Any]]
    errors: list[str]
    rejects: int
    written: list[str]
    members: dict[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """One sentence: the number of groups by answer, and the members that they lack or can do without."""
        answers = [f"{count:,} {self._answer(name, count)}" for name, count in self.answers.items() if count]
        return f"{quantity(self.total, 'group')}: {', '.join(answers)}."

    def _answer(self, name: str, count: int) -> str:
        members = self.members.get(name)
        return ANSWERS[name][count != 1] + (f" ({quantity(members, 'member')} in all)" if members else "")

    @property
    def failed(self) -> int:
        """The number of groups that could not be sized."""
        return self.answers.get("failed", 0)

    @property
    def total(self) -> int:
        """The number of groups."""
        return sum(self.answers.values())

    @property
    def reasons(self) -> list[str]:
        """The errors, the most frequent first."""
        return counted(self.errors)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as a document for JSON."""
        return vars(self) | {"verdict": self.verdict, "errors": self.reasons}

    def report(self) -> RenderableType:
        """Return the verdict, the table and notes."""
        head = Text(self.verdict, style="bold")
        title = "groups that need the most additional members" if len(self.groups) == MOST_GROUPS else "groups"
        return Group(head, sizes_table(self.groups, title), *_notes(self.reasons, self.rejects, self.written))


@dataclass(frozen=True)
class FleetReplays:
    """The figures of each strategy over many replayed groups.

    Attributes
    ----------
    strategies : list of dict
        For each strategy: `groups`; `best`, the groups in which it is the best; the `median` and `worst` of its cost
        above that of the group's best, as a fraction; `moves`; `rebalances`; `above`, seconds above the lag limit;
        `failed`.
    errors : list of str
        The groups that could not be replayed, each followed by `: ` and its error.
    rejects : int
        Rows of both tables that could not be used.
    """

    groups: int
    strategies: list[dict[str, Any]]
    errors: list[str]
    rejects: int
    written: list[str]

    @property
    def verdict(self) -> str:
        """One sentence: the strategy that is the best in most groups, and the cost of the recorded assignments."""
        done = f"{self.groups - self.failed:,} of {quantity(self.groups, 'group')} replayed, {self.failed:,} failed"
        text = done if self.failed else f"{quantity(self.groups, 'group')} replayed"
        competing = [row for row in self.strategies if row["strategy"] != RECORDED]
        most = max((row["best"] for row in competing), default=0)
        if not most:
            return f"{text}."
        names = joined([row["strategy"] for row in competing if row["best"] == most])
        text += f": {names} {'serves' if ' and ' not in names else 'each serve'} {quantity(most, 'group')} best"
        recorded = next((row for row in self.strategies if row["strategy"] == RECORDED), None)
        if recorded is None or recorded["median"] is None:
            return f"{text}."
        cost = f"the mean spread with moves as recorded is {percent(recorded['median'])} above the best in the median"
        return f"{text}; {cost} group."

    @property
    def failed(self) -> int:
        """The number of groups that could not be replayed."""
        return len(self.errors)

    @property
    def reasons(self) -> list[str]:
        """The errors, the most frequent first."""
        return counted(self.errors)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as a document for JSON."""
        return vars(self) | {"verdict": self.verdict, "failed": self.failed, "errors": self.reasons}

    def report(self) -> RenderableType:
        """Return the verdict, the table and notes."""
        head = Text(self.verdict, style="bold")
        return Group(head, fleet_table(self.strategies), *_notes(self.reasons, self.rejects, self.written))


def batch_line(batch: Any) -> str:
    """Return one line on a batch of a stream."""
    parts = [
        f"batch {batch.number}: {quantity(batch.rows, 'row')} received",
        f"{quantity(batch.snapshots, 'group snapshot')} audited",
        f"{quantity(batch.plans, 'row')} of plans",
        f"{batch.rejects:,} rejected",
        f"{batch.waiting:,} waiting",
    ]
    parts += [f"{quantity(batch.short, 'snapshot')} incomplete"] if batch.short else []
    parts += [f"{batch.failed:,} failed"] if batch.failed else []
    return ", ".join(parts) + f"; {batch.seconds:.1f} s"


def commit_batch_line(batch: Any) -> str:
    """Return one line on a batch of a stream of commits."""
    parts = [f"batch {batch.number}: {quantity(batch.records, 'record')} read, {batch.kept:,} kept"]
    parts += [f"{batch.records - batch.used:,} passed over"] if batch.records > batch.used else []
    if batch.snapshot_ts is not None:
        parts.append(
            f"snapshot {batch.snapshot_ts}: {quantity(batch.groups, 'group')} audited, "
            f"{quantity(batch.plans, 'row')} of plans, {batch.rejects:,} rejected"
        )
    parts += [f"{batch.failed:,} failed"] if batch.failed else []
    return ", ".join(parts) + f"; {batch.seconds:.1f} s"


def _notes(errors: Sequence[str], rejects: int, written: Sequence[str]) -> list[Text]:
    """Return the notes below a table: failed groups, rejected rows and written tables."""
    notes = [Text(f"failed: {error}", style="red") for error in errors]
    if rejects:
        rows = quantity(rejects, "row")
        notes.append(Text(f"note: {rows} rejected; `evenlag fleet audit` lists them", style="yellow"))
    if written:
        notes.append(Text("written: " + ", ".join(written)))
    return notes


_ERROR = re.compile(r"(?P<group>.*?): (?P<error>\w+: .*)", re.DOTALL)
_FIGURE = re.compile(r"\d[\d,.]*")


def counted(errors: Sequence[str], most: int = MOST_ERRORS) -> list[str]:
    """Return errors of groups (`GROUP: ERROR`), the most frequent first; those that differ only in figures are one.

    Examples
    --------
    >>> counted(["a: E: group 'a': no lag", "b: E: group 'b': no lag", "c: E: 7 moves"])
    ['2 groups: E: no lag, e.g. a', 'c: E: 7 moves']
    """
    kinds: dict[str, list[tuple[str, str, str]]] = {}
    for each in errors:
        match = _ERROR.fullmatch(each)
        group, error = (match["group"], match["error"]) if match else ("", each)
        text = error.replace(f"group {group!r}: ", "")
        kinds.setdefault(_FIGURE.sub("…", text), []).append((group, text, each))
    listed = sorted(kinds.values(), key=lambda alike: -len(alike))
    rest = sum(map(len, listed[most:]))
    return [*map(_as_one, listed[:most]), *([f"{quantity(rest, 'group')} with other errors"] if rest else [])]


def _as_one(alike: Sequence[tuple[str, str, str]]) -> str:
    group, text, whole = alike[0]
    if len(alike) == 1:
        return whole
    same = len({text for _, text, _ in alike}) == 1
    return f"{len(alike):,} groups: {text}, e.g. {group}" if same else f"{len(alike):,} groups, such as {group}: {text}"
