"""Assignors for kafka-python's and aiokafka's consumers (docs/assignor.md; needs the extra `kafka` or `aiokafka`)."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.live.assignor.aiokafka_assignor import AioEvenlagAssignor
    from evenlag.live.assignor.deciding import Decision
    from evenlag.live.assignor.evenlag_assignor import EvenlagAssignor

__all__ = ["AioEvenlagAssignor", "Decision", "EvenlagAssignor"]

_HOMES = {
    "AioEvenlagAssignor": "evenlag.live.assignor.aiokafka_assignor",
    "Decision": "evenlag.live.assignor.deciding",
    "EvenlagAssignor": "evenlag.live.assignor.evenlag_assignor",
}

if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept any name
    __getattr__, __dir__ = lazily(__name__, _HOMES)
