"""Small stories of KIP-848 groups, told to a real coordinator or to the simulation's model of it.

`python -m tests.support.heartbeat_stories` records the answers of a real broker in tests/records. Set
`EVENLAG_KAFKA=4.4.0` to record another version.

A step is a request of one client, or a pause:

* `join a [static=NAME] [topics=t+u] [by=ASSIGNOR] [within=S]`: `a` is also the id of the member
* `beat a [epoch=N] [topics=t+u] [by=ASSIGNOR] [owns=t0+t1|none]`, with nothing else
* `ack a …` also has the partitions that the member was last told to read, `full a …` has everything
* `leave a`, `away a` (it will come back), `commit a [epoch=N]`, `grow TOPIC partitions=N`, `wait S`

A line of the outcome has the step, the answers, and the group as `ConsumerGroupDescribe` has it: state, epochs of the
group and its target assignment, assignor, and of each member the epoch, the partitions and the target, if that differs.
Epochs are counted from 1; in Kafka 4.4 the first one is 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Protocol

from evenlag.live.cluster.stopped import LEFT_FOR_NOW
from evenlag.live.group_state import Description, TopicPartition
from evenlag.simulation.consumer_group import JOIN, LEAVE, ConsumerGroup, Heartbeat
from evenlag.simulation.group_answers import Answer, Code, Pending
from tests.support.story_telling import Clocked, Telling, outcomes_of, record, with_drawn

TOPICS = {"t": 4, "u": 3, "stories": 1}  # of all groups; the last one for commits
SESSION = 30.0  # seconds
WITHIN = 60.0  # seconds to give up partitions, unless a story says otherwise

PROPERTIES = f"""\
group.consumer.session.timeout.ms={1000 * SESSION:.0f}
group.consumer.min.session.timeout.ms={1000 * SESSION:.0f}
group.consumer.assignment.interval.ms=0
"""  # the last one is for Kafka 4.4, which waits a second by default
DRAWN_STEPS = 14


def golden(kafka: str) -> str:
    """Return the name of the record of a broker, which differs from one version to the next."""
    return f"heartbeats-{kafka[:3]}.json"


TWO = "join a; join b; ack a; ack a owns=t0+t1; beat b"
STATIC = "join s static=s; join a; ack s owns=t0+t1; beat a"


def drawn(seed: int) -> str:
    """Return a story of three members and two processes with one static name; nothing times out."""
    random = Random(seed)
    steps = ["join a", "join b"]
    for _ in range(DRAWN_STEPS):
        verb = random.choice(["join", "join", "ack", "ack", "ack", "beat", "full", "leave", "away", "commit"])
        who = random.choice({"join": "abcst", "away": "st"}.get(verb, "aabbcst"))
        words = [verb, who]
        if verb == "join":
            words += ["static=s"] * (who in "st")
        if verb in ("join", "ack", "full"):
            words += [f"topics={random.choice('ttu')}"] * (random.random() < 0.2)
        steps.append(" ".join(words))
    return "; ".join(steps)


WRITTEN = {
    "a member alone": "join a; beat a; ack a; full a; commit a; leave a; beat a; commit a; commit a epoch=-1",
    "a second member": f"{TWO}; ack b; commit a; commit b; full a",
    "strangers": "beat z; leave z; commit z; commit z epoch=-1; join a; beat z epoch=0; beat z; leave z; commit z; "
    "commit z epoch=-1",
    "a join that owns something": "join a owns=t0; join a; ack a",
    "a beat with epoch 0": "beat a epoch=0; join a; beat a epoch=0; beat a",
    "a static beat without a name": "join a; away a; beat a epoch=-3; beat a",
    "a member joins twice": f"{TWO}; join b; beat b; ack a; join a; ack b; ack a",
    "a member joins twice while it is new": "join a; join a; join b; join b; ack a owns=t0+t1; join a; ack b",
    "the epoch before": f"{TWO}; beat a epoch=1; ack a epoch=1; ack a epoch=1 owns=t0; ack a epoch=1 owns=t3; "
    "full a epoch=1; beat a",
    "an older epoch": f"{TWO}; join c; ack a; ack a owns=t0; ack a epoch=1; beat a epoch=1; beat b epoch=1; beat a",
    "an epoch of the future": f"{TWO}; beat a epoch=9; ack b epoch=3; commit a epoch=3; beat a",
    "an epoch that a new member has": "join a; beat a epoch=0; ack a epoch=0; ack a epoch=0 owns=none; beat a",
    "a member that is fenced joins again": f"{TWO}; beat a epoch=9; join a; ack a; ack b",
    "a commit with an old epoch": "join a; join b; commit a epoch=1; ack a; commit a; ack a owns=t0+t1; "
    "commit a epoch=1; commit a epoch=2; commit b epoch=0; commit b",
    "a commit while partitions are given up": "join a; join b; ack a; commit a; commit b; commit a epoch=0",
    "a commit of a member that has left": f"{TWO}; leave b; commit b; commit a; beat a; commit a; commit a epoch=2",
    "a member gives up too little": "join a; join b; ack a; ack a owns=t0+t1+t2; beat b; ack a owns=t0+t1; beat b",
    "a member gives up too much": "join a; join b; ack a; ack a owns=none; beat b; full a; ack b",
    "a member gives up at once": "join a; join b; ack a owns=t0+t1; beat b; ack a",
    "a member that only beats": "join a; join b; beat a; beat a; beat b; ack a; ack a owns=t0+t1; beat b",
    "a third member": f"{TWO}; join c; ack a; ack b; ack a; beat c; ack b; beat c; ack a owns=t0; ack c; beat b",
    "a third member while one gives up": "join a; join b; ack a; join c; ack a owns=t0+t1; beat b; ack a; beat c; "
    "ack a owns=t0; ack b; beat c",
    "two join at once": "join a; join b; join c; ack a; ack a owns=t0+t1; beat b; beat c",
    "a member leaves": f"{TWO}; leave b; beat a; ack a",
    "a member leaves before it has any partitions": "join a; join b; leave b; ack a; ack a; full a",
    "a member leaves while another gives up": "join a; join b; ack a; leave b; beat a; ack a; ack a owns=t0+t1; ack a",
    "a member leaves that gives up": "join a; join b; ack a; leave a; beat b; ack b",
    "a partition comes back while it is given up": "join a; join b; ack a; leave b; ack a owns=t0+t1; beat a; ack a",
    "a member with more than one change": "join a; join b; ack a; join c; join d; beat a; ack a owns=t0+t1; ack a; "
    "ack a owns=t0; beat b; beat c; beat d",
    "all leave": f"{TWO}; leave a; leave b; commit a; commit a epoch=-1; beat a; join a",
    "a group forms again": "join a; leave a; join b; ack b; join a; ack b owns=t0+t1; beat a",
    "the same member comes back": f"{TWO}; leave b; join b; ack a; beat b; ack a",
    "more members than partitions": "join a topics=u; join b topics=u; join c topics=u; join d topics=u; "
    "ack a owns=u0; ack a; beat b; beat c; beat d; leave a; beat d; beat b",
    "a member of another topic": "join a; join b topics=u; ack a; ack b; commit b; leave a; ack b",
    "a member changes its topic": "join a; ack a topics=u; ack a; ack a owns=none; ack a; beat a",
    "a member changes its topic, which another reads": f"{TWO}; ack b topics=u; ack b owns=none; beat a; ack b; ack a",
    "a member reads one more topic": "join a; join b; ack a owns=t0+t1; beat b; ack a topics=t+u; ack a; beat b",
    "a member reads one topic less": "join a topics=t+u; ack a; ack a topics=t; ack a owns=t0+t1+t2+t3; beat a",
    "a topic that is not there": "join a topics=x; beat a; ack a; grow x partitions=2; wait 1; beat a; ack a",
    "one topic is not there": "join a topics=t+x; ack a; join b; ack a owns=t0+t1; beat b; grow x partitions=1; "
    "wait 1; ack a; ack b",
    "a topic grows": "grow x partitions=2; wait 1; join a topics=x; ack a; grow x partitions=4; wait 1; ack a; ack a; "
    "join b topics=x; ack a",
    "a topic grows while a member gives up": "grow x partitions=2; wait 1; join a topics=x; join b topics=x; ack a; "
    "grow x partitions=4; wait 1; ack a; ack a owns=x0; beat b; ack a; ack b",
    "a topic grows that nobody reads": "join a; grow x partitions=2; wait 1; ack a",
    "the assignor range": "join a by=range; join b by=range; ack a owns=t0+t1; beat b; join c by=range; ack a; ack b; "
    "ack a owns=t0; ack b; beat c",
    "range with two topics": "join a by=range topics=t+u; join b by=range topics=t+u; ack a; "
    "ack a owns=t0+t1+u0+u1; beat b; leave a; beat b",
    "range and static members": "join b by=range; join a static=z by=range; join c static=y by=range; ack b; "
    "ack b owns=none; beat a; beat c; ack b; ack a; ack c",
    "most vote for range": "join a; join b by=range; beat a; join c by=range; ack a by=range; ack a owns=t0+t1; beat b",
    "an assignor that is not there": "join a by=none; join a; beat a by=none; beat a",
    "a change of the vote alone": "join a; join b; ack a by=range; ack a owns=t0+t1; beat b by=range; beat a; join c; "
    "ack a; ack b",
    "a static member leaves for good": f"{STATIC}; leave s; beat a; join s static=s; ack a owns=t2+t3; ack a; beat s",
    "a static member is away and comes back": f"{STATIC}; away s; beat a; commit s epoch=-2; commit s epoch=2; "
    "join s static=s; ack s; beat a",
    "a static member comes back with another id": f"{STATIC}; away s; join t static=s; ack t; beat s; commit s; "
    "leave s; commit t; beat a",
    "a static name in use": f"{STATIC}; join t static=s; join s static=s; beat t; beat s; commit s",
    "a static name that nobody has": f"{STATIC}; leave s; beat s; commit s; away s",
    "a static member is away while another joins": f"{STATIC}; away s; join b; ack a; ack a owns=t2; beat b; "
    "join t static=s; ack t; ack t owns=t0; beat b; ack a",
    "a static member is away while one leaves": f"{STATIC}; away s; leave a; beat b; join t static=s; ack t; ack t",
    "a static member is away that gives up": "join s static=s; join a; ack s; away s; beat a; join t static=s; ack t; "
    "beat a; ack t",
    "a static member beats while it is away": f"{STATIC}; away s; beat s epoch=2; ack s epoch=2; away s; leave s; "
    "beat a",
    "a static member comes back for another topic": f"{STATIC}; away s; join t static=s topics=u; ack t; beat a; ack a",
    "a static member that waits is away": "join a; join s static=s; away s; ack a; ack a owns=t0+t1; join t static=s; "
    "beat t; ack a",
    "two static members change places": "join s static=s; join t static=t; ack s owns=t0+t1; beat t; away s; away t; "
    "join c static=t; join d static=s; ack c; ack d",
    "all static members are away": "join s static=s; away s; commit s epoch=-2; wait 1; join t static=s; ack t",
    "a static member without its name": f"{STATIC}; beat b epoch=2; join b; ack s; away b; beat s",
    "a silent member": f"{TWO}; wait 10; beat a; wait 17; beat a; wait 1; beat b; ack a; commit b",
    "all members are silent": "join a; wait 31; beat a; commit a epoch=-1; join a",
    "a commit keeps nobody": "join a; wait 15; commit a; wait 15; commit a; beat a",
    "a silent static member": f"{STATIC}; wait 20; beat a; wait 10; ack a; join s static=s; ack a",
    "a static member that stays away": f"{STATIC}; away s; wait 20; beat a; wait 10; ack a; join s static=s; ack a",
    "a member that does not give up in time": "join a within=5.5; join b; beat a; wait 3; beat a; wait 1; beat a; "
    "beat b",
    "a member that gives up in time": "join a within=5.5; join b; beat a; wait 2; ack a owns=t0+t1; wait 4; beat a; "
    "beat b",
    "time to give up begins anew": "join a within=6.5; join b; beat a; wait 2; join c; ack a owns=t0+t1; ack a; "
    "wait 3; ack a; wait 3; ack a; beat b",
    "a static member that does not give up in time": "join s static=s within=5; join b; beat s; wait 5; beat s; beat b",
    "a member is away that does not give up in time": "join s static=s within=5; join b; beat s; away s; wait 5; "
    "beat b; join t static=s; beat b",
}  # fmt: skip
STORIES = with_drawn(WRITTEN, drawn)


class Driver(Clocked, Protocol):
    """A coordinator with one KIP-848 group."""

    def group(self) -> Description:
        """Describe the group."""

    def heartbeat(self, asked: Heartbeat) -> Pending:
        """Send a heartbeat."""

    def commit(self, member_id: str, epoch: int, instance: str | None) -> Pending:
        """Commit an offset."""

    def grow(self, topic: str, count: int) -> Pending:
        """Create a topic, or give it more partitions."""


class Model:
    """The simulation's model."""

    def __init__(self, kafka: str = "4.1") -> None:
        self._topics = dict(TOPICS)
        self._group, self._now = ConsumerGroup(self._topics, session=SESSION, kafka=kafka), 0.0

    def wait(self, seconds: float) -> None:
        self._now += seconds

    def group(self) -> Description:
        return self._group.describe(self._now)

    def heartbeat(self, asked: Heartbeat) -> Pending:
        return Pending(self._group.heartbeat(self._now, asked))

    def commit(self, member_id: str, epoch: int, _instance: str | None) -> Pending:
        return Pending(Answer(self._group.commit(self._now, member_id, epoch)))

    def grow(self, topic: str, count: int) -> Pending:
        self._topics[topic] = count
        return Pending()


