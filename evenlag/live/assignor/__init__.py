"""Assignors for kafka-python's and aiokafka's consumers (docs/assignor.md; needs the extra `kafka` or `aiokafka`)."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.live.assignor.aiokafka_assignor import AioEvenlagAssignor as AioEvenlagAssignor
    from evenlag.live.assignor.deciding import Decision as Decision
    from evenlag.live.assignor.evenlag_assignor import EvenlagAssignor as EvenlagAssignor

_HOMES = {
    "evenlag.live.assignor.aiokafka_assignor": "AioEvenlagAssignor",
    "evenlag.live.assignor.deciding": "Decision",
    "evenlag.live.assignor.evenlag_assignor": "EvenlagAssignor",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__, __getattr__, __dir__ = lazily(__name__, _HOMES)
