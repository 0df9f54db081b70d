"""Headers of the tables that describe consumer groups: their words, and the form of the values below each."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from evenlag.errors import SourceError
from evenlag.tables.column_names import check_headings, matched, plain
from evenlag.tables.formats.describe.lines import Line

Shape = Literal[
    "group", "topic", "partition", "number", "count", "word", "id", "optional", "owner", "host", "assignment", "free"
]
Kind = Literal["offsets", "members", "state"]


class Heading(NamedTuple):
    """A column of such a table: its name in the snapshot tables, if any, and the form of its values."""

    field: str
    shape: Shape


HEADINGS = {
    "GROUP": Heading("group", "group"),
    "TOPIC": Heading("topic", "topic"),
    "PARTITION": Heading("partition", "partition"),
    "LEADER-EPOCH": Heading("", "number"),
    "CURRENT-OFFSET": Heading("current_offset", "number"),
    "LOG-START-OFFSET": Heading("log_start_offset", "number"),
    "LOG-END-OFFSET": Heading("log_end_offset", "number"),
    "LAG": Heading("lag", "number"),
    "CONSUMER-ID": Heading("consumer_id", "id"),
    "MEMBER-ID": Heading("consumer_id", "optional"),  # empty in rpk's text if the partition has no owner
    "OWNER": Heading("consumer_id", "owner"),
    "HOST": Heading("host", "host"),
    "CLIENT-ID": Heading("client_id", "optional"),
    "GROUP-INSTANCE-ID": Heading("group_instance_id", "optional"),
    "INSTANCE-ID": Heading("group_instance_id", "optional"),
    "RACK": Heading("rack", "optional"),
    "SUBSCRIBED-TOPICS": Heading("subscribed", "optional"),
    "ERROR": Heading("", "free"),
    "MESSAGE": Heading("", "free"),
    "#PARTITIONS": Heading("", "count"),
    "ASSIGNMENT": Heading("assignment", "assignment"),
    "CURRENT-ASSIGNMENT": Heading("assignment", "assignment"),
    "TARGET-ASSIGNMENT": Heading("", "assignment"),
    "CURRENT-EPOCH": Heading("generation", "number"),
    "TARGET-EPOCH": Heading("assignment_epoch", "number"),
    "MEMBER-EPOCH": Heading("generation", "number"),
    "UPGRADED": Heading("", "word"),
    "COORDINATOR (ID)": Heading("", "free"),
    "ASSIGNMENT-STRATEGY": Heading("", "optional"),
    "STATE": Heading("", "word"),
    "GROUP-EPOCH": Heading("", "number"),
    "TARGET-ASSIGNMENT-EPOCH": Heading("", "number"),
    "#MEMBERS": Heading("count", "count"),
}
"""The columns by the word in the header, for Kafka 0.10 to 4, `rpk` and kcl."""

_OTHER_NAMES = {
    "Group": "GROUP", "Topic": "TOPIC", "Pid": "PARTITION", "Offset": "CURRENT-OFFSET", "logSize": "LOG-END-OFFSET",
    "Lag": "LAG", "Owner": "OWNER", "CURRENT OFFSET": "CURRENT-OFFSET", "LOG END OFFSET": "LOG-END-OFFSET",
}  # fmt: skip
"""Names in ConsumerOffsetChecker, and in Kafka 0.8 and 0.9, which separate columns by commas."""

_BY_PLAIN = {plain(name): name for name in HEADINGS}
"""The columns by their names without case, blanks, hyphens and underscores."""

_OTHER_GROUPS = {
    "START-OFFSET": "a share group: its members share partitions without owning them, so there is nothing to assign",
    "OFFSET-LAG": "a Streams group: Kafka Streams assigns tasks, not partitions; evenlag plans consumer groups",
    "TOPOLOGY-EPOCH": "a Streams group: Kafka Streams assigns tasks, not partitions; evenlag plans consumer groups",
    "TASK-TYPE": "a Streams group: Kafka Streams assigns tasks, not partitions; evenlag plans consumer groups",
}
_REQUIRED: dict[Kind, tuple[str, ...]] = {
    "offsets": ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
    "members": ("CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"),
    "state": ("STATE", "#MEMBERS"),
}
_REQUIRED_OF_KCL = ("MEMBER-ID", "CLIENT-ID", "HOST", "ASSIGNMENT")  # for kcl's table of members
_ORDER = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "MEMBER-ID", "OWNER")
_LATER = {"CONSUMER-ID", "MEMBER-ID", "HOST", "CLIENT-ID", "LAG", "CURRENT-OFFSET", "LOG-END-OFFSET", "#PARTITIONS"}
_LAGS_OF_TOPICS = ["TOPIC", "LAG"]  # the header of `rpk group describe --print-lag-per-topic`
_LEAST = 3  # fewest known words of a header
_LEAST_OF_OTHERS = 5  # the same if the header is not in Kafka's upper case
_WORD = re.compile(r"COORDINATOR +\(ID\)|\S+")


@dataclass(frozen=True)
class Layout:
    """The columns and the layout of the rows below a header.

    Attributes
    ----------
    names : tuple of str
        Names of the columns, as in `HEADINGS`.
    delimiter : str
        Separator of columns: "|", "," or a tab; "" for blanks.
    starts : tuple of int
        Positions at which the names begin, if blanks separate them; else empty.
    quoted : bool
        True if the header is in a quote.
    """

    names: tuple[str, ...]
    delimiter: str
    starts: tuple[int, ...]
    quoted: bool

    @property
    def kind(self) -> Kind:
        """The kind of table."""
        if "TOPIC" in self.names or "PARTITION" in self.names:
            return "offsets"
        return "state" if "#MEMBERS" in self.names else "members"

    @property
    def headings(self) -> list[Heading]:
        """The columns, in order."""
        return [HEADINGS[name] for name in self.names]

    @property
    def has_group(self) -> bool:
        """True if rows name their group."""
        return "GROUP" in self.names

    @property
    def is_spread(self) -> bool:
        """True if at least two blanks separate any two names."""
        ends = [start + len(name) for start, name in zip(self.starts, self.names, strict=False)]
        return len(ends) > 1 and all(start - end > 1 for start, end in zip(self.starts[1:], ends, strict=False))

    @property
    def may_be_cut(self) -> bool:
        """True for an aligned table that ends with CONSUMER-ID: HOST and CLIENT-ID may have been cut off."""
        return self.kind == "offsets" and self.names[-1] == "CONSUMER-ID" and bool(self.starts)

    @property
    def is_rpk(self) -> bool:
        """True if the table is from `rpk` or kcl, which have the same columns."""
        return "MEMBER-ID" in self.names


def layout_of(line: Line, source: str) -> Layout | None:
    """Return the layout of a header; None for any other line.

    Raises
    ------
    SourceError
        The header is of an unknown table, or incomplete.
    """
    found = _words(line)
    if found is None:
        return None
    delimiter, words, starts = found
    names = [_OTHER_NAMES.get(word, _BY_PLAIN.get(plain(word), word)) for word in words]
    place = f"{source}, line {line.number}"
    for name in names:
        if name in _OTHER_GROUPS and len(names) > _LEAST:
            raise SourceError(f"{place}: {name} is a column of {_OTHER_GROUPS[name]}: {line}")
    unknown = [word for word, name in zip(words, names, strict=True) if name not in HEADINGS]
    if unknown:
        raise SourceError(
            f"{place}: header with unknown columns: {', '.join(unknown)}; remove them from the header and the rows, or "
            f"give the rows as CSV: {line}"
        )
    layout = Layout(tuple(names), delimiter, starts, line.quoted)
    owner = _owner_columns(names, aligned="  " in line.text.strip()) if layout.kind == "offsets" else ()
    required = _REQUIRED_OF_KCL if layout.kind == "members" and layout.is_rpk else _REQUIRED[layout.kind]
    lacking = [name for name in (*required, *owner) if name not in names]
    if lacking and names != _LAGS_OF_TOPICS:
        if delimiter:
            raise SourceError(
                f"{place}: a table without {', '.join(lacking)}; add these columns, or give the rows as CSV: {line}"
            )
        raise cut_off(line, lacking, source)
    ordered = [name for name in _ORDER if name in names]
    if len(set(names)) < len(names) or (not lacking and [name for name in names if name in ordered] != ordered):
        raise SourceError(
            f"{place}: header with a column twice, or with columns in another order than Kafka prints; give the text "
            f"as it was printed: {line}"
        )
    return None if lacking else layout


def _owner_columns(names: list[str], *, aligned: bool) -> tuple[str, ...]:
    """Return the required columns of the owner; an aligned text that lacks the last of them was cut."""
    if "OWNER" in names:
        return ()
    member = "MEMBER-ID" if "MEMBER-ID" in names else "CONSUMER-ID"
    if names[-1] == "CONSUMER-ID":  # Kafka 0.11 with --zookeeper; the rows show if it was cut
        aligned = False
    return (member, "HOST", "CLIENT-ID") if aligned or {"HOST", "CLIENT-ID"} & set(names) else (member,)


def cut_off(line: Line, lacking: list[str], source: str, *, wrapped: bool = False) -> SourceError:
    """Return the error for an incomplete header; `wrapped` if its other columns are on the next line."""
    cut = "" if wrapped else ", or columns were cut off"
    alone = "" if wrapped or "LAG" in lacking else ". For rows without owners, give them as CSV, and --members"
    return SourceError(
        f"{source}, line {line.number}: header without {', '.join(lacking)}: it was wrapped over several lines{cut}; "
        f"write the command's output to a file, so that each row is one line: {line}{alone}"
    )


def continuation(line: Line, after: Line | None) -> list[str]:
    """Return the columns of a header that was wrapped to the next line; empty if that line has other words."""
    words = [] if after is None else after.text.split()
    is_rest = all(word in HEADINGS for word in words) and not {*words} & {*line.text.split()}
    return words if is_rest and looks_like_a_header(line) else []


def rejoined(lines: Sequence[Line]) -> list[Line]:
    """Return the lines, with those headers in one line whose last word was broken at its hyphen."""
    found: list[Line] = []
    for line in lines:
        words = found[-1].text.split() if found else []
        is_header = len(words) > _LEAST and all(word in HEADINGS for word in words[:-1])
        if is_header and words[-1] not in HEADINGS and f"{words[-1]}{line.text.strip()}" in HEADINGS:
            found[-1] = replace(found[-1], text=found[-1].text + line.text.strip())
        else:
            found.append(line)
    return found


def looks_like_a_header(line: Line) -> bool:
    """Return whether a line looks like a header, complete and known or not."""
    return _words(line) is not None


def _words(line: Line) -> tuple[str, list[str], tuple[int, ...]] | None:
    """Return delimiter, words and positions of a line that looks like a header or a part of one, else None."""
    for delimiter in ("|", ",", "\t"):
        if delimiter in line.text:
            cells = cells_of(line.text, delimiter)
            if _is_header(cells):
                return delimiter, cells, ()
    matches = list(_WORD.finditer(line.spaced))
    words = [re.sub(" +", " ", match[0]) for match in matches]
    return ("", words, tuple(match.start() for match in matches)) if _is_header(words) else None


def _is_header(words: list[str]) -> bool:
    names = [_OTHER_NAMES.get(word, word) for word in words]
    known = sum(name in HEADINGS or name in _OTHER_GROUPS for name in names)
    if known >= _LEAST and 2 * known >= len(names):
        return True
    others = {_BY_PLAIN.get(plain(word)) for word in words}
    if len(others) >= _LEAST_OF_OTHERS and {"TOPIC", "PARTITION"} <= others and None not in others:
        return True
    return known == len(names) > 0 and bool(_LATER & set(words)) and (len(names) > 1 or "-" in names[0])


def check_other_table(line: Line, source: str) -> None:
    """Raise an error if a line is the header of a table that is not Kafka's, but has columns of offsets.

    Raises
    ------
    SourceError
        The message lists the columns, and those that are missing.
    """
    place = f"{source}, line {line.number}"
    for cells in (cells_of(line.text, "|"), cells_of(line.text, "\t"), re.split(r"\s{2,}", line.text.strip())):
        if len(cells) > 1 and len(matched(cells, "offsets", place)) >= min(_LEAST, len(cells)):
            check_headings(cells, "offsets", place, absent=["group"])
            raise SourceError(f"{place}: a table of {', '.join(cells)}; give it as CSV, with commas between columns")


def cells_of(text: str, delimiter: str) -> list[str]:
    """Split a line at delimiters, and strip blanks and the marks of Markdown and CSV from each cell."""
    text = text.replace("│", "|")
    if delimiter == "|":
        text = text.strip().removeprefix("|").removesuffix("|")
    if delimiter == "," and '"' in text:
        return [cell.strip() for cell in next(csv.reader([text.strip()], skipinitialspace=True))]
    return [_unmarked(cell.strip()) for cell in text.split(delimiter)]


def _unmarked(cell: str) -> str:
    for mark in ("**", "`", '"'):
        if len(cell) > 2 * len(mark) and cell.startswith(mark) and cell.endswith(mark):
            return cell[len(mark) : -len(mark)].strip()
    return cell
