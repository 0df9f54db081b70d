"""Kafka topics of snapshot rows: how Spark's own connector is asked for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from evenlag.errors import SourceError
from evenlag.spark.driver.errors import blamed, reach
from evenlag.spark.driver.session import local_session
from evenlag.spark.driver.settings import is_configured
from evenlag.tables.topics import is_topic, topic_address

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
COMPLETE = {"4.0": "4.0.0", "4.1": "4.1.1", "4.2": "4.2.0"}  # of each line one whose parts are all on Maven Central


def topic_options(url: str, options: Mapping[str, str] | None = None) -> dict[str, str]:
    """Give the options of Spark's Kafka source for `kafka://host:port,host:port/topic,topic`, and others beside them.

    Raises
    ------
    SourceError
        The text is no such address, or none of the brokers takes a connection.
    """
    address = topic_address(url)
    reach(url, address.servers.split(","), "broker")
    named = {"kafka.bootstrap.servers": address.servers, "subscribe": address.topics}
    return {"startingOffsets": "earliest"} | dict(options or {}) | named


def record_text() -> Column:
    """The value of a record as text: bytes that are not UTF-8 are replaced, no value is the empty text."""
    return sf.coalesce(sf.make_valid_utf8(sf.col("value").cast("string")), sf.lit(""))


def connector(spark: SparkSession) -> str:
    """Return the Maven coordinates of the connector for a session's Spark: of its line, and else of its version."""
    return _coordinates(spark.version)


def _coordinates(version: str) -> str:
    line, _, _ = version.rpartition(".")
    return f"{CONNECTOR}:{COMPLETE.get(line, version)}"


def add_connector(spark: SparkSession) -> None:
    """Have Spark fetch its Kafka connector from Maven Central, unless it was started with it.

    For brokers that ask who you are by SASL start Spark with it (`--packages`): Java looks for what logs in only among
    what Spark was started with.

    Raises
    ------
    SourceError
        It cannot be fetched.
    """
    if CONNECTOR.split(":")[1] in (spark.conf.get("spark.jars", "") or ""):
        return
    with blamed(f"Spark's Kafka connector ({connector(spark)})"):
        spark.sql(f"ADD JAR ivy://{connector(spark)}")


def with_connector(settings: Mapping[str, str]) -> dict[str, str]:
    """Give settings by which Spark starts with its Kafka connector, unless others configure Spark: theirs would go."""
    if is_configured():
        return dict(settings)
    packages = [settings.get("spark.jars.packages", ""), _coordinates(pyspark.__version__)]
    return {**settings, "spark.jars.packages": ",".join(filter(None, packages))}


def session_for(
    places: Iterable[str | Path | None], settings: Mapping[str, str] | None, options: Mapping[str, str] | None
) -> SparkSession:
    """Start Spark with what it needs to read from some places.

    Raises
    ------
    SourceError
        There are options for topics, and no topic.
    """
    topics = [place for place in places if place is not None and is_topic(place)]
    if options and not topics:
        raise SourceError("options of Kafka's source are for kafka://HOST:PORT/TOPIC, and no table is a topic")
    spark = local_session(settings=with_connector(settings or {}) if topics else settings)
    if topics:
        add_connector(spark)
    return spark


@contextmanager
def connected(spark: SparkSession, url: str) -> Iterator[None]:
    """Turn what goes wrong with a topic into one line that names it.

    Raises
    ------
    SourceError
    """
    try:
        with blamed(url):
            yield
    except SourceError as error:
        if isinstance(error.__cause__, AnalysisException) and "kafka" in str(error).lower():
            raise SourceError(
                f"{url}: Spark lacks its Kafka connector; start it with --packages {connector(spark)}"
            ) from error
        raise
