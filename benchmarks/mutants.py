"""Mutation testing: a seeded sample of small changes to the code, each of which a test of its room should notice.

Each mutant runs in a copy of the checkout, in a process forked from this one, which has imported the large libraries.
The tests that name the mutant's module run first, then the others of its room; the first failure ends them. Constants
of modules, messages and annotations are never changed: most of those mutants only change the time that a search takes.

`python -m benchmarks.mutants COMMIT` compares the tests of a commit with today's, on mutants that both have.
"""

import argparse
import ast
import copy
import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeVar

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
ONE_OF = 3  # further cases of a test, as in scripts/test.sh
ROOMS = ("model", "heuristics", "search", "tables", "compare", "verifier")  # each a folder of evenlag and of tests
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
Drawn = TypeVar("Drawn")
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
        "evenlag/tables/read.py",
        "latest",
        "len(group.times) > 1 → len(group.times) >= 1",
    ): "a record of one time changes no problem",
    (
        "evenlag/search/exact/prefix_table.py",
        "begin",
        "lags[topic.places] < capacity → lags[topic.places] <= capacity",
    ): "a lag as large as the table fits no load of it",
    (
        "evenlag/search/improve/local_search.py",
        "_LocalSearch._best",
        "state.starts[others + 1] - state.starts[others] → state.starts[others + 1] + state.starts[others]",
    ): "only decides how many exchanges are looked at together",
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
    def key(self) -> tuple[str, str, str]:
        """The file, the function and the change, which identify a mutant in another state of the code."""
        return self.path, self.function, self.change

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


def mutants_of_room(room: str, checkout: Path = ROOT) -> list[Mutant]:
    """Return every mutant of a room, by file."""
    return [
        mutant
        for path in sorted((checkout / "evenlag" / room).rglob("*.py"))
        for mutant in mutants_of(path.relative_to(checkout).as_posix(), path.read_bytes())
    ]


def sample(every: list[Drawn], room: str, seed: int, count: int = OF_EACH_ROOM) -> list[Drawn]:
    """Return a random sample of a room's mutants, in their order."""
    places = Random(f"{seed} {room}").sample(range(len(every)), min(count, len(every)))
    return [every[place] for place in sorted(places)]


def mutants_of_both(room: str, before: Path, after: Path) -> list[tuple[Mutant, Mutant]]:
    """Return the mutants that make the same change in the same function of two checkouts, in pairs."""
    former: dict[tuple[str, str, str], list[Mutant]] = {}
    latter: dict[tuple[str, str, str], list[Mutant]] = {}
    for checkout, by_key in ((before, former), (after, latter)):
        for mutant in mutants_of_room(room, checkout):
            by_key.setdefault(mutant.key, []).append(mutant)
    return [
        pair
        for key, mutants in latter.items()
        if len(mutants) == len(former.get(key, []))
        for pair in zip(former[key], mutants, strict=True)
    ]


def tests_of(room: str, path: str, checkout: Path) -> tuple[list[str], list[str]]:
    """Return the test files of a room that name a module, and the others."""
    files = {
        file.relative_to(checkout).as_posix(): Path(path).stem in file.read_text()
        for file in sorted((checkout / "tests" / room).rglob("test_*.py"))
    }
    return [file for file, names in files.items() if names], [file for file, names in files.items() if not names]


def run_tests(checkout: Path, files: list[str], one_of: int = ONE_OF) -> str:
    """Run tests in a forked process until the first fails; return `passed`, `failed` or `ended`, at a limit."""
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
        marks = "not long and not spark and not broker and not cluster"
        words = ["-x", "-q", "-m", marks, "-p", "no:cacheprovider", "-p", "no:xdist"]
        words += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of plugins that are imported already
        words += ["--share", str(one_of)] if one_of > 1 else []
        os._exit(importlib.import_module("pytest").main(words + files))
    _, status, _ = os.wait4(child, 0)
    if os.WIFSIGNALED(status):
        return "ended"
    return {0: "passed", 5: "passed"}.get(os.WEXITSTATUS(status), "failed")


def outcome(mutant: Mutant, room: str, checkout: Path, one_of: int = ONE_OF) -> str:
    """Return the outcome of a room's tests on a mutant."""
    path = checkout / mutant.path
    source = path.read_bytes()
    path.write_bytes(mutant.applied(source))
    try:
        for files in tests_of(room, mutant.path, checkout):
            if (found := run_tests(checkout, files, one_of)) != "passed":
                return found
        return "passed"
    finally:
        path.write_bytes(source)


