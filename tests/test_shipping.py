"""What executors need is what is said, comes to them as documented, and is asked for before the work begins."""

import json
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pyarrow as pa
import pytest
from packaging.requirements import Requirement
from pyspark import cloudpickle

from evenlag.pipeline.spark.executors import PACKAGES
from evenlag.pipeline.spark.task_context import attempt
from evenlag.pipeline.tasks.budget import Budget
from evenlag.pipeline.tasks.worker import Solver
from evenlag.search.options import SolveOptions
from tests.fleet import fleet

ROOT = Path(__file__).parent.parent
SPARKS_OWN = {"pyspark", "py4j"}  # it ships them itself

ROWS = pa.schema(
    [
        *((name, pa.string()) for name in ("snapshot_ts", "group", "topic")),
        ("partition", pa.int32()),
        ("lag", pa.int64()),
        *((name, pa.string()) for name in ("consumer_id", "clamped")),
        ("rejected", pa.bool_()),
    ]
)
SOLVED = pa.schema([(name, pa.string()) for name in ("method", "error")])

TASK = """
import json, pickle, sys
solvers, batch = pickle.load(sys.stdin.buffer)
for solver in solvers:
    [solved] = solver([batch])
    assert set(solved["error"].to_pylist()) == {None}, solved["error"]
names = {name.partition(".")[0] for name, module in sys.modules.items() if getattr(module, "__file__", None)}
print(json.dumps([solved["method"].to_pylist(), sorted(names - sys.stdlib_module_names)]))
"""


def with_all_that_they_require(packages: tuple[str, ...]) -> set[str]:
    """Names of packages, and of those that they depend on here, as in a constraints file."""
    found, queue = set(), [name.lower() for name in packages]
    while queue:
        name = queue.pop().replace("_", "-")
        if name not in found:
            found.add(name)
            needs = map(Requirement, requires(name) or ())
            queue += [each.name.lower() for each in needs if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


@pytest.mark.slow
def test_a_task_imports_what_is_said_and_nothing_else() -> None:
    offsets, _ = fleet(3)
    rows = [row | {"lag": row["log_end_offset"] - row["current_offset"], "rejected": False} for row in offsets]
    batch = pa.RecordBatch.from_pydict({name: [row.get(name) for row in rows] for name in ROWS.names}, ROWS)
    asked = (SolveOptions(), SolveOptions(stickiness=0), SolveOptions(max_moves=9, objective="makespan"))
    solvers = [Solver(each, Budget(0.3), "both", SOLVED, attempt) for each in asked]
    task = cloudpickle.dumps((solvers, batch))
    done = subprocess.run([sys.executable, "-c", TASK], input=task, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    methods, imported = json.loads(done.stdout)
    assert set(methods) != {None}
    homes = packages_distributions()
    packages = {homes[name][0].lower().replace("_", "-") for name in set(imported) & set(homes) - SPARKS_OWN}
    assert {"evenlag", *PACKAGES} <= packages
    assert packages - {"evenlag", "setuptools"} <= with_all_that_they_require(PACKAGES)
