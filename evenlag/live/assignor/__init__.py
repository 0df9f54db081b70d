"""Assignors for kafka-python's and aiokafka's consumers, which assign by evenlag's plans (docs/assignor.md)."""

from evenlag.live.assignor.aiokafka_assignor import AioEvenlagAssignor
from evenlag.live.assignor.deciding import Decision
from evenlag.live.assignor.evenlag_assignor import EvenlagAssignor

__all__ = ["AioEvenlagAssignor", "Decision", "EvenlagAssignor"]
