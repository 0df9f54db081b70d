"""The layout of the code and of the tests: layers, rooms, imports without circles, and the size of test files."""

import ast
import importlib
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "evenlag"
TESTS = ROOT / "tests"

# From the bottom up; a module may import from its own layer and from those before it.
LAYERS = (
    ("evenlag.errors",),
    ("evenlag.verifier",),
    ("evenlag.lazy", "evenlag.figures"),
    ("evenlag.markup",),
    ("evenlag.model",),
    ("evenlag.heuristics",),
    ("evenlag.protocol",),
    ("evenlag.search",),
    ("evenlag.compare",),
    ("evenlag.tables",),
    ("evenlag.report",),
    ("evenlag.spark",),
    ("evenlag.pipeline",),
    ("evenlag.live",),
    ("evenlag.watch",),
    ("evenlag.simulation",),
    ("evenlag.door",),
    ("evenlag.mcp",),
    ("evenlag",),
)
# The rooms of Spark, likewise.
ROOMS = ("worker", "offsets", "driver", "native", "jobs")
# Those of the search, likewise; what is not named is below them all, and may construct.
SEARCH = ("construct", "improve", "exact", "portfolio", "binding", "solver", "entry")
# Those of live clusters, likewise; what is not named is below them all.
LIVE = ("cluster", "assignor", "follow")
KAFKA_PYTHON = "evenlag.live.kafka_python"  # the only module that imports more of it than its users may
HEAVY = {"pyspark", "kafka", "matplotlib", "prometheus_client"}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
LAZY = {"evenlag.spark"}  # what is imported of it comes only then


@cache
def modules(folder: Path = PACKAGE) -> dict[str, Path]:
    found = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def layer(module: str) -> int:
    fitting = [n for n, names in enumerate(LAYERS) for name in names if (module + ".").startswith(name + ".")]
    return min(fitting)


