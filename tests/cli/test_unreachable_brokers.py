"""Every command on a cluster names an address at which no broker answers, in one line, with status 1."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenlag.cli import options
from evenlag.errors import SourceError
from evenlag.live import check_login, followed_plan, kafka_python
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


def test_addresses_that_never_answer_share_the_time(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one gets as much as the first."""
    asked: list[float] = []
    wait = kafka_python.Connections.wait_for

    async def noted(self: kafka_python.Connections, future: Any, seconds: float) -> Any:
        asked.append(seconds)
        return await wait(self, future, seconds)

    monkeypatch.setattr(kafka_python.Connections, "wait_for", noted)
    with pytest.raises(SourceError, match=r"within 0\.6 s \(no answer\)"):
        check_login(f"{silent},{silent.replace('127.0.0.1', 'localhost')}", timeout=0.6, config={})
    assert len(asked) == 2
    assert asked[0] <= 0.3


def test_brokers_are_not_asked_first_if_options_complete_the_login(servers: str, tmp_path: Path) -> None:
    """Only Spark knows these options."""
    words = ("stream", f"kafka://{servers}/rows", "--once", "--out", tmp_path, "--option", "kafka.client.id=x")
    refused(evenlag(*words), "no broker accepts a connection")
