"""Commands that ask brokers, in each trouble with them; `pytest -s` prints seconds, exit status and the last line."""

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import ResourceType

from tests.support.broker import Broker, sasl
from tests.support.command import evenlag_alone
from tests.support.traffic import allow_describe, create_topics, produce, running_group

pytestmark = [pytest.mark.slow, pytest.mark.long]

LOGIN = ("--command-config", "{login}")
GROUP = ("kafka://{servers}", "--group", "{name}", *LOGIN)
TOPIC = ("kafka://{servers}/{name}", *LOGIN)
OUT = ("--out", "{folder}/out")
OF_GROUPS = {
    "snapshot": ("snapshot", "--bootstrap-server", "{servers}", *GROUP[1:], *OUT),
    "check": ("check", *GROUP),
    "watch": ("watch", *GROUP, "--once"),
    "migrate": ("migrate", *GROUP),
}
OF_TOPICS = {
    "history": ("history", *TOPIC, *OUT),
    "stream --from-commits": ("stream", *TOPIC, *OUT, "--from-commits", "--once"),
    "stream": ("stream", *TOPIC, *OUT, "--once"),
    "fleet": ("fleet", "audit", *TOPIC, *OUT),
}
COMMANDS = OF_GROUPS | OF_TOPICS | {"publish": ("publish", "{folder}/plan.json", *TOPIC)}
# Groups that the user may see in part, each with a topic of its name.
HIDDEN, TOPICLESS, UNREADABLE, ABSENT = "troubled-group", "troubled-topic", "troubled-reading", "troubled-absent"
TROUBLES = {
    "refused": (HIDDEN, "no Kafka broker answers at {servers} "),
    "silent": (HIDDEN, "no Kafka broker answers at {servers} within "),
    "password": (HIDDEN, "the login fails at {servers} "),
    "no ACL on the group": (HIDDEN, f"{HIDDEN}.*the ACL "),
    "no ACL on the topic": (TOPICLESS, f"topic {TOPICLESS}.*the ACL Describe on the topic"),
    "no ACL to read": (UNREADABLE, f"{UNREADABLE}.*the user needs the ACL"),
    "no such name": (ABSENT, f"{ABSENT}.*(did you mean|name|create it)"),
}
"""The name of the group and the topic of each trouble, and a pattern of the last line."""
NEEDLESS = {"no ACL on the group": OF_TOPICS, "no ACL to read": OF_GROUPS}
"""Commands that do not need the right."""
CASES = [(command, trouble) for command in COMMANDS for trouble in TROUBLES if command not in NEEDLESS.get(trouble, ())]


@pytest.fixture(scope="module")
def groups(broker: Broker) -> Iterator[None]:
    """Run the groups, and let the user see them in part."""
    topics, seen = (HIDDEN, TOPICLESS, UNREADABLE), (TOPICLESS, UNREADABLE)
    create_topics(broker.bootstrap, dict.fromkeys(topics, 1))
    for topic in topics:
        produce(broker.bootstrap, topic, [3])
    for kind, names in ((ResourceType.TOPIC, (HIDDEN, UNREADABLE)), (ResourceType.GROUP, seen)):
        for name in names:
            allow_describe(broker.bootstrap, broker.user, kind, name)
    hidden = running_group(broker.bootstrap, HIDDEN, {"a": [HIDDEN]})
    with hidden, running_group(broker.bootstrap, TOPICLESS, {"a": [TOPICLESS]}):
        yield


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize(("command", "trouble"), CASES)
def test_a_command_in_trouble_ends_with_one_line_and_status_1(
    command: str, trouble: str, broker: Broker, tmp_path: Path
) -> None:
    name, expected = TROUBLES[trouble]
    config = sasl(broker) if trouble != "no such name" else {}
    if trouble == "password":
        config["sasl.password"] = "secret-word"
    (tmp_path / "login").write_text("\n".join(f"{key}={value}" for key, value in config.items()))
    (tmp_path / "plan.json").write_text(json.dumps({"group": name, "assignment": {"a": [[name, 0]]}}))
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        if trouble in ("refused", "silent"):
            servers = f"127.0.0.1:{port.getsockname()[1]}"
        else:
            servers = broker.sasl_bootstrap if config else broker.bootstrap
        if trouble == "silent":
            port.listen()
        place = {"servers": servers, "name": name, "login": tmp_path / "login", "folder": tmp_path}
        began = time.monotonic()
        done = evenlag_alone(*(word.format(**place) for word in COMMANDS[command]))
        seconds = time.monotonic() - began
    line = (done.stderr or done.stdout).splitlines()[-1]
    print(f"\n{command} | {trouble} | {seconds:.0f} | {done.returncode} | {line}")
    assert done.returncode == 1, done
    assert re.search(expected.format(servers=servers), line)
    assert "Traceback" not in done.stderr
    assert "secret-word" not in done.stderr + done.stdout
    assert done.stderr.count("\n") == (command != "check" or "evenlag: " in done.stderr)
