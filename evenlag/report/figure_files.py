"""File formats of pictures, available without matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenlag.errors import SourceError

if TYPE_CHECKING:
    from pathlib import Path

KINDS = (".png", ".svg", ".pdf")


def check_kind(path: Path) -> None:
    """Refuse a picture whose suffix is not a supported format.

    Raises
    ------
    SourceError
        The suffix is not in `KINDS`.
    """
    if path.suffix.lower() not in KINDS:
        raise SourceError(f"{path}: unknown picture format; name the file .png, .svg or .pdf")
