"""Comparisons: strategies (audit), budgets (frontier), recorded history (replay), changes (whatif), sizes (size)."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.compare import catch_up as catch_up
    from evenlag.compare import simulation as simulation
    from evenlag.compare import speeds as speeds
    from evenlag.compare.before_after import WhatIf, whatif
    from evenlag.compare.budgets import frontier
    from evenlag.compare.change import Change, changed
    from evenlag.compare.curve import Frontier, FrontierPoint
    from evenlag.compare.history import Snapshot
    from evenlag.compare.members_needed import Size, SizeRow, size
    from evenlag.compare.migration import Migration, migrate
    from evenlag.compare.replay_result import Replay
    from evenlag.compare.simulation import replay
    from evenlag.compare.strategies import Audit, AuditRow, audit
    from evenlag.compare.unlike_members import Weighing as Weighing
    from evenlag.compare.unlike_members import member_speeds, with_speeds
    from evenlag.compare.unlike_members import unlike_speeds as unlike_speeds

__all__ = [
    "Audit",
    "AuditRow",
    "Change",
    "Frontier",
    "FrontierPoint",
    "Migration",
    "Replay",
    "Size",
    "SizeRow",
    "Snapshot",
    "WhatIf",
    "audit",
    "changed",
    "frontier",
    "member_speeds",
    "migrate",
    "replay",
    "size",
    "whatif",
    "with_speeds",
]

_HOMES = {
    "Audit": "evenlag.compare.strategies",
    "AuditRow": "evenlag.compare.strategies",
    "Change": "evenlag.compare.change",
    "Frontier": "evenlag.compare.curve",
    "FrontierPoint": "evenlag.compare.curve",
    "Migration": "evenlag.compare.migration",
    "Replay": "evenlag.compare.replay_result",
    "Size": "evenlag.compare.members_needed",
    "SizeRow": "evenlag.compare.members_needed",
    "Snapshot": "evenlag.compare.history",
    "Weighing": "evenlag.compare.unlike_members",
    "WhatIf": "evenlag.compare.before_after",
    "audit": "evenlag.compare.strategies",
    "catch_up": "evenlag.compare.catch_up",
    "changed": "evenlag.compare.change",
    "frontier": "evenlag.compare.budgets",
    "member_speeds": "evenlag.compare.unlike_members",
    "migrate": "evenlag.compare.migration",
    "replay": "evenlag.compare.simulation",
    "simulation": "evenlag.compare.simulation",
    "size": "evenlag.compare.members_needed",
    "speeds": "evenlag.compare.speeds",
    "unlike_speeds": "evenlag.compare.unlike_members",
    "whatif": "evenlag.compare.before_after",
    "with_speeds": "evenlag.compare.unlike_members",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__, __dir__ = lazily(__name__, _HOMES)
