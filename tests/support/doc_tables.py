"""Tables on pages of the docs, for tests that compare them with the code."""

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def table(page: str, heading: str) -> list[list[str]]:
    """Return the rows of the first table after a heading, without its head."""
    lines = (DOCS / page).read_text().split(heading, 1)[1].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    ends = next((n for n, line in enumerate(lines) if line.startswith("## ")), len(lines))
    count = sum(line.startswith("|") for line in lines[:ends])
    return rows[2:count]
