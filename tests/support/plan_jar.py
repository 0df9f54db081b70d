"""The jar of PlanAssignor, and programs that tests drive it with.

`python -m tests.support.plan_jar FOLDER` builds the jar there, without Maven: `make java` where there is none.
"""

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support import broker
from tests.support.jars import filled, find_java, run

ROOT = Path(__file__).resolve().parents[2]
POM = ROOT / "java" / "pom.xml"
SOURCES = ROOT / "java" / "src" / "main" / "java"
BROKER_SOURCES = ROOT / "java" / "src" / "broker" / "java"
PROGRAMS = ROOT / "tests" / "java"
VERSION = re.findall(r"<version>(.+)</version>", POM.read_text())[0]
JAR = f"evenlag-plan-assignor-{VERSION}.jar"
QUICK = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m"]


@dataclass(frozen=True)
class Programs:
    """The jar, the programs of `tests/java`, and what they need."""

    java: Path
    jar: Path
    classes: Path
    kafka: Path
    tools: Path

    def command(self, program: str, *arguments: str, log: str = "off") -> list[str]:
        """Return the command that runs a Java class with Kafka, the jar, and Kafka's tools."""
        quiet = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log}"
        tools = ":".join(str(self.tools / f"kafka-{name}-{broker.VERSION}.jar") for name in ("tools", "streams"))
        path = f"{self.classes}:{self.jar}:{self.kafka}/*:{tools}"
        return [str(self.java), *QUICK, quiet, "-cp", path, program, *arguments]


@cache
def plan_programs() -> Programs:
    """Build what tests need, on first use; the Java is any that the broker runs on."""
    java = find_java()
    kafka = broker.kafka_jars(java)
    tools = broker.kafka_fetched(PROGRAMS / "pom.xml", f"java-tests-{broker.VERSION}", java)
    sources = sorted([POM, *SOURCES.rglob("*.java"), *BROKER_SOURCES.rglob("*.java"), *PROGRAMS.rglob("*.java")])
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:12]

    def fill(folder: Path) -> None:
        build_jar(folder, java, kafka, tools)
        jars = [folder / JAR, *kafka.glob("*.jar"), *tools.glob("kafka-streams-*.jar")]
        _compile(java, tools, sorted(PROGRAMS.rglob("*.java")), folder / "classes", jars)

    built = filled(f"plan-assignor-{broker.VERSION}-{digest}", fill)
    return Programs(java, built / JAR, built / "classes", kafka, tools)


def build_jar(folder: Path, java: Path, kafka: Path, tools: Path) -> Path:
    """Compile the assignors, consumers' for Java 11 and brokers' for 17, and pack them into a jar in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="plan-assignor-") as name:
        classes = Path(name)
        jars = [*kafka.glob("kafka-clients-*.jar"), *kafka.glob("slf4j-api-*.jar")]
        _compile(java, tools, sorted(SOURCES.rglob("*.java")), classes, jars, "11")
        _compile(java, tools, sorted(BROKER_SOURCES.rglob("*.java")), classes, [classes, *kafka.glob("*.jar")])
        with zipfile.ZipFile(folder / JAR, "w", zipfile.ZIP_DEFLATED) as jar:
            jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n")
            for path in sorted(classes.rglob("*.class")):
                jar.write(path, str(path.relative_to(classes)))
    return folder / JAR


def _compile(
    java: Path, tools: Path, sources: list[Path], classes: Path, jars: list[Path], release: str = "17"
) -> None:
    """Compile by javac, or where there is only a runtime by Eclipse's compiler."""
    javac = shutil.which("javac", path=str(java.parent))
    ecj = next(tools.glob("ecj-*.jar"))
    compiler = [javac, "--release", release] if javac else [str(java), "-jar", str(ecj), "-source", release]
    targeted = [] if javac else ["-target", release]
    path = ":".join(map(str, jars))
    run([*compiler, *targeted, "-nowarn", "-cp", path, "-d", str(classes), *map(str, sources)])


class Driver:
    """A running `PlanDriver`; one request at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Return the answer to a request; raise RuntimeError if the driver failed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


@contextlib.contextmanager
def running_driver() -> Iterator[Driver]:
    """Start the driver, and end it after the body."""
    command = plan_programs().command("io.evenlag.PlanDriver")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Driver(process)
        finally:
            process.kill()


if __name__ == "__main__":
    programs = plan_programs()
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    print(shutil.copy(programs.jar, target / JAR))
