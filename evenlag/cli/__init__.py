"""The `evenlag` command: it owns the terminal; all it does is a call to the library."""

from evenlag.cli.app import main

__all__ = ["main"]
