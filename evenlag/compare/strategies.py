"""Audit: every strategy compared with the optimum under the balance that it promises.

If the group has scenarios, strategies see the current lags, as in production. Their plans are judged by all scenarios:
figures in messages are weighted means over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from evenlag.compare.built_in import begins_anew, built_in
from evenlag.compare.comparison_cards import audit_card
from evenlag.compare.judge import Judge, Key, without_moves
from evenlag.errors import EvenlagError, InfeasibleError, InvalidPlanError
from evenlag.figures import messages, number
from evenlag.heuristics import PROMISED_BALANCE, published_name
from evenlag.model.balance import Balance
from evenlag.model.check import plan_violation
from evenlag.model.explanation.phrases import listed
from evenlag.model.figure_tables import GROUP, FigureTable, figures_of, values_of
from evenlag.model.names import taking
from evenlag.model.objective import CROSSINGS, MOVED_SIZE, Across, Objective, ObjectiveKind
from evenlag.model.plan import Number, Plan, current_plan, plain
from evenlag.model.problem import NOBODY, Problem
from evenlag.model.result import Binding, Result, Status
from evenlag.search.cache import SolveCache
from evenlag.search.clock import LEAST_SECONDS, Clock
from evenlag.search.options import AUTO, SolveOptions, TermKeywords
from evenlag.search.solver import search

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

OPTIMAL, CURRENT = "optimal", "current"
TODAY = "today: "  # prefix of the assignor that the group uses
MOST_NAMED = 2  # strategies in a sentence

_spread, _makespan = (Objective(kind).base for kind in (ObjectiveKind.SPREAD, ObjectiveKind.MAKESPAN))


def of_plan(figure: Callable[[Plan], Number | None]) -> Any:
    """Return an audit column for a figure of the plan, computed in the same way for every strategy."""
    return field(default=None, metadata={"of_plan": figure})


def _counts(plan: Plan) -> list[int]:
    counts: list[int] = plan.counts[plan.problem.active].tolist()
    return counts


@dataclass(frozen=True)
class AuditRow:
    """One strategy under one balance; figures in messages and seconds, None if they do not exist.

    The table `audit` has these columns, in this order and with these descriptions (`evenlag.tables.outputs`).

    Attributes
    ----------
    strategy : str
        A published heuristic; `current`, today's assignment; `today: ` and the assignor in use, the same assignment
        judged by that assignor's promise; or `optimal`.
    balance : Balance
        Balance that the strategy promises; it is compared with the optimum under the same balance.
    status : Status
        `OPTIMAL`, `FEASIBLE`, `HEURISTIC`, `ERROR`, or `EMPTY`: nothing to assign, so no figures.
    method : str or None
        Stage or strategy that found the plan.
    objective : number or None
        Spread plus costs of pairs at their prices, which an audit minimizes. Moves are free.
    bound : number or None
        No plan under this balance has a lower objective.
    gap : float or None
        Objective − bound of the optimum, as a share of the mean load.
    spread : number or None
        Largest − smallest load per weight, by current lags; with scenarios their mean.
    excess : number or None
        Objective above the optimum's; null if the plan breaks the balance or a requested limit.
    bound_excess : number or None
        Objective above the proven bound.
    makespan : number or None
        Largest load per weight; with scenarios their mean.
    moves : int or None
        Partitions that leave their owner.
    moved_size : int or None
        Total size of the partitions that leave their owner; null if sizes are unknown.
    crossings : int or None
        Traffic that members read across racks, or the number of partitions if no traffic is given; null if racks are
        unknown.
    forced_moves : int or None
        Partitions without an owner that get one.
    count_min : int or None
        Fewest partitions of an active member.
    count_max : int or None
        Most partitions of an active member.
    valid : bool
        True if every partition goes to one subscriber, and pins and caps are respected.
    violation : str or None
        The rule, balance or requested limit that the plan breaks.
    binding : tuple of Binding
        Rules that limit the optimum; only for `optimal`; in tables joined by `;`, null if none was found.
    seconds : float
        Time taken.
    error : str or None
        Reason why there is no plan.
    """

    strategy: str
    balance: Balance
    status: Status
    method: str | None = None
    objective: int | float | None = None
    bound: int | float | None = None
    gap: float | None = None
    spread: int | float | None = of_plan(_spread)
    excess: int | float | None = None
    bound_excess: int | float | None = None
    makespan: int | float | None = of_plan(_makespan)
    moves: int | None = of_plan(lambda plan: plan.moves)
    moved_size: int | None = None
    crossings: int | None = None
    forced_moves: int | None = of_plan(lambda plan: plan.forced_moves)
    count_min: int | None = of_plan(lambda plan: min(_counts(plan), default=None))
    count_max: int | None = of_plan(lambda plan: max(_counts(plan), default=None))
    valid: bool = False
    violation: str | None = None
    binding: tuple[Binding, ...] = ()
    seconds: float = 0.0
    error: str | None = None


class Alike(NamedTuple):
    """Audit rows with equal figures: the first row, all strategies, and the balances in words."""

    row: AuditRow
    strategies: list[str]
    balances: str


@dataclass(frozen=True)
class Audit:
    """The audit of one group.

    Attributes
    ----------
    problem : Problem
    rows : list of AuditRow
    optima : dict of balance to Result
    errors : dict of balance to EvenlagError
        The reason why a balance has no optimum.
    """

    problem: Problem
    rows: list[AuditRow]
    optima: dict[str, Result]
    errors: dict[str, EvenlagError] = field(default_factory=dict)

    def __repr__(self) -> str:
        spreads = ", ".join(f"{balance}={result.spread}" for balance, result in self.optima.items())
        return f"<Audit {self.problem.group!r}: rows={len(self.rows)}, best spread {spreads or 'unknown'}>"

    def _repr_html_(self) -> str:
        """Return the HTML shown by notebooks."""
        return audit_card(self)

    @cached_property
    def verdict(self) -> str:
        """One sentence: the distance of today's assignment from the best, and the strategies that come closer."""
        if not self.optima:
            return f"No best plan is known: {next(iter(self.errors.values()))}."
        results = list(self.optima.values())
        if results[0].status == Status.EMPTY:
            return results[0].verdict
        best = min(results, key=lambda result: result.objective)
        parts = [_of_today(next((row for row in self.rows if row.strategy == CURRENT), None), best)]
        parts += [", ".join(closer)] if (closer := _closer(self, best)) else []
        if (both := self.optima.get(Balance.BOTH)) is not None and both.objective > best.objective:
            found = "" if both.status == Status.OPTIMAL else " found"
            parts.append(f"the best{found} with even counts is {number(both.objective - best.objective)} higher")
        return f"{'; '.join(parts)}."

    @property
    def distinct(self) -> list[Alike]:
        """The rows, those with equal figures together; optima apart from strategies."""
        alike: dict[tuple[Any, ...], list[AuditRow]] = {}
        for row in self.rows:
            figures = replace(row, strategy="", balance=Balance.NONE, method=None, binding=(), seconds=0.0)
            alike.setdefault((row.strategy == OPTIMAL, *vars(figures).values()), []).append(row)
        return [Alike(rows[0], _once(row.strategy for row in rows), _balances(rows)) for rows in alike.values()]

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame, one row per strategy and balance.

        Columns: group; strategy, balance, status and method; objective, bound (messages); gap (share of the mean load);
        spread, excess, bound_excess, makespan (messages); moves, moved_size, crossings, forced_moves; count_min,
        count_max (partitions); valid; violation; binding (the rules, joined by `;`); seconds; error. `AuditRow`
        describes them. They have the names and types of a fleet's table `audit`. A missing figure is null.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed.
        """
        return self._table().to_pandas()

    def to_arrow(self) -> pa.Table:
        """Return the rows as a pyarrow Table with the columns of `to_pandas`."""
        return self._table().to_arrow()

    def _table(self) -> FigureTable:
        figures, group = figures_of(AuditRow), {GROUP.name: self.problem.group}
        return FigureTable((GROUP, *figures), [group | values_of(row, figures) for row in self.rows])


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _balances(rows: Iterable[AuditRow]) -> str:
    names = _once(str(row.balance) for row in rows)
    return "all" if len(names) == len(Balance) else ", ".join(names)


def _of_today(today: AuditRow | None, best: Result) -> str:
    """Return the words on today's assignment, next to the best plan."""
    spread = f"a spread of {messages(best.spread)}"
    if today is None:
        return f"Nothing is assigned today; the best plan has {spread}"
    if today.violation is not None or today.objective is None:
        return f"Today's assignment cannot stay ({today.violation}); the best plan has {spread}"
    if today.objective > best.objective:
        return f"Today's assignment is {_above(today.objective, best)} above the best"
    if best.status == Status.OPTIMAL:
        return f"Today's assignment is the best: it has {spread}"
    return f"No plan was found that is better than today's assignment: it has {spread}"


