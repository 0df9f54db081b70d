import base64
import itertools
import json
import logging
import re
import struct
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from confluent_kafka.admin import ResourceType
from kafka import errors
from kafka.future import Future

from evenlag.errors import SourceError
from evenlag.heuristics.weighted_sticky import ASSIGNOR as WEIGHTED
from evenlag.live import Snapshot, read_client_config, snapshot, write_snapshot
from evenlag.live.cluster import capture
from evenlag.live.cluster.client import Cluster
from evenlag.live.cluster.client_config import kafka_python_settings
from evenlag.live.cluster.rows import Layout, LogOffsets, offset_rows, partitions_of
from evenlag.live.group_state import Commits, Description, Failure, Group, Subscription
from evenlag.live.group_state import Member as MemberState
from evenlag.live.ownership import Ownership
from evenlag.tables.columns import MEMBERS, OFFSETS
from evenlag.tables.loading import read_table
from tests.support.assignors import told_by_members
from tests.support.broker import CERTIFICATE, LOCKED_KEY, REVOKED, Broker, running_cluster
from tests.support.command import evenlag, evenlag_alone, refused
from tests.support.traffic import (
    add_scram_user,
    allow_describe,
    commit,
    commit_many,
    create_topics,
    delete_records,
    delete_topic,
    produce,
    running_group,
)

NOW = "2026-01-02T03:04:05.678Z"
WRONG_PASSWORD = "Invalid username or password|closed at login; .*sasl.password may be wrong"
PROTOCOLS = {
    "range": {"partition_assignment_strategy": "range"},
    "cooperative-sticky": {"partition_assignment_strategy": "cooperative-sticky"},
    "kip-848": {"group_protocol": "consumer"},
}


def by_partition(taken: Snapshot, column: str) -> dict[tuple[object, object], object]:
    return {(row["topic"], row["partition"]): row[column] for row in taken.offsets}


def sasl(broker: Broker) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": broker.user,
        "sasl.password": broker.password,
    }


@pytest.mark.broker
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_partition_and_member_of_a_running_group(broker: Broker, protocol: str) -> None:
    skewed, even, group = f"skewed-{protocol}", f"even-{protocol}", f"running-{protocol}"
    produced = {skewed: [900, 0, 40, 7, 1, 333], even: [50, 50, 50]}
    committed = {(skewed, 0): 100, (skewed, 2): 40, (skewed, 3): 0, (even, 1): 49}
    create_topics(broker.bootstrap, {topic: len(counts) for topic, counts in produced.items()})
    for topic, counts in produced.items():
        produce(broker.bootstrap, topic, counts)
    commit(broker.bootstrap, group, committed)
    subscriptions = {f"app-{i}": [skewed, even] for i in range(4)}
    with running_group(broker.bootstrap, group, subscriptions, **PROTOCOLS[protocol]) as members:
        before = snapshot(broker.bootstrap, [group])
        members["app-2"].commit({(even, 0): 13})
        after = snapshot(broker.bootstrap, [group])

    ends = {(topic, p): count for topic, counts in produced.items() for p, count in enumerate(counts)}
    assert by_partition(before, "log_end_offset") == ends
    assert set(by_partition(before, "log_start_offset").values()) == {0}
    assert by_partition(before, "current_offset") == {each: committed.get(each) for each in ends}
    lags = {each: ends[each] - committed[each] if each in committed else None for each in ends}
    assert by_partition(before, "lag") == lags
    assert by_partition(after, "lag") == lags | {(even, 0): 50 - 13}
    assert before.warnings == after.warnings == []

    assert sorted(str(row["client_id"]) for row in before.members) == sorted(subscriptions)
    clients = {row["consumer_id"]: row["client_id"] for row in before.members}
    assert len(clients) == 4
    assert all(clients[row["consumer_id"]] == row["client_id"] for row in before.offsets)
    assert all(str(row["host"]).endswith("127.0.0.1") for row in before.offsets + before.members)
    assert len({row["snapshot_ts"] for row in before.offsets + before.members}) == 1
    assert all(list(row) == [column.name for column in OFFSETS] for row in before.offsets)
    assert all(list(row) == [column.name for column in MEMBERS] for row in before.members)


@pytest.mark.broker
@pytest.mark.parametrize("protocol", ["range", "kip-848"])
def test_a_group_that_is_rebalancing_is_waited_for(broker: Broker, protocol: str) -> None:
    topic, group = f"moving-{protocol}", f"moving-{protocol}"
    create_topics(broker.bootstrap, {topic: 6})
    with running_group(broker.bootstrap, group, {"a": [topic], "b": [topic]}, **PROTOCOLS[protocol]) as members:
        members["b"].stop()
        taken = [snapshot(broker.bootstrap, [group], timeout=20) for _ in range(5)]
    assert [each.warnings for each in taken] == [[]] * 5
    for each in taken:
        owners = set(by_partition(each, "consumer_id").values())
        assert None not in owners
        assert owners == {row["consumer_id"] for row in each.members}


