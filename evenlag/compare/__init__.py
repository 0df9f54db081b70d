"""Comparisons: strategies (audit), budgets (frontier), recorded history (replay), changes (whatif), sizes (size)."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.compare import catch_up as catch_up
    from evenlag.compare import simulation as simulation
    from evenlag.compare import speeds as speeds
    from evenlag.compare.before_after import WhatIf as WhatIf
    from evenlag.compare.before_after import whatif as whatif
    from evenlag.compare.budgets import frontier as frontier
    from evenlag.compare.change import Change as Change
    from evenlag.compare.change import changed as changed
    from evenlag.compare.curve import Frontier as Frontier
    from evenlag.compare.curve import FrontierPoint as FrontierPoint
    from evenlag.compare.history import Snapshot as Snapshot
    from evenlag.compare.members_needed import Size as Size
    from evenlag.compare.members_needed import SizeRow as SizeRow
    from evenlag.compare.members_needed import size as size
    from evenlag.compare.migration import Migration as Migration
    from evenlag.compare.migration import migrate as migrate
    from evenlag.compare.replay_result import Replay as Replay
    from evenlag.compare.simulation import replay as replay
    from evenlag.compare.strategies import Audit as Audit
    from evenlag.compare.strategies import AuditRow as AuditRow
    from evenlag.compare.strategies import audit as audit
    from evenlag.compare.unlike_members import Weighing as Weighing
    from evenlag.compare.unlike_members import member_speeds as member_speeds
    from evenlag.compare.unlike_members import unlike_speeds as unlike_speeds
    from evenlag.compare.unlike_members import with_speeds as with_speeds

_HOMES = {
    "evenlag.compare.before_after": "WhatIf whatif",
    "evenlag.compare.budgets": "frontier",
    "evenlag.compare.change": "Change changed",
    "evenlag.compare.curve": "Frontier FrontierPoint",
    "evenlag.compare.history": "Snapshot",
    "evenlag.compare.members_needed": "Size SizeRow size",
    "evenlag.compare.migration": "Migration migrate",
    "evenlag.compare.replay_result": "Replay",
    "evenlag.compare.simulation": "replay",
    "evenlag.compare.strategies": "Audit AuditRow audit",
    "evenlag.compare.unlike_members": "member_speeds with_speeds",
}
_INNER = {
    "evenlag.compare.catch_up": "catch_up",
    "evenlag.compare.simulation": "simulation",
    "evenlag.compare.speeds": "speeds",
    "evenlag.compare.unlike_members": "Weighing unlike_speeds",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__, __getattr__, __dir__ = lazily(__name__, _HOMES, _INNER)
