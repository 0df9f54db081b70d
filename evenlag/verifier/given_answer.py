"""A result as it is read: its plan, the question that it answers, and the rules that the plan keeps or breaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from evenlag.verifier.costs_of_pairs import Terms
from evenlag.verifier.count_limits import Counts, check_counts, counts_of
from evenlag.verifier.effort import Effort
from evenlag.verifier.question import Question, RefusedError, UncheckedError, exact
from evenlag.verifier.stated_group import FOLLOWERS, Group

Holder = list[int | None]


class Answer:
    """A result, read against the group that it plans.

    Parameters
    ----------
    document : dict
        The result.

    Attributes
    ----------
    whole, holds
        The group, and the member of each partition.
    group, holder
        The same, with units in place of partitions if topics go together.
    today : list of int or None (P,)
        Today's assignment of the partitions in `whole`.
    claimed_bounds : list of int
        Lower bounds of the criteria that come first, by the result.
    moves_to_prove : int or None
        The `moves_bound` of the result, if it exceeds the moves that the balance takes.
    unproven : list of str
        Statements that could not be checked.
    """

    def __init__(self, document: Mapping[str, Any], group: Group, effort: Effort) -> None:
        self.document, self.effort = document, effort
        certificate = document.get("certificate")
        if not isinstance(certificate, Mapping):
            raise RefusedError("the result has no certificate; write it again with this version of evenlag")
        self.certificate, self.question = certificate, Question.read(certificate)
        self.bound = self._number(certificate.get("bound"), "bound")
        fetch_from = certificate["question"].get("fetch_from", document.get("fetch_from", FOLLOWERS))
        group = replace(group, fetch_from=str(fetch_from))
        self.whole, self.today, self.holds = group, group.owner, self._plan(group)
        self.group, self.holder = group, self.holds
        if group.together:
            self.group = _units_of(group)
            self.holder = _holders_of_units(self.group, self.holds)
        claimed = document.get("costs")
        self.terms = Terms(self.group, certificate["question"], claimed if isinstance(claimed, Mapping) else {})
        least = document.get("cost_bounds")
        self.claimed_bounds: list[int] = list(least.values()) if isinstance(least, Mapping) else []
        self.moves_to_prove: int | None = None
        self.unproven: list[str] = []

    def _number(self, value: Any, field: str) -> Fraction:
        try:
            return Fraction(exact(value))
        except (ValueError, ZeroDivisionError) as error:
            raise RefusedError(
                f"{field} of the certificate must be a whole number or a fraction; got {value!r}"
            ) from error

    def _plan(self, group: Group) -> Holder:
        """Read the assignment."""
        index = {name: p for p, name in enumerate(group.partitions)}
        members = {name: m for m, name in enumerate(group.members)}
        holder: Holder = [None] * len(index)
        assignment = self.document.get("assignment")
        if not isinstance(assignment, Mapping):
            raise RefusedError("the result has no assignment")
        for member, names in assignment.items():
            if member not in members:
                raise RefusedError(f"the plan names {member!r}, who is not a member of the group")
            for topic, number in _pairs(member, names):
                p = index.get((topic, number))
                if p is None:
                    raise RefusedError(f"the plan gives {member!r} {topic}-{number}, which does not exist")
                if holder[p] is not None:
                    raise RefusedError(f"the plan gives {topic}-{number} to two members")
                holder[p] = members[member]
        if lacking := [member for member in members if member not in assignment]:
            raise RefusedError(f"the plan does not list {lacking[0]!r}")
        return holder

    # ---- rules

    def check_rules(self, holder: Sequence[int | None]) -> None:
        """Raise RefusedError if an assignment breaks a subscription, a pin or a cap, or leaves a partition out."""
        group, here = self.group, set(self.group.here)
        for p, m in enumerate(holder):
            topic, number = group.partitions[p]
            if m is None and p in here:
                raise RefusedError(
                    f"the plan leaves {topic}-{number} without a member, though its topic has subscribers"
                )
            if m is not None and topic not in group.topics_of[m]:
                raise RefusedError(
                    f"{topic}-{number} goes to {group.members[m]!r}, who does not subscribe to its topic"
                )
            if group.pin[p] not in (None, m):
                raise RefusedError(f"the plan gives {topic}-{number} to another member than it is pinned to")
        for m, number in Counter(m for m in holder if m is not None).items():
            cap = group.caps[m]
            if cap is not None and number > cap:
                held = f"{number} partition{'s' if number > 1 else ''}"
                raise RefusedError(f"{group.members[m]!r} has {held}; its max_partitions is {cap}")

    @cached_property
    def counts(self) -> Counts:
        """Counts that the balance allows."""
        return counts_of(self.group, self.question, self.holder, self.effort.part(0.5))

    @property
    def stays(self) -> bool:
        """True if the plan is today's assignment because a change does not pay."""
        return self.document.get("pays") is False and self.holds == self.today

    @cached_property
    def broken(self) -> str | None:
        """The count, budget or ceiling that the plan breaks, in a sentence; None if it breaks nothing.

        Raises
        ------
        UncheckedError
            It takes more than the effort allowed.
        """
        try:
            check_counts(self.group, self.counts, self.holder)
        except RefusedError as error:
            return str(error)
        except UncheckedError as error:
            if (broken := self._over_limits) is not None:
                return broken
            raise UncheckedError(f"the count balance was not derived again: {error}") from error
        return self._over_limits

    @property
    def _over_limits(self) -> str | None:
        """The budget or ceiling that the plan breaks; today's assignment need not reach the lowest criteria."""
        return self.terms.broken(self.question, self.holder, asked=self.stays)

    @cached_property
    def today_stands(self) -> bool:
        """True if today's assignment keeps all rules but the count balance."""
        try:
            now = _holders_of_units(self.group, self.today) if self.group.parts is not None else self.today
            self.check_rules(now)
        except RefusedError:
            return False
        return self.terms.broken(self.question, now, asked=True) is None