def outcomes_of(
    mutants: list[Mutant], room: str, checkout: Path, judge: Callable[[Mutant, str, Path, int], str], one_of: int
) -> list[str]:
    """Return the outcome of each mutant; raise RuntimeError if the room's tests fail without any."""
    outcomes = [judge(mutant, room, checkout, one_of) for mutant in mutants]
    if "passed" not in outcomes:  # where one survives, all tests have passed
        naming, others = tests_of(room, room, checkout)
        if run_tests(checkout, naming + others, one_of) != "passed":
            raise RuntimeError(f"tests of {room} fail without any mutant; run them by hand")
    return outcomes


def mutants(seed: int, judge: Callable[[Mutant, str, Path, int], str] = outcome) -> Iterator[str]:
    """Killed mutants of each room, and those that survive."""
    yield "# Mutants: changes to the code that tests notice\n"
    yield (
        f"{OF_EACH_ROOM} mutants of each room, drawn at random from all changes to comparisons, operators, numbers, "
        "conditions and statements inside functions.\n\n* **killed**: a test of the room that `make test` runs without "
        f"Spark or a broker fails, or takes more than {LIMIT} s of processor time or {MEMORY >> 30} GiB\n"
        "* **equivalent**: changes no result; the share leaves it out\n"
    )
    yield "| room | mutants | killed | equivalent | survived | share killed |"
    yield "|---" * 6 + "|"
    survivors = []
    with tempfile.TemporaryDirectory(prefix="evenlag-mutants-") as folder:
        checkout = copied(Path(folder))
        for room in ROOMS:
            drawn = sample(mutants_of_room(room), room, seed)
            outcomes = outcomes_of(drawn, room, checkout, judge, ONE_OF)
            left = [mutant for mutant, found in zip(drawn, outcomes, strict=True) if found == "passed"]
            same = [mutant for mutant in left if mutant.key in EQUIVALENT]
            killed, judged = len(drawn) - len(left), len(drawn) - len(same)
            survived = len(left) - len(same)
            yield f"| {room} | {len(drawn)} | {killed} | {len(same)} | {survived} | {killed / judged:.0%} |"
            survivors += left
    yield from listed(survivors)


def listed(survivors: list[Mutant]) -> Iterator[str]:
    """Yield a table of the mutants that no test killed."""
    if survivors:
        yield "\n| survived | in | change | equivalent |"
        yield "|---" * 4 + "|"
    for mutant in survivors:
        reason = EQUIVALENT.get(mutant.key, "no")
        change = mutant.change.replace("|", "\\|")
        yield f"| {mutant.path.removeprefix('evenlag/')}:{mutant.line} | `{mutant.function}` | `{change}` | {reason} |"


def copied(folder: Path, commit: str | None = None) -> Path:
    """Copy the checkout, or a commit of it with its extensions compiled, into a folder."""
    checkout = folder / (commit or "checkout")
    for library in LIBRARIES:
        importlib.import_module(library)
    if commit is None:
        return shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*LEFT_OUT))
    checkout.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "x"], cwd=checkout, input=archive.stdout, check=True)
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=checkout, check=True)
    return checkout


def before_and_after(commit: str, rooms: Sequence[str], seed: int, count: int) -> Iterator[str]:
    """Yield a table of the mutants that the tests of a commit kill, each case run, and that today's kill."""
    yield "| room | mutants | killed before | killed now | only before | only now | equivalent | survived | seconds |"
    yield "|---" * 9 + "|"
    survivors = []
    with tempfile.TemporaryDirectory(prefix="evenlag-mutants-") as folder:
        checkouts = copied(Path(folder), commit), copied(Path(folder))
        for room in rooms:
            pairs = sample(mutants_of_both(room, *checkouts), room, seed, count)
            killed, seconds = [], []
            for checkout, drawn, one_of in zip(checkouts, zip(*pairs, strict=True), (1, ONE_OF), strict=True):
                began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
                found = outcomes_of(list(drawn), room, checkout, outcome, one_of)
                killed.append({place for place, each in enumerate(found) if each != "passed"})
                seconds.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began)
            former, latter = killed
            left = [mutant for place, (_, mutant) in enumerate(pairs) if place not in latter]
            same = [mutant for mutant in left if mutant.key in EQUIVALENT]
            cells = len(pairs), len(former), len(latter), len(former - latter), len(latter - former), len(same)
            processor = " → ".join(f"{each:.0f}" for each in seconds)
            yield f"| {room} | {' | '.join(map(str, cells))} | {len(left) - len(same)} | {processor} |"
            survivors += left
    yield from listed(survivors)


def main() -> None:
    """Compare the tests of a commit with today's."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants")
    parser.add_argument("commit", help="the state before, of which every case runs")
    parser.add_argument("--rooms", nargs="*", default=ROOMS)
    parser.add_argument("--each", type=int, default=10, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for line in before_and_after(options.commit, options.rooms, options.seed, options.each):
        print(line, flush=True)


if __name__ == "__main__":
    main()
