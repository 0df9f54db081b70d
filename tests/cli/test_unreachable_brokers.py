"""Every command on a cluster names an address at which no broker answers, in one line, with status 1."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenlag.live import followed_plan, kafka_python
from tests.support.command import evenlag

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


def failed(name: str, servers: str, folder: Path) -> str:
    """Return the only line that a command prints about the address."""
    (folder / "plan.json").write_text(json.dumps({"group": "g", "assignment": {"c1": [["t", 0]]}}))
    address = f"kafka://{servers}"
    done = evenlag(*(word.format(address=address, servers=servers, folder=folder) for word in COMMANDS[name]))
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


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"history", "stream"}))  # these wait ten seconds
def test_a_port_that_never_answers_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_plan, "ANSWER_LIMIT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        line = failed(name, f"127.0.0.1:{silent.getsockname()[1]}", tmp_path)
    assert "s (no answer); " in line
