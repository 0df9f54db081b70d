"""Answers of a group's coordinator, by Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

NO_MEMBER, NO_GENERATION = "", -1


class State(StrEnum):
    """State of a classic group."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class Code(StrEnum):
    """Result of a request."""

    NONE = "NONE"
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    MEMBER_ID_REQUIRED = "MEMBER_ID_REQUIRED"
    FENCED_INSTANCE_ID = "FENCED_INSTANCE_ID"
    ILLEGAL_GENERATION = "ILLEGAL_GENERATION"
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS"
    INCONSISTENT_GROUP_PROTOCOL = "INCONSISTENT_GROUP_PROTOCOL"
    NOT_COORDINATOR = "NOT_COORDINATOR"
    GROUP_ID_NOT_FOUND = "GROUP_ID_NOT_FOUND"
    INVALID_REQUEST = "INVALID_REQUEST"
    FENCED_MEMBER_EPOCH = "FENCED_MEMBER_EPOCH"
    STALE_MEMBER_EPOCH = "STALE_MEMBER_EPOCH"
    UNRELEASED_INSTANCE_ID = "UNRELEASED_INSTANCE_ID"
    UNSUPPORTED_ASSIGNOR = "UNSUPPORTED_ASSIGNOR"


@dataclass(frozen=True)
class Answer:
    """Answer to a request to join or to sync, or to a heartbeat; fields that do not apply have their defaults.

    Attributes
    ----------
    code : Code
    member_id : str
    generation : int
        Generation, or the member epoch of a KIP-848 group; -1 for none.
    protocol : str or None
    leader : str
        Member id of the leader.
    members : mapping of member id to metadata
        Empty for others than the leader.
    skip : bool
        True for a static leader that has come back and must not assign anew.
    assignment : object
        Bytes of a classic member that has synced, or (topic, partition) pairs of a KIP-848 member; None for none, or
        unchanged.
    """

    code: Code
    member_id: str = NO_MEMBER
    generation: int = NO_GENERATION
    protocol: str | None = None
    leader: str = ""
    members: Mapping[str, Any] = field(default_factory=dict)
    skip: bool = False
    assignment: Any = None


@dataclass
class Pending:
    """A request whose answer may come later; `answer` is None until then."""

    answer: Answer | None = None
