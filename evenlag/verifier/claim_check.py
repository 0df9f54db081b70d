"""Check the claims of an explanation again: every name and number, by the problem, the plan and the certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from evenlag.errors import InvalidProblemError
from evenlag.verifier.costs_of_pairs import Costs, costs_of
from evenlag.verifier.load_arguments import Loads
from evenlag.verifier.other_plans import Other, OtherPlans
from evenlag.verifier.question import RefusedError, UncheckedError, moves_of
from evenlag.verifier.stated_group import Group, read_group
from evenlag.verifier.verdict import EFFORT, PLAN_VERIFIED, REFUSED, VERIFIED, Check, Given, Verdict, document_of

Data = dict[str, Any]
Claim = Mapping[str, Any]

MOST_NAMES, MOST_LISTED = 3, 5
PARTS = ("oversized", "topics", "weights", "weights_and_counts")


def check_claims(explanation: Given, result: Given, problem: Given, *, effort: float = 1.0) -> list[Verdict]:
    """Check every claim of an explanation again, with code that shares nothing with the code that made it.

    Parameters
    ----------
    explanation : Explanation or dict
        As `Result.explain` returns it, or the document of `evenlag explain --json`.
    result : Result or dict
    problem : Problem or dict
    effort : float
        As in `verify`.

    Returns
    -------
    list of Verdict
        One for each claim, in their order. "verified": all that it states is right. "plan verified": it rests on a
        bound, or on a comparison with all other places, that was not checked again. "refused": something is wrong.

    Raises
    ------
    InvalidProblemError
        One of the three is not such a document.
    """
    claims = document_of(explanation, "explanation").get("claims")
    if not isinstance(claims, Sequence) or not all(isinstance(each, Mapping) for each in claims):
        raise InvalidProblemError("the explanation has no claims; write it with evenlag explain --json")
    document, group = document_of(result, "result"), read_group(document_of(problem, "problem"))
    try:
        check = ClaimCheck(document, group, int(EFFORT * effort))
    except RefusedError as error:
        return [Verdict(REFUSED, str(error)) for _ in claims]
    return [check.verdict(claim) for claim in claims]


class ClaimCheck:
    """Check claims on one result.

    Parameters
    ----------
    document : dict
        The result.
    effort : int
        Steps, as in `verify`.
    """

    def __init__(self, document: Mapping[str, Any], group: Group, effort: int) -> None:
        self.document, self.effort = document, effort
        self.check = Check(document, group, effort)
        self.whole, self.holds = self.check.whole, self.check.holds
        self.group, self.holder, self.question = self.check.group, self.check.holder, self.check.question
        self.now = list(self.whole.owner)  # the assignment before the next step
        self.steps: int | None = None

    def verdict(self, claim: Claim) -> Verdict:
        """Return the verdict on one claim; steps are checked in their order."""
        known: dict[str, Callable[[Claim], Data]] = {
            name.removeprefix("_is_").replace("_", " "): getattr(self, name)
            for name in dir(self)
            if name.startswith("_is_")
        }
        kind = claim.get("kind")
        try:
            if kind not in known:
                raise RefusedError(f"there is no kind of claim {kind!r}")
            _compare(known[str(kind)](claim), claim)
        except UncheckedError as error:
            return Verdict(PLAN_VERIFIED, str(error))
        except (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError) as error:
            return Verdict(REFUSED, f"the claim cannot be read ({error!r})")
        except RefusedError as error:
            return Verdict(REFUSED, str(error))
        if kind in ("bound", "first") and self._of_bound.outcome == PLAN_VERIFIED:
            return self._of_bound
        return Verdict(VERIFIED, "all that it states is right")

    # ---- the group

    def _is_empty(self, _: Claim) -> Data:
        if self.group.active:
            raise RefusedError("members can take partitions")
        whole = self.whole
        return {"partitions": len(whole.lags), "lag": sum(whole.lags), "members": len(whole.members)}

    def _is_outcome(self, claim: Claim) -> Data:
        group, owned = self.whole, self._owned
        given = sum(m is not None and owner is None for m, owner in zip(self.holds, group.owner, strict=True))
        data = {
            "moves": moves_of(group, self.holds),
            "assigned": given,
            "pays": self.document.get("pays"),
            "weighted": not self.group.equal_weights,
            **self._measured,
        }
        if group.futures:
            before, after = self._measure(group.owner) if owned else None, self._measure(self.holds)
            return data | {"before": before, "after": after, "floor": None, "floor_by": None}
        floor = self._argument(claim["floor_by"], 0, claim["floor"])
        busiest = max(self._loads(owned)) if owned is not None else None
        after = max(self._loads(self.holds))
        return data | {"before": busiest, "after": after, "floor": floor, "floor_by": claim["floor_by"]}

    def _is_left_alone(self, claim: Claim) -> Data:
        worth, today = self.document["payoff"], self._objective
        saved, asked = Fraction(claim["saved"]), Fraction(claim["asked"])
        if self.document["pays"] is not False or (saved > 0 and saved >= asked * today):
            raise RefusedError("the plan that was found pays")
        if (float(saved), float(asked)) != (float(worth["saved"]), float(worth["asked"])):
            raise RefusedError(f"the plan saves {worth['saved']} and is asked for {worth['asked']} by the result")
        return {"today": today, "saved": saved, "moves": worth["moves"], "asked": asked}

    def _is_objective(self, _: Claim) -> Data:
        question, group, terms = self.question, self.group, self.check.terms
        priced = [[pair.name, pair.of(self.holder), pair.price] for pair in terms.pairs if pair.price]
        if question.price:
            priced.insert(0, ["moves", moves_of(group, self.holder), question.price])
        return {
            **self._measured,
            "before": self._measure(self.whole.owner) if self._owned else None,
            "after": self._measure(self.holder, group.judged_by),
            "priced": priced,
            "objective": self._objective,
        }

    def _is_bound(self, _: Claim) -> Data:
        if self._of_bound.outcome == REFUSED:
            raise RefusedError(self._of_bound.reason)
        proof = self.check.certificate["proof"]
        return {
            "objective": self._objective,
            "bound": self.check.bound,
            "by": self.document["bound_by"],
            "proof": proof["kind"],
            "plans": proof.get("plans"),
            "within": bool(self.check.terms.first) or self.question.fewest,
        }

    def _is_largest_load(self, claim: Claim) -> Data:
        return self._load(claim, 0)

    def _is_smallest_load(self, claim: Claim) -> Data:
        return self._load(claim, 1)

    def _load(self, claim: Claim, end: int) -> Data:
        """Return an argument on the largest (0) or the smallest load (1) in names and numbers."""
        group, loads = self.group, self._arguments
        name, number = claim["argument"], int(claim["number"])
        if group.futures or loads is None:
            raise RefusedError("the argument is for groups without scenarios")
        value = self._argument([name, number], end, claim["value"])
        data: Data = {"value": value, "argument": name, "number": number, "total": loads.total}
        data["members"] = len(group.active)
        order = sorted(group.here, key=lambda p: (-group.lags[p], p))
        if name in PARTS:
            holders = max(number, 1)
            named = [part for p in order[:MOST_NAMES][:holders] for part in self._names(p)]
            data |= {"holders": holders, "partitions": named, "lag": sum(group.lags[p] for p in order[:holders])}
        if name == "oversized":
            others = (
                max(holders * loads.fewest, len(order) - (len(group.active) - holders) * loads.most, holders) - holders
            )
            others = self._no_more(others, claim["companions"])
            data |= {"companions": others, "their_lag": sum(group.lags[p] for p in order[len(order) - others :])}
        if name in ("member", "subscriptions"):
            data["member"] = group.members[number]
        if name == "topic":
            takers = self._takers(group.topics[number])
            inside = [each for each in group.topics if self._takers(each) and self._takers(each) <= takers]
            data |= {"topics": inside, "takers": len(takers)}
        if name == "pigeonholes":
            data |= {"biggest": number * len(group.active) + 1, "shared": number + 1}
        if name == "uneven":
            data["held"] = self._no_more(loads.held(number), claim["held"])
        return data

    def _no_more(self, least: int, claimed: Any) -> int:
        """Return the least number of partitions, or the claimed one if it is lower and counts depend on each other.

        To count fewer is right then, and proves less.
        """
        return least if self._even or not isinstance(claimed, int) else min(least, max(claimed, 0))

    def _argument(self, argument: Any, end: int, claimed: Any) -> Fraction:
        """Return what an argument proves of one end, or the claimed number if that is right.

        The number may be rounded to a multiple of all loads. Where counts depend on each other, the limits that are
        derived here may be narrower than the claim's limits; the claim then proves less.
        """
        assert self._arguments is not None
        pair, number = self._arguments.of(argument[0], int(argument[1])), Fraction(claimed)
        exact, rounded = Fraction(pair[end]), Fraction(self._arguments.rounded(pair)[end])
        weaker = not self._even and (number <= rounded if end == 0 else number >= rounded)
        return number if weaker or number == exact else rounded

    def _is_limit(self, claim: Claim) -> Data:
        rule, group, question = claim["rule"], self.group, self.question
        if rule not in self.document["binding"]:
            raise RefusedError(f"the result does not name {rule} as a limit")
        if rule == "hot-partition":
            p = max(group.here, key=lambda p: (group.lags[p], -p))
            if group.futures or not any(group.lags[p] for p in group.here):
                return {"rule": rule, "partitions": None}
            return {"rule": rule, "partitions": self._names(p), "lag": group.lags[p], "total": sum(group.lags)}
        if rule == "count-balance":
            totals, plain = self._limits.values(), self._plain_counts
            fewest, most = min(lo for lo, _ in totals), max(hi for _, hi in totals)
            limits = {"fewest": fewest, "most": most} if plain else {"fewest": None, "most": None}
            return {"rule": rule, "balance": question.balance, **limits}
        if rule == "stickiness":
            moves = moves_of(self.whole, self.holds)
            return {"rule": rule, "price": question.price, "moves": moves, "budget": question.max_moves}
        if rule == "pins":
            return {"rule": rule, "pins": sum(pin is not None for pin in group.pin)}
        if rule == "pair-costs":
            return {"rule": rule, "costs": [pair.name for pair in self.check.terms.pairs]}
        if rule == "max-load":
            return {"rule": rule, "max_load": self.check.terms.max_load}
        return {"rule": rule}

    def _is_cost(self, claim: Claim) -> Data:
        costs = self._costs(claim["name"])
        before = _units(costs, self.whole.owner) if self._owned else None
        return {"name": claim["name"], "before": before, "after": _units(costs, self.holds)}

    def _is_first(self, claim: Claim) -> Data:
        name, by_name = claim["name"], {pair.name: pair for pair in self.check.terms.pairs}
        units = by_name[name].of(self.holder) if name in by_name else moves_of(self.group, self.holder)
        least = int(self.document["cost_bounds"][name])
        if self.document["status"] != "OPTIMAL" or least != units:
            raise UncheckedError(f"{name} are not proven to be least")
        names = list(self.check.terms.first)
        return {"name": name, "units": units, "least": least, "given": names[: names.index(name)]}

    def _is_fewest_moves(self, _: Claim) -> Data:
        if not self.question.fewest:
            raise RefusedError("moves do not come first")
        fewest = self.check.moves_by(self.check.certificate)
        return {"moves": moves_of(self.group, self.holder), "fewest": fewest}

    def _is_ceiling(self, _: Claim) -> Data:
        each = [max(self._loads(self.holder, lags)) for _, lags in self.group.judged_by]
        return {"max_load": self.check.terms.max_load, "highest": max(each)}

    # ---- steps

    def _is_assigned(self, _: Claim) -> Data:
        if self.steps is not None:
            raise RefusedError("partitions without an owner are assigned before the first move")
        self.steps, before = 0, self._measure(self.now)
        new = [p for p, owner in enumerate(self.whole.owner) if owner is None and self.holds[p] is not None]
        for p in new:
            self.now[p] = self.holds[p]
        return {"number": len(new), "before": before, "after": self._measure(self.now), **self._measured}

    def _is_step(self, claim: Claim) -> Data:
        p = self._index(claim["partition"])
        before, owner, holder = self._measure(self.now), self.whole.owner[p], self.holds[p]
        if owner is None or owner == holder or self.now[p] == holder:
            raise RefusedError(f"the plan has no such move of {claim['partition']}")
        self.now[p] = holder
        self.steps = (self.steps or 0) + 1
        return {
            "step": self.steps,
            "partition": list(self.whole.partitions[p]),
            "lag": self.whole.lags[p],
            "owner": self.whole.members[owner],
            "member": self._name(holder),
            "before": before,
            "after": self._measure(self.now),
            **self._measured,
        }

    def _is_more_steps(self, _: Claim) -> Data:
        before = self._measure(self.now)
        left = sum(owner not in (None, m) for owner, m in zip(self.now, self.holds, strict=True))
        return {"number": left, "before": before, "after": self._measure(self.holds), **self._measured}

    # ---- a partition

    def _is_place(self, claim: Claim) -> Data:
        unit = self._unit(claim)
        parts = [self._index(name) for name in self._names(unit)]
        owners = {self.whole.owner[p] for p in parts}
        return {
            "partitions": self._names(unit),
            "lag": sum(self.whole.lags[p] for p in parts),
            "member": self._name(self.holder[unit]),
            "owners": sorted(self.whole.members[m] for m in owners if m is not None) if None not in owners else [],
        }

    def _is_takers(self, claim: Claim) -> Data:
        unit = self._unit(claim)
        takers = self._takers(self.group.partitions[unit][0])
        return {"partitions": self._names(unit), "takers": len(takers), "members": len(self.group.active)}

    def _is_heavy(self, claim: Claim) -> Data:
        unit, group = self._unit(claim), self.group
        total, lag = sum(group.lags[p] for p in group.here), group.lags[unit]
        mean = Fraction(total, len(group.active))
        if lag <= mean or group.futures:
            raise RefusedError("the partition has no more than the mean load")
        return {"partitions": self._names(unit), "lag": lag, "total": sum(group.lags), "mean": mean}

    def _is_pinned(self, claim: Claim) -> Data:
        unit = self._unit(claim)
        if self.group.pin[unit] is None:
            raise RefusedError("the partition has no pin")
        return {"partitions": self._names(unit), "member": self._name(self.group.pin[unit])}

    def _is_no_other_place(self, claim: Claim) -> Data:
        unit = self._unit(claim)
        if any(True for _ in self._others.of(unit)):
            raise RefusedError("there is another place for the partition")
        return {"partitions": self._names(unit), "member": self._name(self.holder[unit])}

    def _is_other_place(self, claim: Claim) -> Data:
        unit = self._unit(claim)
        return self._other(claim, [(unit, place) for place in self._others.of(unit)])

    def _is_other_plan(self, claim: Claim) -> Data:
        of = self.group.members.index(claim["of"])
        places = [
            (p, place)
            for p, m in enumerate(self.holder)
            for place in (self._others.of(p) if m == of else ())
            if any(lags[p] != (0 if (q := place.exchanged) is None else lags[q]) for _, lags in self.group.judged_by)
        ]
        return {"of": claim["of"], **self._other(claim, places)}

    def _other(self, claim: Claim, places: list[tuple[int, Other]]) -> Data:
        """Return the figures of the claimed place. It must be one of `places`, and no other place may be better."""
        unit, other = self._unit(claim), self.group.members.index(claim["other"])
        exchanged = None if claim["exchanged"] is None else self._unit({"partitions": claim["exchanged"]})
        source = self.holder[unit]
        there = list(self.holder)
        there[unit] = other
        if exchanged is not None:
            there[exchanged] = source
        value = self._value(there)
        best = min(place.value for _, place in places)
        if (unit, other, exchanged) not in {(p, place.member, place.exchanged) for p, place in places}:
            raise RefusedError("this is not a place that the claim may name")
        if best < value:
            raise RefusedError(f"another place comes to {_plain(best)}, less than {_plain(value)}")
        parts = self._expanded(there)
        costs = [[name, *self._two(name, parts)] for name in self.document.get("costs") or ()]
        counts = [sum(m == n for m in held) for held in (self.holds, parts) for n in (source, other)]
        return {
            "partitions": self._names(unit),
            "member": self._name(source),
            "other": claim["other"],
            "exchanged": None if exchanged is None else self._names(exchanged),
            "measure": self.question.kind,
            "before": self._measure(self.holder, self.group.judged_by),
            "after": self._measure(there, self.group.judged_by),
            "moves": [moves_of(self.whole, self.holds), moves_of(self.whole, parts)],
            "counts": counts,
            "costs": [each for each in costs if each[1] != each[2]],
            "objective": self._objective,
            "objective_there": value,
        }

    def _two(self, name: str, there: Sequence[int | None]) -> tuple[int, int]:
        """Return the units of a cost, of the plan and of another assignment of partitions."""
        costs = self._costs(name)
        return _units(costs, self.holds), _units(costs, there)

    def _costs(self, name: str) -> Costs:
        if name not in self.document["costs"]:
            raise RefusedError(f"the result has no cost {name!r}")
        costs = costs_of(self.whole, name)
        if costs is None:
            raise UncheckedError(f"the checker does not know the cost {name!r}")
        return costs

    # ---- a member

    def _is_idle(self, claim: Claim) -> Data:
        if self.group.members.index(claim["member"]) in self.group.active:
            raise RefusedError("the member can hold partitions")
        return {"member": claim["member"]}

    def _is_holds(self, claim: Claim) -> Data:
        group, m = self.whole, self.whole.members.index(claim["member"])
        loads = dict(zip(self.group.active, self._loads(self.holds), strict=True))
        mean = Fraction(sum(group.lags[p] for p in group.here), len(loads))
        today = self._held(group.owner, m) if self._owned else (None, None)
        count, load = self._held(self.holds, m)
        return {
            "member": claim["member"],
            "count": count,
            "load": load,
            "count_today": today[0],
            "load_today": today[1],
            "share": mean * self.group.share[m],
            "most": loads[m] == max(loads.values()),
            "least": loads[m] == min(loads.values()),
        }

    def _is_gives(self, claim: Claim) -> Data:
        return self._given(claim, self.whole.owner, self.holds)

    def _is_gets(self, claim: Claim) -> Data:
        return self._given(claim, self.holds, self.whole.owner)

    def _given(self, claim: Claim, mine: Sequence[int | None], theirs: Sequence[int | None]) -> Data:
        """Return the partitions that a member has in one assignment and not in the other."""
        group, m = self.whole, self.whole.members.index(claim["member"])
        chosen = [p for p in range(len(mine)) if mine[p] == m and theirs[p] != m]
        chosen.sort(key=lambda p: (-group.lags[p], p))
        listed = [[*group.partitions[p], group.lags[p], self._name(theirs[p])] for p in chosen[:MOST_LISTED]]
        lag = sum(group.lags[p] for p in chosen)
        return {"member": claim["member"], "number": len(chosen), "lag": lag, "listed": listed}

    def _is_count(self, claim: Claim) -> Data:
        m = self.whole.members.index(claim["member"])
        if not self._plain_counts:
            raise RefusedError("the counts of members depend on each other")
        fewest, most = self._limits[m]
        return {"member": claim["member"], "count": self._held(self.holds, m)[0], "fewest": fewest, "most": most}

    def _is_subscribed(self, claim: Claim) -> Data:
        group, m = self.whole, self.whole.members.index(claim["member"])
        topics = sorted(group.allowed(m))
        mine = [p for p, (topic, _) in enumerate(group.partitions) if topic in group.allowed(m)]
        return {
            "member": claim["member"],
            "topics": len(topics),
            "listed": topics[:MOST_LISTED],
            "partitions": len(mine),
            "lag": sum(group.lags[p] for p in mine),
        }

    # ---- figures

    @cached_property
    def _of_bound(self) -> Verdict:
        """The verdict on the result itself."""
        try:
            return self.check.verdict()
        except RefusedError as error:
            return Verdict(REFUSED, str(error))

    @cached_property
    def _others(self) -> OtherPlans:
        if self._of_bound.outcome == REFUSED:
            raise RefusedError(self._of_bound.reason)
        return OtherPlans(self.group, self.question, self.check.terms, self.check.counts, self.holder, self.effort)

    @cached_property
    def _arguments(self) -> Loads | None:
        group = self.group
        return None if group.futures else Loads(group, self.check.counts, group.lags)

    @property
    def _limits(self) -> dict[int, tuple[int, int]]:
        """The fewest and the most partitions that each member may hold, no more than there are."""
        here = len(self.group.here)
        return {m: (lo, min(hi, here)) for m, (lo, hi) in self.check.counts.totals.items()}

    @property
    def _plain_counts(self) -> bool:
        """True if each member's count has limits of its own."""
        return self._even and self.question.balance != "none" and self.group.parts is None

    @property
    def _even(self) -> bool:
        """True if members are alike, so that a formula gives the limits of counts."""
        group = self.group
        return group.equal_subscriptions and group.equal_weights and not group.sided

    @property
    def _owned(self) -> list[int | None] | None:
        """Today's assignment; None if no owner is known."""
        return self.whole.owner if any(owner is not None for owner in self.whole.owner) else None

    @property
    def _measured(self) -> Data:
        futures = len(self.whole.futures)
        across = self.question.across if futures else None
        return {"measure": self.question.kind, "scenarios": futures, "across": across}

    @cached_property
    def _objective(self) -> Fraction:
        return self._value(self.holder)

    def _value(self, holder: Sequence[int | None]) -> Fraction:
        return self.question.value(self.group, holder) + self.check.terms.price(holder)

    def _measure(
        self, holder: Sequence[int | None], judged_by: Sequence[tuple[Fraction, Sequence[int]]] | None = None
    ) -> Fraction:
        """Return the spread (makespan) of an assignment of partitions, or of units with their lags."""
        lags_of = self.whole.judged_by if judged_by is None else judged_by
        each = [self.question.measured(self.group, holder, lags) for _, lags in lags_of]
        return self.question.combined(self.group, each)

    def _loads(self, holder: Sequence[int | None], lags: Sequence[int] | None = None) -> list[Fraction]:
        """Return the loads per weight of members that can hold something, in an assignment with these lags."""
        return self.group.loads(holder, self.whole.lags if lags is None else lags)

    def _held(self, holder: Sequence[int | None], m: int) -> tuple[int, int]:
        mine = [p for p, each in enumerate(holder) if each == m]
        return len(mine), sum(self.whole.lags[p] for p in mine)

    def _takers(self, topic: str) -> frozenset[int]:
        return frozenset(m for m in self.group.active if topic in self.group.allowed(m))

    # ---- names

    def _name(self, m: int | None) -> str | None:
        return None if m is None else self.whole.members[m]

    def _names(self, unit: int) -> list[list[Any]]:
        """Return the names of the partitions of a unit."""
        parts = [unit] if self.group.parts is None else self.group.parts[1][unit]
        return [list(self.whole.partitions[p]) for p in parts]

    def _index(self, name: Sequence[Any]) -> int:
        return self.whole.partitions.index((name[0], name[1]))

    def _unit(self, claim: Claim) -> int:
        """Return the unit of the partitions that a claim names."""
        p = self._index(claim["partitions"][0])
        if self.group.parts is None:
            return p
        return next(unit for unit, parts in enumerate(self.group.parts[1]) if p in parts)

    def _expanded(self, holder: Sequence[int | None]) -> list[int | None]:
        """Return the assignment of partitions for one of units."""
        if self.group.parts is None:
            return list(holder)
        there: list[int | None] = [None] * len(self.holds)
        for unit, parts in enumerate(self.group.parts[1]):
            for p in parts:
                there[p] = holder[unit]
        return there


def _units(costs: Sequence[Sequence[int]], holder: Sequence[int | None]) -> int:
    return sum(each[m] for each, m in zip(costs, holder, strict=True) if m is not None)


def _compare(right: Data, claim: Claim) -> None:
    """Raise RefusedError unless a claim has exactly these names and numbers."""
    stated = {name: value for name, value in claim.items() if name not in ("kind", "sentence")}
    expected = {name: _plain(value) for name, value in right.items()}
    for name in _differences(expected, stated):
        raise RefusedError(f"{name} is {expected.get(name)!r}, and {stated.get(name)!r} in the claim")


def _differences(expected: Data, stated: Data) -> Iterator[str]:
    for name in sorted({*expected, *stated}):
        same = name in expected and name in stated and expected[name] == stated[name]
        if not (same and isinstance(expected[name], bool) == isinstance(stated[name], bool)):
            yield name


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: a fraction that is not whole as text."""
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else str(value)
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value
