"""Spark's settings: a given master is used or refused, and settings that are not given are ours."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from evenlag.errors import SourceError
from evenlag.spark.driver import error_lines, kafka
from evenlag.spark.driver.kafka import connected
from evenlag.spark.driver.settings import ATTEMPTS, launch_settings, session_settings

CLUSTER = "spark://host:7077"

own_spark = pytest.mark.slow  # it starts a Spark of its own, and so runs beside the tests that share one


@pytest.mark.parametrize(
    ("asked", "cores", "settings", "master"),
    [
        ({}, None, {}, f"local[*,{ATTEMPTS}]"),
        ({}, 2, {}, f"local[2,{ATTEMPTS}]"),
        ({"spark.master": "local[*]"}, 2, {}, f"local[2,{ATTEMPTS}]"),  # what Spark says where nobody asks
        ({"spark.master": "local[4]"}, None, {}, "local[4]"),
        ({"spark.master": CLUSTER}, None, {}, CLUSTER),
        ({"spark.master": CLUSTER}, 2, {"spark.master": "yarn"}, "yarn"),
    ],
)
def test_the_master_is_chosen(asked: dict[str, str], cores: int | None, settings: dict[str, str], master: str) -> None:
    assert session_settings(asked, cores, settings)["spark.master"] == master


def test_given_settings_win_and_local_ones_stay_local() -> None:
    asked = {"spark.master": CLUSTER, "spark.sql.session.timeZone": "Europe/Berlin", "spark.driver.host": "driver"}
    chosen = session_settings(asked, None, {"spark.sql.adaptive.enabled": "false"})
    assert chosen.items() >= asked.items()
    assert chosen["spark.sql.adaptive.enabled"] == "false"
    # A daemon of evenlag would keep a Python without it from starting, and from saying so.
    assert not {"spark.driver.bindAddress", "spark.ui.enabled", "spark.python.daemon.module"} & set(chosen)
    assert session_settings({}, None, {})["spark.driver.host"] == "127.0.0.1"


def test_configured_java_options_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert launch_settings({})["spark.driver.memory"] == "2g"
    quick, native = (launch_settings({}, each)["spark.driver.extraJavaOptions"] for each in (False, True))
    assert "TieredStopAtLevel=1" in quick
    assert "TieredStopAtLevel" not in native
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory 4g\n")
    assert "spark.driver.memory" not in launch_settings({}, native=True)


@pytest.mark.parametrize("asked", [{"spark.remote": "sc://host"}, {"spark.api.mode": "connect"}])
def test_spark_connect_is_refused(asked: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match="requests Spark Connect, but evenlag cannot start such a session"):
        session_settings(asked, None, {})
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    with pytest.raises(SourceError, match="the variable SPARK_REMOTE requests Spark Connect"):
        session_settings({}, None, {})


def test_a_master_and_cores_of_this_machine_are_refused() -> None:
    with pytest.raises(SourceError, match=f"the master is {CLUSTER}, but cores=2 is for this machine"):
        session_settings({"spark.master": CLUSTER}, 2, {})


def local_session_prints(expression: str, **variables: str) -> str:
    """Return the value of an expression on a session in a new interpreter, or the error that it raised."""
    from tests.support.standalone import spark_environment

    code = (
        "from evenlag.errors import SourceError\n"
        "from evenlag.pipeline import local_session\n"
        "try:\n"
        "    spark = local_session()\n"
        f"    print({expression})\n"
        "    spark.stop()\n"
        "except SourceError as error:\n"
        "    print(error)\n"
    )
    environment = spark_environment(**variables)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout, done.stderr
    return done.stdout.strip()


@own_spark
def test_spark_defaults_are_kept(tmp_path: Path) -> None:
    defaults = "spark.master local[1]\nspark.sql.session.timeZone Europe/Berlin\nspark.sql.shuffle.partitions 11\n"
    defaults += "spark.default.parallelism 200\n"
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    names = [line.split()[0] for line in defaults.splitlines()]
    slots = "__import__('evenlag.spark.driver.choice', fromlist=['_']).driver_of(spark).slots()"
    printed = local_session_prints(f"*map(spark.conf.get, {names}), {slots}", SPARK_CONF_DIR=str(tmp_path))
    assert printed == "local[1] Europe/Berlin 11 200 1"  # as many slots as there are processors


@own_spark
def test_an_unreachable_master_is_one_line() -> None:
    error = local_session_prints("spark", PYSPARK_SUBMIT_ARGS="--master spark://127.0.0.1:1 pyspark-shell")
    assert error.startswith("spark://127.0.0.1:1: no Spark master accepts a connection (127.0.0.1:1: ")
    assert "\n" not in error


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ("SaslAuthenticationException: Authentication failed", "check sasl.mechanism, sasl.username and sasl.password"),
        ("TopicAuthorizationException: Topic t.", "the user needs the ACLs Describe and Read on the topic"),
        ("Not authorized to access group: spark-kafka-1.", "the user needs the ACL Describe on all groups whose names"),
    ],
)
def test_a_stream_that_kafka_refuses_says_what_to_change(failure: str, message: str) -> None:
    from pyspark.errors import StreamingQueryException

    text = f"[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: {failure} SQLSTATE: XXKST"
    with pytest.raises(SourceError) as caught, connected(None, "kafka://h:1/t"):
        raise StreamingQueryException(text)
    assert str(caught.value).startswith(f"kafka://h:1/t: {failure.rstrip('.')}; {message}")


def test_brokers_that_refuse_are_found_before_spark_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "local_session", lambda **_: pytest.fail("Spark was started"))
    with pytest.raises(SourceError, match=r"^kafka://127\.0\.0\.1:1/t: no Kafka broker answers at 127\.0\.0\.1:1 \("):
        kafka.session_for(["kafka://127.0.0.1:1/t"], None, None)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_SSL"])
def test_spark_is_not_given_a_port_that_never_answers(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would wait for it without end."""
    monkeypatch.setattr(error_lines, "ANSWER_LIMIT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(SourceError, match=rf"no Kafka broker answers at {servers} \({servers}: .*timed out"):
            kafka.topic_options(f"kafka://{servers}/t", {"kafka.security.protocol": protocol})
