"""Logins and permissions: passwords, TLS and tokens; no secret is printed or logged."""

import base64
import json
import re
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from confluent_kafka.admin import ResourceType

from evenlag.errors import SourceError
from evenlag.live import read_client_config, snapshot
from evenlag.live.cluster.client_config import kafka_python_settings
from evenlag.live.follow import PlanTopic
from tests.support.broker import CERTIFICATE, LOCKED_KEY, REVOKED, Broker, sasl
from tests.support.command import evenlag as run
from tests.support.command import evenlag_alone, refused
from tests.support.snapshots import by_partition
from tests.support.traffic import (
    add_scram_user,
    allow_describe,
    commit,
    create_topics,
    produce,
    running_group,
)

WRONG_PASSWORD = r"\(Authentication failed: Invalid username or password|\(the broker closes the connection\)"


@pytest.mark.broker
def test_a_snapshot_leaves_out_what_the_user_may_not_describe(broker: Broker, tmp_path: Path) -> None:
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
        login = tmp_path / "client.properties"
        login.write_text("\n".join(f"{name}={value}" for name, value in sasl(broker).items()))
        words = ("snapshot", "--bootstrap-server", broker.sasl_bootstrap, "--group", "guarded", "--out", tmp_path)
        assert run(*words, "--command-config", login).returncode == 1
        (warning,) = taken.warnings
        assert "topic secret: offsets of partitions 0, 1 left null" in warning
        assert "the ACL Describe on the topic" in warning

        allow_describe(broker.bootstrap, broker.user, ResourceType.TOPIC, "secret")
        taken = snapshot(broker.sasl_bootstrap, ["guarded"], config=sasl(broker))
        assert by_partition(taken, "log_end_offset") == {("secret", 0): 3, ("secret", 1): 3}
        assert taken.warnings == []
        assert run(*words, "--command-config", login).returncode == 0


@pytest.mark.broker
def test_a_wrong_password_or_protocol_is_named(broker: Broker) -> None:
    with pytest.raises(SourceError, match=rf"the login fails at \S+ ({WRONG_PASSWORD}).*sasl\.password"):
        snapshot(broker.sasl_bootstrap, timeout=2, config=sasl(broker) | {"sasl.password": "wrong"})
    with pytest.raises(SourceError, match=r"no Kafka broker answers .*check .* security\.protocol"):
        snapshot(broker.sasl_bootstrap, timeout=2)


COMMANDS = (
    ("plan",), ("diagnose",), ("audit",), ("explain",), ("frontier",), ("size", "--drain", "15m", "--capacity", "5"),
    ("whatif", "--change-members", "+1"), ("report",), ("check",), ("migrate",),
    ("watch", "--once"),
)  # fmt: skip
WHOLE = ("check", "migrate", "watch")  # commands that list the groups first


@pytest.mark.broker
def test_every_command_names_a_login_a_group_or_a_permission_that_is_missing(broker: Broker, tmp_path: Path) -> None:
    create_topics(broker.bootstrap, {"named": 2})
    produce(broker.bootstrap, "named", [3, 3])
    login, wrong = tmp_path / "client.properties", tmp_path / "wrong.properties"
    login.write_text("\n".join(f"{name}={value}" for name, value in sasl(broker).items()))
    wrong.write_text(login.read_text().replace("reader-p", "secret-p"))
    secured = f"kafka://{broker.sasl_bootstrap}"

    def told(words: tuple[str, ...], source: str, group: str, *more: object) -> str:
        out = ["--out", tmp_path / "report.html"] if words[0] == "report" else []
        done = run(words[0], source, "--group", group, *words[1:], *out, *more)
        assert done.returncode == 1, done
        return done.stdout + done.stderr

    with running_group(broker.bootstrap, "named", {"app": ["named"]}):
        for words in COMMANDS:
            assert re.search(
                rf"the login fails at \S+ ({WRONG_PASSWORD})", told(words, secured, "named", "--command-config", wrong)
            ), words
            hidden = told(words, secured, "named", "--command-config", login)
            assert "the ACL Describe on " in hidden, words
            assert "named" in told(words, f"kafka://{broker.bootstrap}", "nmaed"), words
            if words[0] not in WHOLE:
                disconnected = told(words, secured, "named")
                assert re.search(r"no Kafka broker answers at \S+ \(the broker closes the connection", disconnected)
        allow_describe(broker.bootstrap, broker.user, ResourceType.GROUP, "named")
        for words in COMMANDS:
            text = told(words, secured, "named", "--command-config", login)
            assert "TOPIC_AUTHORIZATION_FAILED" in text, words
            assert "(the user needs the ACL Describe on the topic)" in text, words


