"""JSON documents in a text: one, or several in sequence, such as concatenated pages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model.problem_files import unique
from evenlag.model.values import shown

_SPACE = " \t\r\n\ufeff"
_DECODER = json.JSONDecoder(object_pairs_hook=unique)


def first_document(text: str) -> Any:
    """Return the first JSON document; None if the text does not begin with one.

    Examples
    --------
    >>> first_document('{"error": false} {"error": true}')
    {'error': False}
    """
    begin = len(text) - len(text.lstrip(_SPACE))
    if text[begin : begin + 1] not in ("{", "["):
        return None
    try:
        return _DECODER.raw_decode(text, begin)[0]
    except (ValueError, RecursionError):  # InvalidProblemError is one too
        return None


def documents(text: str, source: str) -> Iterator[tuple[int, Any]]:
    """Yield the JSON documents of a text, each with the line on which it begins.

    Raises
    ------
    SourceError
        The text is not JSON from some line on. The message names the line.
    """
    at = line = 0
    while True:
        begin = len(text) - len(text[at:].lstrip(_SPACE))
        line += text.count("\n", at, begin)
        if begin >= len(text):
            return
        try:
            document, end = _DECODER.raw_decode(text, begin)
        except json.JSONDecodeError as error:
            raise SourceError(
                f"{source}, line {error.lineno}: not valid JSON ({error.msg}); give the complete response"
            ) from None
        except InvalidProblemError as error:
            raise SourceError(f"{source}, in the JSON that begins on line {line + 1}: {error}") from None
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{source}, line {line + 1}: cannot be read as JSON: {error}") from None
        yield line + 1, document
        line += text.count("\n", begin, end)
        at = end


def check_texts(item: Mapping[str, Any], names: Iterable[str], place: str) -> None:
    """Raise an error unless these fields of an item are texts, null or absent.

    Raises
    ------
    SourceError
        The message names the place and the field.
    """
    for name in names:
        if not isinstance(item.get(name), str | None):
            raise SourceError(f"{place}: {name} must be a text, not {shown(item[name])}")


def whole_number(value: object) -> int | None:
    """Return a JSON number without a fraction, such as 25 or 25.0, as an int; None for any other value."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
