"""Small stories of classic groups, told to a real coordinator or to the simulation's model of it.

`python -m tests.support.coordinator_stories` records the answers of a real broker in tests/records.

A step is a request of one client, or a pause:

* `join a [as=ID] [static=NAME] [protocols=x+y] [sends=TEXT] [session=S] [rebalance=S]`: `as=none` joins without an id
* `sync a [b=TEXT …] [gen=N]`, `beat a [gen=N]`, `commit a [gen=N]`, `leave a`; a stranger `?` has no id and generation
* `wait S`

A line of the outcome has the step, the answers that have come since, and the state of the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Protocol

from evenlag.simulation.coordinator import Coordinator
from evenlag.simulation.group_answers import NO_GENERATION, NO_MEMBER, Answer, Code, Pending
from tests.support.story_telling import Clocked, Telling, outcomes_of, record, with_drawn

GOLDEN = "coordinator-4.1.json"
INITIAL_DELAY = 2.0  # seconds for which an empty group waits for more members
PROPERTIES = f"group.initial.rebalance.delay.ms={1000 * INITIAL_DELAY:.0f}"
SESSION, REBALANCE = 30.0, 30.0  # seconds, unless a story says otherwise
DRAWN_STEPS = 12

FORMED = "join a; join b; join a; join b; wait 3; sync b; sync a a=one b=two"
STATIC = "join s static=s; wait 1; sync s s=all"


def drawn(seed: int) -> str:
    """Return a story of two members, one that may join and two processes with one static name; nothing times out."""
    random = Random(seed)
    steps = [FORMED]
    for _ in range(DRAWN_STEPS):
        verb = random.choice(["join", "join", "join", "sync", "sync", "beat", "commit", "leave"])
        who = random.choice("aabbcst" if verb != "leave" else "bcs")  # somebody stays: an empty group would wait
        words = [verb, who]
        if verb == "join":
            words += ["static=s"] * (who in "st") + ["sends=more"] * (random.random() < 0.3)
        if verb == "sync" and who == "a":
            words += ["a=one", "b=two"]
        steps.append(" ".join(words))
    return "; ".join(steps)


WRITTEN = {
    "a group forms": FORMED,
    "a member alone": "join a; join a; wait 1; sync a a=all; beat a; commit a",
    "an id is needed": "join a as=none; join a as=none; wait 0.5",
    "an unknown id": "join a as=nobody; beat a gen=1; commit a gen=1; leave a; sync a gen=1",
    "strangers commit while a group is empty": "commit ?; join a; join a; wait 1; commit ?; sync a a=all; commit ?",
    "an old generation": f"{FORMED}; beat a gen=0; commit a gen=0; sync a gen=0; beat a gen=2; commit b gen=2",
    "a second sync": f"{FORMED}; sync b; sync a a=other b=other; sync b",
    "a follower joins again and sends the same": f"{FORMED}; join b; beat a; beat b",
    "a follower joins again and sends something else": f"{FORMED}; join b sends=more; beat a; commit a; join a; "
    "sync b; sync a a=three b=four",
    "the leader joins again": f"{FORMED}; join a; beat b; commit b; join b; commit b; sync a a=three b=four; sync b",
    "a commit while the leader assigns": f"{FORMED}; join a; join b; commit a; commit b gen=1; beat b",
    "a third member": f"{FORMED}; join c; join c; beat a; join a; join b; sync c; sync b; sync a a=x b=y c=z",
    "a third member while the leader assigns": "join a; join a; wait 1; join b; join b; sync a a=all; join a; "
    "sync b; sync a a=x b=y",
    "a member leaves": f"{FORMED}; leave b; beat a; commit a; join a; sync a a=all",
    "the leader leaves": f"{FORMED}; leave a; beat b; join b; sync b b=all",
    "all leave": f"{FORMED}; leave a; leave b; commit ?; beat a",
    "a group forms again": "join a; join a; wait 1; sync a a=all; leave a; join b; join b; wait 1; sync b b=all",
    "a member leaves while a group waits": f"{FORMED}; join a; leave b",
    "a member that has not joined leaves": "join a; leave a; join a",
    "an id that is not used holds a rebalance up": f"{FORMED}; join c; join a; join b; wait 1; leave c",
    "a silent member": "join a session=6.5; join b; join a session=6.5; join b; wait 3; sync b; sync a a=one b=two; "
    "wait 2.5; beat b; wait 2; beat b; commit a; join b; sync b b=all",
    "a member that only beats during a rebalance": "join a rebalance=4.5; join b rebalance=4.5; join a rebalance=4.5; "
    "join b rebalance=4.5; wait 2; sync b; sync a a=one b=two; join a rebalance=4.5; beat b; wait 3; beat b; commit b",
    "a leader that only beats": "join a rebalance=6; join b rebalance=6; join a rebalance=6; join b rebalance=6; "
    "wait 3; sync b; beat a; wait 2.5; beat a; beat b",
    "a static member comes back": f"{STATIC}; join t static=s; sync t; beat s; commit s; beat t; commit t",
    "a static member comes back while a group waits": f"{STATIC}; join a; join a; join t static=s; wait 0.5; beat s; "
    "sync t t=x a=y; sync a",
    "a static member that is fenced joins": f"{STATIC}; join t static=s; join s; sync s; leave t",
    "a static follower comes back": "join a; join a; join s static=s; wait 2; sync s; sync a a=one s=two; "
    "join t static=s; sync t; beat a; join t static=s as=none; beat t",
    "a static member that sends something else": f"{STATIC}; join t static=s sends=more; sync t; beat t",
    "no protocol in common": f"{FORMED}; join c protocols=other; beat a",
    "the protocol that most prefer": "join a protocols=x+y; join b protocols=y+x; join c protocols=y+x; "
    "join a protocols=x+y; join b protocols=y+x; join c protocols=y+x; wait 5; beat a",
    "a member joins twice while a group waits": f"{FORMED}; join b sends=x; join b sends=y; join a; wait 1",
    "a member beats while its request to join waits": f"{FORMED}; join b sends=x; beat b; commit b; join a",
    "a member syncs twice while the leader assigns": f"{FORMED}; join a; join b; sync b; sync b; sync a a=x b=y",
    "a member syncs while a group waits": f"{FORMED}; join a; sync b; sync a a=x b=y; join b",
    "a follower's assignments do not count": f"{FORMED}; join a; join b; sync b a=no b=no; sync a a=x b=y",
    "an assignment without a member": f"{FORMED}; join a; join b; sync b; sync a a=x; sync b",
    "a follower joins again while the leader assigns": f"{FORMED}; join a; join b; join b; sync b; sync a a=x b=y",
    "a follower changes while the leader assigns": f"{FORMED}; join a; join b; join b sends=x; sync a a=x b=y; "
    "join a; sync b; sync a a=x b=y",
    "a follower leaves while the leader assigns": f"{FORMED}; join a; join b; leave b; sync a a=x; join a; sync a a=x",
    "the leader leaves while it assigns": f"{FORMED}; join a; join b; sync b; leave a; join b; sync b b=all",
    "an id that is not used expires": "join a; join a; wait 1; sync a a=all; join b session=6.5; join c; join c; "
    "join a; wait 5; join b session=6.5; sync c",
    "a removed member joins": f"{FORMED}; leave b; join b; join a; sync b; commit b",
    "all members are silent": "join a session=6.5; join a session=6.5; wait 1; sync a a=all; wait 7; beat a; commit ?",
    "a silent leader": "join a session=6.5; join b; join a session=6.5; join b; wait 3; sync b; sync a a=one b=two; "
    "wait 5; beat b; join b; sync b b=all; beat a",
    "a follower is silent while the leader assigns": "join a; join b session=6.5; join a; join b session=6.5; wait 3; "
    "beat a; wait 5; beat a; join a; sync a a=all",
    "a commit keeps a member": "join a session=8.5; join a session=8.5; wait 1; sync a a=all; wait 3; commit a; "
    "wait 3; beat a",
    "the longest time to rebalance counts": "join a rebalance=3.5; join b rebalance=9.5; join a rebalance=3.5; "
    "join b rebalance=9.5; wait 3; sync b; sync a a=one b=two; join a rebalance=3.5; wait 4; beat b; wait 3; beat a",
    "members change what they prefer": "join a protocols=x+y; join b protocols=x+y; join a protocols=x+y; "
    "join b protocols=x+y; wait 3; sync b; sync a a=one b=two; join a protocols=y+x; join b protocols=y+x; sync b",
    "a member that knows less": "join a protocols=x+y; join a protocols=x+y; wait 1; sync a a=all; join b protocols=y; "
    "join b protocols=y; join a protocols=x+y; sync b",
    "a member that gives a protocol up": "join a protocols=x+y; join b protocols=x+y; join a protocols=x+y; "
    "join b protocols=x+y; wait 3; sync b; sync a a=one b=two; join b protocols=z; join b protocols=y; "
    "join a protocols=x+y",
    "late members prolong the wait": "join a; join b; join c; join a; join b; wait 0.2; join c; wait 2; beat a",
    "a static member alone leaves": f"{STATIC}; leave s; beat s; join t static=s; wait 1",
    "a silent static member": "join s static=s session=6.5; wait 1; sync s s=all; wait 7; beat s; join t static=s; "
    "wait 1; sync t t=all",
    "an unknown static member": "join s static=s as=nobody; join a; join a; wait 1; sync a a=all; "
    "join s static=s as=nobody; sync s gen=1; beat s gen=1; commit s gen=1",
    "two processes with one static name": f"{FORMED}; join s static=s; join t static=s; join a; join b; sync t; "
    "sync b; sync a a=x b=y t=z; beat s; beat t",
    "a static follower is away in a rebalance": "join a rebalance=9.5; join a rebalance=9.5; "
    "join s static=s rebalance=9.5; wait 3; sync s; sync a a=one s=two; join a rebalance=9.5; wait 9; sync a a=x s=y; "
    "beat s; join s; sync s; beat a",
    "a static leader is away in a rebalance": "join a rebalance=9.5; join s static=s rebalance=9.5; "
    "join a rebalance=9.5; wait 3; sync a; sync s s=one a=two; join a rebalance=9.5 sends=x; wait 9; sync a a=x s=y; "
    "beat s; join s; sync s",
    "a static member that does not sync": "join a rebalance=4.5; join a rebalance=4.5; join s static=s rebalance=4.5; "
    "wait 2; sync s; sync a a=one s=two; join a rebalance=4.5; wait 4; sync a a=x s=y; wait 2.5; beat s; beat a",
    "a static member comes back while the leader assigns": f"{STATIC}; join a; join a; join s; join t static=s; "
    "sync s; join a; sync a; sync t t=x a=y",
    "a static member comes back and is the leader": f"{STATIC}; join t static=s; join a; join a; beat t; join t; "
    "sync a; sync t t=x a=y",
    "a static member comes back with less": "join s static=s protocols=x+y; wait 1; sync s s=all; "
    "join t static=s protocols=y; sync t; sync t t=x",
}  # fmt: skip
STORIES = with_drawn(WRITTEN, drawn)


class Driver(Clocked, Protocol):
    """A coordinator with one classic group."""

    def state(self) -> str:
        """Return the state of the group."""

    def join(
        self, member_id: str, protocols: Mapping[str, bytes], instance: str | None, session: float, rebalance: float
    ) -> Pending:
        """Send a request to join."""

    def sync(self, member_id: str, generation: int, assignments: Mapping[str, bytes], instance: str | None) -> Pending:
        """Send a request to sync."""

    def beat(self, member_id: str, generation: int, instance: str | None) -> Pending:
        """Send a heartbeat."""

    def commit(self, member_id: str, generation: int, instance: str | None) -> Pending:
        """Commit an offset."""

    def leave(self, member_id: str) -> Pending:
        """Send a request to leave."""


class Model:
    """The simulation's model."""

    def __init__(self) -> None:
        self._coordinator, self._now = Coordinator(INITIAL_DELAY), 0.0

    def wait(self, seconds: float) -> None:
        self._now += seconds
        self._coordinator.advance(self._now)

    def state(self) -> str:
        return str(self._coordinator.state)

    def join(
        self, member_id: str, protocols: Mapping[str, bytes], instance: str | None, session: float, rebalance: float
    ) -> Pending:
        return self._coordinator.join(
            self._now, member_id, protocols, instance=instance, session=session, rebalance=rebalance
        )

    def sync(self, member_id: str, generation: int, assignments: Mapping[str, bytes], instance: str | None) -> Pending:
        return self._coordinator.sync(self._now, member_id, generation, assignments, instance)

    def beat(self, member_id: str, generation: int, instance: str | None) -> Pending:
        return Pending(Answer(self._coordinator.heartbeat(self._now, member_id, generation, instance)))

    def commit(self, member_id: str, generation: int, instance: str | None) -> Pending:
        return Pending(Answer(self._coordinator.commit(self._now, member_id, generation, instance)))

    def leave(self, member_id: str) -> Pending:
        return Pending(Answer(self._coordinator.leave(self._now, member_id)))


