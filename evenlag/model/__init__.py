"""The problem and its definition: balance, objective, bounds, the MIP and its backends."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.model import problem_files, rates
    from evenlag.model.explanation.reasons import named_part

__all__ = ["named_part", "problem_files", "rates"]

_HOMES = {
    "named_part": "evenlag.model.explanation.reasons",
    "problem_files": "evenlag.model.problem_files",
    "rates": "evenlag.model.rates",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__, __dir__ = lazily(__name__, _HOMES)
