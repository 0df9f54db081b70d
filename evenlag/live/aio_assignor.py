"""The former name of a part of `evenlag.live.assignor`, kept for existing imports."""

from evenlag.live.assignor import AioEvenlagAssignor

__all__ = ["AioEvenlagAssignor"]
