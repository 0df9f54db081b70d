"""The loop: publishes a plan for each watched group where it pays, by the rules of `loop_decision`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenlag.errors import InvalidPlanError, InvalidProblemError, in_words
from evenlag.live import followed_plan
from evenlag.live.followed_plan import Plans, UnreadError, newest_plan
from evenlag.model.interrupt import interrupted
from evenlag.model.plan import Plan
from evenlag.model.problem import NOBODY, Problem
from evenlag.watch.board import Tally
from evenlag.watch.inputs import Input
from evenlag.watch.loop_decision import Caution, Decision, Published, Reason, Sight
from evenlag.watch.sole_writer import SoleWriter
from evenlag.watch.standing import Standing


@dataclass
class Loop:
    """Publishes plans of watched groups.

    Attributes
    ----------
    place_of : callable (group) -> Plans
        Returns the place of a group's plans.
    source : Input
        Read again before a plan is published.
    log : callable (str) -> None
        Gets one line for each decision.
    writer : SoleWriter or None
        None for a dry run, which writes nothing.
    now : callable () -> float
        Returns the time in seconds since 1970.
    """

    caution: Caution
    place_of: Callable[[str], Plans]
    source: Input
    log: Callable[[str], None]
    writer: SoleWriter | None
    tallies: dict[str, Tally]
    now: Callable[[], float] = time.time

    def unseen(self, group: str, why: str) -> None:
        """Publish nothing for a group that could not be read wholly or planned."""
        self._note(group, Decision(Reason.UNSEEN, why))

    def consider(self, group: str, standing: Standing) -> None:
        """Decide on a group that was read and planned, and publish its plan if that is the decision."""
        sight = _sight(group, standing)
        decision = self.caution.at_sight(sight, self.now())
        if decision is None:
            try:
                decision = self._with_place(sight, standing)
            except Exception as error:  # one group must not end the watch of the others
                decision = Decision(Reason.FAILED, in_words(error))
        if decision is not None:
            self._note(group, decision)

    def close(self) -> None:
        """Let another loop write."""
        if self.writer is not None:
            self.writer.close()

    def _with_place(self, sight: Sight, standing: Standing) -> Decision | None:
        place = self.place_of(sight.group)
        try:
            decision = self.caution.with_place(sight, self._read(place), self.now())
            return decision if decision.reason is not None else self._publish(sight, standing, place)
        finally:
            place.close()

    def _read(self, place: Plans) -> Published:
        """Return what a place has for its group, all read anew."""
        place.close()
        news = place.news()
        other = None if self.writer is None else self.writer.objection()
        if news and isinstance(news[-1], UnreadError | InvalidPlanError):
            return Published(unread=str(news[-1]), other_loop=other)
        return Published(newest_plan(news), other_loop=other)

    def _publish(self, sight: Sight, standing: Standing, place: Plans) -> Decision | None:
        """Publish the best plan of a group if the group is still the same; return None if the watch has to end."""
        if (changed := self._changed(sight.group, standing.problem)) is not None:
            return Decision(Reason.CHANGED, changed)
        # Reading the group may have taken seconds, in which another one may have published or become the writer.
        decision = self.caution.with_place(sight, self._read(place), self.now())
        if decision.reason is not None:
            return decision
        if interrupted():
            return None
        published = followed_plan.publish(_document(standing), place)
        now = self.now()
        self.caution.published(sight.group, published.version, now)
        tally = self.tallies.setdefault(sight.group, Tally())
        tally.published, tally.last = tally.published + 1, now
        return Decision(None, "; ".join([f"published plan {published.version}: {sight.gain}", *published.warnings]))

    def _changed(self, group: str, problem: Problem) -> str | None:
        """Read a group again, and return what has changed since it was planned, except for its lags."""
        try:
            read = self.source.read(lambda names: [name for name in names if name == group], lambda _: None)
            found = next((each.found for each in read if each.name == group), None)
        except Exception as error:  # as in `Watcher`: also an answer that kafka-python cannot read
            return f"it cannot be read again: {error}"
        if found is None:
            return "it is gone"
        if isinstance(found, InvalidProblemError):
            return f"it cannot be read again: {found}"
        now = found.problem
        if now.facts.unsettled is not None:
            return now.facts.unsettled
        same = now.same_structure(problem) and np.array_equal(now.owner, problem.owner)
        return None if same else "its members, partitions or owners are not those that were planned for"

    def _note(self, group: str, decision: Decision) -> None:
        if decision.reason is None:
            self.log(f"group '{group}': {decision.text}")
            return
        self.tallies.setdefault(group, Tally()).waits[decision.reason] += 1
        self.log(f"group '{group}': waits ({decision.reason}): {decision.text}")


def _sight(group: str, standing: Standing) -> Sight:
    """Return a planned group as the loop's rules see it."""
    problem, figures = standing.problem, standing.figures
    owners = {
        key: None if owner == NOBODY else problem.members[owner]
        for key, owner, assignable in zip(problem.partitions, problem.owner, problem.assignable, strict=True)
        if assignable
    }
    known = problem.identities()
    return Sight(
        group,
        facts=problem.facts,
        members={member: known.get(member, {}) for member in problem.members},
        owners=owners,
        pays=figures.rebalance_pays is True,
        moves=figures.plan_moves,
        spread=figures.spread_messages,
        best_spread=figures.best_spread_messages,
    )


def _document(standing: Standing) -> dict[str, Any]:
    """Return the best plan of a group for `publish`."""
    problem = standing.problem
    return {
        "group": problem.group,
        "assignment": Plan(problem, standing.member_of.copy()).listed,
        "members": problem.identities(),
        "lags": problem.lags_by_topic(),
    }
