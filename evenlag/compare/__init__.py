"""Strategies beside each other: for one group (audit), over budgets of moves (frontier), over its history (replay)."""

from evenlag.compare.audit import Audit, AuditRow, audit
from evenlag.compare.frontier import Frontier, FrontierPoint, frontier
from evenlag.compare.history import Snapshot
from evenlag.compare.replay import replay
from evenlag.compare.replay_result import Replay

__all__ = ["Audit", "AuditRow", "Frontier", "FrontierPoint", "Replay", "Snapshot", "audit", "frontier", "replay"]