def _above(objective: float | Fraction, best: Result) -> str:
    """Return the distance of an objective from the best objective, with its unit."""
    of = "spread" if best.objective == best.spread else "objective"
    return f"{messages(objective - best.objective)} of {of}"


def _closer(audit: Audit, best: Result) -> list[str]:
    """Describe the built-in assignor and the other strategy that come closest to the best."""
    above: dict[str, float | Fraction] = {}
    for row in audit.rows:
        if row.strategy in PROMISED_BALANCE and row.violation is None and row.objective is not None:
            above[row.strategy] = row.objective - best.objective
    today = next((row for row in audit.rows if row.strategy == CURRENT and row.violation is None), None)
    most = math.inf if today is None or today.objective is None else today.objective - best.objective
    if most <= 0:
        return []
    setting, parts = built_in(audit.problem), []
    others = () if setting is None else setting.others
    for name in others:
        if setting is not None and begins_anew(setting.problem, name):  # its row is of a group that used it before
            above.pop(name, None)
    offered = {name: above[name] for name in others if name in above}
    for choice in (offered, above):
        least = min(choice.values(), default=most)
        if least < most:
            names = [name for name, distance in choice.items() if distance == least]
            reach = "reaches it" if len(names) == 1 else "reach it"
            distance = f"would be {number(least)} above it" if round(least, 2) else reach
            parts.append(f"{listed(names[:MOST_NAMED], len(names))} {distance}")
            most = least
        elif choice is offered and offered:
            parts.append("no other built-in assignor does better")
    return parts


