"""The return value of `solve`: a plan, its quality, and a bound on the quality of any plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evenlag.model.balance import Balance
from evenlag.model.cards import result_card
from evenlag.model.certificate import Proof
from evenlag.model.explanation.reasons import Explanation, explanation_of, outcome_of
from evenlag.model.literals import BackendWord, listed
from evenlag.model.names import Name
from evenlag.model.objective import MOVED_SIZE, MOVES, Across, ObjectiveKind
from evenlag.model.payoff import Payoff
from evenlag.model.phases import Rebalance, rebalance
from evenlag.model.plan import Number, Plan, plain

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Status(Name):
    """Known quality of a plan."""

    OPTIMAL = "OPTIMAL"  # the bound meets the objective
    FEASIBLE = "FEASIBLE"  # stopped earlier; bound and gap limit the possible improvement
    HEURISTIC = "HEURISTIC"  # the plan of a published heuristic, without a proof
    EMPTY = "EMPTY"  # no member can take anything, or there are no partitions
    ERROR = "ERROR"  # in tables of many groups: this group failed


class StoppedBy(Name):
    """Reason for the end of a search."""

    PROOF = "proof"  # the bound meets the objective
    GAP = "gap"  # the requested gap was reached
    TIME = "time"  # the wall clock
    INTERRUPT = "interrupt"  # Ctrl-C, which the command treats as the end of the time
    WORK = "work"  # a work limit, or all stages finished within their shares of the time


class Binding(Name):
    """A rule or partition that limits the objective: without it, the bound would be lower."""

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
        OPTIMAL (the bound meets the objective), FEASIBLE (stopped earlier), HEURISTIC (a published heuristic was
        requested by name), EMPTY (no member can take anything, or there are no partitions).
    stopped_by : StoppedBy or None
        Reason for the end of the search: "proof", "gap", "time", "interrupt" or "work"; None if there was none. If
        today's assignment is kept (`left_alone`), it refers to the plan that was found.
    method : str
        The stage that found the plan (docs/glossary.md lists them), "current" for today's assignment.
    fallback : bool
        True if the plan is that of a published heuristic, unchanged.
    objective, bound : number
        In messages. `bound` holds for all plans; with `first`, for all that are no worse in these criteria.
    gap : float or None
        (objective − bound) / max(1, mean load); None if the plan breaks the requested balance.
    bound_by : str or None
        The stage that proved the bound (docs/solver.md lists them); None if none did and the bound is 0.
    moves_bound : int
        The fewest moves that the balance allows.
    stickiness : number or str
        Messages per move as resolved, or "fewest-moves".
    balance : Balance
    kind : ObjectiveKind
        Measure of loads in the objective.
    across : Across
        Aggregation over scenarios.
    binding : tuple of Binding
        The rules that limit the objective.
    violation : str or None
        Violation of the balance by a heuristic requested by name.
    warnings : tuple of str
        Dropped input, and stages that failed.
    seconds : float
        Wall-clock time of the whole call.
    payoff : Payoff or None
        The plan's saving compared with today's assignment; None if no partition has an owner.
    costs : mapping of name to int
        The plan's units of each cost of pairs for which the problem has data: "crossings", "moved_size", and the user's
        own.
    cost_bounds : mapping of name to int
        For each criterion in `first`: the least units of any plan, given those before.
    first : tuple of str
        Criteria that were minimized before the objective, in this order.
    max_load : number or None
        The ceiling on loads per weight, in messages.
    prices : mapping of name to number
        Messages per unit of each cost of pairs, as resolved, if not 0; the price of moves, or of their sizes, is in
        `stickiness`.
    proof : Proof or None
        The data behind `certificate`.
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
    proof: Proof | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        measured = self.spread if self.kind == ObjectiveKind.SPREAD else self.makespan
        figures = f"{self.kind}={measured}, moves={self.moves}, objective={self.objective}, bound={self.bound}"
        return f"<Result {self.plan.problem.group!r}: {self.status}, {figures}>"

    def _repr_html_(self) -> str:
        """Return the HTML shown by notebooks."""
        return result_card(self)

    @cached_property
    def certificate(self) -> dict[str, Any] | None:
        """The data by which `evenlag.verify` proves the bound again (docs/verify.md); None if nothing was bounded.

        It is built on first access.
        """
        return None if self.proof is None else self.proof.to_dict()

    @property
    def attested_by(self) -> str | None:
        """The solver whose two runs give the bound; None if a proof of evenlag's own does."""
        return self.bound_by if self.bound_by in listed(BackendWord) else None

    @property
    def pays(self) -> bool | None:
        """True if the plan saves the share that `only_if_better` asks for; if False, `plan` is today's assignment."""
        return None if self.payoff is None else self.payoff.pays

    @cached_property
    def verdict(self) -> str:
        """The decision in a sentence: the objection to the moves, if there is one; else the gain of the plan."""
        return self.objection or outcome_of(self)

    @property
    def objection(self) -> str | None:
        """A sentence if the moves of the plan buy nothing, or hardly anything; None for any other plan.

        Plans that minimize other criteria than moves first are not judged by their spread.
        """
        return self.payoff.objection if self.payoff is not None and not {*self.first} - {"moves"} else None

    @property
    def left_alone(self) -> bool:
        """True if another plan was found, but today's assignment is kept because that plan does not pay."""
        return self.payoff is not None and self.payoff.pays is False and not self.payoff.unchanged

    @property
    def found(self) -> Plan:
        """The plan that the search found, whether or not it pays."""
        return self.plan if self.payoff is None else self.payoff.plan

    @property
    def assignment(self) -> dict[str, list[tuple[str, int]]]:
        """The plan as `{member: [(topic, partition), …]}`; all members are listed."""
        return self.plan.assignment

    @property
    def spread(self) -> Number:
        """Largest minus smallest load per weight, in messages."""
        return self.plan.spread

    @property
    def makespan(self) -> Number:
        """Largest load per weight, in messages."""
        return self.plan.makespan

    @property
    def scenario_spreads(self) -> list[Number]:
        """The spread in each scenario, in messages; empty if there are none."""
        return [each.spread for each in self.plan.in_scenarios] if self.plan.problem.futures else []

    @property
    def moves(self) -> int:
        """Partitions that leave their owner."""
        return self.plan.moves

    @property
    def crossings(self) -> int | None:
        """Traffic that crosses racks, or partitions that do if no traffic is given; None if racks are unknown."""
        return self.costs.get("crossings")

    @property
    def crossings_bound(self) -> int | None:
        """The least crossings of any plan, if they come first; else None."""
        return self.cost_bounds.get("crossings")

    @property
    def moved_size(self) -> int:
        """Total size of the partitions that leave their owner; 1 each if there are no sizes."""
        return self.costs.get("moved_size", self.moves)

    def units_of(self, name: str) -> int:
        """Return the plan's units of a cost that the problem has data for, moves included."""
        return self.moves if name == MOVES else self.costs[name]

    @property
    def priced(self) -> dict[str, Number]:
        """Price of a unit of each cost in the objective, moves or their sizes included, if not 0."""
        if isinstance(self.stickiness, str) or not self.stickiness:
            return dict(self.prices)
        return {MOVED_SIZE if MOVED_SIZE in self.costs else MOVES: self.stickiness, **self.prices}

    @property
    def forced_moves(self) -> int:
        """Assigned partitions that had no owner."""
        return self.plan.forced_moves

    @property
    def unassigned(self) -> list[tuple[str, int]]:
        """Partitions without a subscriber."""
        return self.plan.unassigned

    @cached_property
    def rebalance(self) -> Rebalance:
        """The phases of a cooperative rebalance that carry out the plan, and the rollback."""
        return rebalance(self.plan)

    @property
    def counts(self) -> dict[str, int]:
        """Partitions per member."""
        return dict(zip(self.plan.problem.members, self.plan.counts.tolist(), strict=True))

    @property
    def loads(self) -> dict[str, int]:
        """Messages per member."""
        return {name: int(load) for name, load in zip(self.plan.problem.members, self.plan.loads, strict=True)}

    def explain(self, name: str | tuple[str, int] | None = None) -> Explanation:
        """Return the reasons for this result, as claims that can be checked (docs/explain.md).

        Parameters
        ----------
        name : str or tuple of (str, int), optional
            A member, or a partition such as "orders-3" or ("orders", 3); without, the group as a whole.

        Raises
        ------
        InvalidProblemError
            The group has no such partition or member; the message suggests the nearest.
        """
        return explanation_of(self, name)

    def to_pandas(self) -> pd.DataFrame:
        """Return the plan as a pandas DataFrame with one row per partition.

        Columns: topic, partition, lag (messages), previous_member, member (None if there is none), and move: kept,
        moved, forced (without an owner before) or unassigned (without a subscriber). If racks of members are known,
        also member_rack, and crossing, which is True if the member reads across racks and None if a rack is unknown.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed.
        """
        return self.plan.to_pandas()

    def to_arrow(self) -> pa.Table:
        """Return the plan as a pyarrow Table with the columns of `to_pandas`."""
        return self.plan.to_arrow()

    def to_polars(self) -> pl.DataFrame:
        """Return the plan as a Polars DataFrame with the columns of `to_pandas`."""
        return self.plan.to_polars()

    def to_dict(self) -> dict[str, Any]:
        """Return the result-file document (docs/formats.md)."""
        sticky = self.stickiness
        empty = self.status == Status.EMPTY  # there is no plan to give figures of
        return {
            "group": self.plan.problem.group,
            "status": str(self.status),
            "stopped_by": None if self.stopped_by is None else str(self.stopped_by),
            "method": self.method,
            "fallback": self.fallback,
            "objective": None if empty else plain(self.objective),
            "bound": None if empty else plain(self.bound),
            "bound_by": self.bound_by,
            "gap": None if empty else self.gap,
            "spread": None if empty else plain(self.spread),
            "makespan": None if empty else plain(self.makespan),
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
            "verdict": self.verdict,
            "payoff": None if self.payoff is None else self.payoff.to_dict(),
            "facts": self.plan.problem.facts.to_dict(),
            "warnings": list(self.warnings),
            "certificate": self.certificate,
            "assignment": self.plan.listed,
            "members": self.plan.problem.identities(),
            "lags": self.plan.problem.lags_by_topic(),
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
            "fetch_from": str(self.plan.problem.pairs.fetch_from),
        }

    def _of_scenarios(self) -> dict[str, Any]:
        if not self.plan.problem.futures:
            return {}
        spreads = None if self.status == Status.EMPTY else [plain(spread) for spread in self.scenario_spreads]
        return {"across": str(self.across), "scenario_spreads": spreads}
