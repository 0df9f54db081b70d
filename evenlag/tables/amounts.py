"""Move sizes and traffic given in addition to a group's own input: as a file, or as one number per topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenlag.errors import InvalidProblemError, SourceError
from evenlag.figures import quantity
from evenlag.model.problem import Problem
from evenlag.model.problem_files import read_json
from evenlag.model.values import check_name, parse_partition_number
from evenlag.tables.column_names import matched
from evenlag.tables.columns import OFFSETS, Numbered
from evenlag.tables.files import open_text, reading, table_rows

MOVE_SIZES, TRAFFIC = "move_sizes", "traffic"
COLUMNS = {MOVE_SIZES: "move_size", TRAFFIC: "traffic"}
_PLACE = ("topic", "partition")

Amounts = Path | Mapping[str, int]
"""A file, or a mapping of topic to the number that each of its partitions gets."""


def with_amounts(
    problem: Problem,
    *,
    move_sizes: Amounts | None = None,
    traffic: Amounts | None = None,
    together: Sequence[Sequence[str]] = (),
) -> tuple[Problem, list[str]]:
    """Return a group with additional pair data, which overrides its own, and notes.

    Parameters
    ----------
    move_sizes, traffic : path or mapping of topic to whole number, optional
        A file may name topics and partitions that the group does not have. A partition of the group that it lacks
        counts as 1.
    together : sequence of sequences of topics
        Topics whose partitions of the same number go to the same member.

    Raises
    ------
    SourceError
        A file cannot be read, or lacks a column.
    InvalidProblemError
        A value is not a valid number, the group does not have a topic, or topics cannot go together.
    """
    amounts, notes = {}, []
    for name, given in ((MOVE_SIZES, move_sizes), (TRAFFIC, traffic)):
        if given is None:
            continue
        if isinstance(given, Path):
            amounts[name], lacking = _of_group(problem, read_amounts(given, name))
            if lacking:
                notes.append(f"{given}: has no {COLUMNS[name]} for {_partitions(lacking)}; each is taken as 1")
        else:
            amounts[name] = {
                topic: {p: amount for of, p in problem.partitions if of == topic} for topic, amount in given.items()
            }
    given_files = ", ".join(str(each) for each in (move_sizes, traffic) if isinstance(each, Path))
    try:
        return problem.with_pair_data(**amounts, together=together or None), notes  # type: ignore[arg-type]
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{given_files}: {error}" if given_files else str(error)) from error


def read_amounts(path: Path, name: str) -> dict[str, dict[int, Any]]:
    """Read a number for each partition, from JSON as in a problem file, or from CSV or Parquet.

    Parameters
    ----------
    name : {"move_sizes", "traffic"}
        A table has one row per partition, with the columns `topic`, `partition`, and `move_size` or `traffic`. Rows
        without a value are left out.

    Raises
    ------
    SourceError
        The file cannot be read, lacks a column, has two different numbers for one partition, or names a partition by
        anything but its number.
    """
    if path.suffix.lower() != ".parquet" and _is_json(path):
        return _of_document(path, read_json(path))
    found: dict[str, dict[int, Any]] = {}
    for number, row in _rows(path, COLUMNS[name]):
        topic, amount = row["topic"], row[COLUMNS[name]]
        if amount is None:
            continue
        try:
            partition = parse_partition_number(check_name(topic, "a topic"), row["partition"])
        except InvalidProblemError as error:
            raise SourceError(f"{path}, row {number}: {error}") from error
        known = found.setdefault(topic, {})
        if known.setdefault(partition, amount) != amount:
            raise SourceError(
                f"{path}, row {number}: {topic}-{partition} has a {COLUMNS[name]} of {amount} here, but of "
                f"{known[partition]} in an earlier row; keep one"
            )
    return found


def _is_json(path: Path) -> bool:
    with reading(path), open_text(path) as file:
        return next((line for line in file if line.strip()), "").lstrip()[:1] in ("{", "[")


def _of_document(path: Path, document: Any) -> dict[str, dict[int, Any]]:
    """Return the numbers of `{topic: [numbers]}` or `{topic: {partition: number}}` by topic and partition."""
    if not isinstance(document, Mapping):
        raise SourceError(f'{path}: must be an object such as {{"orders": [512, 64]}}, or a table')
    found: dict[str, dict[int, Any]] = {}
    for topic, values in document.items():
        if isinstance(values, Mapping):
            found[topic] = _numbered(path, topic, values)
        elif isinstance(values, list):
            found[topic] = dict(enumerate(values))
        else:
            raise SourceError(f"{path}: topic {topic!r} must have a list, or an object of partition to number")
    return found


def _numbered(path: Path, topic: str, values: Mapping[str, Any]) -> dict[int, Any]:
    """Return the values of a topic by partition number."""
    try:
        numbered = [(parse_partition_number(topic, key), value) for key, value in values.items()]
    except InvalidProblemError as error:
        raise SourceError(f"{path}: {error}") from error
    if len(found := dict(numbered)) < len(numbered):
        raise SourceError(f"{path}: topic {topic!r}: a partition is given twice, such as 0 and 00; keep one")
    return found


def _rows(path: Path, column: str) -> Iterator[Numbered]:
    wanted = (*_PLACE, column)

    def choice(headings: Sequence[str]) -> Mapping[str, str]:
        names = matched(headings, "offsets", str(path))
        for name in wanted:
            if name not in names:
                raise SourceError(f"{path}: no column {name}; the table needs {', '.join(wanted)}")
        return {name: names[name] for name in wanted}

    rows = table_rows(path, "parquet" if path.suffix.lower() == ".parquet" else "csv", choice)
    return rows.typed([each for each in OFFSETS if each.name in wanted])


def _of_group(
    problem: Problem, found: Mapping[str, Mapping[int, Any]]
) -> tuple[dict[str, dict[int, Any]], list[tuple[str, int]]]:
    """Return the numbers of the group's partitions, and the partitions without one."""
    amounts: dict[str, dict[int, Any]] = {}
    lacking = []
    for topic, partition in problem.partitions:
        if partition in found.get(topic, {}):
            amounts.setdefault(topic, {})[partition] = found[topic][partition]
        else:
            lacking.append((topic, partition))
    return amounts, lacking


def _partitions(names: Sequence[tuple[str, int]]) -> str:
    topic, partition = names[0]
    return f"{topic}-{partition}" + (f" and {quantity(len(names) - 1, 'other partition')}" if len(names) > 1 else "")
