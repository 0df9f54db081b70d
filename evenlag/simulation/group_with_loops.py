"""Followers of plans that two loops publish, one of them a standby (docs/loop.md), and the promises of that page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from evenlag.live.followed_plan import FollowedPlan
from evenlag.live.ownership import LEASE
from evenlag.simulation.coordinator import Coordinator
from evenlag.simulation.followed_group import GARBAGE, RATE, Followers
from evenlag.simulation.uneven_traffic import UnevenTraffic
from evenlag.simulation.watch_loop import CLOCK_OFF, EVERY, LEAST, TIMEOUT, WatchLoop
from evenlag.simulation.world import World

LOOPS = ("w1", "w2")
SEEN_DEAD = 2 * EVERY + LEASE + TIMEOUT  # seconds after which a loop has seen that a follower is dead
RATES = 0.02, RATE  # least and most messages per second and partition


class Looped(Followers):
    """The members, and the loops with the group in which they claim to be the writer."""

    longest_death, longest_garbage = 500.0, 500.0

    def __init__(self, world: World, hours: float) -> None:
        self.writers = Coordinator()
        self.loops: dict[str, WatchLoop] = {}
        self._last_plan = 0.0
        super().__init__(world, hours)
        for name in LOOPS:
            self._start_loop(name)
        self._traffic = UnevenTraffic(self, RATES, keeps=(20.0, 200.0), slow_for=(60.0, 300.0), handling=3.0)
        world.start("traffic", self._traffic.run)

    # ---- promises ------------------------------------------------------------------------------------------------

    def appended(self, value: bytes) -> None:
        """Note a record; a loop may write it only as the sole writer, and only some time after the last plan."""
        before = self.plan
        garbled = [each.value() for each in self.log.records[-2:-1]] == [GARBAGE]
        named = {name for name, keys in before.assignment.items() if keys}
        since, now = self.world.now - self._last_plan, self.world.now
        super().appended(value)
        plan = None if value == GARBAGE else FollowedPlan.from_dict(json.loads(value))
        if plan is None or plan == before:  # a plan is written again if another writer's is the last record
            return
        if plan.version > before.version:
            self._last_plan = now
        writer = self._writing_loop()
        if writer is None:
            return
        self.report.done["plans of loops"] += 1
        if plan.version <= before.version and not writer.suspended_lately:
            raise self.world.broken(f"{writer.name} publishes plan {plan.version} after plan {before.version}")
        if garbled:
            raise self.world.broken(f"{writer.name} publishes a plan after a record that cannot be read")
        holders = {name for name, holds in self.writers.assignments(now).items() if holds}
        if holders and writer.writer.member_id not in holders and not writer.suspended_lately:
            raise self.world.broken(f"{writer.name} publishes a plan, but another loop is the writer")
        if since < LEAST - 2 * CLOCK_OFF and not writer.suspended_lately:
            raise self.world.broken(f"{writer.name} publishes a plan {since:.1f} s after the last one")
        if plan.assignment.keys() != named:
            raise self.world.broken(
                f"{writer.name} publishes a plan for {sorted(plan.assignment)}, not for {sorted(named)}"
            )
        dead = [each.name for each in self.members.values() if each.died < now - SEEN_DEAD and each.name in named]
        if dead:
            raise self.world.broken(f"{writer.name} publishes a plan for {', '.join(dead)}, which has long been dead")

    def _writing_loop(self) -> WatchLoop | None:
        """Return the loop whose turn it is."""
        return next((each for each in self.loops.values() if self.world.current in each.processes), None)

    # ---- what happens --------------------------------------------------------------------------------------------

    def deeds(self) -> Sequence[Callable[[], None]]:
        """Return the faults that may befall the group and the loops."""
        return [*super().deeds(), *self._traffic.deeds(), self._kill_loop, self._stop_loop, self._cut_off_loop]

    def _start_loop(self, name: str) -> None:
        self.loops[name] = WatchLoop(self, name)

    def _any_loop(self) -> WatchLoop | None:
        running = [each for _, each in sorted(self.loops.items()) if each.alive]
        return self.world.random.choice(running) if running else None

    def _kill_loop(self) -> None:
        """Kill a loop, which is started again."""
        if (loop := self._any_loop()) is not None:
            self.disturb("kill loop", f"{loop.name} is killed")
            loop.kill()
            self.later(f"{loop.name} is started again", 1, 200, lambda: self._start_loop(loop.name))

    def _stop_loop(self) -> None:
        """Stop a loop's process for a while."""
        if (loop := self._any_loop()) is not None:
            seconds = self.world.random.uniform(1, 200)
            self.disturb("stop loop", f"{loop.name} is stopped for {seconds:.1f} s", seconds)
            loop.stop(seconds)

    def _cut_off_loop(self) -> None:
        """Cut a loop off from the brokers for a while."""
        if (loop := self._any_loop()) is not None:
            seconds = self.world.random.uniform(1, 200)
            self.disturb("cut off loop", f"{loop.name} reaches no broker for {seconds:.1f} s", seconds)
            loop.link.cut_off_until = self.world.now + seconds

    def _move(self) -> None:
        super()._move()
        self.writers.move(self.world.now)

    def _down(self) -> None:
        super()._down()
        self.writers.move(self.world.now)
