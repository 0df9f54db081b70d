"""The number of members that a group needs: the time to drain for each size, and the fewest that meet the deadline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from evenlag.compare.change import MOST_MEMBERS
from evenlag.compare.counted import PUBLISHED, Counted
from evenlag.compare.drain import NEVER, Course, Time
from evenlag.compare.resized import Staff, growing_steps
from evenlag.compare.size_moves import Handover, least_handover
from evenlag.compare.size_verdict import size_verdict
from evenlag.errors import InvalidProblemError
from evenlag.figures import quantity
from evenlag.model.balance import Balance
from evenlag.model.figure_tables import GROUP, Figure, FigureTable
from evenlag.model.literals import BalanceWord
from evenlag.model.names import spelled
from evenlag.model.objective import ObjectiveKind
from evenlag.model.plan import Plan, plain
from evenlag.model.problem import Problem, check_problem
from evenlag.model.values import is_whole, kind, positive, shown
from evenlag.search.clock import LEAST_SECONDS, Clock
from evenlag.search.options import NET, SolveOptions

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

CLOSE = 1e-6  # share of the mean load to which bounds are closed, unless the deadline needs more
ALL = 24  # up to this many group sizes, all are tried; of more, some in growing steps
GROWTH = 1.25  # growth of these steps
BEYOND = 2  # sizes tried beyond the answer
TRIES = 10  # sizes tried to find the first at which the hottest partition binds
SHARE = 0.15  # share of the time left for one size while the relevant ones are unknown
IN_TIME = 0.95  # share of the time limit used: the last search ends slightly late
PER_CELL = 2e-6  # approximate seconds per topic and member for one group size; no time limit shortens them
COUNTS = 20  # number of solves that share the work of a deterministic call

SIZE_FIGURES = (
    Figure("members", "integer", "Number of members."),
    Figure("drain_seconds", "number", "Drain time of the best plan found, in seconds."),
    Figure("bound_seconds", "number", "Proven lower bound of the drain time under the balance, in seconds."),
    Figure("range_seconds", "number", "Drain time of `range`, in seconds."),
    Figure("cooperative_sticky_seconds", "number", "Drain time of `cooperative-sticky`, in seconds."),
    Figure("uniform_seconds", "number", "Drain time of `uniform`, in seconds."),
    Figure("without_balance_seconds", "number", "Drain time of the best plan without a balance, in seconds."),
    Figure("balance_costs_seconds", "number", "Additional drain time due to the balance, in seconds."),
)
"""Columns of `SizeRow.to_dict`; a null time means that the group never drains."""


@dataclass(frozen=True)
class SizeRow:
    """Times of a group of one size, in exact seconds; infinite means never.

    Attributes
    ----------
    members : int
    drain_seconds : Fraction or inf
        Time until the best plan found has read everything.
    bound_seconds : Fraction or inf
        Lower bound for any plan that keeps the balance.
    range_seconds, cooperative_sticky_seconds, uniform_seconds : Fraction or inf or None
        Times of the published strategies, which start from today's assignment if they use it. None if a strategy gives
        no plan or breaks a pin or cap. They need not keep the requested balance.
    unruled_seconds : Fraction or inf
        Time of the best plan found without any count rule.
    plan : Plan or None
        The best plan; None if there is none, or if none was searched for because no plan ever drains.
    """

    members: int
    drain_seconds: Time
    bound_seconds: Time
    range_seconds: Time | None
    cooperative_sticky_seconds: Time | None
    uniform_seconds: Time | None
    unruled_seconds: Time
    plan: Plan | None

    def to_dict(self) -> dict[str, int | float | None]:
        """Return the figures as a dict; infinite and missing times are null."""
        return {
            "members": self.members,
            "drain_seconds": _seconds(self.drain_seconds),
            "bound_seconds": _seconds(self.bound_seconds),
            "range_seconds": _seconds(self.range_seconds),
            "cooperative_sticky_seconds": _seconds(self.cooperative_sticky_seconds),
            "uniform_seconds": _seconds(self.uniform_seconds),
            "without_balance_seconds": _seconds(self.unruled_seconds),
            "balance_costs_seconds": _seconds(self.rule_seconds),
        }

    @property
    def rule_seconds(self) -> Time:
        """Proven cost of the count balance: additional seconds compared with a plan without it."""
        if self.unruled_seconds == NEVER:
            return Fraction(0)
        return max(self.bound_seconds - self.unruled_seconds, Fraction(0))


@dataclass(frozen=True)
class Size:
    """The number of members that a group needs.

    Attributes
    ----------
    problem : Problem
        Today's group.
    deadline, capacity : Fraction
        Seconds to drain in; messages per second read by a member of weight 1.
    incoming : Fraction
        Messages per second assumed to arrive meanwhile.
    balance : str
    fewest : int or None
        The fewest members found to meet the deadline; None if no size does.
    undecided : list of int
        Smaller sizes (without `fewest`: sizes up to `most`) with neither a plan that meets the deadline nor a proof.
    most : int
        The largest size considered; unless set lower, the size beyond which members would idle.
    needed_capacity : Fraction or None
        Messages per second that a member of weight 1 must read for the hottest partition to meet the deadline; None if
        it does so already.
    binding_from : int or None
        From this size on, everything is read as soon as the hottest partition is, so more members do not help. None if
        no such size was found.
    hottest : (topic, partition) or None
    floor : Fraction or inf
        Seconds that the hottest partition takes alone: no group size is faster.
    sizes : list of SizeRow
        The sizes tried, in ascending order.
    not_reached : list of int
        Sizes skipped for lack of time.
    notes : tuple of str
    handover : Handover or None
        The least that must move from today's assignment to a group of `fewest` members that meets the deadline. None if
        no partition has an owner today, no such plan was found, or no time was left.
    """

    problem: Problem
    deadline: Fraction
    capacity: Fraction
    incoming: Fraction
    balance: str
    fewest: int | None
    undecided: list[int]
    most: int
    needed_capacity: Fraction | None
    binding_from: int | None
    hottest: tuple[str, int] | None
    floor: Time
    sizes: list[SizeRow]
    not_reached: list[int]
    notes: tuple[str, ...]
    handover: Handover | None = None

    def __repr__(self) -> str:
        fewest = f"fewest={self.fewest}, proven={self.proven}, binding_from={self.binding_from}"
        return f"<Size {self.problem.group!r}: {fewest}, sizes={len(self.sizes)}>"

    @property
    def verdict(self) -> str:
        """The answer: the fewest members that meet the deadline, or why no group size does."""
        return size_verdict(self)

    @property
    def proven(self) -> bool:
        """True if no smaller size can meet the deadline, or, without `fewest`, no size up to `most`."""
        return not self.undecided

    def row(self, members: int) -> SizeRow | None:
        """Return the row of a size; None if it was not tried."""
        return next((row for row in self.sizes if row.members == members), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the document of `evenlag size --json` (docs/size.md), without its fields on the input."""
        return {
            "group": self.problem.group,
            "facts": self.problem.facts.to_dict(),
            "verdict": self.verdict,
            "deadline_seconds": plain(self.deadline),
            "capacity": plain(self.capacity),
            "incoming": plain(self.incoming),
            "balance": str(self.balance),
            "fewest": self.fewest,
            "proven": self.proven,
            "binding_from": self.binding_from,
            "hottest": None if self.hottest is None else list(self.hottest),
            "hottest_seconds": _seconds(self.floor),
            "sizes": [row.to_dict() for row in self.sizes],
            "not_reached": self.not_reached,
            "handover": None if self.handover is None else asdict(self.handover),
        }

    def to_pandas(self) -> pd.DataFrame:
        """Return the sizes tried as a pandas DataFrame, one row per number of members, in ascending order.

        Columns: group; members; drain_seconds, bound_seconds, range_seconds, cooperative_sticky_seconds,
        uniform_seconds, without_balance_seconds, balance_costs_seconds (seconds). They have the names and types of the
        table `sizes` of a fleet. A null time means never; of a published strategy also that it gives no valid plan.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed.
        """
        return self._table().to_pandas()

    def to_arrow(self) -> pa.Table:
        """Return the sizes tried as a pyarrow Table with the columns of `to_pandas`."""
        return self._table().to_arrow()

    def _table(self) -> FigureTable:
        group = {GROUP.name: self.problem.group}
        return FigureTable((GROUP, *SIZE_FIGURES), [group | row.to_dict() for row in self.sizes])

    @property
    def costly(self) -> list[SizeRow]:
        """Sizes at which the count balance provably costs time."""
        return [row for row in self.sizes if row.rule_seconds > 0]

    @property
    def slower(self) -> list[tuple[SizeRow, SizeRow]]:
        """Sizes provably slower than a smaller size, each with the smallest faster size."""
        found = []
        for place, row in enumerate(self.sizes):
            faster = next((less for less in self.sizes[:place] if less.drain_seconds < row.bound_seconds), None)
            if faster is not None:
                found.append((row, faster))
        return found


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """Options for sizing a group; see `size` for each parameter.

    Raises
    ------
    InvalidProblemError
        An option has an invalid value; the message names both.
    """

    drain_seconds: float | Fraction
    capacity: float | Fraction | None = None
    most: int | None = None
    solving: SolveOptions

    def __post_init__(self) -> None:
        positive("drain_seconds", self.drain_seconds, "a number of seconds > 0")
        if self.most is not None and not (is_whole(self.most) and 1 <= self.most <= MOST_MEMBERS):
            raise InvalidProblemError(
                f"most must be a number of members from 1 to {MOST_MEMBERS:,}, not {shown(self.most)}"
            )
        if self.capacity is not None:
            self.reads(self.capacity)

    @property
    def deadline(self) -> Fraction:
        """The deadline in exact seconds."""
        return positive("drain_seconds", self.drain_seconds, "a number of seconds > 0")

    def reads(self, capacity: float | Fraction) -> Fraction:
        """Return an exact capacity, checked."""
        return positive("capacity", capacity, "messages per second > 0")


