"""Groups whose pauses and rates are known, as records of `__consumer_offsets` that are written second by second."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.support import coordinator_bytes as encode
from tests.support.group_records import Raw

EVERY = 5  # seconds between the commits of a member
START = 1_700_000_100  # seconds since the epoch, a multiple of a minute
TOPIC = "orders"
TOPIC_ID = "mZ0ZY75iQumd3bJW8IFBRA"


@dataclass
class ScriptedPast:
    """The records of one group; times in seconds since `START`.

    Attributes
    ----------
    ends : dict of int to dict of int to int
        Log ends by time and partition, for `log_ends`.
    """

    group: str
    partition: int = 0
    raw: list[tuple[float, bytes, bytes]] = field(default_factory=list)
    generation: int = 0

    def rebalance(self, at: float, owners: Mapping[str, Sequence[int]]) -> None:
        """A rebalance of a classic group that ends at this time, with the partitions of each member."""
        self.generation += 1
        members: list[dict[str, object]] = [
            {"member_id": name, "subscription": encode.subscription([TOPIC]),
             "assignment": encode.assignment([(TOPIC, held)] if held else [])}
            for name, held in owners.items()
        ]  # fmt: skip
        value = encode.group_value(self.generation, "range", members, at=round(1000 * at))
        self.raw.append((at, encode.group_key(self.group), value))

    def target(self, at: float, epoch: int, targets: Mapping[str, Sequence[int]]) -> None:
        """Record a new target assignment of a KIP-848 group."""
        key = encode.consumer_key
        for name in targets:
            self.raw.append((at, key(5, self.group, name), encode.member_value([TOPIC])))
        self.raw.append((at, key(3, self.group), encode.epoch_value(epoch)))
        for name, held in targets.items():
            self.raw.append((at, key(7, self.group, name), encode.target_value([(TOPIC_ID, held)])))
        self.raw.append((at, key(6, self.group), encode.epoch_value(epoch)))

    def current(self, at: float, member: str, epoch: int, held: Sequence[int]) -> None:
        """Let a member of a KIP-848 group hold partitions from now on."""
        value = encode.current_value(epoch, [(TOPIC_ID, held)])
        self.raw.append((at, encode.consumer_key(8, self.group, member), value))

    def commit(self, at: float, offsets: Mapping[int, int]) -> None:
        """A member commits some partitions at once."""
        for number, offset in offsets.items():
            key = encode.commit_key(self.group, TOPIC, number)
            self.raw.append((at, key, encode.commit_value(offset, at=round(1000 * at))))

    def commits(self, since: float, until: float, partitions: Sequence[int], offset: int = 0, rate: int = 0) -> None:
        """Commits every `EVERY` seconds from the first time until before the second, at a rate of each partition."""
        at = since
        while at < until:
            self.commit(at, {number: offset + round(rate * (at - since)) for number in partitions})
            at += EVERY

    def records(self) -> Iterator[Raw]:
        """Yield the records in order of time."""
        for offset, (at, key, value) in enumerate(sorted(self.raw, key=lambda each: each[0])):
            yield Raw(self.partition, offset, round(1000 * (START + at)), key, value)
