"""Mutation testing: a seeded sample of small changes to the code, each of which a test of its room should notice.

Each mutant runs in a copy of the checkout, in a process forked from this one, which has imported the large libraries.
The tests that name the mutant's module run first, then the others of its room; the first failure ends them. Constants
of modules, messages and annotations are never changed: most of those mutants only change the time that a search takes.
"""

import ast
import copy
import importlib
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

ROOT = Path(__file__).parent.parent
LEFT_OUT = (".git", ".venv", ".cache", "site", "build", "__pycache__", ".*_cache", ".hypothesis")
LIBRARIES = (
    "numpy",
    "hypothesis",
    "pytest",
    "ortools",
    "pulp",
    "highspy",
    "narwhals",
    "pandas",
    "polars",
    "rich.table",
)
LIMIT = 300  # seconds of processor time for the tests of one mutant
MEMORY = 8 << 30  # bytes of address space
OF_EACH_ROOM = 20
ROOMS = {  # folder of the code: folders and files of its tests
    "model": ("tests/model",),
    "search/exact": ("tests/search/exact", "tests/search/test_patterns.py", "tests/search/test_rounded_plans.py"),
    "tables": ("tests/tables",),
}
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "argmin": "argmax", "argmax": "argmin"}
Code = ast.expr | ast.stmt
# Mutants that change no result: file, function, the change, and the reason.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "evenlag/tables/loading.py",
        "_json_form",
        "{\"topics\", \"members\"} <= set(document) → {'topics', 'members'} < set(document)",
    ): "no other format recognises a problem of topics and members alone",
    (
        "evenlag/search/exact/move_patterns.py",
        "cheapest_window",
        "fits - least → fits + least",
    ): "only decides when a finer grid takes over",
    (
        "evenlag/search/exact/move_patterns.py",
        "_ask_ends",
        "window.low + window.high → window.low - window.high",
    ): "only decides which ends are asked about; each answer holds",
    ("evenlag/search/exact/prefix_table.py", "Listing.words", "1 → 2"): "another word of a bit set stays empty",
    ("evenlag/search/exact/windows.py", "Prices.least_highs", "1 → 2"): "one more load, which no range reaches",
}


@dataclass(frozen=True)
class Mutant:
    """One change: the bytes from `start` to `end` of a file become `after`."""

    path: str
    line: int
    function: str
    start: int
    end: int
    before: str
    after: str

    @property
    def change(self) -> str:
        """The change as text, without the parentheses that keep it one expression."""
        return f"{' '.join(self.before.split())} → {self.after.removeprefix('(').removesuffix(')')}"

    def applied(self, source: bytes) -> bytes:
        """Return the source with the change."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def changed(node: Code) -> Iterator[Code]:
    """Yield changed copies of an expression or statement."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield ast.Compare(node.left, [COMPARISONS[type(op)]()], node.comparators)
        case ast.BinOp(op=op) if type(op) in OPERATORS and not isinstance(node.left, ast.Constant | ast.JoinedStr):
            yield ast.BinOp(node.left, OPERATORS[type(op)](), node.right)
        case ast.BoolOp(op=op):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(number)):
            yield ast.Constant(number + 1)
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            yield ast.Call(ast.Name(NAMES[name]), node.args, node.keywords)
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in NAMES:
            yield ast.Call(ast.Attribute(owner, NAMES[name]), node.args, node.keywords)
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)
        case ast.AugAssign() | ast.Expr(value=ast.Call()) | ast.Raise():
            yield ast.Pass()
        case ast.Continue():
            yield ast.Break()


