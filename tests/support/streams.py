"""A producer of snapshots, and a stream over them that is killed with kill -9 and started again."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.support.few_rows import few_rows
from tests.support.fleet import fleet
from tests.support.traffic import QUIET, create_topics

Row = dict[str, Any]
BROKEN = '{"snapshot_ts": "2026-01-01T00:00:00Z", "group": "g'


def snapshots(count: int, groups: int, seed: int = 0) -> Iterator[list[Row]]:
    """Offsets of the same groups at `count` times, six rows a group."""
    for n in range(count):
        offsets, _ = fleet(groups, seed=seed + n, partitions=3)
        time_ = f"2026-01-01T{n // 60:02}:{n % 60:02}:00Z"
        yield [row | {"snapshot_ts": time_} for row in offsets]


def send(bootstrap: str, topic: str, values: list[str | bytes | None]) -> None:
    """Append records without a key, so that they are spread over the partitions; back when all are in the log."""
    producer = Producer({"bootstrap.servers": bootstrap, "sticky.partitioning.linger.ms": 0, **QUIET})
    for value in values:
        producer.produce(topic, value)
        producer.poll(0)
    if producer.flush(60):
        raise RuntimeError(f"{topic}: records were not taken")


@contextmanager
def in_background(steps: Iterable[Callable[[], None]], pause: float) -> Iterator[None]:
    """Take steps from a thread, with pauses (seconds) until the body ends; wait until all are taken."""
    hurry = threading.Event()

    def take() -> None:
        for step in steps:
            step()
            hurry.wait(pause)

    thread = threading.Thread(target=take)
    thread.start()
    try:
        yield
    finally:
        hurry.set()
        thread.join()


def halves(rows: list[Row], rng: random.Random) -> list[list[str | bytes | None]]:
    """Return the rows of a snapshot as records in any order, in two halves with a broken record between them."""
    lines: list[str | bytes | None] = [json.dumps(row) for row in rows]
    rng.shuffle(lines)
    return [lines[: len(lines) // 2], [BROKEN, *lines[len(lines) // 2 :]]]


@contextmanager
def running(topic: str, out: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """`evenlag stream` in a process group of its own; at the end it is killed with its Java and all they started."""
    command = [
        sys.executable,
        "-m",
        "evenlag",
        "stream",
        topic,
        "--out",
        str(out),
        "--read-every",
        "1",
        "--json",
        *words,
    ]
    process = subprocess.Popen(
        command,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=out.parent,
        env=os.environ | few_rows(out.parent),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def kill_at_random(place: str, out: Path, words: Sequence[str], rng: random.Random, kills: int = 2) -> None:
    """Start a stream and kill it at a random moment: in its first batch, then each time after a commit."""
    for n in range(kills):
        before = _progress(out, committed=n > 0)
        with running(place, out, *words) as process:
            while process.poll() is None and _progress(out, committed=n > 0) == before:
                time.sleep(0.02)
            time.sleep(rng.uniform(0, 8))
            assert process.poll() is None, process.communicate()


def stream_with_kills(
    bootstrap: str,
    out: Path,
    count: int,
    groups: int,
    *,
    kills: int = 2,
    seconds: float = 60.0,
    seed: int | None = None,
) -> tuple[list[list[Row]], list[dict[str, Any]]]:
    """Stream snapshots while they are written, kill the stream at random moments, and run it to the end.

    The snapshots that are not written within `seconds` of the kills come at once after them.
    """
    seed = random.randrange(10**6) if seed is None else seed
    print(f"seed {seed}")
    rng = random.Random(seed)
    topic = f"snapshots-{seed}-{count}"
    create_topics(bootstrap, {topic: 3})
    taken = list(snapshots(count, groups))
    place = f"kafka://{bootstrap}/{topic}"
    words = ("--group-time-limit", "0.05", "--gap", "0.2")  # how good the plans are is not what is looked at
    parts = [part for rows in taken for part in halves(rows, rng)]
    with in_background((partial(send, bootstrap, topic, part) for part in parts), seconds / len(parts)):
        kill_at_random(place, out, words, rng, kills)
    with running(place, out, *words, "--once") as process:
        output, wrong = process.communicate()
    assert process.returncode == 0, wrong
    return taken, [json.loads(line) for line in output.splitlines()]


def _progress(out: Path, *, committed: bool) -> set[str]:
    """Return the files that change with each committed batch, or with each begun one."""
    place = out / "_state" if committed else out
    return {path.name for path in place.iterdir()} if place.exists() else set()
