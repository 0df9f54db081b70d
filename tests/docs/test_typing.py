"""A user's file, held by `mypy --strict` to the package as it is installed from a wheel."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evenlag
from tests.support.environments import make_environment

ROOT = Path(__file__).parents[2]
PACKAGED = ("evenlag", "pyproject.toml", "setup.py", "README.md", "LICENSE")
SOUND = """
import io
from pathlib import Path

import pandas as pd
import polars as pl

import evenlag
from evenlag.errors import EvenlagError
from evenlag.pipeline import plans
from evenlag.spark import run

frame = pd.DataFrame({"topic": ["t"], "partition": [0], "lag": [1]})
problem: evenlag.Problem = evenlag.read(frame, members=["a", "b"], group="g", auto_offset_reset="earliest")
evenlag.read(Path("offsets.csv"), members="members.csv", horizon="auto", format="csv")
evenlag.read(pl.DataFrame({"topic": ["t"]}), members={"a": ["t"], "b": None})
evenlag.read(pl.LazyFrame({"topic": ["t"]}))
evenlag.read(io.StringIO("GROUP"), members=frame)
evenlag.read(io.BytesIO(b"GROUP"), horizon="10m")
named = evenlag.Problem.from_lags({"t": [1, 2], "u": {0: 5}}, ["a", "b"], weights={"a": 2})
mapped = evenlag.Problem.from_lags({"t": [1]}, {"a": ["t"]}, scenarios=[(1, {"t": [2]})])

result: evenlag.Result = evenlag.solve(
    problem, balance="group", stickiness="fewest-moves", objective="makespan", across="worst", method="cp-sat",
    max_moves=3, time_limit=1, only_if_better="10%",
)
evenlag.solve(named, stickiness="0.5%", start=result)
verdict: evenlag.Verdict = evenlag.verify(result, problem.to_dict(), effort=2)
reasons: evenlag.Explanation = result.explain(("t", 0))
verdicts: list[evenlag.Verdict] = evenlag.check_claims(reasons, result.to_dict(), problem)
diagnosis: evenlag.Diagnosis = evenlag.diagnose(problem, record=[], capacity=100, drain_seconds=900, balance="group")
checks: list[evenlag.Verdict] = evenlag.check_diagnosis(diagnosis.to_dict(), problem)
evenlag.solve(named, stickiness=3, method="lag-aware", rates={("t", 0): 1.5})
plan: evenlag.Plan = evenlag.assign(problem, "cooperative-sticky")
spread: float = float(plan.spread)
rows: pd.DataFrame = result.to_pandas()
lines: pl.DataFrame = plan.to_polars()
table = result.to_arrow()
page: str = result._repr_html_()
payoff: evenlag.Payoff | None = result.payoff
phases: list[evenlag.Phase] = list(result.rebalance.phases)
back: evenlag.Rebalance = evenlag.rebalance(plan)

audit: evenlag.compare.Audit = evenlag.audit(problem, time_limit=1)
spreads: list[int | float | None] = [row.spread for row in audit.rows]
curve: evenlag.compare.Frontier = evenlag.frontier(problem, balance="topic")
change = evenlag.Change(members=1, balance="none", new_partitions="rehashed")
way: evenlag.compare.Migration = evenlag.migrate(problem, assignor="range", balance="group")
after: evenlag.compare.WhatIf = evenlag.whatif(problem, change, balance="both", stickiness=0)
needed: evenlag.compare.Size = evenlag.size(problem, 900, 1000, balance="both")
groups: dict[str, evenlag.Problem] = evenlag.read_groups("offsets.csv", members="members.csv", skip_errors=True)
history: list[evenlag.compare.Snapshot] = evenlag.read_history("history.parquet", members=["a"])
pause = evenlag.read_past("past")["billing"].pause
replayed: evenlag.compare.Replay = evenlag.replay(history, strategies=["range", "evenlag"], horizon="auto")
frames: list[pd.DataFrame] = [each.to_pandas() for each in (audit, curve, after, needed, replayed)]
frames.append(replayed.to_pandas("steps"))
tables = [audit.to_arrow(), curve.to_arrow(), after.to_arrow(), needed.to_arrow(), replayed.to_arrow(rows="summary")]
heuristic = evenlag.heuristics.HEURISTICS["range"]
columns: tuple[str, ...] = evenlag.spark.PLANS.names
about: dict[str, str] = {column.name: column.about for column in evenlag.spark.OFFSETS}
modules = (evenlag.live, evenlag.pipeline, evenlag.spark, evenlag.errors)
try:
    heuristic(problem)
except EvenlagError as error:
    print(error)
"""
WRONG = """
import evenlag

problem = evenlag.read("offsets.csv")
evenlag.solve(problem, balance="tpoic")
evenlag.solve(problem, balanse="topic")
evenlag.solve(problem, method="greedy")
evenlag.solve(problem, objective="lag")
evenlag.solve(problem, across="best")
evenlag.assign(problem, "rnge")
evenlag.assign(problem)
evenlag.read(7)
evenlag.read("offsets.csv", auto_offset_reset="last")
evenlag.read("offsets.csv", members=7)
evenlag.Problem.from_lags({"t": [1]}, 7)
evenlag.Problem.from_lags({"t": [1]}, ["a"], weight={})
evenlag.frontier(problem, balance="all")
evenlag.audit(problem, seconds=3)
evenlag.whatif(problem, evenlag.Change(balance="all"))
evenlag.whatif(problem, evenlag.Change(members=1), method="greedy")
evenlag.size(problem, 900)
evenlag.replay([], strategies=["best"])
evenlag.replay([]).to_pandas("step")
evenlag.solve(problem).to_panda()
evenlag.verify(problem)
evenlag.spark.PLAN
evenlag.pipeline.PLAN
evenlag.optimise(problem)
"""


def test_a_users_file_uses_every_public_name() -> None:
    assert [name for name in evenlag.__all__ if f"evenlag.{name}" not in SOUND] == []


@pytest.mark.slow
@pytest.mark.long
def test_types_hold_for_the_installed_package(tmp_path: Path) -> None:
    source, environment, work = (tmp_path / name for name in ("source", "environment", "work"))
    source.mkdir()
    for name in PACKAGED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    modules = make_environment(environment, ["numpy", "pandas", "pandas-stubs", "polars", "narwhals"])
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(modules), str(wheel)], check=True)
    work.mkdir()
    (work / "sound.py").write_text(SOUND)
    (work / "wrong.py").write_text(WRONG)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file=",
         f"--python-executable={environment / 'bin' / 'python'}", "sound.py", "wrong.py"],
        cwd=work, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    errors = {":".join(line.split(":", 2)[:2]) for line in checked.stdout.splitlines() if ": error:" in line}
    calls = [number for number, line in enumerate(WRONG.splitlines(), 1) if number > 4 and line]
    assert errors == {f"wrong.py:{number}" for number in calls}, checked.stdout + checked.stderr
