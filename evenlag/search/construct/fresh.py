"""Fresh plans and the plan with the fewest moves.

If members are alike, a fresh plan comes from differencing, or from longest processing time first without a count
balance. Otherwise it is greedy.

Largest differencing (Karmarkar and Karp 1982) is used in its balanced form (BLDM: Yakir 1996 for two sets, Michiels et
al. 2003 for more). Partitions are cut into layers of one per member, biggest first; balanced topics have layers of
their own. Any way to stack layers keeps the counts. So the two layers with the largest differences inside are merged,
big on small, until one is left. In contrast to BLDM, which has one class of items, the layers of many topics enter one
differencing. The partitions of all topics beyond full layers form one more layer, filled so that totals stay even.
Partitions too big for an even share are removed first, each with the smallest companions that its counts require.

Longest processing time first (Graham 1969, "Bounds on multiprocessing timing anomalies") gives at most 4/3 of the least
makespan.

Greedy plans keep any count rule. They place the longest first under counts that are fixed beforehand: a flow gives the
number of partitions of each topic for each member. A member takes another partition only after all members with as much
room have taken one.

Members that are alike may exchange everything they hold. Among all plans that differ only in names, `relabel` finds the
one with the fewest moves: the assignment problem of Kuhn 1955, solved by OR-Tools.
"""

from __future__ import annotations

import heapq

import numpy as np
from ortools.graph.python import linear_sum_assignment

from evenlag.model.arrays import Ints, Whole
from evenlag.model.balance import Balance, CountRule, count_rule
from evenlag.model.flow import Cells
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Index, Problem


def fresh_plan(rule: CountRule) -> Plan:
    """Return a fresh plan: by differencing or longest processing time first if members are alike, else a greedy one."""
    if not members_alike(rule):
        return greedy(rule)
    return (lpt if rule.balance == Balance.NONE else differenced)(rule)


MOST_MEMBERS = 500  # for `relabel`, whose time grows with about the square of this number


# ---- largest differencing --------------------------------------------------------------------------------------------


def members_alike(rule: CountRule) -> bool:
    """Return True if all members are alike: same subscriptions, same weights, no caps, no pins."""
    problem = rule.problem
    return not problem.capped_or_pinned and problem.equal_subscriptions and problem.equal_weights


def differenced(rule: CountRule) -> Plan:
    """Return a fresh plan with even counts that keeps the rule; `members_alike` must hold."""
    problem = rule.problem
    items = np.flatnonzero(problem.assignable)
    classes = problem.topic_of[items] if rule.topic_bounds is not None else np.zeros(len(items), dtype=np.int32)
    order = np.argsort(-problem.lags[items], kind="stable")
    order = order[np.argsort(classes[order], kind="stable")]
    items, classes = items[order], classes[order]
    lags = problem.lags[items]
    _, starts = np.unique(classes, return_index=True)
    columns = _Columns(lags, np.append(starts, len(items)).astype(np.int64), int(problem.active.sum()), rule)
    member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    member_of[items] = np.flatnonzero(problem.active)[columns.fill()]
    return Plan(problem, member_of)


