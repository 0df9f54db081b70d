"""The problem and its definition: balance, objective, bounds, the MIP and its backends."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.model import files, rates

__all__ = ["files", "rates"]

_HOMES = {"files": "evenlag.model.files", "rates": "evenlag.model.rates"}

if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__, __dir__ = lazily(__name__, _HOMES)
