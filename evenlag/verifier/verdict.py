"""Check a result again: its plan, its figures and its bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

from evenlag.errors import InvalidProblemError
from evenlag.verifier import priced_windows
from evenlag.verifier.all_plans import Best, best_of_all
from evenlag.verifier.cheapest import cheapest, least_price
from evenlag.verifier.costs_of_pairs import Terms
from evenlag.verifier.count_limits import Counts, MoveCounts
from evenlag.verifier.effort import Effort
from evenlag.verifier.given_answer import Answer
from evenlag.verifier.held_sets import Search
from evenlag.verifier.load_arguments import ARGUMENTS, Loads
from evenlag.verifier.move_argument import check_moves
from evenlag.verifier.question import Question, RefusedError, UncheckedError, moves_of
from evenlag.verifier.result_fields import check_fields, read_counts, shown
from evenlag.verifier.stated_group import Group, common_divisor, read_group

EFFORT = 20_000_000  # steps of a check: some seconds
AT_ONCE = 0.4  # share of the effort for one way to prove a bound, if there is another
VERIFIED, PLAN_VERIFIED, REFUSED = "verified", "plan verified", "refused"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check.

    Attributes
    ----------
    outcome : str
        "verified": the plan keeps all rules, all figures are right, and the bound is proven again. "plan verified":
        plan and figures are right, but the bound is not proven again. "refused": something is wrong.
    reason : str
        Explanation: the proof used, why there is none, or what is wrong.
    bound_by : str or None
        Stage of the search that proved the bound.
    """

    outcome: str
    reason: str
    bound_by: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as a dict of JSON types."""
        return {"outcome": self.outcome, "reason": self.reason, "bound_by": self.bound_by}


class Documented(Protocol):
    """Object with a document: a result or a problem."""

    def to_dict(self) -> dict[str, Any]:
        """Return the document."""


Given = Documented | Mapping[str, Any]


def verify(result: Given, problem: Given, *, effort: float = 1.0) -> Verdict:
    """Check a result again, in plain Python and exact arithmetic, without any code of the search.

    Parameters
    ----------
    result : Result or dict
        A result, or the document of a result file.
    problem : Problem or dict
        The problem solved, or the document of its problem file.
    effort : float
        Multiple of the usual work before a bound is left unproven; 1 takes a few seconds at most.

    Returns
    -------
    Verdict

    Raises
    ------
    InvalidProblemError
        `result` or `problem` is not such a document, or `effort` is not a number > 0.
    """
    if not 0 < effort < math.inf:
        raise InvalidProblemError(f"effort must be a number > 0, not {effort}")
    document, stated = document_of(result, "result"), document_of(problem, "problem")
    if "certificate" in stated and "certificate" not in document:
        raise InvalidProblemError("the problem is a result; pass the result first: verify(result, problem)")
    group = read_group(stated)
    try:
        return Check(document, group, int(EFFORT * effort)).verdict()
    except RefusedError as error:
        return Verdict(REFUSED, str(error), document.get("bound_by"))


def document_of(given: Given, what: str) -> Mapping[str, Any]:
    """Return the document of an object or a document."""
    document = given if isinstance(given, Mapping) or not hasattr(given, "to_dict") else given.to_dict()
    if not isinstance(document, Mapping):
        raise InvalidProblemError(f"the {what} must be a {what.title()} or the document of its file")
    return document


class Check(Answer):
    """Check one result.

    Parameters
    ----------
    document : dict
        The result.
    effort : int
        Step limit for the whole check.
    """

    def __init__(self, document: Mapping[str, Any], group: Group, effort: int) -> None:
        super().__init__(document, group, Effort(effort))

    def verdict(self) -> Verdict:
        """Run all checks."""
        by = self.document.get("bound_by")
        self.check_rules(self.holder)
        check_fields(self)
        proof = self.certificate.get("proof")
        self._kind_of(proof)
        if not self.group.active:
            return Verdict(VERIFIED, "there is nothing to assign", None)
        reason = ""
        try:
            reason = self._proven(proof)
        except UncheckedError as error:
            self.unproven.insert(0, f"the bound was not proven again: {error}")
        self._check_moves_bound()
        return Verdict(PLAN_VERIFIED if self.unproven else VERIFIED, "; ".join(self.unproven) or reason, by)

    def _check_moves_bound(self) -> None:
        """Check `moves_bound` if it exceeds the moves that the balance takes, because of limits or criteria."""
        said = self.moves_to_prove
        if said is None:
            return
        best = self._every_plan
        if best is None or best.moves is None:
            self.unproven.append("moves_bound was not proven again, since there are too many plans to enumerate")
        elif said > best.moves:
            raise RefusedError(f"a plan takes {best.moves} moves, and moves_bound is {said}")

    # ---- the bound

    def _proven(self, proof: Any) -> str:
        """Prove the bound again, and return an explanation.

        Raises
        ------
        RefusedError, UncheckedError
        """
        kind = self._kind_of(proof)
        if self.question.fewest:
            self._fewest()
        if self.terms.any and (kind != "scenarios" or self._every_plan is not None):
            return self._with_terms(proof)
        if self.bound <= 0 and not self.terms.any:
            return "an objective is never below 0"
        if kind == "none":
            raise UncheckedError(str(proof.get("reason")))
        return self._ways[kind](proof)

    @property
    def _ways(self) -> dict[Any, Callable[[Mapping[str, Any]], str]]:
        """The check for each kind of proof."""
        return {
            "loads": self._by_loads,
            "moves": self._by_moves,
            "plans": self._by_plans,
            "scenarios": self._by_scenarios,
            "search": self._by_search,
            "windows": self._by_windows,
            "solver": self._by_solver,
        }

    def _kind_of(self, proof: Any) -> str:
        """Return the kind of a proof; raise RefusedError if there is no such kind."""
        if not isinstance(proof, Mapping):
            raise RefusedError("the certificate has no proof")
        kind = proof.get("kind")
        if kind not in ("none", *self._ways):
            raise RefusedError(f"the certificate has an unknown kind of proof, {kind!r}")
        return str(kind)

    def _with_terms(self, proof: Mapping[str, Any]) -> str:
        """Enumerate all plans; if there are too many, prove the bound without the terms beyond loads and moves.

        Criteria that come first then restrict the plans to those that are optimal in them.
        """
        if self._every_plan is not None:
            return self._by_plans(proof)
        relaxed = self._about(replace(self.question, fewest=False), self.bound)
        if self.terms.first:
            if "moves" in self.terms.first:
                relaxed.question = replace(relaxed.question, max_moves=None)
            takers, relaxed.counts = self._lowest
            relaxed.group = replace(self.group, only=takers)
        if self._priced(relaxed):
            return "every plan has loads at least this uneven, and costs no less than the cheapest plan"
        relaxed.terms = Terms(self.group, {}, {})
        try:
            return relaxed._proven(proof) + "; costs of pairs only add to that"
        except RefusedError as error:
            raise UncheckedError(
                "its proof uses costs of pairs or a ceiling, and there are too many plans to enumerate"
            ) from error

    def _priced(self, relaxed: Check) -> bool:
        """Return True if the bounds on loads and the least price of a plan add up to the bound."""
        if not (self.question.price or any(pair.price for pair in self.terms.pairs)):
            return False
        effort = self.effort.part(AT_ONCE)
        try:
            high, low = relaxed._best_pair({})
            price = least_price(relaxed.group, relaxed.counts, self.terms, self.question.price, self.holder, effort)
        except UncheckedError:
            return False
        base = max(high - (low if self.question.kind == "spread" else 0), Fraction(0))
        return -(-(base + price) // self._step) * self._step >= self.bound

    @cached_property
    def _lowest(self) -> tuple[list[list[int]], Counts]:
        """The members that may hold each partition, and the counts, in all plans that are lowest in the criteria."""
        if set(self.terms.first) & set(self.terms.unknown):
            raise UncheckedError("a criterion is a cost that the checker does not know")
        return cheapest(self.group, self.counts, self.terms, self.holder, self.effort.part(AT_ONCE))

    def _fewest(self) -> None:
        """Check that no plan moves fewer partitions than the budget."""
        fewest = self.moves_by(self.certificate)
        budget = self.question.max_moves  # None: no plan reaches it
        if budget is None and self.document.get("status") == "OPTIMAL":
            budget = moves_of(self.group, self.holder)
        if budget not in (None, fewest):
            raise RefusedError(f"the fewest moves are {fewest}, not {budget}")

    def moves_by(self, document: Mapping[str, Any]) -> int:
        """Return the fewest moves that the balance allows, proven by the counts of a document."""
        return MoveCounts(self.group, self.counts, self.effort).fewest(read_counts(self, document))

    def _pair(self, proof: Mapping[str, Any], lags: list[int]) -> tuple[Fraction, Fraction]:
        """Return the bounds on the largest and the smallest load by the two arguments of a proof."""
        loads = Loads(self.group, self.counts, lags)
        ends = []
        for end, field in enumerate(("largest", "smallest")):
            argument = proof.get(field)
            try:
                name, number = argument  # type: ignore[misc]
                pair = loads.of(name, int(number))
            except (TypeError, ValueError) as error:
                raise RefusedError(f"cannot read the argument on the {field} load ({error!r})") from error
            ends.append(Fraction(loads.rounded(pair)[end]))
        return ends[0], ends[1]

    def _best_pair(self, proof: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
        """Return the best bounds on the largest and the smallest load by any argument, including the proof's."""
        group = self._alone
        loads = Loads(group, self.counts, group.lags)
        high, low = self._pair(proof["each"][0], group.lags) if proof.get("each") else loads.rounded(loads.mean(0))
        for name in ARGUMENTS:
            for number in range(loads.members) if name not in ("mean", "companions") else ():
                self.effort.spend(len(group.here))
                try:
                    pair = loads.rounded(loads.of(name, number))
                except (RefusedError, UncheckedError, IndexError, ZeroDivisionError):
                    continue
                high, low = max(high, pair[0]), min(low, pair[1])
        return Fraction(high), Fraction(low)

    @property
    def _alone(self) -> Group:
        """The group with the lags of its only scenario; raise UncheckedError if there are several."""
        if len({tuple(lags) for _, lags in self.group.judged_by}) > 1:
            raise UncheckedError("this kind of proof is checked only for groups with one scenario")
        return replace(self.group, lags=self.group.judged_by[0][1], futures=[])

    def _base(self, proof: Mapping[str, Any]) -> Fraction:
        """Return the bound on the spread (makespan) by arguments on loads, over all scenarios."""
        each, futures = proof.get("each"), {tuple(lags): lags for _, lags in self.group.judged_by}
        if not isinstance(each, list) or len(each) != len(futures):
            raise RefusedError("the proof does not cover all scenarios")
        least = {}
        for part, lags in zip(each, [futures[key] for key in sorted(futures)], strict=True):
            high, low = self._pair(part, lags)
            least[tuple(lags)] = max(high - (low if self.question.kind == "spread" else 0), Fraction(0))
        base = self.question.combined(self.group, [least[tuple(lags)] for _, lags in self.group.judged_by])
        nested = proof.get("base")
        if isinstance(nested, Mapping) and (bound := self._number(nested.get("bound"), "base")) > base:
            loads_alone = replace(self.question, price=0, max_moves=None, fewest=False)
            self._about(loads_alone, bound)._proven(nested.get("proof"))
            return bound
        return base

    def _about(self, question: Question, bound: Fraction) -> Check:
        """Return a check of another question and bound for the same group."""
        other = copy(self)
        other.question, other.bound = question, bound
        vars(other).pop("_every_plan", None)
        return other

    def _by_loads(self, proof: Mapping[str, Any]) -> str:
        """Prove the bound by the largest load, the smallest load and the fewest moves."""
        base = self._base(proof)
        moves = self.moves_by(proof) if self.question.price and "counts" in proof else 0
        self._reaches(base + self.question.price * moves)
        names = " and ".join(dict.fromkeys(part[end][0] for part in proof["each"] for end in ("largest", "smallest")))
        return f"the loads of every plan are at least this uneven: {names}" + (f"; {moves} moves" if moves else "")

    def _by_moves(self, proof: Mapping[str, Any]) -> str:
        """Prove the bound by the moves that bring all loads into a narrow window."""
        group, counts, base = self._alone, self.counts, self._base(proof)
        moves = self.moves_by(proof) if "counts" in proof else 0
        pair = self._pair(proof["each"][0], group.lags)
        steps = _pairs_of(proof, "ends"), _pairs_of(proof, "begins")
        check_moves(group, self.question, counts, pair, moves, base, self.bound, self.effort, steps)
        return "every narrower window of loads takes moves that cost as much"

    def _by_scenarios(self, proof: Mapping[str, Any]) -> str:
        """Prove the bound by a bound for each scenario."""
        given, futures = proof.get("scenarios"), sorted({tuple(lags) for _, lags in self.group.judged_by})
        if not isinstance(given, list) or len(given) != len(futures):
            raise RefusedError("the proof does not cover all scenarios")
        bounds, question = {}, replace(self.question, fewest=False)
        if self.terms.first:
            _ = self._lowest  # they do not depend on lags, so all scenarios share them
        for part, lags in zip(given, futures, strict=True):
            alone = self._about(question, self._number(part.get("bound"), "bound"))
            alone.group = replace(self.group, lags=list(lags), futures=[])
            alone.counts = self.counts
            alone.terms, alone.claimed_bounds = self.terms.about(alone.group), []
            alone._proven(part.get("proof"))
            bounds[lags] = alone.bound
        self._reaches(self.question.combined(self.group, [bounds[tuple(lags)] for _, lags in self.group.judged_by]))
        return f"the bound of each of {len(bounds)} scenarios was proven again"

    @cached_property
    def _every_plan(self) -> Best | None:
        """The optimum over all plans; None if there are too many, or a cost that the checker does not know."""
        if self.terms.unknown:
            return None
        effort = self.effort.part(AT_ONCE if self.terms.any else 1)
        try:
            return best_of_all(self.group, self.question, self.counts, self.terms, effort)
        except UncheckedError:
            return None

    def _by_plans(self, proof: Mapping[str, Any]) -> str:
        """Prove the bound by enumerating all plans."""
        best = self._every_plan
        if best is None:
            raise UncheckedError("there are too many plans to enumerate")
        if best.value is not None and best.value < self.bound:
            raise RefusedError(f"a plan has the objective {shown(best.value)}, below the bound {shown(self.bound)}")
        if proof.get("kind") == "plans" and best.plans != proof.get("plans"):
            raise RefusedError(f"there are {best.plans} plans, not {proof.get('plans')}")
        for (name, least), claimed in zip(best.criteria.items(), self.claimed_bounds, strict=False):
            if claimed > least:
                raise RefusedError(f"cost_bounds of {name} is {claimed}, but a plan has {least}")
        return f"all {best.plans} plans were enumerated again"

    def _by_search(self, proof: Mapping[str, Any]) -> str:
        """Prove by a complete search that no plan is below the bound."""
        group, counts = self._alone, self.counts
        found = Search(group, self.question, counts, self._best_pair(proof), self.bound, self.effort).found()
        if found is not None:
            raise RefusedError(f"a plan has the objective {shown(found)}, below the bound {shown(self.bound)}")
        return "a complete search over the sets that members may hold found no plan below the bound"

    def _by_windows(self, proof: Mapping[str, Any]) -> str:
        """Prove by prices of partitions that no window of loads holds a better plan."""
        counts, pair = self.counts, self._best_pair(proof)
        return priced_windows.check(self._alone, self.question, counts, pair, self.bound, proof, self.effort)

    def _by_solver(self, proof: Mapping[str, Any]) -> str:
        """Repeat a solver's proof by a complete search; raise UncheckedError if the group is too large."""
        name = f"{proof.get('solver')} {proof.get('version')}"
        try:
            return self._by_search(proof)
        except UncheckedError as error:
            raise UncheckedError(f"{name} proved it, with {proof.get('booleans')} booleans; {error}") from error

    def _reaches(self, proven: Fraction) -> None:
        """Raise RefusedError if `proven`, rounded up to a possible objective, is below the bound."""
        step = self._step
        least = -(-proven // step) * step
        if least < self.bound:
            raise RefusedError(f"the proof shows a bound of {shown(least)} only, not {shown(self.bound)}")

    @property
    def _step(self) -> Fraction:
        """Number that every objective is a multiple of."""
        group, question = self.group, self.question
        weights = [weight for weight, _ in group.judged_by]
        parts = [1 if question.across == "worst" else weight / sum(weights) for weight in weights]
        units = [group.load_unit(lags) * part for (_, lags), part in zip(group.judged_by, parts, strict=True)]
        return common_divisor([*units, question.price, *(pair.price for pair in self.terms.pairs)])


def _pairs_of(proof: Mapping[str, Any], name: str) -> list[tuple[int, int]]:
    """Return the loads and steps of a proof by rounding; raise RefusedError for anything else."""
    pairs = proof.get(name, [])
    try:
        read = [(load, step) for load, step in pairs]
    except (TypeError, ValueError) as error:
        raise RefusedError(f"{name} of the proof cannot be read ({error!r})") from error
    if not all(type(load) is int and type(step) is int and step > 0 for load, step in read):
        raise RefusedError(f"{name} of the proof must be pairs of a load and a positive step, in messages")
    return read
