"""The fields of a result: each is computed again from the plan and the certificate, or stands in `UNCHECKED`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from evenlag.verifier.costs_of_pairs import COSTS, costs_of, names_of_costs
from evenlag.verifier.count_limits import Cell, MoveCounts
from evenlag.verifier.given_answer import Answer
from evenlag.verifier.question import RefusedError, UncheckedError, moves_of, whole
from evenlag.verifier.stated_group import FOLLOWERS, LEADER

OPTIMAL, FEASIBLE, HEURISTIC, EMPTY = "OPTIMAL", "FEASIBLE", "HEURISTIC", "EMPTY"
MOVES, MOVED_SIZE = "moves", "moved_size"
NEARLY = Fraction(1, 10**9)  # relative error of numbers that a document rounds to floats

UNCHECKED = {
    "method": "it says how the plan was found; the plan itself is checked",
    "fallback": "it says how the plan was found; the plan itself is checked",
    "stopped_by": "it says why the search ended; the bound is checked",
    "seconds": "nothing in the two files shows how long the search took",
    "warnings": "they tell the course of the search and of reading the input",
    "verdict": "a sentence; its numbers are in other fields",
    "facts": "copied from the input; no plan or figure depends on them",
    "members": "copied from the input; no plan or figure depends on them",
    "lags": "copied from the input; figures are computed from the input's own",
    "binding": "it compares with the bounds of other problems, which have no certificates",
    "the words of violation": "only whether the plan breaks a rule is checked",
    "the words of bound_by": "a proof is checked by its kind, whichever stage found it",
    "payoff.asked": "it repeats a parameter of the call; `pays` must follow from it",
    "payoff.pause": "it repeats a parameter of the call",
    "payoff.pause_cost": "it depends on rates, which are not in the problem file; `saved` must follow from it",
    "payoff.reason": "a sentence; its numbers are in other fields",
    "payoff.moves of a plan left out": "if today's assignment stays, the other plan is not in the result",
    "costs not known to the checker": "a cost that a program registered has no function here",
}
"""Fields, or parts of fields, that are not checked, with the reason; all others are."""

OF_A_PLAN = ("objective", "bound", "spread", "makespan", "scenario_spreads")  # null if there is nothing to assign
WITH_SCENARIOS = ("across", "scenario_spreads")
WITH_COSTS = ("costs", "cost_bounds", "first", "max_load", "prices", "fetch_from")
PAYOFF = ("today", "planned", "saved", "moves", "move_cost", "pause", "pause_cost", "asked", "reason")


def check_fields(answer: Answer) -> None:
    """Compute all fields again; add what could not be checked to `answer.unproven`.

    Raises
    ------
    RefusedError
        A field is missing or wrong.
    """
    for check in (_figures, _costs, _status, _bound, _violation, _cost_bounds, _moves_bound, _payoff):
        try:
            check(answer)
        except UncheckedError as error:
            answer.unproven.append(str(error))


def objective_of(answer: Answer) -> Fraction:
    """Return the objective of the plan, in messages."""
    if not answer.group.active:
        return Fraction(0)
    return answer.question.value(answer.group, answer.holder) + answer.terms.price(answer.holder)


# ---- figures of the plan ---------------------------------------------------------------------------------------------


def _figures(answer: Answer) -> None:
    """Check the figures that follow from plan and question alone."""
    group, holds, question, terms = answer.whole, answer.holds, answer.question, answer.terms
    counts, loads = dict.fromkeys(group.members, 0), dict.fromkeys(group.members, 0)
    for p, m in enumerate(holds):
        if m is not None:
            counts[group.members[m]] += 1
            loads[group.members[m]] += group.lags[p]
    prices = {pair.name: Fraction(pair.price) for pair in terms.pairs if pair.price}
    if question.price and {MOVES, MOVED_SIZE} & set(prices):
        raise RefusedError("moves have two prices in the certificate")
    of_moves = prices.pop(MOVED_SIZE, prices.pop(MOVES, Fraction(question.price)))
    spreads = [_ends(answer, lags) for _, lags in group.futures]
    high, low = _ends(answer, group.lags)
    figures: dict[str, Any] = {
        "group": group.name,
        "objective": objective_of(answer),
        "bound": answer.bound,
        "spread": high - low,
        "makespan": high,
        "moves": moves_of(group, holds),
        "forced_moves": sum(m is not None and owner is None for m, owner in zip(holds, group.owner, strict=True)),
        "unassigned": [list(name) for name, m in zip(group.partitions, holds, strict=True) if m is None],
        "counts": counts,
        "loads": loads,
        "stickiness": "fewest-moves" if question.fewest else of_moves,
        "balance": question.balance,
    }
    _check_presence(answer, WITH_SCENARIOS, present=bool(group.futures))
    if group.futures:
        figures |= {"across": question.across, "scenario_spreads": [high - low for high, low in spreads]}
    if not answer.group.active:
        figures |= {name: None for name in OF_A_PLAN if name in figures}
    for name, right in figures.items():
        _check(answer, name, right)


def _ends(answer: Answer, lags: list[int], holder: Sequence[int | None] | None = None) -> tuple[Fraction, Fraction]:
    """Return the largest and the smallest load of an assignment of partitions with these lags."""
    loads = answer.whole.loads(answer.holds if holder is None else holder, lags)
    return max(loads, default=Fraction(0)), min(loads, default=Fraction(0))


# ---- what is claimed of the plan -------------------------------------------------------------------------------------


def _bound(answer: Answer) -> None:
    """Check `bound_by` and `gap`, and that the bound does not lie above the objective."""
    group, question, document = answer.group, answer.question, answer.document
    if not group.active:
        if answer.bound:
            raise RefusedError(f"there is nothing to assign, but the certificate has a bound of {shown(answer.bound)}")
        for name in ("bound_by", "gap"):
            _check(answer, name, None)
        return
    by, objective = document.get("bound_by", 0), objective_of(answer)
    if not (by is None if answer.bound <= 0 else isinstance(by, str) and by):
        raise RefusedError(f"bound_by must name a stage if the bound is above 0, else be null; got {by!r}")
    violated = document.get("violation") is not None
    if answer.bound > objective and not violated and not (answer.stays and (answer.terms.first or question.fewest)):
        raise RefusedError(f"the bound {shown(answer.bound)} lies above the objective {shown(objective)}")
    gap = document.get("gap", "missing")
    if violated and gap is not None:
        raise RefusedError(f"gap must be null, since the plan breaks a rule; got {gap!r}")
    totals = [sum(lags[p] for p in group.here) for _, lags in group.judged_by]
    mean = question.combined(group, [Fraction(total, max(len(group.active), 1)) for total in totals])
    right = (objective - answer.bound) / max(Fraction(1), mean)
    if not violated and not _nearly(gap, right):
        raise RefusedError(f"gap is {float(right)} by objective and bound, and {gap!r} in the result")


def _violation(answer: Answer) -> None:
    """Check that `violation` is null exactly if the plan keeps the count balance, the budgets and the ceiling."""
    said = answer.document.get("violation", "")
    if said is not None and not (isinstance(said, str) and said.strip()):
        raise RefusedError(f"violation must be a sentence or null; got {said!r}")
    if not answer.group.active:
        if said is not None:
            raise RefusedError("the plan breaks no rule, but the result has a violation")
        return
    broken = answer.broken
    if said is None and broken is not None:
        raise RefusedError(broken)
    if said is not None and broken is None:
        raise RefusedError(f"the plan breaks no rule, but violation is {said!r}")


def _status(answer: Answer) -> None:
    """Check that the status is a known one, and OPTIMAL only if the bound and all criteria are met."""
    status, violation = answer.document.get("status"), answer.document.get("violation")
    if status not in (OPTIMAL, FEASIBLE, HEURISTIC, EMPTY):
        raise RefusedError(f"status must be OPTIMAL, FEASIBLE, HEURISTIC or EMPTY; got {status!r}")
    if (status == EMPTY) != (not answer.group.active):
        there = "partitions to assign" if answer.group.active else "nothing to assign"
        raise RefusedError(f"the status is {status}, but there are {there}")
    if violation is not None and status != HEURISTIC:
        raise RefusedError(f"the status is {status}, but the plan breaks a rule: {violation}")
    if status == OPTIMAL and answer.bound != objective_of(answer):
        raise RefusedError("the status is OPTIMAL, but the bound does not meet the objective")


def _costs(answer: Answer) -> None:
    """Check the costs of pairs and what is asked of them."""
    document, terms, whole = answer.document, answer.terms, answer.whole
    known, said = names_of_costs(whole), document.get("costs", {})
    if not isinstance(said, Mapping):
        raise RefusedError(f"costs must map names to totals; got {said!r}")
    unknown = [name for name in said if name not in COSTS and name not in whole.costs]
    if any(type(said[name]) is not int or said[name] < 0 for name in unknown):
        raise RefusedError(f"costs must map names to totals; got {said!r}")
    first = [*terms.first, *([MOVES] if answer.question.fewest and MOVES not in terms.first else [])]
    present = bool(known or unknown or first or terms.max_load is not None)
    _check_presence(answer, WITH_COSTS, present=present)
    if not present:
        return
    fetch_from = document["fetch_from"]
    if fetch_from not in (FOLLOWERS, LEADER):
        raise RefusedError(f"fetch_from must be {FOLLOWERS!r} or {LEADER!r}; got {fetch_from!r}")
    prices = {pair.name: Fraction(pair.price) for pair in terms.pairs if pair.price}
    for name, right in {
        "costs": {name: units_of_cost(answer, name, answer.holds) for name in [*known, *unknown]},
        "first": first,
        "max_load": terms.max_load,
        "prices": {name: price for name, price in prices.items() if name not in (MOVES, MOVED_SIZE)},
        "fetch_from": whole.fetch_from,
    }.items():
        _check(answer, name, right)
    if unknown:
        raise UncheckedError(f"the checker does not know the cost {unknown[0]!r}, so its total was not checked")


def units_of_cost(answer: Answer, name: str, holder: Sequence[int | None]) -> int:
    """Return the total of a cost in an assignment of partitions; if the cost is unknown, the total in the result."""
    costs = costs_of(answer.whole, name)
    if costs is None:
        return int(answer.document["costs"][name])
    return sum(row[m] for row, m in zip(costs, holder, strict=True) if m is not None)


def _cost_bounds(answer: Answer) -> None:
    """Check that `cost_bounds` names the criteria, with no more than the plan has, and no less if it is OPTIMAL."""
    said, terms = answer.document.get("cost_bounds", {}), answer.terms
    if not isinstance(said, Mapping) or list(said) != list(terms.first):
        raise RefusedError(f"cost_bounds must have the criteria {list(terms.first)}; got {said!r}")
    for name, units in zip(terms.first, terms.criteria(answer.holder), strict=True):
        least = said[name]
        right = type(least) is int and least >= 0
        if right and not answer.stays:
            right = least == units if answer.document.get("status") == OPTIMAL else least <= units
        elif right and answer.document.get("status") == OPTIMAL:
            right = units <= least
        if not right:
            raise RefusedError(f"cost_bounds of {name} is {least!r}, but the plan has {units}")


def _moves_bound(answer: Answer) -> None:
    """Check `moves_bound`: the fewest moves that the balance allows, or 0 if they were not computed.

    Limits and criteria may call for more moves; the proof of the bound shows how many.
    """
    said = answer.document.get("moves_bound")
    if type(said) is not int or said < 0:
        raise RefusedError(f"moves_bound must be a number of moves; got {said!r}")
    if said in (0, (answer.document.get("cost_bounds") or {}).get(MOVES)):
        return
    if not answer.group.active:
        raise RefusedError(f"there is nothing to assign, but moves_bound is {said}")
    try:
        fewest = fewest_moves(answer)
    except UncheckedError as error:
        raise UncheckedError(f"moves_bound was not proven again: {error}") from error
    if said < fewest or (said > fewest and not answer.terms.any):
        raise RefusedError(f"the fewest moves are {fewest}, and moves_bound is {said}")
    answer.moves_to_prove = said if said > fewest else None


def fewest_moves(answer: Answer) -> int:
    """Return the fewest moves that the balance allows, by the counts of the certificate or by counts found here."""
    moves = MoveCounts(answer.group, answer.counts, answer.effort.part(0.25))
    if "counts" in answer.certificate:
        return moves.fewest(read_counts(answer, answer.certificate))
    return moves.fewest(moves.search(answer.holder))


def read_counts(answer: Answer, document: Mapping[str, Any]) -> Counter[Cell]:
    """Read the counts that need the fewest moves."""
    try:
        given = document["counts"]
        counts = Counter({(t, answer.group.members.index(member)): whole(n) for t, member, n in given})
        if len(counts) < len(given):
            raise ValueError("a topic and member twice")
        return counts
    except (KeyError, TypeError, ValueError) as error:
        raise RefusedError(f"cannot read the counts in the certificate ({error!r})") from error


# ---- does it pay -----------------------------------------------------------------------------------------------------


def _payoff(answer: Answer) -> None:
    """Check `pays` and `payoff`. If today's assignment stays, they are about a plan that the result does not have."""
    pays, worth = answer.document.get("pays", 0), answer.document.get("payoff", 0)
    if worth is None and pays is None:
        return
    if not isinstance(worth, Mapping) or set(worth) != set(PAYOFF):
        raise RefusedError(f"payoff must have the fields {', '.join(PAYOFF)}; got {worth!r}")
    numbers = {name: worth[name] for name in ("today", "planned", "saved", "moves", "move_cost", "pause")}
    numbers |= {name: worth[name] for name in ("pause_cost", "asked") if worth[name] is not None}
    if not all(_is_number(number) for number in numbers.values()) or not isinstance(worth["reason"], str):
        raise RefusedError(f"payoff must have numbers and a reason; got {worth!r}")
    exact = {name: Fraction(number) for name, number in numbers.items()}
    lowest = min(exact["moves"], exact["move_cost"], exact["pause"], exact.get("pause_cost", Fraction(0)))
    if lowest < 0 or exact["moves"].denominator > 1:
        raise RefusedError(f"payoff must not have moves, costs or a pause below 0; got {worth!r}")
    right = _worth(answer) if not answer.stays or not worth["moves"] else {"today": objective_of(answer)}
    if not {MOVES, MOVED_SIZE} & {pair.name for pair in answer.terms.pairs}:
        right["move_cost"] = answer.question.price * exact["moves"]
    for name, value in right.items():
        if worth[name] != plain(value):
            raise RefusedError(f"payoff: {name} is {shown(value)} by the plan, and {worth[name]!r} in the result")
    exact |= right
    saved = exact["today"] - exact["planned"] - exact["move_cost"] - exact.get("pause_cost", 0)
    if not _nearly(worth["saved"], saved, exact["today"] + exact["planned"]):
        raise RefusedError(f"payoff: saved is {shown(saved)} by the others, and {worth['saved']!r} in the result")
    if pays is not _should_pay(answer, saved, exact):
        raise RefusedError(f"pays is {pays!r}, which does not follow from payoff")
    if pays is False and not answer.stays:
        raise RefusedError("pays is false, but the plan is not today's assignment")