@pytest.mark.broker
def test_members_without_a_partition(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"narrow": 2})
    with running_group(broker.bootstrap, "idle", {f"app-{i}": ["narrow"] for i in range(3)}):
        taken = snapshot(broker.bootstrap, ["idle"])
    assert len(taken.members) == 3
    assert len({row["consumer_id"] for row in taken.offsets}) == 2


@pytest.mark.broker
@pytest.mark.parametrize("protocol", ["range", "kip-848"])
def test_static_membership_shows(broker: Broker, protocol: str) -> None:
    create_topics(broker.bootstrap, {f"static-{protocol}": 1})
    config = PROTOCOLS[protocol] | {"group_instance_id": "app-7"}
    with running_group(broker.bootstrap, f"static-{protocol}", {"app": [f"static-{protocol}"]}, **config):
        taken = snapshot(broker.bootstrap, [f"static-{protocol}"])
    assert [row["group_instance_id"] for row in taken.members] == ["app-7"]
    assert taken.warnings == []
    if protocol == "kip-848":  # the group waits for its static member, and is not stable meanwhile
        (warning,) = snapshot(broker.bootstrap, [f"static-{protocol}"], timeout=1).warnings
        assert "group 'static-kip-848' is still rebalancing (Reconciling)" in warning


@pytest.mark.broker
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_topics_are_what_each_consumer_subscribed_to_and_no_plan_gives_it_another(
    broker: Broker, tmp_path: Path, protocol: str
) -> None:
    orders, refunds, audit = (f"{name}-{protocol}" for name in ("orders", "refunds", "audit"))
    create_topics(broker.bootstrap, {orders: 6, refunds: 3, audit: 1, f"unread-{protocol}": 4})
    for topic, counts in ((orders, [500, 400, 300, 200, 100, 90]), (refunds, [9, 8, 7]), (f"unread-{protocol}", [99])):
        produce(broker.bootstrap, topic, counts)
    commit(broker.bootstrap, f"mixed-{protocol}", {(f"unread-{protocol}", 0): 1})  # of a subscription that has ended
    pattern = f"^(refunds|audit)-{protocol}$"
    subscriptions = {"orders": [orders], "both": [orders, refunds], "audit": [audit], "pattern": [pattern]}
    expected = {"orders": [orders], "both": [orders, refunds], "audit": [audit], "pattern": [audit, refunds]}
    own = {"both": {"group.instance.id": "static-1"}, "orders": {"client.rack": "rack-7"}}
    with running_group(broker.bootstrap, f"mixed-{protocol}", subscriptions, own, **PROTOCOLS[protocol]):
        taken = snapshot(broker.bootstrap, [f"mixed-{protocol}"])

    assert taken.warnings == []
    by_client = {str(row["client_id"]): row for row in taken.members}
    assert {client: row["topics"] for client, row in by_client.items()} == expected
    assert [client for client, row in by_client.items() if row["group_instance_id"] == "static-1"] == ["both"]
    assert [client for client, row in by_client.items() if row["rack"] == "rack-7"] == ["orders"]
    assert {row["assignor"] for row in taken.members} == {"uniform" if protocol == "kip-848" else protocol}
    assert {row["protocol"] for row in taken.members} == {"consumer" if protocol == "kip-848" else "classic"}
    if protocol == "kip-848":
        assert {row["topics_regex"] for row in taken.members} == {None, f"({pattern})"}  # librdkafka adds them
        (epoch,) = {row["group_epoch"] for row in taken.members}
        assert isinstance(epoch, int)
        assert {row["generation"] for row in taken.members} == {row["assignment_epoch"] for row in taken.members}
    assert set(map(str, by_partition(taken, "replica_racks").values())) == {str([broker.rack])}

    files = [str(path) for path in write_snapshot(taken, tmp_path)]
    words = ("plan", files[0], "--members", files[1], "--auto-offset-reset", "earliest", "--method", "auto", "--json")
    plan = json.loads(evenlag(*words).stdout)
    topics_of = {str(row["consumer_id"]): row["topics"] for row in taken.members}
    planned = {member: {topic for topic, _ in mine} for member, mine in plan["assignment"].items()}
    assert all(topics <= set(map(str, topics_of[member])) for member, topics in planned.items())
    assert sum(map(len, plan["assignment"].values())) == 10
    assert {topic for topic, _ in plan["unassigned"]} == {f"unread-{protocol}"}
    audit = evenlag(
        "audit", files[0], "--members", files[1], "--auto-offset-reset", "earliest", "--group-time-limit", 1
    )
    assert f"today: {by_client['orders']['assignor']}, " in audit.stdout


@pytest.mark.broker
def test_a_group_without_members_and_a_topic_that_is_gone(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"kept": 2, "deleted": 3})
    produce(broker.bootstrap, "kept", [10, 20])
    delete_records(broker.bootstrap, {("kept", 0): 4})
    commit(broker.bootstrap, "resting", {("kept", 1): 5, ("deleted", 2): 0})
    delete_topic(broker.bootstrap, "deleted")

    taken = snapshot(broker.bootstrap, ["resting"])

    assert taken.members == []
    assert by_partition(taken, "lag") == {("kept", 0): None, ("kept", 1): 15}
    assert by_partition(taken, "log_start_offset") == {("kept", 0): 4, ("kept", 1): 0}
    assert set(by_partition(taken, "consumer_id").values()) == {None}
    # the group's coordinator drops the commits of a deleted topic some time later
    assert taken.warnings in ([], ["group 'resting', topic deleted: partitions 2 no longer exist; left out"])