class ClassicTelling(Telling):
    """A story of a classic group on its way."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._driver = driver
        self._ids: dict[str, str] = {}
        self._generations: dict[str, int] = {}
        self._instances: dict[str, str] = {}

    def _state(self) -> str:
        return self._driver.state()

    def _told(self, verb: str, who: str, answer: Answer) -> str:
        if verb == "join" and answer.code in (Code.NONE, Code.MEMBER_ID_REQUIRED):
            self._ids[who] = answer.member_id
        words = [verb, who, str(answer.code)]
        if verb == "join" and answer.code is Code.NONE:
            self._generations[who] = answer.generation
            names = {member_id: name for name, member_id in sorted(self._ids.items(), reverse=True)}
            # Whoever joins first leads; ids of members that wait for their answers are not known yet.
            leads = answer.leader == answer.member_id
            members = {names.get(each, "?"): sent.decode() for each, sent in answer.members.items()}
            words += [f"generation {answer.generation}", f"by {answer.protocol}", "leads" if leads else "follows"]
            words += [f"{len(members)} members sent {sorted(members.values())}"] if members else []
            words += ["skips"] if answer.skip else []
        if verb == "sync" and answer.code is Code.NONE:
            words.append(f"gets {(answer.assignment or b'').decode()!r}")
        return " ".join(words)

    def _me(self, who: str, given: Mapping[str, str]) -> tuple[str, int, str | None]:
        generation = int(given.get("gen", self._generations.get(who, NO_GENERATION)))
        unknown = NO_MEMBER if who == "?" else "nobody"
        return self._ids.get(who, unknown), generation, self._instances.get(who)

    def _join(self, who: str, given: Mapping[str, str]) -> Pending:
        if "static" in given:
            self._instances[who] = given["static"]
        member_id = {"none": NO_MEMBER, "nobody": "nobody"}.get(given.get("as", ""), self._ids.get(who, NO_MEMBER))
        sent = given.get("sends", who).encode()
        protocols = dict.fromkeys(given.get("protocols", "range").split("+"), sent)
        times = float(given.get("session", SESSION)), float(given.get("rebalance", REBALANCE))
        return self._driver.join(member_id, protocols, self._instances.get(who), *times)

    def _sync(self, who: str, given: Mapping[str, str]) -> Pending:
        member_id, generation, instance = self._me(who, given)
        made = {self._ids[name]: text.encode() for name, text in given.items() if name != "gen"}
        return self._driver.sync(member_id, generation, made, instance)

    def _beat(self, who: str, given: Mapping[str, str]) -> Pending:
        return self._driver.beat(*self._me(who, given))

    def _commit(self, who: str, given: Mapping[str, str]) -> Pending:
        return self._driver.commit(*self._me(who, given))

    def _leave(self, who: str, given: Mapping[str, str]) -> Pending:
        return self._driver.leave(self._me(who, given)[0])


if __name__ == "__main__":
    from tests.support.asked_coordinator import Asked, ready_broker

    with ready_broker(PROPERTIES) as (bootstrap, kafka):
        outcomes = outcomes_of(STORIES, lambda group: ClassicTelling(Asked(bootstrap, group)))
    record(GOLDEN, kafka, outcomes)
