"""An addition of each kind takes the file and the line that docs/architecture.md names: tried on a copy of the code."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[2] / "evenlag"
WORDS = "model/literals.py"
GROUP = 'import evenlag\nproblem = evenlag.Problem.from_lags({"t": [9, 7, 4]}, ["a", "b-spot"])\n'


class Addition(NamedTuple):
    """New files, lines to insert (a file, the text before them, the lines), and a script that uses the addition."""

    files: dict[str, str]
    lines: list[tuple[str, str, str]]
    script: str


HEURISTIC = Addition(
    {
        "heuristics/last_takes_all.py": """
import numpy as np
from evenlag.model.balance import Balance
from evenlag.model.plan import Plan

PROMISES, ASSIGNOR = Balance.NONE, "last"

def assign(problem):
    return Plan(problem, np.full(len(problem.lags), len(problem.members) - 1, dtype=np.int32))
"""
    },
    [(WORDS, "HeuristicWord = Literal[\n", '    "last-takes-all",\n')],
    """
assert evenlag.assign(problem, "last-takes-all").loads.tolist() == [0, 20]
result = evenlag.solve(problem, method="last-takes-all", balance="none")
assert evenlag.verify(result, problem).outcome == "verified"
assert "last-takes-all" in [row.strategy for row in evenlag.audit(problem).rows]
assert evenlag.heuristics.published_name("last") == "last-takes-all"
""",
)
BACKEND = Addition(
    {"model/backends/cp_again.py": "from evenlag.model.backends.cp_sat import LARGEST, PACKAGES, confirm, solve\n"},
    [(WORDS, "BackendWord = Literal[", '"cp-again", ')],
    """
from evenlag.model.backends import BACKENDS, cp_sat
result = evenlag.solve(problem, method="cp-again")
assert BACKENDS["cp-again"]() is cp_sat.solve
assert result.status == "OPTIMAL" and evenlag.verify(result, problem).outcome == "verified"
""",
)
STAGE = Addition(
    {
        "search/improve/first_member.py": """
import numpy as np
from evenlag.model.plan import Plan
from evenlag.search.incumbent import Candidate
from evenlag.search.stage import Stage

class FirstMember(Stage):
    name = "first member"

    def applies(self, task, best):
        return True

    def run(self, task, best):
        yield Candidate(Plan(task.problem, np.zeros(len(task.problem.lags), dtype=np.int32)))
"""
    },
    [
        (
            "search/portfolio.py",
            "from evenlag.search.improve.equalize import Equalize, Restarts, repairs_keep\n",
            "from evenlag.search.improve.first_member import FirstMember\n",
        ),
        ("search/portfolio.py", "AUTO: tuple[Step, ...] = (\n", "    Step(FirstMember()),\n"),
    ],
    'assert evenlag.solve(evenlag.Problem.from_lags({"t": [9]}, ["a"])).method == "first member"\n',
)
COST = Addition(
    {},
    [
        (WORDS, "CostWord = Literal[", '"on_spot", '),
        (
            "model/pair_costs.py",
            "from evenlag.model.problem import Problem\n",
            """
def on_spot(problem: Problem) -> PairTable:
    return PairTable.of_pairs(np.array([[3 * m.endswith("spot") for m in problem.members]] * len(problem.lags)))
""",
        ),
    ],
    """
result = evenlag.solve(problem, first=["on_spot"], balance="none")
assert result.costs == {"on_spot": 0} and result.plan.loads.tolist() == [20, 0]
assert "does not know the cost 'on_spot'" in evenlag.verify(result, problem).reason
assert evenlag.solve(problem, prices={"on_spot": 1}, budgets={"on_spot": 3}).costs == {"on_spot": 3}
""",
)
COLUMN = Addition(
    {},
    [
        (
            "tables/columns.py",
            "MEMBERS = Table(\n    (\n",
            'Column("standby", "boolean", "Takes none.", planned=True),\n',
        ),
        ("model/from_rows.py", "    rack: str | None = None\n", "    standby: bool | None = None\n"),
        ("model/from_rows.py", "parse_cap(n, ", "0 if row.standby else "),
    ],
    """
import pandas
offsets = pandas.DataFrame({"group": "g", "topic": "t", "partition": [0, 1], "lag": [3, 4]})
members = pandas.DataFrame({"group": "g", "consumer_id": ["a", "b"], "standby": [None, True]})
problem = evenlag.read(offsets, members=members)
result = evenlag.solve(problem)
assert result.plan.loads.tolist() == [7, 0] and evenlag.verify(result, problem).outcome == "verified"
""",
)
FORMAT = Addition(
    {
        "tables/formats/counts.py": """
from evenlag.tables.formats.base import Format, Reading

def read(text, source):
    rows = [{"group": "g", "topic": "t", "partition": n, "lag": int(lag)} for n, lag in enumerate(text.split()[1:])]
    return Reading([*enumerate(rows)], source=source)

FORMAT = Format("counts", "a list of lags", lambda text: text.startswith("lags:"), read)
"""
    },
    [("tables/formats/__init__.py", "_MODULES = (\n", '    "counts",\n')],
    """
import io
for form in (None, "counts"):
    assert evenlag.read(io.StringIO("lags: 3 4"), members=["a"], format=form).lags.tolist() == [3, 4]
""",
)


@pytest.mark.parametrize("added", [HEURISTIC, BACKEND, STAGE, COST, COLUMN, FORMAT])
def test_an_addition_works_with_its_file_and_its_line(added: Addition, tmp_path: Path) -> None:
    copy = tmp_path / "evenlag"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in added.files.items():
        (copy / name).write_text(text)
    for name, before, lines in added.lines:
        text = (copy / name).read_text()
        assert text.count(before) == 1, before
        (copy / name).write_text(text.replace(before, before + lines))
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", GROUP + added.script]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