@taking(TermKeywords, SolveOptions)
def audit(
    problem: Problem,
    *,
    time_limit: float = 2.0,
    gap: float = 0.0,
    seed: int = 0,
    deterministic: bool = False,
    threads: int | None = None,
    work: float | None = None,
    **terms: Unpack[TermKeywords],
) -> Audit:
    """Solve the group under every balance (stickiness 0) and compare each strategy with its optimum.

    Parameters
    ----------
    problem : Problem
        Judged by the mean over its scenarios if it has any, else by the current lags.
    rack_price, max_crossings, max_load, first, prices, budgets
        As in `solve`: the optima are found under these terms, and every strategy is judged by them. Moves stay free;
        prices, limits and order of moves are ignored.
    time_limit : float
        Seconds for the whole audit.
    gap, seed, deterministic, threads, work
        As in `solve`; the optima share `work`.

    Returns
    -------
    Audit
        Rows for today's assignment, every published heuristic, and the optimum under each balance. If the problem
        names the assignor that the group uses, today's assignment has a second row: "today: cooperative-sticky". A
        strategy or optimum without a plan has a row with its `error`.

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value; the message names both.
    """
    options = SolveOptions(
        time_limit=time_limit, gap=gap, seed=seed, deterministic=deterministic, threads=threads, work=work, **terms
    )  # fmt: skip
    return audit_with(problem, options)


def audit_with(
    problem: Problem,
    options: SolveOptions,
    *,
    known: Mapping[str, Result] | None = None,
    cache: SolveCache | None = None,
    start: Plan | None = None,
) -> Audit:
    """Audit a group with the options that `audit` takes.

    `known` holds the optima of an earlier audit of the same problem, which are improved further, and `cache` the
    intermediate results of other calls. No optimum is worse than the plan `start`, if that keeps the balance.
    """
    clock = Clock(options.time_limit, options.deterministic, options.work)
    cache = cache or SolveCache(problem)
    judge = Judge(cache, options)
    work = max(clock.allowance(), LEAST_SECONDS) / len(Balance)
    optima: dict[str, Result] = {}
    errors: dict[str, EvenlagError] = {}
    asked: dict[str, SolveOptions] = {}
    for place, balance in enumerate(Balance):
        if (twin := _same_rule(problem, balance, optima)) is not None:
            optima[balance] = twin
            continue
        try:
            begin = _best([*_plans_of(optima), *([] if start is None else [start])], judge, balance)
            left = max(clock.left(), LEAST_SECONDS)
            share = left if options.deterministic else left / (len(Balance) - place)
            asked[balance] = without_moves(
                options, balance=balance, slack=0, objective=ObjectiveKind.SPREAD, across=Across.MEAN, method=AUTO,
                only_if_better=None, time_limit=share, work=work,
            )  # fmt: skip
            before = (known or {}).get(balance)
            found = search(problem, asked[balance], start=begin, known=before, cache=cache, tie_break=False)
            optima[balance] = _no_worse(found, _published(cache), judge, cache, asked[balance])
        except (InfeasibleError, InvalidPlanError) as error:
            errors[balance] = error
    for balance in filter(optima.__contains__, Balance):  # a plan of a later balance may keep this one too
        twin = _same_rule(problem, balance, optima)
        optima[balance] = twin or _no_worse(optima[balance], _plans_of(optima), judge, cache, asked[balance])
    rows = _today(judge, cache, optima) if (problem.owner != NOBODY).any() else []
    rows += [_strategy_row(judge, cache, name, balance, optima) for name, balance in PROMISED_BALANCE.items()]
    for balance in Balance:
        if balance in optima:
            rows.append(_optimum_row(judge, balance, optima[balance]))
        else:
            rows.append(AuditRow(OPTIMAL, balance, Status.ERROR, error=str(errors[balance])))
    return Audit(problem, rows, optima, errors)


