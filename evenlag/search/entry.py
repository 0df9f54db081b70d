"""The one verb of the library: a group in, a plan with its proof out.

Every result is compared with today's assignment. Where its plan does not pay, the group is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from evenlag.errors import InvalidProblemError
from evenlag.model.asked_terms import FetchFrom
from evenlag.model.balance import Balance, count_rule
from evenlag.model.check import rule_violation
from evenlag.model.literals import AcrossWord, BalanceWord, FetchFromWord, MethodWord, ObjectiveWord, StickinessWord
from evenlag.model.names import spelled
from evenlag.model.objective import DEFAULT_STICKINESS, MOVED_SIZE, Across, Objective, ObjectiveKind, PairCost
from evenlag.model.pair_costs import costs_of, known_costs
from evenlag.model.payoff import PAUSE, Payoff, Rates, parse_pause, parse_rates, parse_share, payoff
from evenlag.model.plan import Plan, current_plan
from evenlag.model.problem import NOBODY, Problem, check_problem
from evenlag.model.result import Result, Status
from evenlag.model.units import gathered
from evenlag.model.values import kind
from evenlag.search.incumbent import relative_gap
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search


@spelled
def solve(
    problem: Problem,
    *,
    balance: Balance | BalanceWord = Balance.BOTH,
    stickiness: float | StickinessWord | str = DEFAULT_STICKINESS,
    max_moves: int | None = None,
    slack: int = 0,
    objective: ObjectiveKind | ObjectiveWord = ObjectiveKind.SPREAD,
    across: Across | AcrossWord = Across.MEAN,
    rack_price: float | str = 0,
    max_crossings: int | None = None,
    fetch_from: FetchFrom | FetchFromWord = FetchFrom.FOLLOWERS,
    max_moved: int | None = None,
    max_load: float | Fraction | None = None,
    first: Sequence[str] = (),
    prices: Mapping[str, float | str] | None = None,
    budgets: Mapping[str, int | None] | None = None,
    method: MethodWord = "auto",
    time_limit: float = 10.0,
    gap: float = 0.0,
    seed: int = 0,
    deterministic: bool = False,
    threads: int | None = None,
    start: Plan | Result | None = None,
    work: float | None = None,
    only_if_better: float | str | None = None,
    pause: float = PAUSE,
    rates: Mapping[tuple[str, int], float | Fraction] | None = None,
) -> Result:
    """Find the best assignment within a time limit, with a proven bound on how good any can be.

    Parameters
    ----------
    problem : Problem
    balance : {"both", "topic", "group", "none"}
        Which counts of partitions must be even among the members: those of each topic, those of the whole group, both,
        or none. They are never given up for less lag.
    stickiness : number of messages, share such as "0.1%", or "fewest-moves"
        What one move must save; a share is of the mean load, rounded up to whole messages. "fewest-moves" makes the
        moves as few as the balance allows, and then the objective as low as so few moves allow.
    max_moves : int, optional
        The most partitions that may leave their owner; without, as many as pay.
    slack : int
        Partitions by which every count may leave its range.
    objective : {"spread", "makespan"}
        What is to be small, in messages by weight: the largest load of a member less the smallest, or the largest.
    across : {"mean", "worst"}
        What counts where the problem has scenarios: the mean of their spreads by weight, or the worst of them.
    rack_price : number of messages or share such as "0.1%"
        What a unit of traffic between racks costs; a unit is a partition where the problem has no traffic.
    max_crossings : int, optional
        The most traffic between racks.
    fetch_from : {"followers", "leader"}
        A partition can be read from the racks of all its replicas, or of its leader alone.
    max_moved : int, optional
        The most state that may move: the sizes of the partitions that leave their owner.
    max_load : number, optional
        No member gets more messages than this, a hard rule; where weights differ, no member of mean weight.
    first : sequence of str
        Criteria to make least, in this order, before the spread: "moves" (by size where partitions have sizes),
        "crossings", or costs of the caller's own.
    prices, budgets : mapping of cost to number, optional
        The price of a unit, as `rack_price`, and the most units of any cost of pairs by its name. Where a parameter
        gives the same term another value, that is an error.
    method : str
        "auto", a backend ("cp-sat", "cbc", "highs": baselines, then its MIP alone), or a published heuristic.
    time_limit : float
        Seconds, model building included.
    gap : float
        Stop once (objective − bound) is within this fraction of the mean load.
    seed : int
        Of all that is drawn at random.
    deterministic : bool
        Work limits in place of the wall clock, which stays as a safety net: same input and seed, same result but
        for `seconds`, as long as `stopped_by` is not "time" and no warning speaks of the wall clock.
    threads : int, optional
        For the MIP; default all processors, at most 8.
    start : Plan or Result, optional
        A plan of the same problem to do no worse than, such as the result under a narrower balance.
    work : float, optional
        With `deterministic`: how much work, as the seconds of a time limit; default `time_limit`.
    only_if_better : share such as "10%" or 0.1, optional
        Leave the group alone, its assignment as it is today, unless the plan saves at least this share of today's
        spread (or makespan) once its moves are paid; `Result.pays` says which (docs/pays.md).
    pause : float
        Seconds for which a partition that moves stands still: what comes in meanwhile is part of what moves cost.
    rates : mapping of (topic, partition) to messages per second, optional
        What comes in; without, a pause costs nothing.

    Returns
    -------
    Result
        Always with a valid plan, never worse than the current assignment, nor than the best published heuristic
        (`swap-balance` up to 2,000 partitions) that keeps the same balance and could be tried in the time.

    Raises
    ------
    InvalidProblemError
        A parameter has a value that it cannot have; the message names both.
    InfeasibleError
        Too little capacity, or no plan within the budgets and the ceiling; the message says the least that can be kept.
    InvalidPlanError
        A heuristic asked for by name gives no valid plan for this problem.
    """
    options = SolveOptions(
        balance=balance, stickiness=stickiness, max_moves=max_moves, slack=slack, objective=objective, across=across,
        method=method, time_limit=time_limit, gap=gap, seed=seed, deterministic=deterministic, threads=threads,
        work=work, only_if_better=only_if_better, pause=pause, rack_price=rack_price, max_crossings=max_crossings,
        fetch_from=fetch_from, max_moved=max_moved, max_load=max_load, first=first, prices=prices,
        budgets=budgets,
    )  # fmt: skip
    check_problem(problem)
    known = None if rates is None else parse_rates(problem, rates)
    return weighed(search(problem, options, start=_plan_of(start)), options, known)


def _plan_of(start: Plan | Result | None) -> Plan | None:
    plan = start.plan if isinstance(start, Result) else start
    if plan is not None and not isinstance(plan, Plan):
        raise InvalidProblemError(f"start must be a Plan or a Result of the same problem; got {kind(plan)}")
    return plan


# ---- does the plan pay -----------------------------------------------------------------------------------------------


def weighed(result: Result, options: SolveOptions, rates: Rates | None = None) -> Result:
    """Return a result with its payoff; if `only_if_better` asks for more, with today's assignment as its plan.

    Where no partition has an owner there is nothing to compare with: `payoff` is None unless it was asked for.
    """
    if options.only_if_better is None and not (result.plan.problem.owner != NOBODY).any():
        return result
    goal = _goal(result, options)
    compared = payoff(
        result.plan,
        goal,
        asked=None if options.only_if_better is None else parse_share(options.only_if_better),
        pause=parse_pause(options.pause),
        rates=rates,
    )
    result = replace(result, payoff=compared)
    return _kept(result, compared, goal, options) if result.left_alone else result


def _goal(result: Result, options: SolveOptions) -> Objective:
    """Return the objective of a result as it was resolved, for the partitions of its plan."""
    problem = result.plan.problem
    price = 0 if isinstance(result.stickiness, str) else result.stickiness
    goal = Objective(ObjectiveKind(options.objective), price, across=Across(options.across), ceiling=result.max_load)
    known = known_costs(problem, options.fetch_from)
    prices = dict(result.prices)
    if MOVED_SIZE in known:
        goal, prices = replace(goal, stickiness=0), prices | {MOVED_SIZE: price}
    pairs = (
        PairCost(name, costs, prices.get(name, 0), options.asked.budgets.get(name)) for name, costs in known.items()
    )
    return replace(goal, pairs=tuple(pair for pair in pairs if pair.matters))


def _kept(result: Result, compared: Payoff, goal: Objective, options: SolveOptions) -> Result:
    """Return the same result with today's assignment as its plan.

    `bound` stays what any new plan is held to, and `stopped_by` what ended the search for one.
    """
    current = current_plan(result.plan.problem)
    units = gathered(current.problem, current) or current  # units that are apart cannot stay, so they pay
    broken = rule_violation(units, count_rule(units.problem, options.balance, options.slack))
    come_to = costs_of(current.problem, current.member_of, options.fetch_from)
    least = all(come_to.get(name, 0) <= bound for name, bound in result.cost_bounds.items())
    proven = broken is None and least and result.bound == compared.today
    return replace(
        result,
        plan=current,
        status=Status.HEURISTIC if broken else Status.OPTIMAL if proven else Status.FEASIBLE,
        method="current",
        fallback=False,
        objective=compared.today,
        gap=None if broken else relative_gap(compared.today, result.bound, goal.scale(current.problem)),
        violation=broken,
        costs=come_to,
    )
