"""Rules, dashboard and page name metrics that are served, and the ScaledObject asks for a number that is there."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from evenlag.watch.board import Board, Entry, Reads
from evenlag.watch.exposition import document_of, text_of
from evenlag.watch.inputs import FileInput
from evenlag.watch.rounds import Watcher
from evenlag.watch.standing import Asked

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "watch"
NAME = re.compile(r"\bevenlag_[a-z_]+[a-z]")
TEMPLATE = re.compile(r"{{ (\$labels\.group|\$value( \| humanize(Duration)?)?) }}")


@pytest.fixture(scope="module")
def board() -> Board:
    """The board after one reading of the recorded snapshot's smallest groups, with a capacity and a deadline."""
    folder = ROOT / "examples" / "snapshot"
    source = FileInput(folder / "offsets.csv", folder / "members.csv", quiet=0.0)
    board = Board(2_000, ["fraud-detection", "warehouse-loader"])
    asked = Asked(capacity=300, drain_seconds=900)  # type: ignore[arg-type]
    assert Watcher(source, board, asked, 60.0, 1.0, print).round() is None
    assert isinstance(board.entries["fraud-detection"], Entry)
    board.reads = Reads(total=1, succeeded=True, last_success=1.0)
    return board


@pytest.fixture(scope="module")
def served(board: Board) -> set[str]:
    """Names of all samples, and of families that have none now."""
    families = list(text_string_to_metric_families(text_of(board, 60.0)))
    return {each.name for family in families for each in family.samples} | {
        family.name for family in families if family.type == "gauge"
    }


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((EXAMPLES / "alerts.yaml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_asks_for_metrics_that_are_served(rule: dict[str, Any], served: set[str]) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    names = set(NAME.findall(rule["expr"]))
    assert names
    assert names <= served
    assert rule["expr"].count("(") == rule["expr"].count(")")
    assert re.fullmatch(r"[0-9]+m", rule["for"])
    for text in rule["annotations"].values():
        assert "{{" not in TEMPLATE.sub("", text), text


def test_the_page_has_every_alert() -> None:
    page = (ROOT / "docs" / "watch.md").read_text()
    assert {rule["alert"] for rule in rules()} == set(re.findall(r"`((?:Kafka|Evenlag)[A-Za-z]+)`", page))


def test_the_page_has_every_metric(served: set[str]) -> None:
    page = (ROOT / "docs" / "watch.md").read_text()
    lines = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `evenlag_")]
    assert {name for line in lines for name in NAME.findall(line)} == served


@pytest.mark.slow
def test_the_dashboard_asks_for_metrics_that_are_served(served: set[str]) -> None:
    text = (EXAMPLES / "dashboard.json").read_text()
    dashboard = json.loads(text)
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    for expression in [*asked, dashboard["templating"]["list"][1]["query"]]:
        assert set(NAME.findall(expression)) <= served
        assert NAME.search(expression)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"]) == 6


def test_keda_reads_a_number(board: Board) -> None:
    scaled = yaml.safe_load((EXAMPLES / "scaledobject.yaml").read_text())
    (trigger,) = scaled["spec"]["triggers"]
    assert (trigger["type"], trigger["metricType"]) == ("metrics-api", "AverageValue")  # else there is no fallback
    metadata = trigger["metadata"]
    assert set(metadata) == {"url", "format", "valueLocation", "targetValue"}
    assert all(isinstance(value, str) for value in metadata.values())
    assert re.fullmatch(r"http://[a-z-]+:9779/groups/[a-z]+", metadata["url"])
    for name in board.entries:
        document = document_of(board, name, 0.0)
        assert document is not None
        assert isinstance(document[metadata["valueLocation"]], int)
    assert scaled["spec"]["minReplicaCount"] >= 1
