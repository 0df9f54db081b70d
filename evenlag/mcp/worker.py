"""The process that answers calls, one after another, until its input ends.

It runs alone what may be slow, large or broken: the server stays responsive, and ends it where a call is cancelled.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from contextlib import suppress
from typing import Any

from evenlag.errors import EvenlagError, lacking
from evenlag.live.solver_process import end_with
from evenlag.mcp.access import Access
from evenlag.mcp.cutting import LONGEST_TEXT, cut_document, cut_report, cut_text
from evenlag.mcp.tools import TOOLS

ERROR, DOCUMENT, TEXT = "error", "document", "text"


def serve() -> None:
    """Read a call from each line of standard input, and write its answer as a line to standard output."""
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - for processes that a search starts
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    with suppress(KeyboardInterrupt, BrokenPipeError):  # the call was cancelled
        for line in calls:
            answers.write(json.dumps(answered(json.loads(line))).encode() + b"\n")
            answers.flush()
    os._exit(0)  # another interrupt would print a traceback while the interpreter shuts down


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
