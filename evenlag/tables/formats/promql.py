"""The JSON response of Prometheus, Thanos, Mimir or VictoriaMetrics to a query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evenlag.errors import SourceError
from evenlag.model.values import shown
from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.json_texts import documents, first_document
from evenlag.tables.formats.samples import Sample
from evenlag.tables.formats.series import assemble

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|Inf|NaN)")
_SERIES = ("vector", "matrix")
_LATEST = 1e11  # seconds since 1970
_OTHERS = ("scalar", "string", "streams")


def recognises(text: str) -> bool:
    """Return whether a text is such a response, including an error."""
    document = first_document(text)
    if isinstance(document, list):
        return bool(document) and all(_is_series(each) for each in document)
    if not isinstance(document, dict):
        return False
    if document.get("status") == "error" and "errorType" in document:
        return True
    answer = document.get("data", document)
    return isinstance(answer, dict) and answer.get("resultType") in (*_SERIES, *_OTHERS) and "result" in answer


def _is_series(document: object) -> bool:
    return (
        isinstance(document, dict)
        and isinstance(document.get("metric"), dict)
        and ("value" in document or "values" in document)
    )


def read(text: str, source: str) -> Reading:
    """Read the series of consumer groups, with one snapshot for each time of the samples.

    Raises
    ------
    SourceError
        The response is an error, is empty, or has no series; also as in `assemble`.
    """
    warnings: list[str] = []
    reading = assemble(_samples(text, source, warnings), source, "series", dated=True)
    reading.notes = [*warnings, *reading.notes]
    return reading


def _samples(text: str, source: str, warnings: list[str]) -> Iterator[Sample]:
    number = 0
    for line, document in documents(text, source):
        place = f"{source}, line {line}"
        if isinstance(document, dict):
            warnings += [f"{source}: Prometheus warns: {warning}" for warning in document.get("warnings") or ()]
        for series in _result(document, place):
            number += 1
            yield from _of_series(number, series, source)
    if not number:
        raise SourceError(f"{source}: the query found no series; use one of the queries in docs/monitors.md")


def _result(document: Any, place: str) -> list[Any]:
    """Return the series of a response."""
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        raise SourceError(f"{place}: not a Prometheus response: {shown(document)}")
    if document.get("status") == "error":
        raise SourceError(f"{place}: Prometheus returned an error: {document.get('error') or document['errorType']}")
    answer = document.get("data", document)
    kind = answer.get("resultType") if isinstance(answer, dict) else None
    if kind not in _SERIES or not isinstance(answer["result"], list):
        raise SourceError(f"{place}: response of type {kind!r}; query for series (a vector or a matrix)")
    return list(answer["result"])


def _of_series(number: int, series: Any, source: str) -> Iterator[Sample]:
    """Yield the samples of one series."""
    place = f"{source}, series {number}"
    if not _is_series(series):
        raise SourceError(f"{place}: not a series with a metric and values: {shown(series)}")
    labels: Mapping[str, Any] = series["metric"]
    if not all(isinstance(value, str) for value in labels.values()):
        raise SourceError(f"{place}: labels must be text: {shown(labels)}")
    rest = {name: value for name, value in labels.items() if name != "__name__"}
    pairs = series["values"] if "values" in series else [series["value"]]
    for pair in pairs if isinstance(pairs, list) else [pairs]:
        at, value = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
        if (
            not isinstance(at, int | float)
            or not 0 <= at < _LATEST
            or not isinstance(value, str)
            or not _NUMBER.fullmatch(value)
        ):
            raise SourceError(f'{place}: a sample must be [seconds, "number"], not {shown(pair)}')
        yield Sample(number, labels.get("__name__"), rest, float(value), round(float(at), 3))


FORMAT = Format("promql", "Prometheus' response to query or query_range (JSON)", recognises, read)
