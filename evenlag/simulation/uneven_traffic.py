"""Traffic whose lags grow apart: partitions change their rates, and members are slow for a while."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evenlag.simulation.troubled_group import TroubledGroup
from evenlag.simulation.world import Process

Range = tuple[float, float]  # least and most


@dataclass(frozen=True)
class UnevenTraffic:
    """The rates of a group's partitions and the speed of a slow member.

    Attributes
    ----------
    group : TroubledGroup
    rates : (float, float)
        Messages per second and partition.
    keeps : (float, float)
        Seconds until some partition changes its rate.
    slow_for : (float, float)
        Seconds for which a member is slow.
    handling : float
        Mean seconds for a message of a slow member.
    """

    group: TroubledGroup[Any]
    rates: Range
    keeps: Range
    slow_for: Range
    handling: float

    def deeds(self) -> Sequence[Callable[[], None]]:
        """Return the faults that may befall the group."""
        return [self._slow]

    def run(self, process: Process) -> None:
        """Change the rate of a partition now and then."""
        cluster, random = self.group.cluster, self.group.world.random
        while True:
            process.sleep(random.uniform(*self.keeps))
            cluster.set_rate(random.choice(list(cluster.rates)), random.uniform(*self.rates))

    def _slow(self) -> None:
        """Let a member handle messages slowly for a while."""
        if (member := self.group.any_member()) is not None:
            seconds = self.group.world.random.uniform(*self.slow_for)
            self.group.disturb("slow", f"{member.name} is slow for {seconds:.1f} s", seconds)
            member.handling = self.handling
            self.group.later(f"{member.name} is as fast as before", seconds, seconds, member.recover)
