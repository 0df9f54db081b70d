"""Compiled form of exchanges.py, used if it is available; the choice is made once, at import.

`evenlag/search/improve/_kernel` is built from kernel.c when evenlag is installed with a compiler. NumPy does the same
work if it is missing, if evenlag runs from an archive, or if the environment variable EVENLAG_KERNEL is "off". A call
works in place on integer arrays of a `SearchState`. Its loops hold no Python object, and it keeps only pointers to the
arrays between calls. So it can run in several threads, after a fork, and on a cluster where only some machines have it.
Numbers whose sums could exceed 64 bits are left to NumPy (`SearchState.dtype`).
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from evenlag.model.objective import ObjectiveKind

if TYPE_CHECKING:
    from evenlag.model.arrays import Floats, Ints, Whole
    from evenlag.model.problem import Index
    from evenlag.search.improve.state import SearchState

VARIABLE = "EVENLAG_KERNEL"
VERSION = 3  # version of the interface; a kernel with another version is not used

Found = tuple[int, int, int, float] | None


def compiled(name: str, version: int) -> Any:
    """Return a compiled module of evenlag with this version; None if it is missing or switched off."""
    if os.environ.get(VARIABLE) == "off":
        return None
    try:
        module = import_module(name)
    except ImportError:
        return None
    return module if version == module.VERSION else None


_compiled: Any = compiled("evenlag.search.improve._kernel", VERSION)


def in_use() -> bool:
    """Return True if the compiled form is in use."""
    return _compiled is not None


def prepare(state: SearchState) -> Any:
    """Return the handle of a state for the other calls; None: use NumPy. The arrays must keep their memory."""
    if _compiled is None or state.dtype is not np.int64 or state.used.dtype == object:
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
        state.sums,
        *_costs(state),
        *(state.used, state.budgets, state.pair_prices, state.rates, state.active),
    )
    kinds = [np.float64 if a.dtype == np.float64 else a.dtype if a.dtype in _SMALL else np.int64 for a in arrays]
    fixed = tuple(np.ascontiguousarray(a, kind) for a, kind in zip(arrays, kinds, strict=True))
    return _compiled.prepare(
        fixed, state.by_topic, rule.topic_distance, -1 if ranks is None else ranks.total,
        state.unit, state.move_price, state.ceiling, state.worst_counts,
        state.goal.kind == ObjectiveKind.SPREAD,
    )  # fmt: skip


def _costs(state: SearchState) -> tuple[Ints, ...]:
    """Return the pair costs one after the other, with the first class of each, and classes, homes and costs there."""
    tables = state.costs
    if not tables:
        none = np.zeros(0, np.int64)
        return none, np.zeros(1, np.int64), none, np.zeros(0, np.int32), none
    first = np.cumsum([0, *(each.table.shape[1] for each in tables)])
    flat = np.concatenate([each.table.ravel() for each in tables])
    more = ([getattr(each, name) for each in tables] for name in ("class_of", "home", "at_home"))
    return flat, first, *(np.concatenate(each) for each in more)


_SMALL = (np.dtype(np.int32), np.dtype(np.bool_))


def exchange(prepared: Any, a: int, b: int, p: int, q: int) -> None:
    """Apply an exchange of two members: `a` gives p and takes q; -1 means no partition."""
    _compiled.exchange(prepared, a, b, p, q)


def by_objective(prepared: Any, me: int, others: Whole, moves_left: int) -> Found:
    """Call the compiled form of `exchanges.by_objective`."""
    found: Found = _compiled.by_objective(prepared, me, np.ascontiguousarray(others, np.int64), moves_left)
    return found


def by_distance(prepared: Any, me: int, others: Whole, moves_left: int, *how: Any) -> Found:
    """Call the compiled form of `exchanges.by_distance`."""
    found: Found = _compiled.by_distance(prepared, me, np.ascontiguousarray(others, np.int64), moves_left, *how)
    return found


def anneal(
    prepared: Any, best_of: Index, windows: Floats, limits: Whole, rates: Floats, best: int,
    steps: int, seed: int, heat: float, cooler: float,
) -> int | None:  # fmt: skip
    """Exchange at random; see annealing.py. Return the value of a better plan, if one was found; `best_of` holds it.

    Parameters
    ----------
    best_of : int32 array (P,)
        Receives the holders of the best plan.
    windows : float array (2, S)
        Low ends and widths of scaled loads; both change.
    limits : int64 array (K + 2,)
        Limits of the moves, of each pair cost, and of all that moves and pairs cost together; the last changes.
    rates : float array (K + 2,)
        Weight of a unit beyond each limit.
    best : int
        Value of the best plan.
    heat, cooler : float
        Length of worsenings that are likely, in scaled loads, and its factor from step to step.
    """
    value: int | None = _compiled.anneal(prepared, best_of, windows, limits, rates, best, steps, seed, heat, cooler)
    return value
