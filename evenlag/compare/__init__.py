"""Beside each other: strategies (audit), budgets of moves (frontier), the past (replay), changes (whatif), sizes."""

from evenlag.compare.audit import Audit, AuditRow, audit
from evenlag.compare.change import Change, changed
from evenlag.compare.frontier import Frontier, FrontierPoint, frontier
from evenlag.compare.history import Snapshot
from evenlag.compare.replay import replay
from evenlag.compare.replay_result import Replay
from evenlag.compare.size import Size, SizeRow, size
from evenlag.compare.whatif import WhatIf, whatif

__all__ = [
    "Audit",
    "AuditRow",
    "Change",
    "Frontier",
    "FrontierPoint",
    "Replay",
    "Size",
    "SizeRow",
    "Snapshot",
    "WhatIf",
    "audit",
    "changed",
    "frontier",
    "replay",
    "size",
    "whatif",
]
