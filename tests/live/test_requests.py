"""Requests of a snapshot: their number, protocol versions, retries, and failures of a broker or a connection."""

import itertools
import logging
import re
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import pytest
from kafka import errors
from kafka.future import Future

from evenlag.errors import SourceError
from evenlag.live import snapshot
from evenlag.live.cluster.client import Cluster
from evenlag.live.group_state import Failure
from tests.support.broker import Broker
from tests.support.traffic import (
    commit,
    commit_many,
    create_topics,
    produce,
    running_group,
)


@pytest.mark.broker
@pytest.mark.parametrize("version", [(2, 3), (2, 8), (3, 0)])
def test_versions_of_the_protocol_of_older_brokers_are_spoken(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...]
) -> None:
    from evenlag.live.cluster import brokers

    topic = f"aged-{version[0]}-{version[1]}"
    create_topics(broker.bootstrap, {topic: 2})
    produce(broker.bootstrap, topic, [5, 6])
    monkeypatch.setattr(brokers, "kafka_python_settings", lambda _: {"api_version": version})
    commit(broker.bootstrap, f"{topic}-too", {(topic, 1): 1})
    with running_group(broker.bootstrap, topic, {"a": [topic]}) as members:
        members["a"].commit({(topic, 0): 3})
        taken = snapshot(broker.bootstrap, [topic, f"{topic}-too"])
    assert [row["topics"] for row in taken.members] == [[topic]]
    assert [row["lag"] for row in taken.offsets] == [2, None, None, 5]
    assert taken.requests["OffsetFetch"] == taken.requests["FindCoordinator"] == (1 if version >= (3, 0) else 2)


def alter_answers(monkeypatch: pytest.MonkeyPatch, kind: str, alter: Callable[[int, Any], Any]) -> None:
    """Pass each answer to requests of a kind through `alter`, with the number of the request."""
    from evenlag.live.cluster.brokers import Brokers

    ask, count = Brokers.ask, itertools.count()

    async def between(self: Brokers, request: Any, node: int | None) -> Any:
        answer = await ask(self, request, node)
        return alter(next(count), answer) if type(request).__name__ == kind else answer

    monkeypatch.setattr(Brokers, "ask", between)


