"""Scanner of a text that describes consumer groups: headers, rows, and lines of other programs."""

from __future__ import annotations

import bisect
import itertools
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evenlag.errors import SourceError
from evenlag.model.facts import EMPTY, NO_FACTS, Facts, protocol_by
from evenlag.tables.formats.describe.consistency import Fields, is_whole
from evenlag.tables.formats.describe.fitting import Known, fault_of, fitted, may_be_a_row
from evenlag.tables.formats.describe.headers import (
    Layout,
    check_other_table,
    continuation,
    cut_off,
    layout_of,
    rejoined,
)
from evenlag.tables.formats.describe.lines import Line, lines_of
from evenlag.tables.formats.describe.stamps import Stamps, repetitions, stamps_of
from evenlag.tables.formats.likeness import likeness

AS_PRINTED = "give the text as it was printed"

_ZOOKEEPER = "Note: This will only show information about consumers that use ZooKeeper"
_OF_KAFKA = re.compile(r"Note: This will |(?:Warning: )?Consumer group '(.*)' (has no active members|is rebalancing)")
_COMMAND = re.compile(r"kafka-consumer-groups\S*\s.*--group[ =]([^\s'\"]+)")  # above its output, at a prompt
_STATE_OF = {"has no active members": EMPTY, "is rebalancing": "rebalancing"}
_ERROR = re.compile(r"Error: |Error while executing consumer group command|Consumer group `.*` does not exist")
_SUMMARY = re.compile(
    r"(GROUP|COORDINATOR(?:-NODE|-PARTITION)?|STATE|BALANCER|MEMBERS|TOTAL-LAG|ERROR|MESSAGE)(?:\s+(\S.*))?"
)
_OF_SUMMARY = {"STATE": "state", "BALANCER": "assignor"}
_KAFKA_4 = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"


@dataclass
class Parsed:
    """The contents of a text.

    Attributes
    ----------
    offsets, members : list of (Line, Fields)
        Rows of partitions; rows of members, from members tables or from the offsets, each once. `group` is None if
        neither the row nor the text above it names the group.
    passed_over, doubtful : list of Line
        Lines that are not rows; lines that may be rows but do not fit.
    errors : list of Line
        Error messages of Kafka.
    warnings : list of (str, Line)
        Warnings of Kafka with the group that they name: it is rebalancing, or has no active members.
    doubtful_ids : list of Line
        Headers that end with CONSUMER-ID, where the ids below may be cut although they look complete.
    group : str
        The group of rows that name none, if the text names it elsewhere.
    facts : dict
        Facts of each group in summaries, tables of states and messages.
    tables : list of (Line, Layout)
        The headers and their layouts.
    stamps : Stamps or None
        The times of several descriptions of one group; None if each partition is described once.
    """

    source: str
    lines: list[Line] = field(default_factory=list)
    offsets: list[tuple[Line, Fields]] = field(default_factory=list)
    members: list[tuple[Line, Fields]] = field(default_factory=list)
    passed_over: list[Line] = field(default_factory=list)
    doubtful: list[Line] = field(default_factory=list)
    errors: list[Line] = field(default_factory=list)
    warnings: list[tuple[str, Line]] = field(default_factory=list)
    doubtful_ids: list[Line] = field(default_factory=list)
    group: str = ""
    facts: dict[str | None, Facts] = field(default_factory=dict)
    tables: list[tuple[Line, Layout]] = field(default_factory=list)
    stamps: Stamps | None = None

    def tell(self, group: str | None, **told: Any) -> None:
        """Add facts of a group."""
        self.facts[group] = self.facts.get(group, NO_FACTS) | Facts(**told)

    def refusal(self, line: Line) -> SourceError:
        """Return the error for a line that may be a row."""
        place = f"{self.source}, line {line.number}"
        above = [layout for header, layout in self.tables if header.number < line.number]
        if above and (why := fault_of(line, above[-1])):
            return SourceError(
                f"{place}: does not fit its header: {why}; correct the line, or remove it if it is not a row: {line}"
            )
        fields = len(line.text.split())
        wanted = " or ".join(dict.fromkeys(str(len(layout.names)) for _, layout in self.tables))
        why = f"does not fit its header ({fields} fields for {wanted} columns)"
        if not above:
            why = (
                f"is above the header and does not fit it ({fields} fields for {wanted} columns; was the text sorted?)"
            )
        return SourceError(
            f"{place}: {why}; {AS_PRINTED}, not wrapped, cut or realigned, or remove the line if it is not a row: "
            f"{line}"
        )


