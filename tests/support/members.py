"""Members of a group with evenlag's assignor, as processes that can be killed, stopped and resumed.

`python -m tests.support.members '{"bootstrap": …}'` is one member. It prints its events, a line of JSON each.
"""

import contextlib
import faulthandler
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SESSION_TIMEOUT = 8.0  # seconds
SETTLE_LIMIT = 120.0  # seconds
SLOW = 4.0  # seconds that lags take of a member that is slowed down: more than it waits for them
NOWHERE = "127.0.0.1:9"
STARTS_FOR_EVER = "import os, time; p = os.getppid()\nwhile os.getppid() == p: time.sleep(0.1)"
HANGS = f"import os; os.write({{fd}}, b'r'); {STARTS_FOR_EVER}"

Partition = tuple[str, int]


class Member:
    """A member in a process of its own."""

    MODULE = "tests.support.members"

    def __init__(self, **config: Any) -> None:
        self.events: list[dict[str, Any]] = []
        self.read: set[int] = set()  # numbers of messages, where it reads them
        self.last_read = 0.0  # when it read the last of them
        self.stops: list[float] = []  # when it was stopped or killed
        self._stopped = False
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.MODULE, json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        self._reads = threading.Thread(target=self._read)
        self._reads.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "read":
                self.read.update(event["numbers"])
                self.last_read = event["t"]
            else:
                self.events.append(event)

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        """Return its events of these kinds."""
        return [event for event in list(self.events) if event["event"] in kinds]

    def holds(self) -> set[Partition]:
        """Return the partitions that were assigned to it and not revoked or lost."""
        held: set[Partition] = set()
        for event in self.of("assigned", "revoked", "lost"):
            partitions = {(topic, number) for topic, number in event["partitions"]}
            held = held | partitions if event["event"] == "assigned" else held - partitions
        return held

    def alive(self) -> bool:
        """Return whether it runs and is not stopped."""
        return self.process.poll() is None and not self._stopped

    def go(self) -> None:
        """Let it join."""
        self._say("go")

    def slow_down(self) -> None:
        """Delay every reading of lags from now on."""
        self._say("slow")

    def speed_up(self) -> None:
        """Stop delaying readings of lags."""
        self._say("fast")

    def leave(self) -> None:
        """Ask it to leave the group, and wait until it has."""
        self._say("leave")
        self.process.wait(SETTLE_LIMIT)

    def kill(self) -> None:
        """Kill it: the group does not hear of that."""
        self.stops.append(time.monotonic())
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Stop the process, as a long garbage collection or a suspended machine does."""
        self.stops.append(time.monotonic())
        self._stopped = True
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Resume the process."""
        self.process.send_signal(signal.SIGCONT)
        self._stopped = False

    def end(self) -> None:
        """End the process, and close its pipes."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._reads.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _say(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()


class Members(dict[str, Member]):
    """The members of one group, by client id."""

    KIND = Member

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str], **config: Any) -> None:
        super().__init__()
        self._config = {"bootstrap": bootstrap, "group": group, "topics": list(topics)} | config

    def start(self, *names: str, **config: Any) -> None:
        """Start members, and let them join together once all are ready."""
        for name in names:
            self[name] = self.KIND(**self._config | {"client_id": name} | config)
        for name in names:
            wait_until(lambda name=name: self[name].of("ready"), f"{name} to be ready")
        for name in names:
            self[name].go()

    def settled(self, partitions: int) -> bool:
        """Return whether the living members hold this many partitions, each once, and none waits to be revoked.

        Under an assignor without decisions, each member must hold a partition.
        """
        alive = [member for member in self.values() if member.alive()]
        held = [key for member in alive for key in member.holds()]
        if self._config.get("assignor"):
            there = all(member.holds() for member in alive)
        else:
            last = self.decisions()[-1:]
            there = bool(last) and len(last[0]["assignment"]) == len(alive) and not last[0]["waiting"]
        return there and len(held) == len(set(held)) == partitions

    def wait_until_settled(self, partitions: int, since: float | None = None) -> float:
        """Wait until the group is settled and quiet for a second; return the seconds to the last event."""
        start = time.monotonic() if since is None else since

        def last() -> float:
            return max([start, *(member.events[-1]["t"] for member in self.values() if member.events)])

        def quiet() -> bool:
            return self.settled(partitions) and time.monotonic() - last() > 1.0

        wait_until(quiet, lambda: f"{partitions} partitions to settle: {self.story()}")
        return last() - start

    def story(self) -> str:
        """Return all events as text for a message; the stacks of all threads go to stderr."""
        for member in self.values():
            if member.alive():
                member.process.send_signal(signal.SIGUSR1)
        time.sleep(1)
        events = sorted((event["t"], name, event) for name, member in self.items() for event in list(member.events))
        shown = ("event", "partitions", "line", "waiting")
        return "\n".join(
            f"{t:.2f} {name} {[event[each] for each in shown if each in event]}" for t, name, event in events
        )

    def decisions(self) -> list[dict[str, Any]]:
        """Return the decisions of all leaders in order of time."""
        return sorted((each for member in self.values() for each in member.of("decision")), key=lambda each: each["t"])

    def loads(self) -> dict[str, list[Partition]]:
        """Return the partitions that each living member holds."""
        return {name: sorted(member.holds()) for name, member in self.items() if member.alive()}


@contextmanager
def members(bootstrap: str, group: str, topics: Sequence[str], **config: Any) -> Iterator[Members]:
    """Run members, and end them after the body."""
    several = Members(bootstrap, group, topics, **config)
    try:
        yield several
    finally:
        for member in several.values():
            member.end()


def wait_until(done: Callable[[], object], what: str | Callable[[], str], within: float = SETTLE_LIMIT) -> None:
    """Wait until a condition holds; raise RuntimeError after some seconds."""
    end = time.monotonic() + within
    while not done():
        if time.monotonic() > end:
            raise RuntimeError(f"waited {within:g} s for {what if isinstance(what, str) else what()}")
        time.sleep(0.05)


# ---- one member ------------------------------------------------------------------------------------------------------


ONE_AT_A_TIME = threading.Lock()


def say(event: str, **more: Any) -> None:
    """Print an event; safe from any thread."""
    with ONE_AT_A_TIME:
        print(json.dumps({"t": time.monotonic(), "event": event, **more}), flush=True)


def wait_for_solver(assignor: Any) -> None:
    """Wait until the assignor's solver answers."""
    from evenlag import Problem
    from evenlag.search.options import SolveOptions

    now = time.monotonic()
    assignor._solver.solve(Problem.from_lags({"t": [1]}, {"a": ["t"]}), SolveOptions(), now + 50, now + 60)


