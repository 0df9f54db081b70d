"""Kafka topics read by Spark's connector: addresses, options and sessions."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from evenlag.errors import SourceError, no_broker
from evenlag.spark.driver.error_lines import blamed, unreachable
from evenlag.spark.driver.session import local_session
from evenlag.spark.driver.settings import is_configured
from evenlag.tables.topics import TopicAddress, is_topic, topic_address

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
COMPLETE = {
    "4.0": "4.0.0",
    "4.1": "4.1.1",
    "4.2": "4.2.0",
}  # for each Spark line, a version with all its dependencies on Maven Central

_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 0, -1)
"""Kafka's request ApiVersions, version 0, which a broker answers before any login."""


def topic_options(url: str, options: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the options of Spark's Kafka source for `kafka://host:port,host:port/topic,topic`, added to `options`.

    Raises
    ------
    SourceError
        The text is not such an address, or no broker answers.
    """
    address = _reached(url, options)
    named = {"kafka.bootstrap.servers": address.servers, "subscribe": address.topics}
    return {"startingOffsets": "earliest"} | dict(options or {}) | named


def _reached(url: str, options: Mapping[str, str] | None) -> TopicAddress:
    """Return the parts of a topic's address once a broker has answered; else raise SourceError."""
    address = topic_address(url)
    tls = (options or {}).get("kafka.security.protocol", "").upper().endswith("SSL")
    why = unreachable(address.servers.split(","), _shake_hands if tls else _ask_for_versions)
    if why is not None:
        raise SourceError(f"{url}: {no_broker(address.servers, why)}")
    return address


def _ask_for_versions(connection: socket.socket, _: str) -> None:
    connection.sendall(_VERSIONS)
    if connection.recv(1) != b"\0":  # the first byte of an answer's size; TLS has another, or closes the connection
        raise ConnectionError("the answer is not one of Kafka without TLS")


def _shake_hands(connection: socket.socket, host: str) -> None:
    """Wait for a broker's part of a TLS handshake; Spark's client verifies the certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(ssl.SSLError), context.wrap_socket(connection, server_hostname=host):  # an alert is an answer too
        pass


def record_text() -> Column:
    """Return the value of a record as text, with invalid UTF-8 replaced, and empty for null."""
    return sf.coalesce(sf.make_valid_utf8(sf.col("value").cast("string")), sf.lit(""))


def connector(version: str) -> str:
    """Return the Maven coordinates of the connector for a version of Spark."""
    line, _, _ = version.rpartition(".")
    return f"{CONNECTOR}:{COMPLETE.get(line, version)}"


def add_connector(spark: SparkSession) -> None:
    """Make Spark download its Kafka connector from Maven Central, unless it was started with it.

    For brokers with SASL, start Spark with the connector (`--packages`) instead, because Java finds login modules only
    on the class path at the start.

    Raises
    ------
    SourceError
        The connector cannot be downloaded.
    """
    if CONNECTOR.split(":")[1] in (spark.conf.get("spark.jars", "") or ""):
        return
    with blamed(f"Spark's Kafka connector ({connector(spark.version)})"):
        spark.sql(f"ADD JAR ivy://{connector(spark.version)}")


def with_connector(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings with Spark's Kafka connector, unless they would override a user's own configuration."""
    if is_configured():
        return dict(settings)
    packages = [settings.get("spark.jars.packages", ""), connector(pyspark.__version__)]
    return {**settings, "spark.jars.packages": ",".join(filter(None, packages))}


def session_for(
    places: Iterable[str | Path | None], settings: Mapping[str, str] | None, options: Mapping[str, str] | None,
    *, native: bool = False,
) -> SparkSession:  # fmt: skip
    """Start Spark, with its Kafka connector if one of the places is a topic; `native` as in `local_session`.

    Raises
    ------
    SourceError
        There are options for topics, but no topic; or no broker of a topic answers.
    """
    topics = [place for place in places if place is not None and is_topic(place)]
    if options and not topics:
        raise SourceError("options of the Kafka source need a table kafka://HOST:PORT/TOPIC, but no table is a topic")
    for topic in topics:
        _reached(str(topic), options)  # Spark's start would take seconds first
    spark = local_session(settings=with_connector(settings or {}) if topics else settings, native=native)
    if topics:
        add_connector(spark)
    return spark


@contextmanager
def connected(spark: SparkSession, url: str) -> Iterator[None]:
    """Convert errors of Spark to one line that names the topic.

    Raises
    ------
    SourceError
        Spark raised an error, or lacks its Kafka connector.
    """
    try:
        with blamed(url):
            yield
    except SourceError as error:
        if isinstance(error.__cause__, AnalysisException) and "kafka" in str(error).lower():
            raise SourceError(
                f"{url}: Spark lacks its Kafka connector; start it with --packages {connector(spark.version)}"
            ) from error
        raise
