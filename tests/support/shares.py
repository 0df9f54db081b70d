"""A share of the cases of each test, for a quick look at all of them."""

from collections import Counter
from collections.abc import Iterable
from zlib import crc32

WHOLE = 48  # over the share: a quick test with at most 16 cases runs all of them if every third case is asked for


def chosen(names: Iterable[str], share: int, slow: Iterable[str] = ()) -> list[str]:
    """Return the first case of each test and about one in `share` of its others, the same ones in each run.

    A quick test with few cases keeps all: most such cases are written by hand, each for a reason of its own.

    `names` are pytest's: the case stands in brackets after the test.
    """
    names, slow = list(names), {_test(name) for name in slow}
    cases = Counter(map(_test, names))
    kept, seen = [], set()
    for name in names:
        test = _test(name)
        few = test not in slow and cases[test] <= WHOLE // share
        if few or test not in seen or crc32(name.encode()) % share == 0:
            kept.append(name)
        seen.add(test)
    return kept


def _test(name: str) -> str:
    return name.partition("[")[0]
