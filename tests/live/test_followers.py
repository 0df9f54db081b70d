"""Consumers of confluent-kafka follow a plan on a real broker, in processes that are killed and stopped."""

import itertools
import json
import re
import shlex
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import ge, itemgetter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from evenlag import Problem
from evenlag.errors import FollowError, SourceError
from evenlag.live import followed_plan
from evenlag.live.follow import Follow, PlanFile, PlanTopic, publish
from evenlag.live.ownership import Ownership
from evenlag.tables.loading import read_table
from tests.support.broker import Broker
from tests.support.command import evenlag
from tests.support.followers import Followers, followers
from tests.support.members import wait_until
from tests.support.traffic import add_partitions, create_topics, delete_topic, ends, produce, running_group

SECONDS = 6.0  # of a lease
HOLDING = ("assigned", "revoked", "lost")
NAMES = ("c1", "c2", "c3", "c4")


@contextmanager
def producing(bootstrap: str, topic: str, partitions: int) -> Iterator[list[int]]:
    """Produce until the body ends. Yield the number of messages sent to each partition; at the end, of those there.

    A producer that is idempotent may still write one twice when its broker is restarted (seen once).
    """
    counts = [0] * partitions
    stop = threading.Event()
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})

    def run() -> None:
        while not stop.wait(0.02):
            for number in range(partitions):
                producer.produce(topic, b"", partition=number)
                counts[number] += 1
            producer.poll(0)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield counts
    finally:
        stop.set()
        thread.join()
    assert producer.flush(30) == 0
    there = ends(bootstrap, topic, partitions)
    assert all(map(ge, there, counts)), (there, counts)
    counts[:] = there


def plan_document(group: str, topic: str, owners: str) -> dict[str, Any]:
    """A plan that gives partition n to the member `owners[n]`."""
    given = {f"c{name}": [[topic, n] for n, each in enumerate(owners) if each == name] for name in sorted(set(owners))}
    return {"group": group, "assignment": given}


def wait_until_followed(several: Followers, document: Mapping[str, Any]) -> None:
    """Wait until each member holds the partitions that the plan gives it."""
    given = {name: [(topic, number) for topic, number in mine] for name, mine in document["assignment"].items()}

    def there() -> bool:
        return {name: mine for name, mine in several.loads().items() if mine} == given

    wait_until(there, lambda: f"{given}: {several.story()}")


def processed_counts(several: Followers, counts: list[int]) -> Counter[tuple[int, int]]:
    """Wait until every message was processed; how often each was."""
    wanted = {(number, offset) for number, count in enumerate(counts) for offset in range(count)}
    wait_until(lambda: wanted <= {each[2:] for each in several.processed()}, lambda: several.story()[-4000:])
    done = Counter(each[2:] for each in several.processed())
    assert set(done) == wanted
    return done


def overlaps(several: Followers) -> list[object]:
    """Partitions that somebody was given before another had given them up, or was killed."""
    found: list[object] = []
    events = [(each["t"], name, each) for name, member in several.items() for each in member.of(*HOLDING)]
    events += [(t, name, {"event": "killed"}) for name, member in several.items() for t in member.stops]
    holders: dict[tuple[str, int], str] = {}
    for t, name, each in sorted(events, key=lambda event: event[0]):
        if each["event"] == "killed":
            holders = {key: holder for key, holder in holders.items() if holder != name}
        for topic, number in each.get("partitions", ()):
            key = topic, number
            if each["event"] == "assigned":
                if key in holders:
                    found.append((t, key, holders[key], name))
                holders[key] = name
            elif holders.get(key) == name:  # and not stopped before
                del holders[key]
    return found


