"""Two loops that publish to one topic, and followers under changing traffic, in chaos on a real broker.

`EVENLAG_LOOP_MINUTES=30 pytest -s …` goes on for longer, and prints the figures of docs/contributing/broker-trials.md.
"""

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from evenlag.errors import InvalidPlanError, SourceError
from evenlag.live.followed_plan import FollowedPlan, PlanTopic, publish
from tests.support.broker import Broker, running_broker
from tests.support.members import wait_until
from tests.support.readings import KeptFollowers, faults_of, processed, story_of, uncommitted
from tests.support.traffic import create_topics, ends
from tests.support.watched_loops import LEAST, Watch

MINUTES = float(os.environ.get("EVENLAG_LOOP_MINUTES", "4"))
GROUP, TOPIC, PLANS, PARTITIONS = "loop-chaos", "loop-chaos-orders", "loop-chaos-plans", 12
MAX_MOVES = 4
RATE = 60.0  # messages per second
HANDLING = 0.02  # seconds for a message
SKEW = 30.0  # seconds after which other partitions are busy
LEASE = 10.0  # seconds
SESSION = 45.0  # seconds after which the claim of a killed loop ends
GOES_ON = 400.0  # seconds
AT_ONCE = 2.0  # seconds within which a loop may not have seen a plan by hand
FEWEST, MOST = 3, 5  # followers
GARBAGE = (b"{not json", b"[]", b'{"group": "another", "version": 1, "assignment": {}}')


