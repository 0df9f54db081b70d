"""Headers of the tables that describe consumer groups: which words they have, and what stands below each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from evenlag.errors import SourceError
from evenlag.tables.formats.describe.lines import Line

Shape = Literal[
    "group", "topic", "partition", "number", "count", "word", "id", "optional", "owner", "host", "assignment", "free"
]
Kind = Literal["offsets", "members", "state"]


class Heading(NamedTuple):
    """A column of such a table: the column of ours that it is, if any, and the form of its values."""

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
    "MEMBER-ID": Heading("consumer_id", "optional"),  # rpk leaves it empty where nobody holds the partition
    "OWNER": Heading("consumer_id", "owner"),
    "HOST": Heading("host", "host"),
    "CLIENT-ID": Heading("client_id", "optional"),
    "GROUP-INSTANCE-ID": Heading("group_instance_id", "optional"),
    "INSTANCE-ID": Heading("group_instance_id", "optional"),
    "ERROR": Heading("", "free"),
    "#PARTITIONS": Heading("", "count"),
    "ASSIGNMENT": Heading("assignment", "assignment"),
    "CURRENT-ASSIGNMENT": Heading("assignment", "assignment"),
    "TARGET-ASSIGNMENT": Heading("", "assignment"),
    "CURRENT-EPOCH": Heading("", "number"),
    "TARGET-EPOCH": Heading("", "number"),
    "MEMBER-EPOCH": Heading("", "number"),
    "UPGRADED": Heading("", "word"),
    "COORDINATOR (ID)": Heading("", "free"),
    "ASSIGNMENT-STRATEGY": Heading("", "optional"),
    "STATE": Heading("", "word"),
    "GROUP-EPOCH": Heading("", "number"),
    "TARGET-ASSIGNMENT-EPOCH": Heading("", "number"),
    "#MEMBERS": Heading("count", "count"),
}
"""By the word in the header. Kafka 0.10 to 4, and `rpk`."""

_OTHER_NAMES = {
    "Group": "GROUP", "Topic": "TOPIC", "Pid": "PARTITION", "Offset": "CURRENT-OFFSET", "logSize": "LOG-END-OFFSET",
    "Lag": "LAG", "Owner": "OWNER", "CURRENT OFFSET": "CURRENT-OFFSET", "LOG END OFFSET": "LOG-END-OFFSET",
}  # fmt: skip
"""ConsumerOffsetChecker's, and those of Kafka 0.8 and 0.9, which separate columns by commas."""

_OTHER_GROUPS = {
    "START-OFFSET": "a share group: its members share the partitions, nobody owns one, so there is nothing to assign",
    "OFFSET-LAG": "a Streams group: Kafka Streams hands out tasks, not partitions; evenlag plans consumer groups",
    "TOPOLOGY-EPOCH": "a Streams group: Kafka Streams hands out tasks, not partitions; evenlag plans consumer groups",
    "TASK-TYPE": "a Streams group: Kafka Streams hands out tasks, not partitions; evenlag plans consumer groups",
}
_REQUIRED: dict[Kind, tuple[str, ...]] = {
    "offsets": ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
    "members": ("CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"),
    "state": ("STATE", "#MEMBERS"),
}
_ORDER = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "MEMBER-ID", "OWNER")
_LATER = {"CONSUMER-ID", "MEMBER-ID", "HOST", "CLIENT-ID", "LAG", "CURRENT-OFFSET", "LOG-END-OFFSET", "#PARTITIONS"}
_LAGS_OF_TOPICS = ["TOPIC", "LAG"]  # the header of `rpk group describe --print-lag-per-topic`
_LEAST = 3  # known words that make a line a header
_WORD = re.compile(r"COORDINATOR +\(ID\)|\S+")


