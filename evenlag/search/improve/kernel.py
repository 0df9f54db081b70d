"""The compiled form of what exchanges.py does, where it is there; chosen once, when this is imported.

`evenlag/search/improve/_kernel` is built from kernel.c when evenlag is installed, where there is a compiler. Without
it, from an archive, or with the environment variable EVENLAG_KERNEL=off, NumPy does the same. A call works through
arrays of whole numbers of a `SearchState` in place, holds no Python object in its loops, and keeps nothing between
calls but pointers to them: it may be used in threads of their own, after a fork, and on machines of which only some
have it. Numbers whose sums could pass 64 bits are left to NumPy (`SearchState.dtype`).
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from evenlag.model.objective import ObjectiveKind

if TYPE_CHECKING:
    from evenlag.model.arrays import Whole
    from evenlag.search.improve.state import SearchState

VARIABLE = "EVENLAG_KERNEL"
VERSION = 1  # of the calls; a kernel that was built from other code is not used

Found = tuple[int, int, int, float] | None


def compiled(name: str, version: int) -> Any:
    """Return a compiled module of evenlag whose calls have this version; None where it is not there or switched off."""
    if os.environ.get(VARIABLE) == "off":
        return None
    try:
        module = import_module(name)
    except ImportError:
        return None
    return module if version == module.VERSION else None


_compiled: Any = compiled("evenlag.search.improve._kernel", VERSION)


def status() -> str:
    """Return "compiled" or "numpy": which form is used."""
    return "numpy" if _compiled is None else "compiled"


def prepare(state: SearchState) -> Any:
    """Return what the other calls need of a state, whose arrays must stay where they are; None: let NumPy do it."""
    if _compiled is None or state.dtype is not np.int64 or state.costs.dtype == object:
        return None
    rule, problem = state.rule, state.problem
    none = np.zeros(0, np.int64)
    totals, topics, ranks = rule.total_bounds, rule.topic_bounds, rule.ranks
    arrays = (
        *(state.table, state.loads, state.factors, state.lows, state.highs, state.weights, state.units),
        *(state.items, state.starts, state.member_of, problem.owner, problem.topic_of, problem.allowed),
        *(state.counts, totals.lo, totals.hi),
        *((none, none) if ranks is None else (ranks.base, ranks.steps)),
        state.topic_counts,
        *((none, none) if topics is None else (topics.lo, topics.hi)),
        *(state.sums, state.costs, state.used, state.budgets, state.pair_prices, state.rates, state.active),
    )
    kinds = [np.float64 if a.dtype == np.float64 else a.dtype if a.dtype in _SMALL else np.int64 for a in arrays]
    fixed = tuple(np.ascontiguousarray(a, kind) for a, kind in zip(arrays, kinds, strict=True))
    return _compiled.prepare(
        fixed, state.by_topic, rule.topic_distance, -1 if ranks is None else ranks.total,
        state.unit, state.move_price, min(state.ceiling, 2**62), state.worst_counts,
        state.goal.kind == ObjectiveKind.SPREAD,
    )  # fmt: skip


_SMALL = (np.dtype(np.int32), np.dtype(np.bool_))


def exchange(prepared: Any, a: int, b: int, p: int, q: int) -> None:
    """Carry out an exchange of two members: `a` gives p and takes q; -1 is none."""
    _compiled.exchange(prepared, a, b, p, q)


def by_objective(prepared: Any, me: int, others: Whole, moves_left: int) -> Found:
    """See `exchanges.by_objective`."""
    found: Found = _compiled.by_objective(prepared, me, np.ascontiguousarray(others, np.int64), moves_left)
    return found


def by_distance(prepared: Any, me: int, others: Whole, moves_left: int, *how: Any) -> Found:
    """See `exchanges.by_distance`."""
    found: Found = _compiled.by_distance(prepared, me, np.ascontiguousarray(others, np.int64), moves_left, *how)
    return found
