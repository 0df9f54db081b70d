"""A running cluster as the input of every command about a group, and of `evenlag.read`."""

import json
import socket
from pathlib import Path

import pytest

import evenlag
from evenlag import live
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.live.cluster.from_brokers import readings_of
from evenlag.tables.cluster_address import Brokers, brokers_of
from tests.support.broker import Broker
from tests.support.command import evenlag as command
from tests.support.traffic import commit, create_topics, produce, running_group

COMMANDS = (
    ("plan",), ("explain",), ("frontier",), ("audit",), ("whatif", "--change-members", "+1"),
    ("size", "--drain", "15m", "--capacity", "300"), ("check",), ("migrate",),
)  # fmt: skip
LAGS = [900, 50, 300, 20]


@pytest.mark.parametrize("place", ["kafka:/h:1", "kafka://", "kafka:h:1", "kafka://h:1/topic"])
def test_what_is_not_the_address_of_a_cluster_is_refused(place: str) -> None:
    with pytest.raises(SourceError, match="write kafka://HOST:PORT"):
        brokers_of(place)
    done = command("plan", place, "--group", "g")
    assert (done.returncode, "write kafka://HOST:PORT" in done.stderr) == (2, True)


def test_options_of_clusters_and_of_files_do_not_mix(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("group,topic,partition,lag,consumer_id\ng,t,0,1,c\n")
    assert "--since applies to a cluster" in command("plan", tmp_path / "g.csv", "--since", "1h").stderr
    assert "omit --members" in command("plan", "kafka://h:1", "--members", tmp_path / "g.csv").stderr
    with pytest.raises(SourceError, match="apply to a cluster"):
        evenlag.read(tmp_path / "g.csv", since="1h")


@pytest.mark.slow
def test_brokers_that_do_not_answer_are_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        servers = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(SourceError, match=f"no Kafka broker answers at {servers} within 0.5 s"):
        readings_of(Brokers(servers, timeout=0.5), "g")


def test_a_folder_of_a_snapshot_is_an_input(tmp_path: Path) -> None:
    (tmp_path / "offsets.csv").write_text("group,topic,partition,lag,consumer_id\ng,t,0,5,a\ng,t,1,9,a\nh,t,0,1,\n")
    (tmp_path / "members.csv").write_text("group,consumer_id,topics\ng,a,t\ng,b,t\n")
    assert evenlag.read(tmp_path, group="g").members == ("a", "b")
    with pytest.raises(
        InvalidProblemError, match=r"choose one with `group`: g \(lag 14, 2 members\), h \(lag 1, 0 members\)"
    ):
        evenlag.read(tmp_path)
    assert command("check", tmp_path, "--group", "g").returncode == 3


@pytest.mark.broker
def test_every_command_about_a_group_reads_a_cluster(broker: Broker, tmp_path: Path) -> None:
    topic, group = "as-input", "as-input-1"
    create_topics(broker.bootstrap, {topic: 4})
    produce(broker.bootstrap, topic, LAGS)
    commit(broker.bootstrap, group, {(topic, p): 0 for p in range(4)})
    commit(broker.bootstrap, "as-input-2", {(topic, 0): 0})
    place = f"kafka://{broker.bootstrap}"
    with running_group(broker.bootstrap, group, {"a": [topic], "b": [topic]}, partition_assignment_strategy="range"):
        taken = live.snapshot(broker.bootstrap, [group])
        for words in COMMANDS:
            done = command(words[0], place, *words[1:], "--group", group, "--json")
            assert done.returncode in (0, 3), done.stderr
            assert f"{group}" in done.stdout
        problem = evenlag.read(place, group=group)
        assert problem.facts.told() == "state Stable, classic protocol, assignor range"
        assert sorted(problem.lags.tolist()) == sorted(LAGS)
        live.write_snapshot(taken, tmp_path / "taken")
        of_folder = evenlag.read(tmp_path / "taken", group=group)
        assert of_folder.to_dict() == problem.to_dict()
        assert of_folder.facts == problem.facts
        page = command("report", place, "--group", group, "--out", tmp_path / "page.html")
        assert (page.returncode, (tmp_path / "page.html").is_file()) == (0, True), page.stderr
        recorded = json.loads(command("plan", place, "--group", group, "--since", "30s", "--json").stdout)
        assert any("log ends of" in note for note in recorded["warnings"])
    unknown = command("plan", place, "--group", "as-inptu-1")
    assert (unknown.returncode, "as-input-1" in unknown.stderr) == (1, True), unknown.stderr
    several = command("plan", place)
    assert (several.returncode, "choose one with --group" in several.stderr) == (1, True)
