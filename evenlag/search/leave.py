"""What a result comes to beside today's assignment, and the group left alone where its plan does not pay."""

from __future__ import annotations

from dataclasses import replace

from evenlag.model.balance import count_rule
from evenlag.model.check import rule_violation
from evenlag.model.objective import MOVED_SIZE, Across, Objective, ObjectiveKind, PairCost
from evenlag.model.pair_costs import costs_of, known_costs
from evenlag.model.payoff import Payoff, Rates, parse_pause, parse_share, payoff
from evenlag.model.plan import current_plan
from evenlag.model.problem import NOBODY
from evenlag.model.result import Result, Status
from evenlag.model.units import gathered
from evenlag.search.incumbent import relative_gap
from evenlag.search.options import SolveOptions


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
