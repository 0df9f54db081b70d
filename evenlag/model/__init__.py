"""The problem and its definition: balance, objective, bounds, the MIP and its backends."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.model import problem_files as problem_files
    from evenlag.model import rates as rates
    from evenlag.model.explanation.reasons import named_part as named_part

_HOMES = {
    "evenlag.model.explanation.reasons": "named_part",
    "evenlag.model.problem_files": "problem_files",
    "evenlag.model.rates": "rates",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__, __getattr__, __dir__ = lazily(__name__, _HOMES)
