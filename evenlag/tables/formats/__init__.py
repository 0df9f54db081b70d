"""Texts that other tools write about consumer groups, a file for each format."""

from evenlag.tables.formats.base import Format, Reading
from evenlag.tables.formats.describe import DESCRIBE

FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        DESCRIBE,
    )
}  # fmt: skip
"""Every format that is told apart by its content, by the name that `--format` takes."""

__all__ = ["FORMATS", "Format", "Reading"]
