"""The server as users start it: on standard input and output, and on a port of this machine."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from mcp import StdioServerParameters

from evenlag.mcp.pool import SERVE
from tests.support.assistants import (
    EXAMPLES,
    HARD,
    LONG,
    assistant_of,
    group,
    without_times,
)
from tests.support.command import Done, evenlag, evenlag_alone, refused
from tests.support.processes import children, wait_until_ended

pytestmark = pytest.mark.slow
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_a_client_starts_the_command_and_talks_over_its_pipes() -> None:
    start = StdioServerParameters(command=sys.executable, args=["-m", "evenlag", "mcp", str(EXAMPLES)], env=ENVIRONMENT)
    with assistant_of(start) as assistant:
        found = assistant.answer("plan", source="billing.txt", deterministic=True)
        printed = json.loads(evenlag("plan", EXAMPLES / "billing.txt", "--deterministic", "--json").stdout)
        assert without_times(found) == without_times(printed)
        assert "may not read" in assistant.error("plan", source="/etc/passwd")


def test_the_server_ends_with_its_input() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "evenlag", "mcp"], input="", capture_output=True, text=True, env=ENVIRONMENT,
        timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_process_for_calls_ends_though_the_server_ended_before_it_was_ready() -> None:
    server = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    code = SERVE.format(path=sys.path, parent=int(server.stdout))
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.wait(120) == 0


def test_a_client_of_an_earlier_version_cancels_a_call() -> None:
    """Talk in lines of JSON, as clients of another SDK do."""
    command = [sys.executable, "-m", "evenlag", "mcp", "--time-limit", str(LONG)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def send(method: str, number: int | None = None, **parameters: object) -> None:
            message = {"jsonrpc": "2.0", "method": method, "params": parameters}
            print(json.dumps(message | ({} if number is None else {"id": number})), file=process.stdin, flush=True)

        def call(number: int, source: str) -> None:
            send("tools/call", number, name="plan", arguments={"source": source, "time_limit": LONG})

        client = {"name": "test", "version": "1"}
        send("initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "evenlag"
        send("notifications/initialized")
        call(2, group(6, 2))
        assert json.loads(process.stdout.readline())["result"]["structuredContent"]["status"] == "OPTIMAL"
        (worker,) = children(process.pid)
        call(3, HARD)
        time.sleep(2)  # the search has begun; if not, the test still holds
        send("notifications/cancelled", requestId=3)
        wait_until_ended(worker)
        call(4, group(6, 2))
        answer = json.loads(process.stdout.readline())
        assert (answer["id"], answer["result"]["structuredContent"]["status"]) == (4, "OPTIMAL")
        process.stdin.close()
        assert process.wait(60) == 0


@contextmanager
def served(*words: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server on a port; yield its process and its address."""
    command = [sys.executable, "-m", "evenlag", "mcp", "--http", "0", *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.fullmatch(r"evenlag: serving (http://127\.0\.0\.1:\d+/mcp)\n", line)
            assert found, line
            yield process, found[1]
        finally:
            process.kill()


def test_clients_on_this_machine_talk_over_http() -> None:
    with served(EXAMPLES) as (process, address):
        with assistant_of(address) as one, assistant_of(address) as other:
            assert one.answer("groups", source="billing.txt") == other.answer("groups", source="billing.txt")
            assert "audit" in one.tools()
            assert len(children(process.pid)) == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_a_call_cancelled_over_http_ends_its_search() -> None:
    with served("--time-limit", LONG) as (process, address), assistant_of(address) as assistant:
        assert assistant.answer("plan", source=group(6, 2))["status"] == "OPTIMAL"
        (worker,) = children(process.pid)
        call = assistant.begin("plan", source=HARD, time_limit=LONG)
        time.sleep(2)  # the search has begun; if not, the test still holds
        assert call.cancel()
        wait_until_ended(worker)
        assert assistant.answer("plan", source=group(6, 2))["status"] == "OPTIMAL"


def test_pages_of_other_sites_are_refused() -> None:
    with served() as (_, address):
        for name, value in (("Host", "example.com"), ("Origin", "http://example.com")):
            asked = Request(address, b"{}", {"Content-Type": "application/json", name: value})
            with pytest.raises(HTTPError) as refusal:
                urlopen(asked)
            assert refusal.value.code in (403, 421)
            refusal.value.close()


def test_a_port_in_use_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused(evenlag("mcp", "--http", taken.getsockname()[1]), "cannot listen")


def test_bad_options_are_usage_errors(tmp_path: object) -> None:
    refused(evenlag("mcp", f"{tmp_path}/nothing"), "no such file or folder")
    done: Done = evenlag("mcp", "--cluster", "localhost:9092")
    assert done.returncode == 2
    assert "kafka://HOST:PORT" in done.stderr


def test_without_the_sdk_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['mcp'] = None; from evenlag.cli import main; sys.argv = ['evenlag', 'mcp']; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    refused(done, "pip install '.[mcp]'")


def test_help_needs_no_sdk() -> None:
    done = evenlag_alone("mcp", "--help")
    assert done.returncode == 0
    assert "127.0.0.1" in done.stdout
