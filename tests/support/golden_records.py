"""The records in tests/records, which a real broker wrote, with Kafka's own reading of them."""

import json
from pathlib import Path
from typing import Any

from tests.support.group_records import Raw

GOLDEN = Path(__file__).parents[1] / "records" / "kafka-4.1.jsonl"
"""Records of every kind of consumer on Apache Kafka 4.1.0, written by `python -m tests.support.group_records`."""


def golden_records() -> list[tuple[Raw, dict[str, Any]]]:
    """Return each record and what Kafka reads in it (`read_by_kafka`)."""
    rows = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    return [
        (Raw(row["partition"], row["offset"], row["timestamp"], _bytes(row["key"]), _bytes(row["value"])), row["kafka"])
        for row in rows
    ]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
