"""Random failures of members and of the broker: each partition has one owner, and no message is lost.

`EVENLAG_CHAOS_ROUNDS=100` runs more rounds, with a second group under kafka-python's own assignor, and prints how long
each group took to settle.
"""

import math
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from statistics import median
from typing import Any, cast

import pytest

from evenlag.live.cluster.group_offsets import read_offsets
from tests.support.broker import Broker, running_broker
from tests.support.members import Members, members, wait_until
from tests.support.traffic import create_topics, numbered_messages

FEW = 6
ROUNDS = int(os.environ.get("EVENLAG_CHAOS_ROUNDS", FEW))
TOPIC, PARTITIONS = "chaos", 12
EVENLAG, BESIDE = "evenlag", "cooperative-sticky"
ASKING = {"rejoin_if_better": "20%", "rejoin_interval": 20, "read_every": 2}
MOST = 4  # members
JOINS = "(Re-)joining group"  # how kafka-python's log says that a member asks to
PUT_OUT = "failed due to unknown member id", "UnknownMemberIdError; reseting generation"  # and that it is in no group
FINDS = "Discovered coordinator"  # and that it has heard of the broker again


class Chaos:
    """Groups with the same members, which suffer the same failures."""

    def __init__(
        self, broker: Broker, groups: dict[str, Members], seed: int, sent: set[int], is_read: Callable[[set[int]], None]
    ) -> None:
        self._broker, self._groups, self._random = broker, groups, random.Random(seed)
        self._sent, self._is_read = sent, is_read
        self._started = 0
        self._since: dict[str, float] = {}
        self.restarts: list[tuple[float, float]] = []  # when the broker went, and when the group had settled after that
        self.done: Counter[str] = Counter()
        self.took: dict[str, list[tuple[float, str]]] = {name: [] for name in groups}
        for _ in range(3):
            self._join()

    def round(self) -> None:
        """Cause one of the failures that occurred least often, and wait until every group has settled."""
        alive = self._alive()
        deeds: list[Callable[[str], Iterator[str]]] = [self.restart]
        deeds += [self.join, self.slow_lags] * (len(alive) < MOST) + [self.leave, self.kill, self.pause] * (
            len(alive) > 2
        )
        deed = min(deeds, key=lambda deed: (self.done[deed.__name__], self._random.random()))
        self.done[deed.__name__] += 1
        for what in deed(self._random.choice(alive)):
            self._settle(what)
        self._is_read(set(self._sent))

    def join(self, _: str) -> Iterator[str]:
        """A member comes."""
        self._join()
        yield "join"

    def leave(self, name: str) -> Iterator[str]:
        """A member goes."""
        self._each(lambda group: group[name].leave())
        yield "leave"

    def kill(self, name: str) -> Iterator[str]:
        """A member dies."""
        self._each(lambda group: group[name].kill())
        yield "kill"

    def pause(self, name: str) -> Iterator[str]:
        """A member stops until the group has put it out, and wakes."""
        self._each(lambda group: group[name].pause())
        yield "pause"
        self._each(lambda group: group[name].wake())
        yield "wake"

    def slow_lags(self, _: str) -> Iterator[str]:
        """A member comes while nobody gets lags in time."""
        for name in self._alive():
            self._groups[EVENLAG][name].slow_down()
        self._join()
        yield "join with slow lags"
        for name in self._alive():
            self._groups[EVENLAG][name].speed_up()

    def restart(self, _: str) -> Iterator[str]:
        """The broker is killed and starts again."""
        went = time.monotonic()
        self._broker.restart()
        self._each(lambda _: None)
        for group in self._groups.values():  # members that have not noticed yet look settled
            wait_until(
                lambda group=group: have_found_broker(group, went),
                lambda group=group: f"all to be back: {group.story()}",
            )
        yield "restart"
        seconds, _ = self.took[EVENLAG][-1]
        self.restarts.append((went, self._since[EVENLAG] + seconds))

    def _alive(self) -> list[str]:
        return sorted(name for name, member in self._groups[EVENLAG].items() if member.alive())

    def _each(self, act: Callable[[Members], None]) -> None:
        for name, group in self._groups.items():
            self._since[name] = time.monotonic()
            act(group)

    def _join(self) -> None:
        name, weight = f"m{self._started}", self._random.choice([1, 2])
        self._each(lambda group: group.start(name, weight=weight))
        self._started += 1

    def _settle(self, what: str) -> None:
        for name, group in list(self._groups.items()):
            try:
                seconds = group.wait_until_settled(PARTITIONS, self._since[name])
            except RuntimeError:
                if name == EVENLAG:
                    raise
                seconds = math.inf
                self._begin_anew(group)
            self.took[name].append((seconds, what))
            print(f"{what}: {name} settled in {seconds:.1f} s")

    def _begin_anew(self, group: Members) -> None:
        """Replace members that are stuck by others of the same name, stopped ones too."""
        for name in [name for name, member in group.items() if member.process.poll() is None]:
            group[name].end()
            group.start(name)
            if not self._groups[EVENLAG][name].alive():
                group[name].pause()


