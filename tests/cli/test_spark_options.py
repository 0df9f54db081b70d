"""The Spark of a command: its master, its settings, and its connector for topics."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pyspark
import pytest

from evenlag.errors import SourceError
from evenlag.spark.driver.kafka import COMPLETE, CONNECTOR, with_connector
from tests.support.command import evenlag, refused

MASTER = ("--master", "spark://host:7077", "--conf", "spark.executor.memory=4g")
ASKED = {"spark.executor.memory": "4g", "spark.master": "spark://host:7077"}
TOPIC = "kafka://127.0.0.1:1/rows"
PACKAGE = f"{CONNECTOR}:{COMPLETE[pyspark.__version__.rpartition('.')[0]]}"


@pytest.fixture
def unconfigured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The working directory, and a folder for settings of Spark, in which there are none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("command", ["audit", "replay", "size", "stream"])
@pytest.mark.parametrize("place", ["hdfs://host/rows.csv", "table:lake.kafka.rows", TOPIC])
@pytest.mark.usefixtures("unconfigured")
def test_master_and_settings_reach_spark(command: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenlag.spark.driver import kafka

    def start(settings: Mapping[str, str], native: bool) -> NoReturn:
        assert not native
        raise SourceError(f"asked for {sorted(settings.items())}")

    monkeypatch.setattr(kafka, "local_session", start)
    monkeypatch.setattr(kafka, "unreachable", lambda *_: None)
    monkeypatch.setattr("evenlag.live.partitions_of_topics", lambda *_, **__: {})
    places = (place,)
    places += ("--drain", "5m") if command == "size" else ()
    packages = {"spark.jars.packages": PACKAGE} if place == TOPIC else {}
    words = (command,) if command == "stream" else ("fleet", command)
    refused(evenlag(*words, *places, "--out", "out", *MASTER), f"asked for {sorted((ASKED | packages).items())}")


@pytest.mark.usefixtures("unconfigured")
def test_history_asks_for_java_that_compiles_thoroughly(monkeypatch: pytest.MonkeyPatch) -> None:
    from evenlag.spark.driver import kafka

    def start(settings: Mapping[str, str], native: bool) -> NoReturn:
        raise SourceError(f"asked for {sorted(settings.items())}, native: {native}")

    monkeypatch.setattr(kafka, "local_session", start)
    done = evenlag("history", "hdfs://host/records", "--out", "out", *MASTER)
    refused(done, f"asked for {sorted(ASKED.items())}, native: True")


def test_configured_packages_are_kept(unconfigured: Path) -> None:
    assert with_connector({"spark.jars.packages": "a:b:1"}) == {"spark.jars.packages": f"a:b:1,{PACKAGE}"}
    (unconfigured / "spark-defaults.conf").write_text("spark.jars.packages a:b:1\n")
    assert with_connector({"x": "y"}) == {"x": "y"}


def test_options_for_topics_need_a_topic(tmp_path: Path) -> None:
    for command in ("audit", "replay"):
        done = evenlag("fleet", command, "table:rows", "--out", tmp_path / "out", "--option", "startingOffsets=latest")
        refused(done, "options of the Kafka source need a table kafka://HOST:PORT/TOPIC, but no table is a topic")
    config = tmp_path / "client.properties"
    config.write_text("security.protocol\n")
    done = evenlag("fleet", "replay", TOPIC, "--command-config", config)
    refused(done, "client.properties, line 1: not a property; write name=value")


@pytest.mark.parametrize(("failed", "status"), [(2, 1), (1, 0), (0, 0)])
def test_a_stream_whose_audits_all_fail_ends_with_status_1(
    failed: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenlag.cli.options import OnSpark
    from evenlag.spark.jobs import commit_stream, micro_batches

    commits = SimpleNamespace(groups=2, failed=failed)
    monkeypatch.setattr(OnSpark, "session", lambda *_: None)
    monkeypatch.setattr("evenlag.live.partitions_of_topics", lambda *_, **__: {})
    monkeypatch.setattr(micro_batches, "stream", lambda *_, **__: [SimpleNamespace(snapshots=2, failed=failed)])
    monkeypatch.setattr(
        commit_stream, "stream_commits", lambda *_, **__: [SimpleNamespace(groups=0, failed=0), commits]
    )
    for more in ((), ("--from-commits",)):
        done = evenlag("stream", TOPIC, "--once", "--out", "out", *more)
        assert done.returncode == status, done
        assert ("evenlag: all audits failed (2 snapshots); the table rejects" in done.stderr) == bool(status)
