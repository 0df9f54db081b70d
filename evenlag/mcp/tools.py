"""The tools: the Python call of each, and how it becomes an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator
from rich.console import RenderableType
from rich.text import Text

import evenlag
from evenlag import live, report
from evenlag.compare.built_in import notes_beside, setting_notes
from evenlag.compare.catch_up import Pace, pace_of
from evenlag.compare.history import Snapshot
from evenlag.compare.speeds import speeds
from evenlag.door import is_text, read_groups, read_recorded
from evenlag.errors import InvalidProblemError, printable
from evenlag.figures import quantity
from evenlag.mcp.access import Access
from evenlag.mcp.cutting import LEFT_OUT
from evenlag.mcp.signatures import Schema, described_in, parameters_of, summary_of
from evenlag.model.explanation.reasons import named_part
from evenlag.model.in_memory import in_memory
from evenlag.model.interrupt import ending_searches
from evenlag.model.names import did_you_mean
from evenlag.model.problem import Problem
from evenlag.model.problem_files import read_json
from evenlag.model.result import Result
from evenlag.tables.cluster_address import Brokers

SOURCES = ("source", "members")
READING = (*SOURCES, "group", "format", "auto_offset_reset", "subscribed", "fetch_from", "since")
AHEAD = (*READING, "horizon", "capacity")
OF_THE_SERVER = {"threads", "config", "rates", "skip_errors"}
"""Parameters that a client does not give: the server's, and rates, which follow from the record."""
TIME_LIMIT = "time_limit"
OF_TYPES = ("type", "items", "additionalProperties", "default")
DESCRIBED = "Parameters without a description are described by the tool plan."


class Group(NamedTuple):
    """A group that was read.

    Attributes
    ----------
    notes : list of str
        Notes on the input.
    record : list of Snapshot
        Its last snapshots.
    capacity : float or None
        Messages per second of a member, if given for reading.
    cluster : Brokers or None
        The cluster that it was read from.
    """

    problem: Problem
    notes: list[str]
    record: list[Snapshot]
    capacity: float | None
    access: Access
    cluster: Brokers | None


class Answer(NamedTuple):
    """An answer: the command's output with `--json` (a document), and without (text)."""

    document: dict[str, Any]
    text: str


@dataclass(frozen=True)
class Tool:
    """A tool.

    Attributes
    ----------
    call : callable
        The Python call that describes it.
    answer : callable
        Returns the answer for a group, given keywords.
    reading : tuple of str
        Parameters of `evenlag.read` that it takes.
    also : callable or None
        A call that runs first; its parameters are added to the tool's.
    defaults : mapping
        Defaults that differ between the command and the call, as in the command.
    optional : tuple of str
        Parameters that the call requires but the command works out itself.
    """

    call: Callable[..., Any]
    answer: Callable[..., Answer]
    reading: tuple[str, ...] = AHEAD
    also: Callable[..., Any] | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    optional: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """Description for clients."""
        about = [summary_of(call) for call in (self.also, self.call) if call is not None]
        return " ".join(about if self is TOOLS["plan"] else [*about, DESCRIBED])

    def schema(self, access: Access) -> Schema:
        """Return the JSON schema of the arguments; the source is described with what the server may read.

        A client reads the schemas of all tools at its start. So a parameter that `plan` has too is described there
        alone; other tools have its type and default.
        """
        read = parameters_of(evenlag.read)
        found = {name: read[name] for name in self.reading}
        for call in filter(None, (self.call, self.also)):
            found |= {name: each for name, each in parameters_of(call).items() if name not in OF_THE_SERVER}
        properties = {
            name: each.schema | ({"default": self.defaults[name]} if name in self.defaults else {})
            for name, each in found.items()
        }
        if self is not TOOLS["plan"]:
            described = {**parameters_of(evenlag.solve), **read}
            for name in properties.keys() & described.keys():
                if properties[name]["description"] == described[name].schema["description"]:
                    properties[name] = {key: properties[name][key] for key in OF_TYPES if key in properties[name]}
        required = [name for name, each in found.items() if each.required and name not in self.optional]
        if self.call is evenlag.verify:
            properties["result"], required = RESULT, [*required, "result"]
        source = properties["source"]
        properties["source"] = source | {"description": f"{source.get('description', '')} {access}".strip()}
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def run(self, access: Access, arguments: Mapping[str, Any], longest: float) -> Answer:
        """Read the source and answer; a search takes at most `longest` seconds.

        Raises
        ------
        EvenlagError
            An argument is invalid, the source cannot be read, or the call fails.
        """
        schema = self.schema(access)
        given = {name: value for name, value in arguments.items() if value is not None}
        check_arguments(given, schema)
        given = dict(self.defaults) | given
        if TIME_LIMIT in schema["properties"]:
            given[TIME_LIMIT] = min(given.get(TIME_LIMIT, schema["properties"][TIME_LIMIT]["default"]), longest)
        given |= {name: access.opened(given[name]) for name in SOURCES if isinstance(given.get(name), str)}
        if (cluster := access.cluster_of(given["source"])) is not None:
            given["config"] = cluster.config
        if self.call is read_groups:
            return _groups(given)
        reading = {name: given.pop(name) for name in (*self.reading, "config") if name in given}
        problem, notes, record = read_recorded(**reading)
        return self.answer(Group(problem, notes, record, reading.get("capacity"), access, cluster), **given)


