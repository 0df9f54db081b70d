"""Record examples/snapshot/: eight consumer groups of uneven lag on a real Kafka, seen by `evenlag.live.snapshot`.

Run it from a checkout in which `make check` has run: `python examples/record_snapshot.py`. It starts a broker of its
own (see tests/support/broker.py), takes about a minute and leaves nothing behind but the files.
"""

import sys
import textwrap
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import kafka
import numpy as np
from numpy.typing import NDArray

from evenlag.live import Snapshot, snapshot, write_snapshot

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the broker of the tests is no part of the package

from tests.support.broker import VERSION, running_broker  # noqa: E402
from tests.support.traffic import commit, create_topics, delete_records, produce, running_group  # noqa: E402

OUT = ROOT / "examples" / "snapshot"
SEED = 169
PARTITIONS = {"clickstream": 64, "inventory": 32, "orders": 24, "payments": 12, "shipments": 16}
READ_BY_ALL = 1_000  # messages of every partition that no group has still to read
EXPIRED = 600  # of these in the clickstream, which retention has deleted
NEVER = -1  # in place of a lag: no offset was ever committed

Lags = NDArray[np.int64]


@dataclass(frozen=True)
class GroupSetup:
    """A group to run: its lags (messages) by topic and partition, and the topics of each of its members."""

    name: str
    shows: str
    lags: dict[str, Lags]
    subscriptions: list[list[str]]
    config: dict[str, str] = field(default_factory=dict)

    @property
    def protocol(self) -> str:
        """The assignor, or KIP-848."""
        if not self.subscriptions:
            return "none"
        return self.config.get("partition_assignment_strategy", "KIP-848 (uniform)")


def setups(rng: np.random.Generator) -> list[GroupSetup]:
    """Return the eight groups."""

    def lognormal(topic: str, median: float, sigma: float) -> Lags:
        return np.asarray(median * rng.lognormal(0.0, sigma, PARTITIONS[topic]), dtype=np.int64)

    def zipf(topic: str, most: float, exponent: float) -> Lags:
        ranks = rng.permutation(PARTITIONS[topic]) + 1
        return np.asarray(most / ranks**exponent, dtype=np.int64)

    one_hot = lognormal("payments", 1_500, 0.3)
    one_hot[7] = 250_000
    half_new = lognormal("orders", 4_000, 0.8)
    half_new[rng.permutation(PARTITIONS["orders"])[:5]] = NEVER
    even = rng.integers(4_900, 5_101, PARTITIONS["inventory"])
    classic = "partition_assignment_strategy"
    kip_848 = {"group_protocol": "consumer"}
    mixed = [["orders"]] * 3 + [["orders", "shipments"]] * 2 + [["payments"]]
    return [
        GroupSetup(
            "billing",
            "lognormal lags in two topics",
            {"orders": lognormal("orders", 8_000, 1.0), "payments": lognormal("payments", 8_000, 1.0)},
            [["orders", "payments"]] * 5,
            {classic: "range"},
        ),
        GroupSetup(
            "clickstream-enrichment",
            "Zipf lags: a few partitions have most of it",
            {"clickstream": zipf("clickstream", 300_000, 1.1)},
            [["clickstream"]] * 10,
            {classic: "cooperative-sticky"},
        ),
        GroupSetup("fraud-detection", "one hot partition", {"payments": one_hot}, [["payments"]] * 4, kip_848),
        GroupSetup(
            "nightly-report",
            "no members: committed offsets only",
            {"orders": lognormal("orders", 20_000, 0.5), "shipments": lognormal("shipments", 5_000, 0.5)},
            [],
        ),
        GroupSetup(
            "notifications",
            "members with different subscriptions",
            {topic: lognormal(topic, 3_000, 1.0) for topic in ("orders", "payments", "shipments")},
            mixed,
            {classic: "cooperative-sticky"},
        ),
        GroupSetup(
            "recommendations",
            "two topics of different lag, five partitions never committed",
            {"clickstream": lognormal("clickstream", 6_000, 1.2), "orders": half_new},
            [["clickstream", "orders"]] * 7,
            kip_848,
        ),
        GroupSetup(
            "search-indexer",
            "balanced: nothing to gain",
            {"inventory": even},
            [["inventory"]] * 8,
            {classic: "roundrobin"},
        ),
        GroupSetup(
            "warehouse-loader",
            "more members than partitions",
            {"shipments": lognormal("shipments", 4_000, 1.5)},
            [["shipments"]] * 20,
            {classic: "range"},
        ),
    ]


