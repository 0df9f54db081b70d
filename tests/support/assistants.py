"""An assistant: a client of the server of tools, by the protocol's own SDK."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client

from evenlag.mcp.access import Access
from evenlag.mcp.endpoint import server_of

ROOT = Path(__file__).parents[2]
EXAMPLES, TABLES, TEXTS = ROOT / "examples", ROOT / "evenlag" / "examples", ROOT / "tests" / "texts"
ROWS = 100
LONG = 10_000.0  # seconds: no test waits for that


class Assistant:
    """Calls tools, and waits for their answers."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal, self._client = portal, client

    def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in self._portal.call(self._client.list_tools).tools}

    def begin(self, tool: str, **arguments: Any) -> Future[Any]:
        """Call a tool without waiting; cancelling the future cancels the call."""
        return self._portal.start_task_soon(partial(self._client.call_tool, tool, arguments))

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.begin(tool, **arguments).result(120)

    def answer(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the document of an answer that is no error."""
        result = self.call(tool, **arguments)
        assert not result.is_error, result.content[0].text
        document: dict[str, Any] = result.structured_content
        return document

    def error(self, tool: str, **arguments: Any) -> str:
        """Return the text of an answer that is an error."""
        result = self.call(tool, **arguments)
        assert result.is_error
        assert result.structured_content is None
        return str(result.content[0].text)


@contextmanager
def assistant_of(server: Any) -> Iterator[Assistant]:
    """Connect to a server: one in this process, a command to start, or an address."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:
        yield Assistant(portal, client)


@contextmanager
def assistant_with(
    *roots: Path,
    clusters: tuple[str, ...] = (),
    config: Path | None = None,
    time_limit: float = 60.0,
    rows: int = ROWS,
) -> Iterator[Assistant]:
    """Connect to a server in this process."""
    access = Access(tuple(str(root.resolve()) for root in roots), clusters, None if config is None else str(config))
    with assistant_of(server_of(access, time_limit, rows)) as assistant:
        yield assistant


def without_times(value: Any) -> Any:
    """Return a document without the seconds that its search took."""
    return _mapped(value, lambda name: name != "seconds")


def _mapped(value: Any, keep: Callable[[str], bool]) -> Any:
    if isinstance(value, dict):
        return {name: _mapped(each, keep) for name, each in value.items() if keep(name)}
    return [_mapped(each, keep) for each in value] if isinstance(value, list) else value


def group(partitions: int, members: int) -> str:
    random = Random(5)
    lags = [int(random.lognormvariate(8, 1.5)) for _ in range(partitions)]
    each = partitions // members
    owned = {f"m{m}": [["t", p] for p in range(each * m, each * m + each)] for m in range(members)}
    described = {m: {"topics": ["t"], "owned": held} for m, held in owned.items()}
    return json.dumps({"group": "g", "topics": {"t": lags}, "members": described})


HARD = group(60, 10)  # its search takes minutes if it may
