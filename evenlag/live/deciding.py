"""The former name of a part of `evenlag.live.assignor`, which stays importable."""

from evenlag.live.assignor import Decision

__all__ = ["Decision"]