@dataclass(frozen=True)
class Layout:
    """What a header says of the rows that it governs.

    Attributes
    ----------
    names : tuple of str
        Names of the columns, by which `HEADINGS` knows them.
    delimiter : str
        What separates columns: "|", "," or a tab. "": blanks.
    starts : tuple of int
        Where the names begin, if blanks separate them.
    quoted : bool
        The header stands in a quote.
    """

    names: tuple[str, ...]
    delimiter: str
    starts: tuple[int, ...]
    quoted: bool

    @property
    def kind(self) -> Kind:
        """Which table it is."""
        if "TOPIC" in self.names or "PARTITION" in self.names:
            return "offsets"
        return "state" if "#MEMBERS" in self.names else "members"

    @property
    def headings(self) -> list[Heading]:
        """What the columns are."""
        return [HEADINGS[name] for name in self.names]

    @property
    def has_group(self) -> bool:
        """Whether rows name their group."""
        return "GROUP" in self.names

    @property
    def is_spread(self) -> bool:
        """Whether two blanks at least stand between any two names."""
        ends = [start + len(name) for start, name in zip(self.starts, self.names, strict=False)]
        return len(ends) > 1 and all(start - end > 1 for start, end in zip(self.starts[1:], ends, strict=False))

    @property
    def may_be_cut(self) -> bool:
        """Whether blanks align it and it ends in CONSUMER-ID, so that HOST and CLIENT-ID may have been cut off."""
        return self.kind == "offsets" and self.names[-1] == "CONSUMER-ID" and bool(self.starts)

    @property
    def is_rpk(self) -> bool:
        """Whether `rpk` wrote it."""
        return "MEMBER-ID" in self.names


def layout_of(line: Line, source: str) -> Layout | None:
    """Return what a header says, and None of any other line.

    Raises
    ------
    SourceError
        It is the header of a table that is not known, or a part of one.
    """
    found = _words(line)
    if found is None:
        return None
    delimiter, words, starts = found
    names = [_OTHER_NAMES.get(word, word) for word in words]
    place = f"{source}, line {line.number}"
    for name in names:
        if name in _OTHER_GROUPS and len(names) > _LEAST:
            raise SourceError(f"{place}: {name} is a column of {_OTHER_GROUPS[name]}: {line}")
    unknown = [word for word, name in zip(words, names, strict=True) if name not in HEADINGS]
    if unknown:
        raise SourceError(
            f"{place}: a header with columns that are not known: {', '.join(unknown)}; give the text as it was printed "
            f"(no line wrapped, nothing put before it), or these rows as CSV: {line}"
        )
    layout = Layout(tuple(names), delimiter, starts, line.quoted)
    owner = _owner_columns(names, aligned="  " in line.text.strip()) if layout.kind == "offsets" else ()
    lacking = [name for name in (*_REQUIRED[layout.kind], *owner) if name not in names]
    if lacking and names != _LAGS_OF_TOPICS:
        raise cut_off(line, lacking, source)
    ordered = [name for name in _ORDER if name in names]
    if len(set(names)) < len(names) or (not lacking and [name for name in names if name in ordered] != ordered):
        raise SourceError(
            f"{place}: a header that has a column twice, or its columns in another order than Kafka; give the text as "
            f"it was printed: {line}"
        )
    return None if lacking else layout


def _owner_columns(names: list[str], *, aligned: bool) -> tuple[str, ...]:
    """Return the columns of the owner that must be there; an aligned text without the last of them was cut."""
    if "OWNER" in names:
        return ()
    member = "MEMBER-ID" if "MEMBER-ID" in names else "CONSUMER-ID"
    if names[-1] == "CONSUMER-ID":  # Kafka 0.11 with --zookeeper; rows tell whether it was cut
        aligned = False
    return (member, "HOST", "CLIENT-ID") if aligned or {"HOST", "CLIENT-ID"} & set(names) else (member,)


def cut_off(line: Line, lacking: list[str], source: str) -> SourceError:
    """Return the error for a header that is only a part of one."""
    return SourceError(
        f"{source}, line {line.number}: a header without {', '.join(lacking)}: it is wrapped over several lines, or "
        f"columns were cut off; give the text as it was printed: {line}"
    )


def looks_like_a_header(line: Line) -> bool:
    """Whether a line has the words of a header, known or not."""
    return _words(line) is not None


def _words(line: Line) -> tuple[str, list[str], tuple[int, ...]] | None:
    """Return the words of a line that looks like a header, or like a part of one."""
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
    if known >= _LEAST:
        return 2 * known >= len(names)
    return known == len(names) > 0 and bool(_LATER & set(words)) and (len(names) > 1 or "-" in names[0])


def cells_of(text: str, delimiter: str) -> list[str]:
    """Return what stands between delimiters, without blanks and the marks of Markdown and CSV around it."""
    text = text.replace("│", "|")
    if delimiter == "|":
        text = text.strip().removeprefix("|").removesuffix("|")
    return [_unmarked(cell.strip()) for cell in text.split(delimiter)]


def _unmarked(cell: str) -> str:
    for mark in ("**", "`", '"'):
        if len(cell) > 2 * len(mark) and cell.startswith(mark) and cell.endswith(mark):
            return cell[len(mark) : -len(mark)].strip()
    return cell
