"""The layers hold, rooms need no more than they say, and every package is listed for the wheel."""

import ast
import subprocess
import sys
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
# The rooms of the pipeline, likewise.
ROOMS = ("defaults", "tables", "tasks", "offsets", "spark", "columns", "jobs")
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


@pytest.mark.parametrize("module", sorted(name for name in modules() if name.startswith("evenlag.pipeline.")))
def test_rooms_of_the_pipeline_point_one_way(module: str) -> None:
    def room(name: str) -> int:
        return ROOMS.index(name.split(".")[2])

    for name in imports(modules()[module]) & set(modules()):
        if name.startswith("evenlag.pipeline."):
            assert room(name) <= room(module), f"{module} imports {name}, which lies above it"


def test_every_module_has_a_layer_and_there_are_many() -> None:
    assert len(modules()) > 30
    assert {layer(module) for module in modules()} == set(range(len(LAYERS)))


def printed(code: str) -> str:
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_evenlag_pulls_in_neither_spark_nor_kafka() -> None:
    assert printed(f"import sys, evenlag; print(*sorted({HEAVY} & set(sys.modules)))") == ""


def test_pipeline_and_live_come_when_they_are_asked_for() -> None:
    code = (
        "import sys, evenlag\n"
        "lazy = {'evenlag.live', 'evenlag.pipeline'}\n"
        "assert not lazy & set(sys.modules) and {'live', 'pipeline'} <= set(dir(evenlag))\n"
        "print(callable(evenlag.live.snapshot), 'plans' in dir(evenlag.pipeline), hasattr(evenlag, 'plans'))\n"
        f"print(*sorted({HEAVY} & set(sys.modules)))\n"
        "print(callable(evenlag.pipeline.plans), hasattr(evenlag.pipeline, 'plan'))\n"
    )
    assert printed(code).splitlines() == ["True True False", "", "True False"]


def test_every_name_of_the_pipeline_is_where_it_is_said_to_be() -> None:
    from evenlag import pipeline

    assert list(pipeline._HOMES) == pipeline.__all__ == sorted(pipeline.__all__)
    for name in pipeline.__all__:
        assert getattr(pipeline, name).__module__ == f"evenlag.pipeline.{pipeline._HOMES[name]}"


@pytest.mark.parametrize("room", ["evenlag.pipeline.tables", "evenlag.pipeline.tasks"])
def test_rooms_without_spark(room: str) -> None:
    inside = sorted(name for name in modules() if name.startswith(room))
    assert len(inside) > 5
    for name in inside:
        assert not any(each.split(".")[0] == "pyspark" for each in imports(modules()[name])), name
    code = (
        "import importlib, sys\n"
        "sys.modules['pyspark'] = None\n"  # whoever imports it, on whatever way, fails
        f"for name in {inside}: importlib.import_module(name)\n"
        "print('imported')\n"
    )
    assert printed(code) == "imported"


@pytest.mark.parametrize("name", ["model", "heuristics", "compare"])
def test_the_rooms_have_a_door_in_the_root(name: str) -> None:
    assert (ROOT / name).resolve() == PACKAGE / name


def test_every_folder_of_code_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert all((folder / "__init__.py").exists() for folder in folders)
