"""Rules of describe texts: however its lines are changed, no row is lost or read wrong."""

import random
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenlag
from evenlag.errors import SourceError
from evenlag.tables.formats import FORMATS, Reading, describe
from tests.support.describe_texts import CHANGES, FOREIGN, Table, table
from tests.support.problems import cases

TEXTS = Path(__file__).parents[1] / "texts"

Outcome = tuple[str, dict[str, tuple[int, str | None]], set[str]]


def outcome(text: str) -> Outcome | None:
    """Group, partitions and members of a text; None where it is refused."""
    try:
        read = describe.read(text, "text")
    except SourceError:
        return None
    return outcome_of(read) if read.offsets else None  # which is refused where a group is chosen


def outcome_of(read: Reading) -> Outcome:
    groups = {row["group"] or "" for _, row in read.offsets}
    partitions: dict[str, tuple[int, str | None]] = {}
    for _, row in read.offsets:
        lag = 0 if row["current_offset"] is None else int(row["log_end_offset"] or 0) - int(row["current_offset"])
        name = f"{row['topic']}-{row['partition']}"
        assert name not in partitions
        partitions[name] = (lag, row.get("consumer_id"))
    return ",".join(groups), partitions, {row["consumer_id"] for _, row in read.named_members()}


def expected_outcome(made: Table) -> Outcome:
    return made.group, made.partitions, made.members


def insert_randomly(rng: random.Random, lines: list[str], others: Iterable[str]) -> list[str]:
    for other in others:
        lines.insert(rng.randint(0, len(lines)), other)
    return lines


def test_150_random_texts_are_read_correctly_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    found: Counter[str] = Counter()
    for seed in range(150):
        rng = random.Random(seed)
        made = table(rng)
        name, change = list(CHANGES.items())[seed % len(CHANGES)]
        lines = insert_randomly(rng, [made.header, *made.rows], rng.sample(FOREIGN, rng.randint(0, 6)))
        text = "\n".join(change(rng, lines, made.header))
        read = outcome(text)
        assert read in (None, expected_outcome(made)), f"seed {seed}, {name}\n{text}"
        found["refused" if read is None else "right"] += 1
    with capsys.disabled():
        print(f"\n150 random texts: {found['right']} read right, {found['refused']} refused, none wrong")
    assert found["right"] >= 0.95 * 150


WORDS = st.sampled_from(
    ["orders", "pay-1", "pay", "1", "2024", "-", "17", "0", "1,234", "INFO", "lag", "GROUP", "/192.0.2.1", "unknown",
     "5s", "[2026-01-31", "12:00:01,123]", "|", ">", "app-1", "TOPIC", "none",
     "app-0-00000000-0000-0000-0000-000000000001"]
)  # fmt: skip


@given(st.integers(0, 10_000), st.lists(st.lists(WORDS, min_size=1, max_size=6), max_size=3), st.randoms())
@settings(deadline=None, max_examples=cases(300))
def test_foreign_lines_and_the_order_change_nothing(seed: int, others: list[list[str]], rng: random.Random) -> None:
    """A row has seven words at least, so that none of these lines is one."""
    made = table(random.Random(seed))
    lines = [made.header, *made.rows, *map(" ".join, others), *rng.sample(FOREIGN, 2)]
    assert outcome("\n".join(rng.sample(lines, len(lines)))) in (None, expected_outcome(made))


@given(st.integers(0, 10_000), st.integers(1, 200), st.booleans())
@settings(deadline=None, max_examples=cases(200))
def test_wrapped_lines_are_refused_unless_nothing_is_lost(seed: int, width: int, at_words: bool) -> None:
    made = table(random.Random(seed))
    wrapped = [
        part
        for line in (made.header, *made.rows)
        for part in (textwrap.wrap(line, width, break_long_words=False) if at_words else cut_by_width(line, width))
    ]
    assert outcome("\n".join(wrapped)) in (None, expected_outcome(made))


