"""Readers of texts that other tools write about consumer groups, one module per format."""

from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.burrow import BURROW
from evenlag.tables.formats.confluent import CONFLUENT
from evenlag.tables.formats.describe import DESCRIBE
from evenlag.tables.formats.grafana import GRAFANA
from evenlag.tables.formats.groups_json import GROUPS_JSON
from evenlag.tables.formats.kaf import KAF
from evenlag.tables.formats.kafkactl import KAFKACTL
from evenlag.tables.formats.prometheus import PROMETHEUS
from evenlag.tables.formats.promql import PROMQL
from evenlag.tables.formats.rpk import RPK

FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        DESCRIBE,
        BURROW,
        CONFLUENT,
        GRAFANA,
        GROUPS_JSON,
        KAF,
        KAFKACTL,
        PROMETHEUS,
        PROMQL,
        RPK,
    )
}  # fmt: skip
"""The formats that are recognised by their content, by their names for `--format`."""

__all__ = ["FORMATS", "Format", "Reading"]