@pytest.mark.broker
def test_a_failed_request_leaves_out_its_groups_only(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenlag.live.cluster import client
    from evenlag.live.cluster.brokers import NO_TIME

    create_topics(broker.bootstrap, {"partly": 1})
    groups = [f"partly-{number}" for number in range(5)]
    commit_many(broker.bootstrap, {group: {("partly", 0): 0} for group in groups})
    monkeypatch.setattr(client, "GROUPS_A_REQUEST", 2)
    listed = client.Cluster.groups
    monkeypatch.setattr(
        client.Cluster, "groups", lambda self: ({g: p for g, p in listed(self)[0].items() if g in groups}, [])
    )
    alter_answers(monkeypatch, "OffsetFetchRequest", lambda n, answer: NO_TIME if n == 1 else answer)
    taken = snapshot(broker.bootstrap)
    assert taken.warnings == [
        f"group '{group}' is left out: no answer within the timeout; set a longer one" for group in groups[2:4]
    ]
    assert {row["group"] for row in taken.offsets} == {*groups[:2], *groups[4:]}


@pytest.mark.broker
def test_offsets_are_requested_from_the_new_leader(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    create_topics(broker.bootstrap, {"led": 2})
    produce(broker.bootstrap, "led", [3, 4])
    commit(broker.bootstrap, "led", {("led", 0): 0, ("led", 1): 0})

    def moved(number: int, answer: Any) -> Any:
        if number == 0:
            answer.topics[0].partitions[0].error_code = 6  # NOT_LEADER_FOR_PARTITION
        return answer

    alter_answers(monkeypatch, "ListOffsetsRequest", moved)
    taken = snapshot(broker.bootstrap, ["led"])
    assert [row["lag"] for row in taken.offsets] == [3, 4]
    assert taken.warnings == []
    assert (taken.requests["Metadata"], taken.requests["ListOffsets"]) == (2, 4)


@pytest.mark.broker
def test_a_broker_that_hangs_leaves_out_its_partitions_only(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenlag.live.cluster.brokers import NO_TIME

    create_topics(broker.bootstrap, {"hung": 2})
    produce(broker.bootstrap, "hung", [3, 4])
    hangs = 77
    with closing(Cluster(broker.bootstrap, {}, 1.0)) as cluster:
        started = time.monotonic()
        cluster.partitions(["hung"])
        cluster._leaders["hung", 0] = hangs
        connections = cluster._brokers._connections
        send = connections.send
        monkeypatch.setattr(
            connections, "send", lambda request, node, left: Future() if node == hangs else send(request, node, left)
        )
        offsets = cluster.log_offsets([("hung", 0), ("hung", 1)])
        assert offsets == {("hung", 0): (NO_TIME, NO_TIME), ("hung", 1): (0, 4)}
        assert time.monotonic() - started < 1.5


@pytest.mark.broker
@pytest.mark.parametrize(("error", "failures", "message"), [
    (errors.NodeNotReadyError, 5, None),  # as under a quota: it is waited for
    (errors.KafkaConnectionError, 2, None),
    (errors.KafkaConnectionError, 3, "KafkaConnectionError"),
    (errors.KafkaTimeoutError, 1, "REQUEST_TIMED_OUT"),
])  # fmt: skip
def test_requests_are_retried_after_transient_errors(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, error: type[Exception], failures: int, message: str | None
) -> None:
    from evenlag.live.cluster import brokers
    from evenlag.live.kafka_python import ListGroupsRequest

    monkeypatch.setattr(brokers, "RETRY_PAUSE", 0.01)
    with closing(brokers.Brokers(broker.bootstrap, {}, 10.0)) as asked:
        send, calls = asked._connections.send, itertools.count()

        def failing(*given: Any) -> Any:
            return Future().failure(error("no")) if next(calls) < failures else send(*given)

        monkeypatch.setattr(asked._connections, "send", failing)
        answer = asked.run(asked.ask(ListGroupsRequest(), None))
    assert (answer.name if isinstance(answer, Failure) else None) == message
    assert asked.requests["ListGroups"] == (message is None)


@pytest.mark.broker
@pytest.mark.slow
def test_2000_groups_take_requests_of_100_groups(broker: Broker) -> None:
    groups = [f"many-{number:04}" for number in range(2_000)]
    create_topics(broker.bootstrap, {"crowded": 10})
    produce(broker.bootstrap, "crowded", [100] * 10)
    commit_many(broker.bootstrap, {group: {("crowded", n % 10): n % 100} for n, group in enumerate(groups)})
    seen: dict[str, list[tuple[int, int]]] = defaultdict(list)
    taken = snapshot(broker.bootstrap, groups, timeout=120, progress=lambda what, *part: seen[what].append(part))
    assert taken.warnings == []
    assert [row["group"] for row in taken.offsets] == [group for group in groups for _ in range(10)]
    lags = {(row["group"], row["partition"]): row["lag"] for row in taken.offsets if row["lag"] is not None}
    assert lags == {(group, n % 10): 100 - n % 100 for n, group in enumerate(groups)}
    assert taken.requests == {
        "ListGroups": 1, "FindCoordinator": 20, "DescribeGroups": 20, "OffsetFetch": 20, "Metadata": 1, "ListOffsets": 2
    }  # fmt: skip
    assert seen["committed offsets"] == [(done, 2_000) for done in range(100, 2_001, 100)]


@pytest.mark.slow
def test_an_address_without_a_broker_is_an_error() -> None:
    with pytest.raises(
        SourceError, match=r"no Kafka broker answers at 127\.0\.0\.1:1 within 0\.5 s \(connection refused\)"
    ):
        snapshot("127.0.0.1:1", timeout=0.5)


@pytest.mark.parametrize(
    ("servers", "why"), [("127.0.0.1:1,127.0.0.1:2", "connection refused"), ("nohost.invalid:9092", "unknown host")]
)
def test_nobody_waits_for_brokers_that_are_not_there(servers: str, why: str) -> None:
    with pytest.raises(SourceError, match=rf"no Kafka broker answers at {servers} \({why}\); check the address"):
        snapshot(servers, timeout=3_600)


@pytest.mark.slow
def test_a_slow_broker_has_the_whole_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections and never answers
        servers = f"127.0.0.1:{silent.getsockname()[1]}"
        for refusing, why in (("", "no answer"), ("127.0.0.1:1,", "connection refused")):
            message = rf"no Kafka broker answers at {refusing}{servers} within 2 s \({why}\); check the address"
            with pytest.raises(SourceError, match=message):
                snapshot(refusing + servers, timeout=2)


def test_a_process_out_of_file_descriptors_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from evenlag.live import kafka_python

    def refused(**_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(kafka_python, "NetworkSelector", refused)
    before = list(logging.getLogger("kafka.net.manager").filters)
    with pytest.raises(SourceError, match=r"127\.0\.0\.1:1 \(.*Too many open files\)"):
        snapshot("127.0.0.1:1", timeout=0.5)
    assert logging.getLogger("kafka.net.manager").filters == before


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((" ",), {}, "bootstrap address is empty"),
        (("127.0.0.1:1", [""]), {}, "group without a name"),
        (("127.0.0.1:1",), {"timeout": 0}, "timeout of 0 s"),
        (("127.0.0.1:1",), {"timeout": float("nan")}, "timeout of nan s"),
        (("127.0.0.1:1",), {"config": {"sasl.jaas.config": "x"}}, "'sasl.jaas.config' is not valid"),
        (("127.0.0.1:1",), {"config": {"no.such": "x"}}, "unknown client property 'no.such'"),
        (("127.0.0.1:1",), {"config": {"security.protocol": "TLS"}}, "'security.protocol' has an invalid value"),
        (("127.0.0.1:1",), {"config": {"security.protocol": "SASL_SSL"}}, "'sasl.mechanism' is missing; SASL_SSL"),
        (("127.0.0.1:1",), {"config": {"sasl.mechanism": "plain"}}, "'sasl.username' is missing; PLAIN needs it"),
        (("127.0.0.1:1",), {"config": {"sasl.mechanism": "GSSAPI"}}, "GSSAPI needs the package gssapi"),
        (
            ("127.0.0.1:1",),
            {"config": {"security.protocol": "SSL", "ssl.ca.location": "/no"}},
            "'ssl.ca.location': no such file: /no",
        ),
    ],
)
def test_invalid_arguments_are_named(arguments: tuple[Any, ...], options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=re.escape(message)):
        snapshot(*arguments, **options)


def test_without_kafka_python_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kafka", None)
    with pytest.raises(SourceError, match=r"in a clone of evenlag: pip install '\.\[kafka\]'"):
        snapshot("127.0.0.1:1")
