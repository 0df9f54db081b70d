"""`evenlag watch --publish` as processes that can be killed, stopped and resumed."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.broker import Broker

END_LIMIT = 60.0  # seconds
LEAST = 10.0  # seconds between two plans
GIVEN = ["--every", "4s", "--least", f"{LEAST:g}s", "--auto-offset-reset", "earliest", "--metrics", "127.0.0.1:0"]


class Watch:
    """`evenlag watch --publish` in a process of its own."""

    def __init__(self, broker: Broker, log: Path, group: str, place: object, *words: str) -> None:
        self._log = log
        command = ["watch", f"kafka://{broker.bootstrap}", "--group", group, "--publish", str(place), *words]
        with log.open("w") as file:
            self.process = subprocess.Popen([sys.executable, "-m", "evenlag", *command, *GIVEN], stderr=file)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def published(self) -> list[int]:
        """The versions that it has published."""
        return [int(version) for version in re.findall(r"published plan (\d+): ", self.log)]

    def waits(self) -> list[str]:
        """The reasons for which it has waited, one for each decision."""
        return re.findall(r": waits \(([a-z-]+)\): ", self.log)

    def kill(self) -> None:
        """Kill it: nobody hears of that."""
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Stop the process, as a suspended machine does."""
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Resume the process."""
        self.process.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Send SIGTERM, and check that it ends as it should."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(END_LIMIT) == 0, self.log
        assert self.log.rstrip().endswith("evenlag watch: terminated")


@contextmanager
def watching(broker: Broker, log: Path, group: str, place: object, *words: str) -> Iterator[Watch]:
    started = Watch(broker, log, group, place, *words)
    try:
        yield started
    finally:
        started.kill()
