"""Python workers that are killed from outside during a call with a limit: every group still has its plan."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from evenlag import pipeline
from evenlag.model.balance import count_rule
from evenlag.model.check import violation
from evenlag.model.plan import Plan
from tests.support.fleet import fleet
from tests.support.fleet_tasks import batches, rules
from tests.support.frames import MEMBERS_DDL, OFFSETS_DDL, table
from tests.support.processes import children

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def python_processes(daemon: bool) -> list[int]:
    """Return the ids of the daemon from which Spark forks workers, or of the workers, of this process's Java."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            if "pyspark.worker" in (place.parent / "cmdline").read_text():
                parents[int(place.parent.name)] = int(place.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:  # it has ended
            continue
    java = children("self")
    daemons = {pid for pid, parent in parents.items() if parent in java}
    return sorted(daemons if daemon else {pid for pid, parent in parents.items() if parent in daemons})


@pytest.mark.parametrize("daemon", [False, True])
def test_every_group_has_a_plan_when_workers_are_killed(spark: "SparkSession", daemon: bool) -> None:
    offsets, members = fleet(40)
    offsets.append(offsets[0] | {"partition": -1})  # rejected
    killed: list[int] = []

    def kill() -> None:
        ends = time.monotonic() + 5
        while time.monotonic() < ends and len(killed) < 2:
            time.sleep(1)
            for pid in python_processes(daemon)[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    pipeline.plans(table(spark, offsets, OFFSETS_DDL), time_limit=None, method="lag-aware").count()  # workers exist
    killer = threading.Thread(target=kill)
    killer.start()
    solved = pipeline.solve(
        table(spark, offsets, OFFSETS_DDL), table(spark, members, MEMBERS_DDL), want="plan", time_limit=6.0
    )
    killer.join()
    assert killed
    plans, groups = solved.plans.collect(), solved.groups.collect()
    assert (len(plans), solved.rejects.count()) == (len(offsets) - 1, 1)
    assert [row["error"] for row in groups if row["error"]] == []
    assert not [warning for row in groups for warning in row["warnings"] if "pickle" in warning]
    consumers = {(row["group"], row["topic"], row["partition"]): row["consumer_id"] for row in plans}
    checked = rules(offsets, members).checked(batches(offsets, members))
    assert checked is not None
    for rows in checked.groups().groups():
        problem = rows.problem()
        place = {name: m for m, name in enumerate(problem.members)}
        taken = [place[str(consumers[rows.group, *key])] for key in problem.partitions]
        plan = Plan(problem, np.array(taken, dtype=np.int32))
        assert violation(plan, count_rule(problem, "both")) is None
