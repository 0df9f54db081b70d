"""The text that exporters show to Prometheus, also in OpenMetrics' form."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from evenlag.errors import SourceError
from evenlag.model.values import shown
from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.exporters import is_known
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
    """Return whether a text has a line of a series, or one that says of which type a series is."""
    # Other texts may be long, and most have neither.
    return ("# TYPE " in text and bool(_TYPE.search(text))) or ("{" in text and bool(_WITH_LABELS.search(text)))


def read(text: str, source: str) -> Reading:
    """Read the series of consumer groups; other series and comments are left out.

    Raises
    ------
    SourceError
        A line of a known series is broken; also as `assemble`.
    """
    passed: list[tuple[int, str]] = []
    reading = assemble(_samples(text, source, passed), source, "line", dated=False)
    reading.passed_over = passed
    if passed:
        lines = "1 line that is no sample is" if len(passed) == 1 else f"{len(passed)} lines that are no samples are"
        reading.notes.append(f"{source}: {lines} passed over; the first is line {passed[0][0]}: {shown(passed[0][1])}")
    return reading


def _samples(text: str, source: str, passed: list[tuple[int, str]]) -> Iterator[Sample]:
    """Give the samples; put the lines that are none into `passed`."""
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _SAMPLE.fullmatch(line)
        if match is not None and match["name"] and not is_known(match["name"]):
            continue
        sample = None if match is None else _sample(number, match)
        if sample is not None:
            yield sample
        elif (begins := _BEGINS.match(line)) and is_known(begins[1] or begins[2]):
            raise SourceError(f"{source}, line {number}: is cut short or broken: {shown(line)}; give it as it was told")
        else:
            passed.append((number, line))


def _sample(number: int, match: re.Match[str]) -> Sample | None:
    """Return the sample of a line; None where it has no name, or a label twice."""
    name = match["name"]
    labels: dict[str, str] = {}
    for key, value in _LABEL.findall(match[2] or ""):
        if not value:  # OpenMetrics writes names that are not plain among the labels
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
    value = float(match["value"]) if at is None or at >= 0 else math.nan  # so Kommitted marks what it does not know
    return Sample(number, name, labels, value, at)


def _unescaped(text: str) -> str:
    r"""Return the text of a name or of a value in quotes, where `\\`, `\"` and `\n` stand for single characters."""
    if not text.startswith('"'):
        return text
    if "\\" not in text:
        return text[1:-1]
    return re.sub(r"\\(.)", lambda match: {"n": "\n", '"': '"', "\\": "\\"}.get(match[1], match[0]), text[1:-1])


PROMETHEUS = Format("prometheus", "the text that an exporter shows to Prometheus", recognises, read)