def _worth(answer: Answer) -> dict[str, Fraction]:
    """Return the figures of a plan that is carried out."""
    question, terms = answer.question, answer.terms
    moves = moves_of(answer.whole, answer.holds)
    by_size = sum(pair.price * pair.of(answer.holder) for pair in terms.pairs if pair.name in (MOVES, MOVED_SIZE))
    if any(pair.price and pair.costs is None for pair in terms.pairs):
        raise UncheckedError("the payoff was not checked, since the checker does not know all costs")
    cost = Fraction(question.price * moves + by_size)
    return {
        "today": _value(answer, answer.today),
        "moves": Fraction(moves),
        "move_cost": cost,
        "planned": _value(answer, answer.holds) - by_size,
    }


def _value(answer: Answer, holder: Sequence[int | None]) -> Fraction:
    """Return the objective of an assignment of partitions, without the price of moves that have no cost of pairs."""
    ends = [_ends(answer, lags, holder) for _, lags in answer.whole.judged_by]
    spread = answer.question.kind == "spread"
    base = answer.question.combined(answer.whole, [high - low * spread for high, low in ends])
    return base + sum(
        pair.price * units_of_cost(answer, pair.name, holder) for pair in answer.terms.pairs if pair.price
    )


def _should_pay(answer: Answer, saved: Fraction, worth: Mapping[str, Fraction]) -> bool | None:
    """Return whether the plan should be carried out; None if no share was asked for."""
    if "asked" not in worth:
        return None
    asked = Fraction(str(answer.document["payoff"]["asked"]))
    return (answer.group.active != [] and not answer.today_stands) or (saved > 0 and saved >= asked * worth["today"])


