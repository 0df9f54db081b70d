"""Relocation as a stage: again and again from the fewest moves, greedier, less greedy, and with noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evenlag.search.construct.stages import Greedy
from evenlag.search.exact import mip
from evenlag.search.improve.equalize import equalize
from evenlag.search.improve.local_search import LocalSearch, local_search
from evenlag.search.improve.relocate import relocate
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.task import Task


@dataclass(frozen=True)
class Relocation:
    """From the fewest moves towards even loads, as far as moves are worth it.

    Attributes
    ----------
    again : bool
        Draw other ways than the first time.
    few : int
        Relocations at most where moves count and the MIP goes on from there.
    most : int
        Relocations at most elsewhere; without moves that count, two for each greed where the MIP goes on.
    greeds : tuple of float
        How much a relocation looks at what a move brings, in turn.
    noise : float
        How far, as a share, relocations after the first of each greed misjudge an exchange.
    start_share, polish_share, last_share : float
        What is taken besides, of the time left: to better the first plan without a move, and for local search after
        each relocation that was worth it and at the end.
    """

    again: bool = False
    few: int = 100
    most: int = 1_000
    greeds: tuple[float, ...] = (1.0, 0.6, 0.3, 0.0)
    noise: float = 0.5
    start_share: float = 0.05
    polish_share: float = 0.02
    last_share: float = 0.1
    name: str = "relocation"

    def applies(self, task: Task, _best: Incumbent) -> bool:
        """For groups with owners."""
        return task.has_owners

    def _starts(self, task: Task) -> range:
        if self.again:
            return range(self.most, 2 * self.most)
        if not mip.fits(task.problem):
            return range(self.most)
        return range(self.few if task.moves_matter else 2 * len(self.greeds))

    def run(self, task: Task, best: Incumbent, share: float) -> Iterator[Finding]:
        """Offer the best plan of each relocation, and what local search makes of it."""
        start = task.fewest_moves_plan
        yield Candidate(start, Greedy.name)
        stop = task.clock.stop(share)
        start = equalize(start, task.rule, best.wanted, task.clock.stop(self.start_share), task.seed, keep_home=True)
        yield Candidate(start)
        for number in self._starts(task):
            most = best.moves_worth
            if stop() or best.settled or (most is not None and most < start.moves):
                break
            points = relocate(
                start, task.rule, best.wanted, stop, task.seed + number,
                most_moves=most, greed=self.greeds[number % len(self.greeds)],
                noise=0.0 if number < len(self.greeds) else self.noise,
            )  # fmt: skip
            point = min(points, key=task.goal.value)
            if task.goal.key(point) < task.goal.key(best.plan):
                yield Candidate(point)
                polished = local_search(point, task.rule, task.goal, task.clock.stop(self.polish_share))
                yield Candidate(polished, LocalSearch.name)
        from_current = best.from_current
        plan = local_search(best.plan, task.rule, task.goal, task.clock.stop(self.last_share))
        yield Candidate(plan, LocalSearch.name, from_current=from_current)
