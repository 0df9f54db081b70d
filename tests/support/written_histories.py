"""Recorded histories of groups written as records of `__consumer_offsets`, and records with damaged bytes."""

import random
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from benchmarks.weeks import KINDS
from benchmarks.weeks import history as synthetic_history
from evenlag.compare.history import Snapshot
from tests.support import coordinator_bytes as encode
from tests.support.group_records import Raw


def short_history(seed: int, days: float = 0.25) -> list[Snapshot]:
    """Return the snapshots of a group that reads ten partitions of two topics; each seed has the next kind in turn."""
    return synthetic_history(seed, list(KINDS)[seed % len(KINDS)], days=days, topics=2, partitions=5)


def written(history: Sequence[Snapshot], group: str, prefix: str, partition: int = 0, start: int = 0) -> Iterator[Raw]:
    """Yield the records of a classic group with these snapshots; topics get a prefix, offsets begin at `start`."""
    offset, generation, before = start, 0, None
    commits: dict[tuple[str, int], int | None] = {}
    for snapshot in history:
        problem, millis = snapshot.problem, snapshot.micros // 1000
        held: dict[str, dict[str, list[int]]] = {name: {} for name in problem.members}
        for (topic, number), owner in zip(problem.partitions, problem.owner.tolist(), strict=True):
            if owner >= 0:
                held[problem.members[owner]].setdefault(prefix + topic, []).append(number)
        if held != before:
            generation, before = generation + 1, held
            topics = sorted({prefix + topic for topic, _ in problem.partitions})
            members: list[dict[str, object]] = [
                {"member_id": name, "client_id": name, "host": "/h", "subscription": encode.subscription(topics),
                 "assignment": encode.assignment(sorted(mine.items()))}
                for name, mine in held.items()
            ]  # fmt: skip
            value = encode.group_value(generation, "range", members, at=millis)
            yield Raw(partition, offset, millis, encode.group_key(group), value)
            offset += 1
        for (topic, number), at in zip(problem.partitions, snapshot.offsets, strict=True):
            if at.current_offset is not None and commits.get((topic, number)) != at.current_offset:
                commits[topic, number] = at.current_offset
                key = encode.commit_key(group, prefix + topic, number)
                yield Raw(partition, offset, millis, key, encode.commit_value(at.current_offset, at=millis, version=4))
                offset += 1


def log_ends(history: Sequence[Snapshot], prefix: str) -> pa.Table:
    """Return the log offsets of the snapshots as an offsets table."""
    rows = [
        (each.ts, "log ends", prefix + topic, number, int(start), at.log_end_offset)
        for each in history
        for (topic, number), at, start in zip(each.problem.partitions, each.offsets, each.log_starts, strict=True)
    ]
    names = ("snapshot_ts", "group", "topic", "partition", "log_start_offset", "log_end_offset")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def damaged(records: Iterable[Raw], share: float, rng: random.Random) -> Iterator[Raw]:
    """Yield the records, a share of them with bytes of the key or the value changed, added or cut off."""
    for each in records:
        if rng.random() >= share:
            yield each
            continue
        part = rng.choice(["key", "value"])
        raw = getattr(each, part)
        at = rng.randrange(len(raw) + 1) if raw else 0
        broken = raw and raw[:at] + rng.randbytes(rng.randrange(4)) + raw[at + rng.randrange(4) :]
        yield each._replace(**{part: broken})
