"""evenlag beside what else there is, on the same groups, one after another in one run."""

import argparse
import re
from pathlib import Path

from benchmarks.tables import OTHERS, TABLES

DOCS = Path(__file__).parent.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Written by `make bench` (about an hour and a half on two cores; `make bench tables="scale rules"` renews some of
them). `make bench tables=others` measures other people's tools, `OTHERS=few` their small cells alone. A gap is
(spread − proven bound) / mean load. Times are of a shared machine: compare them within a table only.
"""


def sections() -> dict[str, str]:
    """Tables that docs/benchmarks.md has already, by name."""
    text = DOCS.read_text() if DOCS.exists() else ""
    return dict(re.findall(r"<!-- table (\w+) -->\n(.*?)(?=<!-- table |\Z)", text, flags=re.DOTALL))


def main() -> None:
    """Run the tables asked for and write them to docs/benchmarks.md, each as soon as it is done."""
    names = [table.__name__ for table in TABLES]
    parser = argparse.ArgumentParser(prog="make bench")
    others = [table.__name__ for table in OTHERS]
    usual = [name for name in names if name not in others]
    known = f"{', '.join(names)}; `others` for {', '.join(others)}; without: all but these"
    parser.add_argument("tables", nargs="*", default=usual, help=f"which ones to run: {known}")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if "others" in options.tables:
        options.tables += others
    unknown = set(options.tables) - {*names, "others"}
    if unknown:
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for table in TABLES:
        if table.__name__ not in options.tables:
            continue
        lines = []
        for line in table(options.seed):
            print(line, flush=True)
            lines.append(line)
        if not lines:
            continue  # it has not what it needs, and has said so
        done = sections()
        done[table.__name__] = "\n".join([*lines, "", f"Seed {options.seed}.", "", ""])
        DOCS.write_text(HEAD + "\n" + "".join(f"<!-- table {name} -->\n{done[name]}" for name in names if name in done))
    print(f"written: {DOCS.relative_to(Path.cwd()) if DOCS.is_relative_to(Path.cwd()) else DOCS}")


main()
