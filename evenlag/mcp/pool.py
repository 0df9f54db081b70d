"""The processes of a server that answer its calls: started ahead, reused, and ended with a call that is cancelled."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import anyio
from anyio.abc import ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from evenlag.errors import EvenlagError
from evenlag.mcp.access import Access
from evenlag.mcp.worker import GRACE
from evenlag.model.processes import kill_group

SERVE = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = {path!r}; "
    "from evenlag.mcp.worker import serve; serve({parent})"
)
MOST_CALLS = max(os.cpu_count() or 1, 2)  # calls at a time; others wait
MOST_BYTES = 2**24  # longest answer; answers are cut far below that
READING_SECONDS = 60.0  # extra time for starting, reading and reporting, beyond the search


class CallError(EvenlagError):
    """Error for a call whose process gave no answer; the message gives the reason."""


@dataclass(frozen=True)
class _Worker:
    process: Process
    calls: ByteSendStream
    answers: BufferedByteReceiveStream


@dataclass
class Pool:
    """Processes that answer calls.

    Attributes
    ----------
    time_limit : float
        Most seconds of a search.
    rows : int
        Most values per list in an answer.
    """

    access: Access
    time_limit: float
    rows: int
    _idle: list[_Worker] = field(default_factory=list)
    _limiter: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(MOST_CALLS))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Pool]:
        """Start a process ahead of the first call; end all of them after the block."""
        self._idle.append(await _started())
        try:
            yield self
        finally:
            while self._idle:
                await _end(self._idle.pop(), idle=True)

    async def answer(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of a tool, as `worker.answered` gives it.

        Raises
        ------
        CallError
            The arguments cannot be passed on, or the process took too long or died.
        """
        call = {"tool": tool, "arguments": arguments, "access": asdict(self.access), "longest": self.time_limit,
                "rows": self.rows}  # fmt: skip
        try:
            line = json.dumps(call).encode() + b"\n"
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, or lists thousands deep
            raise CallError(f"the arguments cannot be passed on ({error})") from error
        async with self._limiter:
            worker = await self._free()
            kept = False
            try:
                with anyio.fail_after(self.time_limit + READING_SECONDS):
                    answer = await _exchange(worker, line)
                kept = True
            except TimeoutError:
                raise CallError(
                    f"the call took more than {self.time_limit + READING_SECONDS:g} s and was ended; ask for a smaller "
                    "group, or start evenlag mcp with a larger --time-limit"
                ) from None
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
                raise CallError("the process of this call died, perhaps for lack of memory") from None
            finally:
                if kept:
                    self._idle.append(worker)
                else:
                    await _end(worker)
        found: dict[str, Any] = json.loads(answer)
        return found

    async def _free(self) -> _Worker:
        """Return a process that has no call."""
        while self._idle:
            worker = self._idle.pop()
            if worker.process.returncode is None:
                return worker
            await _end(worker, idle=True)
        return await _started()


async def _exchange(worker: _Worker, line: bytes) -> bytes:
    await worker.calls.send(line)
    return await worker.answers.receive_until(b"\n", MOST_BYTES)


async def _started() -> _Worker:
    process = await anyio.open_process(
        [sys.executable, "-c", SERVE.format(path=sys.path, parent=os.getpid())],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    return _Worker(process, process.stdin, BufferedByteReceiveStream(process.stdout))


async def _end(worker: _Worker, *, idle: bool = False) -> None:
    """Interrupt a process so that it can end its child processes, then kill it. Kill an idle process at once.

    A process that is still starting would print the interrupt.
    """
    process = worker.process
    with anyio.CancelScope(shield=True):
        await worker.calls.aclose()
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL if idle else signal.SIGINT)
        with anyio.move_on_after(GRACE):
            await process.wait()
        kill_group(process.pid)
        await process.aclose()
