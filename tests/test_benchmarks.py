"""Benchmarks are run by hand: what they import is there, and every table of the page is one that can be made again."""

import re
from pathlib import Path

from benchmarks.tables import TABLES

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def test_every_table_of_the_page_can_be_made_again() -> None:
    shown = re.findall(r"<!-- table (\w+) -->", PAGE.read_text())
    assert shown
    assert set(shown) <= {table.__name__ for table in TABLES}
