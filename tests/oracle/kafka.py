"""Compile Oracle.java against the jars that tests/support/broker.py fetches, and ask it."""

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support import broker
from tests.support.jars import fetched, find_java

SOURCE = Path(__file__).with_name("Oracle.java")
VERSION = broker.RECORDED
NEWEST_POM = broker.POM.with_name("newest.xml")
NEWEST = re.findall(r"<artifactId>kafka_2\.13</artifactId>\s*<version>(.+)</version>", NEWEST_POM.read_text())[0]
POMS = {VERSION: broker.POM, NEWEST: NEWEST_POM}
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"


class UnavailableError(Exception):
    """There is no Java compiler, or the jars cannot be fetched; the message says which."""


class KafkaFailedError(Exception):
    """Kafka's own code threw; the message is Java's."""


class Oracle:
    """A running oracle; one request at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, **request: Any) -> dict[str, Any]:
        """Return the answer to a request (see the package).

        Raises
        ------
        KafkaFailedError
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request, separators=(",", ":")) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise KafkaFailedError(answer["error"])
        return answer

    def assign(self, request: dict[str, Any]) -> list[int] | None:
        """Return the answer to a request for an assignment, or None where Kafka fails."""
        try:
            member_of: list[int] = self.ask(**request)["member_of"]
        except KafkaFailedError:
            return None
        return member_of


@contextlib.contextmanager
def running_oracle(*options: str, version: str = VERSION) -> Iterator[Oracle]:
    """Start the oracle with Kafka of one of `POMS`, compiled on first use; `options` are for Java.

    Raises
    ------
    UnavailableError
    """
    java = find_java()
    classes, jars = _classes(java, version)
    command = [str(java), QUIET, *options, "-cp", f"{classes}:{jars}/*", "Oracle"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Oracle(process)
        finally:
            process.kill()


def _classes(java: Path, version: str) -> tuple[Path, Path]:
    compiler = shutil.which("javac", path=str(java.parent)) or shutil.which("javac")
    if compiler is None:
        raise UnavailableError("no javac beside java or in PATH")
    try:
        jars = fetched(POMS[version], f"kafka-{version}", java)
    except RuntimeError as error:
        raise UnavailableError(f"Kafka's jars could not be fetched: {error}") from error
    digest = hashlib.sha256(version.encode() + SOURCE.read_bytes()).hexdigest()[:12]
    classes = broker.CACHE.with_name(f"oracle-{digest}")
    if not classes.is_dir():
        with tempfile.TemporaryDirectory(prefix="oracle-", dir=classes.parent) as name:
            made = Path(name) / "classes"
            command = [compiler, "-nowarn", "-cp", f"{jars}/*", "-d", str(made), str(SOURCE)]
            subprocess.run(command, check=True, capture_output=True)
            with contextlib.suppress(OSError):  # another process may have been first
                made.rename(classes)
    return classes, jars
