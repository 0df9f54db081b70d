"""The text format in which exporters expose metrics to Prometheus, including OpenMetrics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from evenlag.errors import SourceError
from evenlag.model.values import shown
from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.exporters import is_known, reports_lag
from evenlag.tables.formats.samples import Sample
from evenlag.tables.formats.series import assemble

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_QUOTED = r'"(?:[^"\\\n]|\\.)*"'
_PAIR = rf"(?:{_NAME}|{_QUOTED})[ \t]*=[ \t]*{_QUOTED}"
_LABELS = rf"\{{[ \t]*((?:(?:{_QUOTED}|{_PAIR})[ \t]*(?:,[ \t]*|(?=\}})))*)\}}"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[iI]nf(?:inity)?|[nN]a[nN])"
_SAMPLE = re.compile(
    rf"[ \t]*(?P<name>{_NAME})?[ \t]*(?:{_LABELS})?[ \t]*(?P<value>{_NUMBER})"
    rf"(?:[ \t]+(?P<at>[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?))?[ \t]*(?:#.*)?"
)
_LABEL = re.compile(rf"({_NAME}|{_QUOTED})[ \t]*(?:=[ \t]*({_QUOTED}))?")
_TYPES = "counter|gauge|histogram|gaugehistogram|summary|untyped|unknown|info|stateset"
_TYPE = re.compile(rf"^# TYPE (?:{_NAME}|{_QUOTED}) (?:{_TYPES})\r?$", re.MULTILINE)
_WITH_LABELS = re.compile(rf"^[ \t]*(?:{_NAME}[ \t]*{_LABELS}|\{{{_QUOTED}[ \t]*[,}}]).*[ \t]{_NUMBER}", re.MULTILINE)
_BEGINS = re.compile(rf"[ \t]*(?:({_NAME})|\{{[ \t]*\"([^\"\n]*)\")")


def recognises(text: str) -> bool:
    """Return whether a text has a sample with labels, or a `# TYPE` comment."""
    # The substring tests skip the slow patterns in most texts of other formats.
    return ("# TYPE " in text and bool(_TYPE.search(text))) or ("{" in text and bool(_WITH_LABELS.search(text)))


def read(text: str, source: str) -> Reading:
    """Read the series of consumer groups; skip other series and comments.

    Raises
    ------
    SourceError
        A line of a known series is broken; also as in `assemble`.
    """
    passed: list[tuple[int, str]] = []
    reading = assemble(_samples(text, source, passed), source, "line", dated=False)
    reading.passed_over = passed
    if passed:
        lines = "1 line that is not a sample" if len(passed) == 1 else f"{len(passed)} lines that are not samples"
        reading.notes.append(f"{source}: skipped {lines}; the first is line {passed[0][0]}: {shown(passed[0][1])}")
    return reading


def _samples(text: str, source: str, passed: list[tuple[int, str]]) -> Iterator[Sample]:
    """Yield the samples; append all other lines to `passed`."""
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _SAMPLE.fullmatch(line)
        if match is not None and (name := match["name"]) and not (is_known(name) or reports_lag(name)):
            continue
        sample = None if match is None else _sample(number, match)
        if sample is not None:
            yield sample
        elif (begins := _BEGINS.match(line)) and is_known(begins[1] or begins[2]):
            raise SourceError(f"{source}, line {number}: truncated or broken: {shown(line)}; give the original text")
        else:
            passed.append((number, line))


def named_series(text: str) -> tuple[str | None, dict[str, str]] | None:
    """Return name and labels of a series as PromQL writes it, such as `lag{group="g"}`; None if it has no labels."""
    match = _SAMPLE.fullmatch(f"{text.strip()} 0")
    pairs = [] if match is None else _LABEL.findall(match[2] or "")
    if match is None or not pairs or not all(value for _, value in pairs):
        return None
    labels = {_unescaped(key): _unescaped(value) for key, value in pairs}
    return labels.pop("__name__", match["name"]), labels


def _sample(number: int, match: re.Match[str]) -> Sample | None:
    """Return the sample of a line; None if it has no name, or a label twice."""
    name = match["name"]
    labels: dict[str, str] = {}
    for key, value in _LABEL.findall(match[2] or ""):
        if not value:  # OpenMetrics puts names with special characters among the labels
            if name is not None:
                return None
            name = _unescaped(key)
        elif (key := _unescaped(key)) in labels:
            return None
        else:
            labels[key] = _unescaped(value)
    if name is None:
        return None
    at = None if match["at"] is None else float(match["at"])
    value = float(match["value"]) if at is None or at >= 0 else math.nan  # Kommitted's unknown
    return Sample(number, name, labels, value, at)


def _unescaped(text: str) -> str:
    r"""Return a name or a quoted value with the escapes `\\`, `\"` and `\n` resolved."""
    if not text.startswith('"'):
        return text
    if "\\" not in text:
        return text[1:-1]
    return re.sub(r"\\(.)", lambda match: {"n": "\n", '"': '"', "\\": "\\"}.get(match[1], match[0]), text[1:-1])


FORMAT = Format("prometheus", "the text that an exporter exposes to Prometheus", recognises, read)