class Traffic:
    """Appends messages to the partitions at rates that change."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        self._random, self._over = random.Random(seed), threading.Event()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "message.timeout.ms": 900_000, "log_level": 0}
            | {"reconnect.backoff.max.ms": 500}
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        changes, weights = 0.0, [1.0] * PARTITIONS
        while not self._over.wait(1 / RATE):
            if time.monotonic() >= changes:
                changes = time.monotonic() + SKEW
                weights = [self._random.random() ** 4 for _ in range(PARTITIONS)]
            self._producer.produce(TOPIC, b"", partition=self._random.choices(range(PARTITIONS), weights)[0])
            self._producer.poll(0)

    def end(self) -> None:
        """Stop, and wait until the broker has all messages."""
        self._over.set()
        self._thread.join()
        assert self._producer.flush(120) == 0


@dataclass(frozen=True)
class Entry:
    """A record of the topic of plans, and the time in ms at which it was sent."""

    offset: int
    sent: int
    key: bytes
    value: bytes

    @property
    def plan(self) -> FollowedPlan | None:
        """The plan, if it is one of the group."""
        try:
            plan = FollowedPlan.from_dict(json.loads(self.value))
        except (ValueError, InvalidPlanError):
            return None
        return plan if plan.group == GROUP else None


class Record:
    """All records of the topic of plans, as they come."""

    def __init__(self, bootstrap: str) -> None:
        self.entries: list[Entry] = []
        self._over = threading.Event()
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "record", "log_level": 0})
        self._consumer.assign([TopicPartition(PLANS, 0, 0)])
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                value = message.value() or b""
                self.entries.append(Entry(message.offset(), message.timestamp()[1], message.key(), value))

    def end(self) -> None:
        """Stop reading."""
        self._over.set()
        self._thread.join()
        self._consumer.close()


@dataclass
class Chaos:
    """The followers, the loops, and what befalls them.

    Attributes
    ----------
    loops : dict of str to Watch
        The processes of both loops, by name; a later process has a later name.
    unsettled : list of (float, str or None)
        When, in seconds since 1970, a loop was killed or stopped; None for the broker.
    """

    broker: Broker
    followers: KeptFollowers
    record: Record
    folder: Path
    random: random.Random
    loops: dict[str, Watch] = field(default_factory=dict)
    unsettled: list[tuple[float, str | None]] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    garbage: list[bytes] = field(default_factory=list)

    # ---- what there is -------------------------------------------------------------------------------------------

    def start_loop(self, name: str) -> None:
        """Start a loop; a name that ran before gets an apostrophe."""
        while name in self.loops:
            name += "'"
        place = f"kafka://{self.broker.bootstrap}/{PLANS}"
        words = ("--horizon", "30s", "--max-moves", str(MAX_MOVES))
        self.loops[name] = Watch(self.broker, self.folder / name, GROUP, place, *words)

    def alive(self) -> list[str]:
        """Return the names of the followers that run."""
        return sorted(name for name, member in self.followers.items() if member.alive())

    def loops_of(self) -> dict[int, str]:
        """Return the loop of each version that a loop has logged."""
        return {version: name for name, loop in self.loops.items() for version in loop.published()}

    def writer(self) -> str:
        """Return the name of the loop that published last."""
        loops = self.loops_of()
        return loops[max(loops)]

    def waits(self, reason: str) -> int:
        """Return how often a loop has waited for this reason."""
        return sum(loop.waits().count(reason) for loop in self.loops.values())

    def publish(self, names: Sequence[str]) -> None:
        """Publish a plan for these followers by hand, with as few moves as even counts allow."""
        last = next(plan for each in reversed(self.record.entries) if (plan := each.plan) is not None)
        given = {name: list(last.assignment.get(name, ())) for name in names}
        left = [key for key, owner in last.owners.items() if owner not in given]
        while left or max(map(len, given.values())) > min(map(len, given.values())) + 1:
            fewest, most = (choose(names, key=lambda name: len(given[name])) for choose in (min, max))
            given[fewest].append(left.pop() if left else given[most].pop())
        place = PlanTopic(PLANS, {"bootstrap.servers": self.broker.bootstrap, "log_level": 0}, GROUP)
        document = {"group": GROUP, "assignment": given}  # without lags, which shows that it was by hand

        def published() -> bool:
            try:
                publish(document, place)
            except SourceError as error:  # a loop has published at the same time
                self.say(f"publishes again: {error}")
                return False
            return True

        wait_until(published, "a plan by hand")

    def say(self, text: str) -> None:
        """Print a line of the story."""
        print(f"{time.strftime('%H:%M:%S')} {text}; load {os.getloadavg()[0]:.1f}", flush=True)

    # ---- what happens --------------------------------------------------------------------------------------------

    def happen(self, deed: Callable[[], str]) -> None:
        """Do something, and wait until a loop goes on publishing."""
        what = deed()
        self.done[deed.__name__] += 1
        before, since = self.loops_of().keys(), time.monotonic()
        wait_until(lambda: self.loops_of().keys() - before, lambda: f"a plan after {what}: {self.story()}", GOES_ON)
        self.say(f"{what}; {self.writer()} published {time.monotonic() - since:.0f} s later")

    def begin(self) -> str:
        """Do nothing."""
        return "the start"

    def kill_follower(self) -> str:
        """Kill a follower, and start it again later."""
        name, away = self.random.choice(self.alive()), self.random.uniform(1, 50)
        self.followers[name].kill()
        time.sleep(away)
        lost = uncommitted(self.followers[name])
        self.followers.start(name)
        return f"{name} was killed with {lost} messages not committed, and away for {away:.0f} s"

    def pause_follower(self) -> str:
        """Stop a follower's process for a while."""
        name, away = self.random.choice(self.alive()), self.random.uniform(1, 50)
        self.followers[name].pause()
        time.sleep(away)
        self.followers.wakes.append((time.monotonic(), name))
        self.followers[name].wake()
        return f"{name} was stopped for {away:.0f} s"

    def kill_writer(self) -> str:
        """Kill the loop that writes, wait until the other one does, and start it again."""
        name, before = self.writer(), self.loops_of().keys()
        self.unsettled.append((time.time(), name))
        self.loops[name].kill()
        wait_until(lambda: self.loops_of().keys() - before, lambda: f"a takeover from {name}: {self.story()}", GOES_ON)
        self.start_loop(name)
        return f"{name} was killed"

    def pause_writer(self) -> str:
        """Stop the process of the loop that writes, in turn for less and for more than its session."""
        name, away = self.writer(), (20.0, 70.0)[self.done["pause_writer"] % 2]
        if away > SESSION:
            self.unsettled.append((time.time(), name))
        self.loops[name].pause()
        time.sleep(away)
        self.loops[name].wake()
        return f"{name} was stopped for {away:.0f} s"

    def write_garbage(self) -> str:
        """Write garbage for the group, which stops the loops until somebody publishes a plan by hand."""
        value, before = GARBAGE[self.done["write_garbage"] % len(GARBAGE)], self.waits("unread-place")
        self._write(GROUP, value)
        wait_until(lambda: self.waits("unread-place") > before, lambda: f"loops to see it: {self.story()}", GOES_ON)
        self.publish(self.alive())
        return f"garbage {value!r}"

    def write_for_others(self) -> str:
        """Write garbage for another group, which hinders nobody."""
        self._write("another", b"{not json")
        return "garbage for another group"

    def restart_broker(self) -> str:
        """Kill the broker, and start it again."""
        self.unsettled.append((time.time(), None))
        began = time.monotonic()
        self.broker.restart(5.0)
        return f"the broker was away for {time.monotonic() - began:.0f} s"

    def change_members(self) -> str:
        """Let a follower come, or one go, and publish a plan for those that are there."""
        if len(self.alive()) < MOST and self.random.random() * (MOST - FEWEST) < MOST - len(self.alive()):
            name = f"c{len(self.followers) + 1}"
            self.followers.start(name)
            self.publish(self.alive())
            return f"{name} came"
        name = self.random.choice(self.alive())
        self.followers[name].leave()
        self.publish(self.alive())
        return f"{name} left"

    def _write(self, key: str, value: bytes) -> None:
        self.garbage.append(value)
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        producer.produce(PLANS, value, key)
        assert producer.flush(60) == 0

    def story(self) -> str:
        """Return the ends of the loops' logs and the last plans."""
        logs = "\n".join(f"{name}: {loop.log[-1500:]}" for name, loop in self.loops.items())
        return f"{logs}\n{self.record.entries[-3:]}\n{self.followers.loads()}"

    # ---- what must hold ------------------------------------------------------------------------------------------

    def check_plans(self) -> tuple[list[tuple[str, int]], int, int]:
        """Check all records; return the loops' plans with their moves, and the numbers without a line and by hand."""
        entries = self.record.entries
        assert [each.offset for each in entries] == list(range(len(entries)))
        assert [each.value for each in entries if each.plan is None] == self.garbage
        written = [each.plan for each in entries if each.plan is not None]
        versions = [*accumulate((plan.version for plan in written), max)]
        plans = [plan for plan, before in zip(written, [0, *versions], strict=False) if plan.version > before]
        by_hand = {plan.version for plan in plans if not plan.lags}
        assert written[-1].version == versions[-1], written[-2:]  # lower ones are followed by the newest one again
        loops = self.loops_of()
        assert loops.keys() <= set(versions) - by_hand
        unlogged = set(versions) - by_hand - loops.keys()
        assert len(unlogged) <= self.done["kill_writer"] + self.waits("failed"), unlogged
        found: list[tuple[str, int]] = []
        for before, plan in pairwise(plans):
            at_once = before.version in by_hand and plan.version - before.version < 1000 * AT_ONCE
            if plan.lags and not at_once:
                moves = sum(before.owners[key] != owner for key, owner in plan.owners.items())
                found.append((loops.get(plan.version, "?"), moves))
                assert moves <= MAX_MOVES, (before, plan)
                assert plan.version - before.version >= 1000 * LEAST, (before, plan)
                assert plan.owners.keys() == before.owners.keys(), (before, plan)
        for entry, after in pairwise(entries):  # after garbage a loop writes only what it had begun to write before
            if entry.key == GROUP.encode() and entry.plan is None:
                assert after.plan is not None
                assert not after.plan.lags or after.plan.version < entry.sent, (entry, after)
        return found, len(unlogged), len(by_hand)

    def takeovers(self) -> list[float]:
        """Return the seconds from each fault to the first plan of another loop; there is none without a fault."""
        took = []
        for (before, old), (after, new) in pairwise(sorted(self.loops_of().items())):
            if old != new:
                times = [t for t, name in self.unsettled if name in (old, None)]
                faults = [t for t in times if before / 1000 - 1 < t < after / 1000]
                assert faults, f"{new} publishes {after} though {old}, which published {before}, was not disturbed"
                took.append(after / 1000 - faults[0])
        return took