def pauses(several: Followers) -> list[float]:
    """Seconds from when a partition was given up until it was taken."""
    events = sorted(
        ((each["t"], each) for member in several.values() for each in member.of(*HOLDING)), key=itemgetter(0)
    )
    since: dict[int, float] = {}
    found = []
    for t, each in events:
        for _, number in each["partitions"]:
            if each["event"] == "assigned" and number in since:
                found.append(t - since[number])
            since[number] = t
    return found


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.parametrize("place", ["file", "topic"])
def test_four_consumers_follow_plans_back_and_forth_under_load(broker: Broker, tmp_path: Path, place: str) -> None:
    topic = group = f"followed-{place}"
    create_topics(broker.bootstrap, {topic: 8, f"{topic}-plans": 1})
    path = tmp_path / "plan.json"
    where = PlanFile(path, group) if place == "file" else PlanTopic(f"{topic}-plans", client_config(broker), group)
    a, b = plan_document(group, topic, "11223344"), plan_document(group, topic, "12341234")
    config = {"file": str(path)} if place == "file" else {"plans": f"{topic}-plans"}
    with followers(broker.bootstrap, group, lease=SECONDS, **config) as several:
        with producing(broker.bootstrap, topic, 8) as counts:
            several.start(*NAMES)
            wait_until(
                lambda: all("nothing is read" in str(member.of("log")) for member in several.values()), "warnings"
            )
            versions = [publish(a, where).version]
            wait_until_followed(several, a)
            for document in (b, a, b, a):
                versions.append(publish(document, where).version)
                wait_until_followed(several, document)
            assert sorted(set(versions)) == versions

            # What is no plan, or an older one, changes nothing.
            older = {**b, "version": versions[1]}
            for number, content in enumerate(["{", json.dumps(older)]):
                if place == "file":
                    path.write_text(content)
                else:
                    send(broker, f"{topic}-plans", group, content)
                warning = ["not valid JSON", "is older; this consumer stays at version"][number]
                wait_until(
                    lambda warning=warning: all(warning in str(each.of("log")) for each in several.values()), warning
                )
            publish(b, where)
            wait_until_followed(several, b)
        assert set(processed_counts(several, counts).values()) == {1}
        still = pauses(several)
        print(f"{len(still)} moves, which stood still for {min(still):.2f} to {max(still):.2f} s")
        for name in NAMES:
            several[name].leave()
        assert overlaps(several) == []
        assert not [each for member in several.values() for each in member.of("lost")]
    group_commits = committed_offsets(broker, group, topic, counts)
    assert [offset for offset, _ in group_commits] == counts
    assert {owner for _, owner in group_commits} == {None}


@pytest.mark.broker
@pytest.mark.slow
def test_no_message_is_lost_when_followers_are_killed_and_return(broker: Broker, tmp_path: Path) -> None:
    topic = group = "followed-killed"
    create_topics(broker.bootstrap, {topic: 8})
    path = tmp_path / "plan.json"
    where, everybody = PlanFile(path, group), plan_document(group, topic, "12341234")
    with followers(broker.bootstrap, group, lease=SECONDS, file=str(path)) as several:
        with producing(broker.bootstrap, topic, 8) as counts:
            publish(everybody, where)
            several.start(*NAMES)
            wait_until_followed(several, everybody)

            several["c2"].kill()  # and a plan without it
            without = plan_document(group, topic, "13341134")
            publish(without, where)
            wait_until_followed(several, without)

            several["c3"].kill()  # and it comes back by its name
            before = several.pop("c3")
            several.start("c3")
            wait_until_followed(several, without)
            several["c3, killed"] = before

            several["c4"].pause()  # for longer than a lease, while a plan gives its partitions away
            others = plan_document(group, topic, "13311331")
            publish(others, where)
            wait_until_followed(several, others)
            several["c4"].wake()
            wait_until(lambda: several["c4"].of("lost"), lambda: several.story()[-4000:])
            wait_until_followed(several, others)
        done = processed_counts(several, counts)
        assert overlaps(several) == []
        again = sum(done.values()) - len(done)
        print(f"{len(done)} messages, {again} of them processed again")
        # No more than what three of the four had processed since their last commits, each of 8 / 4 partitions or so.
        assert again < sum(counts) / 4


@pytest.mark.broker
@pytest.mark.slow
def test_followers_survive_a_restart_of_the_broker_that_outlasts_their_leases(broker: Broker, tmp_path: Path) -> None:
    topic = group = "followed-outage"
    create_topics(broker.bootstrap, {topic: 4})
    path = tmp_path / "plan.json"
    both = plan_document(group, topic, "1122")
    publish(both, PlanFile(path, group))
    with followers(broker.bootstrap, group, lease=2.0, file=str(path)) as several:
        with producing(broker.bootstrap, topic, 4) as counts:
            several.start("c1", "c2")
            wait_until_followed(several, both)
            broker.restart()
            wait_until(
                lambda: all("again" in str(member.of("log")) for member in several.values()), lambda: several.story()
            )
        assert set(processed_counts(several, counts).values()) == {1}
        for member in several.values():
            assert member.alive()
            lines = [each["line"] for each in member.of("log")]
            assert any("waits for the brokers" in line for line in lines), lines
            assert any("the lease has run out" in line for line in lines), lines
        assert overlaps(several) == []


def client_config(broker: Broker) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap, "log_level": 0}


def send(broker: Broker, topic: str, key: str, value: str) -> None:
    producer = Producer(client_config(broker))
    producer.produce(topic, value, key)
    assert producer.flush(30) == 0