def parse(text: str, source: str) -> Parsed:
    """Parse a text into headers, rows and other lines.

    Raises
    ------
    SourceError
        The text has no header or an unknown one, or it does not show which group a row belongs to.
    """
    printed = lines_of(text)
    lines = rejoined(printed)
    parsed = Parsed(source, lines)
    headers = _headers(lines, source)
    parsed.tables = [(line, headers[line.number]) for line in lines if line.number in headers]
    if not headers:
        raise _no_table(lines, source)
    groups = _Groups(lines, parsed)
    governing: Layout | None = None
    others: list[Line] = []
    layouts = list(dict.fromkeys(layout for _, layout in parsed.tables))
    known = Known()
    for line in lines:
        if line.number in headers:
            governing = headers[line.number]
        elif not line.is_decoration and not groups.take(line):
            found = _row(line, governing, layouts)
            if found is None:
                others.append(line)
            else:
                row, layout = found
                row["group"] = row.get("group") or groups.at(line, layout)
                known.add(row)
                _place(parsed, line, row, layout)
    _check_edges(parsed)
    others = _dated(parsed, others)
    _check_one_group(parsed)
    kinds = list({layout.names: layout for layout in layouts}.values())
    beginnings = _Beginnings(parsed, known)
    ends = {line.number for line, _ in (*parsed.offsets, *parsed.members)} if len(lines) < len(printed) else set()
    for line in others:
        doubtful = (
            (line.number - 1 in ends and len(line.text.split()) == 1)  # a row was wrapped, as the header was
            or any(may_be_a_row(line, layout, known) for layout in kinds)
            or line in beginnings
            or _is_cut(line, parsed)
        )
        (parsed.doubtful if doubtful else parsed.passed_over).append(line)
    parsed.members = _once(parsed.members)
    return parsed


def _headers(lines: Sequence[Line], source: str) -> dict[int, Layout]:
    """Return the layouts of headers by line number; raise an error if a header is wrapped to the next line."""
    found: dict[int, Layout] = {}
    for line, after in itertools.zip_longest(lines, lines[1:]):
        if rest := continuation(line, after):
            raise cut_off(line, rest, source, wrapped=True)
        if (layout := layout_of(line, source)) is not None:
            found[line.number] = layout
    return found


def _row(line: Line, governing: Layout | None, layouts: Sequence[Layout]) -> tuple[Fields, Layout] | None:
    """Return the row in a line and its layout: that of the header above it, or else any other that fits uniquely."""
    if governing is not None and (row := fitted(line, governing)) is not None:
        others = (layout for layout in layouts if layout.kind != governing.kind)
        return None if any(fitted(line, layout) is not None for layout in others) else (row, governing)
    found = [(row, layout) for layout in layouts if (row := fitted(line, layout)) is not None]
    if not found or any(row != found[0][0] for row, _ in found):
        return None
    return found[0]


def _place(parsed: Parsed, line: Line, row: Fields, layout: Layout) -> None:
    if layout.kind == "state":
        epochs = {name: int(row[name] or 0) for name in ("group_epoch", "assignment_epoch") if row.get(name)}
        words = {name: row.get(name) for name in ("state", "assignor")}
        if "group_epoch" in row:  # the column is newer than KIP-848
            words["protocol"] = protocol_by(row["group_epoch"])
        parsed.tell(row["group"], members=int(row["count"] or 0), **words, **epochs)
    elif layout.kind == "members" or row["topic"] is None:
        parsed.members.append((line, row))
    else:
        parsed.offsets.append((line, row))
        if row.get("group_instance_id") and row["consumer_id"]:
            parsed.members.append((line, row))


def _dated(parsed: Parsed, others: Sequence[Line]) -> list[Line]:
    """Set the times of rows if the text describes partitions several times; return the lines without a time."""
    if not any(repetitions(parsed.offsets)):
        return list(others)
    found = stamps_of(others, (line for line, layout in parsed.tables if layout.kind == "offsets"))
    if not found:
        return list(others)
    stamps = parsed.stamps = Stamps(found, parsed.offsets[0][0].number, parsed.source)
    for rows in (parsed.offsets, parsed.members):
        rows[:] = [(line, {**row, "snapshot_ts": stamps.of(line)}) for line, row in rows]
    dates = {stamp.line for stamp in found}
    return [line for line in others if line.number not in dates]


def _check_one_group(parsed: Parsed) -> None:
    """Raise an error if tables without a group may be of several: each time of one group has the same topics."""
    headers = [line.number for line, layout in parsed.tables if layout.kind == "offsets" and not layout.has_group]
    topics: dict[str | None, set[str | None]] = {}
    for _, row in parsed.offsets:
        if row["group"] is None:
            topics.setdefault(row.get("snapshot_ts"), set()).add(row["topic"])
    if len(headers) > 1 and topics and (parsed.stamps is None or len({*map(frozenset, topics.values())}) > 1):
        raise _nameless(parsed, headers[1])


