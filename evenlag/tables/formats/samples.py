"""Samples of monitors' series, and the choice among contradicting ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from evenlag.errors import SourceError
from evenlag.tables.formats.exporters import Exporter, plain_name

EXACT = 2**53  # doubles represent all whole numbers below this
Partition = tuple[str | None, str, int]  # cluster, topic, number
Place = Callable[["Sample"], str]


class Sample(NamedTuple):
    """One value of a series.

    Attributes
    ----------
    number : int
        Line number in the text, or number of its series.
    name : str or None
        Name of the series; None if it is the result of a calculation.
    at : float or None
        Time in seconds since 1970.
    """

    number: int
    name: str | None
    labels: Mapping[str, str]
    value: float
    at: float | None = None


def whole_value(sample: Sample, place: Place) -> int | None:
    """Return the value of a sample as a number of messages; None for NaN, which means unknown.

    Raises
    ------
    SourceError
        The value is a fraction, or too large for a double to represent exactly.
    """
    value = sample.value
    if math.isnan(value):
        return None
    if not math.isfinite(value) or value != int(value) or abs(value) >= EXACT:
        name = sample.name or "the value"
        raise SourceError(
            f"{place(sample)}: {name} is {value!r}, not a whole number below 2^53; give the series itself, "
            "not a rate or mean"
        )
    return int(value)


def partition_of(sample: Sample, exporter: Exporter, place: Place) -> int:
    """Return the partition number in a series' labels.

    Raises
    ------
    SourceError
        The label is not a partition number.
    """
    text = sample.labels[exporter.partition]
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise SourceError(f"{place(sample)}: {exporter.partition} must be 0, 1, 2, …, not {text!r}")
    return int(text)


def owner_of(sample: Sample, exporter: Exporter) -> str | None:
    """Return the member that a series names as the owner of its partition; None without an owner."""
    owner = sample.labels.get(exporter.owner) if exporter.owner else None
    return None if owner == exporter.nobody else owner or None


def of_newest_owner(
    samples: Sequence[Sample], exporter: Exporter, what: str, place: Place
) -> tuple[list[Sample], bool]:
    """Return the samples that name a partition's newest owner, and whether others were dropped.

    Raises
    ------
    SourceError
        The samples name several owners, and their times do not show which is the newest.
    """
    owners = {owner_of(sample, exporter) for sample in samples}
    if len(owners) == 1:
        return list(samples), False
    newest = _newest(samples)
    now = {owner_of(sample, exporter) for sample in newest}
    if len(now) > 1:
        first = min(samples, key=lambda sample: sample.number)
        other = next(sample for sample in samples if owner_of(sample, exporter) != owner_of(first, exporter))
        names = " and ".join(repr(owner_of(sample, exporter) or "nobody") for sample in (first, other))
        raise SourceError(f"{place(other)}: {what} is held by {names} ({place(first)}); remove the outdated one")
    return [sample for sample in samples if owner_of(sample, exporter) in now], True


def one_of(samples: Sequence[Sample], exporter: Exporter, what: str, place: Place) -> tuple[Sample, bool]:
    """Return the sample to use for a series, and whether older ones contradict it.

    Raises
    ------
    SourceError
        The samples differ, and their times do not show which is the newest.
    """
    known = [sample for sample in samples if not math.isnan(sample.value)] or list(samples)
    known.sort(key=lambda sample: sample.number)
    if len({sample.value for sample in known}) == 1 or math.isnan(known[0].value):
        return known[0], False
    if exporter.ends_differ and plain_name(known[0].name or "") not in ("", exporter.lag):
        return max(known, key=lambda sample: sample.value), False
    newest = _newest(known)
    if len({sample.value for sample in newest}) > 1:
        first, other = known[0], next(sample for sample in known if sample.value != known[0].value)
        differ = sorted(
            f"{label}={value!r}" for label, value in other.labels.items() if first.labels.get(label) != value
        )
        by = f", here with {', '.join(differ)}" if differ else ""
        raise SourceError(
            f"{place(other)}: {other.name or 'a series'} of {what} is {other.value:g}, and {first.value:g} in "
            f"{place(first)}{by}; remove one of them"
        )
    return newest[0], True


def _newest(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples of the latest time; all samples if one has no time."""
    times = [sample.at for sample in samples if sample.at is not None]
    if len(times) < len(samples):
        return list(samples)
    return [sample for sample in samples if sample.at == max(times)]
