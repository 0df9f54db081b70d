"""Options of a solve: wrong ones are refused by name, numbers of NumPy are numbers."""

import inspect
import json
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from evenlag import solve
from evenlag.errors import InvalidProblemError
from evenlag.search.options import SolveKeywords, SolveOptions, solving_options
from evenlag.spark import plans
from tests.support.scripted import LAGS, group

WRONG: dict[str, list[Any]] = {
    "balance": ["even", None, 3, []],
    "objective": ["lag", None, True],
    "stickiness": [
        "much",
        -1,
        True,
        float("nan"),
        float("inf"),
        "nan",
        None,
        "-1%",
        "1e999999999",
        "1e-999999999%",
        1e200,
    ],
    "max_moves": [-1, 1.5, True, "3"],
    "slack": [-1, 0.5, True, None],
    "method": ["best", "gurobi", None, ""],
    "time_limit": [0, -1, "10", None, True, float("nan")],
    "gap": [-0.1, "0", None, True, float("nan")],
    "seed": [1.5, "1", None, True, -1, 2**31],
    "deterministic": ["no", None, 1],
    "threads": [0, -1, 1.5, "2", True, 1025, 10**20],
    "work": [0, -1, "1", True],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_option_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidProblemError, match=name):
        SolveOptions(**{name: value})
    with pytest.raises(InvalidProblemError, match=name):
        solve(group(), **{name: value})


@pytest.mark.parametrize("value", [np.int64(3), 2**31 - 1, 0])
def test_any_whole_number_is_a_seed(value: Any) -> None:
    assert solve(group(), seed=value, time_limit=1.0).status == "OPTIMAL"


@pytest.mark.parametrize("name", ["slack", "max_moves", "threads", "stickiness", "time_limit", "gap"])
def test_numpy_numbers_are_accepted(name: str) -> None:
    one, same = (solve(group(), **{"time_limit": 9.0, name: number}).to_dict() for number in (np.int64(2), 2))
    assert json.dumps(one | {"seconds": 0}) == json.dumps(same | {"seconds": 0})


@pytest.mark.parametrize("parameters", [{"time_limit": 10**400}, {"gap": 10**400}, {"work": float("inf")}])
def test_no_limit_is_too_large(parameters: dict[str, Any]) -> None:
    assert solve(group(), deterministic="work" in parameters, **parameters).status in ("OPTIMAL", "FEASIBLE")


def test_a_start_of_another_problem_is_refused() -> None:
    yesterday = solve(group(LAGS[::-1]), time_limit=1.0)
    with pytest.raises(InvalidProblemError, match="same problem"):
        solve(group(), start=yesterday.plan)
    with pytest.raises(InvalidProblemError, match="same problem"):
        solve(group(), start=yesterday)


def test_a_result_may_be_the_start() -> None:
    problem = group()
    narrow = solve(problem, balance="both", time_limit=1.0)
    of_result, of_plan = (solve(problem, balance="none", gap=1e9, start=start) for start in (narrow, narrow.plan))
    assert of_result.objective == of_plan.objective <= narrow.objective


@pytest.mark.parametrize("start", [5, "plan.json", {"c0": [("t", 0)]}])
def test_other_types_are_refused_as_a_start(start: Any) -> None:
    with pytest.raises(InvalidProblemError, match=f"start must be a Plan or a Result .*; got {type(start).__name__}"):
        solve(group(), start=start)


@pytest.mark.parametrize("rates", [5, [], "x", [1.0]])
def test_other_types_are_refused_as_rates(rates: Any) -> None:
    with pytest.raises(InvalidProblemError, match=f"rates must be a mapping .*; got {type(rates).__name__}"):
        solve(group(), rates=rates)


def test_unknown_keywords_are_refused_by_the_callers_name() -> None:
    assert set(SolveKeywords.__annotations__) < set(SolveOptions.__dataclass_fields__)
    with pytest.raises(TypeError, match=r"plans\(\) got an unexpected keyword argument 'threads'"):
        solving_options("plans", {"threads": 4}, plans)  # type: ignore[typeddict-unknown-key]
    assert solving_options("plans", {"slack": 1}, plans) == SolveOptions(slack=1)


def test_options_do_not_change() -> None:
    options = SolveOptions()
    with pytest.raises(FrozenInstanceError):
        options.gap = 1.0  # type: ignore[misc]
    assert options.within(3.0, 2.0) == SolveOptions(time_limit=3.0, work=2.0)


def test_defaults_are_those_of_solve() -> None:
    parameters = inspect.signature(solve).parameters.items()
    defaults = {name: each.default for name, each in parameters if name not in ("problem", "start", "rates")}
    assert len(defaults) > 10
    assert defaults == {name: getattr(SolveOptions(), name) for name in defaults}


def test_statuses_and_balances_are_strings() -> None:
    result = solve(group(), time_limit=1.0)
    assert (repr(result.status), f"{result.balance}") in {("'OPTIMAL'", "both"), ("'FEASIBLE'", "both")}
    assert isinstance(result.status, str)