def check_arguments(given: Mapping[str, Any], schema: Schema) -> None:
    """Check names and types of arguments; the calls check the values.

    Raises
    ------
    InvalidProblemError
        An argument is unknown, is missing, or has another type. The message names it.
    """
    known = schema["properties"]
    for name in given:
        if name not in known:
            raise InvalidProblemError(f"unknown parameter {name!r}{did_you_mean(name, known)}")
    for name in schema["required"]:
        if name not in given:
            raise InvalidProblemError(f"{name} is missing")
    for error in Draft202012Validator(schema).iter_errors(given):
        place = ".".join(map(str, error.absolute_path))
        if error.validator == "type":
            kinds = error.validator_value
            wanted = " or ".join([kinds] if isinstance(kinds, str) else kinds)
            raise InvalidProblemError(f"{place} must be of type {wanted}, not {error.instance!r:.100}")
        if error.validator == "additionalProperties":
            raise InvalidProblemError(f"{place}: {error.message:.300}")


def _answer(document: dict[str, Any], notes: list[str], *parts: RenderableType) -> Answer:
    return Answer(document, report.plain_text(*parts, *(Text(f"note: {note}") for note in notes)))


# ---- one for each tool -----------------------------------------------------------------------------------------------


def _groups(given: dict[str, Any]) -> Answer:
    found = read_groups(**given, skip_errors=True)
    rows = [_row(problem) for problem in found.values()]
    errors = {name: str(error) for name, error in found.errors.items()}
    lines = [
        f"{row['group']}: {quantity(row['partitions'], 'partition')}, {quantity(row['members'], 'member')}, "
        f"{quantity(row['lag'], 'message')} of lag"
        for row in rows
    ]
    lines += [f"{name}: cannot be used: {error}" for name, error in errors.items()]
    return Answer({"groups": rows, "errors": errors}, "\n".join(map(printable, lines)))


def _row(problem: Problem) -> dict[str, Any]:
    return {
        "group": problem.group,
        "partitions": len(problem.lags),
        "topics": len(problem.topics),
        "members": len(problem.members),
        "lag": problem.whole_lag,
        "facts": problem.facts.to_dict(),
    }


def _diagnose(group: Group, **keywords: Any) -> Answer:
    with ending_searches():
        found = evenlag.diagnose(group.problem, record=group.record, **keywords)
    notes = [*(note for note in group.notes if note not in found.assumed), *found.warnings]
    return _answer(report.diagnosis_document(found, notes), notes, report.diagnosis_report(found))


def _solved(group: Group, keywords: dict[str, Any]) -> tuple[Result, Pace, list[str]]:
    pace = pace_of(group.record, group.capacity)
    with ending_searches():
        result = evenlag.solve(group.problem, rates=pace.rates, **keywords)
    return result, pace, [*notes_beside(result), *group.notes]


