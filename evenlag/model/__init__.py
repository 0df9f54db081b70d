"""The problem and its definition: balance, objective, bounds, the MIP and its backends."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.model import problem_files as problem_files
    from evenlag.model import rates as rates
    from evenlag.model.explanation.reasons import named_part as named_part

if not TYPE_CHECKING:  # type checkers use the imports above, and `lazily` reads their text
    __all__, __getattr__, __dir__ = lazily(__name__)
