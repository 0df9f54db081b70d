"""Incidents as people post them: an assistant gets the right cause and first remedy, each figure of them checked."""

from pathlib import Path
from typing import Any

import pytest

import evenlag
from tests.support.assistants import EXAMPLES, TABLES, TEXTS, Assistant

HOT_SPLIT = ("hot-partition", "partitions")
HOT_LEAVE = ("hot-partition", "none")  # its topic's partitions are missing in the text, or it is of Kafka Streams
EVEN = ("even", "none")
SETTING = ("assignor", "setting")
PLAN = ("assignment", "plan")
UNSETTLED = ("unsettled", "none")
IDLE = ("idle-members", "partitions")
NOBODY = ("no-members", "members")

INCIDENTS: list[tuple[Path, dict[str, Any], tuple[str, str]]] = [
    (TEXTS / "code-fence.txt", {}, SETTING),
    (TEXTS / "coloured.txt", {}, HOT_SPLIT),
    (TEXTS / "connect-tasks.txt", {}, SETTING),
    (TEXTS / "cut-after-consumer-id.txt", {}, HOT_LEAVE),
    (TEXTS / "dated-texts", {}, ("stuck-member", "members")),
    (TEXTS / "empty-client-id.txt", {}, UNSETTLED),
    (TEXTS / "empty-group.txt", {}, NOBODY),
    (TEXTS / "glued-id-host.txt", {}, SETTING),
    (TEXTS / "header-last-word-wrapped.txt", {}, UNSETTLED),
    (TEXTS / "hosts-with-ports.txt", {}, HOT_LEAVE),
    (TEXTS / "idle-members-rebalancing.txt", {}, UNSETTLED),
    (TEXTS / "ids-with-versions.txt", {}, EVEN),
    (TEXTS / "kaf-members.txt", {}, HOT_SPLIT),
    (TEXTS / "kafbat.json", {}, HOT_SPLIT),
    (TEXTS / "kafka-0.9.txt", {}, UNSETTLED),
    (TEXTS / "kafkactl.json", {}, HOT_SPLIT),
    (TEXTS / "kafkactl.txt", {}, HOT_SPLIT),
    (TEXTS / "kcl-group-describe.txt", {}, IDLE),
    (TEXTS / "kcl-subscribed.txt", {}, UNSETTLED),
    (TEXTS / "kcl.json", {}, UNSETTLED),
    (TEXTS / "kestra.json", {}, HOT_SPLIT),
    (TEXTS / "kip848-uniform.txt", {}, PLAN),
    (TEXTS / "kubectl-run.txt", {}, PLAN),
    (TEXTS / "leftover-topic.txt", {}, ("left-over", "setting")),
    (TEXTS / "log-lines-between.txt", {"group": "g1"}, EVEN),
    (TEXTS / "log-lines-between.txt", {"group": "g2"}, EVEN),
    (TEXTS / "loop.txt", {}, HOT_SPLIT),
    (TEXTS / "members-then-offsets.txt", {}, SETTING),
    (TEXTS / "members-verbose-4.txt", {}, HOT_SPLIT),
    (TEXTS / "mixed-offsets.txt", {}, SETTING),
    (TEXTS / "mixed-offsets.txt", {"members": TEXTS / "mixed-members.txt"}, EVEN),
    (TEXTS / "negative-lag.csv", {}, HOT_SPLIT),
    (TEXTS / "never-committed.txt", {}, EVEN),
    (TEXTS / "never-committed.txt", {"auto_offset_reset": "earliest"}, HOT_SPLIT),
    (TEXTS / "no-leader.txt", {}, HOT_LEAVE),
    (TEXTS / "nogroup-offsets.txt", {"members": TEXTS / "nogroup-members.txt"}, SETTING),
    (TEXTS / "offset-checker.txt", {}, HOT_LEAVE),
    (TEXTS / "owner-column.txt", {}, HOT_LEAVE),
    (TEXTS / "quoted-markdown.txt", {}, HOT_SPLIT),
    (TEXTS / "rpk-group-describe.txt", {}, HOT_SPLIT),
    (TEXTS / "rpk-two-groups.txt", {"group": "billing"}, UNSETTLED),
    (TEXTS / "rpk.json", {}, UNSETTLED),
    (TEXTS / "sorted-by-lag.txt", {}, HOT_SPLIT),
    (TEXTS / "streams-with-state.txt", {}, ("assignment", "none")),
    (TEXTS / "two-speed-pods", {}, ("unlike-members", "weights")),
    (TEXTS / "unknown-owners.prom", {}, NOBODY),
    (TEXTS / "utf16-powershell.txt", {}, SETTING),
    (TEXTS / "whole-topic-per-member.txt", {}, SETTING),
    (EXAMPLES / "billing.txt", {}, PLAN),
    (EXAMPLES / "kip-169.json", {}, PLAN),
    (EXAMPLES / "racks", {}, PLAN),
    (TABLES, {"group": "billing"}, PLAN),
    (TABLES, {"group": "clickstream-enrichment"}, PLAN),
    (TABLES, {"group": "fraud-detection"}, HOT_SPLIT),
    (TABLES, {"group": "nightly-report"}, NOBODY),
    (TABLES, {"group": "notifications"}, PLAN),
    (TABLES, {"group": "recommendations"}, PLAN),
    (TABLES, {"group": "search-indexer"}, EVEN),
    (TABLES, {"group": "warehouse-loader"}, IDLE),
]
"""A text, the arguments, the cause and the kind of the first remedy, decided from the text before evenlag was asked."""

