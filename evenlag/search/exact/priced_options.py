"""What every member may do in a plan within a target, by the prices of move_patterns.py.

All that members hold in a plan is worth all there is. So where they can hold little more than that in a window of
loads, no member may lose more than this by what it holds: the reduced costs of a linear program, which leave few
columns where its bound is good (as in the route enumeration of Baldacci, Christofides and Mingozzi 2008).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenlag.search.exact.bits import sizes_of, weighed
from evenlag.search.exact.member_options import Exchanges, MemberOptions
from evenlag.search.exact.move_patterns import MovePatterns
from evenlag.search.exact.plan_target import PlanTarget
from evenlag.search.exact.prefix_table import Listing
from evenlag.search.exact.pricing import OwnTable, tables_of
from evenlag.search.exact.windows import UNIT, Prices, Window
from evenlag.search.patterns import EnumerationLimitError

MOST_LISTED = 300_000  # patterns of one member at size 1
MOST_PRICES = 6  # sets of them that a list is held against
WORTHLESS = 4  # moves: prices that let members lose more exclude next to nothing


class PricedOptions:
    """The patterns of each member that a plan could use with all loads in a window, as exchanges.

    Parameters
    ----------
    members : list of MemberOptions
        By lags as they are.
    patterns : MovePatterns
    target : PlanTarget
    window : Window
    stop : callable
        Asked before each list.
    size : float
        How much may be listed, as a share of the most there may ever be.
    alike : bool
        Whether a member can do what others leave to it as long as counts are kept: one may go unlisted then.

    Attributes
    ----------
    gives, takes, unlisted, slack
        As in `Options`.
    """

    def __init__(
        self,
        members: list[MemberOptions],
        patterns: MovePatterns,
        target: PlanTarget,
        window: Window,
        stop: Callable[[], bool],
        size: float,
        *,
        alike: bool,
    ) -> None:
        self.members, self.target = members, target
        self.unlisted: int | None = None
        self._all_alike = alike
        self._patterns, self._window, self._stop, self._size = patterns, window, stop, size
        prices = [(found.slack(window, target.all_moves), n) for n, found in enumerate(patterns.prices)]
        self._prices = [(slack, patterns.prices[n]) for slack, n in sorted(prices)[:MOST_PRICES]]
        self.slack = self._prices[0][0]
        self.gives = [max(0, me.count - me.hi) for me in members]
        self.takes = [max(0, me.lo - me.count) for me in members]
        self._listed: list[Exchanges | None] = [None] * len(members)

    def narrow(self) -> bool:
        """List what each member may hold; False if one may hold nothing.

        Raises
        ------
        EnumerationLimitError
            There is too much to list for more than one member, or `stop` ended it.
        """
        if self.slack < 0:
            return False
        pricing, prices = self._patterns.pricing, self._prices[0][1]
        worth = [pricing.worth(prices.values, i) for i in range(len(self.members))]
        for i, table in tables_of(pricing.roundings, worth, self._window.high, whole=True):
            if self._stop():
                raise EnumerationLimitError
            listed = self._listed[i] = self._list(i, table)
            if listed is not None and not len(listed):
                return False
        return True

    def exchanges(self, i: int) -> Exchanges | None:
        """Return all that one member may do; None if it is unlisted."""
        return self._listed[i]

    def _list(self, i: int, table: OwnTable) -> Exchanges | None:
        """List what a member may hold; None for the first for whom that is too much."""
        me, pricing = self.members[i], self._patterns.pricing
        window = self._window
        slack, prices = self._prices[0]
        values, numbers = pricing.worth(prices.values, i)[pricing.places], pricing.numbers
        most = _most(prices, i, window)
        try:
            held = table.listed(most - slack, window, Listing(numbers, me.may_hold, int(self._size * MOST_LISTED)))
        except EnumerationLimitError:
            if self.unlisted is not None or not self._all_alike:
                raise
            self.unlisted = i
            return None
        loads, lost = weighed(held, me.lags), most - weighed(held, values)
        low, high = self.target.loads(0)
        kept = (loads >= low) & (loads <= high) & ~me.dominated(held)
        for other_slack, other in self._prices[1:]:
            if other_slack > WORTHLESS * UNIT or not kept.any():
                break
            least = _most(other, i, window) - other_slack
            kept &= weighed(held, pricing.worth(other.values, i)[pricing.places]) >= least
        held, loads, lost = held[:, kept], loads[kept], lost[kept]
        idle = sizes_of(held & me.idle_bits[:, None]) - me.own_idle * me.idle.counted
        held = held & ~me.idle_bits[:, None]
        gives = sizes_of(me.inside[:, None] & ~held) - np.minimum(idle, 0)
        return Exchanges(held ^ me.inside[:, None], idle, loads, gives, lost)


def _most(prices: Prices, i: int, window: Window) -> int:
    """Return the most that a member can hold."""
    return int(prices.held[i][window.low : window.high + 1].max())