@cache
def imports(path: Path) -> set[str]:
    """Every name that a file imports, inside functions and under TYPE_CHECKING too."""
    return {name for names in imported(parsed(path)) for name in names}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(node: ast.AST, *, typing: bool = True, functions: bool = True) -> Iterator[list[str]]:
    """Yield the names of each import, from the part to the whole.

    `typing`: also those for type checkers alone. `functions`: also those inside functions.
    """
    if isinstance(node, ast.Import):
        yield from ([alias.name] for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from ([f"{node.module}.{alias.name}", node.module or ""] for alias in node.names)
    elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING") and not typing:
        for each in node.orelse:
            yield from imported(each, typing=typing, functions=functions)
    elif not isinstance(node, ast.expr) and (functions or not isinstance(node, FUNCTIONS)):
        for each in ast.iter_child_nodes(node):
            yield from imported(each, typing=typing, functions=functions)


def own_module(each: list[str]) -> str:
    """Return the module of this package that an import loads, or an empty string."""
    return next((name for name in each if name in modules()), "")


@cache
def loaded_at_once(module: str) -> list[str]:
    """Return the modules of this package that the top level of a module imports."""
    return list(filter(None, map(own_module, imported(parsed(modules()[module]), typing=False, functions=False))))


@cache
def loaded_modules(module: str) -> set[str]:
    """Return the modules of this package that loading a module loads, before any function runs."""
    found, queue = set(), [module]
    for name in queue:
        if name not in found:
            found.add(name)
            queue += [name.rpartition(".")[0]] if "." in name else []
            queue += loaded_at_once(name)
    return found


def circles(graph: Mapping[str, set[str]]) -> list[str]:
    """A shortest way back to each module that has one, each circle once: `a -> b -> a`."""
    found = {}
    for start in sorted(graph):
        came_from: dict[str, str] = {}
        queue = [start]
        for module in queue:
            for name in sorted(graph.get(module, ())):
                if name not in came_from:
                    came_from[name] = module
                    queue.append(name)
        if start in came_from:
            way = [start, came_from[start]]
            while way[-1] != start:
                way.append(came_from[way[-1]])
            found.setdefault(frozenset(way), " -> ".join(reversed(way)))
    return list(found.values())


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_point_downwards(module: str) -> None:
    known = modules()
    for name in imports(modules()[module]):
        if name in known and name != "evenlag":
            assert layer(name) <= layer(module), f"{module} imports {name}, which lies above it"


@pytest.mark.parametrize("module", sorted(name for name in modules() if name.startswith("evenlag.verifier")))
def test_the_verifier_shares_no_code_with_what_it_verifies(module: str) -> None:
    ours = {name for name in imports(modules()[module]) if name.split(".")[0] == "evenlag" and name in modules()}
    assert {name for name in ours if not name.startswith("evenlag.verifier")} <= {"evenlag.errors"}
    others = {name.split(".")[0] for name in imports(modules()[module])} - {"evenlag", "__future__"}
    assert others <= sys.stdlib_module_names


@pytest.mark.parametrize("module", sorted(name for name in modules() if name.startswith("evenlag.spark.")))
def test_rooms_of_spark_point_one_way(module: str) -> None:
    def room(name: str) -> int:
        return ROOMS.index(name.split(".")[2])

    for name in imports(modules()[module]) & set(modules()):
        if name.startswith("evenlag.spark."):
            assert room(name) <= room(module), f"{module} imports {name}, which lies above it"


@pytest.mark.parametrize("module", sorted(name for name in modules() if name.startswith("evenlag.search.")))
def test_rooms_of_the_search_point_one_way(module: str) -> None:
    def room(name: str) -> int:
        named = name.split(".")[2]
        return SEARCH.index(named) if named in SEARCH else 0

    for name in imports(modules()[module]) & set(modules()):
        if name.startswith("evenlag.search."):
            assert room(name) <= room(module), f"{module} imports {name}, which lies above it"


def room_of_live(module: str) -> int:
    named = module.split(".")[2]
    return LIVE.index(named) if named in LIVE else -1


@pytest.mark.parametrize("module", sorted(name for name in modules() if name.startswith("evenlag.live.")))
def test_rooms_of_live_clusters_point_one_way(module: str) -> None:
    for name in imports(modules()[module]) & set(modules()):
        if name.startswith("evenlag.live."):
            assert room_of_live(name) <= room_of_live(module), f"{module} imports {name}, which lies above it"


ENDINGS = ("", "s", "es", "e", "ed", "er", "ers", "ing", "ings", "ion", "ions", "or", "ors", "y", "ies")


def differ_by_ending(name: str, other: str) -> bool:
    """Return whether two words differ by an ending alone: plan and plans, followed and follower."""
    same = next((n for n, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), min(len(name), len(other)))
    shared = range(3, same + 1)
    return name != other and any(name[n:] in ENDINGS and other[n:] in ENDINGS for n in shared)


def test_words_that_differ_by_an_ending_are_found() -> None:
    pairs = [("plan", "plans"), ("sizing", "size"), ("heading", "headers"), ("plan", "plane_tree"), ("rows", "row")]
    assert [differ_by_ending(*pair) for pair in pairs] == [True, True, True, False, True]


@pytest.mark.slow
def test_no_two_modules_have_names_that_differ_by_an_ending() -> None:
    """Except for commands, which are named after the words that users type."""
    named = {module: module.split(".")[-1] for module in modules() if ".cli.commands." not in module}
    assert len(named) > 150
    pairs = combinations(sorted(named), 2)
    assert [pair for pair in pairs if differ_by_ending(*(named[module] for module in pair))] == []


def private_to_kafka_python(path: Path) -> set[str]:
    """The names of kafka-python that a file imports and that its users are not promised."""
    import kafka

    if "kafka" not in path.read_text():  # most need not be parsed
        return set()
    public = {"kafka", "kafka.errors", *(f"kafka.{name}" for name in kafka.__all__)}
    named = {each[0] for each in imported(parsed(path)) if each[-1].split(".")[0] == "kafka"}
    return {name for name in named - public if not name.startswith("kafka.errors.")}


@pytest.mark.parametrize("folder", ["evenlag", "examples", "benchmarks"])
def test_private_names_of_kafka_python_are_imported_by_one_module(folder: str) -> None:
    found = {path: private_to_kafka_python(path) for path in (ROOT / folder).rglob("*.py")}
    allowed = modules()[KAFKA_PYTHON]
    assert len(private_to_kafka_python(allowed)) > 5
    assert {path: names for path, names in found.items() if names and path != allowed} == {}


def test_every_module_has_a_layer_and_there_are_many() -> None:
    assert len(modules()) > 30
    assert {layer(module) for module in modules()} == set(range(len(LAYERS)))


@pytest.mark.slow
def test_no_module_imports_itself_in_a_circle() -> None:
    known = modules()
    graph = {
        module: {own_module(names) for names in imported(parsed(path), typing=False)} - {""}
        for module, path in known.items()
    }
    assert sum(map(len, graph.values())) > 200
    assert circles(graph) == []


@pytest.mark.parametrize("module", sorted(modules()))
def test_no_function_imports_a_module_that_is_loaded_anyway(module: str) -> None:
    functions = [each for each in ast.walk(parsed(modules()[module])) if isinstance(each, FUNCTIONS)]
    late = {own_module(names) for function in functions for names in imported(function)}
    assert not late & loaded_modules(module) - LAZY


@pytest.mark.slow
def test_no_function_has_the_name_of_a_module() -> None:
    """An import of one would give the other, depending on earlier imports."""
    known = modules()
    for module, path in known.items():
        bound = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        defined = {each.name: "" for each in parsed(path).body if isinstance(each, FUNCTIONS | ast.ClassDef)}
        if path.name == "__init__.py":
            for name, source in {**bound, **defined}.items():
                below = f"{module}.{name}"
                assert below not in known or source == below, f"{module} has {name}, and so has its folder"


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"e"}, "f": {"a"}}
    assert circles(graph) == ["a -> b -> c -> a", "e -> e"]
    source = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import x