@pytest.mark.long
@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.timeout(200 * ROUNDS)
def test_no_partition_has_two_owners_and_no_message_is_lost_in_chaos() -> None:
    with running_broker() as broker, ExitStack() as running:
        create_topics(broker.bootstrap, {TOPIC: PARTITIONS})
        reading = {"reads": 300, "at_once": 50}
        several = running.enter_context(members(broker.bootstrap, EVENLAG, [TOPIC], options=ASKING, **reading))
        groups = {EVENLAG: several}
        if ROUNDS > FEW:
            others = members(broker.bootstrap, BESIDE, [TOPIC], assignor=BESIDE, **reading)
            groups[BESIDE] = running.enter_context(others)

        def is_read(numbers: set[int]) -> None:
            def missing() -> set[int]:
                return numbers - set().union(*(member.read for member in several.values()))

            wait_until(lambda: not missing(), lambda: f"{sorted(missing())[:9]}, … to be read: {several.story()}")

        with numbered_messages(broker.bootstrap, TOPIC, PARTITIONS) as sent:
            chaos = Chaos(broker, groups, ROUNDS, sent, is_read)
            for _ in range(ROUNDS):
                chaos.round()
                found = overlaps(several, chaos.restarts)
                assert not found, f"{found}, restarts {chaos.restarts}: {several.story()}"
        assert len(sent) > 10 * ROUNDS
        is_read(sent)

        def left() -> dict[tuple[str, int], int]:
            lags = read_offsets(broker.bootstrap, EVENLAG, [TOPIC], {}, 10).lags("earliest")
            assert len(lags) == PARTITIONS
            return {key: lag for key, lag in lags.items() if lag}

        wait_until(lambda: not left(), lambda: f"commits of {left()}")
        print(f"{len(sent):,} messages; {dict(chaos.done)}")
        for name, took in chaos.took.items():
            finite = [seconds for seconds, _ in took if seconds < math.inf]
            print(f"{name}: settled {len(finite)} times of {len(took)}, median {median(finite):.1f} s")
            print(f"  longest: {slowest_by_kind(took)}")


def have_found_broker(group: Members, went: float) -> bool:
    """Return whether all members have found the broker again after it was killed at this time."""
    alive = [member for member in group.values() if member.alive()]
    return all(
        any(event["t"] > went and event["line"].startswith(FINDS) for event in member.of("log")) for member in alive
    )


def slowest_by_kind(took: list[tuple[float, str]]) -> str:
    """Return the longest time of each kind, as text."""
    return ", ".join(
        f"{what} {max(s for s, kind in took if kind == what):.1f} s" for what in sorted({k for _, k in took})
    )


