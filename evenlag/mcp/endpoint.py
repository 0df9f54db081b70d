"""The server, by the protocol's official SDK, on standard input and output or on a port of this machine."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from evenlag import __version__
from evenlag.errors import EvenlagError, SourceError
from evenlag.mcp.access import Access
from evenlag.mcp.pool import CallError, Pool
from evenlag.mcp.tools import TOOLS
from evenlag.mcp.worker import DOCUMENT, ERROR, TEXT
from evenlag.model.names import did_you_mean

LOOPBACK = "127.0.0.1"
CLOSING_SECONDS = 2  # time for running calls to end with the server
INSTRUCTIONS = (
    "evenlag diagnoses and plans Kafka consumer groups that lag. All tools only read. Begin with diagnose; a source "
    "with several groups needs a group, and groups lists them. Answers name options of the commands: --time-limit is "
    "the parameter time_limit, --drain is drain_seconds."
)
_READ_ONLY = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)

Context = ServerRequestContext[Pool]


def server_of(access: Access, time_limit: float, rows: int) -> Server[Pool]:
    """Return the server; its processes start with its first connection."""
    tools = [
        types.Tool(name=name, description=tool.description, input_schema=tool.schema(access), annotations=_READ_ONLY)
        for name, tool in TOOLS.items()
    ]

    @asynccontextmanager
    async def lifespan(_: Server[Pool]) -> AsyncIterator[Pool]:
        async with Pool(access, time_limit, rows).running() as pool:
            yield pool

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Context, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            if asked.name not in TOOLS:
                raise CallError(f"unknown tool {asked.name!r}{did_you_mean(asked.name, TOOLS)}")
            answer = await context.lifespan_context.answer(asked.name, asked.arguments or {})
        except EvenlagError as error:
            answer = {ERROR: str(error)}
        if ERROR in answer:
            return types.CallToolResult(content=[_text(answer[ERROR])], is_error=True)
        return types.CallToolResult(content=[_text(answer[TEXT])], structured_content=answer[DOCUMENT])

    return Server(
        "evenlag", version=__version__, instructions=INSTRUCTIONS, lifespan=lifespan, on_list_tools=list_tools,
        on_call_tool=call_tool,
    )  # fmt: skip


def _text(text: str) -> Any:
    return types.TextContent(type="text", text=text)


def serve_stdio(server: Server[Pool]) -> None:
    """Serve one client on standard input and output, until it closes them."""

    async def run() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(run)


def serve_http(server: Server[Pool], port: int, tell: Callable[[str], None]) -> None:
    """Serve clients on this machine by streamable HTTP, until an interrupt; call `tell` with the address.

    Raises
    ------
    SourceError
        The port is in use, or may not be used.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
            listener.listen()  # so that clients may connect as soon as they know the address
        except OSError as error:
            raise SourceError(f"{LOOPBACK}:{port}: cannot listen there ({error.strerror})") from error
        tell(f"http://{LOOPBACK}:{listener.getsockname()[1]}/mcp")
        app = server.streamable_http_app(host=LOOPBACK)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=CLOSING_SECONDS)
        anyio.run(uvicorn.Server(config).serve, [listener])
