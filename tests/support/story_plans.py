"""Plans for recorded rebalances, and the rules of docs/java.md for what they leave out, written once more."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from evenlag.live.assignor.deciding import dealt
from evenlag.live.followed_plan import FollowedPlan
from tests.support.plan_groups import ANONYMOUS, Member, known_in_plan, name_in_plan
from tests.support.recorded_stories import Given, Partition, Rebalance

KINDS = ("decided", "before", "part", "strangers", "none")


@dataclass
class Told:
    """A rebalance with the plan in force.

    Attributes
    ----------
    content : str or None
        The plan.
    stands_for : dict of str to str
        The member for which each name of the plan was written, where no other has the same client id.
    """

    rebalance: Rebalance
    kind: str
    content: str | None = None
    stands_for: dict[str, str] = field(default_factory=dict)

    @property
    def plan(self) -> FollowedPlan | None:
        """The plan as Python reads it."""
        return None if self.content is None else FollowedPlan.from_dict(json.loads(self.content))

    @property
    def existing(self) -> set[Partition]:
        """The partitions of the topics that somebody reads."""
        read = {topic for each in self.rebalance.members.values() for topic in each.topics}
        return {(topic, p) for topic, count in self.rebalance.topics.items() if topic in read for p in range(count)}

    @property
    def instances(self) -> dict[str, str | None]:
        """The group.instance.id of each member."""
        return {name: _client(name) if self.rebalance.static else None for name in self.rebalance.members}

    def had(self) -> Given:
        """Return the partitions that members had in the newest generation, without any that they do not read now."""
        newest = max((_generation(each) for each in self.rebalance.members.values()), default=-1)
        return {
            name: [key for key in each.owned if key in self.existing and key[0] in each.topics]
            if newest >= 0 and _generation(each) == newest
            else []
            for name, each in self.rebalance.members.items()
        }

    def request(self, random: Random) -> dict[str, Any]:
        """Return what the driver is asked, with members and topics in random order."""
        members, topics = list(self.rebalance.members.items()), list(self.rebalance.topics.items())
        random.shuffle(members)
        random.shuffle(topics)
        asked = {
            name: {
                "topics": each.topics,
                "owned": each.owned,
                "generation": _generation(each),
                "instance": self.instances[name],
            }
            for name, each in members
        }
        return {"topics": dict(topics), "members": asked, "plan": self.content}


def told(rebalance: Rebalance, before: Rebalance, kind: str, random: Random) -> Told:
    """Return the rebalance under a plan of this kind; `before` is the one before it in its story."""
    made_for = before if kind == "before" else rebalance
    decided = made_for.target or dealt({t: range(n) for t, n in made_for.topics.items()}, made_for.members)
    case = Told(rebalance, kind)
    if kind == "none":
        return case
    members = {name: Member(name, _client(name) if made_for.static else None, []) for name in decided}
    names = {name: name_in_plan(each, random) for name, each in members.items()}
    if kind == "strangers":
        names = {name: f"gone-{number}" for number, name in enumerate(decided)}
    assignment: dict[str, list[Partition]] = {name: [] for name in names.values()}
    for name, keys in decided.items():
        assignment[names[name]] += [key for key in keys if kind != "part" or random.random() < 0.5]
    assignment[next(iter(assignment))].append(("absent", 0))
    known = {
        names[id_]: known_in_plan(each, random)
        for id_, each in members.items()
        if kind != "strangers" and (names[id_].startswith(ANONYMOUS) or random.random() < 0.5)
    }
    document: dict[str, Any] = {"group": "g", "version": 1, "assignment": assignment, "members": known}
    if random.random() < 0.8:
        document["lags"] = {
            topic: [rebalance.lags[topic, p] for p in range(count)] for topic, count in rebalance.topics.items()
        }
    case.content = json.dumps(document)
    then, now = (Counter(map(_client, several)) for several in (decided, rebalance.members))
    case.stands_for = {
        names[id_]: name
        for id_ in decided
        for name in rebalance.members
        if kind != "strangers" and _client(id_) == _client(name) and then[_client(id_)] == now[_client(id_)] == 1
    }
    return case


def leftovers_shared(case: Told, planned: Given) -> dict[Partition, str]:
    """Return the member of each partition that the plan gives to nobody.

    They stay with their owners; the others go to the member with the fewest partitions, and among these to the one with
    the least lag. Then full members give one at a time to those that have two less.
    """
    plan, reads = case.plan, {name: set(each.topics) for name, each in case.rebalance.members.items()}
    lags = _lags(plan)
    holding = {name: list(planned.get(name, ())) for name in sorted(reads)}
    shared: dict[str, list[Partition]] = {name: [] for name in holding}

    def rank(name: str) -> tuple[int, int]:
        return len(holding[name]), sum(lags.get(key, 0) for key in holding[name])

    def give(key: Partition, name: str) -> None:
        holding[name].append(key)
        shared[name].append(key)

    left = sorted(case.existing - {key for keys in planned.values() for key in keys})
    owners = {key: name for name, keys in case.had().items() for key in keys}
    for key in left:
        if key in owners:
            give(key, owners[key])
    for key in sorted(left, key=lambda key: -lags.get(key, 0)):
        if key not in owners:
            give(key, min((name for name in holding if key[0] in reads[name]), key=rank))
    while (step := _evening(holding, shared, reads, lags, rank)) is not None:
        key, full, few = step
        holding[full].remove(key)
        shared[full].remove(key)
        give(key, few)
    return {key: name for name, keys in shared.items() for key in keys}


def _evening(holding: Given, shared: Given, reads: Any, lags: Any, rank: Any) -> tuple[Partition, str, str] | None:
    """Return a leftover of the fullest member that can give one, and the emptiest member with two less that reads it.

    It is the one whose lag is nearest to half of the difference between the two.
    """
    order = sorted(holding, key=rank)
    for full in reversed(order):
        for few in order:
            movable = [key for key in shared[full] if key[0] in reads[few]]
            if len(holding[full]) - len(holding[few]) > 1 and movable:
                half = int((rank(full)[1] - rank(few)[1]) / 2)
                return min(movable, key=lambda key: abs(lags.get(key, 0) - half)), full, few
    return None


def _lags(plan: FollowedPlan | None) -> dict[Partition, int]:
    found: Mapping[str, Any] = {} if plan is None else plan.lags
    return {(topic, p): lag for topic, several in found.items() for p, lag in enumerate(several)}


def _client(member_id: str) -> str:
    return member_id[:-37]


def _generation(subscription: Any) -> int:
    return -1 if subscription.generation is None else int(subscription.generation)
