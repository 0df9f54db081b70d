"""A share of the cases of each test, for a quick look at all of them."""

from collections import Counter
from collections.abc import Iterable
from zlib import crc32

WHOLE = 900  # over the square of the share: up to 100 cases by hand run if every third is asked for, 1 if every 30th


def chosen(names: Iterable[str], share: int, thinned: Iterable[str] = ()) -> list[str]:
    """Return the first case of each test and about one in `share` of its others, the same ones in each run.

    Tests that are not to be thinned keep all cases if they are not too many: each is written for a reason of its own.

    `names` are pytest's: the case stands in brackets after the test.
    """
    names, thinned = list(names), {_test(name) for name in thinned}
    cases = Counter(map(_test, names))
    kept, seen = [], set()
    for name in names:
        test = _test(name)
        few = test not in thinned and cases[test] <= WHOLE // share**2
        if few or test not in seen or crc32(name.encode()) % share == 0:
            kept.append(name)
        seen.add(test)
    return kept


def _test(name: str) -> str:
    return name.partition("[")[0]
