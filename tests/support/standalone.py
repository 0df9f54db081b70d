"""A Spark of its own: a standalone master and workers, or a server of Spark Connect, from the jars that pyspark has."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from evenlag.spark.driver.session import java_home
from tests.support.few_rows import FEW_ROWS, QUICK_JAVA

SPARK = Path(pyspark.__file__).parent
START = 180.0  # seconds; on a machine that is busy with other tests
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
QUICK = {"SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA, "SPARK_LOCAL_IP": "127.0.0.1"}


@dataclass(frozen=True)
class Standalone:
    """A running cluster: the address of its master, and of the master's page."""

    master: str
    page: str

    def state(self) -> dict[str, Any]:
        """Return the state of workers and applications from the master's page."""
        with urllib.request.urlopen(f"{self.page}/json/", timeout=10) as answer:
            state: dict[str, Any] = json.load(answer)
        return state


def spark_environment(**variables: str) -> dict[str, str]:
    """Variables with which Spark's scripts find Java, and nothing that asks for a master."""
    asking = ("MASTER", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_REMOTE")
    environment = {name: value for name, value in os.environ.items() if name not in asking}
    home = java_home()
    return environment | ({} if home is None else {"JAVA_HOME": home}) | variables


@contextmanager
def standalone(folder: Path, workers: int = 1, **variables: str) -> Iterator[Standalone]:
    """Start a master and workers of one core each on 127.0.0.1, with these variables, and stop all at the end."""
    with ExitStack() as stack:
        log = stack.enter_context(_daemon(folder, "master", ["--webui-port", "0"], variables))
        master = _wait_for_line(log, r"Starting Spark master at (spark://\S+)")
        page = _wait_for_line(log, r"MasterWebUI.* started at (http://\S+)")
        for number in range(workers):
            place = folder / f"work{number}"
            place.mkdir()
            worker = ["--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(place), master]
            stack.enter_context(_daemon(place, "worker", worker, variables))
        _wait_for_line(log, "(?s)" + ".*".join(["(Registering worker) "] * workers))
        yield Standalone(master, f"http://127.0.0.1:{page.rpartition(':')[2]}")


def executors(application: str) -> list[int]:
    """Return the process ids of an application's executors on this machine."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_text().split("\0")
        except OSError:  # it has ended
            continue
        if application in words and any("ExecutorBackend" in word for word in words):
            found.append(int(place.parent.name))
    return found


def run_driver(program: str, cluster: Standalone, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the text of a driver in a process; its arguments are the words, and a cluster's settings as JSON."""
    settings = FEW_ROWS | {
        "spark.master": cluster.master,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        "spark.driver.host": "127.0.0.1",
    }
    command = [sys.executable, "-c", program, *words, json.dumps(settings)]
    environment = spark_environment(PYSPARK_PYTHON=sys.executable)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


@contextmanager
def connect_server(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Start a server of Spark Connect on two cores of this machine, and give its address."""
    settings = dict(settings) | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    command = [str(SPARK / "bin" / "spark-submit"), "--master", "local[2]", "--class", CONNECT]
    command += ["--driver-java-options", QUICK_JAVA]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    with _running(folder, "connect", [*command, "spark-internal"], PYSPARK_PYTHON=sys.executable) as log:
        yield f"sc://127.0.0.1:{_wait_for_line(log, r'Spark Connect server started at: .*:([0-9]+)')}"


@contextmanager
def _daemon(folder: Path, name: str, arguments: Sequence[str], variables: Mapping[str, str]) -> Iterator[Path]:
    command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}.{name.title()}"]
    command += ["--host", "127.0.0.1", "--port", "0", *arguments]
    with _running(folder, name, command, SPARK_DAEMON_MEMORY="256m", **QUICK, **variables) as log:
        yield log


@contextmanager
def _running(folder: Path, name: str, command: list[str], **variables: str) -> Iterator[Path]:
    log = folder / f"{name}.log"
    with log.open("w") as file:
        environment = spark_environment(**variables)
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT)
    try:
        yield log
    finally:
        process.terminate()
        process.wait(START)


def _wait_for_line(log: Path, pattern: str) -> str:
    """Wait until a daemon's log matches a pattern, and return its first group."""
    ends = time.monotonic() + START
    while (match := re.search(pattern, log.read_text())) is None:
        assert time.monotonic() < ends, log.read_text()
        time.sleep(0.1)
    return match[1]
