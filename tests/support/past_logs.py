"""Messages with chosen timestamps, and what a record tells of log ends at past times."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from confluent_kafka import Producer

from evenlag.tables.loading import read_table
from evenlag.tables.typed_values import snapshot_order
from tests.support.traffic import QUIET

HOUR = 3_600_000  # milliseconds


def produce_at(bootstrap: str, topic: str, stamps: Mapping[int, Sequence[int]]) -> None:
    """Append a message for each timestamp (milliseconds) of each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, **QUIET})
    for partition, times in stamps.items():
        for stamp in times:
            producer.produce(topic, b"", partition=partition, timestamp=stamp)
    assert producer.flush(60) == 0


def told(out: Path) -> Iterator[tuple[tuple[str, int], float, int]]:
    """Yield partition, time in milliseconds, and log end of each row of the past."""
    for row in read_table(out / "offsets", "offsets"):
        if row["log_only"]:
            yield (
                (str(row["topic"]), int(str(row["partition"]))),
                1_000 * seconds_of(row),
                int(str(row["log_end_offset"])),
            )


def seconds_of(row: Mapping[str, object]) -> float:
    assert snapshot_order(row["snapshot_ts"])[0]
    return datetime.fromisoformat(str(row["snapshot_ts"])).timestamp()


def truth(stamps: Sequence[int], millis: float) -> int:
    return next((offset for offset, stamp in enumerate(stamps) if stamp >= millis), len(stamps))
