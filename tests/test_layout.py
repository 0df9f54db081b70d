"""The layers hold, and every package is listed for the wheel."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "evenlag"

# From the bottom up; a module may import from its own layer and from those before it.
LAYERS = (
    ("evenlag.errors",),
    ("evenlag.model",),
    ("evenlag.heuristics",),
    ("evenlag.search",),
    ("evenlag.solve",),
    ("evenlag.compare",),
    ("evenlag.pipeline",),
    ("evenlag.live",),
    ("evenlag",),
)
HEAVY = {"pyspark", "confluent_kafka", "matplotlib"}


def modules() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def layer(module: str) -> int:
    fitting = [n for n, names in enumerate(LAYERS) for name in names if (module + ".").startswith(name + ".")]
    return min(fitting)


def imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_point_downwards(module: str) -> None:
    known = modules()
    for name in imports(modules()[module]):
        if name in known and name != "evenlag":
            assert layer(name) <= layer(module), f"{module} imports {name}, which lies above it"


def test_every_module_has_a_layer_and_there_are_many() -> None:
    assert len(modules()) > 30
    assert {layer(module) for module in modules()} == set(range(len(LAYERS)))


def test_importing_evenlag_pulls_in_neither_spark_nor_kafka() -> None:
    import subprocess
    import sys

    code = f"import sys, evenlag; print(*sorted({HEAVY} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == ""


@pytest.mark.parametrize("name", ["model", "heuristics", "compare"])
def test_the_rooms_have_a_door_in_the_root(name: str) -> None:
    assert (ROOT / name).resolve() == PACKAGE / name


def test_every_folder_of_code_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert all((folder / "__init__.py").exists() for folder in folders)
