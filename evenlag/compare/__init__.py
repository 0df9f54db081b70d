"""Beside each other: strategies (audit), budgets of moves (frontier), the past (replay), changes (whatif), sizes."""

from evenlag.compare.before_after import WhatIf, whatif
from evenlag.compare.budgets import Frontier, FrontierPoint, frontier
from evenlag.compare.change import Change, changed
from evenlag.compare.history import Snapshot
from evenlag.compare.members_needed import Size, SizeRow, size
from evenlag.compare.replay_result import Replay
from evenlag.compare.simulation import replay
from evenlag.compare.strategies import Audit, AuditRow, audit

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
