"""Plain values for the state of consumer groups in a cluster, without any Kafka client."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenlag.model.facts import Facts
from evenlag.protocol.subscriptions import Subscription

TopicPartition = tuple[str, int]

CLASSIC, CONSUMER = "classic", "consumer"  # Kafka's names of the two group protocols; the second is KIP-848
FOLLOW = "follow"  # the protocol of groups that follow a plan (docs/follow.md), whose members Kafka does not know


@dataclass(frozen=True)
class Failure:
    """An error in place of an answer: Kafka's name of it, such as GROUP_AUTHORIZATION_FAILED, and its text."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Member:
    """A member as the group coordinator describes it.

    Attributes
    ----------
    partitions, target
        Its current assignment, and its target assignment (KIP-848).
    subscription
        None if the broker does not report it, as during a rebalance of a classic group.
    epoch
        Member epoch (KIP-848).
    assignment_user_data
        Bytes of user data in its assignment in a classic group.
    """

    consumer_id: str
    client_id: str | None
    host: str | None
    group_instance_id: str | None
    partitions: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] = ()
    subscription: Subscription | None = None
    epoch: int | None = None
    assignment_user_data: int | None = None

    def known(self) -> tuple[TopicPartition, ...]:
        """Return the partitions of its current and target assignments."""
        return self.partitions + self.target


@dataclass(frozen=True)
class Description:
    """A group as its coordinator describes it.

    Attributes
    ----------
    state
        Kafka's name of the state: `Stable`, `Empty`, `PreparingRebalance`, `Reconciling`, …
    members
        Members, sorted by id.
    protocol
        `classic`, `consumer` or `follow`.
    assignor
        Name of the group's assignor, by its members or the broker.
    epoch, assignment_epoch
        Epochs of the group and of its target assignment (KIP-848). For followers, `epoch` is the version of the plan.
    """

    state: str
    members: tuple[Member, ...] = ()
    protocol: str | None = None
    assignor: str | None = None
    epoch: int | None = None
    assignment_epoch: int | None = None

    def facts(self) -> Facts:
        """Return the facts of the group."""
        return Facts(
            state=self.state,
            protocol=self.protocol,
            assignor=self.assignor or None,
            group_epoch=self.epoch,
            assignment_epoch=self.assignment_epoch,
        )


@dataclass(frozen=True)
class Commits:
    """The committed offsets of a group.

    Attributes
    ----------
    offsets
        Committed offsets by partition, with a Failure in place of those that the broker did not return.
    metadata
        Metadata of the commits, if not empty.
    """

    offsets: Mapping[TopicPartition, int | Failure] = field(default_factory=dict)
    metadata: Mapping[TopicPartition, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """A group's description and committed offsets."""

    name: str
    description: Description
    commits: Commits

    def known(self) -> set[TopicPartition]:
        """Return the partitions with a commit, or in a member's current or target assignment."""
        return {*self.commits.offsets, *(key for member in self.description.members for key in member.known())}

    def owners(self) -> dict[TopicPartition, Member]:
        """Return the member that holds each partition; if two do during a rebalance, the last by id."""
        return {key: member for member in self.description.members for key in member.partitions}
