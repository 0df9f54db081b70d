"""The HTTP server: metrics for Prometheus, and a JSON address for each group."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote

from prometheus_client.exposition import choose_encoder

from evenlag.errors import SourceError
from evenlag.watch.board import Board
from evenlag.watch.exposition import document_of, registry_of

METRICS, GROUPS = "/metrics", "/groups"
PATIENCE = 10.0  # seconds for which a client may be silent
MOST_AT_ONCE = 32  # requests answered at the same time


class _Server(ThreadingHTTPServer):
    """A server of a board that answers a limited number of requests at the same time, and drops the others."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], board: Board, every: float) -> None:
        self.board, self.registry = board, registry_of(board, every, process=True)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._free = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that went away."""


@contextmanager
def serving(board: Board, host: str, port: int, every: float) -> Iterator[str]:
    """Serve the board in the background; yield the address, such as `http://127.0.0.1:9779`.

    Parameters
    ----------
    host, port
        The address to listen on; port 0 is any free one.
    every : float
        Seconds between readings.

    Raises
    ------
    SourceError
        The address cannot be listened on.
    """
    try:
        server = _Server((host, port), board, every)
    except OSError as error:
        raise SourceError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; give another --metrics"
        ) from error
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="evenlag metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    server: _Server
    timeout = PATIENCE
    server_version, sys_version = "evenlag", ""

    def do_GET(self) -> None:
        """Answer a GET request."""
        self._send(with_body=True)

    def do_HEAD(self) -> None:
        """Answer a HEAD request."""
        self._send(with_body=False)

    def _send(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        if path == METRICS:
            encode, kind = choose_encoder(self.headers.get("Accept", ""))
            status, body = 200, encode(self.server.registry)
        else:
            status, document = _answer(self.server.board, path)
            kind, body = "application/json", json.dumps(document).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log no requests."""


def _answer(board: Board, path: str) -> tuple[int, Any]:
    """Return the status and the document of a path other than that of the metrics."""
    now = time.time()
    if path in ("/", GROUPS):
        groups = {name: f"{GROUPS}/{quote(name, safe='')}" for name, _ in board.fresh(now)}
        return 200, {"metrics": METRICS, "groups": groups}
    if not path.startswith(f"{GROUPS}/"):
        return 404, {"error": f"nothing is served here; see {METRICS} and {GROUPS}"}
    name = unquote(path.removeprefix(f"{GROUPS}/"))
    document = document_of(board, name, now)
    if document is not None:
        return 200, document
    failure = board.failures.get(name)  # looked up once: a round in another thread may remove it
    if failure is not None:
        return 503, {"error": f"group {name!r} could not be read or planned: {failure}"}
    return 404, {"error": f"there are no figures of group {name!r}, or none that are fresh; see {GROUPS}"}
