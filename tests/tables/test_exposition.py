"""The text that exporters show to Prometheus, line by line."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.tables.formats import Reading
from tests.support.monitors import ANSWERS, PLAIN, notes, read, recorded, rows

TEXTS = [name for name in ANSWERS if name.endswith(".prom")]
FOREIGN = (
    "# HELP x y", "", "# EOF", "go_goroutines 8", 'up{job="kafka",group="g",topic="t",partition="9"} 1',
    'kafka_consumergroup_lag_sum{consumergroup="g",topic="t"} 99', "kafka_brokers 3", "HTTP/1.1 200 OK",
    "  % Total    % Received", 'http_seconds_bucket{le="+Inf"} 7 # {trace_id="a"} 0.6', "kafka_unknown{a=",
)  # fmt: skip


def content(reading: Reading) -> object:
    """Return all that was read, except line numbers and notes on skipped lines."""
    other_notes = [note for note in notes(reading) if "skipped " not in note]
    return [row for _, row in reading.offsets], [row for _, row in reading.members], other_notes


@pytest.mark.parametrize("name", TEXTS)
@given(data=st.data())
def test_order_and_foreign_lines_change_nothing(name: str, data: st.DataObject) -> None:
    lines = recorded(name).splitlines()
    added = [*lines, *data.draw(st.lists(st.sampled_from(FOREIGN), max_size=8))]
    random.Random(data.draw(st.integers(0, 2**32))).shuffle(added)
    assert content(read("\n".join(added))) == content(read("\n".join(lines)))


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
)
def test_escapes_round_trip(group: str, topic: str) -> None:
    def escaped(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    text = f'kafka_consumergroup_lag{{consumergroup="{escaped(group)}",topic="{escaped(topic)}",partition="0"}} 5'
    assert [(row["group"], row["topic"], row["lag"]) for _, row in read(text).offsets] == [(group, topic, 5)]


@pytest.mark.parametrize(
    "line",
    [
        PLAIN.format(0, "5"), PLAIN.format(0, "5.0"), PLAIN.format(0, "5e+00"), PLAIN.format(0, "5 1700000000000"),
        PLAIN.format(0, "5 1700000000.25"), PLAIN.format(0, '5 # {trace="a b"} 0.67'), f"  {PLAIN.format(0, 5)}  \r",
        'kafka_consumergroup_lag { consumergroup = "g" , topic = "t" , partition = "0" , }  5',
        '{"kafka_consumergroup_lag",consumergroup="g",topic="t","partition"="0"} 5',
        '{"kafka.consumer_group.lag", group="g", topic="t", partition="0"} 5',
        'kafka_consumer_group_lag_ratio{group="g",topic="t",partition="0",job="otel"} 5',
    ],
)  # fmt: skip
def test_every_form_of_a_sample_is_read(line: str) -> None:
    assert rows(read(line), "lag") == [("t", 0, 5)]


def test_large_numbers_are_read_to_the_last_digit() -> None:
    assert rows(read(PLAIN.format(0, "9.007199254740991e+15")), "lag") == [("t", 0, 2**53 - 1)]


def test_a_lag_that_is_not_a_number_is_unknown() -> None:
    reading = read(f"{PLAIN.format(0, 'NaN')}\n{PLAIN.format(1, 2)}")
    assert rows(reading, "lag") == [("t", 0, 0), ("t", 1, 2)]
    assert any("t-0: lag unknown" in note for note in notes(reading))


def test_a_sample_of_a_time_before_1970_is_unknown() -> None:
    assert any("t-0: lag unknown" in note for note in notes(read(PLAIN.format(0, "0 -1"))))


def test_lines_that_are_not_samples_are_skipped_with_their_number() -> None:
    assert read(f"HTTP/1.1 200 OK\n\n{PLAIN.format(0, 5)}\n").passed_over == [(1, "HTTP/1.1 200 OK")]
