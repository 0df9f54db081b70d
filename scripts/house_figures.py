"""Print figures of the code: lines, files, functions with many parameters, constants, comments, twin names.

`python scripts/house_figures.py [FOLDER] [--long]`; with --long, also the functions with 8 or more parameters.
"""

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

MANY = 8
NO_COMMENT = re.compile(r"#\s*(fmt:|type:|noqa|ruff|----)")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def parameters(function: Function) -> int:
    """Return the number of named parameters, without `self` and `cls`."""
    named = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return len(named) - (bool(named) and named[0].arg in ("self", "cls"))


def constants(tree: ast.Module) -> int:
    """Return the number of constants of a module: assignments to names in capitals."""
    targets = [node.targets if isinstance(node, ast.Assign) else [node.target]
               for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]  # fmt: skip
    return sum(any(isinstance(each, ast.Name) and each.id.isupper() for each in some) for some in targets)


def comments(text: str) -> int:
    """Return the number of comments, without those for tools and those that divide a file."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(each.type == tokenize.COMMENT and not NO_COMMENT.match(each.string) for each in tokens)


def lines(folder: Path) -> Iterator[int]:
    """Yield the number of lines of each Python file."""
    return (path.read_text().count("\n") for path in folder.rglob("*.py"))


def main(root: Path, *, long: bool) -> None:
    """Print the figures."""
    texts = {path.relative_to(root / "evenlag"): path.read_text() for path in sorted(root.rglob("evenlag/**/*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    functions = [(path, each) for path, tree in trees.items() for each in ast.walk(tree) if isinstance(each, Function)]
    many = [(path, each) for path, each in functions if parameters(each) >= MANY]
    rooms = defaultdict(set)
    for path in texts:
        rooms[path.name].add(path.parts[0])
    twins = sorted(name for name, found in rooms.items() if len(found) > 1 and not name.startswith("__"))
    print(f"evenlag: {sum(lines(root / 'evenlag')):,} lines in {len(texts)} files, {len(functions)} functions")
    print(f"tests: {sum(lines(root / 'tests')):,} lines")
    print(f"{len(many)} functions with {MANY} or more parameters")
    print(f"{sum(map(constants, trees.values()))} constants, {sum(map(comments, texts.values()))} comments")
    print(f"{len(twins)} file names in several rooms: {', '.join(twins)}")
    for path, each in many if long else ():
        print(f"  {path}:{each.lineno} {each.name}: {parameters(each)}")


if __name__ == "__main__":
    main(Path(next((each for each in sys.argv[1:] if each != "--long"), ".")), long="--long" in sys.argv)
