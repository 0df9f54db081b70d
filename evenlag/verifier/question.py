"""The question that a result answers: count balance, objective, price and budget of moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evenlag.verifier.stated_group import Group, Number

BALANCES = ("both", "topic", "group", "none")
KINDS = ("spread", "makespan")
ACROSS = ("mean", "worst")


class RefusedError(Exception):
    """Raised if a result or its certificate is wrong; the message names the error."""


class UncheckedError(Exception):
    """Raised if a bound cannot be checked again; the message gives the reason."""


@dataclass(frozen=True)
class Question:
    """The question that a result answers.

    Attributes
    ----------
    kind : str
        "spread" or "makespan".
    balance : str
        "both", "topic", "group" or "none".
    across : str
        "mean" or "worst" of the scenarios.
    price : int or Fraction
        Price of a move, in messages.
    max_moves : int or None
        Budget of moves. With `fewest` it is the fewest moves that the balance allows.
    """

    kind: str
    balance: str
    slack: int
    across: str
    price: Number
    max_moves: int | None
    fewest: bool

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Question:
        """Read the question from a certificate."""
        asked = document.get("question")
        if not isinstance(asked, Mapping):
            raise RefusedError("the certificate has no question")
        try:
            budget = asked["max_moves"]
            question = cls(
                asked["objective"], asked["balance"], whole(asked["slack"]), asked["across"], exact(asked["price"]),
                None if budget is None else whole(budget), asked["fewest"],
            )  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            raise RefusedError(f"cannot read the question in the certificate ({error!r})") from error
        known = question.kind in KINDS and question.balance in BALANCES and question.across in ACROSS
        known = known and isinstance(question.fewest, bool)
        free = not (question.fewest and question.price)  # moves are minimized first or have a price, not both
        if not known or not free or question.slack < 0 or question.price < 0:
            raise RefusedError("the question in the certificate is not one that evenlag asks")
        return question

    def measured(self, group: Group, holder: Sequence[int | None], lags: Sequence[int]) -> Fraction:
        """Return the spread (makespan) with these lags, in messages."""
        loads = group.loads(holder, lags)
        return max(loads) - (min(loads) if self.kind == "spread" else 0)

    def combined(self, group: Group, values: Sequence[Number]) -> Fraction:
        """Combine one value for each scenario: the weighted mean or the largest."""
        weights = [weight for weight, _ in group.judged_by]
        if self.across == "worst":
            return Fraction(max(values))
        total = sum((w * v for w, v in zip(weights, values, strict=True)), Fraction(0))
        return total / sum(weights)

    def value(self, group: Group, holder: Sequence[int | None]) -> Fraction:
        """Return the objective of a plan, in messages."""
        each = [self.measured(group, holder, lags) for _, lags in group.judged_by]
        return self.combined(group, each) + self.price * moves_of(group, holder)


def whole(number: Any) -> int:
    """Return a whole number of a document; raise ValueError for anything else."""
    if type(number) is not int:
        raise ValueError(f"not a whole number: {number!r}")
    return number


def exact(number: Any) -> Number:
    """Parse an exact number from a certificate: an integer, or a fraction as a string.

    Raises
    ------
    ValueError
        The number is neither.
    """
    if type(number) is int:
        return number
    if isinstance(number, str) and (fraction := Fraction(number)).denominator > 1:
        return fraction
    raise ValueError(f"neither a whole number nor a fraction as text: {number!r}")


def moves_of(group: Group, holder: Sequence[int | None]) -> int:
    """Return the number of partitions that leave their owner."""
    return sum(owner is not None and owner != m for owner, m in zip(group.owner, holder, strict=True))
