"""The process that answers calls, one after another, until its input ends.

It runs alone what may be slow, large or broken: the server stays responsive, and ends it where a call is cancelled.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from contextlib import suppress
from typing import Any

from evenlag.errors import EvenlagError, lacking
from evenlag.mcp.access import Access
from evenlag.mcp.cutting import LONGEST_TEXT, cut_document, cut_report, cut_text
from evenlag.mcp.tools import TOOLS
from evenlag.model.processes import end_with

ERROR, DOCUMENT, TEXT = "error", "document", "text"
GRACE = 2.0  # seconds in which an interrupted search ends the processes that it started


def serve(parent: int) -> None:
    """Read a call from each line of standard input, and write its answer as a line to standard output.

    An interrupt during a call ends its search; at other times it ends the process. The process was started to ignore
    interrupts, for the time of the imports. It ends soon after the process that started it, of the id `parent`, even if
    that one ended during the imports.
    """
    signal.signal(signal.SIGINT, _leave)
    end_with(parent, _interrupt)
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - for processes that a search starts
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    with suppress(BrokenPipeError, KeyboardInterrupt):  # the server has gone, or the call was cancelled
        for line in calls:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            answer = answered(json.loads(line))
            signal.signal(signal.SIGINT, _leave)
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()


def _leave(*_: object) -> None:
    os._exit(0)


def _interrupt() -> None:
    """Interrupt a running search, and give it time to end its processes."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE)


def answered(call: dict[str, Any]) -> dict[str, Any]:
    """Return the document and the text that answer a call, or its error."""
    access = Access(**call["access"])
    try:
        answer = TOOLS[call["tool"]].run(access, call["arguments"], call["longest"])
        return {DOCUMENT: cut_document(answer.document, call["rows"]), TEXT: cut_report(answer.text)}
    except EvenlagError as error:
        text = str(error)
    except Exception as error:
        known = lacking(error) if isinstance(error, ModuleNotFoundError) else None
        if known is None:
            traceback.print_exc(file=sys.stderr)
        text = known or f"evenlag failed ({type(error).__name__}: {error}); please report it"
    return {ERROR: cut_text(text, LONGEST_TEXT)}
