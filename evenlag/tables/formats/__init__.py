"""Readers of texts that other tools write about consumer groups, one module per format."""

from importlib import import_module

from evenlag.tables.formats.base import Format, Reading

_MODULES = (
    "describe",
    "burrow",
    "confluent",
    "grafana",
    "groups_json",
    "kaf",
    "kafkactl",
    "prometheus",
    "promql",
    "rpk",
)  # fmt: skip
_FORMATS: list[Format] = [import_module(f"{__name__}.{name}").FORMAT for name in _MODULES]
FORMATS: dict[str, Format] = {each.name: each for each in _FORMATS}
"""The formats that are recognised by their content, by their names for `--format`."""

__all__ = ["FORMATS", "Format", "Reading"]