def solving_of(options: SolveOptions | None = None, /, **parameters: Any) -> SolveOptions:
    """Return the options of the searches: minimize the makespan, with free moves."""
    return replace(options or SolveOptions(), stickiness=0, objective=ObjectiveKind.MAKESPAN, **parameters)


@spelled
def size(
    problem: Problem,
    drain_seconds: float | Fraction,
    capacity: float | Fraction,
    *,
    rates: Sequence[float | Fraction] | None = None,
    balance: Balance | BalanceWord = Balance.BOTH,
    slack: int = 0,
    most: int | None = None,
    time_limit: float = 10.0,
    gap: float = CLOSE,
    seed: int = 0,
    deterministic: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Size:
    """Find the fewest members that can read all lag by a deadline, with proof.

    Moves are free. A smaller group keeps the first members by name, those named by a pin before all others. New members
    are assumed to be like all present ones (docs/size.md).

    Parameters
    ----------
    problem : Problem
        Today's group, with current lags; scenarios are ignored.
    drain_seconds : number
        Seconds until the deadline.
    capacity : number
        Messages per second read by a member of weight 1; others read in proportion to weight.
    rates : sequence of numbers (P,), optional
        Messages per second that arrive in each partition meanwhile; default: none.
    balance, slack
        As in `solve`.
    most : int, optional
        Largest group size to try, at most 100,000; sizes at which members would idle are skipped. Default: just past
        the answer.
    time_limit : float
        Seconds for the whole call. Sizes not reached by then are in `not_reached`.
    gap, seed, deterministic, threads
        As in `solve`, for each group size.
    progress : callable, optional
        Called with (sizes tried, sizes in all), as far as the latter is known.

    Returns
    -------
    Size

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value, the group has no members, or the data of new ones would be needed.
    """
    options = SizeOptions(
        drain_seconds=drain_seconds, capacity=capacity, most=most,
        solving=solving_of(
            balance=balance, slack=slack, time_limit=time_limit, gap=gap, seed=seed, deterministic=deterministic,
            threads=threads,
        ),
    )  # fmt: skip
    return run_with_handover(problem, options, options.reads(capacity), rates, progress)


def run_with_handover(
    problem: Problem,
    options: SizeOptions,
    capacity: Fraction,
    rates: Sequence[float | Fraction] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Size:
    """Size a group like `size`, with checked options."""
    solving, clock = options.solving, Clock(options.solving.time_limit)
    found = run(problem, options, capacity, rates, progress)
    row = None if found.fewest is None else found.row(found.fewest)
    left = solving.time_limit if solving.deterministic else clock.left()
    if row is None or row.plan is None or left < LEAST_SECONDS:
        return found
    limited = solving.within(left, solving.time_limit / COUNTS if solving.deterministic else None)
    incoming = _rates(found.problem, rates)
    handover = least_handover(found.problem, row.plan, found.deadline, found.capacity, incoming, limited)
    return replace(found, handover=handover)


def run(
    problem: Problem,
    options: SizeOptions,
    capacity: Fraction,
    rates: Sequence[float | Fraction] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Size:
    """Size a group like `size`, with checked options, but without the plan that moves least."""
    check_problem(problem)
    problem = problem.now
    incoming = _rates(problem, rates)
    staff = Staff(problem)
    if options.most is not None:
        staff.check(options.most)
    elif staff.most is not None:
        staff.check(staff.most + 1)
    course = Course(problem, incoming, capacity, staff.heaviest())
    return _Sizing(staff, course, options.deadline, options.solving, options.most, progress).run()


class _Sizing:
    """One call of `size`: the group sizes to try, their order, and the conclusions."""

    def __init__(
        self, staff: Staff, course: Course, deadline: Fraction, options: SolveOptions, most: int | None,
        progress: Callable[[int, int], None] | None,
    ) -> None:  # fmt: skip
        self.staff, self.course, self.deadline, self.options = staff, course, deadline, options
        self.given, self.progress = most, progress
        self.present, self.least = len(staff.problem.members), staff.fewest
        self.top = min(MOST_MEMBERS if most is None else most, staff.enough)
        self.clock = Clock(options.time_limit * (NET if options.deterministic else IN_TIME))  # NET: work limits end it
        self.work = options.time_limit / COUNTS
        self.counted: dict[int, Counted] = {}
        self.planned = 0

    def run(self) -> Size:
        """Search for the fewest members, then fill the table, then find the cost of the count balance."""
        self._decide()
        self._bind()
        not_reached = self._fill()
        self._settle()
        self._free()
        solved = [self.counted[members] for members in sorted(self.counted) if self.counted[members].solved]
        made = [each.members for each in solved if each.drain <= self.deadline]
        bound = [each.members for each in solved if each.drain <= self.course.floor < NEVER]
        fewest = min(made, default=None)
        problem, hottest = self.course.problem, self.course.hottest
        return Size(
            problem=problem,
            deadline=self.deadline,
            capacity=self.course.capacity,
            incoming=self.course.total_rate,
            balance=self.options.balance,
            fewest=fewest,
            undecided=self._open(),
            most=self.top,
            needed_capacity=self._needed_capacity(),
            binding_from=min(bound, default=None),
            hottest=None if hottest is None else problem.partitions[hottest],
            floor=self.course.floor,
            sizes=[_row(each) for each in solved],
            not_reached=not_reached,
            notes=(*self.staff.notes, *self._idle()),
        )

    def _count(self, members: int) -> Counted:
        if members not in self.counted:
            self.counted[members] = Counted(self.staff.of(members), self.course, self.options)
        return self.counted[members]

    def _solve(self, members: int, seconds: float) -> Counted:
        """Search for plans of a size, unless that was done."""
        counted = self._count(members)
        if not counted.solved:
            if self.progress is not None:
                done = sum(each.solved for each in self.counted.values())
                self.progress(done, max(self.planned, done + 1))
            counted.cheap_bound(self.deadline)
            counted.solve(self.deadline, self._part(seconds), self.work)
        return counted

    def _solved(self, members: int) -> bool:
        return members in self.counted and self.counted[members].solved

    def _too_large(self, members: int) -> bool:
        """Return True if setting up a group of this size would take longer than the call's time limit."""
        return len(self.staff.problem.topics) * members * PER_CELL > self.options.time_limit

    def _part(self, seconds: float) -> Clock:
        return Clock(max(self.clock.left() if self.options.deterministic else seconds, LEAST_SECONDS))

    # ---- sizes to try ----------------------------------------------------------------------------------------------

    def _least_for(self, seconds: Time) -> int:
        """Return the fewest members that could do it in a time if lag were divisible; `top` + 1 if none could."""
        low, high = self.least, self.top + 1
        while low < high:
            middle = (low + high) // 2
            enough = self.course.mean(self.staff.weight(middle)) <= seconds
            low, high = (low, middle) if enough else (middle + 1, high)
        return low

    def _decide(self) -> None:
        """Try sizes from the smallest that the bounds allow up to the first that meets the deadline."""
        if self.course.floor > self.deadline:
            return
        first = self._least_for(self.deadline)
        for members in range(first, self.top + 1):
            if self._too_large(members) or (self.clock.passed() and members > first):
                return
            if self._count(members).cheap_bound(self.deadline) > self.deadline:
                continue
            if self._solve(members, SHARE * self.clock.left()).drain <= self.deadline:
                return

    def _bind(self) -> None:
        """Try a few sizes, from the smallest possible up to where the hottest partition binds."""
        if self.course.floor == NEVER:
            return
        tried, stop = 0, self.clock.stop(SHARE)
        for members in range(self._least_for(self.course.floor), self.top + 1):
            if tried == TRIES or stop() or self._too_large(members):
                return
            counted = self._count(members)
            free = counted.cheap_bound(self.deadline)
            if max(free, counted.ruled_bound(self.deadline)) > self.course.floor:
                continue
            tried += 1
            if self._solve(members, SHARE / 2 * self.clock.left()).drain <= self.course.floor:
                return

    def _fill(self) -> list[int]:
        """Solve the other sizes of the table; return those skipped for lack of time."""
        made = [members for members, each in self.counted.items() if each.drain <= self.deadline]
        special = {self.least, self.present, *(members for members, each in self.counted.items() if each.solved)}
        if made:
            special |= set(range(min(made) - 1, min(made) + BEYOND + 1))
        last = max(special) if self.given is None else self.top
        wanted = sorted(
            {min(max(members, self.least), self.top) for members in special} | set(_steps(self.least, last))
        )
        self.planned = len(wanted)
        late = []
        for number, members in enumerate(wanted):
            if not self._solved(members) and number and (self._too_large(members) or self.clock.passed()):
                late.append(members)
            else:
                self._solve(members, self.clock.left() / (2 * (len(wanted) - number)))
        return late

    def _settle(self) -> None:
        """Search once more, without a gap, for the sizes that are undecided."""
        for number, members in enumerate(still := self._open()):
            if self.clock.left() < LEAST_SECONDS or self._too_large(members):
                return
            counted = self._count(members)
            counted.options = replace(self.options, gap=0.0)
            counted.cheap_bound(self.deadline)
            counted.solve(self.deadline, self._part(self.clock.left() / (len(still) - number + 1)), self.work)
            if counted.drain <= self.deadline:
                return

    def _open(self) -> list[int]:
        """Return the sizes below the answer that are not proven to miss the deadline."""
        made = [members for members, each in self.counted.items() if each.drain <= self.deadline]
        if self.course.floor > self.deadline:
            return []
        found: list[int] = []
        more: Time = Fraction(0)  # proven for larger groups regardless of counts
        for members in range(min(made, default=self.top + 1) - 1, self._least_for(self.deadline) - 1, -1):
            counted = self.counted.get(members)
            more = max(more, counted.free_bound if counted else more)
            if max(more, counted.bound if counted else more) <= self.deadline:
                found.append(members)
        return found[::-1]

    def _free(self) -> None:
        """Find the times of plans without a count rule, where they could be better."""
        solved = [each for each in self.counted.values() if each.solved]
        for number, counted in enumerate(solved):
            seconds = self.clock.left() / (len(solved) - number)
            counted.solve_unruled(self.deadline, self._part(seconds) if seconds >= LEAST_SECONDS else None, self.work)

    def _idle(self) -> list[str]:
        """Return a note on sizes that were asked for but not tried."""
        if self.given is None or self.given <= self.top:
            return []
        top = quantity(self.top, "member")
        return [f"sizes above {top} are not tried: further members would get no partition"]

    def _needed_capacity(self) -> Fraction | None:
        """Return the rate at which a member would have to read the hottest partition, if it misses the deadline."""
        hottest = self.course.hottest
        if hottest is None or self.course.floor <= self.deadline:
            return None
        return self.course.capacity_for(hottest, self.deadline) / self.staff.heaviest()


def _row(counted: Counted) -> SizeRow:
    of_range, of_cooperative_sticky, of_uniform = (counted.time_of(name) for name in PUBLISHED)
    return SizeRow(
        members=counted.members,
        drain_seconds=counted.drain,
        bound_seconds=min(counted.bound, counted.drain),
        range_seconds=of_range,
        cooperative_sticky_seconds=of_cooperative_sticky,
        uniform_seconds=of_uniform,
        unruled_seconds=counted.unruled,
        plan=counted.plan,
    )


def _steps(first: int, last: int) -> list[int]:
    """Return all sizes while they are few, then growing steps."""
    if last - first < ALL:
        return list(range(first, last + 1))
    return [*growing_steps(first, last, GROWTH), last]


def _seconds(time: Time | None) -> float | None:
    return None if time is None or time == NEVER else float(time)


def _rates(problem: Problem, rates: Sequence[float | Fraction] | None) -> list[Fraction]:
    if rates is None:
        return [Fraction(0)] * len(problem.lags)
    if isinstance(rates, str | Mapping) or not isinstance(rates, Sized):
        raise InvalidProblemError(f"rates must be a list of messages per second; got {kind(rates)}")
    if len(rates) != len(problem.lags):
        raise InvalidProblemError(
            f"rates needs one number for each of the {quantity(len(problem.lags), 'partition')}, not {len(rates)}"
        )
    return [
        positive(f"{topic}-{p}: rate", rate, "messages per second >= 0", zero=True)
        for (topic, p), rate in zip(problem.partitions, rates, strict=True)
    ]
