"""The tables of columns in the docs, which follow from `evenlag.tables`.

`python -m tests.support.column_tables` writes them into the pages anew.
"""

import re
from pathlib import Path

from evenlag.tables import columns, outputs
from evenlag.tables.schemas import Schema

ROOT = Path(__file__).parents[2]
PAGES = ("docs/snapshot.md", "docs/reference/tables.md")
BLOCK = re.compile(r"<!-- columns: (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def renewed(text: str) -> str:
    """Return the text of a page with its tables written anew."""

    def anew(block: re.Match[str]) -> str:
        table = getattr(columns, block[1], None) or getattr(outputs, block[1])
        sentences = f"{table.about}\n\n" if isinstance(table, Schema) else ""
        return f"<!-- columns: {block[1]} -->\n\n{sentences}{table.markdown()}\n\n<!-- end -->"

    return BLOCK.sub(anew, text)


if __name__ == "__main__":
    for page in PAGES:
        path = ROOT / page
        path.write_text(renewed(path.read_text()))
