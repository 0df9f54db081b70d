"""Arguments that bound the largest load from below and the smallest from above, each with a name and a number.

Every argument gives a pair: a lower bound on the largest load and an upper bound on the smallest, in messages per
weight. C members are active, S is the total lag, and each member holds `fewest` to `most` partitions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor

from evenlag.verifier.count_limits import Counts
from evenlag.verifier.question import RefusedError
from evenlag.verifier.stated_group import Group

Pair = tuple[Fraction | int, Fraction | int]

MOST_HOLDERS, MOST_SETS = 8, 50_000  # of the argument by weights and counts


class Loads:
    """Prove limits on loads, for one group under the lags of one scenario.

    Parameters
    ----------
    lags : list of int (P,)
    """

    def __init__(self, group: Group, counts: Counts, lags: Sequence[int]) -> None:
        self.group, self.counts, self.lags = group, counts, lags
        self.big = sorted((lags[p] for p in group.here), reverse=True)
        self.tops = [0, *accumulate(self.big)]  # tops[n]: lag of the n largest partitions
        self.lows = [0, *accumulate(reversed(self.big))]  # lows[n]: lag of the n smallest partitions
        self.total, self.members = self.tops[-1], len(group.active)
        self.unit = group.load_unit(lags)
        self.fewest = min(lo for lo, _ in counts.totals.values())
        self.most = max(hi for _, hi in counts.totals.values())

    def of(self, name: str, number: int) -> Pair:
        """Return the pair that an argument proves.

        Raises
        ------
        RefusedError
            There is no such argument, or it does not apply to the group.
        """
        if name not in ARGUMENTS:
            raise RefusedError(f"the certificate names an unknown argument on loads, {name!r}")
        needs_equal = name not in ("mean", "member", "subscriptions", "topic", "weights", "weights_and_counts")
        if needs_equal and not self.group.equal_weights:
            raise RefusedError(f"the argument {name!r} applies to members of equal weight only")
        pair: Pair = getattr(self, name)(number)
        return pair

    def rounded(self, pair: Pair) -> Pair:
        """Return the pair rounded to multiples of the unit of loads."""
        return ceil(Fraction(pair[0]) / self.unit) * self.unit, floor(Fraction(pair[1]) / self.unit) * self.unit

    def mean(self, _: int) -> Pair:
        """Prove that some member holds at least the mean, and some at most the mean."""
        mean = Fraction(self.total, self.members)
        return mean, mean

    def member(self, m: int) -> Pair:
        """Prove that a member holds at least its pins, and at most the largest partitions that its counts allow."""
        if m not in self.group.active:
            raise RefusedError("an argument names a member that may not hold a partition")
        pins = sum(self.lags[p] for p in self.group.here if self.group.pin[p] == m)
        most, taken = self.counts.totals[m][1], 0
        by_topic: dict[str, list[int]] = {}
        for p in self.group.here:
            if self.group.partitions[p][0] in self.group.allowed(m):
                by_topic.setdefault(self.group.partitions[p][0], []).append(self.lags[p])
        for topic, lags in by_topic.items():
            room = min(self.counts.cells.get((topic, m), (0, len(lags)))[1], most)
            taken += sum(sorted(lags, reverse=True)[:room])
        return pins / self.group.share[m], taken / self.group.share[m]

    def subscriptions(self, m: int) -> Pair:
        """Prove a cap on the load of members that take only the topics that member m takes."""
        group, mine = self.group, self.group.allowed(m)
        inside = [n for n in group.active if group.allowed(n) <= mine]
        lag = sum(self.lags[p] for p in group.here if group.partitions[p][0] in mine)
        return 0, lag / sum((group.share[n] for n in inside), Fraction(0))

    def topic(self, t: int) -> Pair:
        """Prove that topics open only to the subscribers of topic t must fit on those members."""
        group = self.group
        takers = {m for m in group.active if group.topics[t] in group.allowed(m)}
        inside = {topic for topic in group.topics if {m for m in group.active if topic in group.allowed(m)} <= takers}
        lag = sum(self.lags[p] for p in group.here if group.partitions[p][0] in inside)
        return lag / sum((group.share[n] for n in takers), Fraction(0)), self.total

    def biggest(self, _: int) -> Pair:
        """Prove that one member holds the largest partition, and the others at best share the rest evenly."""
        return self.oversized(1) if self.members > 1 else (self.total, self.total)

    def oversized(self, j: int) -> Pair:
        """Prove that some j members hold the j largest partitions and enough others; the rest share what is left."""
        count = len(self.big)
        self._check(1 <= j < self.members and j <= count)
        least = max(j * self.fewest, count - (self.members - j) * self.most, j)
        heavy = self.tops[j] + self.lows[least - j]
        return Fraction(heavy, j), Fraction(self.total - heavy, self.members - j)

    def undersized(self, j: int) -> Pair:
        """Prove that some j members hold the j smallest partitions and at most the others that counts allow."""
        count = len(self.big)
        self._check(1 <= j < self.members and j <= count)
        greatest = max(min(j * self.most, count - (self.members - j) * self.fewest), j)
        light = self.lows[j] + self.tops[min(greatest - j, count - j)]
        return Fraction(self.total - light, self.members - j), Fraction(light, j)

    def pigeonholes(self, t: int) -> Pair:
        """Prove that among the t·C + 1 largest partitions some t + 1 share a member; likewise among the smallest."""
        count, last = len(self.big), t * self.members + 1
        self._check(t >= 1 and last <= count)
        others = min(max(self.fewest - t - 1, 0), count - last)
        high = self.tops[last] - self.tops[last - t - 1] + self.lows[others]
        low = self.lows[last] - self.lows[last - t - 1] + self.tops[min(max(self.most - t - 1, 0), count)]
        return high, low

    def uneven(self, j: int) -> Pair:
        """Prove that the j members with the most partitions at best hold the smallest, and the others the largest."""
        self._check(1 <= j < self.members)
        heavy = self.lows[self.held(j)]
        return Fraction(heavy, j), Fraction(self.total - heavy, self.members - j)

    def held(self, j: int) -> int:
        """Return the least number of partitions of the j members with the most: counts are as even as limits allow."""
        limits, number = self.counts.totals.values(), len(self.big)

        def levelled(level: int) -> list[int]:
            return sorted((min(max(level, lo), hi) for lo, hi in limits), reverse=True)

        level = bisect_right(range(number + 1), number, key=lambda level: sum(levelled(level))) - 1
        counts = levelled(level)
        above = sum(count > level for count in counts)
        return sum(counts[:j]) + min(number - sum(counts), max(j - above, 0))

    def pairs(self, _: int) -> Pair:
        """Prove that with at most two partitions each, pairing large with small is best for both ends."""
        self._check(self.most <= 2)
        places = self.big + [0] * (2 * self.members - len(self.big))
        pairs = [places[i] + places[-1 - i] for i in range(self.members)]
        return max(pairs), min(pairs)

    def companions(self, low: int) -> Pair:
        """Prove that no plan fills every member beyond `low`: large partitions waste more lag than there is."""
        self._check(self._wasted(low + 1) > self.total)
        return 0, low

    def _wasted(self, low: int) -> int:
        """Return the lag needed to bring every member to a load of `low`."""
        positive = [lag for lag in reversed(self.big) if lag]
        if not positive:
            return self.members * low
        two, needed = min(2 * positive[0], low // 2), self.members * low
        lacking = []
        for lag in positive:
            if 2 * lag > low:
                short = max(low - lag, 0)
                needed += lag + (max(short, two) if short else 0) - low
                lacking += [short] if short else []
        # A partition with a lag below `two` may serve a member that lacks at most that lag, and saves the difference.
        lacking.sort()
        served, place = 0, 0
        for lag in positive:
            if lag >= two:
                break
            while place < len(lacking) and lacking[place] <= lag:
                place += 1
            if served < place:
                served, needed = served + 1, needed - (two - lag)
        return needed

    def topics(self, j: int) -> Pair:
        """Prove that the holders of the j largest partitions also hold enough of every topic, and enough in total."""
        fits = self.group.equal_subscriptions and bool(self.counts.cells)
        self._check(fits and 1 <= j < self.members and j <= len(self.big))
        of_topic: dict[str, list[int]] = {}
        order = sorted(self.group.here, key=lambda p: (-self.lags[p], p))
        for p in self.group.here:
            of_topic.setdefault(self.group.partitions[p][0], []).append(self.lags[p])
        held = Counter(self.group.partitions[p][0] for p in order[:j])
        heavy, needed, spare = sum(self.lags[p] for p in order[:j]), 0, list[int]()
        for topic, lags in of_topic.items():
            lags.sort()
            limits = [self.counts.cells[topic, m] for m in self.group.active]
            lo, hi = min(a for a, _ in limits), max(b for _, b in limits)
            some = max(j * lo, len(lags) - (self.members - j) * hi, held[topic])
            heavy += sum(lags[: some - held[topic]])
            spare += lags[some - held[topic] : max(min(j * hi, len(lags)), some) - held[topic]]
            needed += some
        more = max(j * self.fewest, len(self.big) - (self.members - j) * self.most) - needed
        heavy += sum(sorted(spare)[: max(more, 0)])
        return Fraction(heavy, j), Fraction(self.total - heavy, self.members - j)

    def weights(self, j: int) -> Pair:
        """Prove that the j largest partitions are at best on the j heaviest members; the others share the rest."""
        shares = sorted(self.group.share.values(), reverse=True)
        self._check(1 <= j <= min(len(shares), len(self.big)))
        rest = sum(shares[j:], Fraction(0))
        low = (self.total - self.tops[j]) / rest if rest else Fraction(self.total)
        return self.tops[j] / sum(shares[:j], Fraction(0)), low

    def weights_and_counts(self, j: int) -> Pair:
        """Prove that the holders of the j largest partitions also hold others, up to the least of their counts.

        They are up to j members, any of them; the others share the rest.
        """
        self._check(1 <= j <= min(MOST_HOLDERS, self.members - 1, len(self.big)))
        sets = {(0, Fraction(0)): 0}  # number of members and sum of their weights: least sum of their least counts
        for m in self.group.active:
            more = dict[tuple[int, Fraction], int]()
            for (held, share), count in sets.items():
                key, total = (held + 1, share + self.group.share[m]), count + self.counts.totals[m][0]
                if held < j and total < min(sets.get(key, total + 1), more.get(key, total + 1)):
                    more[key] = total
            sets |= more
            self._check(len(sets) <= MOST_SETS)
        pairs = [
            (self.tops[j] + self.lows[min(max(count - j, 0), len(self.big) - j)], share)
            for (held, share), count in sets.items()
            if held
        ]
        whole = sum(self.group.share.values(), Fraction(0))
        return min(lag / share for lag, share in pairs), max(
            (self.total - lag) / (whole - share) for lag, share in pairs
        )

    def _check(self, holds: bool) -> None:
        if not holds:
            raise RefusedError("an argument on loads does not apply to this group")


ARGUMENTS = (
    "mean", "member", "subscriptions", "topic", "biggest", "oversized", "undersized", "pigeonholes", "uneven", "pairs",
    "companions", "topics", "weights", "weights_and_counts",
)  # fmt: skip
