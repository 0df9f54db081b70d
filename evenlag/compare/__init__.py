"""Beside each other: the strategies (audit), budgets of moves (frontier), the past (replay), a change (whatif)."""

from evenlag.compare.audit import Audit, AuditRow, audit
from evenlag.compare.change import Change, changed
from evenlag.compare.frontier import Frontier, FrontierPoint, frontier
from evenlag.compare.history import Snapshot
from evenlag.compare.replay import replay
from evenlag.compare.replay_result import Replay
from evenlag.compare.whatif import WhatIf, whatif

__all__ = [
    "Audit",
    "AuditRow",
    "Change",
    "Frontier",
    "FrontierPoint",
    "Replay",
    "Snapshot",
    "WhatIf",
    "audit",
    "changed",
    "frontier",
    "replay",
    "whatif",
]