def run(config: dict[str, Any]) -> None:
    """Be a member until the parent process writes "leave"; print the stacks of all threads on SIGUSR1.

    With `reads`, messages a second, it reads so many, says which, and commits. With `rack` it says which
    replicas, by partition, a leader has sent it to.
    """
    faulthandler.register(signal.SIGUSR1)
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.errors import KafkaError

    from evenlag.live import solver_process
    from evenlag.live.assignor import EvenlagAssignor, evenlag_assignor
    from evenlag.live.cluster import group_offsets
    from evenlag.protocol.user_data import encode_own

    words: list[str] = []
    read_offsets = group_offsets.read_offsets

    def read_slowly(*arguments: Any) -> Any:
        if [word for word in words if word in ("slow\n", "fast\n")][-1:] == ["slow\n"]:
            time.sleep(SLOW)
        return read_offsets(*arguments)

    group_offsets.read_offsets = read_slowly
    if config.get("hangs"):
        solver_process.SERVE = HANGS
    if config.get("corrupt"):
        evenlag_assignor.encode_own = lambda weight: encode_own(weight)[:-1] + b"?"

    class EventHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say("log", level=record.levelname, line=record.getMessage())

    logging.getLogger("evenlag").addHandler(EventHandler())
    logging.getLogger("kafka.coordinator").addHandler(EventHandler())
    logging.getLogger("kafka.coordinator").setLevel(logging.INFO)
    logging.getLogger("evenlag").setLevel(logging.INFO)

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Any) -> None:
            say("assigned", partitions=sorted(assigned))

        def on_partitions_revoked(self, revoked: Any) -> None:
            say("revoked", partitions=sorted(revoked))

        def on_partitions_lost(self, lost: Any) -> None:
            say("lost", partitions=sorted(lost))

    def decided(decision: Any) -> None:
        say(
            "decision",
            problem=None if decision.result is None else decision.result.plan.problem.to_dict(),
            assignment=decision.assignment,
            waiting=sorted(decision.waiting),
            solved=decision.solved,
            status=decision.result and decision.result.status,
            moves=decision.result and decision.result.moves,
            spread=decision.result and float(decision.result.spread),
            why=decision.why,
            planned_for=decision.planned_for,
            seconds=decision.seconds,
            line=str(decision),
        )

    others = {
        "cooperative-sticky": CooperativeStickyAssignor,
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
    }
    made = config.get("assignor") and others[config["assignor"]]()
    assignor = made or EvenlagAssignor(
        NOWHERE if config.get("without_lags") else config["bootstrap"],
        config["group"],
        weight=config.get("weight", 1),
        rack=config.get("rack"),
        cooperative=config.get("cooperative", True),
        limit=config.get("limit", 5.0),
        auto_offset_reset="earliest",
        on_decision=decided,
        **config.get("options", {}),
    )
    consumer = KafkaConsumer(
        bootstrap_servers=config["bootstrap"], group_id=config["group"], client_id=config["client_id"],
        session_timeout_ms=int(1000 * SESSION_TIMEOUT), heartbeat_interval_ms=300, metadata_max_age_ms=1000,
        enable_auto_commit=False, auto_offset_reset="earliest", max_poll_records=config.get("at_once", 1),
        partition_assignment_strategy=[assignor], client_rack=config.get("rack") or "",
    )  # fmt: skip
    if not made and not config.get("hangs"):  # a machine at work starts it more slowly than a group settles
        wait_for_solver(assignor)
    say("ready")
    sys.stdin.readline()
    threading.Thread(target=lambda: words.extend(iter(sys.stdin.readline, "")), daemon=True).start()
    consumer.subscribe(config["topics"], listener=Listener())
    due, read_from = 0.0, dict[int, int]()
    while "leave\n" not in words:
        try:
            records = consumer.poll(timeout_ms=100)
        except KafkaError as error:  # while the broker is away; it is for the program to poll again
            say("log", level="WARNING", line=f"poll: {error}")
            time.sleep(0.1)
            continue
        if config.get("rack"):
            held = consumer._subscription.assignment.items()
            replicas = {
                each.partition: node for each, state in held if (node := state.preferred_read_replica()) is not None
            }
            if replicas.items() - read_from.items():
                read_from |= replicas
                say("replicas", of=read_from)
        if not config.get("reads"):
            for partition in records:  # what was read is not counted; what is backlog stays
                consumer.seek(partition, records[partition][0].offset)
            time.sleep(0.02)
        elif records:
            numbers = [int(record.value) for several in records.values() for record in several]
            due = max(due, time.monotonic() - 1.0) + len(numbers) / config["reads"]
            time.sleep(max(due - time.monotonic(), 0))
            say("read", numbers=numbers)
            with contextlib.suppress(KafkaError):  # then it is read again
                consumer.commit(timeout_ms=2000)
    consumer.close()
    if not made:
        assignor.close()
    os._exit(0)


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