REFUSED = {
    "column-t-spaced-ids.txt": "not wrapped, cut or realigned",
    "grafana.csv": "neither the members of group 'billing' nor the owners",
    "kaf-group-describe.txt": "neither the members of group 'mobile-actions' nor the owners",
    "kafka-error.txt": "Kafka printed an error instead of a table",
    "kop-two-topic-names.txt": "KoP prints one topic under two names",
    "ksql-describe-extended.txt": "no column topic",
    "rows-wrapped.txt": "it was wrapped over several lines",
    "share-group.txt": "share partitions without owning them",
    "streams-group.txt": "Kafka Streams assigns tasks, not partitions",
    "wrapped-header.txt": "it was wrapped over several lines",
}


@pytest.mark.parametrize(("source", "given", "expected"), INCIDENTS)
def test_an_incident_gets_its_cause_and_first_remedy(
    assistant: Assistant, source: Path, given: dict[str, Any], expected: tuple[str, str]
) -> None:
    arguments = {"source": str(source), **{name: str(value) for name, value in given.items()}}
    found = assistant.answer("diagnose", time_limit=2, deterministic=True, **arguments)
    first = found["remedies"][0]
    assert (found["cause"], first["kind"]) == expected, found["verdict"]
    assert first["change"] in found["verdict"]
    verdicts = evenlag.check_diagnosis(found, evenlag.read(**arguments))
    assert {each.outcome for each in verdicts} <= {"verified", "plan verified"}, verdicts


@pytest.mark.parametrize("name", REFUSED)
def test_a_text_without_an_answer_says_why(assistant: Assistant, name: str) -> None:
    for tool in ("diagnose", "plan", "migrate"):
        assert REFUSED[name] in assistant.error(tool, source=str(TEXTS / name))


def diagnosis(assistant: Assistant, name: str, **given: Any) -> tuple[dict[str, Any], str]:
    """Return the document and the text of an answer."""
    answer = assistant.call("diagnose", source=str(TEXTS / name), **given)
    return answer.structured_content, " ".join(answer.content[0].text.split())


def test_guesses_are_said_to_be_assumed(assistant: Assistant) -> None:
    found, _ = diagnosis(assistant, "unknown-owners.prom")
    assert "the group is assumed to have no members" in found["verdict"]
    assert "membership" in found["facts"]["assumed"]
    found, _ = diagnosis(assistant, "empty-group.txt")
    assert found["verdict"].startswith("The group has no members")  # Kafka says so
    assert "membership" not in found["facts"]["assumed"]
    found, _ = diagnosis(assistant, "members-then-offsets.txt")
    assert "sticky are assumed to begin without today's owners" in " ".join(found["assumed"])


def test_a_new_sticky_assignor_does_not_know_todays_owners(assistant: Assistant) -> None:
    found, _ = diagnosis(assistant, "members-then-offsets.txt")
    names = {place: [] for place in found["remedies"][0]["group_after"]["assignment"]}
    problem = evenlag.read(TEXTS / "members-then-offsets.txt")
    fresh = evenlag.Problem.from_lags(
        {topic: [int(lag) for (name, _), lag in zip(problem.partitions, problem.lags, strict=True) if name == topic]
         for topic in problem.topics},
        [*names],
    )  # fmt: skip
    best = min(evenlag.assign(fresh, name).spread for name in ("range", "roundrobin", "sticky", "cooperative-sticky"))
    assert found["remedies"][0]["spread"] == best


def test_shares_are_of_all_lag(assistant: Assistant) -> None:
    found, text = diagnosis(assistant, "one-topic-unowned.prom")
    assert "alone has 80.00 % of all lag (400 messages)" in found["verdict"]
    assert "500 messages of lag" in text


def test_a_stable_group_is_not_asked_to_become_stable(assistant: Assistant) -> None:
    found, _ = diagnosis(assistant, "kcl-subscribed.txt")
    assert found["facts"]["state"] == "Stable"
    assert "when it is stable" not in found["verdict"]
    assert "when it is stable" in diagnosis(assistant, "idle-members-rebalancing.txt")[0]["verdict"]


def test_idle_members_may_also_be_stopped(assistant: Assistant) -> None:
    found = assistant.answer("diagnose", source=str(TABLES), group="warehouse-loader")
    assert "stop the idle ones or, to use them, give shipments 32 partitions" in found["verdict"]


def test_quoted_commands_stay_as_they_were_typed(assistant: Assistant) -> None:
    _, text = diagnosis(assistant, "hosts-with-ports.txt")
    assert "--describe --group ship-logs" in text


def test_remedies_that_change_no_figure_repeat_none(assistant: Assistant) -> None:
    found, _ = diagnosis(assistant, "idle-members-rebalancing.txt")
    assert found["remedies"][0]["sentence"].endswith("look at the consumers.")
    assert "at least 0 messages" not in diagnosis(assistant, "log-lines-between.txt", group="g1")[1]
    assert "instead of never" in diagnosis(assistant, "loop.txt")[1]
    assert "not all lag is ever read" in diagnosis(assistant, "two-speed-pods")[1]