def committed_offsets(broker: Broker, group: str, topic: str, counts: list[int]) -> list[tuple[int, str | None]]:
    """Offset and owner of each partition as the group has committed them."""
    consumer = Consumer({**client_config(broker), "group.id": group})
    found = consumer.committed([TopicPartition(topic, number) for number in range(len(counts))], timeout=30)
    consumer.close()
    owners = [Ownership.decode(each.metadata) for each in found]
    return [(each.offset, own.owner if own else "?") for each, own in zip(found, owners, strict=True)]


@pytest.mark.broker
@pytest.mark.slow
def test_a_group_with_subscribed_members_is_refused(broker: Broker, tmp_path: Path) -> None:
    topic = group = "followed-subscribed"
    create_topics(broker.bootstrap, {topic: 2})
    where = PlanFile(tmp_path / "plan.json", group)
    publish(plan_document(group, topic, "11"), where)
    consumer = Consumer({**client_config(broker), "group.id": group, "enable.auto.commit": False})
    with running_group(broker.bootstrap, group, {"m": [topic]}), Follow(consumer, where, "c1", lease=SECONDS) as follow:
        with pytest.raises(FollowError, match="the group has members that subscribe to topics: stop them"):
            list(follow.consume(5))
        assert follow.holds == []
    consumer.close()


@pytest.mark.broker
@pytest.mark.slow
def test_commits_of_the_client_itself_are_detected(broker: Broker, tmp_path: Path) -> None:
    topic = group = "followed-auto-commit"
    create_topics(broker.bootstrap, {topic: 1})
    produce(broker.bootstrap, topic, [100])
    where = PlanFile(tmp_path / "plan.json", group)
    publish(plan_document(group, topic, "1"), where)
    consumer = Consumer({**client_config(broker), "group.id": group, "auto.commit.interval.ms": 500})
    follow = Follow(consumer, where, "c1", lease=SECONDS, auto_offset_reset="earliest")
    with pytest.raises(FollowError, match=r"set enable\.auto\.commit to false"):
        list(follow.consume(30))
    consumer.close()


@pytest.mark.broker
@pytest.mark.slow
def test_publishing_does_not_create_the_topic_of_plans(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_plan, "ANSWER_LIMIT", 2.0)
    with pytest.raises(SourceError, match=r"topic no-plans: .*; create it with cleanup\.policy=compact"):
        publish(plan_document("billing", "t", "1"), PlanTopic("no-plans", client_config(broker), "billing"))
    with pytest.raises(SourceError, match="topic no-plans: "):
        publish(
            plan_document("billing", "t", "1"),
            PlanTopic("no-plans", client_config(broker) | {"bootstrap.servers": "127.0.0.1:9"}, "billing"),
        )


@pytest.mark.broker
@pytest.mark.slow
def test_a_deleted_topic_and_new_partitions_stop_no_follower(broker: Broker, tmp_path: Path) -> None:
    group = "followed-deleted"
    create_topics(broker.bootstrap, {"followed-stays": 1, "followed-goes": 1})
    where = PlanFile(tmp_path / "plan.json", group)
    keys = [["followed-stays", 0], ["followed-stays", 1], ["followed-goes", 0]]
    publish({"group": group, "assignment": {"c1": keys}}, where)
    consumer = Consumer({**client_config(broker), "group.id": group, "enable.auto.commit": False})
    with Follow(consumer, where, "c1", lease=SECONDS, auto_offset_reset="earliest") as follow:

        def read_until(holds: list[tuple[str, int]]) -> None:
            wait_until(lambda: list(follow.consume(0.2)) is not None and follow.holds == holds, str(holds))

        read_until([("followed-goes", 0), ("followed-stays", 0)])
        delete_topic(broker.bootstrap, "followed-goes")
        add_partitions(broker.bootstrap, "followed-stays", 2)
        read_until([("followed-stays", 0), ("followed-stays", 1)])
        produce(broker.bootstrap, "followed-stays", [1, 1])
        found: set[int] = set()
        wait_until(lambda: found.update(each.partition() for each in follow.consume(0.2)) or len(found) == 2, "both")
        assert list(follow.troubles) == ["absent"]
    consumer.close()


