"""Print how many lines and branches of each room the tests reached, from the report that `coverage json` writes."""

import json
import sys
from collections import Counter
from pathlib import Path


def room_of(path: str) -> str:
    """Return the room of a module: its folder in evenlag/, for the rooms of search with the folder below."""
    parts = Path(path).parts[1:-1]
    return "/".join(parts[:2] if parts[:1] == ("search",) else parts[:1]) or "evenlag"


def lines_by_room(files: dict[str, dict[str, dict[str, int]]]) -> list[str]:
    """Return a table with a line for each room and one for all."""
    counts: dict[str, Counter[str]] = {}
    for path, report in files.items():
        for room in (room_of(path), "all"):
            counts.setdefault(room, Counter()).update(
                {name: int(report["summary"][name]) for name in ("covered_lines", "num_statements")}
                | {name: int(report["summary"][name]) for name in ("covered_branches", "num_branches")}
            )
    rows = sorted((room, found) for room, found in counts.items() if room != "all" and found["num_statements"])
    return [
        f"{'room':<18} {'lines':>6} {'reached':>8} {'branches':>9} {'reached':>8}",
        *(
            f"{room:<18} {found['num_statements']:>6} {share(found, 'covered_lines', 'num_statements'):>8} "
            f"{found['num_branches']:>9} {share(found, 'covered_branches', 'num_branches'):>8}"
            for room, found in [*rows, ("all", counts["all"])]
        ),
    ]


def share(found: Counter[str], part: str, whole: str) -> str:
    """Return a part as a percentage of the whole, `–` of nothing."""
    return f"{found[part] / found[whole]:.1%}" if found[whole] else "–"


if __name__ == "__main__":
    print("\n".join(lines_by_room(json.loads(Path(sys.argv[1]).read_text())["files"])))
