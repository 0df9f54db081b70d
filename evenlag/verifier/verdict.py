"""Check a result again: its plan, its figures and its bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

from evenlag.errors import InvalidProblemError
from evenlag.verifier import priced_windows
from evenlag.verifier.all_plans import Best, best_of_all
from evenlag.verifier.cheapest import cheapest
from evenlag.verifier.costs_of_pairs import PairCost, Terms, costs_of
from evenlag.verifier.count_limits import Counts, check_counts, counts_of, fewest_moves
from evenlag.verifier.group import Group, common_divisor, read_group
from evenlag.verifier.held_sets import Search
from evenlag.verifier.load_arguments import ARGUMENTS, Loads
from evenlag.verifier.move_argument import check_moves
from evenlag.verifier.question import Question, RefusedError, UncheckedError, moves_of
from evenlag.verifier.units import holders_of_units, units_of

EFFORT = 20_000_000  # steps of a search: a few seconds
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
        `result` or `problem` is not such a document.
    """
    document, group = document_of(result, "result"), read_group(document_of(problem, "problem"))
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


class Check:
    """Check of one result."""

    def __init__(self, document: Mapping[str, Any], group: Group, effort: int) -> None:
        self.document, self.effort = document, effort
        certificate = document.get("certificate")
        if not isinstance(certificate, Mapping):
            raise RefusedError("the result has no certificate; write it again with this version of evenlag")
        self.certificate = certificate
        self.question = Question.read(certificate)
        self.bound = self._number(certificate.get("bound"), "bound")
        self.whole, self.holds = group, self._plan(group)
        self.group, self.holder = group, self.holds  # with topics that go together: units in place of partitions
        if group.together:
            self.group = units_of(group)
            self.holder = holders_of_units(self.group, self.holds)
        self.terms = Terms(self.group, certificate["question"])

    def verdict(self) -> Verdict:
        """Run all checks."""
        by = self.document.get("bound_by")
        if self.document.get("status") == "EMPTY":
            return self._empty()
        self._asked()
        self._rules()
        self._figures()
        try:
            reason = self._proven(self.certificate.get("proof"))
        except UncheckedError as error:
            return Verdict(PLAN_VERIFIED, f"the bound was not proven again: {error}", by)
        return Verdict(VERIFIED, reason, by)

    def _number(self, value: Any, field: str) -> Fraction:
        try:
            return Fraction(value)
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise RefusedError(
                f"{field} of the certificate must be a whole number or a fraction; got {value!r}"
            ) from error

    # ---- the plan

    def _plan(self, group: Group) -> list[int | None]:
        """Read the assignment."""
        index = {name: p for p, name in enumerate(group.partitions)}
        holder: list[int | None] = [None] * len(index)
        assignment = self.document.get("assignment")
        if not isinstance(assignment, Mapping):
            raise RefusedError("the result has no assignment")
        for member, names in assignment.items():
            if member not in group.members:
                raise RefusedError(f"the plan names {member!r}, who is not a member of the group")
            for topic, number in names:
                p = index.get((topic, number))
                if p is None:
                    raise RefusedError(f"the plan gives {member!r} {topic}-{number}, which does not exist")
                if holder[p] is not None:
                    raise RefusedError(f"the plan gives {topic}-{number} to two members")
                holder[p] = group.members.index(member)
        return holder

    def _asked(self) -> None:
        """Check that the result states the question of the certificate."""
        question, terms = self.question, self.terms
        prices = {pair.name: _plain(Fraction(pair.price)) for pair in terms.pairs if pair.price}
        of_moves = prices.pop("moves", _plain(Fraction(question.price)))
        of_moves = prices.pop("moved_size", of_moves)
        first = [*terms.first, *(["moves"] if question.fewest and "moves" not in terms.first else [])]
        for name, asked, default in (
            ("balance", question.balance, None),
            ("stickiness", "fewest-moves" if question.fewest else of_moves, None),
            ("prices", prices, {}),
            ("max_load", None if terms.max_load is None else _plain(terms.max_load), None),
            ("first", first, []),
        ):
            if (said := self.document.get(name, default)) != asked:
                raise RefusedError(f"{name} is {asked} in the certificate, and {said} in the result")

    def _rules(self) -> None:
        """Check subscriptions, pins, caps, the budget and the balance."""
        group, question = self.group, self.question
        for p, m in enumerate(self.holder):
            topic, number = group.partitions[p]
            if m is None and p in set(group.here):
                raise RefusedError(
                    f"the plan leaves {topic}-{number} without a member, though its topic has subscribers"
                )
            if m is not None and topic not in group.topics_of[m]:
                raise RefusedError(
                    f"{topic}-{number} goes to {group.members[m]!r}, who does not subscribe to its topic"
                )
            if group.pin[p] not in (None, m):
                raise RefusedError(f"the plan gives {topic}-{number} to another member than it is pinned to")
        for m, number in Counter(m for m in self.holder if m is not None).items():
            cap = group.caps[m]
            if cap is not None and number > cap:
                raise RefusedError(f"{group.members[m]!r} has {number} partitions; its max_partitions is {cap}")
        if self._stays or self.document.get("violation") is not None:
            return
        if (broken := self.terms.broken(question, self.holder)) is not None:
            raise RefusedError(broken)
        try:
            check_counts(group, self.counts, self.holder)
        except UncheckedError as error:
            self._unchecked = f"the count balance is not derived again ({error})"

    _unchecked: str | None = None

    @cached_property
    def counts(self) -> Counts:
        """Counts that the balance allows."""
        return counts_of(self.group, self.question, self.holder)

    @property
    def _stays(self) -> bool:
        """True if the plan is today's assignment because a change does not pay."""
        return self.document.get("pays") is False and self.holder == [
            owner if p in set(self.group.here) else None for p, owner in enumerate(self.group.owner)
        ]

    def _empty(self) -> Verdict:
        if self.group.active or any(m is not None for m in self.holder):
            raise RefusedError("the status is EMPTY, but there are partitions to assign")
        return Verdict(VERIFIED, "there is nothing to assign", None)

    def _figures(self) -> None:
        """Compute all figures from the plan, and compare them with those of the result."""
        group, question, document = self.whole, self.question, self.document
        loads = group.loads(self.holds, group.lags)
        held, lags = Counter[str](), Counter[str]()
        for p, m in enumerate(self.holds):
            if m is not None:
                held[group.members[m]] += 1
                lags[group.members[m]] += group.lags[p]
        objective = question.value(self.group, self.holder) + self.terms.price(self.holder)
        figures: dict[str, Fraction | dict[str, int]] = {
            "bound": self.bound,
            "spread": max(loads) - min(loads),
            "makespan": max(loads),
            "moves": Fraction(moves_of(group, self.holds)),
            "counts": {member: held[member] for member in group.members},
            "loads": {member: lags[member] for member in group.members},
            "objective": objective,
        }
        if document.get("costs"):
            asked = document.get("fetch_from", "followers")
            costs = {name: PairCost(name, costs_of(group, name, asked), 0, None) for name in document["costs"]}
            figures["costs"] = {name: pair.of(self.holds) for name, pair in costs.items()}
        for name, right in figures.items():
            said = document.get(name)
            if said != (right if isinstance(right, dict) else _plain(right)):
                raise RefusedError(f"{name} is {_shown(right)} by plan and certificate, and {said} in the result")
        if self.bound > objective and document.get("violation") is None and not self._stays:
            raise RefusedError(f"the bound {_shown(self.bound)} lies above the objective {_shown(objective)}")
        if document.get("status") == "OPTIMAL" and self.bound < objective and not self._stays:
            raise RefusedError("the status is OPTIMAL, but the bound does not meet the objective")
        group = self.group
        totals = [sum(lags[p] for p in group.here) for _, lags in group.judged_by]
        mean = question.combined(group, [Fraction(total, len(group.active)) for total in totals])
        gap = float((objective - self.bound) / max(Fraction(1), mean))
        if document.get("gap") is not None and abs(document["gap"] - gap) > 1e-9 * max(1.0, abs(gap)):
            raise RefusedError(f"gap is {gap} by objective and bound, and {document['gap']} in the result")

    # ---- the bound

    def _proven(self, proof: Any) -> str:
        """Prove the bound again, and return an explanation.

        Raises
        ------
        RefusedError, UncheckedError
        """
        if not isinstance(proof, Mapping):
            raise RefusedError("the certificate has no proof")
        if self._unchecked is not None:
            raise UncheckedError(self._unchecked)
        if self.question.fewest:
            self._fewest()
        if self.terms.any and proof.get("kind") != "scenarios":
            return self._with_terms(proof)
        if self.bound <= 0 and not self.terms.any:
            return "an objective is never below 0"
        ways: dict[Any, Callable[[Mapping[str, Any]], str]] = {
            "loads": self._by_loads,
            "moves": self._by_moves,
            "plans": self._by_plans,
            "scenarios": self._by_scenarios,
            "search": self._by_search,
            "windows": self._by_windows,
            "solver": self._by_solver,
        }
        kind = proof.get("kind")
        if kind in ways:
            return ways[kind](proof)
        if kind == "none":
            raise UncheckedError(str(proof.get("reason")))
        raise RefusedError(f"the certificate has an unknown kind of proof, {kind!r}")

    def _with_terms(self, proof: Mapping[str, Any]) -> str:
        """Enumerate all plans; if there are too many, prove the bound without the terms beyond loads and moves.

        Criteria that come first then restrict the plans to those that are optimal in them.
        """
        try:
            return self._by_plans(proof)
        except UncheckedError:
            relaxed = self._about(replace(self.question, fewest=False), self.bound)
        if self.terms.first:
            if "moves" in self.terms.first:
                relaxed.question = replace(relaxed.question, max_moves=None)
            relaxed.group, relaxed.counts = cheapest(self.group, self.counts, self.terms, self.holder)
        relaxed.terms = Terms(self.group, {})
        try:
            return relaxed._proven(proof) + "; costs of pairs only add to that"
        except RefusedError as error:
            raise UncheckedError(
                "its proof uses costs of pairs or a ceiling, and there are too many plans to enumerate"
            ) from error

    def _fewest(self) -> None:
        """Check that no plan moves fewer partitions than the budget."""
        fewest = self._moves(self.certificate)
        budget = self.question.max_moves  # None: no plan reaches it
        if budget is None and self.document.get("status") == "OPTIMAL":
            budget = moves_of(self.group, self.holder)
        if budget not in (None, fewest):
            raise RefusedError(f"the fewest moves are {fewest}, not {budget}")

    def _moves(self, document: Mapping[str, Any]) -> int:
        """Return the fewest moves that the balance allows, proven by the counts of the certificate."""
        try:
            counts = Counter({(t, self.group.members.index(member)): int(n) for t, member, n in document["counts"]})
        except (KeyError, TypeError, ValueError) as error:
            raise RefusedError(f"cannot read the counts in the certificate ({error!r})") from error
        return fewest_moves(self.group, self.counts, counts)

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
        return other

    def _by_loads(self, proof: Mapping[str, Any]) -> str:
        """Prove the bound by the largest load, the smallest load and the fewest moves."""
        base = self._base(proof)
        moves = self._moves(proof) if self.question.price and "counts" in proof else 0
        self._reaches(base + self.question.price * moves)
        names = " and ".join(dict.fromkeys(part[end][0] for part in proof["each"] for end in ("largest", "smallest")))
        return f"the loads of every plan are at least this uneven: {names}" + (f"; {moves} moves" if moves else "")

    def _by_moves(self, proof: Mapping[str, Any]) -> str:
        """Prove the bound by the moves that bring all loads into a narrow window."""
        group, counts, base = self._alone, self.counts, self._base(proof)
        moves = self._moves(proof) if "counts" in proof else 0
        check_moves(group, self.question, counts, self._pair(proof["each"][0], group.lags), moves, base, self.bound)
        return "every narrower window of loads takes moves that cost as much"

    def _by_scenarios(self, proof: Mapping[str, Any]) -> str:
        """Prove the bound by a bound for each scenario."""
        given, futures = proof.get("scenarios"), sorted({tuple(lags) for _, lags in self.group.judged_by})
        if not isinstance(given, list) or len(given) != len(futures):
            raise RefusedError("the proof does not cover all scenarios")
        bounds, question = {}, replace(self.question, fewest=False)
        for part, lags in zip(given, futures, strict=True):
            alone = self._about(question, self._number(part.get("bound"), "bound"))
            alone.group = replace(self.group, lags=list(lags), futures=[])
            alone.counts = self.counts
            alone.terms = Terms(alone.group, self.certificate["question"])
            alone._proven(part.get("proof"))
            bounds[lags] = alone.bound
        self._reaches(self.question.combined(self.group, [bounds[tuple(lags)] for _, lags in self.group.judged_by]))
        return f"the bound of each of {len(bounds)} scenarios was proven again"

    def _by_plans(self, proof: Mapping[str, Any]) -> str:
        """Prove the bound by enumerating all plans."""
        best = self._best(self.group)
        if proof.get("kind") == "plans" and best.plans != proof.get("plans"):
            raise RefusedError(f"there are {best.plans} plans, not {proof.get('plans')}")
        budgets = self.terms.budgets(self.question)
        if self.document.get("status") == "OPTIMAL" and self.terms.first and best.criteria != budgets:
            names = ", ".join(self.terms.first)
            raise RefusedError(f"the lowest {names} are {best.criteria}, not {budgets}")
        return f"all {best.plans} plans were enumerated again"

    def _best(self, group: Group) -> Best:
        """Return the optimum over all plans; raise RefusedError if it is below the bound."""
        best = best_of_all(group, self.question, self.counts, self.terms, self.effort)
        if best.value is None or best.value < self.bound:
            raise RefusedError(f"a plan has the objective {_shown(best.value)}, below the bound {_shown(self.bound)}")
        return best

    def _by_search(self, proof: Mapping[str, Any]) -> str:
        """Prove by a complete search that no plan is below the bound."""
        group, counts = self._alone, self.counts
        found = Search(group, self.question, counts, self._best_pair(proof), self.bound, self.effort).found()
        if found is not None:
            raise RefusedError(f"a plan has the objective {_shown(found)}, below the bound {_shown(self.bound)}")
        return "a complete search over the sets that members may hold found no plan below the bound"

    def _by_windows(self, proof: Mapping[str, Any]) -> str:
        """Prove by prices of partitions that no window of loads holds a better plan."""
        counts, pair = self.counts, self._best_pair(proof)
        return priced_windows.check(self._alone, self.question, counts, pair, self.bound, proof)

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
            raise RefusedError(f"the proof shows a bound of {_shown(least)} only, not {_shown(self.bound)}")

    @property
    def _step(self) -> Fraction:
        """Number that every objective is a multiple of."""
        group, question = self.group, self.question
        weights = [weight for weight, _ in group.judged_by]
        parts = [1 if question.across == "worst" else weight / sum(weights) for weight in weights]
        units = [group.load_unit(lags) * part for (_, lags), part in zip(group.judged_by, parts, strict=True)]
        return common_divisor([*units, question.price])


def _plain(number: Fraction) -> int | float:
    return number.numerator if number.denominator == 1 else float(number)


def _shown(number: Any) -> str:
    return str(_plain(number)) if isinstance(number, Fraction) else str(number)
