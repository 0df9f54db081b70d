"""Packages that executors need: the declared ones, shipped as documented, and checked before the work begins."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.cloudpickle import dumps as pickle_by_value
from pyspark.errors import PythonException

import evenlag
from evenlag.errors import SourceError
from evenlag.model.backends import BACKENDS, packages_of
from evenlag.search.options import SolveOptions
from evenlag.spark.driver.error_lines import blamed
from evenlag.spark.driver.executors import fault
from evenlag.spark.driver.task_context import attempt
from evenlag.spark.worker.arrow_task import PACKAGES, Solver, look_around
from evenlag.spark.worker.group_work import Want
from evenlag.spark.worker.turns import Budget
from evenlag.tables.outputs import SOLVED
from tests.support.doc_tables import DOCS
from tests.support.environments import make_environment, with_all_that_they_require
from tests.support.few_rows import FEW_ROWS, QUICK_JAVA
from tests.support.fleet import fleet, write_tables
from tests.support.fleet_tasks import batches, rules

if TYPE_CHECKING:
    from tests.support.standalone import Standalone

ROOT = Path(__file__).parents[2]
SPARKS_OWN = {"pyspark", "py4j"}  # it ships them itself

TASK = """
import json, pickle, sys
solvers, batches = pickle.load(sys.stdin.buffer)
methods = []
for solver in solvers:
    rows = [row for batch in solver(batches) for row in batch.to_pylist() if row["group"]]
    assert [row["error"] for row in rows] == [None] * 3, rows
    methods += [row["method"] for row in rows]