@pytest.mark.broker
def test_check_watch_and_migrate_say_what_they_cannot_see(broker: Broker, tmp_path: Path) -> None:
    create_topics(broker.bootstrap, {"unseen": 2})
    produce(broker.bootstrap, "unseen", [3, 3])
    login = tmp_path / "client.properties"
    settings = sasl(broker) | {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
    settings |= {"sasl.username": "blind", "sasl.password": "blind-secret", "ssl.ca.location": str(CERTIFICATE)}
    login.write_text("\n".join(f"{name}={value}" for name, value in settings.items()))
    add_scram_user(broker.bootstrap, "blind", "blind-secret")

    def told(*words: str) -> str:
        done = run(words[0], f"kafka://{broker.tls_bootstrap}", *words[1:], "--command-config", login)
        assert done.returncode == 1, done
        return done.stdout + done.stderr

    commands = (("check",), ("watch", "--once"), ("migrate",))
    with running_group(broker.bootstrap, "unseen", {"a": ["unseen"], "b": ["unseen"]}, group_protocol="consumer"):
        for words in commands:
            assert "*: " in (text := told(*words)), words
            assert "the input has no group; a cluster shows a group only to users with the ACL Describe on it" in text
            assert "unseen: " in told(*words, "--group", "unseen"), words
        allow_describe(broker.bootstrap, "blind", ResourceType.GROUP, "unseen")
        for words in commands:
            for more in ((), ("--group", "unseen")):
                text = told(*words, *more)
                assert "unseen" in text, words
                assert "(the user needs the ACL Describe on the topic)" in text, words
            assert "other: no group of the input matches" in told(*words, "--group", "other").replace("failed: ", "")
        assert 'evenlag_group_failed{group="unseen"} 1.0' in told("watch", "--once")
        assert "evenlag_groups_without_figures 1.0" in told("watch", "--once", "--group", "other")
        allow_describe(broker.bootstrap, "blind", ResourceType.TOPIC, "unseen")
        for words in commands:
            done = run(words[0], f"kafka://{broker.tls_bootstrap}", *words[1:], "--command-config", login)
            assert done.returncode == 0, done


@pytest.mark.broker
def test_publish_names_a_wrong_password_and_a_missing_acl(broker: Broker, tmp_path: Path) -> None:
    create_topics(broker.bootstrap, {"login-plans": 1})
    plan, wrong = tmp_path / "plan.json", tmp_path / "wrong.properties"
    plan.write_text(json.dumps({"group": "g", "assignment": {"c1": [["t", 0]]}}))
    login = sasl(broker) | {"sasl.password": "secret-word"}
    wrong.write_text("\n".join(f"{name}={value}" for name, value in login.items()))
    done = run("publish", plan, f"kafka://{broker.sasl_bootstrap}/login-plans", "--command-config", wrong)
    refused(done, f"topic login-plans: the login fails at {broker.sasl_bootstrap} (")
    assert "check sasl.mechanism, sasl.username and sasl.password" in done.stderr
    assert "secret-word" not in done.stderr
    right = tmp_path / "right.properties"
    right.write_text("\n".join(f"{name}={value}" for name, value in sasl(broker).items()))
    acls = (
        (r"Describe on the topic\); check its name", ResourceType.TOPIC, "login-plans"),
        (r"(Describe on the group 'g'|Read on the topic)\)", ResourceType.GROUP, "g"),  # whichever is answered first
    )
    for acl, kind, name in (*acls, (r"Read on the topic\)", None, "")):
        done = run("publish", plan, f"kafka://{broker.sasl_bootstrap}/login-plans", "--command-config", right)
        refused(done, "uthorization failed (the user needs the ACL ")
        assert re.search(rf"the ACL {acl}", done.stderr), done
        if kind is not None:
            allow_describe(broker.bootstrap, broker.user, kind, name)
    heard: list[object] = []
    config = login | {"bootstrap.servers": broker.sasl_bootstrap, "log_level": 0, "error_cb": heard.append}
    (error,) = PlanTopic("login-plans", config, "g").news()
    assert "the login fails at" in str(error)
    assert heard


def requests_sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that collects the API key of every request that kafka-python sends from now on."""
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
def test_spark_does_not_start_for_a_topic_behind_a_wrong_password(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr("evenlag.spark.driver.kafka.session_for", lambda *_, **__: pytest.fail("Spark was started"))
    wrong = tmp_path / "wrong.properties"
    wrong.write_text("\n".join(f"{n}={v}" for n, v in (sasl(broker) | {"sasl.password": "secret-word"}).items()))
    for words in (("stream",), ("fleet", "audit"), ("fleet", "replay")):
        out = [] if "replay" in words else ["--out", tmp_path / "out"]
        done = run(*words, f"kafka://{broker.sasl_bootstrap}/rows", *out, "--command-config", wrong)
        refused(done, f"the login fails at {broker.sasl_bootstrap} (")


@pytest.mark.broker
def test_a_broker_answers_before_spark_starts_whatever_its_protocol(broker: Broker) -> None:
    kafka = pytest.importorskip("evenlag.spark.driver.kafka")
    protocols = {
        "PLAINTEXT": broker.bootstrap,
        "SASL_PLAINTEXT": broker.sasl_bootstrap,
        "SASL_SSL": broker.tls_bootstrap,
    }
    for protocol, servers in protocols.items():
        options = kafka.topic_options(f"kafka://{servers}/t", {"kafka.security.protocol": protocol})
        assert options["kafka.bootstrap.servers"] == servers
    with pytest.raises(SourceError, match=r"no Kafka broker answers at .*(without TLS|reset by peer)"):
        kafka.topic_options(f"kafka://{broker.tls_bootstrap}/t")


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
    with running_group(broker.bootstrap, "watched", {"a": ["watched"], "b": ["^watched"]}, group_protocol="consumer"):
        snapshot(broker.bootstrap)
        taken = snapshot(broker.sasl_bootstrap, config=sasl(broker))
    assert {row["group"] for row in taken.members} == {"watched"}

    making_a_connection = {17, 18, 36}  # SaslHandshake, ApiVersions, SaslAuthenticate
    assert set(keys) - making_a_connection == {request.API_KEY for request in READING} == {2, 3, 9, 10, 15, 16, 69}
    assert set(keys) & making_a_connection == making_a_connection
    log = caplog.text  # as it was when it was logged: kafka-python 3.1 cannot print what is closed
    assert "ListGroupsRequest" in log, "nothing was logged"
    assert broker.password not in log + repr(taken)

    from kafka.protocol.consumer import OffsetCommitRequest

    with closing(Brokers(broker.bootstrap, {}, 10.0)) as asked, pytest.raises(TypeError, match="OffsetCommitRequest"):
        asked.run(asked.ask(OffsetCommitRequest(), None))
    assert 8 not in keys


@pytest.mark.broker
def test_a_login_at_a_port_without_logins_is_refused_at_once(broker: Broker) -> None:
    """The broker answers that it expects no SASL; to try again until the limit would not help."""
    from evenlag.live.cluster.brokers import Brokers

    with pytest.raises(SourceError, match=r"at 127\.0\.0\.1:\d+ \(the port takes no SASL login\); check"):
        Brokers(broker.bootstrap, sasl(broker), 60.0)


@pytest.mark.broker
def test_a_password_is_in_no_error(broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "\n".join(f"{name}={value}" for name, value in sasl(broker).items()).replace("reader-p", "secret-p")
    )
    words = ("snapshot", "--bootstrap-server", broker.sasl_bootstrap, "--out", tmp_path / "out", "--timeout", 2)
    done = evenlag_alone(*words, "--command-config", path)
    refused(done, "the login fails at")
    assert re.search(WRONG_PASSWORD, done.stderr)
    assert "secret-p" not in done.stderr


@pytest.mark.broker
def test_tls_and_scram_log_in_and_verify_the_broker(broker: Broker, tmp_path: Path) -> None:
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
    with pytest.raises(SourceError, match=r"the login fails at.*(invalid credentials|closes the connection)"):
        snapshot(broker.tls_bootstrap, timeout=5, config=trusted | {"sasl.password": "wrong"})


@contextmanager
def token_endpoint() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Serve unsigned tokens to the client `reader`; the body gets the address and the requests received."""
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
def test_tokens_of_an_endpoint_log_in(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
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
    log = caplog.text + str(error.value)
    assert "ListGroupsRequest" in log
    assert not any(secret in log for secret in ("s/cret", "s%2Fcret", "eyJ", "wr0ng-s"))


def test_unusable_tls_files_are_named_without_prompting_for_a_password() -> None:
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