class _Columns:
    """Members as columns to fill; lags are sorted within each class, biggest first."""

    def __init__(self, lags: Ints, starts: Whole, columns: int, rule: CountRule) -> None:
        self.lags, self.columns = lags.copy(), columns
        self.at = np.arange(len(lags))  # original index of the item at each place
        self.sums = np.concatenate([np.zeros(1, dtype=lags.dtype), np.cumsum(lags)])
        self.head, self.tail = starts[:-1].copy(), starts[1:].copy()
        self.even_totals = rule.balance != Balance.TOPIC
        self.column_of = np.full(len(lags), -1, dtype=np.int64)

    def fill(self) -> Whole:
        """Return the column of every item."""
        left = np.arange(self._take_out_oversized(), self.columns)
        sizes = self.tail - self.head
        layers = self._full_layers(sizes // len(left), len(left))
        self._lay(layers, *self._rest(sizes % len(left), len(left)), left)
        columns = np.empty_like(self.column_of)
        columns[self.at] = self.column_of
        return columns

    # ---- oversized partitions ------------------------------------------------------------------------------------

    def _take_out_oversized(self) -> int:
        """Give each partition above an even share a column with the smallest companions; return how many got one."""
        if len(self.lags) <= 2 * self.columns:
            return 0  # for at most two layers, differencing alone is best
        for column in range(self.columns - 1):
            left = self.columns - column
            sizes = self.tail - self.head
            heads = np.where(sizes > 0, self.lags[np.minimum(self.head, len(self.lags) - 1)], -1)
            origin = int(heads.argmax())
            wanted = self._companions(sizes, left, origin)
            load = int(heads[origin]) + int((self.sums[self.tail] - self.sums[self.tail - wanted]).sum())
            remaining = int((self.sums[self.tail] - self.sums[self.head]).sum())
            if load * left <= remaining and not self._step_up(wanted, (remaining - load * left) // left + 1):
                return column
            self.column_of[self.head[origin]] = column
            self.head[origin] += 1
            for c in np.flatnonzero(wanted).tolist():
                self.column_of[self.tail[c] - wanted[c] : self.tail[c]] = column
            self.tail -= wanted
        return self.columns - 1

    def _step_up(self, wanted: Whole, short: int) -> bool:
        """Replace a companion by the next bigger one if the column is just short and that step is large enough.

        Return True if it was replaced. With lags 0, 0, 0, 9, …, no companion fills a column that is 5 short exactly.
        """
        if len(wanted) != 1 or not wanted[0]:
            return False
        first = int(self.tail[0] - wanted[0])  # the biggest companion
        lags, head = self.lags, int(self.head[0]) + 1
        bigger = head + int(np.searchsorted(-lags[head:first], -lags[first])) - 1  # the smallest above it
        if bigger < head or lags[bigger] - lags[first] < short:
            return False
        step = lags[first] - lags[bigger]
        lags[[bigger, first]] = lags[[first, bigger]]  # all between them are equal: the order stays
        self.at[[bigger, first]] = self.at[[first, bigger]]
        self.sums[bigger + 1 : first + 1] += step
        return True

    def _companions(self, sizes: Whole, left: int, origin: int) -> Whole:
        """Return the number of companions per class for an oversized partition of class `origin`.

        It is the smallest number that leaves even counts for the other columns.
        """
        each, over = np.divmod(sizes, left)
        wanted = each.copy()
        if each[origin] > 0:
            wanted[origin] -= 1
        extras = int(over.sum()) // left if self.even_totals else 0
        extras -= int(each[origin] == 0)  # the oversized partition is one of them
        if extras > 0:
            at = np.maximum(self.tail - each - 1, 0)
            beyond = self.lags.max() + 1
            next_up = np.where(over > 0, self.lags[at], beyond)
            if each[origin] == 0:
                next_up[origin] = beyond
            wanted[np.argsort(next_up, kind="stable")[:extras]] += 1
        return wanted

    # ---- layers --------------------------------------------------------------------------------------------------

    def _full_layers(self, each: Whole, width: int) -> list[Whole]:
        return [
            np.arange(head + i * width, head + (i + 1) * width)
            for head, layers in zip(self.head.tolist(), each.tolist(), strict=True)
            for i in range(layers)
        ]

    def _rest(self, over: Whole, width: int) -> tuple[Ints, list[tuple[Whole, Whole]]]:
        """Place the items beyond full layers, at most one per class and column; return loads, and places by class."""
        loads = np.zeros(width, dtype=self.lags.dtype)
        held = np.zeros(width, dtype=np.int64)
        handed_out = []
        first = np.where(over > 0, self.tail - over, 0)
        biggest = np.where(over > 0, self.lags[first], -1)
        for c in np.argsort(-biggest, kind="stable").tolist():
            if not over[c]:
                break
            items = np.arange(self.tail[c] - over[c], self.tail[c])
            order = np.lexsort((loads, held)) if self.even_totals else np.argsort(loads, kind="stable")
            takers = order[: len(items)]
            takers = takers[np.argsort(loads[takers], kind="stable")]
            loads[takers] += self.lags[items]
            held[takers] += 1
            handed_out.append((items, takers))
        return loads, handed_out

    def _lay(self, layers: list[Whole], rest: Ints, handed_out: list[tuple[Whole, Whole]], left: Whole) -> None:
        """Merge the layers and record the column of every item."""
        loads = [self.lags[layer] for layer in layers]
        if handed_out:
            loads.append(rest)
        place = _differenced(loads)
        for layer, slots in zip(layers, place, strict=False):
            self.column_of[layer] = left[slots]
        for items, takers in handed_out:
            self.column_of[items] = left[place[-1][takers]]


def _differenced(layers: list[Ints]) -> list[Whole]:
    """Merge the two layers with the largest ranges, big on small, until one is left.

    Returns
    -------
    list of int64 arrays
        For each layer, the final slot of each of its entries.
    """
    nodes = list(layers)
    merged: list[tuple[int, int, Whole, Whole]] = []
    heap = [(-int(layer.max() - layer.min()), i) for i, layer in enumerate(nodes)]
    heapq.heapify(heap)
    while len(heap) > 1:
        (_, i), (_, j) = heapq.heappop(heap), heapq.heappop(heap)
        up, down = np.argsort(nodes[i], kind="stable"), np.argsort(nodes[j], kind="stable")[::-1]
        together = nodes[i][up] + nodes[j][down]
        merged.append((i, j, up, down))
        heapq.heappush(heap, (-int(together.max() - together.min()), len(nodes)))
        nodes[i] = nodes[j] = together[:0]
        nodes.append(together)
    slots: list[Whole] = [np.zeros(0, dtype=np.int64)] * len(nodes)
    slots[-1] = np.arange(len(nodes[-1]))
    for node in range(len(nodes) - 1, len(layers) - 1, -1):
        i, j, up, down = merged[node - len(layers)]
        slots[i], slots[j] = np.empty_like(up), np.empty_like(down)
        slots[i][up] = slots[node]
        slots[j][down] = slots[node]
    return slots[: len(layers)]


# ---- longest processing time first -----------------------------------------------------------------------------------


def lpt(rule: CountRule) -> Plan:
    """Return a fresh plan by longest processing time first, without a count rule.

    Parameters
    ----------
    rule : CountRule
        Has no count balance, and `members_alike` holds.
    """
    problem = rule.problem
    active = np.flatnonzero(problem.active).tolist()
    items = np.flatnonzero(problem.assignable)
    items = items[np.argsort(-problem.lags[items], kind="stable")]
    member_of = np.full(len(problem.lags), NOBODY, dtype=np.int32)
    heap = [(0, m) for m in active]
    takers = []
    for lag in problem.lags[items].tolist():
        load, m = heap[0]
        heapq.heapreplace(heap, (load + lag, m))
        takers.append(m)
    member_of[items] = takers
    return Plan(problem, member_of)


# ---- renaming members that are alike ---------------------------------------------------------------------------------


def relabel(plan: Plan, rule: CountRule) -> Plan:
    """Return the plan with members alike renamed for the fewest moves; the set of loads and counts stays the same.

    The renaming is an assignment problem. A pairing gains one for each planned partition that the member already owns.

    Parameters
    ----------
    plan : Plan
        Returned unchanged if there are pins, if there are more than `MOST_MEMBERS`, or if no renaming saves moves.
    rule : CountRule
        Rule that the plan keeps.
    """
    problem = plan.problem
    active = np.flatnonzero(problem.active)
    owned = (problem.owner != NOBODY) & (plan.member_of != NOBODY)
    owned[owned] = problem.active[problem.owner[owned]]
    if len(active) > MOST_MEMBERS or not owned.any() or (problem.pins != NOBODY).any():
        return plan
    place = np.full(len(problem.members), NOBODY)
    place[active] = np.arange(len(active))
    cells = place[plan.member_of[owned]] * len(active) + place[problem.owner[owned]]
    held = np.bincount(cells, minlength=len(active) ** 2)
    kind = np.zeros(len(active)) if members_alike(rule) else rule.member_kinds[active]
    source, target = np.nonzero(kind[:, None] == kind)
    if len(source) == len(active):  # no two members are alike
        return plan
    solver = linear_sum_assignment.SimpleLinearSumAssignment()
    solver.add_arcs_with_cost(source, target, held.max() - held[source * len(active) + target])
    if solver.solve() != solver.OPTIMAL:
        return plan
    name = np.arange(len(problem.members) + 1, dtype=np.int32)
    name[-1] = NOBODY  # for partitions without a member
    name[active] = active[[solver.right_mate(i) for i in range(len(active))]]
    renamed = Plan(problem, name[plan.member_of])
    return renamed if renamed.moves < plan.moves else plan


# ---- greedy plans, and the fewest moves ------------------------------------------------------------------------------


def greedy(rule: CountRule) -> Plan:
    """Return a greedy plan with counts that the rule allows.

    In each round, the biggest partition goes to the least loaded member.

    Parameters
    ----------
    rule : CountRule
        Any; pins and caps are kept.
    """
    problem = rule.problem
    if rule.balance == Balance.NONE:  # any counts are allowed; even ones leave the least to repair
        rule = count_rule(problem, Balance.BOTH)
    counts = rule.some_counts()
    member_of = problem.pins.copy()
    if problem.equal_subscriptions and rule.topic_bounds is None:
        room = _room(problem, member_of, counts).sum(axis=0)
        _fill_in_rounds(problem, member_of, np.flatnonzero(problem.assignable), room, _scaled(problem, member_of))
    else:
        _fill_by_topic(problem, member_of, counts)
    return Plan(problem, member_of)


def fewest_moves_plan(rule: CountRule) -> Plan:
    """Return a plan with the fewest moves that the rule allows.

    A min-cost flow gives the number of partitions of each topic for each member, so the number of moves is the least
    possible. An owner with too many partitions gives away the biggest ones. These and unowned partitions are placed as
    in `greedy`.
    """
    problem = rule.problem
    _, counts = rule.fewest_moves()
    member_of = problem.pins.copy()
    room = _room(problem, member_of, counts)
    held = np.flatnonzero((member_of == NOBODY) & (problem.owner != NOBODY))
    cells = problem.topic_of[held].astype(np.int64) * len(problem.members) + problem.owner[held]
    order = np.lexsort((problem.lags[held], cells))  # a member gives its biggest away first
    held, cells = held[order], cells[order]
    rank = np.arange(len(cells)) - np.searchsorted(cells, cells)
    kept = held[rank < room.reshape(-1)[cells]]
    member_of[kept] = problem.owner[kept]
    _fill_by_topic(problem, member_of, counts)
    return Plan(problem, member_of)


def _room(problem: Problem, member_of: Index, counts: Cells) -> Cells:
    """Return the number of partitions of each topic that each member still gets; shape (T, M)."""
    return counts - Plan(problem, member_of.copy()).topic_counts


def _fill_by_topic(problem: Problem, member_of: Index, counts: Cells) -> None:
    """Fill members up to these counts, topics with the most lag first."""
    room = _room(problem, member_of, counts)
    loads = _scaled(problem, member_of)
    sizes = [int(problem.lags[problem.topic_slice(t)].sum()) for t in range(len(problem.topics))]
    for t in sorted(range(len(problem.topics)), key=lambda t: (-sizes[t], t)):
        if room[t].any():
            here = np.arange(problem.topic_starts[t], problem.topic_starts[t + 1])
            _fill_in_rounds(problem, member_of, here, room[t], loads)


def _scaled(problem: Problem, member_of: Index) -> Ints:
    """Return loads · factors of an unfinished plan."""
    return Plan(problem, member_of.copy()).loads * problem.load_factors


def _fill_in_rounds(problem: Problem, member_of: Index, partitions: Cells, room: Cells, loads: Ints) -> None:
    """Place the free ones of `partitions`, biggest first, in rounds: one to each member with room, lightest first.

    `member_of` and `loads` are updated in place.
    """
    free = partitions[member_of[partitions] == NOBODY]
    queue = free[np.lexsort((free, -problem.lags[free]))]
    room = room.copy()
    start = 0
    while start < len(queue):
        # Members with the most room go first, so that none has to take several in the last rounds.
        takers = np.flatnonzero(room == room.max()) if problem.equal_weights else np.flatnonzero(room > 0)
        takers = takers[np.lexsort((takers, loads[takers]))][: len(queue) - start]
        placed = queue[start : start + len(takers)]
        member_of[placed] = takers
        loads[takers] += problem.lags[placed] * problem.load_factors[takers]
        room[takers] -= 1
        start += len(takers)