def overlaps(group: Members, restarts: list[tuple[float, float]]) -> list[object]:
    """Partitions that somebody was given before another had given them up, or was killed or stopped.

    While its broker is away a member cannot hear that the group has put it out, and Kafka promises no more to any
    client than that such a member's commits are refused. So what it says it has lost, before the group has settled
    after a restart, it held until the broker went; a loss at any other time counts from when the member says so.
    Where kafka-python hears of that by the answer to a join, it calls it revoked, not lost, whatever the assignor. Nor
    does it count what a member that was stopped is given, as it wakes, by the answer to a join from before.
    """
    holdings: dict[tuple[str, int], list[tuple[float, float, str]]] = {}
    for name, member in group.items():
        since: dict[tuple[str, int], float] = {}
        has_joined, put_out = True, False
        stops = [{"t": t, "event": "stopped"} for t in member.stops]
        for event in sorted([*member.of("assigned", "revoked", "lost", "log"), *stops], key=lambda each: each["t"]):
            if event["event"] == "log":
                has_joined = has_joined or event["line"].startswith(JOINS)
                put_out = put_out or any(words in event["line"] for words in PUT_OUT)
                continue
            lost, put_out = event["event"] == "lost" or (event["event"] == "revoked" and put_out), False
            keys = [(topic, number) for topic, number in event.get("partitions", [])]
            if event["event"] == "assigned":
                since |= dict.fromkeys(keys if has_joined else [], event["t"])
                continue
            has_joined = has_joined and event["event"] != "stopped"
            for key in list(since) if event["event"] == "stopped" else keys:
                if key in since:
                    start, end = since.pop(key), event["t"]
                    if lost:
                        end = min([went for went, settled in restarts if start < went < end <= settled], default=end)
                    holdings.setdefault(key, []).append((start, end, name))
        for key, start in since.items():
            holdings.setdefault(key, []).append((start, math.inf, name))
    return [
        (key, before, after)
        for key, several in holdings.items()
        for before, after in pairwise(sorted(several))
        if after[0] < before[1]
    ]


class Events:
    """The events of a member, as `Member` records them."""

    def __init__(self, *events: tuple[float, str]) -> None:
        self.stops = [t for t, kind in events if kind == "stopped"]
        self._events = [
            {"t": t, "event": "log", "line": kind}
            if kind in (JOINS, *PUT_OUT)
            else {"t": t, "event": kind, "partitions": [[TOPIC, 0]]}
            for t, kind in events
        ]

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [event for event in self._events if event["event"] in kinds]


@pytest.mark.parametrize("until", ["revoked", *PUT_OUT, "lost", "stopped"])
def test_a_loss_hidden_by_a_broker_restart_counts_from_the_restart(until: str) -> None:
    def two(given: float) -> list[object]:
        ends = [(29.9, until), (30.0, "revoked")] if until in PUT_OUT else [(30.0, until)]
        group = {"a": Events((1.0, "assigned"), *ends), "b": Events((given, "assigned"))}
        return overlaps(cast("Members", group), restarts)

    restarts: list[tuple[float, float]] = []
    assert two(31.0) == []
    assert len(two(29.0)) == 1
    restarts = [(20.0, 40.0)]
    assert len(two(29.0)) == (0 if until in ("lost", *PUT_OUT) else 1)
    assert len(two(19.0)) == 1
    restarts = [(10.0, 15.0)]
    assert len(two(29.0)) == 1


def test_a_join_answered_after_a_stop_gives_the_member_nothing() -> None:
    def two(*events: tuple[float, str]) -> list[object]:
        group = {"a": Events((1.0, JOINS), (2.0, "stopped"), *events), "b": Events((5.0, "assigned"))}
        return overlaps(cast("Members", group), [])

    assert two((9.0, "assigned"), (9.1, "lost")) == []
    assert len(two((8.9, JOINS), (9.0, "assigned"), (9.1, "lost"))) == 1
    assert len(two((9.0, "assigned"), (9.1, "lost"), (9.2, JOINS), (9.3, "assigned"))) == 1
