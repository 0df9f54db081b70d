"""Answers of monitors for tests, and the tables read from them."""

import csv
from pathlib import Path
from typing import Any

import pytest

from evenlag.errors import SourceError
from evenlag.model.lag import partition_lag
from evenlag.tables.formats import FORMATS, Reading

RECORDED = Path(__file__).parents[1] / "metrics"
OFFSETS = ("log_start_offset", "log_end_offset", "current_offset", "lag")
OWNED = (
    'kafka_consumergroup_group_lag{{cluster_name="dev",group="g",topic="t",partition="{}",member_host="/h",'
    'consumer_id="{}",client_id="app"}} {}'
)
PLAIN = 'kafka_consumergroup_lag{{consumergroup="g",topic="t",partition="{}"}} {}'
DESCRIBED = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\ng t 0 1 2 1 - - -\n"


def read(text: str) -> Reading:
    """Read a text in the only format that recognises it."""
    (form,) = [form for form in FORMATS.values() if form.recognises(text)]
    return form.read(text, "text")


def refused(text: str) -> str:
    with pytest.raises(SourceError) as error:
        read(text)
    assert str(error.value).startswith("text")
    return str(error.value)


def notes(reading: Reading) -> list[str]:
    """All notes of a reading."""
    of_groups = [*reading.notes_of.values(), *reading.member_notes.values()]
    return [*reading.notes, *(note for each in of_groups for note in each)]


def rows(reading: Reading, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.get(column) for column in ("topic", "partition", *columns)) for _, row in reading.offsets]


def lags(reading: Reading, group: str) -> dict[tuple[str, int], int]:
    return {
        (row["topic"], row["partition"]): partition_lag(*(row.get(name) for name in OFFSETS)).messages
        for _, row in reading.offsets
        if row["group"] == group
    }


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def recorded_rows() -> list[dict[str, str]]:
    with (RECORDED / "offsets.csv").open(newline="") as file:
        return list(csv.DictReader(file))


ANSWERS = sorted(path.name for path in RECORDED.iterdir() if path.suffix in (".prom", ".json"))
