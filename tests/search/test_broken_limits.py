"""Errors that name a limit: raised to that a plan exists and is found, and one below it does not exist."""

from __future__ import annotations

import re
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import evenlag
from evenlag.errors import InfeasibleError, InvalidProblemError, NoPlanFoundError
from evenlag.figures import number
from evenlag.model.drain_time import DrainTime
from evenlag.model.rates import SECOND, horizon_micros
from tests.support.problems import alike, seeds
from tests.support.terms import Question, draw, draw_options

PARAMETERS = ("max_load", "max_moves", "max_moved", "max_crossings")


def tight(seed: int) -> Question | None:
    """A group with one to three limits that are often too low; None if its data contradict each other."""
    random = Random(seed)
    try:
        problem = draw(random)
        _ = problem.units
    except InvalidProblemError:
        return None
    options = draw_options(random, problem)
    for name in random.sample([*PARAMETERS, "night"], random.choice([1, 1, 2, 3])):
        if name == "max_load":
            options["max_load"] = int(problem.mean_load * random.uniform(0.5, 1.1))
        elif name in PARAMETERS:
            options[name] = random.randint(0, 2)
        elif "night" in problem.pairs.costs:
            options["budgets"] = {"night": random.randint(0, 4)}
    return Question(problem, options)


def raised(question: Question, limits: dict[str, Any]) -> Question:
    """Return the same question with other limits."""
    options = dict(question.options)
    for name, value in limits.items():
        if name in PARAMETERS:
            options[name] = value
        else:
            options["budgets"] = options.get("budgets", {}) | {name: value}
    return Question(question.problem, options)


def failure(problem: evenlag.Problem, **options: Any) -> InfeasibleError:
    with pytest.raises(InfeasibleError) as error:
        evenlag.solve(problem, time_limit=5, **options)
    return error.value


@pytest.mark.parametrize("seed", seeds(700))
def test_limits_raised_to_the_numbers_of_the_error_can_be_kept_and_one_less_cannot(seed: int) -> None:
    question = tight(seed)
    error = None if question is None else question.ask(time_limit=10)
    if question is None or not isinstance(error, InfeasibleError):
        return
    assert question.best is None
    assert not isinstance(error, NoPlanFoundError), error
    if "max_partitions" in str(error):
        return  # no number of the limits is enough; tests/model/test_caps.py tries the caps that it names
    assert error.enough, error
    wider = raised(question, error.enough)
    found = wider.ask(time_limit=10)
    assert not isinstance(found, InfeasibleError), (error, found)
    wider.check(found)
    for name, value in error.enough.items():
        less = value - 1 if Fraction(value).denominator == 1 else Fraction(value) - Fraction(1, 1000)
        assert less < 0 or raised(question, error.enough | {name: less}).best is None, (name, less, error)
        shown = [float(text.replace(",", "")) for text in re.findall(r"[\d,]*\.?\d+", str(error))]
        assert any(value <= each < value + 1 for each in shown), (value, error)


@pytest.mark.parametrize("seed", seeds(120))
def test_a_ceiling_given_as_a_time_is_raised_as_a_time(seed: int) -> None:
    question = tight(seed)
    if question is None or "max_load" not in question.options:
        return
    rate = Random(seed).choice([Fraction(1), Fraction(25), Fraction(1, 7), Fraction(3, 2)])
    seconds = Fraction(question.options["max_load"]) / rate
    timed = Question(question.problem, question.options | {"max_load": DrainTime(seconds, rate, "max_drain")})
    error, same = timed.ask(time_limit=10), question.ask(time_limit=10)
    assert isinstance(error, InfeasibleError) == isinstance(same, InfeasibleError)
    if not isinstance(error, InfeasibleError) or not isinstance(same, InfeasibleError):
        assert error.objective == same.objective
        return
    assert "max_load" not in f"{error} {error.enough}"
    enough = dict(error.enough)
    if "max_drain" in enough:
        enough["max_load"] = enough.pop("max_drain") * rate
        [*_, named] = re.findall(r"max_drain (?:to )?([\d.,]+ [a-z]+)", str(error))
        wider = Fraction(horizon_micros(named.replace(",", "")), SECOND) * rate
        assert wider >= enough["max_load"]
        assert not isinstance(raised(question, enough | {"max_load": wider}).ask(time_limit=10), InfeasibleError)
    assert enough == same.enough


