"""Jobs that end before all of their tasks have, as where a call's time is up."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def cut_job(monkeypatch: pytest.MonkeyPatch, condition: str) -> None:
    """Let jobs that solve fleets be cancelled at once, with those rows left for which `condition` holds in SQL."""
    from evenlag.spark.driver.kept import Running
    from evenlag.spark.driver.storage import Folder

    class Cut(Running[Any]):
        def __init__(self, _spark: "SparkSession", work: Callable[[], Any]) -> None:
            work()

        def ends(self, _until: float | None) -> bool:
            return False

        def cancel(self) -> bool:
            return False

    read = Folder.read

    def part(self: Folder) -> "DataFrame":
        return read(self).filter(condition)

    monkeypatch.setattr("evenlag.spark.jobs.fleet_solver.Running", Cut)
    monkeypatch.setattr(Folder, "read", part)