names = {name.partition(".")[0] for name, module in sys.modules.items() if getattr(module, "__file__", None)}
print(json.dumps([methods, sorted(names - sys.stdlib_module_names)]))
"""


LOADING = """
import sys
import evenlag.spark.worker.arrow_task
from evenlag.model.backends import BACKENDS
before = set(sys.modules)
BACKENDS[sys.argv[1]]()
names = {name.partition(".")[0] for name in set(sys.modules) - before if getattr(sys.modules[name], "__file__", None)}
print(*names - {"evenlag"} - sys.stdlib_module_names)
"""


@pytest.mark.parametrize("method", BACKENDS)
def test_a_backend_imports_the_declared_packages(method: str) -> None:
    done = subprocess.run([sys.executable, "-c", LOADING, method], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {*packages_of(method)} - {"ortools"}


@pytest.mark.slow
def test_a_task_imports_only_the_declared_packages() -> None:
    offsets, _ = fleet(3)
    asked = (SolveOptions(), SolveOptions(stickiness=0), SolveOptions(max_moves=9, objective="makespan"))
    budgets = (Budget(0.3), Budget(0.3, time.time() + 3600))  # the second makes first plans by columns
    schema = SOLVED.arrow()
    solvers = [Solver(rules(offsets), each, budget, Want.BOTH, schema, attempt) for each in asked for budget in budgets]
    task = pickle_by_value((solvers, batches(offsets)))
    done = subprocess.run([sys.executable, "-c", TASK], input=task, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    methods, imported = json.loads(done.stdout)
    assert len(methods) == 3 * len(solvers)
    assert None not in methods
    homes = packages_distributions()
    packages = {homes[name][0].lower().replace("_", "-") for name in set(imported) & set(homes) - SPARKS_OWN}
    assert {"evenlag", *PACKAGES} <= packages
    assert packages - {"evenlag", "setuptools"} <= with_all_that_they_require(PACKAGES)
    assert f"pip install {' '.join(PACKAGES)}\n" in (DOCS / "operations.md").read_text()


# ---- a look at what is there -----------------------------------------------------------------------------------------


def check_of_executor(python: Path | str, *arguments: Any, path: Path | str = ROOT) -> dict[str, Any]:
    """Run the check of an executor in a Python as Spark starts it; modules in `path` come first."""
    from tests.support.standalone import SPARK, spark_environment

    sparks_own = ":".join(map(str, (SPARK / "python/lib").glob("*.zip")))
    done = subprocess.run(
        [str(python), "-c", "import pickle, sys; print(pickle.load(sys.stdin.buffer)(0))"],
        env=spark_environment(PYTHONPATH=f"{path}:{sparks_own}"),
        cwd=path,  # where it looks first
        input=pickle_by_value(look_around(*arguments)),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.slow
def test_the_check_of_an_executor_finds_every_package(tmp_path: Path) -> None:
    there = check_of_executor(sys.executable, "highs", str(tmp_path))
    assert (there["evenlag"], there["missing"], there["broken"]) == (evenlag.__version__, [], None)
    assert there["writes"]
    assert fault(there) is None


@pytest.mark.slow
def test_the_check_of_an_executor_finds_missing_packages(tmp_path: Path) -> None:
    make_environment(tmp_path / "bare")
    bare = str(fault(check_of_executor(tmp_path / "bare/bin/python", path=tmp_path)))
    assert bare.startswith(f"executors lack evenlag, {', '.join(PACKAGES)} (Python {sys.version.split()[0]}, ")
    make_environment(tmp_path / "some", PACKAGES)
    assert fault(check_of_executor(tmp_path / "some/bin/python")) is None
    some = str(fault(check_of_executor(tmp_path / "some/bin/python", "cbc")))
    assert some.startswith("executors lack pulp, highspy (")
    assert "\n" not in bare + some


@pytest.mark.slow
def test_the_check_of_an_executor_finds_unusable_packages(tmp_path: Path) -> None:
    nowhere = check_of_executor(sys.executable, "auto", "/nowhere")
    assert fault(nowhere, "name a folder that they share") == "name a folder that they share"
    (tmp_path / "evenlag").mkdir()
    (tmp_path / "evenlag/__init__.py").write_text("__version__ = '0.0.1'")
    other = str(fault(check_of_executor(sys.executable, path=tmp_path)))
    assert other.startswith("executors have evenlag 0.0.1 (")
    assert f"the driver {evenlag.__version__};" in other
    (tmp_path / "pyarrow.py").write_text("raise ImportError('libarrow.so: no such file')")
    (tmp_path / "evenlag/__init__.py").write_text(f"__version__ = '{evenlag.__version__}'; import pyarrow")
    broken = str(fault(check_of_executor(sys.executable, path=tmp_path)))
    assert broken.startswith("executors cannot load evenlag (")
    assert broken.endswith("ImportError: libarrow.so: no such file")


def test_an_error_gives_the_decisive_line_of_a_traceback() -> None:
    message = "[PYTHON_VERSION_MISMATCH] Python in worker: 3.12, in driver: 3.11."
    text = (
        f"thrown from the Python worker.\nTraceback:\n  File ...\n    check()\na.b.SparkError: {message}\nPlease check."
    )
    with (
        pytest.raises(SourceError, match=re.escape(f"the Python: a.b.SparkError: {message}") + "$"),
        blamed("the Python"),
    ):
        raise PythonException(text)


# ---- a cluster whose executors have no evenlag -----------------------------------------------------------------------

SMALL = {
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.driver.host": "127.0.0.1",
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
}


FOUR_ATTEMPTS = 60.0  # seconds that Spark takes to give up a task
LIMIT = 5.0


@dataclass(frozen=True)
class Site:
    """A cluster of two workers, tables, and an environment with all that executors need except evenlag."""

    cluster: "Standalone"
    folder: Path
    python: Path
    tables: list[str]
    rows: int

    def run(self, *words: str | Path, python: Path | str, timeout: float = 600, **variables: str) -> str:
        """Return the output of an audit whose executors use a given Python."""
        from tests.support.standalone import spark_environment

        done = subprocess.run(
            list(map(str, words)),
            env=spark_environment(
                PYSPARK_PYTHON=str(python), PYSPARK_DRIVER_PYTHON=sys.executable, PYTHONPATH=str(ROOT), **variables
            ),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def audit(self, out: str) -> list[str]:
        """The words of a quick audit of the tables."""
        _, offsets, *members = self.tables
        return [
            "fleet",
            "audit",
            offsets,
            *members,
            "--out",
            str(self.folder / out),
            "--group-time-limit",
            "0.1",
            "--json",
        ]

    def check(self, printed: str, name: str) -> None:
        """The audit is whole, and the cluster has done it."""
        report = json.loads(printed.splitlines()[-1])["summary"]  # spark-submit puts what goes to stderr before it
        assert (report["master"], report["rows"], report["errors"]) == (self.cluster.master, self.rows, [])
        ended = [(each["name"], each["state"]) for each in self.cluster.state()["completedapps"]]
        assert (name, "FINISHED") in ended

    def driver(self, stack: ExitStack, name: str, **settings: str) -> "Driver":
        """Start an application that solves the tables on request."""
        from tests.support.standalone import spark_environment

        more = {"spark.master": self.cluster.master, "spark.app.name": name}
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, json.dumps(SMALL | FEW_ROWS | more | settings), *self.tables[1::2]],
            env=spark_environment(PYSPARK_PYTHON=str(self.python), PYTHONPATH=str(ROOT)),
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return Driver(stack.enter_context(process))


DRIVER = """
import json, sys, time
from evenlag import pipeline
from evenlag.errors import SourceError