@contextmanager
def chaos(broker: Broker, folder: Path) -> Iterator[Chaos]:
    """Start three followers with a plan, and two loops; end all of them after the body."""
    create_topics(broker.bootstrap, {TOPIC: PARTITIONS})
    create_topics(broker.bootstrap, {PLANS: 1}, **{"cleanup.policy": "compact"})
    names = [f"c{number + 1}" for number in range(FEWEST)]
    followers = KeptFollowers(broker.bootstrap, GROUP, [], plans=PLANS, lease=LEASE, handling=HANDLING)
    record = Record(broker.bootstrap)
    all_ = Chaos(broker, followers, record, folder, random.Random(1))
    try:
        first = {name: [[TOPIC, p] for p in range(PARTITIONS) if p % FEWEST == n] for n, name in enumerate(names)}
        place = PlanTopic(PLANS, {"bootstrap.servers": broker.bootstrap, "log_level": 0}, GROUP)
        publish({"group": GROUP, "assignment": first}, place)
        followers.start(*names)
        all_.start_loop("one")
        all_.start_loop("two")
        yield all_
    finally:
        for loop in all_.loops.values():
            loop.kill()
        followers.end()
        record.end()


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(60 * MINUTES + 2400)
def test_one_loop_of_two_goes_on_publishing_in_chaos(tmp_path: Path) -> None:
    with running_broker() as broker, chaos(broker, tmp_path) as all_:
        traffic = Traffic(broker.bootstrap, seed=2)
        try:
            end, halfway = time.monotonic() + 60 * MINUTES, time.monotonic() + 30 * MINUTES
            deeds = [all_.kill_writer, all_.write_garbage, all_.kill_follower, all_.pause_writer]
            deeds += [all_.change_members, all_.pause_follower, all_.write_for_others]
            all_.happen(all_.begin)
            while time.monotonic() < end:
                if time.monotonic() > halfway and not all_.done["restart_broker"]:
                    all_.happen(all_.restart_broker)
                    continue
                fewest = min(all_.done[deed.__name__] for deed in deeds)
                all_.happen(next(deed for deed in deeds if all_.done[deed.__name__] == fewest))
            running = [loop for loop in all_.loops.values() if loop.process.poll() is None]
            assert len(running) == 2
            for loop in running:
                loop.terminate()
            [written] = ends(broker.bootstrap, PLANS, 1)
        finally:
            traffic.end()
        counts = ends(broker.bootstrap, TOPIC, PARTITIONS)
        wanted = {(number, offset) for number, count in enumerate(counts) for offset in range(count)}
        wait_until(lambda: wanted <= processed(all_.followers.history()).keys(), all_.story, GOES_ON)
        for name in all_.alive():
            all_.followers[name].leave()
        history = all_.followers.history()
        done = processed(history)
        assert done.keys() == wanted
        assert not (faults := faults_of(history)), story_of(faults, history)
        assert ends(broker.bootstrap, PLANS, 1) == [written]
        wait_until(lambda: len(all_.record.entries) == written, all_.story)
        moves, unlogged, by_hand = all_.check_plans()
        took = all_.takeovers()
    decisions = sum((Counter(loop.waits()) for loop in all_.loops.values()), Counter({"published": len(moves)}))
    all_.say(f"what happened: {dict(all_.done)}")
    all_.say(f"{decisions.total()} decisions: {dict(decisions.most_common())}; {unlogged} plans without a line")
    all_.say(f"{sum(each for _, each in moves)} moves, {by_hand} plans by hand")
    all_.say(f"takeovers after {', '.join(f'{each:.0f} s' for each in took)}")
    all_.say(f"{done.total()} readings of {len(done)} messages, {done.total() - len(done)} again")


