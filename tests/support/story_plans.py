"""Plans for recorded rebalances."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from evenlag.live.assignor.deciding import dealt
from evenlag.live.followed_plan import FollowedPlan
from evenlag.simulation.plan_assignor import lags_of, share_leftovers
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
    """Return the member of each partition that the plan gives to nobody, by the simulation's rule."""
    reads = {name: each.topics for name, each in case.rebalance.members.items()}
    owners = {key: name for name, keys in case.had().items() for key in keys}
    assert case.plan is not None
    return share_leftovers(planned, case.existing, owners, reads, lags_of(case.plan))


def _client(member_id: str) -> str:
    return member_id[:-37]


def _generation(subscription: Any) -> int:
    return -1 if subscription.generation is None else int(subscription.generation)
