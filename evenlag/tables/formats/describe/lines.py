"""Lines of a pasted text, without colour codes, quote marks, times before each line and invisible characters."""

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
_AT = re.compile(
    r"(?P<at>\[?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"  # kubectl logs --timestamps
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d\d:\d\d:\d\d(?:[.,]\d+)?)\]?)"  # ts, ts -s
    r"(?: (?:TRACE|DEBUG|INFO|WARN|ERROR))?(?: |$)"
)
_LEAST_TIMED = 2  # lines with text
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
        The original line, and the line without colour codes, quote marks, time and invisible characters.
    quoted : bool
        True if the line had quote marks (`> `).
    width : int
        Width in columns, including trailing blanks.
    at : str
        The time before the text, if every line of the text has one.
    """

    number: int
    raw: str
    text: str
    quoted: bool
    width: int
    at: str = ""

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
        """True if the line marks omitted lines: `...`, `(12 more rows)`."""
        return any(pattern.fullmatch(self.text) is not None for pattern in (_ELLIPSIS, _LEFT_OUT))

    def __str__(self) -> str:
        text = self.text.strip()
        return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def lines_of(text: str) -> list[Line]:
    r"""Split a text into lines.

    Examples
    --------
    >>> [(line.at, line.text) for line in lines_of("10:00:01 GROUP  TOPIC\n10:00:01 g      t")]
    [('10:00:01', 'GROUP  TOPIC'), ('10:00:01', 'g      t')]
    """
    raws = _BREAK.split(text)
    plain = [_INVISIBLE.sub("", _BLANK.sub(" ", _ESCAPE.sub("", raw))) for raw in raws]
    times = [_AT.match(each) for each in plain]
    filled = [time for each, time in zip(plain, times, strict=True) if each.strip()]
    timed = len(filled) >= _LEAST_TIMED and all(filled)
    found = []
    for number, (raw, each, time) in enumerate(zip(raws, plain, times, strict=True), start=1):
        at, rest = (time["at"], each[time.end() :]) if timed and time else ("", each)
        quote = _QUOTE.match(rest.rstrip())
        rest = rest[quote.end() :] if quote else rest
        found.append(Line(number, raw, rest.rstrip(), quote is not None, len(rest.expandtabs(_TAB)), at))
    return found
