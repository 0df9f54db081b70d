"""Assignors for kafka-python's and aiokafka's consumers (docs/assignor.md; needs the extra `kafka` or `aiokafka`)."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.live.assignor.aiokafka_assignor import AioEvenlagAssignor as AioEvenlagAssignor
    from evenlag.live.assignor.deciding import Decision as Decision
    from evenlag.live.assignor.evenlag_assignor import EvenlagAssignor as EvenlagAssignor

if not TYPE_CHECKING:  # type checkers use the imports above, and `lazily` reads their text
    __all__, __getattr__, __dir__ = lazily(__name__)
