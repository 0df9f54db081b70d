"""The answer to `Result.explain`: claims on a group, a partition or a member, with their sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from evenlag.errors import InvalidProblemError
from evenlag.figures import quantity
from evenlag.markup import card, line
from evenlag.model.explanation.claims import Claim
from evenlag.model.explanation.group_claims import group_claims, outcome_claim
from evenlag.model.explanation.part_claims import member_claims, partition_claims
from evenlag.model.explanation.phrases import listed, named
from evenlag.model.explanation.sentences import sentence
from evenlag.model.explanation.solved_question import decided
from evenlag.model.facts import NO_FACTS, Facts
from evenlag.model.names import did_you_mean
from evenlag.model.plan import whole

if TYPE_CHECKING:
    from evenlag.model.problem import Problem
    from evenlag.model.result import Result

MOST_NAMED = 3  # members in an error
Asked = str | tuple[str, int] | None


@dataclass(frozen=True, repr=False)
class Explanation:
    """Claims on a result, each of which `evenlag.verifier.check_claims` can evaluate again.

    Attributes
    ----------
    group : str
        Name of the consumer group.
    about : str or tuple of (str, int), or None
        The member or the partition that is explained; None for the group as a whole.
    claims : tuple of Claim
        The decisive one first.
    facts : Facts
        Facts of the group.
    objection : str or None
        `Result.objection`, which comes before the claims; None for a member or a partition.
    """

    group: str
    about: Asked
    claims: tuple[Claim, ...]
    facts: Facts = NO_FACTS
    objection: str | None = None

    @property
    def sentences(self) -> list[str]:
        """The claims as sentences."""
        return [sentence(claim) for claim in self.claims]

    @property
    def verdict(self) -> str:
        """The sentence that comes first."""
        return self._lines[0]

    @property
    def name(self) -> str:
        """Name of the member or the partition; empty for the group."""
        return "" if self.about is None else self.about if isinstance(self.about, str) else "{}-{}".format(*self.about)

    def __str__(self) -> str:
        return "\n".join(self._lines)

    @property
    def _lines(self) -> list[str]:
        return [*([] if self.objection is None else [self.objection]), *self.sentences]

    def __repr__(self) -> str:
        of = f" {self.name!r}" if self.name else ""
        return f"<Explanation {self.group!r}{of}: {quantity(len(self.claims), 'claim')}>"

    def _repr_html_(self) -> str:
        """Return the HTML shown by notebooks."""
        return card(self.group, self.name, *map(line, self._lines))

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `evenlag explain --json` prints."""
        about = list(self.about) if isinstance(self.about, tuple) else self.about
        claims = [{"sentence": sentence(claim)} | claim.to_dict() for claim in self.claims]
        head = {"group": self.group, "facts": self.facts.to_dict(), "about": about}
        return head | {"verdict": self.verdict, "claims": claims}


def explanation_of(result: Result, name: Asked = None) -> Explanation:
    """Return the explanation of a result, or of one of its partitions or members; see `Result.explain`."""
    problem = result.plan.problem
    about = None if name is None else named_part(problem, name)
    asked = decided(result)
    claims: Iterator[Claim]
    if asked is None:
        claims = iter([_empty(problem)])
    elif about is None:
        claims = group_claims(asked)
    elif isinstance(about, tuple):
        claims = partition_claims(asked, problem.partitions.index(about))
    else:
        claims = member_claims(asked, problem.members.index(about))
    objection = result.objection if about is None else None
    return Explanation(problem.group, about, tuple(claims), problem.facts, objection)


def outcome_of(result: Result, unit: Fraction = Fraction(1)) -> str:
    """Return the first sentence of the explanation of a group, with its messages multiplied by `unit`."""
    asked = decided(result)
    if asked is None:
        return outcome_of_nothing(result.plan.problem)
    claim = outcome_claim(asked)
    known = {name: claim.data[name] for name in ("before", "after", "floor") if claim.data[name] is not None}
    return sentence(Claim(claim.kind, {**claim.data, **{name: whole(unit * load) for name, load in known.items()}}))


def outcome_of_nothing(problem: Problem) -> str:
    """Return the sentence on a group in which nobody can take anything."""
    return sentence(_empty(problem))


def _empty(problem: Problem) -> Claim:
    numbers = {"partitions": len(problem.lags), "lag": int(problem.lags.sum()), "members": len(problem.members)}
    return Claim("empty", numbers)


def named_part(problem: Problem, name: str | Sequence[Any]) -> str | tuple[str, int]:
    """Return the partition or the member of a name; of both, the member.

    Raises
    ------
    InvalidProblemError
        The group has neither; the message suggests the nearest name.
    """
    if not isinstance(name, str):
        found = tuple(name)
        if found in problem.partitions:
            return str(found[0]), int(found[1])
        name = "-".join(map(str, found))
    if name in problem.members:
        return name
    topic, dash, digits = name.rpartition("-")
    if dash and digits.isascii() and digits.isdigit() and topic in problem.topics:
        there = problem.partition_ids[problem.topic_slice(problem.topics.index(topic))]
        if digits in map(str, there.tolist()):
            return topic, int(digits)
    raise InvalidProblemError(f"group {problem.group!r} has no partition or member {name!r}{_near(problem, name)}")


def _near(problem: Problem, name: str) -> str:
    """Return a suggestion for an unknown name."""
    partitions = [f"{topic}-{number}" for topic, number in problem.partitions]
    for beginning in (f"{name}-", name):  # Kafka's names of members begin with the client id and a dash
        for names in (problem.members, partitions):
            begun = [each for each in names if each.startswith(beginning)]
            if name and len(begun) == 1:
                return f"; did you mean {begun[0]!r}?"
    topic, _, digits = name.rpartition("-")
    numbered = digits.isascii() and digits.isdigit()
    plain = f"{topic}-{digits.lstrip('0') or '0'}"
    if numbered and plain in partitions:
        return f"; did you mean {plain!r}?"
    asked = name if name in problem.topics else topic if numbered else None
    if asked in problem.topics and (there := [number for of, number in problem.partitions if of == asked]):
        return f"; topic {named(asked)} has {_numbers(there)}"
    few = problem.members[:MOST_NAMED]
    names = [*problem.members, *partitions]
    return did_you_mean(name, names) or f"; its members are {listed([*map(named, few)], len(problem.members))}"


def _numbers(partitions: list[int]) -> str:
    """Return the numbers of a topic's partitions, ascending: `partitions 0–15`."""
    first, last = partitions[0], partitions[-1]
    if first == last:
        return f"partition {first} only"
    if last - first + 1 == len(partitions):
        return f"partitions {first}–{last}"
    return f"{quantity(len(partitions), 'partition')} from {first} to {last}"
