"""Descriptions and JSON schemas of parameters, from the signatures and docstrings of Python calls."""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import evenlag
from evenlag.search import options
from evenlag.search.options import SolveKeywords

Schema = dict[str, Any]

_PLAIN = {bool: "boolean", int: "integer", float: "number", Fraction: "number", str: "string"}
_HEADING = re.compile(r"\n(\w+)\n-+\n")
_TELLING = re.compile(r"^[^{]*(share|mapping)")  # in the type of a docstring: more than a schema says
_REFERENCE = re.compile(r"As in `(\w+)`")
_DATA_FRAME = re.compile(r"A DataFrame .*?\.(\s|$)", re.DOTALL)  # a client has none


@dataclass(frozen=True)
class Parameter:
    """A parameter of a call.

    Attributes
    ----------
    schema : dict
        JSON schema, with the description and the default.
    """

    schema: Schema
    required: bool


def summary_of(call: Callable[..., Any]) -> str:
    """Return the first paragraph of a docstring."""
    return " ".join(f"{inspect.getdoc(call)}".partition("\n\n")[0].split())


@cache
def parameters_of(call: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the parameters of a call that JSON can express, including those of `**solving`."""
    found: dict[str, Parameter] = {}
    for name, each in inspect.signature(call).parameters.items():
        if each.kind is each.VAR_KEYWORD:
            for other, parameter in parameters_of(evenlag.solve).items():
                if other in SolveKeywords.__annotations__:
                    found.setdefault(other, parameter)
        elif (schema := schema_of(_evaluated(each.annotation, call))) is not None:
            default = {} if each.default in (each.empty, None) else {"default": _plain(each.default)}
            text = described_in(call, name)
            found[name] = Parameter(
                schema | ({"description": text} if text else {}) | default, each.default is each.empty
            )
    return found


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Enum) else value


def _evaluated(annotation: Any, call: Any) -> Any:
    """Return the type that an annotation of a call names; None if it is imported for type checkers alone.

    Keywords that a call passes on to the solver are declared with its options.
    """
    if not isinstance(annotation, str):
        return annotation
    for module in (call.__module__, options.__name__):
        with suppress(NameError):
            return eval(annotation, vars(sys.modules[module]))
    return None


# ---- types -----------------------------------------------------------------------------------------------------------


def schema_of(kind: Any) -> Schema | None:
    """Return the JSON schema of values of a type; None if JSON has no such values."""
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"type": "string", "enum": list(parts)}
    if origin in (Union, types.UnionType):
        return _either([schema for part in parts if (schema := schema_of(part)) is not None])
    if origin in (Sequence, Iterable):
        return None if (of := schema_of(parts[0])) is None else {"type": "array", "items": of}
    if origin is Mapping and parts[0] is str:
        values = schema_of(parts[1])
        nullable = type(None) in get_args(parts[1])
        return None if values is None else {
            "type": "object", "additionalProperties": _or_null(values) if nullable else values
        }  # fmt: skip
    if is_dataclass(kind) and kind is evenlag.Change:
        return _object(kind)
    return None


def _either(schemas: list[Schema]) -> Schema | None:
    """Return the schema of values that fit one of several."""
    if not schemas:
        return None
    names = list(dict.fromkeys(schema["type"] for schema in schemas))
    if names == ["string"]:
        words = [word for schema in schemas for word in schema.get("enum", ())]
        return {"type": "string"} | ({"enum": words} if all("enum" in schema for schema in schemas) else {})
    more = {key: value for schema in schemas for key, value in schema.items() if key not in ("type", "enum")}
    return {"type": names if len(names) > 1 else names[0]} | more


def _or_null(schema: Schema) -> Schema:
    named = schema["type"]
    return schema | {"type": [*([named] if isinstance(named, str) else named), "null"]}


def _object(kind: Any) -> Schema:
    """Return the schema of a dataclass, described by its docstring."""
    properties = {}
    for each in fields(kind):
        schema = schema_of(_evaluated(each.type, kind))
        if schema is not None:
            default = {} if each.default in (MISSING, None) else {"default": _plain(each.default)}
            properties[each.name] = schema | {"description": described_in(kind, each.name)} | default
    return {"type": "object", "description": summary_of(kind), "properties": properties, "additionalProperties": False}


# ---- docstrings ------------------------------------------------------------------------------------------------------


def described_in(call: Any, name: str) -> str:
    """Return the description of a parameter or attribute, with that of another call where the docstring refers to it.

    The type precedes it where it says more than a schema, such as a share or a unit.
    """
    for names, kind, text in _entries(call):
        if name in names:
            reference = _REFERENCE.match(text)
            if reference and hasattr(evenlag, reference[1]):
                return described_in(getattr(evenlag, reference[1]), name)
            more = kind.removesuffix(", optional")
            return f"{more[:1].upper()}{more[1:]}. {text}" if _TELLING.search(more) else text
    return ""


def _entries(call: Any) -> Iterator[tuple[list[str], str, str]]:
    """Yield names, type and text of each entry of the sections of parameters and attributes."""
    parts = _HEADING.split(f"{inspect.getdoc(call)}\n")
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        if heading in ("Parameters", "Attributes"):
            for entry in re.split(r"\n(?=\S)", body.strip("\n")):
                head, _, text = entry.partition("\n")
                names, _, kind = head.partition(" : ")
                plain = _DATA_FRAME.sub("", " ".join(text.split()))
                yield [each.strip(" *") for each in names.split(",")], kind, plain.strip()
