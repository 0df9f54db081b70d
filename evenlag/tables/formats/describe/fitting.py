"""Recognition of rows: the fields of a line must fit the columns of a header in exactly one way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evenlag.tables.formats.describe.consistency import HOST, IP, MEMBER, Fields, fault, is_shaped, sound
from evenlag.tables.formats.describe.headers import Heading, Layout, Shape, cells_of
from evenlag.tables.formats.describe.lines import Line

_GLUED = re.compile(rf"(\S*[^\s/])(/{IP})")
_NUMBERISH = re.compile(r"[-+]?[0-9][0-9.,_'’]*[A-Za-z%]?|-|unknown|none|null|n/a|\?", re.IGNORECASE)
_STATE = {
    "GROUP": r"(?P<group>\S.*?)\s+",
    "COORDINATOR (ID)": r"\S+:[0-9]+\s+\([0-9]+\)\s+",
    "ASSIGNMENT-STRATEGY": r"(?:(?P<assignor>\S+)\s+)?",
    "STATE": r"(?P<state>\S+)\s+",
    "GROUP-EPOCH": r"(?P<group_epoch>[0-9]+|-)\s+",
    "TARGET-ASSIGNMENT-EPOCH": r"(?P<assignment_epoch>[0-9]+|-)\s+",
    "#MEMBERS": r"(?P<count>[0-9]+)\s*",
}
_LEAST_FILLED = 3  # fields of a row
_MOST_WORDS = 60  # upper limit of words in a row


@dataclass(frozen=True)
class Word:
    """A word of a line, and the number of blanks before it."""

    text: str
    gap: int


@dataclass
class Known:
    """Groups and topics in the rows of a text, which help to tell damaged rows from other programs' lines."""

    groups: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)

    def add(self, row: Mapping[str, str | None]) -> None:
        """Add the names in a row."""
        self.groups |= {row.get("group") or ""} - {""}
        self.topics |= {row.get("topic") or ""} - {""}


def fitted(line: Line, layout: Layout) -> Fields | None:
    """Return the fields of a line if it is a row below the header; None if it is not a row or is ambiguous."""
    if line.quoted != layout.quoted:
        return None
    if layout.kind == "state":
        match = re.fullmatch("".join(_STATE.get(name, r"\S+\s+") for name in layout.names), f"{line.text.strip()} ")
        return match and {name: None if value == "-" else value for name, value in match.groupdict().items()}
    if layout.delimiter:
        cells = cells_of(line.text, layout.delimiter)
        if len(cells) == len(layout.names):
            return sound([cell or "-" for cell in cells], layout, given=True)
        if layout.delimiter != "\t":
            return None
    words = words_of(line)
    if layout.is_rpk and layout.is_spread:
        words = _joined_by_one_blank(words)
    if len(words) > _MOST_WORDS:
        return None
    if len(words) == len(layout.names) and (row := sound([word.text for word in words], layout)) is not None:
        return row
    by_place = _by_place(line.spaced, layout)
    by_form = _by_form(words, layout) or _by_form(_unglued(words), layout)
    if by_place is not None:
        return by_place if not by_form or by_place in by_form else None
    return by_form[0] if len(by_form) == 1 else None


def words_of(line: Line) -> list[Word]:
    """Split a line into words at blanks."""
    found, end = [], 0
    for match in re.finditer(r"\S+", line.spaced):
        found.append(Word(match[0], match.start() - end))
        end = match.end()
    return found


# ---- ways to find the fields -----------------------------------------------------------------------------------------


def _by_place(text: str, layout: Layout) -> Fields | None:
    """Return the fields of a line cut at the positions of the header's names; None if they are not consistent.

    Ids may contain blanks then.
    """
    if not layout.starts or text[: layout.starts[0]].strip():
        return None
    values = []
    for start, end, heading in zip(layout.starts, [*layout.starts[1:], None], layout.headings, strict=True):
        value = text[start:end]
        if start and len(text) > start - 1 and text[start - 1] != " ":
            return None
        if not value.strip():
            value = ""
        elif value[0] == " " or ("  " in value.strip() and heading.shape != "free"):
            return None
        values.append(value.strip())
    return sound(values, layout, given=True)


def _by_form(words: Sequence[Word], layout: Layout) -> list[Fields]:
    """Return all different ways to distribute the words over the columns that form a consistent row."""
    found: list[Fields] = []
    for values in _shared_out(words, layout.headings):
        row = sound(values, layout)
        if row is not None and row not in found:
            found.append(row)
    return found


def _shared_out(words: Sequence[Word], headings: Sequence[Heading]) -> Iterator[list[str]]:
    """Yield all ways to distribute words over columns in order, by the form of each value."""
    if not headings:
        if not words:
            yield []
        return
    shape = headings[0].shape
    least, most = _LENGTHS.get(shape, (1, 1))
    for taken in range(least, min(len(words), most) + 1):
        value = _joined(words[:taken], shape)
        if value is None:
            break
        if taken and not is_shaped(value, shape):
            if shape in _LENGTHS:
                continue
            break
        for rest in _shared_out(words[taken:], headings[1:]):
            yield [value, *rest]


_LENGTHS: dict[Shape, tuple[int, int]] = {
    "id": (1, _MOST_WORDS),
    "owner": (1, _MOST_WORDS),
    "optional": (0, _MOST_WORDS),
    "assignment": (0, _MOST_WORDS),
    "free": (0, _MOST_WORDS),
    "host": (0, 1),
}
"""Smallest and largest number of words in a value, if not exactly one."""