def _pairs(member: str, names: Any) -> list[tuple[str, int]]:
    """Return the names of the partitions of a member."""
    pairs = names if isinstance(names, list | tuple) else None
    if pairs is None or not all(
        isinstance(name, list | tuple) and len(name) == 2 and isinstance(name[0], str) and type(name[1]) is int
        for name in pairs
    ):
        raise RefusedError(f"the plan of {member!r} must be a list of [topic, partition]; got {names!r}")
    return [(topic, number) for topic, number in pairs]


# ---- units: partitions that go together are treated as one -----------------------------------------------------------


def _units_of(group: Group) -> Group:
    """Return the group whose partitions are the units, with the names that certificates use.

    A unit's lag is the sum of its partitions' lags. A member takes it if it subscribes to all of its topics. Its owner
    is the member that owns all of its partitions, or None.
    """
    unit_of, taken = {topic: topic for topic in group.topics}, set(group.topics)
    for topics in group.together:
        name = "+".join(topics)
        while name in taken:
            name += "+"
        taken.add(name)
        unit_of |= dict.fromkeys(topics, name)
    by_name: dict[tuple[str, int], list[int]] = {}
    for p, (topic, number) in enumerate(group.partitions):
        by_name.setdefault((unit_of[topic], number), []).append(p)
    names = sorted(by_name)
    parts = [by_name[name] for name in names]
    members = {name: {topic for topic in group.topics if unit_of[topic] == name} for name in unit_of.values()}
    owners = [{group.owner[p] for p in each} for each in parts]
    pins = [{group.pin[p] for p in each} - {None} for each in parts]
    return replace(
        group,
        partitions=names,
        lags=_sums(group.lags, parts),
        futures=[(weight, _sums(lags, parts)) for weight, lags in group.futures],
        topics_of=[{name for name, topics in members.items() if topics <= mine} for mine in group.topics_of],
        owner=[each.pop() if len(each) == 1 else None for each in owners],
        pin=[each.pop() if each else None for each in pins],
        together=[],
        parts=(group, parts),
    )


def _sums(lags: list[int], parts: list[list[int]]) -> list[int]:
    return [sum(lags[p] for p in each) for each in parts]


def _holders_of_units(units: Group, holder: Sequence[int | None]) -> list[int | None]:
    """Return the holder of each unit; raise RefusedError if its partitions have several."""
    assert units.parts is not None
    whole, parts = units.parts
    for each in parts:
        for p in each:
            if holder[p] != holder[each[0]]:
                one, two = ("{}-{}".format(*whole.partitions[q]) for q in (p, each[0]))
                raise RefusedError(f"{one} and {two} must go together, but the plan gives them to two members")
    return [holder[each[0]] for each in parts]