def check_descriptions(parsed: Parsed) -> None:
    """Raise an error if a text describes a partition several times, and not each description has its own time.

    Raises
    ------
    SourceError
        The message names the line of a row.
    """
    tables = [layout for _, layout in parsed.tables if layout.kind == "offsets"]
    if parsed.stamps is None and len(tables) < 2:  # the rule of a row finds copies
        return
    ask = "print date and time (`date -u`) before each description"
    for first, line, differs in repetitions(parsed.offsets):
        if differs:
            raise SourceError(
                f"{parsed.source}, line {line.number}: the partition of line {first.number} again, with other values; "
                f"{ask}, or keep one of them: {line}"
            )
    if parsed.stamps is None:
        return
    parsed.stamps.check_order()
    for line, row in (*parsed.offsets, *parsed.members):
        if row["snapshot_ts"] is None:
            raise SourceError(
                f"{parsed.source}, line {line.number}: this row has no time, although others have one; {ask}, or "
                f"remove the row: {line}"
            )


def _check_edges(parsed: Parsed) -> None:
    """Raise an error if a header ends with CONSUMER-ID and the text may have been cut within ids.

    Kafka 0.11 prints such a header with `--zookeeper`. In other texts, HOST and CLIENT-ID were cut off or removed.
    """
    for header, layout in parsed.tables:
        if not layout.may_be_cut or any(line.text.strip().startswith(_ZOOKEEPER) for line in parsed.lines):
            continue
        rows = [(line, row.get("consumer_id") or "") for line, row in (*parsed.offsets, *parsed.members)]
        edge = max((len(line.spaced) for line, _ in rows), default=0)
        if header.width > edge:  # trailing blanks of the header show that no id reaches the edge
            continue
        if not all(is_whole(member) for line, member in rows if member and len(line.spaced) == edge):
            raise cut_off(header, ["HOST", "CLIENT-ID"], parsed.source)
        parsed.doubtful_ids.append(header)


class _Beginnings:
    """Recognize beginnings of rows: such a line may be a truncated row, unless it is just a group or topic."""

    def __init__(self, parsed: Parsed, known: Known) -> None:
        self._rows = sorted(line.text for line, _ in (*parsed.offsets, *parsed.members))
        self._names = known.groups | known.topics

    def __contains__(self, line: Line) -> bool:
        if line.text.strip() in self._names:
            return False
        place = bisect.bisect_left(self._rows, line.text)
        return place < len(self._rows) and self._rows[place].startswith(line.text)


def _is_cut(line: Line, parsed: Parsed) -> bool:
    """Return whether a line is the last of the text and looks like the beginning of a row."""
    if line.number < len(parsed.lines):
        return False
    beginning = line.text.strip()
    starts = {match.start() for match in re.finditer(r"\S+", line.spaced)}
    rows = [*parsed.offsets, *parsed.members]
    return (
        any(row.text.strip().startswith(beginning) for row, _ in rows)
        or any(beginning.startswith(f"{group} ") for group in {row["group"] for _, row in rows})
        or (len(starts) > 1 and any(starts <= {*layout.starts} for _, layout in parsed.tables))
    )


def _once(members: Sequence[tuple[Line, Fields]]) -> list[tuple[Line, Fields]]:
    """Return each member once: its first row, or the first with its assignment."""
    found: dict[tuple[str | None, ...], tuple[Line, Fields]] = {}
    for line, row in members:
        key = row.get("snapshot_ts"), row["group"], row["consumer_id"]
        if key not in found or (row.get("assignment") and not found[key][1].get("assignment")):
            found[key] = line, row
    return list(found.values())


