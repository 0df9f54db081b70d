"""A call in a process of its own: what kills that process does not kill the caller's."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

from evenlag.errors import EvenlagError

T = TypeVar("T")


class ProcessDiedError(EvenlagError):
    """The process of a call ended without an answer."""


def in_own_process(call: Callable[[], T]) -> T:
    """Return what a call returns, made in a forked process.

    Raises
    ------
    ProcessDiedError
        The process ended before: killed, out of memory, or a crash in native code.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, call))
    process.start()
    sender.close()
    try:
        answer: T = receiver.recv()
    except EOFError:
        process.join()
        code = process.exitcode or 0
        how = f"signal {-code}" if code < 0 else f"status {code}"
        raise ProcessDiedError(f"its process ended with {how}: out of memory, or a crash") from None
    finally:
        receiver.close()
    process.join()
    return answer


def _answer(sender: Connection, call: Callable[[], T]) -> None:
    sender.send(call())
    sender.close()
