"""Decisions of the loop: publish a plan for a group now, or wait for a reason. No Kafka and no clock are needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evenlag.figures import duration, messages, number, quantity, some
from evenlag.live.bearers import bearers_of
from evenlag.live.followed_plan import FollowedPlan
from evenlag.live.group_state import FOLLOW, TopicPartition
from evenlag.live.ownership import LEASE
from evenlag.live.wording import named
from evenlag.model.facts import MEMBERSHIP, NO_FACTS, Facts
from evenlag.model.names import Name
from evenlag.model.plan import Number
from evenlag.protocol.subscriptions import PLAN


class Reason(Name):
    """Reason for which no plan is published now."""

    UNSEEN = "unseen"  # the group, or a part of it, could not be read, or could not be planned
    REBALANCING = "rebalancing"
    NO_MEMBERS = "no-members"
    NO_FOLLOWERS = "no-followers"  # its members follow no plans
    WATCHING = "watching"  # its followers have been seen for too short a time to know that they run
    NOT_WORTH = "not-worth"  # no plan saves enough
    TOO_MANY_MOVES = "too-many-moves"
    UNREAD_PLACE = "unread-place"  # the plan in force is unknown
    OTHER_LOOP = "other-loop"  # another loop publishes to the place
    NOBODY_NAMED = "nobody-named"  # the published plan names no member
    STOPPED = "stopped"  # nobody holds partitions that the published plan gives away
    NOT_IN_FORCE = "not-in-force"  # members do not hold what the published plan gives them
    INTERVAL = "interval"  # the published plan is too new
    CHANGED = "changed"  # the group has changed while it was planned
    FAILED = "failed"  # the plan could not be written
    DRY_RUN = "dry-run"  # it would have been published


@dataclass(frozen=True)
class Sight:
    """A group as one round sees it, and the best plan found.

    Attributes
    ----------
    members : mapping of member to what is known of it
        By the names of a plan's `members`.
    owners : mapping of (topic, partition) to member or None
        Today's owners of all partitions that a member subscribes to.
    pays : bool
        True if the best plan saves the share that was asked for, moves paid.
    moves : int
        Partitions that leave their owner under it.
    spread, best_spread : number or None
        Spread today, and under it.
    """

    group: str
    facts: Facts = NO_FACTS
    members: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    owners: Mapping[TopicPartition, str | None] = field(default_factory=dict)
    pays: bool = False
    moves: int = 0
    spread: Number | None = None
    best_spread: Number | None = None

    @property
    def gain(self) -> str:
        """The best plan found, in words."""
        spread = "?" if self.spread is None else number(self.spread)
        best = "?" if self.best_spread is None else messages(self.best_spread)
        return f"{quantity(self.moves, 'move')}, spread {spread} → {best}"


@dataclass(frozen=True)
class Published:
    """The place of plans as it was read for one group.

    Attributes
    ----------
    plan : FollowedPlan or None
        The last plan of the group; None if there is none yet.
    unread : str or None
        Reason if the plan is unknown.
    other_loop : str or None
        Reason if another loop may be publishing there.
    """

    plan: FollowedPlan | None = None
    unread: str | None = None
    other_loop: str | None = None


@dataclass(frozen=True)
class Decision:
    """A decision on a group: publish its best plan now if `reason` is None, else wait."""

    reason: Reason | None
    text: str


@dataclass
class Caution:
    """The rules by which the loop decides, and the times that they need of each group.

    Attributes
    ----------
    least : float
        Seconds between two plans of a group.
    max_moves : int or None
        Most moves of a plan.
    dry_run : bool
        True to publish nothing; a plan that would have been published counts as published for `least`.
    """

    least: float
    max_moves: int | None = None
    dry_run: bool = False
    _since: dict[str, float] = field(default_factory=dict)  # since when each group has been seen with followers
    _read: dict[str, float] = field(default_factory=dict)  # last time at which each group was read
    _versions: dict[str, tuple[int, float]] = field(default_factory=dict)  # last version of each, and its time
    _shown: dict[str, float] = field(default_factory=dict)  # when its last plan would have been published

    def note_read(self, groups: Iterable[str], now: float, every: float) -> None:
        """Note groups that were read now, and watch anew those whose last reading was too long ago.

        Followers may have died since: a commit that is new at this reading shows only that they lived after the last
        one. One round of two may fail, if rounds are `every` seconds apart. A clock that was set back counts as such a
        gap.
        """
        for group in groups:
            if not 0 <= now - self._read.get(group, now) <= 2 * every + LEASE:
                self._since.pop(group, None)
            self._read[group] = now

    def at_sight(self, sight: Sight, now: float) -> Decision | None:
        """Return the decision to wait if the group alone gives a reason to; else None, and the place must be read.

        Times are in seconds since 1970.
        """
        facts = sight.facts
        if facts.unsettled is not None:
            return Decision(Reason.REBALANCING, facts.unsettled)
        assumed = {name: why for name, why in (facts.assumed or {}).items() if name != MEMBERSHIP}
        if assumed:
            return Decision(Reason.UNSEEN, "; ".join(assumed.values()))
        if not sight.members:
            return Decision(Reason.NO_MEMBERS, "it has no members, or all its followers have stopped")
        if facts.protocol != FOLLOW and facts.assignor != PLAN:
            uses = f"its assignor is {facts.assignor or 'unknown'}"
            return Decision(Reason.NO_FOLLOWERS, f"{uses}; only followers and the assignor {PLAN} take up plans")
        if facts.protocol == FOLLOW:
            watched = now - self._since.setdefault(sight.group, now)
            if watched < LEASE:
                return Decision(
                    Reason.WATCHING,
                    f"watched for {duration(max(watched, 0))}; a follower that stands still shows after "
                    f"{duration(LEASE)}",
                )
        if not sight.pays:
            return Decision(Reason.NOT_WORTH, f"no plan pays; the best one found: {sight.gain}")
        if self.max_moves is not None and sight.moves > self.max_moves:
            return Decision(Reason.TOO_MANY_MOVES, f"{sight.gain}; --max-moves is {self.max_moves:,}")
        return None

    def with_place(self, sight: Sight, place: Published, now: float) -> Decision:
        """Return the decision on a group that gives no reason to wait itself."""
        if place.unread is not None:
            return Decision(Reason.UNREAD_PLACE, place.unread)
        if place.other_loop is not None:
            return Decision(Reason.OTHER_LOOP, place.other_loop)
        if place.plan is not None:
            against = _not_taken_up(sight, place.plan) or self._too_early(sight.group, place.plan.version, now)
            if against is not None:
                return against
        shown = self._shown.get(sight.group)
        if shown is not None and 0 <= now - shown < self.least:
            return Decision(Reason.INTERVAL, f"a plan would have been published less than {duration(self.least)} ago")
        if self.dry_run:
            self._shown[sight.group] = now
            return Decision(Reason.DRY_RUN, f"would publish a plan: {sight.gain}")
        return Decision(None, sight.gain)

    def published(self, group: str, version: int, now: float) -> None:
        """Note the time of a plan that the loop has published."""
        self._versions[group] = version, now

    def _too_early(self, group: str, version: int, now: float) -> Decision | None:
        """Return the decision to wait if the last plan is too new, whoever has published it.

        A version is a time in milliseconds, unless somebody wrote another number. So the first one counts from that
        time, but never from a time to come, and a later one from when it was first seen.
        """
        known = self._versions.get(group)
        if known is None:
            known = version, version / 1000
        elif known[0] != version:
            known = version, now
        self._versions[group] = known = known[0], min(known[1], now)  # a time to come would delay plans
        age = now - known[1]
        if age >= self.least:
            return None
        return Decision(
            Reason.INTERVAL, f"plan {version} was published {duration(age)} ago; --least is {duration(self.least)}"
        )


def _not_taken_up(sight: Sight, plan: FollowedPlan) -> Decision | None:
    """Return the decision to wait if the group does not hold its partitions as the published plan says."""
    bearers = {name: bearers_of(plan, name, sight.members) for name in plan.assignment}
    if not any(bearers.values()):
        return Decision(
            Reason.NOBODY_NAMED,
            f"plan {plan.version} names none of its {quantity(len(sight.members), 'member')} "
            f"({some(sorted(sight.members))}); publish a plan for them by evenlag publish if this is their place",
        )
    followed = sight.facts.protocol == FOLLOW
    unheld: dict[str, list[TopicPartition]] = {}
    elsewhere: list[TopicPartition] = []
    for key, name in plan.owners.items():
        if key not in sight.owners:
            continue
        owner = sight.owners[key]
        if owner is None:
            unheld.setdefault(name, []).append(key)
        elif owner not in ({name} if followed else bearers[name] or {owner}):  # others share those of an absent member
            elsewhere.append(key)
    if unheld:
        each = "; ".join(f"{name} does not hold {named(keys)}" for name, keys in sorted(unheld.items()))
        return Decision(Reason.STOPPED, f"{each}: stopped, or too slow to take up plan {plan.version}")
    if elsewhere:
        return Decision(
            Reason.NOT_IN_FORCE, f"plan {plan.version} is not in force: {named(elsewhere)} with other members"
        )
    return None