def function():
    from y import z
"""
    assert list(imported(ast.parse(source), typing=False)) == [["typing.TYPE_CHECKING", "typing"], ["y.z", "y"]]


def printed_by(code: str) -> str:
    """Return the output of code in a new interpreter."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_evenlag_pulls_in_neither_spark_nor_kafka() -> None:
    assert printed_by(f"import sys, evenlag; print(*sorted({HEAVY} & set(sys.modules)))") == ""


@pytest.mark.slow
def test_pipeline_and_live_are_imported_on_request() -> None:
    code = (
        "import sys, evenlag\n"
        "lazy = {'evenlag.live', 'evenlag.pipeline', 'evenlag.spark'}\n"
        "assert not lazy & set(sys.modules) and {'live', 'pipeline', 'spark'} <= set(dir(evenlag))\n"
        "print(callable(evenlag.live.snapshot), 'plans' in dir(evenlag.pipeline), hasattr(evenlag, 'plans'))\n"
        f"print(*sorted({HEAVY} & set(sys.modules)))\n"
        "print(callable(evenlag.pipeline.plans), hasattr(evenlag.pipeline, 'plan'))\n"
    )
    assert printed_by(code).splitlines() == ["True True False", "", "True False"]


def test_without_spark_the_error_says_what_to_install() -> None:
    code = (
        "import sys\n"
        "sys.modules['pyspark'] = None\n"
        "import evenlag\n"
        "try: evenlag.pipeline.local_session\n"
        "except ModuleNotFoundError as error: print(error.name, error)\n"
        "from evenlag.cli import main\n"
        "sys.argv, sys.stderr = ['evenlag', 'demo', '--fleet'], sys.stdout\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code)\n"
    )
    needed = "pyspark is not installed; in a clone of evenlag: pip install '.[spark]'"
    assert printed_by(code).splitlines() == [
        f"pyspark evenlag.spark.local_session: {needed}", f"evenlag: {needed}", "1",
    ]  # fmt: skip