@given(st.integers(0, 10_000), st.integers(1, 200))
@settings(deadline=None, max_examples=cases(200))
def test_cut_lines_are_refused_unless_nothing_is_lost(seed: int, width: int) -> None:
    made = table(random.Random(seed))
    assert outcome("\n".join(line[:width] for line in (made.header, *made.rows))) in (None, expected_outcome(made))


def cut_by_width(line: str, width: int) -> list[str]:
    return [line[at : at + width] for at in range(0, len(line), width)]


@pytest.mark.parametrize(
    "change",
    [
        lambda line: re.sub(" +", " ", line),
        lambda line: re.sub(" +", "\t", line),
        lambda line: re.sub("  +", "\t", line),
        lambda line: re.sub(" +", ",", line.strip()),
        lambda line: "|" + "|".join(line.split()) + "|",
        lambda line: "    ".join(line.split()),
        lambda line: line.replace(" ", "\u00a0"),
        lambda line: f"2026-01-31T12:00:00.123Z {line}",
        lambda line: f"Jan 31 12:00:00 host app[12]: {line}",
        lambda line: f"kafka-1  | {line}",
        lambda line: f"     3  {line}",
        lambda line: " ".join(line.split()[:5]),
        lambda line: " ".join(line.split()[::-1]),
        lambda line: line.lower() if " PARTITION " in line else line,
        lambda line: line.title().replace("-", "_") if " PARTITION " in line else line,
    ],
)
def test_realigned_lines_are_read_correctly_or_refused(change: Callable[[str], str]) -> None:
    for seed in range(60):
        made = table(random.Random(seed))
        assert outcome("\n".join(map(change, (made.header, *made.rows)))) in (None, expected_outcome(made))


def test_the_text_may_end_within_a_row() -> None:
    """Unless a whole row is missing, which nobody can know."""
    for seed in range(200):
        made = table(random.Random(seed))
        cut = "\n".join([made.header, *made.rows])
        last = len(made.rows[-1])
        cut = cut[: -random.Random(seed).randrange(1, last)]
        assert outcome(cut) in (None, expected_outcome(made))


def test_a_text_of_rpk_with_single_blanks_is_read_as_printed() -> None:
    printed = (TEXTS / "rpk-group-describe.txt").read_text()
    squeezed = "\n".join(re.sub(" +", " ", line) for line in printed.splitlines())
    assert outcome(squeezed) == outcome(printed) is not None


@pytest.mark.parametrize(
    ("line", "is_row"),
    [
        ("garbage 3 - - -", True),
        ("garbage - - - 3", True),
        ("garbage - - - -", False),
        ("0 1 2 1 garbage", True),  # without its topic; the lag is that of its offsets
        ("0 1 2 9 garbage", False),
    ],
)
def test_a_line_with_the_numbers_of_a_row_is_not_skipped(line: str, is_row: bool) -> None:
    header = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
    row = "shop orders 0 1 2 1 c-1 /192.0.2.1 c"
    assert (outcome(f"{header}\n{row}\n{line}\n") is None) == is_row


def test_the_command_above_its_output_names_the_group() -> None:
    text = (
        "root@kafka-1:/# kafka-consumer-groups.sh --bootstrap-server HOST:9092 --describe --group billing\n"
        "TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
        "orders 0 1 5 4 c-1 /192.0.2.1 c\n"
    )
    assert FORMATS["describe"].read(text, "text").group == "billing"


def test_a_random_member_id_may_begin_with_a_slash() -> None:
    """Ids of KIP-848 members are 22 characters of base64, which librdkafka writes with its slash."""
    member = "/k+h//tDTTWdjbmNIG2lAg"
    problem = evenlag.read(
        "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
        f"g t 0 21 40 19 {member} /127.0.0.1 c-1\ng t 1 21 30 9 A{member[1:]} /127.0.0.1 c-1\n"
    )
    assert problem.members == (member, f"A{member[1:]}")
    assert problem.lags.tolist() == [19, 9]
