"""Every command on a cluster names an address at which no broker answers, in one line, with status 1."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from evenlag.cli import options
from evenlag.errors import SourceError
from evenlag.live import followed_plan, kafka_python, snapshot
from evenlag.spark.driver import error_lines
from tests.support.command import evenlag, refused

GROUP = ("{address}", "--group", "g", "--timeout", "0.5")
COMMANDS = {
    **{name: (name, *GROUP) for name in ("plan", "diagnose", "audit", "explain", "frontier", "check", "migrate")},
    "whatif": ("whatif", *GROUP, "--change-members", "+1"),
    "size": ("size", *GROUP, "--drain", "15m", "--capacity", "5"),
    "report": ("report", *GROUP, "--out", "{folder}/page.html"),
    "export": ("export", *GROUP, "--format", "lp", "--out", "{folder}/model.lp"),
    "watch": ("watch", *GROUP, "--once"),
    "snapshot": ("snapshot", "--bootstrap-server", "{servers}", "--timeout", "0.5", "--out", "{folder}/taken"),
    "publish": ("publish", "{folder}/plan.json", "{address}/plans"),
    "history": ("history", "{address}", "--out", "{folder}/past"),
    "stream": ("stream", "{address}", "--from-commits", "--once", "--out", "{folder}/out"),
    "rows": ("stream", "{address}/rows", "--once", "--out", "{folder}/out"),
    "fleet": ("fleet", "audit", "{address}/rows", "--out", "{folder}/out"),
}


@pytest.fixture(params=["refusing", "unknown"])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield an address without a broker."""
    if request.param == "unknown":
        yield "nohost.invalid:9092"
        return
    with socket.socket() as bound:  # nobody listens
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """Yield an address that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def failed(name: str, servers: str, folder: Path, without: tuple[str, ...] = ()) -> str:
    """Return the only line that a command prints about the address; it runs `without` some words."""
    (folder / "plan.json").write_text(json.dumps({"group": "g", "assignment": {"c1": [["t", 0]]}}))
    address = f"kafka://{servers}"
    words = [word for word in COMMANDS[name] if word not in without]
    done = evenlag(*(word.format(address=address, servers=servers, folder=folder) for word in words))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done
    assert f"no Kafka broker answers at {servers}" in done.stderr
    assert "; check the address, and security.protocol and its properties" in done.stderr
    return done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_an_address_without_a_broker_is_named(
    name: str, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_python, "PATIENCE", 0.1)
    monkeypatch.setattr(followed_plan, "ANSWER_LIMIT", 3_600.0)  # nobody waits for it
    reason = "refused" if servers.startswith("127") else "unknown host|Failed to resolve"
    line = failed(name, servers, tmp_path)
    assert any(words in line for words in reason.split("|")), line
    assert " within " not in line


@pytest.mark.parametrize("name", COMMANDS)
def test_a_port_that_never_answers_is_named(
    name: str, silent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_plan, "ANSWER_LIMIT", 0.5)
    monkeypatch.setattr(options, "FIRST_ANSWER", 0.5)
    line = failed(name, silent, tmp_path)
    assert f" within {1.5 if name == 'publish' else 0.5} s (no answer); " in line


@pytest.mark.parametrize("name", ["check", "migrate", "watch"])
def test_only_a_given_limit_makes_a_command_wait_longer_for_the_first_answer(
    name: str, silent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "FIRST_ANSWER", 0.1)
    assert " within 0.1 s (no answer); " in failed(name, silent, tmp_path, without=("--timeout", "0.5"))
    assert " within 0.5 s (no answer); " in failed(name, silent, tmp_path)


@pytest.mark.slow
def test_addresses_that_never_answer_share_the_time(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one gets as much as the first."""
    asked: list[float] = []
    wait = kafka_python.Connections.wait_for

    async def noted(self: kafka_python.Connections, future: Any, seconds: float) -> Any:
        asked.append(seconds)
        return await wait(self, future, seconds)

    monkeypatch.setattr(kafka_python.Connections, "wait_for", noted)
    with pytest.raises(SourceError, match=r"within 0\.6 s \(no answer\)"):
        snapshot(f"{silent},{silent.replace('127.0.0.1', 'localhost')}", timeout=0.6)
    assert len(asked) == 2
    assert asked[0] <= 0.3


@pytest.mark.slow
def test_a_login_that_only_java_can_use_is_left_to_spark(
    silent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's own check, before it starts, finds a broker that does not answer whatever the login is."""
    monkeypatch.setattr(error_lines, "ANSWER_LIMIT", 0.2)
    monkeypatch.setattr("evenlag.live.partitions_of_topics", lambda *_, **__: pytest.fail("evenlag asked the brokers"))
    words = ("stream", f"kafka://{silent}/rows", "--once", "--out", tmp_path, "--option")
    for option in ("kafka.ssl.truststore.location=store.jks", "kafka.sasl.mechanism=AWS_MSK_IAM"):
        for protocol in ("SASL_PLAINTEXT", "SSL"):
            done = evenlag(*words, option, "--option", f"kafka.security.protocol={protocol}")
            refused(done, f"kafka://{silent}/rows: no Kafka broker answers at {silent} ({silent}: ")
            assert "timed out" in done.stderr


def test_evenlag_logs_in_as_the_options_of_spark_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login may be in the file, in the options, or in both; options that only Spark has do not matter."""
    asked: list[dict[str, str]] = []

    def ask(*_: object, config: dict[str, str], **__: object) -> NoReturn:
        asked.append(config)
        raise SourceError("no broker here")

    monkeypatch.setattr("evenlag.live.partitions_of_topics", ask)
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n")
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    options = (f"kafka.sasl.jaas.config={jaas}", "kafka.max.poll.records=5", "startingOffsets=latest")
    more = ("--command-config", path, *(word for option in options for word in ("--option", option)))
    for words in (("history",), ("stream", "--from-commits"), ("stream",), ("fleet", "audit")):
        refused(evenlag(*words, "kafka://h:9092/rows", "--out", tmp_path / "out", *more), "no broker here")
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    assert asked == [login] * 4
