"""The `evenlag` command: it owns the terminal; all it does is a call to the library."""

from evenlag.cli.commands import main

__all__ = ["main"]
