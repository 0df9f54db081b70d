"""Pair search: members outside the window repartition with others, two at a time, until all loads are inside.

Which pairs, and what to do where none helps, is an iterated local search (Lourenço, Martin and Stützle 2003). The
local search is pairwise repartitioning. The kick (perturbation) brings the worst member into the window at another's
cost, who then is the worst and passes on what it lacks: what Glover 1996 calls an ejection chain, each link of it
found by the search itself. Those who were helped are tabu meanwhile. Where nothing better comes of it, all goes back
to the best assignment before the next kick.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evenlag.search.improve.repartition import force_inside, repartition
from evenlag.search.improve.state import BestState, Column, SearchState, Stagnation

EXCHANGES = 22  # of one pair that a subset is chosen from: two halves of 11 have 2,048 sums each
QUICK_EXCHANGES = 14  # the same in `rounds`, where many pairs have much to gain
WORST_SHARE = 0.8  # of the steps, that go to the worst member; the others go to any member outside the window
STEPS_IN_VAIN = 25  # per member, before the search gives up
KICK_AFTER = 12  # steps without progress, and as many more for every ten members, before the worst is kicked
KICK_SWAPS = 20_000  # swaps that are looked at to help one member
KICK_PARTNERS = 8  # partners that are tried to help one member where its topics restrict what can be swapped


class PairSearch:
    """The search over pairs of members of one state.

    Parameters
    ----------
    state : SearchState
    """

    def __init__(self, state: SearchState) -> None:
        self.state = state

    # ---- which pairs ---------------------------------------------------------------------------------------------

    def rounds(self, stop: Callable[[], bool]) -> None:
        """Repartition the heaviest with the lightest, the next with the next, while each round brings a quarter.

        `stop` is asked before each pair.
        """
        state = self.state
        able = np.ones(len(state.active), dtype=bool)
        stagnant = Stagnation()
        while True:
            bad = state.badness()
            left = int(bad.sum())
            if left == 0 or stagnant(left):
                return
            order = np.flatnonzero(able)
            order = order[np.argsort(state.scaled[state.active[order]], kind="stable")].tolist()
            for light, heavy in zip(order[: len(order) // 2], reversed(order), strict=False):
                if stop():
                    return
                if state.oversized[state.active[light]]:
                    continue
                if not self._repartition(heavy, light, QUICK_EXCHANGES):
                    able[heavy if bad[heavy] <= bad[light] else light] = False

    def worst_first(self, stop: Callable[[], bool]) -> None:
        """Repartition the member farthest outside the window with others until none is outside, or nothing helps.

        Parameters
        ----------
        stop : callable
            Asked before each step.
        """
        state = self.state
        count = len(state.active)
        if count < 2:
            return
        best, since, kicks = BestState(state), 0, 0
        state.tabu[:] = False
        failures = np.zeros(count, dtype=np.int64)
        patience = STEPS_IN_VAIN * min(count + STEPS_IN_VAIN, len(state.lags))
        for step in itertools.count():
            bad = state.badness()
            worst = int(bad.max())
            if best.update(bad):
                since, kicks = step, 0
                state.tabu[:] = False
            if worst <= 0 or stop() or step - since > patience:
                break
            due = (step - since) // (KICK_AFTER * (1 + count // 10))
            if due > kicks:
                kicks = due
                if worst > best.score[0]:
                    best.restore()
                self.kick()
                failures[:] = 0
            else:
                self._step(bad, worst, failures)
        if int(state.badness().max()) >= best.score[0]:
            best.restore()

    def _step(self, bad: Column, worst: int, failures: NDArray[np.int64]) -> None:
        """Repartition the worst member, or one that failed less often, with a partner.

        Where that brings nothing, the partner shares out with another at random within the worst's distance: the
        worst meets both changed next time.
        """
        most = EXCHANGES
        of_worst = self.state.rng.random() < WORST_SHARE
        a = int((bad / (1 + failures)).argmax()) if of_worst else self._any(bad > 0)
        b = self._partner(a, int(failures[a]))
        if self._repartition(a, b, most):
            failures[a] = 0
            return
        failures[a] += 1
        c = self._bystander(b)
        if c != b:
            self._repartition(b, c, most, around=worst)

    def _repartition(self, a: int, b: int, most: int, around: int = 0) -> bool:
        active = self.state.active
        return repartition(self.state, int(active[a]), int(active[b]), most, around)

    def _partner(self, a: int, failures: int) -> int:
        """Who makes up best for `a`; after a failure anyone on the other side of the window, or anyone who may."""
        state = self.state
        scaled = state.scaled[state.active]
        heavy = bool(scaled[a] > state.high)
        able = state.may_be_partner()
        if heavy or not able.any():
            able[:] = True
        able[a] = False
        if not able.any():  # nobody else may, so anybody else is tried
            able[:] = True
            able[a] = False
        if failures == 0:
            among = np.flatnonzero(able)
            return int(among[scaled[among].argmin() if heavy else scaled[among].argmax()])
        if failures % 2:
            other = able & (scaled < state.low if heavy else scaled > state.high)
            if (
                not other.any()
            ):  # beside oversized partitions none is above the window; who is above its low end can give
                other = able & (scaled < state.high if heavy else scaled > state.low)
            if other.any():
                return self._any(other)
        return self._any(able)

    def _bystander(self, a: int) -> int:
        """Draw another member; `a` itself if it is one to be left alone."""
        b = int(self.state.rng.integers(len(self.state.active) - 1))
        b += b >= a
        return b if self.state.may_be_partner()[b] else a

    def _any(self, among: NDArray[np.bool_]) -> int:
        chosen = np.flatnonzero(among)
        return int(chosen[self.state.rng.integers(len(chosen))])

    # ---- the kick --------------------------------------------------------------------------------------------------

    def kick(self, members: int = 1) -> None:
        """Bring the worst members into the window, each at another's cost, and make them tabu for now."""
        state = self.state
        state.tabu[:] = False
        bad = state.badness()
        for a in np.argsort(-bad, kind="stable")[:members].tolist():
            if bad[a] <= 0 or not len(state.held[state.active[a]]):
                return
            state.tabu[a] = self._help_by_swap(a) if state.interchangeable else self._help_by_pair(a)

    def _help_by_swap(self, a: int) -> bool:
        """Swap two partitions whose lags differ by about what brings the member into the window."""
        state, me = self.state, int(self.state.active[a])
        lags, held = state.lags, state.held[me]
        need = -(-(state.low - state.scaled[me]) // state.factors[me])
        if need <= 0:
            need = (state.high - state.scaled[me]) // state.factors[me]
        able = np.zeros(len(state.held), dtype=bool)
        able[state.active[state.may_be_partner()]] = True
        able[me] = False
        others = np.flatnonzero(state.free & able[state.member_of])
        most = max(KICK_SWAPS // max(len(others), 1), 1)
        if len(held) > most:  # the one that leaves the most to choose from, and any others
            widest = lags[held].argmin() if need > 0 else lags[held].argmax()
            held = np.append(state.rng.permutation(np.delete(held, widest))[: most - 1], held[widest])
        gain = (lags[others][None, :] - lags[held][:, None]).ravel()
        fits = np.flatnonzero(gain >= need if need > 0 else gain <= need)
        if not len(fits):
            return False
        nearest = fits[np.argsort(np.abs(gain[fits] - need), kind="stable")]
        rank = int(len(nearest) ** state.rng.random()) - 1  # more often near
        give, take = divmod(int(nearest[rank]), len(others))
        state.carry_out(me, int(state.member_of[others[take]]), held[[give]], others[[take]])
        return True

    def _help_by_pair(self, a: int) -> bool:
        """Repartition with one partner after another, whatever becomes of them, until the member is inside."""
        state, me = self.state, int(self.state.active[a])
        need = int(state.low - state.scaled[me])
        need = max(need, 0) or int(state.high - state.scaled[me])
        for _ in range(KICK_PARTNERS):
            partner = int(state.active[self._partner(a, 2)])
            if force_inside(state, me, partner, need + state.draw_up_to(4 * need), EXCHANGES):
                return True
        return False
