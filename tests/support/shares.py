"""A share of the cases of each test, for a quick look at all of them."""

from collections.abc import Iterable
from zlib import crc32


def chosen(names: Iterable[str], share: int) -> list[str]:
    """Return the first case of each test and about one in `share` of its others, the same ones in each run.

    `names` are pytest's: the case stands in brackets after the test.
    """
    kept, seen = [], set()
    for name in names:
        test = name.partition("[")[0]
        if test not in seen or crc32(name.encode()) % share == 0:
            kept.append(name)
        seen.add(test)
    return kept