@pytest.mark.broker
def test_all_groups_come_when_none_is_named(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"shared": 1})
    for group in ("reader-b", "reader-a"):
        commit(broker.bootstrap, group, {("shared", 0): 0})
    taken = snapshot(broker.bootstrap, timeout=4)
    assert not [warning for warning in taken.warnings if "reader-" in warning]
    seen = [row["group"] for row in taken.offsets]
    assert seen == sorted(map(str, seen))
    assert {"reader-a", "reader-b"} <= set(seen)


@pytest.mark.broker
def test_an_unknown_group_is_named_with_those_that_are_there(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"present": 1})
    commit(broker.bootstrap, "a-present-group", {("present", 0): 0})
    with pytest.raises(SourceError, match=r"group 'absent': not found at 127.*; the cluster has a-present-group"):
        snapshot(broker.bootstrap, ["a-present-group", "absent"])


@pytest.mark.broker
def test_what_a_user_may_not_see(broker: Broker) -> None:
    create_topics(broker.bootstrap, {"secret": 2})
    produce(broker.bootstrap, "secret", [3, 3])
    with running_group(broker.bootstrap, "guarded", {"app": ["secret"]}):
        taken = snapshot(broker.sasl_bootstrap, config=sasl(broker))
        assert (taken.offsets, taken.members) == ([], [])
        assert taken.warnings == [f"the user sees no consumer group at {broker.sasl_bootstrap}"]
        with pytest.raises(SourceError, match=r"group 'guarded' at .*the ACL Describe on the group"):
            snapshot(broker.sasl_bootstrap, ["guarded"], config=sasl(broker))

        allow_describe(broker.bootstrap, broker.user, ResourceType.GROUP, "guarded")
        taken = snapshot(broker.sasl_bootstrap, ["guarded"], config=sasl(broker))
        assert by_partition(taken, "log_end_offset") == {("secret", 0): None, ("secret", 1): None}
        (warning,) = taken.warnings
        assert "topic secret: offsets of partitions 0, 1 left null" in warning
        assert "the ACL Describe on the topic" in warning

        allow_describe(broker.bootstrap, broker.user, ResourceType.TOPIC, "secret")
        taken = snapshot(broker.sasl_bootstrap, ["guarded"], config=sasl(broker))
        assert by_partition(taken, "log_end_offset") == {("secret", 0): 3, ("secret", 1): 3}
        assert taken.warnings == []


@pytest.mark.broker
def test_a_wrong_password_or_protocol_is_told(broker: Broker) -> None:
    with pytest.raises(SourceError, match=rf"no Kafka broker answers .*({WRONG_PASSWORD})"):
        snapshot(broker.sasl_bootstrap, timeout=2, config=sasl(broker) | {"sasl.password": "wrong"})
    with pytest.raises(SourceError, match=r"no Kafka broker answers .*check .* security\.protocol"):
        snapshot(broker.sasl_bootstrap, timeout=2)


