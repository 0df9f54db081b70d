"""How long groups of throttled members take to drain a skewed backlog on a real broker, by assignor."""

import time
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from benchmarks.packing import zipf
from evenlag import Problem, solve
from tests.support.broker import running_broker
from tests.support.members import members, wait_until
from tests.support.traffic import create_topics, produce

ASSIGNORS: dict[str, dict[str, Any]] = {
    "evenlag": {"options": {"rejoin_if_better": "10%", "rejoin_interval": 5, "read_every": 2}},
    "range": {"assignor": "range"},
    "roundrobin": {"assignor": "roundrobin"},
    "cooperative-sticky": {"assignor": "cooperative-sticky"},
}
PARTITIONS, MEMBERS, RECORDS, SKEW = 24, 4, 20_000, 0.8
RATE = 250.0  # messages a second that a member reads
AT_ONCE = 25
RUNS = 3
CASES = ("before the group starts", "in a group that runs")


def draining(seed: int) -> Iterator[str]:
    """When the lag is 0, when the first member has nothing left, and what the busiest one had to read."""
    backlogs = [zipf(SKEW, PARTITIONS, RECORDS, seed + run) for run in range(RUNS)]
    names = [f"m{m}" for m in range(MEMBERS)]
    problems = [Problem.from_lags({"t": sizes}, {name: ["t"] for name in names}) for sizes in backlogs]
    even = median(float(solve(problem, objective="makespan", stickiness=0).makespan) for problem in problems)
    yield "# A skewed backlog on a real broker: seconds until it is drained\n"
    yield (
        f"{RECORDS:,} messages in {PARTITIONS} partitions (Zipf {SKEW:g}, shuffled for each run) of an Apache "
        f"Kafka on the same machine. {MEMBERS} consumers of kafka-python, each a process, read {RATE:g} "
        "messages a second each and commit. The backlog is produced before the group starts, or once the "
        "group has settled.\n\n* The other assignors are kafka-python's. evenlag's group checks every 2 s if "
        "a rebalance saves 10 %, and asks for one at least 5 s after any other.\n* **lag 0 after**, **worst "
        f"run**: median and maximum of {RUNS} runs\n* **first idle**: time at which the first member has read "
        "its last message\n* **busiest / mean**: messages read by the busiest member, compared with the "
        f"mean\n\nThe most even plan, kept throughout, would take {even / RATE:.0f} s.\n"
    )
    yield "| backlog | assignor | lag 0 after | worst run | first idle | busiest / mean |"
    yield "|---" * 6 + "|"
    with running_broker() as broker:
        for late, case in enumerate(CASES):
            runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ASSIGNORS}
            for run, sizes in enumerate(backlogs):
                for name, config in ASSIGNORS.items():
                    topic = f"drained-{late}-{run}-{name}"
                    runs[name].append(_drained(broker.bootstrap, topic, sizes, config, late=bool(late)))
            for name, several in runs.items():
                done, idle, busiest = (median(each) for each in zip(*several, strict=True))
                cells = [case, name, f"{done:.1f} s", f"{max(several)[0]:.1f} s", f"{idle:.1f} s", f"{busiest:.2f}"]
                yield "| " + " | ".join(cells) + " |"
    yield ""


def _drained(
    bootstrap: str, topic: str, sizes: list[int], config: Mapping[str, Any], *, late: bool
) -> tuple[float, float, float]:
    """Seconds until all is read, until the first member has nothing left, and what the busiest read over the mean."""
    create_topics(bootstrap, {topic: PARTITIONS})
    if not late:
        produce(bootstrap, topic, sizes, numbered=True)
    with members(bootstrap, topic, [topic], reads=RATE, at_once=AT_ONCE, **config) as group:
        group.start(*(f"m{m}" for m in range(MEMBERS)))
        started = time.monotonic()
        if late:
            group.wait_until_settled(PARTITIONS)
            started = time.monotonic()
            produce(bootstrap, topic, sizes, numbered=True)
        wait_until(
            lambda: (
                sum(len(member.read) for member in group.values()) >= sum(sizes)
                and len(set().union(*(member.read for member in group.values()))) == sum(sizes)
            ),
            topic,
            within=3 * sum(sizes) / RATE,
        )
        last = [member.last_read - started for member in group.values() if member.read]
        idle = min(last) if len(last) == MEMBERS else 0.0
        return max(last), idle, max(len(member.read) for member in group.values()) * MEMBERS / sum(sizes)