# ---- the checks themselves -------------------------------------------------------------------------------------------


def test_a_message_read_by_two_or_after_its_commit_is_a_fault() -> None:
    def read(name: str, offset: int) -> tuple[str, dict[str, Any]]:
        return name, {"event": "processed", "partition": 0, "offset": offset}

    def given(name: str) -> tuple[str, dict[str, Any]]:
        return name, {"event": "assigned", "partitions": [[TOPIC, 0]]}

    def faults(*events: tuple[str, dict[str, Any]]) -> int:
        return len(faults_of((float(t), *each) for t, each in enumerate(events)))

    committed, woken = ("a", {"event": "committed", "offsets": [[0, 2]]}), ("a", {"event": "woken"})
    assert faults(given("a"), read("a", 0), read("a", 1), committed, given("b"), read("b", 2)) == 0
    assert faults(given("a"), read("a", 0), given("b"), read("b", 0)) == 0  # it was not committed
    assert faults(given("a"), read("a", 1), committed, given("b"), read("b", 1)) == 1
    assert faults(given("a"), given("b"), read("a", 0)) == 1
    assert faults(given("a"), given("b"), woken, read("a", 0)) == 0  # it was at hand
    assert faults(given("a"), given("b"), woken, read("a", 0), read("a", 1)) == 1


