"""Environments of other people's tools, made on first use under .cache/, and questions to them."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.others.wire import Document

ROOT = Path(__file__).parent.parent.parent
CACHE = ROOT / ".cache" / "others"
INSTALLING = 1800.0  # seconds at most
LAST_LINES = 3  # of an error, in a message


class UnavailableError(Exception):
    """A tool cannot be installed or run here; the message says why."""


class FailedError(Exception):
    """A tool gave no answer to a question; the message is the end of what it wrote, or says that it was stopped."""


@dataclass(frozen=True)
class Tool:
    """A tool in an environment of its own.

    Attributes
    ----------
    name : str
        Of its module in `benchmarks.others.runners` too.
    packages : tuple of str
        What pip installs, versions pinned.
    pythons : tuple of str
        Versions of Python that it runs on, such as "3.12", the preferred first.
    """

    name: str
    packages: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()

    def ask(self, question: Document, patience: float) -> Document:
        """Return the answer to a question, after at most `patience` seconds by the clock.

        Raises
        ------
        UnavailableError
            The environment is missing and cannot be made.
        FailedError
        """
        python = environment(self) if self.packages else Path(sys.executable)
        command = [str(python), "-m", f"benchmarks.others.runners.{self.name}"]
        variables = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
        try:
            run = subprocess.run(
                command, input=json.dumps(question), capture_output=True, text=True, cwd=ROOT, env=variables,
                timeout=patience, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise FailedError(f"no answer in {patience:g} s") from None
        if run.returncode:
            raise FailedError(last_lines(run.stderr) or f"exit code {run.returncode}")
        answer: Document = json.loads(run.stdout)
        return answer


def environment(tool: Tool) -> Path:
    """Return the interpreter of a tool's environment, made on first use; another list of packages makes another.

    Raises
    ------
    UnavailableError
    """
    python = interpreter(tool)
    key = hashlib.sha256("\n".join([str(python), *tool.packages]).encode()).hexdigest()[:12]
    folder = CACHE / f"{tool.name}-{key}"
    if (folder / "done").exists():
        return folder / "bin" / "python"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        command([str(python), "-m", "venv", str(folder)])
        command([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *tool.packages])
    except UnavailableError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    (folder / "done").touch()
    return folder / "bin" / "python"


def interpreter(tool: Tool) -> Path:
    """Return the first interpreter of a version that the tool runs on.

    Raises
    ------
    UnavailableError
        There is none.
    """
    for version in tool.pythons:
        for candidate in candidates(version):
            with suppress(UnavailableError):
                code = "import sys; print('%d.%d' % sys.version_info[:2])"
                if command([str(candidate), "-c", code]).strip() == version:
                    return candidate
    raise UnavailableError(f"{tool.name} needs Python {' or '.join(tool.pythons)}; install it, or put it in PATH")


def candidates(version: str) -> Iterator[Path]:
    """Yield interpreters that may be of a version: this one, those in PATH, pyenv's and uv's."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        yield Path(sys.executable)
    if named := shutil.which(f"python{version}"):
        yield Path(named)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    if uv := shutil.which("uv"):
        with suppress(UnavailableError):
            yield Path(command([uv, "python", "find", version]).strip())


def command(words: list[str]) -> str:
    """Return what a command prints.

    Raises
    ------
    UnavailableError
        It fails, or takes too long.
    """
    with tempfile.TemporaryDirectory() as folder:  # so that no folder of ours is imported
        try:
            run = subprocess.run(words, capture_output=True, text=True, timeout=INSTALLING, cwd=folder)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UnavailableError(f"{words[0]}: {error}") from error
    if run.returncode:
        raise UnavailableError(f"{' '.join(words)}: {last_lines(run.stderr) or f'exit code {run.returncode}'}")
    return run.stdout


def last_lines(text: str) -> str:
    """Return the last lines of an error in one."""
    return "; ".join(line.strip() for line in text.strip().splitlines()[-LAST_LINES:])


EVENLAG = Tool("evenlag")