# ---- comparing -------------------------------------------------------------------------------------------------------


def _check_presence(answer: Answer, names: tuple[str, ...], *, present: bool) -> None:
    for name in names:
        if (name in answer.document) != present:
            raise RefusedError(f"the result {'lacks' if present else 'must not have'} the field {name}")


def _check(answer: Answer, name: str, right: Any) -> None:
    """Raise RefusedError unless the result has this value; fractions are floats there."""
    if name not in answer.document:
        raise RefusedError(f"the result lacks the field {name}")
    if not _same(said := answer.document[name], plain(right)):
        raise RefusedError(f"{name} is {shown(right)} by plan and certificate, and {said!r} in the result")


def _same(said: Any, right: Any) -> bool:
    """Return True if two values of JSON are equal; true is not 1."""
    if isinstance(right, Mapping):
        return (
            isinstance(said, Mapping)
            and set(said) == set(right)
            and all(_same(said[name], value) for name, value in right.items())
        )
    if isinstance(right, list):
        same_length = isinstance(said, list | tuple) and len(said) == len(right)
        return same_length and all(_same(one, value) for one, value in zip(said, right, strict=True))
    return said == right and isinstance(said, bool) == isinstance(right, bool)


def _is_number(said: Any) -> bool:
    return isinstance(said, int | float) and not isinstance(said, bool) and abs(said) < float("inf")


def _nearly(said: Any, right: Fraction, scale: Fraction = Fraction(1)) -> bool:
    """Return True for a number that is equal but for the rounding of floats; `scale` bounds what was added up."""
    return _is_number(said) and abs(Fraction(said) - right) <= NEARLY * max(Fraction(1), abs(right), scale)


def plain(value: Any) -> Any:
    """Return a value as documents have it: a fraction as a whole number or a float."""
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def shown(value: Any) -> str:
    """Return a value for an error."""
    return str(plain(value))
