"""Imports of a call: only what it needs, since every call pays for them."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.command import evenlag, refused

ROOT = Path(__file__).parents[2]
PLAN = ("plan", str(ROOT / "examples" / "kip-169.json"))
# Packages that are slow to import, none of which a plan of a small file needs.
SLOW = {
    "IPython", "highspy", "kafka", "matplotlib", "narwhals", "pandas", "polars", "pulp", "py4j", "pyarrow", "pyspark",
    "scipy",
}  # fmt: skip


def modules_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has after this code."""
    code += "\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def modules_after_command(*arguments: str, env: Mapping[str, str] | None = None) -> set[str]:
    """The modules that the command has imported when it ends."""
    code = (
        "import os, sys\n"
        f"os.environ.update({dict(env or {})!r})\n"
        f"sys.argv = ['evenlag', *{arguments!r}]\n"
        "from evenlag.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
    )
    return modules_after(code)


def packages(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("--version",), ("plan", "--help"), ("fleet", "audit", "--help"), ("completion", "bash")],
)
def test_help_imports_neither_numpy_nor_rich(arguments: tuple[str, ...]) -> None:
    modules = modules_after_command(*arguments)
    assert not packages(modules) & {*SLOW, "numpy", "ortools", "rich"}
    commands = {name.split(".")[-1] for name in modules if name.startswith("evenlag.cli.commands.")}
    assert commands == set() if arguments[0].startswith("-") else commands


@pytest.mark.parametrize("words", ["evenlag ", "evenlag plan --", "evenlag plan --method ", "evenlag fleet audit --"])
def test_completion_imports_neither_numpy_nor_rich(words: str) -> None:
    asked = {"_EVENLAG_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    modules = modules_after_command(env=asked)
    assert not packages(modules) & {*SLOW, "numpy", "ortools", "rich"}
    assert "click" in modules


@pytest.mark.parametrize("arguments", [PLAN, (*PLAN, "--json"), (*PLAN, "--method", "cp-sat")])
def test_a_plan_imports_only_what_it_needs(arguments: tuple[str, ...]) -> None:
    modules = modules_after_command(*arguments)
    assert not packages(modules) & SLOW
    assert not {name for name in modules if name.startswith(("evenlag.spark.", "evenlag.live."))}
    assert not {"rich.progress", "rich.markdown", "multiprocessing.pool", "asyncio", "ssl"} & modules
    assert "ortools.sat.python.cp_model_helper" in modules  # else this says little


@pytest.mark.slow
def test_other_backends_are_imported_on_request() -> None:
    assert "pulp" in packages(modules_after_command(*PLAN, "--method", "highs"))


def test_importing_evenlag_imports_few_modules() -> None:
    modules = modules_after("import evenlag")
    assert {name for name in modules if name.startswith("evenlag.")} == {"evenlag.errors", "evenlag.lazy"}
    assert not packages(modules) & {*SLOW, "numpy", "ortools", "click", "rich"}


@pytest.mark.parametrize("name", ["solve", "Problem", "heuristics", "compare.audit", "rebalance"])
def test_a_public_name_imports_its_module(name: str) -> None:
    modules = modules_after(f"import evenlag; evenlag.{name}")
    assert "numpy" in modules
    assert not packages(modules) & {*SLOW, "click", "rich"}


def test_public_names_are_listed_before_they_are_imported() -> None:
    import evenlag
    from evenlag import compare, live, spark

    for package in (evenlag, compare, live, spark):
        assert set(package.__all__) <= set(dir(package))
        for name in package.__all__:
            assert getattr(package, name) is getattr(package, name)
        with pytest.raises(AttributeError, match="no attribute 'of_old'"):
            _ = package.of_old


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_the_demo_names_a_missing_package_before_it_begins(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    extra = {"jinja2": "pages", "matplotlib": "pictures"}[package]
    refused(
        evenlag("demo", "--fleet", "--out", tmp_path / "out"),
        f"evenlag demo needs {package}; in a clone of evenlag: pip install '.[{extra}]'",
    )
    assert list(tmp_path.iterdir()) == []
