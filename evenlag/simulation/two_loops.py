"""Two loops that publish plans of a group, one of them a standby (docs/loop.md), and the promises of that page."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from evenlag.live.followed_plan import FollowedPlan
from evenlag.live.group_state import Description
from evenlag.simulation.coordinator import Coordinator
from evenlag.simulation.operated_group import OperatedGroup
from evenlag.simulation.plan_log import GARBAGE, TOPIC
from evenlag.simulation.watch_loop import CLOCK_OFF, LEAST, WatchLoop

NAMES = ("w1", "w2")
OVERTAKES = 2  # plans of loops between two that an operator overtakes; the other ones get no answer


class TwoLoops:
    """The loops of a group, and the group in which they claim to be the writer.

    Parameters
    ----------
    describe : callable () -> Description
        Describes the group that is planned, as its coordinator does.
    """

    def __init__(self, group: OperatedGroup[Any], describe: Callable[[], Description]) -> None:
        self.group, self.describe, self.writers = group, describe, Coordinator()
        self._running: dict[str, WatchLoop] = {}
        self._last_plan = self._overtaken = -math.inf  # times
        self._unreported: dict[str, int] = {}  # version of the plan that a loop has written and not yet reported

    def begin(self) -> None:
        """Start both."""
        for name in NAMES:
            self._start(name)

    # ---- promises ------------------------------------------------------------------------------------------------

    def published(self, plan: FollowedPlan, before: FollowedPlan) -> str | None:
        """Note a plan, and return the loop that has published it, if one has.

        A loop may publish only as the sole writer, and only some time after the last plan.
        """
        world, since = self.group.world, self.group.world.now - self._last_plan
        if plan.version > before.version:
            self._last_plan = world.now
        writer = next((each for each in self._running.values() if world.current in each.processes), None)
        if writer is None or plan == before:  # a plan is written again if another writer's is the last record
            return None
        if self._overtaken == world.now:
            return None
        self.group.report.done["plans of loops"] += 1
        if self.group.report.done["plans of loops"] % OVERTAKES == OVERTAKES - 1:
            self.group.log.overtake = self._overtake
        else:
            self.group.log.unanswered = True
        if plan.version <= before.version and not writer.suspended_lately:
            raise world.broken(f"{writer.name} publishes plan {plan.version} after plan {before.version}")
        if [each.value() for each in self.group.log.records[-2:-1]] == [GARBAGE]:
            raise world.broken(f"{writer.name} publishes a plan after a record that cannot be read")
        holders = {name for name, holds in self.writers.assignments(world.now).items() if holds}
        if holders and writer.writer.member_id not in holders and not writer.suspended_lately:
            raise world.broken(f"{writer.name} publishes a plan, but another loop is the writer")
        if since < LEAST - 2 * CLOCK_OFF and not writer.suspended_lately:
            raise world.broken(f"{writer.name} publishes a plan {since:.1f} s after the last one")
        self._unreported[writer.name] = plan.version
        return writer.name

    def failed(self, name: str, line: str) -> None:
        """Check that a plan is not in the topic if a loop reports that it was not written."""
        version = self._unreported.pop(name, None)
        if version is not None and f"(failed): topic {TOPIC}: the plan was not written" in line:
            raise self.group.world.broken(f"{name} has written plan {version}, but reports that it has not")

    def written(self, name: str) -> None:
        """Check that the newest plan is the last record, where a loop has written a plan and says so."""
        self._unreported.pop(name, None)
        self.group.report.done["plans written"] += 1
        last, newest = self.group.log.records[-1].value(), self.group.plan.version
        if last != GARBAGE and (version := json.loads(last)["version"]) < newest:
            raise self.group.world.broken(f"{name} leaves plan {version} as the last record after plan {newest}")

    # ---- what happens --------------------------------------------------------------------------------------------

    def deeds(self) -> Sequence[Callable[[], None]]:
        """Return the faults that may befall the loops."""
        return [self._kill, self._stop, self._cut_off]

    def _start(self, name: str) -> None:
        self._unreported.pop(name, None)
        self._running[name] = WatchLoop(self, name)

    def _any(self) -> WatchLoop | None:
        running = [each for _, each in sorted(self._running.items()) if each.alive]
        return self.group.world.random.choice(running) if running else None

    def _kill(self) -> None:
        """Kill a loop, which is started again."""
        if (loop := self._any()) is not None:
            self.group.disturb("kill loop", f"{loop.name} is killed")
            loop.kill()
            self.group.later(f"{loop.name} is started again", 1, 200, lambda: self._start(loop.name))

    def _stop(self) -> None:
        """Stop a loop's process for a while."""
        if (loop := self._any()) is not None:
            seconds = self.group.world.random.uniform(1, 200)
            self.group.disturb("stop loop", f"{loop.name} is stopped for {seconds:.1f} s", seconds)
            loop.stop(seconds)

    def _cut_off(self) -> None:
        """Cut a loop off from the brokers for a while."""
        if (loop := self._any()) is not None:
            seconds = self.group.world.random.uniform(1, 200)
            self.group.disturb("cut off loop", f"{loop.name} reaches no broker for {seconds:.1f} s", seconds)
            loop.link.cut_off_until = self.group.world.now + seconds

    def _overtake(self) -> None:
        """Publish a plan as the operator, whose clock is ahead."""
        self._overtaken = self.group.world.now
        self.group.publish_any(ahead=CLOCK_OFF)