class _Groups:
    """Find the group of rows that do not name it: `rpk` writes `GROUP NAME` above, Kafka names it in messages."""

    def __init__(self, lines: Sequence[Line], parsed: Parsed) -> None:
        self._parsed = parsed
        nameless = [(line, layout) for line, layout in parsed.tables if not layout.has_group]
        self._headers = [line.number for line, layout in nameless if layout.kind == "offsets"]
        self._names: dict[int, str] = {}
        if any(layout.is_rpk for _, layout in nameless):
            matches = {line.number: _SUMMARY.fullmatch(line.text.strip()) for line in lines}
            self._names = {number: match[2] for number, match in matches.items() if match and match[1] == "GROUP"}
            self._names = {number: name for number, name in self._names.items() if name}
        in_messages = {match[1] for line in lines if (match := _OF_KAFKA.match(line.text.strip())) and match[1]}
        in_command = {match[1] for line in lines if (match := _COMMAND.search(line.text))}
        names = set(self._names.values()) or in_messages or in_command
        if len(names) == 1:
            parsed.group = names.pop()
        kinds: defaultdict[str, list[int]] = defaultdict(list)
        for line, layout in nameless:
            kinds[layout.kind].append(line.number)
        self._several = any(len(numbers) > 1 for numbers in kinds.values()) or len(self._names) > 1
        if len(in_messages) < 2 and not self._names and self._may_be_a_loop(lines):
            self._several = False
        if self._several:
            for numbers in kinds.values():
                self._check_order(lines, numbers)

    def take(self, line: Line) -> bool:
        """Record a message or a summary of a group, and return True; return False for any other line."""
        text = line.text.strip()
        if _ERROR.match(text):
            self._parsed.errors.append(line)
            return True
        if match := _OF_KAFKA.match(text):
            if match[1]:
                self._parsed.warnings.append((match[1], line))
                self._parsed.tell(match[1], state=_STATE_OF[match[2]])
            return True
        match = _SUMMARY.fullmatch(text)
        if not match or not self._names:
            return False
        if match[1] == "MEMBERS" and (match[2] or "").isdigit():
            self._parsed.tell(self.at(line, None), members=int(match[2]))
        elif match[1] in _OF_SUMMARY and match[2]:
            self._parsed.tell(self.at(line, None), **{_OF_SUMMARY[match[1]]: match[2].strip()})
        return True

    def at(self, line: Line, layout: Layout | None) -> str | None:
        """Return the group of a row that does not name it."""
        if not self._several:
            return next(iter(self._names.values()), None)
        above = [number for number in self._names if number < line.number]
        if not above or (layout is not None and not any(above[-1] < number < line.number for number in self._headers)):
            raise SourceError(
                f"{self._parsed.source}, line {line.number}: the group of this row is unknown (was the text sorted?); "
                f"{AS_PRINTED}: {line}"
            )
        return self._names[above[-1]]

    def _may_be_a_loop(self, lines: Sequence[Line]) -> bool:
        """Return whether a time is printed for each table, as for several descriptions of one group."""
        headers = {line.number: line for line, _ in self._parsed.tables}
        stamps = stamps_of((line for line in lines if line.number not in headers), headers.values())
        if {*self._headers} <= {stamp.line for stamp in stamps}:
            return True
        times = [stamp.line for stamp in stamps]
        between = itertools.pairwise([0, *self._headers, len(lines) + 1])
        return sum(any(low < time < high for time in times) for low, high in between) >= len(self._headers)

    def _check_order(self, lines: Sequence[Line], headers: Sequence[int]) -> None:
        """Raise an error if a table of several has no group, or if summaries are not in the order that `rpk` prints."""
        filled = [line for line in lines if line.text.strip()]
        after = {line.number: later.text for line, later in itertools.pairwise(filled)}
        whole = all(after.get(number, "").startswith("COORDINATOR") for number in self._names)
        for place, header in enumerate(headers):
            since = headers[place - 1] if place else 0
            if not whole or not any(since < number < header for number in self._names):
                raise _nameless(self._parsed, header)


def _nameless(parsed: Parsed, header: int) -> SourceError:
    """Return the error for a table whose group is unknown; `header` is its line number."""
    return SourceError(
        f"{parsed.source}, line {header}: one of several tables without the column GROUP, so the group of each is "
        "unknown; give each table as a text of its own, and name its group by --group"
    )


def _no_table(lines: Sequence[Line], source: str) -> SourceError:
    filled = [line for line in lines if line.text.strip()]
    if not filled:
        return SourceError(f"{source}: is empty; give the text of `kafka-consumer-groups --describe`")
    for line in filled:
        if _ERROR.match(line.text.strip()):
            return SourceError(
                f"{source}, line {line.number}: Kafka printed an error instead of a table: {line.text.strip()}"
            )
    for line in filled:
        check_other_table(line, source)
    usual = Layout(tuple(_KAFKA_4.split()), "", (), quoted=False)
    for line in filled:
        if may_be_a_row(line, usual, Known()):
            return SourceError(
                f"{source}: no header with {', '.join(usual.names)}, so the columns of line {line.number} are unknown; "
                f"{AS_PRINTED}: {line}"
            )
    like = likeness("\n".join(line.text for line in filled))
    advice = like or (
        "; give the text of `kafka-consumer-groups --describe` or `rpk group describe`, or convert it to a snapshot "
        "table"
    )
    return SourceError(f"{source}: no header with {', '.join(usual.names[1:6])}{advice}")
