"""Complete search for a plan below a bound, by dynamic programming over the sets of partitions that members may hold.

Loads are whole numbers here: messages per weight times a common factor. For every member the search lists the sets of
partitions that a plan below the bound could give it, and joins these lists member by member. A state is the set of
partitions held so far; its labels are the lowest load, the highest load and the moves. If that takes too long, each
number of moves is searched separately, and prices of partitions (reduced_costs.py) exclude most sets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import product
from math import lcm

from evenlag.verifier.count_limits import Counts
from evenlag.verifier.effort import Effort
from evenlag.verifier.question import Question, UncheckedError
from evenlag.verifier.reduced_costs import Option, places, reduced
from evenlag.verifier.stated_group import Group

AT_ONCE = 0.5  # share of the effort for joining the complete lists of members alike
STEPS = 15  # effort for a set that fits; one that does not takes 1
SUBSET = 12  # effort for a subset of one member's partitions

Label = tuple[int, int, int]  # lowest load, highest load (at least the proven minimum - 1), moves
Subsets = dict[tuple[int, ...], tuple[list[int], list[int]]]  # by counts: loads and sets
States = dict[int, list[Label]]  # by set of partitions held: bit i is partition i
Lists = dict[int, list[Option]]  # options of each member


class Search:
    """Complete search for a plan below a bound, which gives up beyond an effort.

    Parameters
    ----------
    group : Group
        Without scenarios.
    counts : Counts
        Exact limits.
    pair : (Fraction, Fraction)
        Lower bound on the largest load, upper bound on the smallest.
    bound : Fraction
        In messages.
    """

    def __init__(
        self, group: Group, question: Question, counts: Counts, pair: tuple[Fraction, Fraction], bound: Fraction,
        effort: Effort,
    ) -> None:  # fmt: skip
        self.group, self.counts, self.effort = group, counts, effort
        price = Fraction(question.price)
        scale = lcm(group.scale, price.denominator, bound.denominator)
        self.scale, self.price, self.most = scale, int(price * scale), int(bound * scale) - 1
        self.spread = question.kind == "spread"
        self.high, self.low = int(-(-(pair[0] * scale) // 1)), int(pair[1] * scale // 1)
        self.here = sorted(group.here, key=lambda p: -group.lags[p])  # bit 0 is the largest
        self.factor = {m: int(scale / group.share[m]) for m in group.active}
        owned = sum(group.owner[p] is not None for p in group.here)
        lost = sum(group.owner[p] is not None and group.owner[p] not in group.active for p in group.here)
        self.lost = lost  # moves that every plan makes; counted at the member that takes the partition
        self.budget = owned if question.max_moves is None else min(question.max_moves, owned)
        self.own = {m: sum(1 << i for i, p in enumerate(self.here) if group.owner[p] == m) for m in group.active}
        self.elsewhere = {
            m: sum(1 << i for i, p in enumerate(self.here) if group.owner[p] not in (None, m)) for m in group.active
        }
        self.all = (1 << len(self.here)) - 1
        self.exactly: int | None = None  # the number of moves that is searched separately

    def width(self, moves: int) -> int:
        """Return the largest spread (makespan) of a plan below the bound with these moves; negative if none."""
        if moves > (self.budget if self.exactly is None else self.exactly):
            return -1
        return self.most - self.price * (moves if self.exactly is None else self.exactly)

    def window(self, moves: int) -> tuple[int, int]:
        """Return the lowest and highest load of a member in such a plan."""
        width = self.width(moves)
        if width < 0:
            return 1, 0
        if self.spread:
            return int(max(self.high - width, 0)), int(self.low + width)
        return 0, width

    def found(self) -> Fraction | None:
        """Return the objective of a plan below the bound, or None if there is no such plan.

        Raises
        ------
        UncheckedError
            The search takes more than the effort allowed.
        """
        if self.width(self.lost) < max(self.high - (self.low if self.spread else 0), 0):
            return None
        lists = {m: self._options(m) for m in self.group.active}
        if self._alike:
            whole, self.effort = self.effort, self.effort.part(AT_ONCE)
            try:
                return self._joined_all(lists)
            except UncheckedError:
                self.effort = whole
        return self._by_moves(lists)

    @property
    def _alike(self) -> bool:
        """Return True if all members may hold the same sets at the same cost."""
        return len({self._kind(m) for m in self.group.active}) == 1 and not any(self.own.values())

    def _by_moves(self, lists: Lists) -> Fraction | None:
        """Search each number of moves separately: the more moves, the narrower the window of loads."""
        matter = bool(self.price) or self.budget < sum(own.bit_count() for own in self.own.values()) + self.lost
        moves, most = (0 if self.price else self.budget), self.budget
        prices: dict[int, int] = {}
        least = max(self.high - (self.low if self.spread else 0), 0)
        while moves <= most and self.most - self.price * moves >= least:
            self.exactly = moves
            low, high = self.window(moves)
            others, highest = self._beside(low)
            here = {
                m: [
                    each
                    for each in options
                    if (low <= each.load <= min(high, others) or self.high <= each.load <= min(high, highest))
                    and each.takes + each.gives <= moves
                ]
                for m, options in lists.items()
            }
            few, prices = reduced(here, len(self.here), moves if matter else 0, prices, matter, self._spend)
            if few is not None and (found := self._joined_all(few)) is not None:
                return found
            moves += 1
        self.exactly = None
        return None

    def _beside(self, low: int) -> tuple[int, int]:
        """Return the highest load that the other members leave to one, if each has at least `low` and one the highest.

        The first number is for a member below the highest load, the second for one that may have it.
        """
        total, members = self._sum_of(self.all), len(self.group.active)
        if len(set(self.factor.values())) > 1 or members < 2:
            return self.most + self.low, self.most + self.low  # at least the end of any window
        return total - self.high - (members - 2) * low, total - (members - 1) * low

    def _joined_all(self, lists: Lists) -> Fraction | None:
        """Return the lowest objective of all plans made of these sets, if it is below the bound."""
        if not all(lists.values()):
            return None
        labels = self._joined(list(lists), lists, 0).get(self.all, []) if self._alike else self._in_halves(lists)
        costs = [max(high, self.high) - (low if self.spread else 0) + self.price * moves for low, high, moves in labels]
        return Fraction(min(costs), self.scale) if costs and min(costs) <= self.most else None

    def _kind(self, m: int) -> object:
        cells = tuple(sorted((topic, limits) for (topic, member), limits in self.counts.cells.items() if member == m))
        forced = tuple(p for p in self.here if self.group.takers[p] == [m])
        able = tuple(p for p in self.here if m in self.group.takers[p])
        return able, self.factor[m], self.counts.totals[m], cells, forced

    def _spend(self, amount: int) -> None:
        self.effort.spend(amount)

    # ---- sets of one member

    def _options(self, m: int) -> list[Option]:
        """List the sets that a plan below the bound could give a member: of its own partitions and of others'."""
        group, own = self.group, self.own[m]
        mine = [i for i, p in enumerate(self.here) if m in group.takers[p]]
        kept = [i for i in mine if own >> i & 1] or mine[: len(mine) // 2]
        taken = [i for i in mine if i not in set(kept)]
        ones, others = self._subsets(kept, m), self._subsets(taken, m)
        forced = sum(1 << i for i in mine if group.takers[self.here[i]] == [m])
        found: list[Option] = []
        for (counts, (loads, sets)), (other_counts, (other_loads, other_sets)) in product(ones.items(), others.items()):
            if not self._allowed(m, counts, other_counts):
                continue
            takes = other_counts[0] + counts[0]
            gives = own.bit_count() - counts[1] - other_counts[1]
            low, high = self.window(takes + gives)
            if low > high:
                continue
            self._spend(len(loads))
            for load, held in zip(loads, sets, strict=True):
                first, last = bisect_left(other_loads, low - load), bisect_right(other_loads, high - load)
                self._spend(2 * (last - first) + 1)
                for i in range(first, last):
                    both = held | other_sets[i]
                    if both & forced == forced:
                        found.append(Option(both, load + other_loads[i], takes, gives))
        return found

    def _subsets(self, chosen: list[int], m: int) -> Subsets:
        """Return all subsets within the limits by (takes, own partitions, count of each topic), loads ascending."""
        group, own, elsewhere, factor = self.group, self.own[m], self.elsewhere[m], self.factor[m]
        topics = group.topics
        most = self.counts.totals[m][1]
        many: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, (0, 0, *[0] * len(topics)))]
        for i in chosen:
            topic, number = group.partitions[self.here[i]][0], len(many)
            at = 2 + topics.index(topic)
            limit = self.counts.cells.get((topic, m), (0, most))[1]
            load, bit = group.lags[self.here[i]] * factor, 1 << i
            takes, keeps = elsewhere >> i & 1, own >> i & 1
            self._spend(SUBSET * number)
            for held, sum_, counts in many[:number]:
                if counts[at] >= limit or sum(counts[2:]) >= most or self.width(counts[0] + takes) < 0:
                    continue
                more = list(counts)
                more[0], more[1], more[at] = counts[0] + takes, counts[1] + keeps, counts[at] + 1
                many.append((held | bit, sum_ + load, tuple(more)))
        grouped: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for held, sum_, counts in many:
            grouped.setdefault(counts, []).append((sum_, held))
        return {
            counts: ([sum_ for sum_, _ in each], [held for _, held in each])
            for counts, each in ((counts, sorted(each)) for counts, each in grouped.items())
        }

    def _allowed(self, m: int, counts: tuple[int, ...], others: tuple[int, ...]) -> bool:
        """Return True if a member may hold these counts of each topic."""
        held = [a + b for a, b in zip(counts[2:], others[2:], strict=True)]
        lo, hi = self.counts.totals[m]
        if not lo <= sum(held) <= hi:
            return False
        for topic, number in zip(self.group.topics, held, strict=True):
            lo, hi = self.counts.cells.get((topic, m), (0, number))
            if not lo <= number <= hi and topic in self.group.allowed(m):
                return False
        return True

    # ---- joining

    def _fits(self, label: Label, moves: int, left: int, members: int) -> bool:
        """Return True if a partial plan can be completed; `left` is the load of the other members, of equal weights."""
        low, high, _ = label
        width, lacking = self.width(moves), max(self.high - high, 0)  # some member has at least the highest load
        high += lacking
        if self.spread:
            if high - low > width:
                return False
            least = max(high - width, 0)
            needed = members * least + (high - least if lacking else 0)
            return not members or not left or needed <= left <= members * (low + width)
        return high <= width and (not members or left <= members * width)

    def _sum_of(self, held: int) -> int:
        if len(set(self.factor.values())) > 1:
            return 0  # weights differ: no check by the load left
        return sum(self.group.lags[self.here[i]] for i in places(held)) * next(iter(self.factor.values()))

    def _in_halves(self, lists: Lists) -> list[Label]:
        """Join each half of the members, then the pairs of states that hold all partitions together."""
        order = sorted(lists, key=lambda m: len(lists[m]))
        halves = [self._joined(part, lists, len(order) - len(part)) for part in (order[::2], order[1::2])]
        found = []
        for held, labels in halves[0].items():
            others = halves[1].get(self.all & ~held, ())
            self._spend(len(labels) * len(others) + 1)
            for (low, high, moves), (other_low, other_high, other_moves) in product(labels, others):
                label = (min(low, other_low), max(high, other_high), moves + other_moves)
                if self._fits(label, label[2], 0, 0):
                    found.append(label)
        return found

    def _joined(self, members: list[int], lists: Lists, others: int) -> States:
        """Return the sets that these members may hold together, with their labels.

        If members are alike, each takes the largest partition left, so that no order is tried twice.
        """
        by_first: Lists = {}
        for option in lists[members[0]] if self._alike else ():
            by_first.setdefault(option.held & -option.held, []).append(option)
        states: States = {0: [(self.low, self.high - 1, 0)]}
        own = 0
        for number, m in enumerate(members, 1):
            own |= self.own[m]
            after: dict[int, dict[Label, None]] = {}
            for held, labels in states.items():
                left, last = self.all & ~held, not others and number == len(members)
                tried = by_first.get(left & -left, []) if by_first else lists[m]
                self._spend(len(tried) * len(labels) + 1)
                for option in tried:
                    if option.held & held or (last and option.held != left):
                        continue
                    self._spend(STEPS * len(labels))
                    both = held | option.held
                    given = (own & ~both).bit_count()
                    rest = None
                    for low, high, moves in labels:
                        label = (min(low, option.load), max(high, option.load), moves + option.takes)
                        if self.width(label[2] + given) < label[1] - (label[0] if self.spread else 0):
                            continue
                        rest = self._sum_of(self.all & ~both) if rest is None else rest
                        if self._fits(label, label[2] + given, rest, others + len(members) - number):
                            after.setdefault(both, {})[label] = None
            states = {held: _undominated(list(labels)) for held, labels in after.items()}
        return states


def _undominated(labels: list[Label]) -> list[Label]:
    """Return the labels that no other label dominates."""
    if len(labels) == 1:
        return labels
    kept: list[Label] = []
    for label in sorted(labels, key=lambda each: (each[2], each[1], -each[0])):
        if not any(low >= label[0] and high <= label[1] and moves <= label[2] for low, high, moves in kept):
            kept.append(label)
    return kept
