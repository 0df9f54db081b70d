"""The lags that a leader records: equal to a record from a table, and bounded in size."""

import random
from itertools import pairwise

import numpy as np
import pytest

from evenlag.compare.foresight import Foresight
from evenlag.compare.history import Snapshot, intervals
from evenlag.errors import InvalidProblemError
from evenlag.live.assignor import lag_record
from evenlag.live.assignor.lag_record import FINE, KEPT, LagRecord
from evenlag.live.cluster.group_offsets import Reading
from evenlag.model.forecast import STEP, Forecast, Record, forecast
from evenlag.model.problem import Problem
from evenlag.model.rates import SECOND, Offsets

MINUTE = 60 * SECOND
TimedReading = tuple[int, Problem, Reading]


def reading_at(
    micros: int, offsets: dict[tuple[str, int], tuple[int, int, int | None]], members: int, lost: int = -1
) -> TimedReading:
    """Return a reading of a group that assigns its partitions in turn; the offsets of one partition may be lost."""
    topics = sorted({topic for topic, _ in offsets})
    names = [f"m{m}" for m in range(members)]
    problem = Problem.from_lags(
        {
            topic: {p: end - (commit or 0) for (t, p), (_, end, commit) in offsets.items() if t == topic}
            for topic in topics
        },
        dict.fromkeys(names, topics),
        owned={name: sorted(offsets)[m::members] for m, name in enumerate(names)},
    )
    kept = {key: each for n, (key, each) in enumerate(sorted(offsets.items())) if n != lost}
    return micros, problem, Reading(kept, {})