def _plan(group: Group, **keywords: Any) -> Answer:
    result, pace, notes = _solved(group, keywords)
    assumed = "pause" not in keywords
    worth = () if result.payoff is None else report.payoff_report(result.payoff, pace, assumed)
    return _answer(report.plan_document(result, pace, notes), notes, report.plan_report(result, worth, None))


def _explain(group: Group, name: str | None = None, **keywords: Any) -> Answer:
    if name is not None:
        named_part(group.problem, name)  # raises errors before the search
    result, _, notes = _solved(group, keywords)
    explanation, warnings = result.explain(name), [*notes, *result.warnings]
    document = report.explanation_document(explanation, warnings)
    return _answer(document, warnings, report.explanation_report(explanation))


def _audit(group: Group, **keywords: Any) -> Answer:
    with ending_searches():
        audited = evenlag.audit(group.problem, **keywords)
    notes = [*setting_notes(group.problem), *group.notes]
    return _answer(report.audit_document(audited, notes), notes, report.audit_report(audited))


def _size(group: Group, drain_seconds: float, **keywords: Any) -> Answer:
    known = speeds(group.problem, group.record, group.capacity)
    with ending_searches():
        found = evenlag.size(group.problem, drain_seconds, known.capacity.rate, rates=known.rates, **keywords)
    notes = [*group.notes, *group.problem.warnings]
    shown = report.size_report(found, report.speed_lines(known, group.problem))
    return _answer(report.size_document(found, known, notes), notes, shown)


def _whatif(group: Group, change: dict[str, Any], **keywords: Any) -> Answer:
    with ending_searches():
        found = evenlag.whatif(group.problem, evenlag.Change(**change), record=group.record, **keywords)
    return _answer(report.whatif_document(found, group.notes), group.notes, report.whatif_report(found))


def _migrate(group: Group, topic_ids: dict[str, str] | None = None, **keywords: Any) -> Answer:
    if topic_ids is None and group.cluster is not None:
        topic_ids = live.topic_ids(group.cluster.servers, group.notes.append, config=group.cluster.config)
    with ending_searches():
        found = evenlag.migrate(group.problem, topic_ids=topic_ids, **keywords)
    return _answer(report.migration_document([found], group.notes), group.notes, report.migration_report(found))


def _verify(group: Group, result: dict[str, Any] | str, effort: float = 1.0) -> Answer:
    given = _read_result(result, group.access) if isinstance(result, str) else result
    if isinstance(given, dict) and LEFT_OUT in given:
        raise InvalidProblemError(
            f"the result lacks values that an answer of this server left out ({LEFT_OUT}); give the path of the file "
            "that evenlag plan --out writes"
        )
    verdict = evenlag.verify(given, group.problem, effort=effort)
    return Answer(verdict.to_dict(), printable(f"{verdict.outcome}: {verdict.reason}"))


def _read_result(result: str, access: Access) -> Any:
    opened = access.opened(result)
    if isinstance(opened, Path):
        return read_json(opened)
    if not is_text(opened):
        raise InvalidProblemError(f"result must be a document, or the path of its file, not {opened}")
    return read_json(in_memory(opened, "the text of the result"))


RESULT: Schema = {
    "type": ["object", "string"],
    "description": f"{described_in(evenlag.verify, 'result')} A text is the path of such a file.",
}
AUTO = {"horizon": "auto"}
TOOLS: dict[str, Tool] = {
    "groups": Tool(read_groups, _groups, reading=()),
    "diagnose": Tool(evenlag.diagnose, _diagnose, reading=READING),
    "plan": Tool(evenlag.solve, _plan, defaults=AUTO),
    "explain": Tool(Result.explain, _explain, also=evenlag.solve, defaults=AUTO),
    "audit": Tool(evenlag.audit, _audit, defaults=AUTO),
    "size": Tool(evenlag.size, _size, optional=("capacity",)),
    "whatif": Tool(evenlag.whatif, _whatif, defaults=AUTO),
    "migrate": Tool(evenlag.migrate, _migrate, reading=READING),
    "verify": Tool(evenlag.verify, _verify, defaults=AUTO),
}