@pytest.mark.parametrize(("seconds", "text"), [(9, "9 s"), (119, "119 s"), (600, "10 min"), (9_000, "2.5 h")])
def test_a_time_is_named_in_a_unit_of_its_size(seconds: int, text: str) -> None:
    drain = DrainTime(Fraction(seconds), Fraction(25), "max_drain")
    assert str(drain) == f"max_drain {text}"
    for messages in (1, 1000, seconds * 25, seconds * 25 + 1):
        enough, needed = (
            Fraction(horizon_micros(each), SECOND) for each in (drain.enough(messages), drain.needed(messages))
        )
        assert (
            needed <= Fraction(messages, 25) <= enough < Fraction(messages, 25) * Fraction(101, 100) + Fraction(1, 100)
        )


@pytest.mark.parametrize("across", ["mean", "worst"])
def test_a_ceiling_with_scenarios_is_that_of_the_worst(across: str) -> None:
    problem = alike([5, 5], "ab", scenarios=[(1, {"t": [10, 0]}), (1, {"t": [0, 4]})])
    error = failure(problem, max_load=3, across=across)
    assert error.enough == {"max_load": 10}
    assert "max_load is 3, but the fullest member needs 10 messages: 10 can be kept" in str(error)
    assert evenlag.solve(problem, max_load=10, across=across).status == "OPTIMAL"


def test_a_limit_is_named_with_those_that_it_depends_on() -> None:
    problem = alike([9, 8, 1, 1], "ab", owned={"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]})
    error = failure(problem, max_load=11, max_moves=1)
    assert error.enough == {"max_moves": 2}
    assert "max_moves is 1, but both balance needs 2 with max_load 11" in str(error)
    both = failure(problem, max_load=9, max_moves=1)
    assert both.enough == {"max_load": 17}
    assert evenlag.solve(problem, max_load=17, max_moves=1, time_limit=5).moves <= 1


def test_both_parameters_that_limit_moves_are_named() -> None:
    problem = alike([5, 4], "ab", owned={"a": [("t", 0), ("t", 1)]})
    error = failure(problem, max_moves=0, max_moved=0)
    assert error.enough == {"max_moves": 1, "max_moved": 1}
    assert "max_moves is 0 and max_moved is 0" in str(error)


@pytest.mark.parametrize(("partitions", "members"), [(300, 30), (1_000, 100)])
def test_a_plan_within_two_budgets_is_found_with_scenarios(partitions: int, members: int) -> None:
    random = Random(3)
    names = [f"c{m:03}" for m in range(members)]
    lags = [int(random.paretovariate(1.2) * 100) for _ in range(partitions)]
    owned = {name: [("t", p) for p in range(m, partitions, members)] for m, name in enumerate(names)}
    futures = [(1, {"t": [int(lag * random.uniform(0.5, 2)) for lag in lags]}) for _ in range(2)]
    problem = alike(
        lags, names, owned=owned, scenarios=futures, racks={name: random.choice("abc") for name in names},
        partition_racks={"t": [[random.choice("abc")] for _ in range(partitions)]},
    )  # fmt: skip
    most = {"max_crossings": partitions * 3 // 10, "max_moves": partitions * 6 // 10}
    result = evenlag.solve(problem, deterministic=True, work=1, time_limit=60, **most)
    assert result.moves <= most["max_moves"]
    assert (result.crossings or 0) <= most["max_crossings"]


def test_more_time_is_recommended_only_if_time_ended_the_search() -> None:
    random = Random(5)
    lags = [random.randint(1, 10**6) for _ in range(60)]
    least = -(-sum(lags) // 12)
    problem = alike(lags, 12)
    with pytest.raises(NoPlanFoundError, match="nor is it proven that there is none") as ended:
        evenlag.solve(problem, max_load=least, deterministic=True, work=0.001, time_limit=60)
    assert "more time" not in str(ended.value)
    with pytest.raises(NoPlanFoundError, match="within the time; give it more time"):
        evenlag.solve(problem, max_load=least, time_limit=0.001)


@pytest.mark.parametrize("value", [2**53 + 1, 2**60 + 7, 2**62 - 1, 10**30 + 1])
def test_whole_numbers_keep_all_digits(value: int) -> None:
    assert number(value) == number(Fraction(value)) == f"{value:,}"
    assert number(Fraction(2 * value, 2)) == f"{value:,}"


def test_an_error_and_an_explanation_name_large_loads_exactly() -> None:
    value = 2**60 + 7
    problem = alike([value, 1], "ab")
    assert f"{value:,} can be kept" in str(failure(problem, max_load=5))
    assert f"{value - 1:,}" in str(evenlag.solve(problem).explain())
