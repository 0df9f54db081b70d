"""Programs written as LP and MPS files."""

from pathlib import Path

import highspy
import pytest

import evenlag
from evenlag.model.backends import pulp_models
from tests.support.exact import Goal
from tests.support.problems import seeds
from tests.support.programs import program, solved_case


@pytest.mark.parametrize("suffix", ["lp", "mps"])
@pytest.mark.parametrize("seed", seeds(40))
def test_written_programs_have_the_same_optimum(seed: int, suffix: str, tmp_path: Path) -> None:
    problem, goal, wanted = solved_case(seed)
    path = tmp_path / f"group.{suffix}"
    pulp_models.write(program(problem, goal), path)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("mip_abs_gap", 0.0)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    assert highs.getInfo().objective_function_value == pytest.approx(float(wanted), rel=1e-6, abs=1e-4)


def test_written_programs_name_partitions_and_members(tmp_path: Path) -> None:
    problem = evenlag.Problem.from_lags({"orders": [5, 3]}, {"a": ["orders"], "b": ["orders"]})
    for suffix in ("lp", "mps"):
        path = tmp_path / f"group.{suffix}"
        pulp_models.write(program(problem, Goal()), path)
        assert "orders-1 goes to b" in path.read_text()