def plan(version: int, owners: str, **more: Any) -> bytes:
    given = {name: [[TOPIC, n] for n, owner in enumerate(owners) if owner == name] for name in set(owners)}
    return json.dumps({"group": GROUP, "version": version, "assignment": given} | more).encode()


LOOPED = {"lags": {TOPIC: [1, 2]}}


@pytest.mark.parametrize(
    ("last", "good"),
    [
        (plan(20_000, "abababababab", **LOOPED), True),
        (plan(19_999, "abababababab", **LOOPED), False),  # too early
        (plan(19_999, "abababababab"), True),  # by hand
        (plan(9_999, "abababababab"), False),
        (plan(20_000, "bababaababab", **LOOPED), False),  # six moves
        (plan(20_000, "bababaababab"), True),
        (plan(20_000, "abababababa", **LOOPED), False),  # a partition for nobody
        (b"{", False),  # nobody wrote that
    ],
)
def test_a_plan_that_no_loop_may_publish_is_found(last: bytes, good: bool, tmp_path: Path) -> None:
    entries = [Entry(n, 0, GROUP.encode(), value) for n, value in enumerate([plan(10_000, "abababababab"), last])]
    nobody: Any = None
    all_ = Chaos(nobody, nobody, cast("Record", SimpleNamespace(entries=entries)), tmp_path, random.Random(1))
    all_.done["kill_writer"] = 1  # it may have been killed before its line
    if good:
        all_.check_plans()
    else:
        with pytest.raises(AssertionError):
            all_.check_plans()


def test_a_loop_that_publishes_next_to_another_is_found(tmp_path: Path) -> None:
    nobody: Any = None
    all_ = Chaos(nobody, nobody, nobody, tmp_path, random.Random(1))
    versions: dict[str, list[int]] = {"one": [10_000], "two": [90_000]}
    for name, published in versions.items():
        all_.loops[name] = cast("Watch", SimpleNamespace(published=lambda published=published: published))
    with pytest.raises(AssertionError, match="two publishes 90000 though one, which published 10000, was not"):
        all_.takeovers()
    all_.unsettled = [(5.0, "one"), (40.0, "one")]
    assert all_.takeovers() == [50.0]
