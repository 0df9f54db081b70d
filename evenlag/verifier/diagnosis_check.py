"""Check a diagnosis again: compute the figures of its cause and of each remedy from the problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from evenlag.errors import InvalidProblemError
from evenlag.verifier.question import RefusedError, UncheckedError
from evenlag.verifier.stated_group import Group, read_group
from evenlag.verifier.verdict import PLAN_VERIFIED, REFUSED, VERIFIED, Given, Verdict, document_of

SAME_GROUP = ("setting", "plan", "weights", "capacity", "none")  # kinds of remedies that keep partitions and members
UNREADABLE = (AttributeError, KeyError, TypeError, ValueError, IndexError, ZeroDivisionError)
TOLERANCE = 1e-9  # relative; documents hold times and shares as floats


def check_diagnosis(diagnosis: Given, problem: Given) -> list[Verdict]:
    """Check the figures of a diagnosis again, with code that shares nothing with the code that made it.

    Parameters
    ----------
    diagnosis : Diagnosis or dict
        As `evenlag.diagnose` returns it, or the document of `evenlag diagnose --json`.
    problem : Problem or dict

    Returns
    -------
    list of Verdict
        One for the cause with today's figures, then one for each remedy. "verified": all figures that follow from the
        group are right. "plan verified": spread, makespan and moves are right, but a time that rests on a record is not
        checked again. "refused": something is wrong. `proven` is not checked: the claim that no assignment of a
        remedy's kind is better has no certificate here.

    Raises
    ------
    InvalidProblemError
        One of the two is not such a document.
    """
    document = document_of(diagnosis, "diagnosis")
    if not isinstance(document.get("remedies"), list) or "cause" not in document:
        raise InvalidProblemError("not a diagnosis; write one with evenlag diagnose --json")
    given = document_of(problem, "problem")
    check = _Check(document, given, read_group(given))
    return [check.cause(), *map(check.remedy, document["remedies"])]


class _Check:
    """Check one diagnosis."""

    def __init__(self, document: Mapping[str, Any], problem: Mapping[str, Any], group: Group) -> None:
        self.document, self.problem, self.group = document, problem, group

    def cause(self) -> Verdict:
        """Return the verdict on today's figures and the cause's figures."""
        group = self.group
        loads = group.loads(group.owner, group.lags)
        try:
            today = self.document["today"]
            _same("lag", today["lag"], sum(group.lags))
            _same("partitions", today["partitions"], len(group.lags))
            _same("members", today["members"], len(group.members))
            _same("makespan", today["makespan"], max(loads, default=0))
            _same("spread", today["spread"], max(loads, default=0) - min(loads, default=0))
            for name, value in self.document["finding"].items():
                if name not in _FIGURES:
                    raise RefusedError(f"unknown figure {name!r}")
                _same(name, value, _FIGURES[name](self))
        except UNREADABLE as error:
            return Verdict(REFUSED, f"the cause cannot be read ({error!r})")
        except RefusedError as error:
            return Verdict(REFUSED, str(error))
        return Verdict(VERIFIED, "all figures of the cause that follow from the group are right")

    def remedy(self, remedy: Mapping[str, Any]) -> Verdict:
        """Return the verdict on a remedy."""
        try:
            self._check(remedy)
        except UncheckedError as error:
            return Verdict(PLAN_VERIFIED, str(error))
        except UNREADABLE as error:
            return Verdict(REFUSED, f"the remedy cannot be read ({error!r})")
        except RefusedError as error:
            return Verdict(REFUSED, str(error))
        return Verdict(VERIFIED, "all figures of the remedy that follow from the group are right")

    def _check(self, remedy: Mapping[str, Any]) -> None:
        after = remedy["group_after"]
        if after is None:
            if any(remedy[name] is not None for name in ("spread", "makespan", "moves", "recovers")):
                raise RefusedError("figures without an assignment")
            return
        lags = {(topic, int(p)): lag for topic, each in after["topics"].items() for p, lag in each.items()}
        self._same_messages(remedy["kind"], lags, after)
        weights = {name: Fraction(str(weight)) for name, weight in after["weights"].items()}
        holder = {(str(t), int(p)): name for name, held in after["assignment"].items() for t, p in held}
        if len(holder) != sum(map(len, after["assignment"].values())) or not holder.keys() <= lags.keys():
            raise RefusedError("the assignment names a partition twice, or an unknown one")
        per_weight = self._per_weight(lags, holder, weights, after)
        _same("makespan", remedy["makespan"], max(per_weight, default=0))
        _same("spread", remedy["spread"], max(per_weight, default=0) - min(per_weight, default=0))
        moves = sum(
            owner is not None and holder.get(name) != self.group.members[owner]
            for name, owner in zip(self.group.partitions, self.group.owner, strict=True)
        )
        _same("moves", remedy["moves"], moves)
        self._recovers(remedy)
        if (remedy["drain_seconds"] is not None) != bool(remedy["drains"]):
            raise RefusedError("a drain time belongs to a lag that drains")
        if remedy["drains"] is not None:
            raise UncheckedError("the drain time rests on the rates of a record, which are not checked again")

    def _per_weight(
        self, lags: Mapping[Any, int], holder: Mapping[Any, str], weights: Mapping[str, Fraction],
        after: Mapping[str, Any],
    ) -> list[Fraction]:  # fmt: skip
        """Return the load per weight of each member that can take a partition, for today's mean weight."""
        loads = dict.fromkeys(weights, 0)
        for name, member in holder.items():
            loads[member] += lags[name]
        here = [self.group.weights[m] for m in self.group.active]
        mean = sum(here, Fraction(0)) / len(here) if here else Fraction(1)
        active = {self.group.members[m] for m in self.group.active}
        new = weights.keys() - set(self.group.members)
        return [mean * loads[name] / weights[name] for name in after["assignment"] if name in active | new]

    def _same_messages(self, kind: str, lags: Mapping[tuple[str, int], int], after: Mapping[str, Any]) -> None:
        """Refuse a group after a remedy that has other messages, or other members than its kind allows."""
        today = dict(zip(self.group.partitions, self.group.lags, strict=True))
        if kind == "partitions":
            for topic in self.group.topics:
                before = sum(lag for (name, _), lag in today.items() if name == topic)
                _same(f"lag of {topic}", sum(lag for (name, _), lag in lags.items() if name == topic), before)
        elif dict(lags) != today:
            raise RefusedError("the group after the remedy has other lags")
        if kind in SAME_GROUP and sorted(after["weights"]) != self.group.members:
            raise RefusedError("the group after the remedy has other members")
        for name, weight in zip(self.group.members, self.group.weights, strict=True):
            if kind != "weights" and name in after["weights"]:
                _same(f"weight of {name}", after["weights"][name], float(weight))

    def _recovers(self, remedy: Mapping[str, Any]) -> None:
        """Refuse a share that does not follow from the figures before and after."""
        if remedy["recovers"] is None:
            return
        measure, today = self.document["measure"], self.document["today"]
        before, after = today[measure], remedy[measure]
        if measure == "drain_seconds" and not today["drains"]:
            expected = float(bool(remedy["drains"]))
        elif after is None:
            expected = 0.0
        else:
            expected = 1 - after / before
        _same("recovers", remedy["recovers"], expected)

    # ---- figures of causes

    def _busiest_lag(self) -> int:
        name = self.document["finding"]["busiest"]
        return self.group.held(self.group.owner, self.group.lags)[self.group.members.index(name)]

    def _busiest(self) -> str:
        held = self.group.held(self.group.owner, self.group.lags)
        name: str = self.document["finding"]["busiest"]
        if held[self.group.members.index(name)] != max(held[m] for m in self.group.active):
            raise RefusedError(f"{name} is not the busiest member")
        return name

    def _partition(self) -> list[Any]:
        topic, number = self.document["finding"]["partition"]
        place = self.group.partitions.index((topic, number))
        if self.group.lags[place] != max(self.group.lags[p] for p in self.group.here):
            raise RefusedError(f"{topic}-{number} is not the partition with the most lag")
        return [topic, number]

    def _partition_lag(self) -> int:
        topic, number = self.document["finding"]["partition"]
        return self.group.lags[self.group.partitions.index((topic, number))]

    def _unowned(self) -> list[int]:
        return [self.group.lags[p] for p in self.group.here if self.group.owner[p] is None]

    def _idle(self) -> int:
        return len(set(self.group.active) - {m for m in self.group.owner if m is not None})


_FIGURES: dict[str, Callable[[_Check], Any]] = {
    "busiest": _Check._busiest,
    "busiest_lag": _Check._busiest_lag,
    "partition": _Check._partition,
    "partition_lag": _Check._partition_lag,
    "total_lag": lambda check: sum(check.group.lags),
    "unowned": lambda check: len(check._unowned()),
    "unowned_lag": lambda check: sum(check._unowned()),
    "left_over_lag": lambda check: sum(each["lag"] for each in check.problem["facts"]["left_over"]),
    "idle": _Check._idle,
    "members": lambda check: len(check.group.active),
    "partitions": lambda check: len(check.group.here),
}


def _same(what: str, stated: Any, right: Any) -> None:
    """Refuse a figure that is not right; floats are compared within `TOLERANCE`."""
    if isinstance(stated, float) or isinstance(right, float):
        there, here = float(stated), float(right)
        if abs(there - here) <= TOLERANCE * max(abs(there), abs(here), 1.0):
            return
    elif stated == right:
        return
    raise RefusedError(f"{what} is {stated}, not {right}")
