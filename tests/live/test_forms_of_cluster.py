"""Groups of a real broker by each way to read them: the cluster, a snapshot's folder, and the texts of Kafka's tool."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import evenlag
from evenlag import live
from tests.support.broker import Broker
from tests.support.group_records import tool
from tests.support.told_forms import OF_KAFKA_4
from tests.support.told_groups import Group, Member, Partition
from tests.support.told_reference import of_problem, reference
from tests.support.traffic import commit_many, create_topics, delete_records, produce, running_group

TOPICS = {"forms-a": 4, "forms-b": 3, "forms-c": 2, "forms-old": 2}
RUNNING: tuple[tuple[int, dict[str, str]], ...] = (  # number of members, and settings
    *((members, {"partition_assignment_strategy": name}) for members in (1, 3, 6) for name in ("range", "roundrobin")),
    (2, {"partition_assignment_strategy": "cooperative-sticky"}),
    *((members, {"group_protocol": "consumer"}) for members in (1, 3, 6)),
    *((members, {"group_protocol": "consumer", "group_remote_assignor": "range"}) for members in (2, 4)),
)
EMPTY = 8
NAMES = [f"forms-{number}" for number in range(len(RUNNING) + EMPTY)]


def commits(random: Random) -> dict[tuple[str, int], int]:
    """Commits of a group for most partitions, also of a topic that nobody reads, and beyond what retention left."""
    places = [(topic, number) for topic, count in TOPICS.items() for number in range(count)]
    return {place: random.randint(0, 30) for place in places if random.random() < 0.8} or {("forms-a", 0): 1}


@pytest.fixture(scope="module")
def running(broker: Broker) -> Iterator[str]:
    """Start the groups, and stop them at the end."""
    random, bootstrap = Random(0), broker.bootstrap
    create_topics(bootstrap, TOPICS)
    for topic, count in TOPICS.items():
        produce(bootstrap, topic, [random.choice([0, 20, 40, 3000]) for _ in range(count)])
    produce(bootstrap, "forms-a", [50] * TOPICS["forms-a"])
    delete_records(bootstrap, {("forms-a", 1): 12})
    commit_many(bootstrap, {name: commits(random) for name in NAMES})
    with ExitStack() as groups:
        for name, (members, config) in zip(NAMES, RUNNING, strict=False):
            subscribed = {
                f"{'connector-consumer-x' if members == 4 else 'app'}-{number}": ["forms-a", "forms-b", "forms-c"][
                    : random.randint(1, 3)
                ]
                for number in range(members)
            }
            static = {client: {"group.instance.id": f"{name}-{client}"} for client in [*subscribed][::2]}
            groups.enter_context(running_group(bootstrap, name, subscribed, static, **config))
        yield bootstrap


def told(taken: live.Snapshot, name: str) -> Group:
    """Return a group as a snapshot has it."""
    rows: list[dict[str, Any]] = [row for row in taken.members if row["group"] == name]
    members = [
        Member(
            row["consumer_id"], row["client_id"], row["host"], tuple(row["topics"]), row["protocol"],
            row["group_instance_id"], row["rack"],
        )
        for row in rows
    ]  # fmt: skip
    columns = ("topic", "partition", "log_start_offset", "log_end_offset", "current_offset", "consumer_id")
    offsets: list[Any] = [[row[column] for column in columns] for row in taken.offsets if row["group"] == name]
    facts = taken.facts[name]
    return Group(
        name, tuple(Partition(*row) for row in offsets), tuple(members), facts.state or "", facts.protocol or "",
        facts.assignor, facts.group_epoch, facts.assignment_epoch,
    )  # fmt: skip


def printed(group: Group) -> Group:
    """Return a group as Kafka's tool prints it: without partitions that have neither a commit nor an owner."""
    known = [each for each in group.partitions if each.current is not None or each.owner is not None]
    return replace(group, partitions=tuple(known))


@pytest.mark.long
@pytest.mark.broker
def test_a_cluster_its_snapshot_and_the_texts_of_its_tool_agree(running: str, tmp_path: Path) -> None:
    taken = live.snapshot(running, NAMES)
    for form in ("csv", "jsonl", "parquet"):
        live.write_snapshot(taken, tmp_path / form, format=form)
    described = ("--bootstrap-server", running, "--describe", *(word for name in NAMES for word in ("--group", name)))
    texts = [
        tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", *described, *words)
        for words in (["--offsets"], ["--members", "--verbose"], ["--state", "--verbose"])
    ]
    (tmp_path / "all.txt").write_text("\n".join(texts))
    (tmp_path / "offsets.txt").write_text(texts[0])
    for name in NAMES:
        group = told(taken, name)
        problem = evenlag.read(f"kafka://{running}", group=name)
        assert problem.facts.state == group.state
        for form in ("csv", "jsonl", "parquet"):
            of_folder = evenlag.read(tmp_path / form, group=name)
            assert of_folder.to_dict()["topics"] == problem.to_dict()["topics"]
            if group.members:
                assert of_folder.to_dict() == problem.to_dict(), name
                assert of_folder.facts == problem.facts
                assert of_folder.warnings == problem.warnings
        for file, words in (
            ("all.txt", f"{OF_KAFKA_4} state assignor count epoch assignment_epoch"),
            ("offsets.txt", "owners client"),
        ):
            wanted = reference(printed(group), words.split(), str(tmp_path / file))
            assert of_problem(evenlag.read(tmp_path / file, group=name)) == wanted, (name, file)
