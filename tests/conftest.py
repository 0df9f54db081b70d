import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.problems import cases
from tests.support.shares import chosen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.broker import Broker
    from tests.support.standalone import Standalone

# Nothing may fail because the machine is busy.
settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=cases(100)
)
settings.load_profile("untimed")

os.environ.pop("COLUMNS", None)  # of the terminal, which must not change what the command prints

SHARED = {"spark", "broker"}  # fixtures that take long to start, and the marks of tests that need them
MARKS = {*SHARED, "cluster"}


@pytest.fixture(scope="session")
def broker() -> "Iterator[Broker]":
    """A real Kafka for all tests of the session; they share it, so each uses topics and groups of its own."""
    from tests.support.broker import running_broker

    with running_broker() as running:
        yield running


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what uses them, so that `make test` can run it in processes that start each of them once."""
    for name in SHARED & set(getattr(item, "fixturenames", ())):
        item.add_marker(name)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--share",
        type=int,
        default=1,
        metavar="N",
        help="of a test with many cases, run the first and about one in N of the others; quick ones by hand stay",
    )


def pytest_collection() -> None:
    """Let the garbage collector rest until all tests are read, which takes half the time then."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()  # what was read stays to the end, so later collections need not look at it
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    thinned = [
        item.nodeid
        for item in items
        if "seed" in getattr(item, "fixturenames", ()) or any(map(item.get_closest_marker, ("slow", *MARKS)))
    ]
    kept = set(chosen([item.nodeid for item in items], config.getoption("--share"), thinned))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def pytest_runtest_setup() -> None:
    from tests.support.verified import begin_test

    begin_test()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files that do not name a mark asked for, as in `-m "broker and not spark"`: all take long to read."""
    terms = config.option.markexpr.split(" and ")
    if collection_path.suffix != ".py" or not set(terms) <= {*MARKS, "not long", *(f"not {mark}" for mark in MARKS)}:
        return None
    text = collection_path.read_text()
    return True if any(mark in terms and mark not in text for mark in MARKS) else None


def pytest_configure(config: pytest.Config) -> None:
    from tests.support.verified import verify_all_results

    verify_all_results()
    # PySpark leaves the sockets by which it collects rows to the garbage collector, which may run in any later test.
    config.addinivalue_line("filterwarnings", r"ignore:unclosed <socket.*laddr=\('127\.0\.0\.1':ResourceWarning")


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """A local Spark for all tests of the session."""
    from evenlag.pipeline import local_session
    from tests.support.few_rows import FEW_ROWS

    session = local_session(cores=2, settings=FEW_ROWS)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka_spark(spark: "SparkSession") -> "SparkSession":
    """The same with Spark's Kafka connector, which Spark fetches from Maven Central."""
    from evenlag.pipeline import add_connector

    add_connector(spark)
    return spark


@pytest.fixture(scope="session")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Standalone]":
    """A Spark cluster of two workers with one core each; each test has an application of its own."""
    from tests.support.standalone import standalone

    with standalone(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


@pytest.fixture(params=["enumeration", "search"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small groups are solved by looking at all plans, and by the stages that larger ones need."""
    from evenlag.search.exact.small_groups import Enumeration

    if request.param == "search":
        monkeypatch.setattr(Enumeration, "applies", lambda *_: False)
    return str(request.param)
