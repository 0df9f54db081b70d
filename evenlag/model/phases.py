"""The two phases in which the cooperative protocol carries out a plan, and the rollback.

No member gets a partition that another may still hold: a partition that moves is first revoked, and given to its new
member only after all members have revoked theirs (KIP-429).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evenlag.model.origin import no_claims
from evenlag.model.plan import Plan, by_member
from evenlag.model.problem import NOBODY, Bools, Index, Problem

Partitions = list[tuple[str, int]]


@dataclass(frozen=True, eq=False)
class Phase:
    """One rebalance: the partitions that each member keeps, revokes and gets. Revocation ends before the next phase.

    Attributes
    ----------
    problem : Problem
    before, after : int32 array (P,)
        Member that holds each partition, or `NOBODY`.
    claims : int32 array (N, 2)
        (partition, member) for members other than `before` that may hold a partition; they give it up in this phase.
    """

    problem: Problem
    before: Index
    after: Index
    claims: Index

    def __repr__(self) -> str:
        revoked, given = (sum(map(len, lists.values())) for lists in (self.revoke, self.assign))
        return f"<Phase {self.problem.group!r}: revoked={revoked}, assigned={given}>"

    @cached_property
    def keep(self) -> dict[str, Partitions]:
        """Partitions that each member goes on reading; all members are listed."""
        return self._lists(self.after, self.before == self.after)

    @cached_property
    def revoke(self) -> dict[str, Partitions]:
        """Partitions that each member gives up; all members are listed."""
        lists = self._lists(self.before, self.before != self.after)
        names, members = self.problem.partitions, self.problem.members
        for partition, member in self.claims.tolist():
            lists[members[member]].append(names[partition])
        return {member: sorted(partitions) for member, partitions in lists.items()}

    @cached_property
    def assign(self) -> dict[str, Partitions]:
        """Partitions that each member starts to read; all members are listed. Nobody holds them before this phase."""
        return self._lists(self.after, self.before != self.after)

    def to_dict(self) -> dict[str, Any]:
        """Return the phase as in the result file (docs/formats.md)."""
        lists = {"keep": self.keep, "revoke": self.revoke, "assign": self.assign}
        return {
            what: {member: [list(name) for name in names] for member, names in by_name.items()}
            for what, by_name in lists.items()
        }

    def _lists(self, holder: Index, chosen: Bools) -> dict[str, Partitions]:
        names, members = self.problem.partitions, self.problem.members
        held = by_member(holder, len(members), chosen)
        return {member: [names[p] for p in here.tolist()] for member, here in zip(members, held, strict=True)}


@dataclass(frozen=True, eq=False)
class Rebalance:
    """The change from one assignment to another, in one or two phases.

    Attributes
    ----------
    problem : Problem
    before, after : int32 array (P,)
        Member of each partition at the start and at the end, or `NOBODY`.
    claims : int32 array (N, 2)
        (partition, member) for members other than `before` that may hold a partition at the start.
    """

    problem: Problem
    before: Index
    after: Index
    claims: Index

    def __repr__(self) -> str:
        changed = int((self.before != self.after).sum())
        return f"<Rebalance {self.problem.group!r}: phases={len(self.phases)}, partitions={changed}>"

    @cached_property
    def withheld(self) -> Bools:
        """Mask of partitions that wait for phase 2 because another member may still hold them; shape (P,)."""
        held = self.before != NOBODY
        held[self.claims[:, 0]] = True
        waiting: Bools = held & (self.after != self.before) & (self.after != NOBODY)
        return waiting

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """Phase 1: members revoke lost partitions and get free ones. Phase 2, if needed: the rest."""
        between = np.where(self.withheld, NOBODY, self.after).astype(np.int32)
        first = Phase(self.problem, self.before, between, self.claims)
        if not self.withheld.any():
            return (first,)
        return first, Phase(self.problem, between, self.after, no_claims())

    @cached_property
    def rollback(self) -> Rebalance:
        """The rebalance back to the start: each partition goes to its former owner, or to nobody.

        It can start at any time, even before the end was reached: members then revoke whatever its first phase does
        not let them keep.
        """
        return Rebalance(self.problem, self.after, self.before, no_claims())

    def to_dict(self) -> dict[str, Any]:
        """Return the phases of the change and of its rollback as in the result file (docs/formats.md)."""
        return {
            "phases": [phase.to_dict() for phase in self.phases],
            "rollback": [phase.to_dict() for phase in self.rollback.phases],
        }


def rebalance(plan: Plan) -> Rebalance:
    """Return the phases from the current assignment to any plan.

    A member whose claim to a partition was dropped (`Problem.lost_claims`) may nevertheless hold it. It revokes it in
    phase 1, and a new owner gets it in phase 2, unless the owner keeps it. Partitions of members that have left the
    group are free, because the coordinator has taken them back.

    Examples
    --------
    `c1` joins. `orders-2` moves and is withheld until `c0` has revoked it; `orders-3` is new.

    >>> owned = {"c0": [("orders", 0), ("orders", 1), ("orders", 2)]}
    >>> problem = Problem.from_lags({"orders": [9, 8, 7, 6]}, {"c0": ["orders"], "c1": ["orders"]}, owned=owned)
    >>> goal = {"c0": [("orders", 0), ("orders", 1)], "c1": [("orders", 2), ("orders", 3)]}
    >>> first, second = rebalance(Plan.from_assignment(problem, goal)).phases
    >>> first.keep["c0"], first.revoke["c0"], first.assign["c1"]
    ([('orders', 0), ('orders', 1)], [('orders', 2)], [('orders', 3)])
    >>> second.keep["c1"], second.assign["c1"]
    ([('orders', 3)], [('orders', 2)])
    """
    problem, claims = plan.problem, plan.problem.lost_claims
    others = claims[problem.owner[claims[:, 0]] != claims[:, 1]]
    return Rebalance(problem, problem.owner, plan.member_of, others)
