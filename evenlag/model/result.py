"""What `solve` returns: a plan, how good it is, and how good any plan could be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evenlag.model.asked_terms import FetchFrom
from evenlag.model.balance import Balance
from evenlag.model.cards import result_card
from evenlag.model.certificate import Proof
from evenlag.model.names import Name
from evenlag.model.objective import Across, ObjectiveKind
from evenlag.model.payoff import Payoff
from evenlag.model.phases import Rebalance, rebalance
from evenlag.model.plan import Number, Plan, plain

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Status(Name):
    """How good a plan is known to be."""

    OPTIMAL = "OPTIMAL"  # the bound meets the objective
    FEASIBLE = "FEASIBLE"  # stopped before that; bound and gap say how far it may be
    HEURISTIC = "HEURISTIC"  # a published heuristic's plan, which claims nothing
    EMPTY = "EMPTY"  # no member can take anything, or there are no partitions
    ERROR = "ERROR"  # in tables of many groups: this one failed


class StoppedBy(Name):
    """What ended a search."""

    PROOF = "proof"  # the bound meets the objective
    GAP = "gap"  # it came as near as was asked for
    TIME = "time"  # the wall clock
    INTERRUPT = "interrupt"  # Ctrl-C, which the command takes for the end of its time
    WORK = "work"  # a work limit, or all stages did what they could within their shares of the time


class Binding(Name):
    """A rule, or partition, without which the bound would be lower."""

    HOT_PARTITION = "hot-partition"
    COUNT_BALANCE = "count-balance"
    STICKINESS = "stickiness"
    SUBSCRIPTIONS = "subscriptions"
    PINS = "pins"
    PAIR_COSTS = "pair-costs"
    MAX_LOAD = "max-load"


@dataclass(frozen=True, eq=False)
class Result:
    """A plan with its proof.

    Attributes
    ----------
    plan : Plan
    status : Status
        OPTIMAL (the bound meets the objective), FEASIBLE (stopped before), HEURISTIC (a published heuristic was
        asked for by name), EMPTY (nobody can take anything, or there are no partitions).
    stopped_by : StoppedBy or None
        What ended the search: "proof", "gap", "time", "interrupt" or "work"; None where nothing was searched. Where
        the group is left alone (`left_alone`) it speaks of the plan that was found, not of today's assignment.
    method : str
        The stage that found the plan (docs/glossary.md lists them), "current" for today's assignment.
    fallback : bool
        The plan is a published heuristic's as it was.
    objective, bound : number
        Messages; `bound` is proven of all plans, with `first` of those that come to no more in these criteria.
    gap : float or None
        (objective − bound) / max(1, mean load); None where the plan breaks the balance asked for.
    bound_by : str or None
        The stage that proved the bound (docs/solver.md lists them); None where nothing did and the bound is 0.
    moves_bound : int
        The fewest moves that the balance allows.
    stickiness : number or str
        Messages per move as resolved, or "fewest-moves".
    balance : Balance
    kind : ObjectiveKind
        What the objective is made of, besides moves.
    across : Across
        What it takes of several scenarios.
    binding : tuple of Binding
        The rules that hold the bound up.
    violation : str or None
        How a heuristic asked for by name breaks the balance.
    warnings : tuple of str
        What was dropped from the input, and every stage that failed.
    seconds : float
        Wall clock of the whole call.
    payoff : Payoff or None
        What the plan saves against today's assignment; None where no partition has an owner.
    costs : mapping of name to int
        What the plan comes to in each cost of pairs that the problem has the data of: "crossings", "moved_size", and
        the caller's own.
    cost_bounds : mapping of name to int
        Of the criteria in `first`: the least that any plan comes to, given those before.
    first : tuple of str
        Criteria that were made least before the objective, in this order.
    max_load : number or None
        The ceiling on loads per weight, in messages.
    prices : mapping of name to number
        Messages that a unit of each cost of pairs costs, as resolved, where it is not 0; moves and their sizes have
        theirs in `stickiness`.
    fetch_from : FetchFrom
        Replicas that members were taken to read when crossings were counted.
    proof : Proof or None
        What `certificate` is made of.
    """

    plan: Plan
    status: Status
    stopped_by: StoppedBy | None
    method: str
    fallback: bool
    objective: Number
    bound: Number
    gap: float | None
    moves_bound: int
    stickiness: Number | str
    balance: Balance
    kind: ObjectiveKind
    across: Across
    binding: tuple[Binding, ...]
    violation: str | None
    warnings: tuple[str, ...]
    seconds: float
    payoff: Payoff | None = None
    bound_by: str | None = None
    costs: Mapping[str, int] = field(default_factory=dict)
    cost_bounds: Mapping[str, int] = field(default_factory=dict)
    first: tuple[str, ...] = ()
    max_load: Number | None = None
    prices: Mapping[str, Number] = field(default_factory=dict)
    fetch_from: FetchFrom = FetchFrom.FOLLOWERS
    proof: Proof | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        measured = self.spread if self.kind == ObjectiveKind.SPREAD else self.makespan
        figures = f"{self.kind}={measured}, moves={self.moves}, objective={self.objective}, bound={self.bound}"
        return f"<Result {self.plan.problem.group!r}: {self.status}, {figures}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return result_card(self)

    @cached_property
    def certificate(self) -> dict[str, Any] | None:
        """How the bound is proven again: what `evenlag.verify` reads (docs/verify.md); None where nothing was bounded.

        It is put together when it is asked for the first time.
        """
        return None if self.proof is None else self.proof.to_dict()

    @property
    def pays(self) -> bool | None:
        """Whether the plan saves what `only_if_better` asks for; if not, `plan` is today's assignment."""
        return None if self.payoff is None else self.payoff.pays

    @property
    def left_alone(self) -> bool:
        """Whether another plan was found, and today's assignment is kept because that one does not pay."""
        return self.payoff is not None and self.payoff.pays is False and not self.payoff.unchanged

    @property
    def assignment(self) -> dict[str, list[tuple[str, int]]]:
        """`{member: [(topic, partition), …]}`, every member named."""
        return self.plan.assignment

    @property
    def spread(self) -> Number:
        """max − min of load per weight, in messages."""
        return self.plan.spread

    @property
    def makespan(self) -> Number:
        """Largest load per weight, in messages."""
        return self.plan.makespan

    @property
    def scenario_spreads(self) -> list[Number]:
        """The spread in each scenario, in messages; none where there are none."""
        return [each.spread for each in self.plan.in_scenarios] if self.plan.problem.futures else []

    @property
    def moves(self) -> int:
        """Partitions that leave their owner."""
        return self.plan.moves

    @property
    def crossings(self) -> int | None:
        """Traffic that crosses racks, or partitions that do where there is no traffic; None: no racks are known."""
        return self.costs.get("crossings")

    @property
    def crossings_bound(self) -> int | None:
        """The least crossings of any plan, where they come first; else None."""
        return self.cost_bounds.get("crossings")

    @property
    def moved_size(self) -> int:
        """State that moves: the sizes of the partitions that leave their owner, each 1 where there are no sizes."""
        return self.costs.get("moved_size", self.moves)

    @property
    def forced_moves(self) -> int:
        """Assigned partitions that had no owner."""
        return self.plan.forced_moves

    @property
    def unassigned(self) -> list[tuple[str, int]]:
        """Partitions that nobody subscribes to."""
        return self.plan.unassigned

    @cached_property
    def rebalance(self) -> Rebalance:
        """The plan in the phases of a cooperative rebalance, and the way back."""
        return rebalance(self.plan)

    @property
    def counts(self) -> dict[str, int]:
        """Partitions per member."""
        return dict(zip(self.plan.problem.members, self.plan.counts.tolist(), strict=True))

    @property
    def loads(self) -> dict[str, int]:
        """Messages per member."""
        return {name: int(load) for name, load in zip(self.plan.problem.members, self.plan.loads, strict=True)}

    def to_pandas(self) -> pd.DataFrame:
        """Return the plan as a pandas DataFrame with a row for each partition.

        Columns: topic, partition, lag (messages), previous_member, member, and move: kept, moved, forced (it had no
        owner) or unassigned (nobody subscribes). Where there is no member, None. Where racks of members are known also
        member_rack, and crossing: whether the member reads across racks; None where a rack is not known.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed.
        """
        return self.plan.to_pandas(self.fetch_from)

    def to_arrow(self) -> pa.Table:
        """Return the plan as a pyarrow Table; the columns are those of `to_pandas`."""
        return self.plan.to_arrow(self.fetch_from)

    def to_polars(self) -> pl.DataFrame:
        """Return the plan as a Polars DataFrame; the columns are those of `to_pandas`."""
        return self.plan.to_polars(self.fetch_from)

    def to_dict(self) -> dict[str, Any]:
        """Return the result-file document (docs/formats.md)."""
        sticky = self.stickiness
        return {
            "group": self.plan.problem.group,
            "status": str(self.status),
            "stopped_by": None if self.stopped_by is None else str(self.stopped_by),
            "method": self.method,
            "fallback": self.fallback,
            "objective": plain(self.objective),
            "bound": plain(self.bound),
            "bound_by": self.bound_by,
            "gap": self.gap,
            "spread": plain(self.spread),
            "makespan": plain(self.makespan),
            **self._of_scenarios(),
            "moves": self.moves,
            "moves_bound": self.moves_bound,
            **self._of_costs(),
            "forced_moves": self.forced_moves,
            "unassigned": [list(name) for name in self.unassigned],
            "counts": self.counts,
            "loads": self.loads,
            "seconds": self.seconds,
            "stickiness": sticky if isinstance(sticky, str) else plain(sticky),
            "balance": str(self.balance),
            "binding": [str(rule) for rule in self.binding],
            "violation": self.violation,
            "pays": self.pays,
            "payoff": None if self.payoff is None else self.payoff.to_dict(),
            "warnings": list(self.warnings),
            "certificate": self.certificate,
            "assignment": {member: [list(name) for name in names] for member, names in self.assignment.items()},
        }

    def _of_costs(self) -> dict[str, Any]:
        if not (self.costs or self.first or self.max_load is not None):
            return {}
        return {
            "costs": dict(self.costs),
            "cost_bounds": dict(self.cost_bounds),
            "first": list(self.first),
            "max_load": plain(self.max_load),
            "prices": {name: plain(price) for name, price in self.prices.items()},
            "fetch_from": str(self.fetch_from),
        }

    def _of_scenarios(self) -> dict[str, Any]:
        if not self.plan.problem.futures:
            return {}
        return {"across": str(self.across), "scenario_spreads": [plain(spread) for spread in self.scenario_spreads]}
