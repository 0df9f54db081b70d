"""Compiled modules, built from the source that stands here."""

import shutil
import subprocess
import sys
import sysconfig
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest


def built(source: Path, name: str, folder: Path) -> ModuleType:
    """Build a C file and import it; skip the test without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    target = folder / f"{name}.so"
    flags = ["-O2", "-ffp-contract=off", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}"]
    if sys.platform == "darwin":
        flags += ["-undefined", "dynamic_lookup"]
    subprocess.run([compiler, *flags, str(source), "-o", str(target)], check=True)
    spec = spec_from_file_location(name, target)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