def _joined(words: Sequence[Word], shape: Shape) -> str | None:
    """Join words to one value; None if more than one blank between them shows that they are several values."""
    if shape not in ("free", "assignment") and any(word.gap != 1 for word in words[1:]):
        return None
    return " ".join(word.text for word in words)


def _joined_by_one_blank(words: Sequence[Word]) -> list[Word]:
    """Join words separated by one blank, because `rpk` separates columns by at least two."""
    found: list[Word] = []
    for word in words:
        if found and word.gap == 1:
            found[-1] = Word(f"{found[-1].text} {word.text}", found[-1].gap)
        else:
            found.append(word)
    return found


def _unglued(words: Sequence[Word]) -> list[Word]:
    """Separate ids from hosts, which Kafka 0.10.2 to 1.0 printed without a blank between them (KAFKA-6158)."""
    found: list[Word] = []
    for word in words:
        match = _GLUED.fullmatch(word.text)
        found += [word] if match is None else [Word(match[1], word.gap), Word(match[2], 0)]
    return found


# ---- lines that are not rows -----------------------------------------------------------------------------------------


def fault_of(line: Line, layout: Layout) -> str:
    """Return why a line with one field for each column is not a row; empty for any other line."""
    if layout.delimiter and layout.delimiter in line.text:
        values = [cell or "-" for cell in cells_of(line.text, layout.delimiter)]
    else:
        values = [word.text for word in words_of(line)]
    return fault(values, layout) if len(values) == len(layout.names) else ""


def may_be_a_row(line: Line, layout: Layout, known: Known) -> bool:
    """Return whether a line that does not fit the header may be a row that was cut, wrapped, realigned or extended."""
    words = [word.text for word in words_of(line)]
    if layout.delimiter and layout.delimiter in line.text:
        cells = cells_of(line.text, layout.delimiter)
        if _fills(cells, layout) or any(_are_numbers(cells[at : at + 2]) for at in range(len(cells) - 1)):
            return True
    if layout.kind == "members":
        hosts = [at for at, word in enumerate(words) if at and HOST.fullmatch(word)]
        if layout.has_group and words[1:] and words[0] in known.groups:  # even if it was cut within the member id
            return True
        return (bool(hosts) and hosts[0] <= len(layout.names)) or any(map(MEMBER.fullmatch, words))
    if layout.kind == "state":
        return False
    return (
        _has_numbers_of_a_row(words, layout)
        or _begins_like_a_row(words, layout, known)
        or (bool(known.topics) and _lacks_its_topic(words, layout))
    )


def _fills(cells: Sequence[str], layout: Layout) -> bool:
    """Return whether a line has a field for each column, and more in them than another program's message."""
    if len(cells) != len(layout.names):
        return False
    partition = cells[layout.names.index("PARTITION")] if layout.kind == "offsets" else ""
    return partition.isdigit() or sum(map(bool, cells)) >= _LEAST_FILLED


def _begins_like_a_row(words: Sequence[str], layout: Layout, known: Known) -> bool:
    """Return whether a topic is in its column, followed by a partition or by the end of the line."""
    at = layout.names.index("TOPIC") if not layout.delimiter else 0
    if len(words) <= at:
        return False
    topic, more = words[at], words[at + 1 :]
    is_known = topic in known.topics and (at == 0 or words[0] in known.groups or bool(more))
    if not more:
        return is_known
    if is_known and _NUMBERISH.fullmatch(more[0]):
        return True
    if not _NUMBERISH.fullmatch(topic) and _are_numbers(more[:2]) and len(more) > 1:
        return True
    after = next((place for place, word in enumerate(words) if place >= at and word in known.topics), len(words))
    return any(_are_numbers(words[place : place + 2]) for place in range(after + 1, len(words) - 1))


def _lacks_its_topic(words: Sequence[str], layout: Layout) -> bool:
    """Return whether a line begins with the numbers of a row, and an owner, nothing, or a matching lag follows."""
    wanted = sum(heading.shape in ("number", "partition") for heading in layout.headings)
    numbers, more = words[:wanted], words[wanted:]
    if len(numbers) < wanted or not all(map(_NUMBERISH.fullmatch, numbers)) or not _are_numbers(numbers):
        return False
    if not more or any(MEMBER.fullmatch(word) or HOST.search(word) for word in more):
        return True
    names = [heading.field for heading in layout.headings if heading.shape in ("number", "partition")]
    row = {name: number for name, number in zip(names, numbers, strict=True) if number.isdigit()}
    ends = [row.get(name) for name in ("current_offset", "log_end_offset", "lag")]
    return None not in ends and int(ends[1] or 0) - int(ends[0] or 0) == int(ends[2] or 0)


def _has_numbers_of_a_row(words: Sequence[str], layout: Layout) -> bool:
    """Return whether a word, which may be a number, is followed by as many numbers as a row has."""
    wanted = sum(heading.shape in ("number", "partition") for heading in layout.headings)
    length = 0
    for at, word in enumerate(words):
        length = length + 1 if _NUMBERISH.fullmatch(word) else 0
        enough = length >= wanted if at >= length else length > wanted
        if enough and any(char.isdigit() for word in words[at - length + 1 : at + 1] for char in word):
            return True
    return False


def _are_numbers(words: Sequence[str]) -> bool:
    return all(map(_NUMBERISH.fullmatch, words)) and any(char.isdigit() for word in words for char in word)
