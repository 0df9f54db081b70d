"""Tables that a call cannot use are one line that says what to pass; the defaults of all calls agree."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import __version__ as client
from pyspark.errors import PySparkException

from evenlag import pipeline
from evenlag.errors import SourceError
from evenlag.spark.driver.connect import ConnectDriver
from evenlag.spark.driver.protocol import naming_older_server
from evenlag.spark.jobs.arguments import _check_session
from evenlag.tables.call_defaults import TIME_LIMIT
from tests.support.frames import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CALLS: dict[str, Callable[..., Any]] = {
    "solve": pipeline.solve, "plans": pipeline.plans, "audit": pipeline.audit, "rejects": pipeline.rejects,
}  # fmt: skip
READ = 'evenlag.spark.read_table(spark, {}, "{}")'


def said(call: Callable[[], Any]) -> str:
    with pytest.raises(SourceError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", CALLS)
def test_tables_other_than_dataframes_of_spark_are_named(spark: "SparkSession", tmp_path: Path, name: str) -> None:
    call = CALLS[name]
    offsets, members = tables(spark, 1, partitions=2)
    frame = offsets.toPandas()
    assert said(lambda: call(None)) == (
        f"offsets_df is None; pass a DataFrame of Spark: {READ.format('path', 'offsets')}"
    )
    assert (
        said(lambda: call("a.csv"))
        == f"offsets_df is a path; pass a DataFrame: {READ.format(repr('a.csv'), 'offsets')}"
    )
    assert READ.format(repr(str(tmp_path)), "members") in said(lambda: call(offsets, tmp_path))
    assert said(lambda: call(frame)) == (
        "offsets_df is a pandas DataFrame; pass a DataFrame of Spark: spark.createDataFrame(offsets_df)"
    )
    assert said(lambda: call(offsets, members.toArrow())).startswith("members_df is a pyarrow Table; pass")
    assert said(lambda: call(spark)) == (
        f"offsets_df is a SparkSession; pass a DataFrame of Spark: {READ.format('path', 'offsets')}"
    )
    stream = spark.readStream.schema(offsets.schema).parquet(str(tmp_path))
    for streaming in (lambda: call(stream), lambda: call(offsets, stream)):
        assert "is a streaming DataFrame; call this on each batch of foreachBatch" in said(streaming)


def test_a_job_takes_places_too(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = tables(spark, 1, partitions=2)

    def run(*given: Any) -> Callable[[], Any]:
        return lambda: pipeline.run(spark, *given, out=tmp_path / "out")

    assert said(run(None)).startswith("offsets is None; pass a DataFrame of Spark, or the table's path: ")
    assert said(run(offsets.toPandas())).endswith("or the table's path: spark.createDataFrame(offsets)")
    assert said(run(offsets, members.toPandas())).endswith("or the table's path: spark.createDataFrame(members)")
    assert said(run("none.csv", 7)).startswith("members is a Python int; pass a DataFrame of Spark, or")
    stream = spark.readStream.schema(offsets.schema).parquet(str(tmp_path))
    assert "is a streaming DataFrame" in said(run(stream))
    assert not (tmp_path / "out").exists()


def test_tables_of_two_sessions_in_one_java_are_combined(spark: "SparkSession") -> None:
    (offsets, _), (_, members) = tables(spark, 2, partitions=2), tables(spark.newSession(), 2, partitions=2)
    assert pipeline.plans(offsets, members, method="lag-aware").count() == offsets.count()


def session(connect: bool, number: str = "", version: str = client) -> Any:
    """Return a session as far as it is asked."""
    kind = type("Session", (SimpleNamespace,), {"__module__": f"pyspark.sql.{'connect.' if connect else ''}session"})
    conf = SimpleNamespace(get=lambda _, default: default, set=lambda *_: None)
    return kind(session_id=number, version=version, conf=conf)


@pytest.mark.parametrize(
    ("one", "other"),
    [(session(True, "1"), session(True, "2")), (session(True, "1"), session(False)), (session(False), session(True))],
)
def test_sessions_that_spark_cannot_combine_are_refused(one: Any, other: Any) -> None:
    def frames(*sessions: Any) -> Iterator[Any]:
        return (SimpleNamespace(sparkSession=each) for each in sessions)

    for same in (one, other):
        offsets, members = frames(same, session(type(same).__module__.count("connect") > 0, same.session_id))
        _check_session(offsets, "o", members, "m")
    offsets, members = frames(one, other)
    expected = "o and m belong to different Spark sessions; read both with the same one"
    assert said(lambda: _check_session(offsets, "o", members, "m")) == expected


def fail(context: Any) -> None:
    with context:
        raise PySparkException("[SQL_CONF_NOT_FOUND] no such setting\n\nJVM stacktrace:\norg.apache.spark.Trace")


def test_an_older_server_of_spark_connect_is_named_with_the_client() -> None:
    old = session(True, version="3.5.9")
    expected = (
        f"the server of Spark Connect has Spark 3.5.9, but this client is pyspark {client}, which is newer: install "
        "pyspark-client==3.5.9 here, or a newer server ([SQL_CONF_NOT_FOUND] no such setting)"
    )
    assert said(lambda: fail(naming_older_server(old))) == expected
    assert said(lambda: fail(ConnectDriver(old).batches_by_rows())) == expected


@pytest.mark.parametrize("given", [session(True), session(True, version="99.1.0"), session(False, version="3.5.9")])
def test_errors_of_other_servers_are_unchanged(given: Any) -> None:
    with pytest.raises(PySparkException, match="SQL_CONF_NOT_FOUND"):
        fail(naming_older_server(given))


# ---- defaults --------------------------------------------------------------------------------------------------------

OTHERS = {  # why a call has a default of its own
    ("size", "gap"): "an answer is a number of members: a proof beyond it is not needed",
    ("replay", "gap"): "every rebalance of a history is planned",
    ("replay", "group_time_limit"): "the limit of one rebalance",
    ("replay", "pause"): "a pause counts only if it is given",
    ("stream", "group_time_limit"): "",
    ("stream_commits", "group_time_limit"): "",
}


def defaults_of(call: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(call).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not each.empty}


def test_the_defaults_of_all_calls_agree() -> None:
    calls = {"run": pipeline.run, "size": pipeline.size, "replay": pipeline.replay, **CALLS}
    calls |= {"stream": pipeline.stream, "stream_commits": pipeline.stream_commits}
    known = inspect.signature(pipeline.solve).parameters
    one = defaults_of(pipeline.audit) | defaults_of(pipeline.solve)
    found = {
        (name, parameter): default
        for name, call in calls.items()
        for parameter, default in defaults_of(call).items()
        if parameter in one and default != one[parameter]
    }
    assert {each for each in found if each not in OTHERS} == set()
    assert {each for each in OTHERS if each[1] in one and OTHERS[each] and each not in found} == set()
    assert known["time_limit"].default == TIME_LIMIT == defaults_of(pipeline.run)["time_limit"]
