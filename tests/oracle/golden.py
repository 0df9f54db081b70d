"""Golden files: what Kafka's assignors answered, with Kafka's version and the seed."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from tests.oracle.kafka import NEWEST, VERSION, Oracle
from tests.oracle.sequences import ASSIGNORS, BROKER, broker_steps, play, racked_steps, steps

FOLDER = Path(__file__).with_name("golden")
ASSIGNMENTS = FOLDER / "assignments.jsonl"
RACKS = FOLDER / "racks.jsonl"
BROKERS = FOLDER / "broker.jsonl"
USER_DATA = FOLDER / "userdata.jsonl"
SEED = 1
SEQUENCES = 60
RACK_SEQUENCES = 60
BROKER_SEQUENCES = 50  # of five steps, for each of two assignors
USER_DATA_CASES = 40


def assignments(oracle: Oracle) -> str:
    """Return the text of assignments.jsonl: a head, then requests with Kafka's answers, `first` too if cooperative."""
    lines = [_line({"kafka": VERSION, "seed": SEED, "sequences": SEQUENCES})]
    for number in range(SEQUENCES):
        sequence = steps(SEED, number)
        for assignor in ASSIGNORS:
            for request, answer in play(sequence, assignor, oracle.assign):
                line = request | {"member_of": answer}
                if assignor == "cooperative-sticky":
                    line["first"] = oracle.assign(request | {"assignor": "cooperative-sticky-first"})
                lines.append(_line(line))
    return "".join(lines)


def racks(oracle: Oracle) -> str:
    """Return the text of racks.jsonl: as assignments.jsonl, of members and replicas with racks."""
    lines = [_line({"kafka": VERSION, "seed": SEED, "sequences": RACK_SEQUENCES})]
    for number in range(RACK_SEQUENCES):
        sequence = racked_steps(SEED, number)
        sticky = "sticky" if number % 2 else "cooperative-sticky"
        for assignor in ("range", sticky, *(("uniform",) if number % 6 == 0 else ())):
            lines += [
                _line(request | {"member_of": answer}) for request, answer in play(sequence, assignor, oracle.assign)
            ]
    return "".join(lines)


def broker(oracle: Oracle) -> str:
    """Return the text of broker.jsonl: as assignments.jsonl, of the broker's assignors in the order of a broker."""
    lines = [_line({"kafka": [VERSION, NEWEST], "seed": SEED, "sequences": BROKER_SEQUENCES})]
    for number in range(BROKER_SEQUENCES):
        sequence = broker_steps(SEED, number)
        for assignor in BROKER:
            lines += [
                _line(request | {"member_of": answer}) for request, answer in play(sequence, assignor, oracle.assign)
            ]
    return "".join(lines)


def user_data(oracle: Oracle) -> str:
    """Return the text of userdata.jsonl: what members own, in which generation, and the bytes that say so."""
    random = Random(SEED)
    cases: list[dict[str, Any]] = [
        {"schema": schema, "owned": owned, **({"generation": generation} if schema else {})}
        for owned, generation in _owned(random)
        for schema in (0, 1)
    ]
    return "".join(_line({"kafka": VERSION, "seed": SEED} | case | oracle.ask(**case)) for case in cases)


def _owned(random: Random) -> Iterator[tuple[list[tuple[str, int]], int]]:
    yield [], -1
    yield [], 0
    yield [("t" * 249, 2**31 - 1)], 2**31 - 1
    for _ in range(USER_DATA_CASES):
        topics = [f"{random.choice(['orders', 'a.b', 'x_y-z', 't'])}{i}" for i in range(random.randint(1, 4))]
        owned = [(topic, p) for topic in topics for p in range(random.choice([1, 3, 30])) if random.random() < 0.7]
        random.shuffle(owned)
        yield owned, random.choice([-1, 0, 1, 7, random.randrange(2**31)])


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"
