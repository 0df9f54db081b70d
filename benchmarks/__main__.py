"""evenlag beside what else there is, on the same groups, one after another in one run."""

import argparse
from pathlib import Path

from benchmarks.tables import TABLES

DOCS = Path(__file__).parent.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Written by `make bench` (about half an hour on two cores). A gap is (spread − proven bound) / mean load. Times are of
a shared machine: compare them within a table only.
"""


def main() -> None:
    """Run the tables asked for; write docs/benchmarks.md when all of them are."""
    names = [table.__name__ for table in TABLES]
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("tables", nargs="*", default=names, help=f"which ones to run: {', '.join(names)}; default all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    unknown = set(options.tables) - set(names)
    if unknown:
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    lines = [HEAD, f"Seed {options.seed}.\n"]
    for table in TABLES:
        if table.__name__ in options.tables:
            for line in table(options.seed):
                print(line, flush=True)
                lines.append(line)
    if len(options.tables) == len(TABLES):
        DOCS.write_text("\n".join(lines) + "\n")
        print(f"written: {DOCS.relative_to(Path.cwd()) if DOCS.is_relative_to(Path.cwd()) else DOCS}")


main()