def test_every_name_of_spark_is_in_its_declared_module() -> None:
    from evenlag import pipeline, spark

    homes = {name: home for home, names in spark._HOMES.items() for name in names.split()}
    assert sorted(homes) == spark.__all__ == pipeline.__all__
    for name, home in homes.items():
        value = getattr(spark, name)
        if name.isupper():  # a table
            assert value is getattr(importlib.import_module(home), name)
        else:
            assert value.__module__ == home
        assert getattr(pipeline, name) is value


@pytest.mark.parametrize("room", ["evenlag.tables", "evenlag.spark.worker"])
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
    assert printed_by(code) == "imported"


@pytest.mark.skipif((ROOT / "PKG-INFO").exists(), reason="a source distribution has no links")
@pytest.mark.parametrize("name", ["model", "heuristics", "compare"])
def test_the_rooms_are_linked_in_the_root(name: str) -> None:
    assert (ROOT / name).resolve() == PACKAGE / name


GROUP_COMMANDS = (
    "plan",
    "audit",
    "frontier",
    "explain",
    "export --format lp",
    "whatif --change-members +1",
    "size --drain 15m --capacity 500",
)
ELSEWHERE = ("evenlag.spark", "evenlag.live.", "pyspark", "kafka")


@pytest.mark.parametrize("command", GROUP_COMMANDS)
def test_a_command_for_one_group_imports_no_module_of_spark(command: str) -> None:
    name, *options = command.split()
    words = [name, str(ROOT / "examples" / "kip-169.json"), *options]
    code = (
        "import io, sys\n"
        "from contextlib import redirect_stdout\n"
        "from evenlag.cli import main\n"
        f"sys.argv = {['evenlag', *words]}\n"
        "try:\n"
        "    with redirect_stdout(io.StringIO()): main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"print(*(name for name in sys.modules if name.startswith({ELSEWHERE})))\n"
    )
    assert printed_by(code) == ""


def test_no_module_at_the_top_has_the_name_of_one_of_python() -> None:
    # `spark-submit evenlag/__main__.py` puts this folder first on Python's path.
    assert not {path.stem for path in PACKAGE.glob("*.py")} & sys.stdlib_module_names - {"__main__"}


def test_every_folder_of_code_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert all((folder / "__init__.py").exists() for folder in folders)


# ---- the tests themselves --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_module_of_the_tests_is_loaded_once() -> None:
    known = modules(TESTS)
    helpers = {name for name in known if not name.split(".")[-1].startswith(("test_", "__main__"))}
    assert {"tests.support.problems", "tests.oracle.kafka"} <= helpers
    for name in helpers:
        importlib.import_module(name)
    names = defaultdict(set)
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).resolve() in known.values():
            names[Path(file).resolve()].add(module.__name__)
    assert len(names) > len(helpers)
    assert {path: each for path, each in names.items() if known.get(next(iter(each))) != path or len(each) > 1} == {}


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["tests", "benchmarks", "examples"])
def test_helpers_go_by_their_full_names(folder: str) -> None:
    short = {path.stem for path in (TESTS / "support").glob("*.py")} - {"__init__"}
    for path in (ROOT / folder).rglob("*.py"):
        assert not {name.split(".")[0] for name in imports(path)} & short, path


def test_no_test_file_is_longer_than_500_lines() -> None:
    files = [path for path in TESTS.rglob("*.py") if path.name.startswith("test_")]
    assert len(files) > 100
    lines = {path: len(path.read_text().splitlines()) for path in files}
    assert {str(path.relative_to(TESTS)): count for path, count in lines.items() if count > 500} == {}


def test_no_test_is_imported_by_another() -> None:
    may_do_so = re.compile(r"^ *(from|import) tests\b.*\btest_", re.MULTILINE)  # others need not be parsed
    for path in (path for path in TESTS.rglob("*.py") if may_do_so.search(path.read_text())):
        assert not [name for name in imports(path) if name.startswith("tests.") and ".test_" in name], path
