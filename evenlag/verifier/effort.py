"""The steps that one check may take before it leaves something unproven."""

from __future__ import annotations

from evenlag.verifier.question import UncheckedError


class Effort:
    """A number of steps that all parts of one check draw on; a step takes about a quarter of a microsecond.

    Parameters
    ----------
    whole : Effort, optional
        The effort that this one is a part of.
    """

    def __init__(self, steps: int, whole: Effort | None = None) -> None:
        self.left, self.whole = steps, whole

    def spend(self, steps: int) -> None:
        """Take steps, here and from the whole; raise UncheckedError once none are left."""
        self.left -= steps
        if self.left < 0:
            raise UncheckedError("it takes too long; a larger effort may do")
        if self.whole is not None:
            self.whole.spend(steps)

    def part(self, share: float) -> Effort:
        """Return a share of the steps left."""
        return Effort(int(share * self.left), self)
