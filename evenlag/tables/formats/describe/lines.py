"""Lines of a pasted text, without colour codes, quote marks and invisible characters."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BREAK = re.compile(r"\r\n|\n|\r")  # str.splitlines has more separators, which names may contain
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])|\^\[\[[0-9;]*[mK]")
_INVISIBLE = re.compile("[\u200b\u2060\ufeff\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BLANK = re.compile("[\u00a0\u2007\u202f]")
_QUOTE = re.compile(r"\s*(?:>\s?)+")
_NOTHING = re.compile(r"[\W_]*|\s*(```|~~~)\s*\w*\s*")
_ELLIPSIS = re.compile(r"[\W_]*(?:\.\.\.|…|⋮)[\W_]*")
_LEFT_OUT = re.compile(
    r"\W*(?:and )?(?:\d[\d,.]*|some|many) more(?: (?:rows?|lines?|partitions?|entries))?\W*", re.IGNORECASE
)
_TAB = 8  # columns
_MOST_SHOWN = 160  # characters of a line in a message


@dataclass(frozen=True)
class Line:
    """A line of a text.

    Attributes
    ----------
    number : int
        Line number, from 1.
    raw, text : str
        The original line, and the line without colour codes, quote marks and invisible characters.
    quoted : bool
        True if the line had quote marks (`> `).
    width : int
        Width in columns, including trailing blanks.
    """

    number: int
    raw: str
    text: str
    quoted: bool
    width: int

    @property
    def spaced(self) -> str:
        """The text with tabs expanded, so that positions of columns can be compared."""
        return self.text.expandtabs(_TAB)

    @property
    def is_decoration(self) -> bool:
        """True if the line has only blanks and punctuation, such as a code fence or the rule below a header."""
        return _NOTHING.fullmatch(self.text) is not None and not self.is_ellipsis

    @property
    def is_ellipsis(self) -> bool:
        """True if the line stands for omitted lines: `...`, `(12 more rows)`."""
        return any(pattern.fullmatch(self.text) is not None for pattern in (_ELLIPSIS, _LEFT_OUT))

    def __str__(self) -> str:
        text = self.text.strip()
        return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def lines_of(text: str) -> list[Line]:
    """Split a text into lines."""
    found = []
    for number, raw in enumerate(_BREAK.split(text), start=1):
        plain = _INVISIBLE.sub("", _BLANK.sub(" ", _ESCAPE.sub("", raw)))
        quote = _QUOTE.match(plain.rstrip())
        text = plain[quote.end() :] if quote else plain
        found.append(Line(number, raw, text.rstrip(), quote is not None, len(text.expandtabs(_TAB))))
    return found
