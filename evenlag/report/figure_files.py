"""File types of pictures, known without matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenlag.errors import SourceError

if TYPE_CHECKING:
    from pathlib import Path

KINDS = (".png", ".svg", ".pdf")


def check_kind(path: Path) -> None:
    """Refuse a picture whose suffix names no format.

    Raises
    ------
    SourceError
        It is none of `KINDS`.
    """
    if path.suffix.lower() not in KINDS:
        raise SourceError(f"{path}: unknown kind of picture; name it .png, .svg or .pdf")
