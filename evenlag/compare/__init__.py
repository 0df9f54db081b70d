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

if not TYPE_CHECKING:  # type checkers use the imports above, and `lazily` reads their text
    __all__, __getattr__, __dir__ = lazily(__name__, inner="Weighing catch_up simulation speeds unlike_speeds")
