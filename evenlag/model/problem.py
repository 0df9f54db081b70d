"""A consumer group as arrays: partitions with their lags, members with their subscriptions, weights and caps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from evenlag.errors import InvalidProblemError
from evenlag.model.arrays import NO_CAP, NOBODY, Bools, Index, Ints, stacked, summable
from evenlag.model.cards import problem_card
from evenlag.model.facts import NO_FACTS, Facts
from evenlag.model.from_rows import Member, parse_rows
from evenlag.model.literals import FetchFromWord
from evenlag.model.names import did_you_mean, spelled
from evenlag.model.origin import NO_ORIGIN, NOT_TOLD, Origin
from evenlag.model.pair_data import NO_PAIR_DATA, FetchFrom, PairData
from evenlag.model.parse import parse, parse_document
from evenlag.model.parse_pairs import (
    AmountsByTopic,
    OwnCosts,
    PairArguments,
    PartitionRacks,
    by_topic,
    pair_fields,
    parse_pair_data,
)
from evenlag.model.partitions import LagsByTopic, Partitions
from evenlag.model.units import contracted, expanded
from evenlag.model.values import kind, parse_weight

if TYPE_CHECKING:
    from evenlag.model.plan import Plan

__all__ = ["NOBODY", "NO_CAP", "Bools", "Index", "Ints", "Problem", "check_problem", "summable"]

_OF_STRUCTURE = (
    "partitions", "topic_starts", "topic_sizes", "assignable", "allowed", "active", "equal_subscriptions",
    "equal_weights", "mean_weight", "relative_weights", "load_unit", "capped_or_pinned",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Problem:
    """A consumer group to assign: immutable, validated and in canonical order (topics, partitions, members ascending).

    Build one with `from_lags` or `from_dict`, which validate their input. P partitions, M members, T topics.

    Attributes
    ----------
    group : str
        Consumer group id.
    topics, members : tuple of str
        Sorted names, to which all indices below refer. Topics are those that have partitions.
    topic_of : int32 array (P,)
        Topic index of each partition, ascending.
    partition_ids : int64 array (P,)
        Partition number within its topic, ascending in a topic.
    lags : int64 or object array (P,)
        Messages still to be read, 0 … 2**62. Python integers (dtype object) if a sum could exceed int64.
    subscribed : bool array (T, M)
        True if the member subscribes to the topic.
    weights : tuple of Fraction
        Capacity of each member relative to the others.
    caps : int64 array (M,)
        `max_partitions` of each member; `NO_CAP` if there is none.
    generations : tuple of int or None
        Generation in which each member last received its owned partitions.
    owner : int32 array (P,)
        Member that owned the partition before and could keep it, or `NOBODY`.
    pins : int32 array (P,)
        Member that must get the partition, or `NOBODY`.
    scenario_weights : tuple of Fraction
        Weight of each scenario, > 0; empty if plans are judged by `lags` alone.
    scenario_lags : int64 or object array (S, P)
        Lags of each scenario, in messages, by which plans are judged instead of `lags`.
    pairs : PairData
        Racks, sizes of moves, traffic, the user's own pair costs, and topics whose partitions go together.
    origin : Origin
        Warnings, claims and other input on which plans do not depend. `warnings`, `lost_claims`, `empty_topics` and
        `assignor` are attributes of it.
    """

    group: str
    topics: tuple[str, ...]
    members: tuple[str, ...]
    topic_of: Index
    partition_ids: NDArray[np.int64]
    lags: Ints
    subscribed: Bools
    weights: tuple[Fraction, ...]
    caps: NDArray[np.int64]
    generations: tuple[int | None, ...]
    owner: Index
    pins: Index
    scenario_weights: tuple[Fraction, ...] = ()
    scenario_lags: Ints = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))
    pairs: PairData = NO_PAIR_DATA
    origin: Origin = NO_ORIGIN

    def __post_init__(self) -> None:
        arrays = (self.topic_of, self.partition_ids, self.lags, self.subscribed, self.caps, self.owner, self.pins)
        for array in (*arrays, self.scenario_lags):
            array.flags.writeable = False

    def __repr__(self) -> str:
        shape = f"partitions={len(self.lags)}, topics={len(self.topics)}, members={len(self.members)}"
        return f"<Problem {self.group!r}: {shape}, total_lag={self.total_lag}>"

    def _repr_html_(self) -> str:
        """Return the HTML shown by notebooks."""
        return problem_card(self)

    # ---- construction ------------------------------------------------------------------------------------------

    @classmethod
    @spelled
    def from_lags(
        cls,
        lags: LagsByTopic,
        members: Mapping[str, Iterable[str]] | Iterable[str],
        *,
        group: str = "group",
        owned: Mapping[str, Iterable[tuple[str, int]]] | None = None,
        weights: Mapping[str, float] | None = None,
        max_partitions: Mapping[str, int | None] | None = None,
        generations: Mapping[str, int | None] | None = None,
        pins: Iterable[tuple[str, int, str]] = (),
        scenarios: Iterable[tuple[float, LagsByTopic]] = (),
        assignor: str | None = None,
        facts: Mapping[str, Any] | None = None,
        racks: Mapping[str, str | None] | None = None,
        partition_racks: PartitionRacks | None = None,
        move_sizes: AmountsByTopic | None = None,
        traffic: AmountsByTopic | None = None,
        together: Iterable[Iterable[str]] | None = None,
        costs: OwnCosts | None = None,
        fetch_from: FetchFrom | FetchFromWord | None = None,
    ) -> Problem:
        """Build a problem from plain Python values.

        Parameters
        ----------
        lags : mapping of topic to lags
            A sequence or an array (partition 0, 1, …) or a mapping of partition to lag, in messages. Each may be empty,
            and there may be no topics at all.
        members : mapping of member to the topics it subscribes to, or list of names
            In a list, all members subscribe to every topic.
        group : str
            Consumer group id.
        owned : mapping of member to its previous (topic, partition) pairs, optional
            Entries that the member could not keep are dropped, with a warning that counts them. If two members claim a
            partition, the higher generation wins; a tie leaves it without an owner.
        weights : mapping of member to weight > 0, optional
            Default 1.
        max_partitions : mapping of member to cap, optional
        generations : mapping of member to generation, optional
        pins : iterable of (topic, partition, member)
            Partitions that must go to a member.
        scenarios : iterable of (weight, lags)
            Lags of the same partitions in other situations: now, in an hour, … Plans are then judged by the weighted
            mean (or the worst) over all scenarios; `lags` remain the current ones.
        assignor : str, optional
            The assignor that the group uses today, by whose promise an audit judges today's assignment.
        facts : mapping, optional
            Other facts of the group, such as its state, in the form of `facts` in a problem file.
        racks : mapping of member to rack, optional
        partition_racks : mapping of topic to racks, optional
            For each partition, the racks of its replicas, the leader's first, or None; "" for a replica of unknown
            rack. A sequence covers all partitions from 0; a mapping is from partition to racks.
        move_sizes : mapping of topic to sizes, optional
            Size of the state that moves with each partition: a whole number >= 0, in any unit. Same form as
            `partition_racks`; 1 for partitions that are not named.
        traffic : mapping of topic to amounts, optional
            Traffic of each partition, such as bytes per second; same form as `move_sizes`.
        together : iterable of lists of topics, optional
            Groups of topics whose partitions i must go to one member, for every i.
        costs : mapping of name to costs, optional
            Your own pair costs, whole numbers >= 0: a mapping of member to its cost for every partition, or of
            (topic, partition, member) to the cost of this pair, which overrides the member's. Everything else costs 0.
        fetch_from : {"followers", "leader"}
            Replicas that members read, for crossings: all of them (KIP-392), which is the default, or the leader alone.

        Raises
        ------
        InvalidProblemError
            The message names the topic, partition or member.
        """
        problem = cls(
            **parse(
                group, lags, members, _given(owned), _given(weights), _given(max_partitions), _given(generations), pins,
                scenarios, assignor, facts,
            )
        )  # fmt: skip
        return problem.with_pair_data(
            racks=racks, partition_racks=partition_racks, move_sizes=move_sizes, traffic=traffic, together=together,
            costs=costs, fetch_from=fetch_from,
        )  # fmt: skip

    @classmethod
    def from_rows(
        cls,
        partitions: Partitions,
        owners: Sequence[str | None],
        members: Mapping[str, Member],
        *,
        group: str,
        facts: Facts = NO_FACTS,
        pairs: PairData = NO_PAIR_DATA,
    ) -> Problem:
        """Build a problem from the columns of a table; see `parse_rows`.

        Raises
        ------
        InvalidProblemError
            As in `from_lags`, which builds an equal problem.
        """
        return cls(**parse_rows(group, partitions, owners, members, facts, pairs))

    def at(
        self, lags: NDArray[np.int64], owner: Index, scenarios: Iterable[tuple[Fraction, NDArray[np.int64]]] = ()
    ) -> Problem:
        """Return the same group with other lags (messages, 0 … 2**62; shape (P,)), owners and scenarios.

        Values derived from topics, members and subscriptions alone are reused.
        """
        origin = replace(self.origin.without_claims(), warnings=())
        bare = replace(self.now, lags=summable(lags), owner=owner, origin=origin)
        other = bare.with_scenarios(several) if (several := list(scenarios)) else bare
        other.__dict__.update({name: self.__dict__[name] for name in _OF_STRUCTURE if name in self.__dict__})
        return other

    def with_scenarios(self, scenarios: Iterable[tuple[Fraction, NDArray[np.int64]]]) -> Problem:
        """Return a copy of the problem with these scenarios. Each is a pair of a weight and lags of shape (P,)."""
        several = list(scenarios)
        lags = stacked([lags for _, lags in several])
        return replace(self, scenario_weights=tuple(weight for weight, _ in several), scenario_lags=lags)

    def with_pair_data(self, **given: Unpack[PairArguments]) -> Problem:
        """Return the problem with these racks, sizes and so on, in the form of `from_lags`; other data stays.

        Raises
        ------
        InvalidProblemError
            The message names the topic, partition or member.
        """
        pairs = parse_pair_data(self, given)
        if pairs is self.pairs:
            return self
        problem = replace(self, pairs=pairs)
        _ = problem.units  # raises InvalidProblemError if topics cannot go together
        return problem

    def subscribing(self, topics: Iterable[str]) -> Problem:
        """Return the problem in which all members subscribe to these of the topics that were taken as left over.

        Raises
        ------
        InvalidProblemError
            The group has no such topic.
        """
        facts, subscribed = self.facts, self.subscribed.copy()
        for topic in topics:
            if topic not in self.topics:
                hint = did_you_mean(topic, self.topics)
                raise InvalidProblemError(f"subscribed: group {self.group!r} has no topic {topic!r}{hint}")
            if topic in facts.left_over_topics:
                subscribed[self.topics.index(topic)] = True
                facts = replace(facts, left_over=tuple(each for each in facts.left_over if each.topic != topic))
        if facts is self.facts:
            return self
        before, after = self.facts.notes(), facts.notes()
        warnings = (*(each for each in self.warnings if each not in before), *after)
        return replace(self, subscribed=subscribed, origin=replace(self.origin, facts=facts, warnings=warnings))

    def weighing(self, weights: Mapping[str, float | Fraction]) -> Problem:
        """Return the problem with these weights of members; others keep theirs.

        Raises
        ------
        InvalidProblemError
            A weight is not a number > 0, or the group has no such member.
        """
        for name in weights:
            if name not in self.members:
                raise InvalidProblemError(
                    f"group {self.group!r} has no member {name!r}{did_you_mean(name, self.members)}"
                )
        given = {name: parse_weight(f"member {name!r}", weight) for name, weight in weights.items()}
        return replace(self, weights=tuple(map(given.get, self.members, self.weights))) if given else self

    @property
    def structure(self) -> tuple[Any, ...]:
        """Key shared by problems that differ only in names, lags, owners and pair data."""
        weights = tuple((weight.numerator, weight.denominator) for weight in self.weights)
        arrays = (self.topic_of, self.subscribed, self.caps, self.pins)
        return (*(array.tobytes() for array in arrays), weights)

    def take_structure(self, other: Problem) -> None:
        """Copy the cached values that derive from `structure` from a problem with an equal one."""
        shared = {name: other.__dict__[name] for name in _OF_STRUCTURE if name in other.__dict__}
        shared.pop("partitions", None)  # contains names, which may differ
        self.__dict__.update(shared)

    def same_structure(self, other: Problem) -> bool:
        """Return True if both have the same partitions and the same members, with the same rules for them."""
        named = (self.topics, self.members, self.weights) == (other.topics, other.members, other.weights)
        arrays = ("topic_of", "partition_ids", "subscribed", "caps", "pins")
        return (
            named
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)
            and self.pairs.same_as(other.pairs)
        )

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Problem:
        """Build a problem from the problem-file document (docs/formats.md).

        Raises
        ------
        InvalidProblemError
            The message names the field, topic, partition or member.
        """
        return cls.from_lags(**parse_document(document))

    def to_dict(self) -> dict[str, Any]:
        """Return the problem-file document, from which `Problem.from_dict` builds an equal problem."""
        names = self.partitions
        pins = [[*names[p], self.members[self.pins[p]]] for p in np.flatnonzero(self.pins != NOBODY)]
        document: dict[str, Any] = {
            "group": self.group,
            "topics": self.lags_by_topic(),
            "members": self._members_document(),
            "pins": pins,
        }
        if self.assignor is not None:
            document["assignor"] = self.assignor
        if told := self.facts.document():
            document["facts"] = told
        if self.scenario_weights:
            document["scenarios"] = [
                {"weight": _document_weight(weight), "topics": self._lags_document(lags)}
                for weight, lags in zip(self.scenario_weights, self.scenario_lags, strict=True)
            ]
        return document | pair_fields(self)

    def identities(self) -> dict[str, dict[str, str]]:
        """Return what is known of each member and outlasts a restart: instance id, client id, rack, host."""
        racks = self.pairs.racks or [None] * len(self.members)
        document: dict[str, dict[str, str]] = {}
        for name, rack in zip(self.members, racks, strict=True):
            told = self.origin.registrations.get(name, NOT_TOLD)
            known = {"group_instance_id": told.group_instance_id, "client_id": told.client_id, "rack": rack}
            found = {field: text for field, text in (known | {"host": told.host}).items() if text is not None}
            if found:
                document[name] = found
        return document

    def lags_by_topic(self) -> dict[str, Any]:
        """Return the lags in the form of the problem file's `topics`."""
        return self._lags_document(self.lags)

    def _lags_document(self, of: Ints) -> dict[str, Any]:
        document: dict[str, Any] = {topic: [] for topic in self.empty_topics}
        return dict(sorted((document | by_topic(self, [int(lag) for lag in of])).items()))

    def _members_document(self) -> dict[str, Any]:
        names = self.partitions
        owned: list[list[list[Any]]] = [[] for _ in self.members]
        for p in np.flatnonzero(self.owner != NOBODY):
            owned[self.owner[p]].append(list(names[p]))
        for p, m in self.lost_claims.tolist():
            owned[m].append(list(names[p]))
        document: dict[str, Any] = {}
        for m, name in enumerate(self.members):
            subscribed = [topic for t, topic in enumerate(self.topics) if self.subscribed[t, m]]
            subscribed += [topic for topic, subscribers in self.empty_topics.items() if name in subscribers]
            document[name] = {
                "topics": sorted(subscribed),
                "weight": _document_weight(self.weights[m]),
                "owned": owned[m],
                "generation": self.generations[m],
                "max_partitions": None if self.caps[m] == NO_CAP else int(self.caps[m]),
            }
            if self.pairs.racks and self.pairs.racks[m] is not None:
                document[name]["rack"] = self.pairs.racks[m]
        return document

    # ---- what came in with it ----------------------------------------------------------------------------------

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the input; see `Origin`."""
        return self.origin.warnings

    @property
    def lost_claims(self) -> Index:
        """Dropped claims, (partition, member), of shape (N, 2); see `Origin`."""
        return self.origin.lost_claims

    @property
    def empty_topics(self) -> Mapping[str, tuple[str, ...]]:
        """Topics without partitions and their subscribers; see `Origin`."""
        return self.origin.empty_topics

    @property
    def assignor(self) -> str | None:
        """The assignor that the group uses today; see `Origin`."""
        return self.facts.assignor

    @property
    def facts(self) -> Facts:
        """Facts of the group, and what was assumed."""
        return self.origin.facts

    # ---- partitions --------------------------------------------------------------------------------------------

    @cached_property
    def partitions(self) -> list[tuple[str, int]]:
        """The (topic, partition) names, in index order."""
        topics = self.topics
        return [(topics[t], i) for t, i in zip(self.topic_of.tolist(), self.partition_ids.tolist(), strict=True)]

    @cached_property
    def topic_starts(self) -> NDArray[np.int64]:
        """Index of each topic's first partition, and P at the end; shape (T + 1,)."""
        return np.searchsorted(self.topic_of, np.arange(len(self.topics) + 1))

    def topic_slice(self, topic: int) -> slice:
        """Return the slice of partition indices of topic number `topic`."""
        return slice(int(self.topic_starts[topic]), int(self.topic_starts[topic + 1]))

    @cached_property
    def topic_sizes(self) -> NDArray[np.int64]:
        """Partitions per topic, shape (T,)."""
        return np.diff(self.topic_starts)

    @cached_property
    def assignable(self) -> Bools:
        """Mask of partitions with at least one subscriber; shape (P,)."""
        taken: Bools = np.asarray(self.subscribed.any(axis=1))
        return taken[self.topic_of]

    # ---- members -----------------------------------------------------------------------------------------------

    @cached_property
    def allowed(self) -> Bools:
        """Subscriptions of members that may take a partition at all (`max_partitions` is not 0); shape (T, M)."""
        return self.subscribed & (self.caps > 0)

    @cached_property
    def active(self) -> Bools:
        """Members that could hold at least one partition, given subscriptions, pins and caps; shape (M,)."""
        free = np.zeros(len(self.topics), dtype=bool)
        free[self.topic_of[self.pins == NOBODY]] = True
        active: Bools = np.asarray(self.allowed[free].any(axis=0))
        active[self.pins[self.pins != NOBODY]] = True
        return active

    @cached_property
    def equal_subscriptions(self) -> bool:
        """True if all active members may take the same topics."""
        columns = self.allowed[:, self.active]
        return columns.shape[1] == 0 or bool((columns == columns[:, :1]).all())

    @cached_property
    def capped_or_pinned(self) -> bool:
        """True if any member has a cap, or any partition a pin."""
        return bool((self.caps != NO_CAP).any() or (self.pins != NOBODY).any())

    @cached_property
    def equal_weights(self) -> bool:
        """True if all active members have the same weight; all figures are then whole messages."""
        return len({self.weights[m] for m in np.flatnonzero(self.active)}) <= 1

    @cached_property
    def mean_weight(self) -> Fraction:
        """Mean weight of the active members; 1 if there are none."""
        active = [weight for weight, on in zip(self.weights, self.active, strict=True) if on]
        return Fraction(sum(active), len(active)) if active else Fraction(1)

    @cached_property
    def relative_weights(self) -> NDArray[Any]:
        """Weights as the smallest whole numbers in the same proportion (Python integers; 0 if inactive), (M,)."""
        if self.equal_weights:
            return self.active.astype(np.int64).astype(object)
        active = [w if on else Fraction(0) for w, on in zip(self.weights, self.active, strict=True)]
        denominator = lcm(*(w.denominator for w in active)) if active else 1
        whole = [int(w * denominator) for w in active]
        common = gcd(*whole) or 1
        return np.array([w // common for w in whole], dtype=object)

    @cached_property
    def load_factors(self) -> Ints:
        """Integer factors that make loads comparable: load · factor · `load_unit` is the load per weight; (M,)."""
        weights = self.relative_weights
        common = lcm(*(w for w in weights if w))
        factors = [common // w if w else 0 for w in weights]
        fits = max(factors, default=0) * max(self.total_lag, 1) < 2**62
        return np.array(factors, dtype=np.int64 if fits else object)

    @cached_property
    def load_unit(self) -> Fraction:
        """Messages per unit of load · factor, with weights normalized to mean 1 over the active members."""
        weights = [w for w in self.relative_weights if w]
        if self.equal_weights:
            return Fraction(1)
        return Fraction(sum(weights), len(weights) * lcm(*weights))

    @cached_property
    def lag_unit(self) -> int:
        """Greatest common divisor of all lags in all scenarios; 1 if there is no lag."""
        return gcd(*(int(np.gcd.reduce(future.lags[self.assignable])) for future in self.judged_by)) or 1

    # ---- units -------------------------------------------------------------------------------------------------

    @property
    def units(self) -> Problem:
        """The problem in which partitions that go together are one unit each; itself if none do."""
        return self._contracted if self.pairs.together else self

    @cached_property
    def _contracted(self) -> Problem:
        return contracted(self)

    def expand(self, plan: Plan) -> Plan:
        """Return the plan of this problem that corresponds to a plan of its `units`."""
        return expanded(self, plan)

    # ---- scenarios ---------------------------------------------------------------------------------------------

    @cached_property
    def futures(self) -> tuple[Problem, ...]:
        """The group in each scenario, with its lags and without scenarios of its own; empty if there are none."""
        return tuple(self.at(lags.astype(np.int64), self.owner) for lags in self.scenario_lags)

    @cached_property
    def now(self) -> Problem:
        """The same problem without its scenarios."""
        return self.with_scenarios(()) if self.scenario_weights else self

    @cached_property
    def simplified(self) -> Problem:
        """The same problem with sorted scenarios, equal ones merged; a single one's lags become the current lags."""
        if not self.scenario_weights:
            return self
        weights: dict[tuple[int, ...], Fraction] = {}
        for lags, weight in zip(self.scenario_lags.tolist(), self.scenario_weights, strict=True):
            weights[tuple(lags)] = weights.get(tuple(lags), Fraction(0)) + weight
        if len(weights) == 1:
            return replace(self.futures[0], origin=self.origin)
        ordered = sorted(weights)
        if list(map(tuple, self.scenario_lags.tolist())) == ordered:
            return self
        table = np.array(ordered, dtype=self.scenario_lags.dtype)
        return replace(self, scenario_weights=tuple(weights[lags] for lags in ordered), scenario_lags=table)

    @cached_property
    def judged_by(self) -> tuple[Problem, ...]:
        """The group in each scenario, or as it is now if there are none."""
        return self.futures or (self,)

    # ---- totals ------------------------------------------------------------------------------------------------

    @cached_property
    def total_lag(self) -> int:
        """Messages to be read in the assignable partitions."""
        return int(self.lags[self.assignable].sum()) if self.assignable.any() else 0

    @cached_property
    def whole_lag(self) -> int:
        """Messages to be read in all partitions, including those that no member can take."""
        return sum(self.lags.tolist())

    @cached_property
    def mean_load(self) -> Fraction:
        """Messages per active member; 0 if there are none."""
        members = int(self.active.sum())
        return Fraction(self.total_lag, members) if members else Fraction(0)


def check_problem(problem: object) -> None:
    """Check that an argument is a Problem.

    Raises
    ------
    InvalidProblemError
        The argument is something else; the message says how to build a Problem.
    """
    if not isinstance(problem, Problem):
        raise InvalidProblemError(
            f"the problem must be a Problem, as built by Problem.from_lags or Problem.from_dict; got {kind(problem)}"
        )


def _given(mapping: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return {} if mapping is None else mapping


def _document_weight(weight: Fraction) -> int | float:
    return weight.numerator if weight.denominator == 1 else float(weight)