def random_readings(seed: int, count: int, micros: int = MINUTE) -> list[TimedReading]:
    """Return readings of a group over time: a partition and a member are added, and some commits are lost."""
    rng = random.Random(seed)
    offsets: dict[tuple[str, int], tuple[int, int, int | None]] = {
        (topic, p): (0, rng.randrange(10_000), 0) for topic in "tu" for p in range(4)
    }
    rate = {key: rng.randrange(1, 4_000) for key in offsets}
    found = []
    for n in range(count):
        for key, (_, end, commit) in offsets.items():
            more = rng.randrange(rate[key])
            offsets[key] = 0, end + more, rng.choice([min((commit or 0) + 1_500, end), commit, None])
        if n == count // 2:
            offsets["t", 4], rate["t", 4] = (0, 50, None), 30
        found.append(reading_at(n * micros, dict(offsets), 3 if n < count // 3 else 4, rng.randrange(40)))
    return found


def record_of(readings: list[TimedReading], horizon: float | str = "auto") -> LagRecord:
    record = LagRecord(horizon)
    for reading in readings:
        record.add(*reading)
    return record


def as_snapshots(readings: list[TimedReading]) -> list[Snapshot]:
    made = []
    for micros, problem, reading in readings:
        offsets = [reading.offsets.get(key, (0, None, None)) for key in problem.partitions]
        rows = [Offsets(micros, end, commit) for _, end, commit in offsets]
        made.append(Snapshot(str(micros), micros, problem, rows, np.zeros(len(rows), np.int64)))
    return made


@pytest.mark.parametrize("seed", range(12))
def test_a_record_in_memory_forecasts_as_one_in_a_table(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_record, "STALE", 0.0)
    readings = random_readings(seed, 3 + 5 * seed)
    problem = readings[-1][1]
    foresight = Foresight(list(intervals(as_snapshots(readings))))
    expected, _ = foresight.foreseen(problem, len(readings) - 1)
    found, which = record_of(readings).foreseen(problem)
    assert found.scenario_weights == expected.scenario_weights
    assert len(found.scenario_weights) > 1
    assert np.array_equal(found.scenario_lags, expected.scenario_lags)
    minutes = len(readings) - 1
    assert which == f"the time until the next rebalance, by {foresight.basis} in a record of {minutes} min"


def test_a_forecast_is_reused_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(record: Record) -> Forecast | None:
        made.append(record.seconds / 60)
        return forecast(record)

    monkeypatch.setattr(lag_record, "forecast", counted)
    readings = random_readings(2, 30, micros=10 * MINUTE)
    record_of(readings)
    lasting = [after - before for before, after in pairwise(made)]
    assert made[:10] == [10.0 * n for n in range(1, 11)]
    assert max(lasting) == 30.0
    assert len(made) < 25


def test_a_forecast_for_other_partitions_uses_what_is_known_of_them() -> None:
    readings = random_readings(1, 30)
    *_, (_, problem, _) = readings
    more = Problem.from_lags(
        {"t": problem.lags[:5].tolist(), "u": [*problem.lags[5:].tolist(), 77], "v": [5]},
        {"a": ["t", "u", "v"], "b": ["t", "u", "v"]},
    )
    found, _ = record_of(readings).foreseen(more)
    known = found.scenario_lags[:, [p for p, key in enumerate(more.partitions) if key not in {("u", 4), ("v", 0)}]]
    assert known.any(axis=0).all()
    of_new = found.scenario_lags[:, more.partitions.index(("v", 0))].tolist()
    assert 5 in of_new
    assert sum(lag not in {0, 5} for lag in of_new) <= 1  # its lag, scaled with those of the latest rates


def test_old_steps_are_merged_by_the_half_hour_and_the_oldest_dropped() -> None:
    length = KEPT + 20 * FINE
    record = LagRecord(0)
    keys = [("t", 0), ("t", 1)]
    every = 5 * MINUTE
    for n in range(length // every):
        record.add(*reading_at(n * every, dict.fromkeys(keys, (0, 300 * n, 0)), 1 + (n * every > length // 2)))
    assert record._seen is not None
    steps = record._seen.steps
    assert all(step.end == after.start for step, after in pairwise(steps))
    assert {tuple(step.produced * every / (step.end - step.start)) for step in steps} == {(300.0, 300.0)}
    old = [step for step in steps if step.end < steps[-1].end - FINE]
    assert {step.end - step.start for step in old[1:-1]} == {STEP * SECOND}
    assert KEPT <= steps[-1].end - steps[0].start <= KEPT + STEP * SECOND
    assert len({id(step.partitions) for step in steps}) == 1
    assert len(record._seen.rebalances) == 1
    assert record._seen.observed == ()


def test_a_horizon_of_some_minutes_is_the_lag_predicted_for_then() -> None:
    first, then = {("t", 0): (0, 100, 0), ("t", 1): (0, 50, 0)}, {("t", 0): (0, 160, 0), ("t", 1): (0, 40, 0)}
    _, problem, _ = last = reading_at(MINUTE, then, 2)
    readings = [reading_at(0, first, 2), last]
    assert record_of(readings, "10m").foreseen(problem)[0].lags.tolist() == [160 + 600, 40]
    assert record_of(readings, 90).foreseen(problem)[1] == "the lags in 90 s"
    assert record_of(readings, 0).foreseen(problem) == (problem, "the current lags")
    assert record_of(readings, 0).rates == {("t", 0): 1}


def test_a_new_record_gives_the_current_lags_and_reports_it() -> None:
    (_, problem, _) = reading = reading_at(0, {("t", 0): (0, 100, 0), ("t", 1): (0, 50, 0)}, 2)
    record = record_of([reading])
    assert record.foreseen(problem) == (problem, "the current lags: no record of them yet")
    assert record.rates is None
    nothing_comes = record_of([(n * MINUTE, problem, reading[2]) for n in range(3)])
    assert nothing_comes.foreseen(problem)[0].lags.tolist() == [100, 50]


@pytest.mark.parametrize("wrong", ["soon", -1, None])
def test_a_horizon_is_checked(wrong: object) -> None:
    with pytest.raises(InvalidProblemError, match="horizon"):
        LagRecord(wrong)  # type: ignore[arg-type]