def record(groups: list[GroupSetup]) -> Snapshot:
    """Bring the groups about on a broker, and take the snapshot while all their members run."""
    ends = {
        topic: READ_BY_ALL + np.max([group.lags[topic] for group in groups if topic in group.lags], axis=0)
        for topic in PARTITIONS
    }
    with running_broker() as broker, ExitStack() as running:
        create_topics(broker.bootstrap, PARTITIONS)
        for topic, counts in ends.items():
            produce(broker.bootstrap, topic, counts.tolist())
        delete_records(broker.bootstrap, {("clickstream", p): EXPIRED for p in range(PARTITIONS["clickstream"])})
        for group in groups:
            offsets = {
                (topic, partition): int(ends[topic][partition] - lag)
                for topic, lags in group.lags.items()
                for partition, lag in enumerate(lags.tolist())
                if lag != NEVER
            }
            commit(broker.bootstrap, group.name, offsets)
        for group in groups:
            if group.subscriptions:
                subscriptions = {f"{group.name}-{i}": topics for i, topics in enumerate(group.subscriptions)}
                running.enter_context(running_group(broker.bootstrap, group.name, subscriptions, **group.config))
        return snapshot(broker.bootstrap)


def check(taken: Snapshot, groups: list[GroupSetup]) -> None:
    """Make sure that the snapshot says what was set up."""
    expected = {
        (group.name, topic, partition): None if lag == NEVER else lag
        for group in groups
        for topic, lags in group.lags.items()
        for partition, lag in enumerate(lags.tolist())
    }
    seen = {(row["group"], row["topic"], row["partition"]): row["lag"] for row in taken.offsets}
    members = {str(row["client_id"]): row["topics"] for row in taken.members}
    wanted = {f"{group.name}-{i}": topics for group in groups for i, topics in enumerate(group.subscriptions)}
    differ = sorted(map(str, (seen.items() ^ expected.items())))
    differ += [name for name in {*members, *wanted} if members.get(name) != wanted.get(name)]
    if differ or taken.warnings:
        raise RuntimeError(f"the snapshot is not what was set up: {differ}, {taken.warnings}")


def readme(taken: Snapshot, groups: list[GroupSetup]) -> str:
    """Say where the tables come from."""
    day, client = str(taken.offsets[0]["snapshot_ts"])[:10], kafka.__version__
    text = f"""\
        Eight consumer groups on a real Apache Kafka {VERSION} (one KRaft broker, kafka-python {client}), recorded on
        {day} by `python examples/record_snapshot.py`. The lags are drawn from seed {SEED}; member ids are Kafka's own
        and differ with every recording. `offsets.csv` and `members.csv` are what `evenlag snapshot` writes (see
        [docs/snapshot.md](../../docs/snapshot.md))."""
    lines = [
        "# A recorded snapshot",
        "",
        textwrap.dedent(text),
        "",
        "| group | protocol | members | partitions | lag (messages) | what it shows |",
        "|---|---|---:|---:|---:|---|",
    ]
    for group in groups:
        partitions = sum(len(lags) for lags in group.lags.values())
        lag = sum(int(lags[lags != NEVER].sum()) for lags in group.lags.values())
        lines.append(
            f"| {group.name} | {group.protocol} | {len(group.subscriptions)} | {partitions} | {lag:,} | {group.shows} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    """Record, check and write."""
    groups = setups(np.random.default_rng(SEED))
    taken = record(groups)
    check(taken, groups)
    write_snapshot(taken, OUT)
    (OUT / "README.md").write_text(readme(taken, groups), encoding="utf-8")


if __name__ == "__main__":
    main()