@pytest.mark.broker
@pytest.mark.slow
def test_a_plan_from_a_snapshot_of_the_group_is_followed(broker: Broker, tmp_path: Path) -> None:
    topic = group = "followed-again"
    create_topics(broker.bootstrap, {topic: 8})
    path, plan, tables = tmp_path / "plan.json", tmp_path / "next.json", tmp_path / "tables"
    where = PlanFile(path, group)
    with followers(broker.bootstrap, group, lease=SECONDS, file=str(path), rack="zone-a") as several:
        with producing(broker.bootstrap, topic, 8) as counts:
            first = publish(plan_document(group, topic, "11112334"), where)
            several.start(*NAMES)
            wait_until_followed(several, first.to_dict())
            several["c3"].leave()
            several["c4"].kill()  # its partition names it still

            done = evenlag("snapshot", "--bootstrap-server", broker.bootstrap, "--group", group, "--out", tables)
            assert done.returncode == 0, done
            assert done.stderr.startswith(f"note: stopped members of group '{group}' are left out: c4 "), done
            assert done.stdout.startswith("1 group, 8 partitions, 2 members\n")
            rows = read_table(tables / "offsets.csv", "offsets")
            owners = {row["partition"]: (row["consumer_id"], row["client_id"]) for row in rows}
            names = ["c1", "c1", "c1", "c1", "c2", None, None, None]
            assert owners == {number: (name, name) for number, name in enumerate(names)}
            columns = ("consumer_id", "topics", "protocol", "group_epoch", "rack")
            assert [[row[each] for each in columns] for row in read_table(tables / "members.csv", "members")] == [
                [name, [topic], "follow", first.version, "zone-a"] for name in ("c1", "c2")
            ]

            snapshot = (tables / "offsets.csv", "--members", tables / "members.csv")
            problem = tmp_path / "problem.json"
            done = evenlag("whatif", *snapshot, "--add", "c3", "--out", problem)
            assert done.returncode == 0, done
            assert evenlag("plan", problem, "--max-moves", 1, "--out", plan).returncode == 0
            assert evenlag("publish", plan, path).returncode == 0
            after = json.loads(path.read_text())
            assert sorted(map(len, after["assignment"].values())) == [2, 3, 3]
            kept = {number for _, number in after["assignment"]["c1"]}
            assert len(kept) == 3
            assert kept < {0, 1, 2, 3}  # one moves, as it may; the others had nobody
            before = several.pop("c3")
            several.start("c3")
            wait_until_followed(several, after)
            several["c3, before"] = before
        processed_counts(several, counts)
        assert overlaps(several) == []


@pytest.mark.broker
@pytest.mark.slow
def test_the_commands_of_the_page_work(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_topics(broker.bootstrap, {"orders": 4, "plans": 1})
    produce(broker.bootstrap, "orders", [10, 20, 30, 40])
    page = (Path(__file__).parents[2] / "docs" / "follow.md").read_text()
    page = page.replace("localhost:9092", broker.bootstrap).replace("/shared", str(tmp_path))
    follow_file, follow_topic = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    commands = iter(re.findall(r"^evenlag (.*)$", page, re.MULTILINE))
    monkeypatch.chdir(tmp_path)

    def next_commands(count: int) -> None:
        for command in itertools.islice(commands, count):
            done = evenlag(*shlex.split(command))
            assert (done.returncode, done.stderr) == (0, ""), done

    problem = Problem.from_lags({"orders": [10, 20, 30, 40]}, {"c1": ["orders"], "c2": ["orders"]}, group="billing")
    Path("problem.json").write_text(json.dumps(problem.to_dict()))
    next_commands(3)  # plan, and publish to the file and to the topic
    publish(plan_document("billing", "orders", "1112"), PlanFile("billing.json", "billing"))

    handlers: list[tuple[int, Any]] = []  # only the main thread may set those of signals
    follow_file = follow_file.replace("signal.signal(", "on_signal(")
    processed: list[tuple[str, int, int, bytes]] = []  # topic, partition, offset and value, as the page prints them
    running: dict[str, dict[str, Any]]
    names = {"print": lambda *each: processed.append(each), "on_signal": lambda *each: handlers.append(each)}
    running = {name: dict(names) for name in ("c1", "c2")}
    threads = [
        threading.Thread(target=exec, args=(follow_file.replace('member="c1"', f'member="{name}"'), names))
        for name, names in running.items()
    ]
    for thread in threads:
        thread.start()

    def held() -> list[int]:
        return [len(names["follower"].holds) if "follower" in names else 0 for names in running.values()]

    try:
        wait_until(lambda: held() == [3, 1], lambda: str(held()))
        produce(broker.bootstrap, "orders", [1, 1, 1, 1])
        wait_until(lambda: {each[1] for each in processed} == {0, 1, 2, 3}, lambda: str(processed))
        next_commands(3)  # snapshot, plan, publish
        wait_until(lambda: held() == [2, 2], lambda: str(held()))
    finally:
        for number, handler in handlers:
            handler(number, None)
        for thread in threads:
            thread.join()
    assert [number for number, _ in handlers] == [signal.SIGTERM] * 2
    next_commands(2)  # whatif, and a plan of it
    assert json.loads(Path("plan.json").read_text())["assignment"].keys() == {"c1", "c3"}
    assert next(commands, None) is None

    exec(follow_topic, running["c1"])
    (plan,) = running["c1"]["plans"].news()
    running["c1"]["plans"].close()
    assert plan.assignment.keys() == {"c1", "c2"}
