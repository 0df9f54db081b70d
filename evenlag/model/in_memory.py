"""Texts in memory, with the interface of a file."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import IO, Any

from evenlag.errors import SourceError


@dataclass(frozen=True)
class InMemory:
    """A text that is read like a file; errors call it by its name.

    It has those attributes and methods of `Path` that readers use.
    """

    content: bytes
    name: str = "the text"

    suffix = ""
    stem = "group"  # name of a group that the text does not name

    def __str__(self) -> str:
        return self.name

    def is_dir(self) -> bool:
        """Return False, because it is a single text."""
        return False

    def open(self, mode: str = "r", *, encoding: str = "utf-8", newline: str | None = None) -> IO[Any]:
        """Open the text for reading, as bytes (`rb`) or as text."""
        return BytesIO(self.content) if mode == "rb" else StringIO(self.content.decode(encoding), newline)

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return the text."""
        return self.content.decode(encoding)


File = Path | InMemory


def in_memory(source: str | bytes | IO[str] | IO[bytes], name: str) -> InMemory:
    """Wrap a text, bytes, or the rest of a file object.

    Raises
    ------
    SourceError
        A file object returns neither text nor bytes.
    """
    content = source if isinstance(source, str | bytes) else source.read()
    if isinstance(content, str):
        content = content.encode("utf-8", "surrogatepass")
    if not isinstance(content, bytes | bytearray):
        raise SourceError(f"{name}: must give text or bytes; got {type(content).__name__}")
    return InMemory(bytes(content), name)
