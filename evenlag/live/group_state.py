"""What a cluster tells of consumer groups, as plain values; nothing here needs Kafka."""

from collections.abc import Mapping
from dataclasses import dataclass, field

TopicPartition = tuple[str, int]

CLASSIC, CONSUMER = "classic", "consumer"  # Kafka's names of the two group protocols; the second is KIP-848's
FOLLOW = "follow"  # of a group whose consumers follow a plan (docs/follow.md); Kafka knows of no members


@dataclass(frozen=True)
class Failure:
    """Why the cluster did not answer: Kafka's name of the error, as GROUP_AUTHORIZATION_FAILED, and its text."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Subscription:
    """What a member subscribes to, and what it said when it joined.

    Attributes
    ----------
    topics
        By name.
    regex
        The expression that the broker resolves for it (KIP-848), in RE2's syntax; the topics it stands for are not
        in `topics`.
    rack
        Of the member.
    weight
        Its share beside the others, as the user data of the weighted assignor or of evenlag's has it.
    owned
        The partitions that it said it held: by the consumer protocol, or by the sticky assignor's user data.
    generation
        In which it got them.
    trouble
        Why a part of what it said could not be read.
    """

    topics: tuple[str, ...] = ()
    regex: str | None = None
    rack: str | None = None
    weight: int | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None
    trouble: str | None = None


@dataclass(frozen=True)
class Member:
    """A member as the group's coordinator describes it.

    Attributes
    ----------
    partitions, target
        Those that it holds, and those that it shall come to hold (KIP-848).
    subscription
        None where the broker does not tell it: while a group of the classic protocol is rebalancing.
    epoch
        The member's epoch (KIP-848).
    """

    consumer_id: str
    client_id: str | None
    host: str | None
    group_instance_id: str | None
    partitions: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] = ()
    subscription: Subscription | None = None
    epoch: int | None = None

    def known(self) -> tuple[TopicPartition, ...]:
        """The partitions that it holds or shall come to hold."""
        return self.partitions + self.target


@dataclass(frozen=True)
class Description:
    """A group as its coordinator describes it.

    Attributes
    ----------
    state
        Kafka's name for it: `Stable`, `Empty`, `PreparingRebalance`, `Reconciling`, …
    members
        Sorted by id.
    protocol
        `classic`, `consumer` or `follow`.
    assignor
        The assignor that the group has agreed on, as its members or the broker name it.
    epoch, assignment_epoch
        Of the group, and of the target assignment (KIP-848); the first of followers is the version of their plan.
    """

    state: str
    members: tuple[Member, ...] = ()
    protocol: str | None = None
    assignor: str | None = None
    epoch: int | None = None
    assignment_epoch: int | None = None


@dataclass(frozen=True)
class Commits:
    """What a group has committed.

    Attributes
    ----------
    offsets
        Of the partitions that have a commit; a Failure where the broker did not tell it.
    metadata
        What was committed beside the offset, of the partitions where that is not empty.
    """

    offsets: Mapping[TopicPartition, int | Failure] = field(default_factory=dict)
    metadata: Mapping[TopicPartition, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """A group as described, with what it has committed."""

    name: str
    description: Description
    commits: Commits

    def known(self) -> set[TopicPartition]:
        """The partitions that it has committed to, that a member holds, or that a member shall come to hold."""
        return {*self.commits.offsets, *(key for member in self.description.members for key in member.known())}

    def owners(self) -> dict[TopicPartition, Member]:
        """The member that holds each partition; in a group that is rebalancing two may, then the last by id."""
        return {key: member for member in self.description.members for key in member.partitions}