def requests_sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The API key of every request that leaves this process by kafka-python, read off the bytes on their way out."""
    try:
        from kafka.net.backend.transport import KafkaTCPTransport  # since 3.1
    except ImportError:
        from kafka.net.transport import KafkaTCPTransport

    keys: list[int] = []
    write = KafkaTCPTransport.write

    def spied(self: KafkaTCPTransport, data: bytes) -> object:
        at = 0
        while at < len(data):
            size, key = struct.unpack_from(">ih", data, at)
            keys.append(key)
            at += 4 + size
        return write(self, data)

    monkeypatch.setattr(KafkaTCPTransport, "write", spied)
    return keys


@pytest.mark.broker
def test_only_requests_that_read_leave_the_process_and_no_password_is_logged(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from evenlag.live.cluster.brokers import READING, Brokers

    create_topics(broker.bootstrap, {"watched": 2})
    commit(broker.bootstrap, "watched-too", {("watched", 1): 0})
    for kind in (ResourceType.GROUP, ResourceType.TOPIC):
        allow_describe(broker.bootstrap, broker.user, kind, "watched")
    keys = requests_sent(monkeypatch)
    caplog.set_level(1)
    with running_group(broker.bootstrap, "watched", {"a": ["watched"], "b": ["^watched"]}, **PROTOCOLS["kip-848"]):
        snapshot(broker.bootstrap)
        taken = snapshot(broker.sasl_bootstrap, config=sasl(broker))
    assert {row["group"] for row in taken.members} == {"watched"}

    making_a_connection = {17, 18, 36}  # SaslHandshake, ApiVersions, SaslAuthenticate
    assert set(keys) - making_a_connection == {request.API_KEY for request in READING} == {2, 3, 9, 10, 15, 16, 69}
    assert set(keys) & making_a_connection == making_a_connection
    said = caplog.text  # as it was when it was logged: kafka-python 3.1 cannot print what is closed
    assert "ListGroupsRequest" in said, "nothing was logged"
    assert broker.password not in said + repr(taken)

    from kafka.protocol.consumer import OffsetCommitRequest

    with closing(Brokers(broker.bootstrap, {}, 10.0)) as asked, pytest.raises(TypeError, match="OffsetCommitRequest"):
        asked.run(asked.ask(OffsetCommitRequest(), None))
    assert 8 not in keys


@pytest.mark.broker
def test_a_password_is_in_no_error(broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "\n".join(f"{name}={value}" for name, value in sasl(broker).items()).replace("reader-p", "secret-p")
    )
    words = ("snapshot", "--bootstrap-server", broker.sasl_bootstrap, "--out", tmp_path / "out", "--timeout", 2)
    done = evenlag_alone(*words, "--command-config", path)
    refused(done, "no Kafka broker answers at")
    assert re.search(WRONG_PASSWORD, done.stderr)
    assert "secret-p" not in done.stderr


@pytest.mark.broker
def test_tls_and_scram(broker: Broker, tmp_path: Path) -> None:
    create_topics(broker.bootstrap, {"sealed": 1})
    commit(broker.bootstrap, "sealed", {("sealed", 0): 0})
    add_scram_user(broker.bootstrap, "scram-reader", "scram-secret")
    for kind in (ResourceType.GROUP, ResourceType.TOPIC):
        allow_describe(broker.bootstrap, "scram-reader", kind, "sealed")
    path = tmp_path / "client.properties"
    login = {"security.protocol": "sasl_ssl", "sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "scram-reader"}
    secret = {"sasl.password": "scram-secret"}
    for trust in ({"ssl.ca.location": str(CERTIFICATE)}, {"enable.ssl.certificate.verification": "false"}):
        path.write_text("\n".join(f"{name} = {value}" for name, value in (login | secret | trust).items()))
        taken = snapshot(broker.tls_bootstrap, ["sealed"], config=read_client_config(path))
        assert [row["lag"] for row in taken.offsets] == [0]
    with pytest.raises(SourceError, match="certificate verify failed"):
        snapshot(broker.tls_bootstrap, timeout=1, config=login | secret)
    revoked = {"ssl.ca.location": str(CERTIFICATE), "ssl.crl.location": str(REVOKED)}
    with pytest.raises(SourceError, match="certificate revoked"):
        snapshot(broker.tls_bootstrap, timeout=1, config=login | secret | revoked)
    by_name = broker.tls_bootstrap.replace("127.0.0.1", "localhost")
    trusted = login | secret | {"ssl.ca.location": str(CERTIFICATE)}
    with pytest.raises(SourceError, match="certificate is not valid for 'localhost'"):
        snapshot(by_name, timeout=1, config=trusted)
    taken = snapshot(by_name, ["sealed"], config=trusted | {"ssl.endpoint.identification.algorithm": "none"})
    assert len(taken.offsets) == 1
    with pytest.raises(SourceError, match=r"no Kafka broker answers.*(invalid credentials|closed at login)"):
        snapshot(broker.tls_bootstrap, timeout=5, config=trusted | {"sasl.password": "wrong"})


@contextmanager
def token_endpoint() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """An endpoint that gives tokens without a signature to the client `reader`; its address, and what it was asked."""
    asked: list[tuple[str, str]] = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append((base64.b64decode(self.headers["Authorization"].split()[1]).decode(), form))
            if asked[-1][0] != "reader:s%2Fcret":
                self.send_error(401)
                return
            now = time.time()
            parts = {"alg": "none"}, {"sub": "token-reader", "iat": now, "exp": now + 300}
            token = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"access_token": token + ".", "expires_in": 300}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token", asked
        server.shutdown()
        thread.join()


@pytest.mark.broker
def test_tokens_of_an_endpoint(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    create_topics(broker.bootstrap, {"tokened": 1})
    commit(broker.bootstrap, "tokened", {("tokened", 0): 0})
    for kind in (ResourceType.GROUP, ResourceType.TOPIC):
        allow_describe(broker.bootstrap, "token-reader", kind, "tokened")
    caplog.set_level(1)
    with token_endpoint() as (url, asked):
        config = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": url,
            "sasl.oauthbearer.client.id": "reader",
            "sasl.oauthbearer.client.secret": "s/cret",
            "sasl.oauthbearer.scope": "kafka",
        }
        taken = snapshot(broker.oauth_bootstrap, ["tokened"], config=config)
        assert [row["lag"] for row in taken.offsets] == [0]
        assert asked == [("reader:s%2Fcret", "grant_type=client_credentials&scope=kafka")], (
            "one token for all connections"
        )
        wrong = config | {"sasl.oauthbearer.client.secret": "wr0ng-s"}
        with pytest.raises(
            SourceError, match=r"token endpoint http.*: HTTP 401 Unauthorized; check client id"
        ) as error:
            snapshot(broker.oauth_bootstrap, config=wrong)
    with pytest.raises(SourceError, match=r"token endpoint .*: returned no token: .*refused"):
        snapshot(broker.oauth_bootstrap, config=config)
    with pytest.raises(SourceError, match=r"token endpoint file:.*must begin with https"):
        snapshot(broker.oauth_bootstrap, config=config | {"sasl.oauthbearer.token.endpoint.url": "file:///etc/passwd"})
    del config["sasl.oauthbearer.client.id"]
    with pytest.raises(SourceError, match=r"'sasl\.oauthbearer\.client\.id' is missing"):
        snapshot(broker.oauth_bootstrap, config=config)
    said = caplog.text + str(error.value)
    assert "ListGroupsRequest" in said
    assert not any(secret in said for secret in ("s/cret", "s%2Fcret", "eyJ", "wr0ng-s"))


@pytest.mark.broker
@pytest.mark.parametrize("version", [(2, 3), (2, 8), (3, 0)])
def test_versions_of_the_protocol_that_older_brokers_have(
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


@pytest.mark.broker
@pytest.mark.parametrize("name", ["sticky", WEIGHTED])
def test_what_members_say_of_themselves(broker: Broker, name: str) -> None:
    create_topics(broker.bootstrap, {f"told-{name}": 4})
    with told_by_members(broker.bootstrap, f"told-{name}", f"told-{name}", name, weights=[3, 1]):
        taken = snapshot(broker.bootstrap, [f"told-{name}"])
    assert taken.warnings == []
    assert {row["assignor"] for row in taken.members} == {name}
    first = next(row for row in taken.members if row["client_id"] == "member-0")
    second = next(row for row in taken.members if row["client_id"] == "member-1")
    as_they_joined = [f"told-{name}-{partition}" for partition in range(4)], None
    owners = by_partition(taken, "consumer_id").items()
    for member, at_first in zip((first, second), as_they_joined, strict=True):
        mine = [f"{topic}-{partition}" for (topic, partition), owner in owners if owner == member["consumer_id"]]
        assert member["claimed"] in (at_first, mine), "what it had when it rejoined: on a busy machine they do so again"
    assert [first["weight"], second["weight"]] == ([3, 1] if name == WEIGHTED else [None, None])
    assert first["claimed_generation"] in ([None] if name == WEIGHTED else [1, 2, 3])


def altered(monkeypatch: pytest.MonkeyPatch, kind: str, alter: Callable[[int, Any], Any]) -> None:
    """Have `alter` make of each answer to requests of a kind, by number, what it likes."""
    from evenlag.live.cluster.brokers import Brokers

    ask, count = Brokers.ask, itertools.count()

    async def between(self: Brokers, request: Any, node: int | None) -> Any:
        answer = await ask(self, request, node)
        return alter(next(count), answer) if type(request).__name__ == kind else answer

    monkeypatch.setattr(Brokers, "ask", between)


@pytest.mark.broker
def test_a_request_that_fails_costs_its_groups_alone(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
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
    altered(monkeypatch, "OffsetFetchRequest", lambda n, answer: NO_TIME if n == 1 else answer)
    taken = snapshot(broker.bootstrap)
    assert taken.warnings == [
        f"group '{group}' is left out: no answer within the timeout; set a longer one" for group in groups[2:4]
    ]
    assert {row["group"] for row in taken.offsets} == {*groups[:2], *groups[4:]}


@pytest.mark.broker
def test_offsets_are_asked_of_the_new_leader(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    create_topics(broker.bootstrap, {"led": 2})
    produce(broker.bootstrap, "led", [3, 4])
    commit(broker.bootstrap, "led", {("led", 0): 0, ("led", 1): 0})

    def moved(number: int, answer: Any) -> Any:
        if number == 0:
            answer.topics[0].partitions[0].error_code = 6  # NOT_LEADER_FOR_PARTITION
        return answer

    altered(monkeypatch, "ListOffsetsRequest", moved)
    taken = snapshot(broker.bootstrap, ["led"])
    assert [row["lag"] for row in taken.offsets] == [3, 4]
    assert taken.warnings == []
    assert (taken.requests["Metadata"], taken.requests["ListOffsets"]) == (2, 4)


@pytest.mark.broker
def test_a_broker_that_hangs_costs_what_it_was_asked_for_alone(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
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
        told = cluster.log_offsets([("hung", 0), ("hung", 1)])
        assert told == {("hung", 0): (NO_TIME, NO_TIME), ("hung", 1): (0, 4)}
        assert time.monotonic() - started < 1.5


@pytest.mark.broker
@pytest.mark.parametrize(("error", "failures", "told"), [
    (errors.NodeNotReadyError, 5, None),  # as under a quota: it is waited for
    (errors.KafkaConnectionError, 2, None),
    (errors.KafkaConnectionError, 3, "KafkaConnectionError"),
    (errors.KafkaTimeoutError, 1, "REQUEST_TIMED_OUT"),
])  # fmt: skip
def test_requests_are_sent_again_while_that_may_help(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, error: type[Exception], failures: int, told: str | None
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
    assert (answer.name if isinstance(answer, Failure) else None) == told
    assert asked.requests["ListGroups"] == (told is None)


@pytest.mark.broker
def test_a_group_is_found_by_either_protocol(broker: Broker) -> None:
    from evenlag.live.cluster.client import Cluster

    create_topics(broker.bootstrap, {"either": 1})
    for group, config in (("either-classic", {}), ("either-consumer", PROTOCOLS["kip-848"])):
        with running_group(broker.bootstrap, group, {"app": ["either"]}, **config):
            with closing(Cluster(broker.bootstrap, {}, 10.0)) as cluster:
                found = [cluster.describe({group: protocol})[group] for protocol in ("classic", "consumer")]
                assert isinstance(cluster.describe({"absent": "classic"})["absent"], Failure)
            assert [each.protocol for each in found if isinstance(each, Description)] == [group.split("-")[1]] * 2


@pytest.mark.broker
@pytest.mark.slow
def test_two_thousand_groups_in_requests_by_the_hundred(broker: Broker) -> None:
    groups = [f"many-{number:04}" for number in range(2_000)]
    create_topics(broker.bootstrap, {"crowded": 10})
    produce(broker.bootstrap, "crowded", [100] * 10)
    commit_many(broker.bootstrap, {group: {("crowded", n % 10): n % 100} for n, group in enumerate(groups)})
    seen: dict[str, list[tuple[int, int]]] = defaultdict(list)
    taken = snapshot(broker.bootstrap, groups, timeout=120, progress=lambda what, *part: seen[what].append(part))
    assert taken.warnings == []
    assert [row["group"] for row in taken.offsets] == [group for group in groups for _ in range(10)]
    told = {(row["group"], row["partition"]): row["lag"] for row in taken.offsets if row["lag"] is not None}
    assert told == {(group, n % 10): 100 - n % 100 for n, group in enumerate(groups)}
    assert taken.requests == {
        "ListGroups": 1, "FindCoordinator": 20, "DescribeGroups": 20, "OffsetFetch": 20, "Metadata": 1, "ListOffsets": 2
    }  # fmt: skip
    assert seen["committed offsets"] == [(done, 2_000) for done in range(100, 2_001, 100)]


@pytest.mark.broker
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_snapshot_reads_back_as_it_was(broker: Broker, tmp_path: Path, suffix: str) -> None:
    create_topics(broker.bootstrap, {f"written-{suffix}": 3})
    with running_group(broker.bootstrap, f"written-{suffix}", {"app": [f"written-{suffix}"]}):
        taken = snapshot(broker.bootstrap, [f"written-{suffix}"])
    offsets, members = write_snapshot(taken, tmp_path / "new" / "folder", suffix)
    assert list(read_table(offsets, "offsets")) == taken.offsets
    assert list(read_table(members, "members")) == taken.members


def test_nobody_answers() -> None:
    with pytest.raises(
        SourceError, match=r"no Kafka broker answers at 127\.0\.0\.1:1 within 0\.5 s \(.*ECONNREFUSED\)"
    ):
        snapshot("127.0.0.1:1", timeout=0.5)


def test_nothing_can_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    from evenlag.live import kafka_python

    def refused(**_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(kafka_python, "NetworkSelector", refused)
    before = list(logging.getLogger("kafka.net.manager").filters)
    with pytest.raises(SourceError, match=r"127\.0\.0\.1:1 within 0\.5 s \(.*Too many open files\)"):
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
def test_arguments_that_make_no_sense(arguments: tuple[Any, ...], options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=re.escape(message)):
        snapshot(*arguments, **options)


def test_files_of_tls_that_cannot_be_used_are_named_and_nobody_is_asked_for_a_password() -> None:
    tls = {"security.protocol": "SSL", "ssl.certificate.location": str(CERTIFICATE)}
    locked = tls | {"ssl.key.location": str(LOCKED_KEY)}
    assert "ssl_context" in kafka_python_settings(locked | {"ssl.key.password": "locked"})
    hint = r"'ssl\.certificate\.location': .*ssl\.key\.password may be wrong"
    for config in (tls, locked, locked | {"ssl.key.password": "secret"}):
        with pytest.raises(SourceError, match=hint) as caught:
            kafka_python_settings(config)
        assert "secret" not in str(caught.value)
    for name in ("ssl.ca.location", "ssl.crl.location"):
        with pytest.raises(SourceError, match=f"'{name}': .* cannot be used"):
            kafka_python_settings({"security.protocol": "SSL", name: __file__})


def test_without_the_kafka_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kafka", None)
    with pytest.raises(SourceError, match=r"in a clone of evenlag: pip install '\.\[kafka\]'"):
        snapshot("127.0.0.1:1")


class ScriptedCluster:
    """Answers with the next of some descriptions of one group at each look; all its partitions have a commit."""

    requests: Mapping[str, int] = {}

    def __init__(self, *descriptions: Description | Failure, commits: Commits | Failure | None = None):
        self.descriptions = list(descriptions)
        self.commits = commits

    def close(self) -> None:
        pass

    def groups(self) -> tuple[dict[str, str], list[Failure]]:
        return {"g": "classic"}, [Failure("KafkaConnectionError", "broker 2 is down")]

    def partitions(self, topics: Collection[str]) -> Layout:
        return {topic: {number: () for name, number in self._known() if name == topic} for topic in topics}

    def log_offsets(self, partitions: Collection[tuple[str, int]]) -> LogOffsets:
        return dict.fromkeys(partitions, (0, 9))

    def describe(self, groups: Mapping[str, str]) -> dict[str, Description | Failure]:
        return dict.fromkeys(groups, self.descriptions.pop(0) if len(self.descriptions) > 1 else self.descriptions[0])

    def committed(self, groups: Iterable[str]) -> dict[str, Commits | Failure]:
        return dict.fromkeys(groups, self.commits or Commits())

    def _known(self) -> Iterable[tuple[str, int]]:
        return self.commits.offsets if isinstance(self.commits, Commits) else ()


def scripted(monkeypatch: pytest.MonkeyPatch, *descriptions: Description | Failure, **options: Any) -> Snapshot:
    cluster = ScriptedCluster(*descriptions, **options)
    monkeypatch.setattr(capture, "_client", lambda: lambda *_: cluster)
    monkeypatch.setattr(capture, "SETTLE_PAUSE", 0.01)
    taken = snapshot("somewhere", timeout=0.2)
    assert taken.warnings[0] == "groups of a broker may be missing: broker 2 is down"
    return taken


def test_passing_states_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    member = MemberState("m1", "app", "/10.0.0.1", None, ())
    taken = scripted(
        monkeypatch,
        Failure("NOT_COORDINATOR", "moved"),
        Description("Reconciling"),
        Description("PreparingRebalance"),
        Description("Stable", (member,)),
    )
    assert [row["consumer_id"] for row in taken.members] == ["m1"]
    assert len(taken.warnings) == 1


def test_a_group_that_never_settles_is_taken_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = scripted(monkeypatch, Description("CompletingRebalance", (MemberState("m1", "app", None, None, ()),)))
    assert [row["consumer_id"] for row in taken.members] == ["m1"]
    assert "group 'g' is still rebalancing (CompletingRebalance)" in taken.warnings[1]


def test_groups_that_fail_do_not_take_the_others_along(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = Failure("GROUP_AUTHORIZATION_FAILED", "Group authorization failed")
    assert "group 'g' is left out: Group authorization failed (the user" in scripted(monkeypatch, failure).warnings[1]
    taken = scripted(monkeypatch, Description("Empty"), commits=failure)
    assert "group 'g' is left out: Group authorization failed" in taken.warnings[1]
    assert len(scripted(monkeypatch, Description("Dead")).warnings) == 1
    taken = scripted(monkeypatch, Description("Empty"))
    assert taken.warnings[1] == "groups without members or committed offsets that this user may see: g"


def test_partitions_on_the_way_to_a_member_count_as_the_groups() -> None:
    member = MemberState("m", None, None, None, partitions=(("a", 0),), target=(("a", 0), ("b", 1)))
    group = Group("g", Description("Reconciling", (member,)), Commits({("c", 9): 4}))
    two = {0: (), 1: ()}
    partitions, warnings = partitions_of(group, {}, {"a": two, "b": two, "c": {0: ()}})
    assert partitions == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0)]
    assert warnings == ["group 'g', topic c: partitions 9 no longer exist; left out"]


def test_offsets_that_a_broker_does_not_tell_stay_null() -> None:
    group = Group("g", Description("Empty"), Commits({("a", 0): 9, ("a", 1): Failure("X", "no commit"), ("a", 2): 1}))
    lost = Failure("NOT_LEADER", "no leader")
    log: LogOffsets = {("a", 0): (0, 7), ("a", 1): (0, 7), ("a", 2): (lost, lost)}
    layout: Layout = {"a": {0: ("r1", "r2"), 1: (), 2: ("", "r2")}}
    rows, warnings = offset_rows(NOW, group, sorted(log), layout, log)
    assert [row["replica_racks"] for row in rows] == [["r1", "r2"], None, ["", "r2"]]
    assert [row["lag"] for row in rows] == [0, None, None]  # a commit beyond the end is no negative lag
    assert [row["log_end_offset"] for row in rows] == [7, 7, None]
    assert warnings == [
        "group 'g', topic a: offsets of partitions 1 left null: no commit",
        "group 'g', topic a: offsets of partitions 2 left null: no leader",
    ]


def test_racks_begin_with_the_leaders_even_if_it_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    rack_of = {1: "r1", 2: "r2", 3: None, 4: ""}
    replicas = {0: [1, 2], 1: [3, 2, 1], 2: [2, 3, 1], 3: [4, 3], 4: [2, 1, 2]}
    told = SimpleNamespace(
        brokers=[SimpleNamespace(node_id=node, rack=rack) for node, rack in rack_of.items()],
        topics=[SimpleNamespace(name="a", error_code=0, partitions=[
            SimpleNamespace(partition_index=p, replica_nodes=nodes, leader_id=nodes[0]) for p, nodes in replicas.items()
        ])],
    )  # fmt: skip
    monkeypatch.setattr("evenlag.live.cluster.client.Brokers", lambda *_: mock.Mock(run=lambda _: told))
    assert Cluster("", {}, 1.0).partitions(["a"]) == {
        "a": {0: ("r1", "r2"), 1: ("", "r2", "r1"), 2: ("r2", "r1"), 3: (), 4: ("r2", "r1")}
    }


@pytest.mark.broker
@pytest.mark.slow
def test_a_leader_on_a_broker_without_a_rack_is_not_where_its_followers_are(tmp_path: Path) -> None:
    with running_cluster(["zone-a", ""]) as bootstrap:
        create_topics(bootstrap, {"t": [[2, 1], [1, 2]], "u": [[2]]})
        produce(bootstrap, "t", [30, 20])
        with running_group(bootstrap, "g", {"c": ["t", "u"]}, {"c": {"client.rack": "zone-b"}}):
            taken = snapshot(bootstrap, ["g"])
    assert by_partition(taken, "replica_racks") == {("t", 0): ["", "zone-a"], ("t", 1): ["zone-a"], ("u", 0): None}
    files = [str(path) for path in write_snapshot(taken, tmp_path)]
    words = ("plan", files[0], "--members", files[1], "--auto-offset-reset", "earliest", "--json")
    read = {place: json.loads(evenlag(*words, "--fetch-from", place).stdout) for place in ("leader", "followers")}
    assert {place: plan["costs"]["crossings"] for place, plan in read.items()} == {"leader": 1, "followers": 2}
    (note,) = [note for note in read["leader"]["warnings"] if "rack" in note]
    assert note.startswith("the leader's rack is unknown for 2 partitions of 3")


def test_the_members_of_a_followed_group_are_those_that_its_commits_name(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {
        ("a", 0): Ownership(7, "c2", "5f3a", 12, "zone-a").encode() + "\0",  # as confluent-kafka commits it
        ("a", 1): Ownership(8, "c1").encode(),  # handed to it, and not taken yet
        ("a", 2): Ownership(8, None).encode(),  # given up
        ("b", 0): Ownership(8, "c1", "77aa", 3).encode(),
        ("b", 1): '{"evenlag": 3}',
        ("old", 0): "offsets of before",
    }
    commits = Commits(dict.fromkeys([*told, ("old", 1)], 5), told)
    taken = scripted(monkeypatch, Description("Empty", protocol="classic"), commits=commits)
    owners = {(row["topic"], row["partition"]): (row["consumer_id"], row["client_id"]) for row in taken.offsets}
    nobody = (None, None)
    assert owners == {
        ("a", 0): ("c2", "c2"), ("a", 1): ("c1", "c1"), ("a", 2): nobody, ("b", 0): ("c1", "c1"), ("b", 1): nobody,
        ("old", 0): nobody, ("old", 1): nobody,
    }  # fmt: skip
    columns = ("consumer_id", "client_id", "topics", "protocol", "group_epoch", "generation", "rack")
    assert [[row[name] for name in columns] for row in taken.members] == [
        [name, name, ["a", "b"], "follow", 8, None, rack] for name, rack in (("c1", None), ("c2", "zone-a"))
    ]
    (unread,) = taken.warnings[1:]
    assert unread.startswith("group 'g': the owners of b-1 cannot be read: metadata of version 3, not 1 or 2: ")


def test_followers_that_have_all_stopped_are_no_members(monkeypatch: pytest.MonkeyPatch) -> None:
    commits = Commits({("a", 0): 5}, {("a", 0): Ownership(8, None).encode()})
    taken = scripted(monkeypatch, Description("Empty"), commits=commits)
    assert (taken.members, [row["consumer_id"] for row in taken.offsets]) == ([], [None])
    assert taken.warnings[1:] == ["group 'g' follows a plan, but all its consumers have stopped: it has no members"]


def test_a_group_that_subscribes_has_the_members_that_kafka_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    member = MemberState("m1", "app", "/10.0.0.1", None, (("a", 0),), subscription=Subscription(("a",)))
    described = Description("Stable", (member,), "classic", "range")
    commits = Commits({("a", 0): 5, ("a", 1): 5}, {("a", 1): Ownership(8, "c1", "5f3a", 1).encode()})
    taken = scripted(monkeypatch, described, commits=commits)
    assert [(row["consumer_id"], row["protocol"]) for row in taken.members] == [("m1", "classic")]
    assert [row["consumer_id"] for row in taken.offsets] == ["m1", None]


def test_client_config(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "# comment\n! comment\n\nsecurity.protocol=SASL_SSL\n sasl.password = a=b#c \nssl.ca.location: /ca\n"
    )
    assert read_client_config(path) == {
        "security.protocol": "SASL_SSL",
        "sasl.password": "a=b#c",
        "ssl.ca.location": "/ca",
    }
    path.write_text("a=1\nsecret\n")
    with pytest.raises(SourceError, match=r"client\.properties, line 2: not a property") as caught:
        read_client_config(path)
    assert "secret" not in str(caught.value)
    with pytest.raises(SourceError, match=r"absent: cannot be read: No such file"):
        read_client_config(tmp_path / "absent")
