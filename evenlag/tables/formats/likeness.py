"""Texts that people give in place of a description of a group, by signs in their lines."""

from __future__ import annotations

import json
import re

_DESCRIBE = "give the text of `kafka-consumer-groups --describe --group NAME`"
_LIKE = (
    (r"\s*<(?:!doctype|html|head|table)\b", "a web page; save the text or the JSON of the tool, not its page"),
    (r"(?:Exception in thread|Traceback \(most|Caused by:|Error\b|error:|fatal:)", "an error of another program"),
    (r"\s*Topic:\s*\S+\s+(?:TopicId|PartitionCount|Partition):", f"`kafka-topics --describe`; {_DESCRIBE}"),
    (r"[\w.-]+:\d+:\d+\s*$", f"`kafka-get-offsets`, which has no commits of a group; {_DESCRIBE}"),
    (r"[\w-]+:\s*$|\s*- [\w-]+:", "YAML; give the JSON or the table that the tool prints"),
)


def likeness(text: str) -> str:
    """Return what a text looks like, with advice; empty if nothing is known of it.

    Examples
    --------
    >>> likeness("- group: billing")
    '; it looks like YAML; give the JSON or the table that the tool prints'
    >>> likeness("garbage")
    ''
    """
    if text.lstrip().startswith("{"):
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            before = text[max(error.pos - 24, 0) : error.pos]
            return f"; it looks like JSON, but is invalid after {before!r} ({error.msg})"
        except (ValueError, RecursionError):
            return "; it looks like JSON, but its numbers or brackets are too long to read"
    first = next((line for line in text.splitlines() if line.strip()), "")
    name = next((name for pattern, name in _LIKE if re.match(pattern, first, re.ASCII | re.IGNORECASE)), None)
    return "" if name is None else f"; it looks like {name}"
