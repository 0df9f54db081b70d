"""Entry point of the library: `solve` takes a group and returns a plan with its proof.

Every result is compared with today's assignment. With `only_if_better`, a plan that does not pay is not applied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from evenlag.errors import InvalidProblemError
from evenlag.model.balance import Balance, count_rule
from evenlag.model.check import rule_violation
from evenlag.model.drain_time import MaxLoad
from evenlag.model.literals import AcrossWord, BalanceWord, MethodWord, ObjectiveWord, StickinessWord
from evenlag.model.names import spelled
from evenlag.model.objective import DEFAULT_STICKINESS, MOVES, Across, Objective, ObjectiveKind, PairCost
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
    max_moved: int | None = None,
    max_load: MaxLoad | None = None,
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
    """Find the best assignment within a time limit, and prove how good any assignment can be.

    Parameters
    ----------
    problem : Problem
    balance : {"both", "topic", "group", "none"}
        Partition counts that must be even across members: of each topic ("topic"), of the group in total ("group"),
        both, or none. This is a hard rule: a lower lag never breaks it.
    stickiness : number of messages, share such as "0.1%", or "fewest-moves"
        Price of one move: the messages that it must save. A share is taken of the mean load and rounded up to whole
        messages. "fewest-moves" minimizes the number of moves first, then the objective.
    max_moves : int, optional
        Most partitions that may leave their owner. By default, every move that saves its price is allowed.
    slack : int
        Number of partitions by which each count may lie outside its even range.
    objective : {"spread", "makespan"}
        Figure to minimize, in messages per weight: the largest load of a member minus the smallest ("spread"), or the
        largest load ("makespan").
    across : {"mean", "worst"}
        With scenarios, minimize the weighted mean of their spreads (or makespans), or the worst of them.
    rack_price : number of messages or share such as "0.1%"
        Price of one unit of traffic between racks. If the problem has no traffic, a unit is one partition.
    max_crossings : int, optional
        Most traffic between racks, in the same units.
    max_moved : int, optional
        Most state that may move: the total size of the partitions that leave their owner.
    max_load : number or DrainTime, optional
        Most messages that a member may get, or the time in which it must be able to read them; a hard rule. With
        unequal weights, the limit holds for a member of mean weight and scales with the weight.
    first : sequence of str
        Criteria to minimize in this order before the objective: "moves" (by size if partitions have sizes),
        "crossings", or costs of your own.
    prices, budgets : mapping of cost to number, optional
        Price per unit (in the form of `rack_price`) and most units of the costs "crossings", "moved_size" or your own.
        A value that contradicts another parameter for the same cost is an error.
    method : str
        "auto", a MIP backend such as "cbc", or a published heuristic. A backend runs the published heuristics, then
        its MIP alone.
    time_limit : float
        Seconds, including the time to build models.
    gap : float
        Stop once (objective − bound) is within this fraction of the mean load.
    seed : int
        Random seed.
    deterministic : bool
        Limit work, not time, so that runs repeat exactly: the same input and seed give the same result except for
        `seconds`. The time limit remains as a safety net. If it cuts work short, the result may differ; then
        `stopped_by` is "time" or a warning names the wall clock.
    threads : int, optional
        Threads of the MIP; by default all processors, at most 8.
    start : Plan or Result, optional
        Plan of the same problem to start from, such as the result under a narrower balance. The result is no worse.
    work : float, optional
        With `deterministic`: the amount of work, in seconds of a time limit; by default `time_limit`.
    only_if_better : share such as "10%" or 0.1, optional
        Keep today's assignment unless the plan, with its moves paid, saves at least this share of today's spread (or
        makespan). `Result.pays` is True if it does (docs/pays.md).
    pause : float
        Seconds for which a moved partition is not read. Messages that arrive meanwhile count as a cost of the move.
    rates : mapping of (topic, partition) to messages per second, optional
        Arrival rate of each partition. Without rates, a pause costs nothing.

    Returns
    -------
    Result
        Its plan is always valid. It is no worse than the current assignment, nor than any published heuristic's plan
        that keeps the same balance and was computed in time (`swap-balance` and `variance-based` only up to 2,000
        partitions).

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value; the message names both.
    InfeasibleError
        Members lack capacity, or no plan keeps the budgets and `max_load`. The message names the least limit that can
        be kept.
    InvalidPlanError
        The heuristic named by `method` gives no valid plan for this problem.
    """
    options = SolveOptions(
        balance=balance, stickiness=stickiness, max_moves=max_moves, slack=slack, objective=objective, across=across,
        method=method, time_limit=time_limit, gap=gap, seed=seed, deterministic=deterministic, threads=threads,
        work=work, only_if_better=only_if_better, pause=pause, rack_price=rack_price, max_crossings=max_crossings,
        max_moved=max_moved, max_load=max_load, first=first, prices=prices, budgets=budgets,
    )  # fmt: skip
    check_problem(problem)
    known = None if rates is None else parse_rates(problem, rates)
    return with_payoff(search(problem, options, start=_plan_of(start)), options, known)


def _plan_of(start: Plan | Result | None) -> Plan | None:
    plan = start.plan if isinstance(start, Result) else start
    if plan is not None and not isinstance(plan, Plan):
        raise InvalidProblemError(f"start must be a Plan or a Result of the same problem; got {kind(plan)}")
    return plan


# ---- does the plan pay -----------------------------------------------------------------------------------------------


def with_payoff(result: Result, options: SolveOptions, rates: Rates | None = None) -> Result:
    """Return a result with its payoff; if that misses `only_if_better`, replace its plan by today's assignment.

    If no partition has an owner, `payoff` is None unless `only_if_better` is given.
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
    if compared.moves and compared.saved <= 0:
        compared = replace(compared, uneven=_uneven(result.plan.problem, options))
    result = replace(result, payoff=compared)
    return _kept(result, compared, goal, options) if result.left_alone else result


def _uneven(problem: Problem, options: SolveOptions) -> str | None:
    """Return how today's assignment breaks the count rule."""
    current = current_plan(problem)
    units = gathered(problem, current) or current  # None if a unit is split; then the plan always pays
    return rule_violation(units, count_rule(units.problem, options.balance, options.slack))


def _goal(result: Result, options: SolveOptions) -> Objective:
    """Return the resolved objective of a result, for the partitions of its plan."""
    problem = result.plan.problem
    prices, known = result.priced, known_costs(problem)
    goal = Objective(
        ObjectiveKind(options.objective), prices.get(MOVES, 0), across=Across(options.across), ceiling=result.max_load
    )
    pairs = (
        PairCost(name, costs, prices.get(name, 0), options.asked.budgets.get(name)) for name, costs in known.items()
    )
    return replace(goal, pairs=tuple(pair for pair in pairs if pair.matters))


def _kept(result: Result, compared: Payoff, goal: Objective, options: SolveOptions) -> Result:
    """Return the same result with today's assignment as its plan.

    `bound` still applies to every plan, and `stopped_by` gives the reason why the search for a new plan ended.
    """
    current = current_plan(result.plan.problem)
    broken = _uneven(current.problem, options)
    costs = costs_of(current.problem, current.member_of)
    least = all(costs.get(name, 0) <= bound for name, bound in result.cost_bounds.items())
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
        costs=costs,
    )
