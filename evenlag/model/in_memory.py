"""Texts that are in no file, for readers of files."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import IO, Any

from evenlag.errors import SourceError


@dataclass(frozen=True)
class InMemory:
    """A text that a reader opens as it opens a file; errors call it by its name.

    It has those attributes and methods of a `Path` that readers need.
    """

    content: bytes
    name: str = "the text"

    suffix = ""
    stem = "group"  # what a group is called that the text does not name

    def __str__(self) -> str:
        return self.name

    def is_dir(self) -> bool:
        """Return False: it is one text."""
        return False

    def with_suffix(self, _suffix: str) -> InMemory:
        """Return the same text."""
        return self

    def open(self, mode: str = "r", *, encoding: str = "utf-8", newline: str | None = None) -> IO[Any]:
        """Open it for reading, as bytes (`rb`) or as text."""
        return BytesIO(self.content) if mode == "rb" else StringIO(self.content.decode(encoding), newline)

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return it as text."""
        return self.content.decode(encoding)


File = Path | InMemory


def in_memory(source: str | bytes | IO[str] | IO[bytes], name: str) -> InMemory:
    """Take a text, bytes or what a file object holds from where it stands.

    Raises
    ------
    SourceError
        A file object that gives neither.
    """
    content = source if isinstance(source, str | bytes) else source.read()
    if isinstance(content, str):
        content = content.encode("utf-8", "surrogatepass")
    if not isinstance(content, bytes | bytearray):
        raise SourceError(f"{name}: gives neither text nor bytes; got {type(content).__name__}")
    return InMemory(bytes(content), name)
