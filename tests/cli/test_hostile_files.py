"""Hostile problem files and tables: the command ends with a result or with one line."""

import csv
import io
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.command import evenlag
from tests.support.problems import random_document, seeds

ODD: list[Any] = [
    None, True, -1, 2**31, 2**62 + 1, 2**64, 10**400, 1.5, 1e300, 1e-300, float("nan"), float("inf"), "", "a", "00",
    "t0", "c0", "line\nbreak", "[/b]", "half \ud800", "\x00\x1b[31m", "long" * 1_000, [], {}, [[]], {"": 1}, [None],
    ["t0"], [["t0", 0]], [["t0", 0, "c0"]], {"0": 5, "7": 1},
]  # fmt: skip
COMMANDS = [
    ("plan", "--time-limit", 0.1), ("plan", "--json", "--time-limit", 0.1), ("plan", "--method", "sticky"),
    ("audit", "--group-time-limit", 0.1), ("frontier", "--json", "--time-limit", 0.1), ("export", "--format", "lp"),
    ("size", "--drain", "1m", "--capacity", 3, "--time-limit", 0.1),
]  # fmt: skip
CALLS = 60  # of each kind of input


def damaged(random: Random, value: Any) -> Any:
    """The same document with one place dropped, doubled, renamed or replaced."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = random.choice(list(value))
        if random.random() < 0.8:
            return value | {key: damaged(random, value[key])}
        rest = {name: entry for name, entry in value.items() if name != key}
        return random.choice([rest, rest | {str(random.choice(ODD)): value[key]}])
    if isinstance(value, list) and value and random.random() < 0.8:
        i = random.randrange(len(value))
        middle = [damaged(random, value[i])] if random.random() < 0.8 else random.choice([[], [value[i]] * 2])
        return [*value[:i], *middle, *value[i + 1 :]]
    return random.choice(ODD)


def problem_text(random: Random) -> str:
    document: Any = random_document(random, empty_topics=True)
    for _ in range(random.randint(0, 2)):
        document = damaged(random, document)
    text = json.dumps(document)
    if random.random() < 0.1:
        return text[: random.randrange(len(text))]
    return text.replace('"t1"', '"t0"') if random.random() < 0.1 else text


def offsets_rows(random: Random) -> list[dict[str, Any]]:
    times = ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"][: random.randint(1, 2)]
    return [
        {
            "snapshot_ts": ts, "group": "g", "topic": topic, "partition": partition, "log_start_offset": 0,
            "log_end_offset": random.randint(5, 99), "current_offset": random.choice([None, 3, 5]), "lag": None,
            "consumer_id": random.choice([None, "c0", "c1"]), "auto_offset_reset": random.choice([None, "earliest"]),
        }
        for ts in times for topic in ("t0", "t1") for partition in range(random.randint(1, 3))
    ]  # fmt: skip


def member_rows(random: Random) -> list[dict[str, Any]]:
    return [
        {
            "snapshot_ts": ts, "group": "g", "consumer_id": name, "topics": random.choice([None, ["t0", "t1"]]),
            "weight": random.choice([None, 1, 2.5]), "max_partitions": None, "generation": random.choice([None, 1]),
        }
        for ts in ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z") for name in ("c0", "c1")
    ]  # fmt: skip


def table_file(random: Random, path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows, some with an odd value, some twice, now and then without a column; as CSV or JSON Lines."""
    names = list(rows[0])
    for _ in range(random.randint(0, 2)):
        random.choice(rows)[random.choice(names)] = random.choice(ODD)
    if random.random() < 0.2:
        rows.append(dict(random.choice(rows)))
    if random.random() < 0.1:
        names.remove(random.choice(names))
    kept = [{name: row[name] for name in names} for row in rows]
    if random.random() < 0.5:
        path = path.with_suffix(".jsonl")
        text = "".join(json.dumps(row) + "\n" for row in kept)
    else:
        path = path.with_suffix(".csv")
        file = io.StringIO(newline="")
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        for row in kept:
            fields = {name: ";".join(map(str, each)) if isinstance(each, list) else each for name, each in row.items()}
            writer.writerow(fields)
        text = file.getvalue()
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def assert_ends_well(*words: object) -> int:
    """Run the command; return its status."""
    done = evenlag(*words)
    done.stdout.encode()
    if done.returncode:
        assert done.returncode == 1, done
        assert done.stdout == "", done
        assert done.stderr.startswith("evenlag: "), done
        assert done.stderr.count("\n") == 1, done
        assert done.stderr.rstrip("\n").isprintable(), done
    elif "--json" in words:
        json.loads(done.stdout, parse_constant=pytest.fail)
    return done.returncode


def test_random_problem_files_end_in_a_result_or_one_line(tmp_path: Path) -> None:
    path, statuses = tmp_path / "problem.json", Counter[int]()
    for seed in seeds(CALLS):
        random = Random(f"problem {seed}")
        path.write_bytes(problem_text(random).encode())
        name, *options = random.choice(COMMANDS)
        statuses[assert_ends_well(name, path, *options)] += 1
    assert min(statuses[0], statuses[1]) > len(seeds(CALLS)) / 6, statuses


def test_random_tables_end_in_a_result_or_one_line(tmp_path: Path) -> None:
    statuses = Counter[int]()
    for seed in seeds(CALLS):
        random = Random(f"table {seed}")
        words: list[object] = [table_file(random, tmp_path / "offsets", offsets_rows(random))]
        if random.random() < 0.6:
            words += ["--members", table_file(random, tmp_path / "members", member_rows(random))]
        name, *options = random.choice(COMMANDS)
        statuses[assert_ends_well(name, *words, *options)] += 1
    assert min(statuses[0], statuses[1]) > len(seeds(CALLS)) / 6, statuses


@pytest.mark.parametrize("command", ["plan", "audit", "frontier", "explain", "diagnose", "migrate"])
def test_control_characters_of_names_do_not_reach_a_terminal(command: str, tmp_path: Path) -> None:
    odd = "\x1b[31mred\u202e\x9b"
    members = {odd: {"topics": [odd], "owned": [[odd, 0], [odd, 1]]}, "b": {"topics": [odd]}}
    path = tmp_path / "group.json"
    path.write_text(json.dumps({"group": odd, "topics": {odd: [5, 3]}, "members": members}))
    done = evenlag(command, path)
    assert done.returncode == 0, done.stderr
    assert r"\x1b[31mred\u202e\x9b" in done.stdout
    assert [char for char in done.stdout + done.stderr if not char.isprintable() and char != "\n"] == []
