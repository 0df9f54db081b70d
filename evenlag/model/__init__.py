"""The problem and its definition: balance, objective, bounds, the MIP and its backends."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.model import files, rates
    from evenlag.model.explanation.reasons import named_part

__all__ = ["files", "named_part", "rates"]

_HOMES = {
    "files": "evenlag.model.files",
    "named_part": "evenlag.model.explanation.reasons",
    "rates": "evenlag.model.rates",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__, __dir__ = lazily(__name__, _HOMES)
