"""Tools that read a running cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.assistants import assistant_with, without_times
from tests.support.broker import Broker, sasl
from tests.support.command import evenlag
from tests.support.traffic import create_topics, produce, running_group

GROUP = "asked-by-assistants"
SKEWED = [900, 40, 30, 20, 10, 0]


def facts_aside(document: dict[str, Any]) -> dict[str, Any]:
    return without_times({name: value for name, value in document.items() if name not in ("certificate", "catch_up")})


@pytest.mark.broker
def test_tools_read_a_cluster_as_the_commands_do(broker: Broker) -> None:
    create_topics(broker.bootstrap, {GROUP: 6})
    produce(broker.bootstrap, GROUP, SKEWED)
    source = f"kafka://{broker.bootstrap}"
    given = {"source": source, "auto_offset_reset": "earliest"}
    words = (source, "--group", GROUP, "--auto-offset-reset", "earliest", "--json")
    with (
        running_group(broker.bootstrap, GROUP, {name: [GROUP] for name in "ab"}),
        assistant_with(clusters=(source,)) as assistant,
    ):
        groups = {row["group"]: row for row in assistant.answer("groups", **given)["groups"]}
        assert (groups[GROUP]["lag"], groups[GROUP]["members"]) == (sum(SKEWED), 2)
        for tool in ("plan", "migrate"):
            found = assistant.answer(tool, group=GROUP, **given)
            printed = json.loads(evenlag(tool, *words).stdout)
            assert facts_aside(found) == facts_aside(printed)
        assert GROUP in assistant.error("diagnose", **{**given, "group": GROUP[:-1]})


@pytest.mark.broker
@pytest.mark.parametrize(("password", "expected"), [(None, "nobody"), ("wrong-password", "the login fails")])
def test_a_password_is_read_from_the_file_of_the_start_and_not_told(
    broker: Broker, tmp_path: Path, password: str | None, expected: str
) -> None:
    source, settings = f"kafka://{broker.sasl_bootstrap}", sasl(broker)
    settings["sasl.password"] = password or broker.password
    config = tmp_path / "client.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    with assistant_with(clusters=(source,), config=config) as assistant:
        text = assistant.error("plan", source=source, group="nobody")
        assert expected in text
        assert settings["sasl.password"] not in text
