"""The former name of a part of `evenlag.live.assignor`, which stays importable."""

from evenlag.live.assignor import AioEvenlagAssignor

__all__ = ["AioEvenlagAssignor"]