def within_functions(node: ast.AST, function: str = "") -> Iterator[tuple[Code, str]]:
    """Yield the nodes inside functions that may be changed, with the function's name."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "pattern") or isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip, where both are always equally long
            continue
        for each in value if isinstance(value, list) else [value]:
            if not isinstance(each, ast.AST):
                continue
            if isinstance(each, ast.FunctionDef | ast.ClassDef):
                yield from within_functions(each, f"{function}.{each.name}".lstrip("."))
                continue
            if function and isinstance(each, ast.expr | ast.stmt):
                yield each, function
            yield from within_functions(each, function)


def mutants_of(path: str, source: bytes) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for node, function in within_functions(ast.parse(source)):
        for after in changed(node):
            text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(after)))
            start = begins[node.lineno - 1] + node.col_offset
            end = begins[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            whole = text if isinstance(after, ast.stmt | ast.Constant) else f"({text})"
            yield Mutant(path, node.lineno, function, start, end, source[start:end].decode(), whole)


def sample(room: str, seed: int, count: int = OF_EACH_ROOM) -> list[Mutant]:
    """Return a random sample of the mutants of a room, in the order of files and lines."""
    every = [
        mutant
        for path in sorted((ROOT / "evenlag" / room).rglob("*.py"))
        for mutant in mutants_of(path.relative_to(ROOT).as_posix(), path.read_bytes())
    ]
    drawn = Random(f"{seed} {room}").sample(every, min(count, len(every)))
    return sorted(drawn, key=lambda mutant: (mutant.path, mutant.line, mutant.start))


def tests_of(room: str, path: str) -> tuple[list[str], list[str]]:
    """Return the test files of a room that name a module, and the others."""
    files = [
        file.relative_to(ROOT).as_posix()
        for place in ROOMS[room]
        for file in ([ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("test_*.py")))
    ]
    name = Path(path).stem
    naming = [file for file in files if name in (ROOT / file).read_text()]
    return naming, [file for file in files if file not in naming]


def run_tests(checkout: Path, files: list[str]) -> str:
    """Run quick tests in a forked process until the first fails; return `passed`, `failed` or `ended`, at a limit."""
    if not files:
        return "passed"
    child = os.fork()
    if not child:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background ignores
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 10))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        for name in [name for name in sys.modules if name.split(".")[0] in ("evenlag", "tests", "benchmarks")]:
            del sys.modules[name]
        os.chdir(checkout)
        sys.path[:0] = [str(checkout)]
        os.environ["PYTHONPATH"] = str(checkout)
        marks = "not slow and not spark and not broker and not cluster"
        words = ["-x", "-q", "-m", marks, "-p", "no:cacheprovider", "-p", "no:xdist"]
        words += ["-W", "ignore::pytest.PytestAssertRewriteWarning", *files]  # of plugins that are imported already
        os._exit(importlib.import_module("pytest").main(words))
    _, status, _ = os.wait4(child, 0)
    if os.WIFSIGNALED(status):
        return "ended"
    return {0: "passed", 5: "passed"}.get(os.WEXITSTATUS(status), "failed")


def outcome(mutant: Mutant, room: str, checkout: Path) -> str:
    """Return what the tests of the room make of a mutant."""
    path = checkout / mutant.path
    source = path.read_bytes()
    path.write_bytes(mutant.applied(source))
    try:
        for files in tests_of(room, mutant.path):
            if (found := run_tests(checkout, files)) != "passed":
                return found
        return "passed"
    finally:
        path.write_bytes(source)


def mutants(seed: int, judge: Callable[[Mutant, str, Path], str] = outcome) -> Iterator[str]:
    """Killed mutants of each room, and those that survive."""
    yield "# Mutants: changes to the code that tests notice\n"
    yield (
        f"{OF_EACH_ROOM} mutants of each room, drawn at random from all changes to comparisons, operators, numbers, "
        "conditions and statements inside functions.\n\n* **killed**: a quick test of the room fails, or takes more "
        f"than {LIMIT} s of processor time or {MEMORY >> 30} GiB\n* **equivalent**: changes no result; the share "
        "leaves it out\n"
    )
    yield "| room | mutants | killed | equivalent | survived | share killed |"
    yield "|---" * 6 + "|"
    for library in LIBRARIES:
        importlib.import_module(library)
    survivors = []
    with tempfile.TemporaryDirectory(prefix="evenlag-mutants-") as folder:
        checkout = Path(folder) / "evenlag"
        shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for room in ROOMS:
            if run_tests(checkout, [file for files in tests_of(room, room) for file in files]) != "passed":
                raise RuntimeError(f"tests of {room} fail without any mutant; run them by hand")
            outcomes = {mutant: judge(mutant, room, checkout) for mutant in sample(room, seed)}
            left = [mutant for mutant, found in outcomes.items() if found == "passed"]
            same = [mutant for mutant in left if (mutant.path, mutant.function, mutant.change) in EQUIVALENT]
            killed, judged = len(outcomes) - len(left), len(outcomes) - len(same)
            survived = len(left) - len(same)
            yield f"| {room} | {len(outcomes)} | {killed} | {len(same)} | {survived} | {killed / judged:.0%} |"
            survivors += left
    yield from listed(survivors)


def listed(survivors: list[Mutant]) -> Iterator[str]:
    """Yield a table of the mutants that no test killed."""
    if survivors:
        yield "\n| survived | in | change | equivalent |"
        yield "|---" * 4 + "|"
    for mutant in survivors:
        reason = EQUIVALENT.get((mutant.path, mutant.function, mutant.change), "no")
        change = mutant.change.replace("|", "\\|")
        yield f"| {mutant.path.removeprefix('evenlag/')}:{mutant.line} | `{mutant.function}` | `{change}` | {reason} |"
