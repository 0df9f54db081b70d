"""Simulated annealing where moves or pairs cost something: random exchanges, with less and less worsening.

The loads of all members are to enter a window slightly narrower than the range of the best plan's loads, with moves and
pair costs within their limits. A run starts from the best plan. Each step draws an exchange of two members and its
energy: Σ of squared distances from the window, in units of the heat, and what exceeds each limit. An exchange that
worsens the energy is accepted with probability exp(-worsening) (Kirkpatrick, Gelatt and Vecchi 1983). The heat falls
from step to step; the window shifts at random with the same acceptance. Limits may be exceeded on the way, so that a
partition may go home after another has left.

Few partitions move, and hardly any random exchange concerns them. So most exchanges begin with a moved partition: they
send it home for another one, or exchange two moved ones.

Where moves and pairs have a price, the width of the window is drawn too, and all that may still be spent for a better
plan is one of the limits. All of it is compiled code (kernel.c), some millions of steps per second; without the kernel
the stage does not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar

import numpy as np

from evenlag.model.arrays import Floats, Whole
from evenlag.model.objective import CEILING, PAIRS, ObjectiveKind
from evenlag.model.plan import Plan
from evenlag.search.clock import in_steps_of
from evenlag.search.improve import kernel
from evenlag.search.improve.state import NO_LIMIT, SearchState
from evenlag.search.incumbent import Candidate, Finding, Incumbent
from evenlag.search.stage import Stage
from evenlag.search.task import Task

Stop = Callable[[], bool]

STEPS_AT_ONCE, LEAST_AT_ONCE = 20_000, 500  # steps of a call of the kernel, some milliseconds; fewer in large groups
LARGE = 1_000  # partitions; above, giving one away takes longer
STEPS_OF_THE_CLOCK = 2  # for a call


@dataclass(frozen=True)
class Annealing(Stage):
    """Runs of simulated annealing, as a stage.

    Attributes
    ----------
    narrower : tuple of float
        Widths of a window as shares of the range of the best plan's loads; one is drawn.
    wider : tuple of float
        Further widths if moves or pairs have a price.
    heats : tuple of float
        Heat at the start of a run, as a share of the width; one is drawn.
    cold : float
        Heat at the end, as a share of the width.
    strictness : float
        Weight of a move, or of a usual pair cost, beyond a limit.
    dearness : float
        Weight of what moves and pairs cost beyond their limit, in messages, compared with a distance by the heat.
    steps_each : int
        Steps of a run per partition in the first round; twice as many in each later one.
    longest : int
        Largest number of steps, as a multiple of the first round's.
    most_idle : int
        Runs in a row without a better plan after which the stage ends for a round.
    """

    narrower: tuple[float, ...] = (0.999, 0.997, 0.99, 0.97, 0.9, 0.8)
    wider: tuple[float, ...] = (0.5, 0.7, 1.003, 1.03, 1.1, 1.3)
    heats: tuple[float, ...] = (0.1, 1.0)
    cold: float = 1e-4
    strictness: float = 6.0
    dearness: float = 10.0
    steps_each: int = 2_000
    longest: int = 16
    most_idle: int = 6
    name: str = "annealing"
    handles: ClassVar[frozenset[str]] = frozenset((PAIRS, CEILING))

    def applies(self, task: Task, best: Incumbent) -> bool:
        """Return True if a plan exists, more counts than one load per member, and the kernel is there."""
        counts = bool(task.costs or task.problem.futures) and task.goal.kind is not None
        return best.found and counts and kernel.in_use()

    def run(self, task: Task, best: Incumbent) -> Iterator[Finding]:
        """Yield the best plan of each run that is better than all before."""
        stop, rng = in_steps_of(STEPS_OF_THE_CLOCK, task.clock.stop()), Random(task.drawn)
        state = SearchState(best.plan, task.rule, (0, 0), task.seed, goal=task.goal)
        if state.kernel is None or not state.free.any():
            return
        steps, idle = self.steps_each * len(task.problem.lags) * min(2**task.round, self.longest), 0
        while idle < self.most_idle and not best.settled and not stop():
            state.start_from(best.plan.member_of)
            found = self._run(state, steps, rng, stop)
            idle = 0 if found is not None else idle + 1
            if found is not None:
                yield Candidate(found)

    def _run(self, state: SearchState, steps: int, rng: Random, stop: Stop) -> Plan | None:
        """Return the best plan of a run if it is better than the state."""
        windows = self._windows(state, rng)
        value = state.base() + state.move_price * state.moves + int((state.pair_prices * state.used).sum())
        limits, rates = self._limits(state)
        limits[-1] = value - 1 - state.base_of(windows[1].astype(np.int64))
        width, share, found = float(windows[1].max()) or 1.0, rng.choice(self.heats), False
        heat, cooler = share * width, (self.cold / share) ** (1 / steps)
        best_of, partitions = state.member_of.copy(), len(state.member_of)
        at_once = max(STEPS_AT_ONCE * LARGE // max(partitions, LARGE), LEAST_AT_ONCE)
        for begun in range(0, steps, at_once):
            if stop():
                break
            here = min(at_once, steps - begun)
            better = kernel.anneal(
                state.kernel, best_of, windows, limits, rates, value, here, rng.getrandbits(62), heat, cooler
            )
            heat *= cooler**here
            if better is not None:
                value, found = better, True
        return Plan(state.problem, best_of) if found else None

    def _windows(self, state: SearchState, rng: Random) -> Floats:
        """Draw a window of scaled loads for each scenario: low ends and widths (2, S)."""
        loads = state.loads[state.active].astype(np.float64)
        low, high = loads.min(axis=0), loads.max(axis=0)
        if state.goal.kind != ObjectiveKind.SPREAD:
            low = np.zeros_like(low)
        shares = self.narrower + self.wider * (any(state.pair_prices) or state.move_price > 0)
        width = (high - low) * [rng.choice(shares) for _ in low]
        return np.stack([low + (high - low - width) * [rng.random() for _ in low], width])

    def _limits(self, state: SearchState) -> tuple[Whole, Floats]:
        """Return the limits of moves, each pair cost and all prices together, and the weight of a unit beyond each."""
        goal = state.goal
        usual = [max(float(costs.table.mean()), 1.0) for costs in state.costs]
        limits = [
            NO_LIMIT if goal.max_moves is None else min(goal.max_moves, NO_LIMIT),
            *state.budgets.tolist(),
            NO_LIMIT,
        ]
        rates = [self.strictness / unit for unit in (1.0, *usual)]
        return np.array(limits, dtype=np.int64), np.array([*rates, self.dearness / state.unit])
