"""Answers of bounded size: long lists, texts and mappings are cut, and the answer says by how much."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

MOST_CHARACTERS = 50_000  # longest document, as JSON
MOST_FIELDS = 64  # fields per object; only objects with names as keys, such as loads by member, have more
LONGEST_TEXT = 2_000  # longest text in a document
MOST_LINES = 120  # longest report next to a document
MOST_REPORT = 12_000  # its most characters
LEFT_OUT = "left_out"


def cut_document(document: dict[str, Any], rows: int) -> dict[str, Any]:
    """Return a document with lists of at most `rows` values, or fewer where it would still be too long.

    If anything is cut, `left_out` has the number of values left out, by the document's fields.
    """
    while True:
        left_out = Counter[str]()
        small = {name: _cut(value, rows, left_out, name) for name, value in document.items()}
        if left_out:
            small[LEFT_OUT] = dict(left_out)
        if not rows or len(json.dumps(small)) <= MOST_CHARACTERS:
            return small
        rows //= 2


def _cut(value: Any, rows: int, left_out: Counter[str], field: str) -> Any:
    """Return a value of a field of the document with fewer values in it, and add their number to `left_out`."""
    if isinstance(value, str):
        return cut_text(value, LONGEST_TEXT)
    if not isinstance(value, dict | list | tuple):
        return value
    most = max(rows, MOST_FIELDS) if isinstance(value, dict) else rows
    if len(value) > most:
        left_out[field] += len(value) - most
    if isinstance(value, dict):
        kept = [*value.items()][:most]
        return {cut_text(name, LONGEST_TEXT): _cut(each, rows, left_out, field) for name, each in kept}
    return [_cut(each, rows, left_out, field) for each in value[:most]]


def cut_text(text: str, most: int) -> str:
    """Return a text of at most `most` characters, with the number of those left out.

    Characters that UTF-8 cannot encode, as in names of files, become question marks.
    """
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def cut_report(text: str) -> str:
    """Return the first lines of a report."""
    lines = text.splitlines()
    more = len(lines) - MOST_LINES
    shown = "\n".join([*lines[:MOST_LINES], *([f"… {more:,} more lines"] if more > 0 else [])])
    return cut_text(shown, MOST_REPORT)
