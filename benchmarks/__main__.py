"""Run benchmarks one after another and write each table to a file of its own, docs/benchmarks/NAME.md."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill

from benchmarks.tables import OTHERS, TABLES

FOLDER = Path(__file__).parent.parent / "docs" / "benchmarks"
WIDTH = 120  # characters of a line in the pages


def page(name: str, lines: Iterable[str], seed: int) -> str:
    """Return the text of a table's file: its title, how to renew it, the table and the seed."""
    title, *rest = "\n".join(lines).split("\n")
    lead = f"Renewed by `make bench tables={name}`. [Benchmarks](../benchmarks.md) explains gaps and times."
    return "\n".join([title, "", lead, *map(_wrapped, rest)]).rstrip() + f"\n\nSeed {seed}.\n"


def _wrapped(line: str) -> str:
    """Return a line of text, or an item of a list, in lines of at most `WIDTH`; rows of tables stay as they are."""
    if line.startswith("|") or len(line) <= WIDTH:
        return line
    return fill(line, WIDTH, subsequent_indent="  " if line[0] in "*-" else "", break_on_hyphens=False)


def asked() -> argparse.Namespace:
    """Read the tables and the seed from the command line."""
    names, others = ([table.__name__ for table in tables] for tables in (TABLES, OTHERS))
    usual = [name for name in names if name not in others]
    known = f"{', '.join(names)}; `others` for {', '.join(others)}; without: all but these"
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("tables", nargs="*", default=usual, help=f"tables to run: {known}")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if "others" in options.tables:
        options.tables += others
    unknown = set(options.tables) - {*names, "others"}
    if unknown:
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return options


def main() -> None:
    """Run the tables asked for and write each to its file as soon as it is done."""
    options = asked()
    FOLDER.mkdir(exist_ok=True)
    for table in TABLES:
        if table.__name__ not in options.tables:
            continue
        lines = []
        for line in table(options.seed):
            print(line, flush=True)
            lines.append(line)
        if not lines:
            continue  # it lacks a tool or data, and has said so
        path = FOLDER / f"{table.__name__}.md"
        path.write_text(page(table.__name__, lines, options.seed))
        print(f"written: {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


if __name__ == "__main__":
    main()
