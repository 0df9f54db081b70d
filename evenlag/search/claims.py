"""Lower bounds with their authors: a stage that is found wrong loses its bounds, and so do those that rest on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenlag.model.certificate import Certificate
from evenlag.model.plan import Number


@dataclass(frozen=True)
class Claim:
    """A lower bound of one figure.

    Attributes
    ----------
    value : number
        The bound.
    rests_on : frozenset of str
        Authors of other bounds that it presupposes.
    certificate : Certificate or None
        How it is proven again.
    """

    value: Number
    rests_on: frozenset[str] = frozenset()
    certificate: Certificate | None = None


class Claims:
    """The highest bound of each author on each figure of a plan, such as its objective or its moves.

    Attributes
    ----------
    distrusted : set of str
        Authors of a bound that a plan has refuted.
    """

    def __init__(self) -> None:
        self._claims: dict[str, dict[str, Claim]] = {}
        self.distrusted: set[str] = set()

    def highest(self, figure: str) -> tuple[Number, str | None]:
        """Return the highest bound of a figure and its author, of several the first; (0, None) without any."""
        value, author = max(
            ((claim.value, by) for by, claim in self._claims.get(figure, {}).items()), key=lambda each: each[0],
            default=(0, None),
        )  # fmt: skip
        return (value, author) if value > 0 else (0, None)

    def certificate(self, figure: str) -> Certificate | None:
        """Return how the highest bound of a figure is proven again; None where nobody said."""
        author = self.highest(figure)[1]
        return None if author is None else self._claims[figure][author].certificate

    @property
    def authors(self) -> frozenset[str]:
        """Authors of the bounds in force, each the highest of its figure."""
        return frozenset(by for figure in self._claims if (by := self.highest(figure)[1]) is not None)

    def add(self, figure: str, by: str, claim: Claim) -> None:
        """Take a bound if it is its author's highest of this figure, and the author is not distrusted."""
        if by in self.distrusted:
            return
        known = self._claims.setdefault(figure, {})
        if by not in known or claim.value > known[by].value:
            known.pop(by, None)  # of equal bounds the one that was there first has proven it
            known[by] = claim

    def refuted_by(self, figures: Mapping[str, Number]) -> tuple[str, str, Number] | None:
        """Return author, figure and bound of a claim that lies above the figures of a valid plan, or None.

        Of several it is one that rests on none of the others' authors, if there is one: those others may be right.
        """
        wrong = [
            (claim, by, figure)
            for figure, value in figures.items()
            for by, claim in self._claims.get(figure, {}).items()
            if claim.value > value
        ]
        authors = {by for _, by, _ in wrong}
        first = sorted(wrong, key=lambda each: bool(each[0].rests_on & authors))[:1]
        return next(((by, figure, claim.value) for claim, by, figure in first), None)

    def withdraw(self, by: str) -> None:
        """Leave out all bounds of an author, now and from now on, and all bounds that rest on one of its."""
        self.distrusted.add(by)
        for known in self._claims.values():
            for author in [each for each, claim in known.items() if by in {each, *claim.rests_on}]:
                del known[author]
