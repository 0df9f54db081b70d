"""Real exporters for tests, each started on a broker and read over HTTP.

They are found in `.cache/exporters` or on PATH, as their projects release them; tests/metrics/README.md names versions.
"""

import contextlib
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tests.support.broker import free_ports

FOUND_IN = Path(__file__).resolve().parents[2] / ".cache" / "exporters"
START_LIMIT = 40.0  # seconds
STOP_LIMIT = 10.0  # seconds
ANSWER_LIMIT = 10.0  # seconds
PAUSE = 0.3  # seconds between two questions

KMINION = """\
kafka:
  brokers: ["{bootstrap}"]
minion:
  consumerGroups: {{enabled: true, scrapeMode: adminApi, granularity: partition}}
  topics: {{granularity: partition}}
exporter: {{host: 127.0.0.1, port: {port}}}
"""
BURROW = """\
[general]
pidfile="{folder}/burrow.pid"
[logging]
level="warn"
[client-profile.tests]
client-id="burrow"
kafka-version="2.1.0"
[cluster.local]
class-name="kafka"
servers=["{bootstrap}"]
client-profile="tests"
topic-refresh=2
offset-refresh=1
[consumer.local]
class-name="kafka"
cluster="local"
servers=["{bootstrap}"]
client-profile="tests"
start-latest=false
[httpserver.default]
address="127.0.0.1:{port}"
[storage.default]
class-name="inmemory"
workers=2
intervals=15
min-distance=0
"""
KLAG = """\
[exporter]
poll_interval = "3s"
http_port = {port}
http_host = "127.0.0.1"
granularity = "partition"
[[clusters]]
name = "local"
bootstrap_servers = "{bootstrap}"
"""


@dataclass(frozen=True)
class Exporter:
    """How one exporter is started and asked.

    Attributes
    ----------
    command : callable (program, bootstrap, port, folder) -> list of str
        Its command line; it may write a configuration into the folder.
    path : str
        What is asked of it; `{group}` stands for the group.
    owners : bool
        Whether it names owners.
    """

    command: Callable[[str, str, int, Path], list[str]]
    path: str = "/metrics"
    owners: bool = False


def _configured(text: str, name: str, *options: str) -> Callable[[str, str, int, Path], list[str]]:
    """Return a command that reads its configuration from a file; `{}` in the options is its path."""

    def command(program: str, bootstrap: str, port: int, folder: Path) -> list[str]:
        (folder / name).write_text(text.format(bootstrap=bootstrap, port=port, folder=folder))
        return [program, *(option.format(folder / name, folder=folder) for option in options)]

    return command


EXPORTERS = {
    "kafka_exporter": Exporter(
        lambda program, bootstrap, port, _: [
            program, f"--kafka.server={bootstrap}", f"--web.listen-address=127.0.0.1:{port}"
        ]
    ),
    "kminion": Exporter(_configured(KMINION, "kminion.yaml")),
    "burrow": Exporter(
        _configured(BURROW, "burrow.toml", "-config-dir", "{folder}"),
        path="/v3/kafka/local/consumer/{group}/lag",
        owners=True,
    ),
    "klag-exporter": Exporter(_configured(KLAG, "klag.toml", "--config", "{}"), owners=True),
}  # fmt: skip


def program_of(name: str) -> str | None:
    """Return where an exporter's program is; None where it is not on this machine."""
    return shutil.which(name, path=f"{FOUND_IN}{os.pathsep}{os.environ.get('PATH', '')}")


@contextlib.contextmanager
def running_exporter(name: str, program: str, bootstrap: str, folder: Path) -> Iterator[Callable[[str], str]]:
    """Start an exporter, give a function that asks it about a group, and stop it at the end."""
    exporter = EXPORTERS[name]
    (port,) = free_ports(1)
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            exporter.command(program, bootstrap, port, folder),
            stdout=output, stderr=subprocess.STDOUT, cwd=folder,
            env={**os.environ, "CONFIG_FILEPATH": str(folder / "kminion.yaml")},
        )  # fmt: skip

    def ask(group: str) -> str:
        path = exporter.path.format(group=quote(group, safe=""))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=ANSWER_LIMIT) as answer:
            text: str = answer.read().decode()
        return text

    try:
        yield ask
    except AssertionError as error:
        error.add_note(log.read_text(errors="replace")[-2000:])
        raise
    finally:
        process.terminate()
        try:
            process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answer_of(ask: Callable[[str], str], group: str, is_right: Callable[[str], bool]) -> str:
    """Ask until an answer is right, as exporters look at the broker only now and then; else return the last one."""
    end = time.monotonic() + START_LIMIT
    text = ""
    while time.monotonic() < end:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            text = ask(group)
            if is_right(text):
                break
        time.sleep(PAUSE)
    return text