spark = pipeline.local_session(settings=json.loads(sys.argv[1]))
tables = []
for path in sys.argv[2:]:
    names = open(path).readline().strip().split(",")
    ddl = ", ".join(f"`{name}` STRING" for name in names)
    tables.append(spark.read.schema(ddl).csv(f"file://{path}", header=True))  # a schema, as else a task would read it
print("ready", flush=True)
for line in sys.stdin:
    python, limit = json.loads(line)
    spark.sparkContext.pythonExec = python
    started, said = time.monotonic(), None
    try:
        solved = pipeline.solve(*tables, want="plan", time_limit=limit, group_time_limit=0.1)
    except SourceError as error:
        said = str(error)
    print(json.dumps([said, time.monotonic() - started]), flush=True)
    if said is None and sys.stdin.readline():
        print(json.dumps([row.asDict() for row in solved.groups.collect()]), flush=True)
spark.stop()
"""


@dataclass(frozen=True)
class Driver:
    """A process of `DRIVER`."""

    process: "subprocess.Popen[str]"

    def read(self) -> str:
        """Its next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line, f"the driver ended with {self.process.wait()}"
        return line

    def ask(self, *request: Any) -> Any:
        """Return its next answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.read())


def conf(settings: Mapping[str, str]) -> list[str]:
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    from tests.support.standalone import standalone

    folder = tmp_path_factory.mktemp("site")
    make_environment(folder / "environment", PACKAGES)
    offsets, members = fleet(3)
    paths = write_tables(folder, offsets, members)
    tables = ["--offsets", paths[0], "--members", paths[1]]
    subprocess.run(
        [sys.executable, "-m", "zipfile", "-c", str(folder / "evenlag.zip"), "evenlag"], cwd=ROOT, check=True
    )
    with standalone(folder, workers=2, PYTHONPATH="") as cluster:
        yield Site(cluster, folder, folder / "environment/bin/python", tables, len(offsets))


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.slow
def test_evenlag_alone_is_shipped_by_spark_submit(site: Site) -> None:
    from tests.support.standalone import SPARK

    options = ["--master", site.cluster.master, "--name", "a fleet", "--py-files", "evenlag.zip", *conf(SMALL)]
    command = [SPARK / "bin/spark-submit", *options, ROOT / "evenlag/__main__.py", *site.audit("by_files")]
    site.check(site.run(*command, python=site.python), "a fleet")


@pytest.mark.cluster
@pytest.mark.slow
def test_an_environment_is_shipped_as_an_archive(site: Site) -> None:
    home = site.folder / "packed"
    shutil.copytree(ROOT / "evenlag", make_environment(home, PACKAGES) / "evenlag")
    pack = ["-m", "venv_pack", "--quiet", "--compress-level", "0", "--prefix", home, "--output", "environment.tar.gz"]
    site.run(sys.executable, *pack, python=site.python)
    settings = SMALL | FEW_ROWS | {"spark.archives": "environment.tar.gz#environment", "spark.app.name": "archived"}
    command = ["-m", "evenlag", *site.audit("by_archive"), "--master", site.cluster.master, *conf(settings)]
    site.check(site.run(sys.executable, *command, python="./environment/bin/python"), "archived")


def busy() -> float:
    """Return how many processes want each processor, at least 1: other tests may run beside this one."""
    return max(os.getloadavg()[0] / (os.cpu_count() or 1), 1)


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.slow
def test_missing_packages_are_named_at_once_and_a_busy_cluster_keeps_the_limit(site: Site) -> None:
    make_environment(site.folder / "bare")
    lacks = {
        site.python: "executors lack evenlag (Python ",
        site.folder / "bare/bin/python": f"executors lack evenlag, {', '.join(PACKAGES)} (Python ",
        "/nowhere/python": "the Python of the executors, /nowhere/python: ",
    }
    with ExitStack() as to_the_end:
        with ExitStack() as for_now:
            first = site.driver(for_now, "first")
            assert first.read() == "ready"  # it has all slots now, and keeps them
            second = site.driver(to_the_end, "second", **{"spark.submit.pyFiles": "evenlag.zip"})
            for python, message in lacks.items():
                error, seconds = first.ask(str(python), None)
                assert error.startswith(message)
                assert "\n" not in error
                assert seconds < FOUR_ATTEMPTS * busy()
            assert second.read() == "ready"
            error, seconds = second.ask(str(site.python), LIMIT)
            assert error is None
            assert seconds < LIMIT + 5 * busy()
        groups = second.ask("what became of them")
    assert [group["error"] for group in groups] == [None] * 3
    assert {group["status"] for group in groups} <= {"OPTIMAL", "FEASIBLE"}