class HeartbeatTelling(Telling):
    """A story of a KIP-848 group on its way."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._driver = driver
        self._before: int | None = None  # the epoch before the first one
        self._epochs: dict[str, int] = {}
        self._instances: dict[str, str] = {}
        self._topics: dict[str, list[str]] = {}
        self._holds: dict[str, frozenset[TopicPartition]] = {}

    def _state(self) -> str:
        group = self._driver.group()
        words = [group.state]
        if group.epoch is not None and group.assignment_epoch is not None:
            words.append(f"{self._counted(group.epoch)}/{self._counted(group.assignment_epoch)} {group.assignor}")
        for member in group.members:
            holds, target = shown(member.partitions), shown(member.target)
            epoch = self._counted(member.epoch or 0)
            words.append(f"{member.consumer_id}@{epoch}: {holds}" + (f" of {target}" if holds != target else ""))
        return ", ".join(words)

    def _counted(self, epoch: int) -> int:
        """Return an epoch counted from 1."""
        return epoch - (self._before or 0) if epoch > 0 else epoch

    def _told(self, verb: str, who: str, answer: Answer) -> str:
        words = [verb, who, str(answer.code)]
        if answer.code is Code.NONE and verb != "commit":
            if self._before is None:
                self._before = answer.generation - 1
            self._epochs[who] = self._counted(answer.generation)
            words.append(f"epoch {self._epochs[who]}")
            if answer.assignment is not None:
                self._holds[who] = answer.assignment
                words.append(f"reads {shown(answer.assignment)}")
        return " ".join(words)

    def _epoch(self, who: str, given: Mapping[str, str]) -> int:
        epoch = int(given.get("epoch", self._epochs.get(who, 1)))
        return epoch + (self._before or 0) if epoch > 0 else epoch

    def _sent(
        self, who: str, given: Mapping[str, str], epoch: int | None = None, *, owns: bool = False, full: bool = False
    ) -> Pending:
        if "topics" in given:
            self._topics[who] = given["topics"].split("+")
        owned = self._holds.get(who, frozenset()) if owns else None
        if "owns" in given:
            owned = frozenset() if given["owns"] == "none" else frozenset(map(_key, given["owns"].split("+")))
        within = float(given.get("within", WITHIN)) if full or "within" in given else None
        epoch = self._epoch(who, given) if epoch is None else epoch
        topics = self._topics.setdefault(who, ["t"]) if full or "topics" in given else None
        asked = Heartbeat(who, epoch, None, self._instances.get(who), topics, owned, given.get("by"), within)
        return self._driver.heartbeat(asked)

    def _join(self, who: str, given: Mapping[str, str]) -> Pending:
        if "static" in given:
            self._instances[who] = given["static"]
        return self._sent(who, {"owns": "none"} | dict(given), JOIN, full=True)

    def _beat(self, who: str, given: Mapping[str, str]) -> Pending:
        return self._sent(who, given)

    def _ack(self, who: str, given: Mapping[str, str]) -> Pending:
        return self._sent(who, given, owns=True)

    def _full(self, who: str, given: Mapping[str, str]) -> Pending:
        return self._sent(who, given, owns=True, full=True)

    def _leave(self, who: str, given: Mapping[str, str]) -> Pending:
        return self._sent(who, given, LEAVE)

    def _away(self, who: str, given: Mapping[str, str]) -> Pending:
        return self._sent(who, given, LEFT_FOR_NOW)

    def _commit(self, who: str, given: Mapping[str, str]) -> Pending:
        return self._driver.commit(who, self._epoch(who, given), self._instances.get(who))

    def _grow(self, topic: str, given: Mapping[str, str]) -> Pending:
        return self._driver.grow(topic, int(given["partitions"]))


def _key(text: str) -> TopicPartition:
    return text[0], int(text[1:])


def shown(keys: Iterable[TopicPartition]) -> str:
    """Return partitions in words, such as `t0 t1`."""
    return " ".join(f"{topic}{number}" for topic, number in sorted(keys)) or "nothing"


if __name__ == "__main__":
    from tests.support.asked_coordinator import ready_broker
    from tests.support.asked_heartbeats import AskedHeartbeats

    with ready_broker(PROPERTIES, TOPICS) as (bootstrap, kafka):
        outcomes = outcomes_of(STORIES, lambda group: HeartbeatTelling(AskedHeartbeats(bootstrap, group)))
    record(golden(kafka), kafka, outcomes)
