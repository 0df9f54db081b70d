"""Strategies beside each other: the audit and the frontier, and how they are shown."""

from evenlag.compare.audit import Audit, AuditRow, audit
from evenlag.compare.frontier import Frontier, FrontierPoint, frontier

__all__ = ["Audit", "AuditRow", "Frontier", "FrontierPoint", "audit", "frontier"]
