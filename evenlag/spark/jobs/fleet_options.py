"""The parameters of a call on the tables of a fleet as one frozen object that checks itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypedDict

from evenlag.compare.foresight import AUTO, ahead_micros
from evenlag.errors import InvalidProblemError
from evenlag.model.values import is_whole, shown
from evenlag.search.options import SolveKeywords, SolveOptions, TermKeywords, check_seconds, solving_options
from evenlag.spark.driver.protocol import Progress
from evenlag.spark.worker.group_work import Want
from evenlag.tables.call_defaults import AUTO_OFFSET_RESET, GROUP_TIME_LIMIT, TIME_LIMIT
from evenlag.tables.fleet_data import NO_FLEET_DATA, DataKeywords, FleetData


class CallKeywords(TypedDict, total=False):
    """Parameters of every call that processes all groups of a fleet; `FleetOptions` has their defaults."""

    auto_offset_reset: str
    tasks: int | None
    progress: Progress | None


class LimitedKeywords(CallKeywords, total=False):
    """Parameters of a call that plans or audits the groups within a time limit."""

    time_limit: float | None
    group_time_limit: float
    horizon: float | str


class PlanKeywords(LimitedKeywords, SolveKeywords, DataKeywords, total=False):
    """Parameters of a call that plans the groups."""


class AuditKeywords(LimitedKeywords, TermKeywords, DataKeywords, total=False):
    """Parameters of a call that audits the groups."""

    gap: float
    seed: int
    deterministic: bool


@dataclass(frozen=True, kw_only=True)
class FleetOptions:
    """Options of a call on the tables of a fleet; `evenlag.spark.solve` documents each parameter.

    Attributes
    ----------
    solving : SolveOptions
        Options of each group.
    data : FleetData
        Sizes, traffic and units in addition to those in the tables, and the drain time.

    Raises
    ------
    InvalidProblemError
        A parameter has an invalid value; the message names both.
    """

    solving: SolveOptions = field(default_factory=SolveOptions)
    data: FleetData = NO_FLEET_DATA
    want: Want = Want.BOTH
    time_limit: float | None = TIME_LIMIT
    group_time_limit: float = GROUP_TIME_LIMIT
    auto_offset_reset: str = AUTO_OFFSET_RESET
    horizon: float | str = AUTO
    tasks: int | None = None
    progress: Progress | None = None

    @classmethod
    def of(cls, keywords: Mapping[str, Any], want: str = Want.BOTH) -> Self:
        """Return the options in the keywords of a call.

        Raises
        ------
        SourceError
            A file of sizes or traffic cannot be read.
        """
        own = {name: value for name, value in keywords.items() if name in LimitedKeywords.__annotations__}
        data = {name: value for name, value in keywords.items() if name in DataKeywords.__annotations__}
        others: Any = {name: value for name, value in keywords.items() if name not in own and name not in data}
        solving = solving_options("solve", others, cls.of)
        return cls(solving=solving, data=FleetData.of(**data), want=Want.of(want, "want"), **own)

    def __post_init__(self) -> None:
        if self.solving.max_load is not None and self.data.draining is not None:
            raise InvalidProblemError("drain_seconds sets max_load; give only one of them")
        if self.time_limit is not None:
            check_seconds("time_limit", self.time_limit)
        check_seconds("group_time_limit", self.group_time_limit)
        if self.tasks is not None and not (is_whole(self.tasks) and self.tasks >= 1):
            raise InvalidProblemError(f"tasks must be a whole number >= 1, not {shown(self.tasks)}")
        ahead_micros(self.horizon)

    @property
    def ahead(self) -> int:
        """The horizon in microseconds; 0 with "auto"."""
        return ahead_micros(self.horizon)

    @property
    def recorded(self) -> bool:
        """True if plans need the earlier snapshots of their groups."""
        priced = self.solving.only_if_better is not None and self.solving.pause > 0
        return priced or self.horizon == AUTO or self.data.by_record
