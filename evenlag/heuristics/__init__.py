"""Published partition assignors, each a pure function of a problem, and the balance that each one promises.

Each word of `HeuristicWord` is a module here, with hyphens as underscores. It has

* `assign(problem) -> Plan`,
* `PROMISES`, the `Balance` of the counts in its plans, and
* `ASSIGNOR`, the protocol name under which members of a group select it, if they can.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from evenlag.model.balance import Balance
from evenlag.model.literals import HeuristicWord, listed
from evenlag.model.names import one_of, spelled
from evenlag.model.plan import Plan
from evenlag.model.problem import Problem, check_problem

_MODULES = {name: import_module(f"{__name__}.{name.replace('-', '_')}") for name in listed(HeuristicWord)}

HEURISTICS: dict[str, Callable[[Problem], Plan]] = {name: module.assign for name, module in _MODULES.items()}
PROMISED_BALANCE: dict[str, Balance] = {name: module.PROMISES for name, module in _MODULES.items()}
_OF_ASSIGNORS = {module.ASSIGNOR: name for name, module in _MODULES.items() if hasattr(module, "ASSIGNOR")}


@spelled
def assign(problem: Problem, heuristic: HeuristicWord) -> Plan:
    """Return the plan of a published heuristic, unchanged: the assignors ignore pins and caps, and most ignore weights.

    To get the same plan as a `Result`, checked against the problem's rules, call `evenlag.solve(problem,
    method=heuristic)`.

    Parameters
    ----------
    problem : Problem
    heuristic : str
        A name listed in docs/heuristics.md, such as "range", "cooperative-sticky" or "lag-aware".

    Raises
    ------
    InvalidProblemError
        The name is unknown; the message lists the known ones and suggests the nearest.

    Examples
    --------
    >>> problem = Problem.from_lags({"orders": [100_000, 60_000, 50_000]}, ["c0", "c1"])
    >>> assign(problem, "range").spread, assign(problem, "lag-aware").spread
    (110000, 10000)
    """
    check_problem(problem)
    return HEURISTICS[one_of(HEURISTICS, heuristic, "heuristic")](problem)


def published_name(assignor: str) -> str | None:
    """Return evenlag's name of the assignor that a group has agreed on, or None if evenlag does not implement it.

    Kafka's own assignors keep Kafka's names. Without racks, `range` assigns alike in clients and in the broker
    (KIP-848).

    Examples
    --------
    >>> published_name("cooperative-sticky"), published_name("lag"), published_name("of-our-own")
    ('cooperative-sticky', 'lag-aware', None)
    """
    return _OF_ASSIGNORS.get(assignor)