def _today(judge: Judge, cache: SolveCache, optima: dict[str, Result]) -> list[AuditRow]:
    """Return rows of today's assignment: without a count rule, and under the balance of a known assignor in use."""
    rows = [_strategy_row(judge, cache, CURRENT, Balance.NONE, optima)]
    if (assignor := cache.problem.assignor) is not None:
        promised = PROMISED_BALANCE.get(published_name(assignor) or "", Balance.NONE)
        rows.append(_strategy_row(judge, cache, TODAY + assignor, promised, optima))
    return rows


def _plans_of(optima: dict[str, Result]) -> list[Plan]:
    return [result.plan for result in optima.values() if result.status != Status.EMPTY]


def _published(cache: SolveCache) -> Iterator[Plan]:
    """Yield the plans of the published heuristics that are defined for this problem."""
    for name in PROMISED_BALANCE:
        with suppress(EvenlagError):
            yield cache.plan(name)


def _best(plans: Iterable[Plan], judge: Judge, balance: str, below: Key | None = None) -> Plan | None:
    """Return the best plan that keeps the balance and all limits; None if none is below the given key."""
    best = None
    for plan in plans:
        key = judge.key(plan, balance)
        if (below is None or key < below) and judge.broken(plan, balance) is None:
            best, below = plan, key
    return best


def _no_worse(result: Result, plans: Iterable[Plan], judge: Judge, cache: SolveCache, options: SolveOptions) -> Result:
    """Return the result, improved if one of `plans` is better: short searches do not try every plan."""
    if result.status == Status.EMPTY:
        return result
    better = _best(plans, judge, options.balance, judge.key(result.plan, options.balance))
    if better is None:
        return result
    little = options.within(options.time_limit if options.deterministic else LEAST_SECONDS, LEAST_SECONDS)
    return search(cache.problem, little, start=better, known=result, cache=cache, tie_break=False)


def _same_rule(problem: Problem, balance: str, optima: dict[str, Result]) -> Result | None:
    """Return the optimum of `both` if the balance is equivalent: one topic, equal weights, no pins or caps."""
    plain_topic = len(problem.topics) == 1 and problem.equal_weights
    same = balance in (Balance.TOPIC, Balance.GROUP) and plain_topic and not problem.capped_or_pinned
    return optima.get(Balance.BOTH) if same else None


def _strategy_row(
    judge: Judge, cache: SolveCache, strategy: str, balance: Balance, optima: dict[str, Result]
) -> AuditRow:
    try:
        today = strategy == CURRENT or strategy.startswith(TODAY)
        plan = current_plan(cache.problem) if today else cache.plan(strategy)
    except EvenlagError as error:
        return AuditRow(strategy, balance, Status.HEURISTIC, strategy, violation=str(error))
    seconds = cache.seconds.get(strategy, 0.0)
    optimum = optima.get(balance)
    if optimum is not None and optimum.status == Status.EMPTY:
        return AuditRow(strategy, balance, Status.EMPTY, strategy, seconds=seconds)
    figures = _figures(judge, plan)
    broken = plan_violation(plan)
    valid = broken is None
    value = _spread(plan)
    if optimum is not None:
        value = judge.value(plan, balance)
        broken = broken or judge.broken(plan, balance) or judge.beaten(plan, optimum.plan, balance)
    kept = broken is None and optimum is not None
    return AuditRow(
        strategy, balance, Status.HEURISTIC, strategy, objective=plain(value), **figures,
        bound=plain(optimum.bound) if optimum is not None else None,
        excess=plain(value - optimum.objective) if kept and optimum is not None else None,
        bound_excess=plain(value - optimum.bound) if kept and optimum is not None else None,
        valid=valid, violation=broken, seconds=seconds,
    )  # fmt: skip


def _optimum_row(judge: Judge, balance: Balance, result: Result) -> AuditRow:
    if result.status == Status.EMPTY:
        return AuditRow(OPTIMAL, balance, Status.EMPTY, result.method, valid=True, seconds=result.seconds)
    return AuditRow(
        OPTIMAL, balance, result.status, result.method, objective=plain(result.objective),
        **_figures(judge, result.plan), bound=plain(result.bound), gap=result.gap, excess=0,
        bound_excess=plain(result.objective - result.bound), valid=True, binding=result.binding,
        seconds=result.seconds,
    )  # fmt: skip


def _figures(judge: Judge, plan: Plan) -> dict[str, Any]:
    columns = ((column.name, column.metadata.get("of_plan")) for column in fields(AuditRow))
    costs = {name: judge.units_of(plan, name) for name in (MOVED_SIZE, CROSSINGS)}
    return {name: plain(figure(plan)) for name, figure in columns if figure is not None} | costs
