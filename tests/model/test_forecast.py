"""Forecasts of a group's rates, against days with a known course and plain Python."""

import random
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenlag.compare.foresight import Foresight
from evenlag.compare.history import Snapshot, intervals
from evenlag.model import forecast as rules
from evenlag.model.forecast import DAY, MOST_SCENARIOS, STEP, Forecast, Record, forecast, scenarios, times_between
from evenlag.model.lag import MAX_LAG
from evenlag.model.problem import Problem
from evenlag.model.rates import SECOND, Offsets
from tests.support.problems import cases

TOPIC_OF = np.repeat([0, 1], [9, 12]).astype(np.int32)
SEVEN = np.array([0, 0, 0, 0, 1, 1, 1], dtype=np.int32)


def record(rates: Any, seconds: int = 600, rebalances: Any = ()) -> Record:
    """A record of rates in messages a second in each interval, shape (N - 1, P)."""
    rates = np.asarray(rates, dtype=np.float64)
    topic_of = SEVEN if rates.shape[1] == len(SEVEN) else TOPIC_OF
    times = np.arange(len(rates) + 1) * seconds * SECOND
    return Record(times, rates * seconds, topic_of, np.array(rebalances, dtype=np.int64))


def days(count: float, seed: int = 0, growth: float = 1.0) -> Any:
    """Return rates every 10 minutes, the same each day: a course for each topic, a share of it for each partition."""
    rng = np.random.default_rng(seed)
    time = (np.arange(round(count * 144)) + 0.5) / 144
    courses = [1 + 0.8 * np.sin(2 * np.pi * (time - phase)) for phase in rng.uniform(size=2)]
    each = np.array([courses[t] for t in TOPIC_OF]).T * rng.lognormal(4, 0.7, len(TOPIC_OF))
    return each * growth ** np.floor(time)[:, None]


def in_steps(rates: Any) -> Any:
    return rates.reshape(-1, STEP // 600, rates.shape[1]).mean(axis=1)


# ---- days whose course is known --------------------------------------------------------------------------------------


def expected(of: Record) -> Forecast:
    found = forecast(of)
    assert found is not None
    return found


@pytest.mark.parametrize("past", [1.25, 2, 3.5, 9, 16])
def test_a_repeated_daily_course_is_forecast(past: float) -> None:
    rates = days(past + 1)
    found = expected(record(rates[: round(past * 144)]))
    assert found.known.all()
    true = in_steps(rates[round(past * 144) :])
    assert np.abs(found.rates - true).max() < 0.03 * true.max()


@pytest.mark.parametrize("seconds", [420, 1_000, 2_700])
def test_snapshots_between_the_steps_of_the_forecast_are_shared_out_by_time(seconds: int) -> None:
    def course(middles: Any) -> Any:
        return np.outer(2 + np.sin(2 * np.pi * middles / 86_400), np.arange(1, 8))

    count = round(2.5 * 86_400 / seconds)
    found = expected(record(course((np.arange(count) + 0.5) * seconds), seconds=seconds))
    true = course(count * seconds + (np.arange(DAY) + 0.5) * STEP)
    assert np.abs(found.rates - true).max() < 0.05 * true.max()


def test_growth_is_extrapolated() -> None:
    rates = days(4.5, growth=1.3)
    found, true = expected(record(rates[: 4 * 144])).rates, in_steps(rates[4 * 144 :])
    assert np.abs(found[1 : len(true)] - true[1:]).max() < 0.03 * true.max()  # days begin with a step that is smoothed


@pytest.mark.parametrize("past", [1.5, 2.5, 3.5])
def test_bursts_do_not_change_the_forecast(past: float) -> None:
    rates = days(past)
    busy = rates.copy()
    for start, p in ((30, 0), (110, 1), (140, 14)):
        busy[start : start + 6, p] *= 8  # an hour
    calm, found = (expected(record(each)).rates for each in (rates, busy))
    assert (np.abs(found - calm) <= calm * 1.01).all()  # at most twice: as much as is believed of one day
    if past > 3:
        assert np.abs(found - calm).max() < 0.02 * calm.max()


def test_a_lasting_step_in_rates_is_kept() -> None:
    rates = days(3)
    rates[-60:, 2] += 500  # a tenant, for ten hours
    found, calm = expected(record(rates)).rates, expected(record(days(3))).rates
    assert np.abs(found[:, 2] - calm[:, 2] - 500).max() < 60
    assert np.abs(np.delete(found - calm, 2, axis=1)).max() < 0.05 * calm.max()


def test_within_the_first_day_the_last_rates_are_split_by_usual_shares() -> None:
    rates = days(0.5)
    rates[-4:, 0] *= 9
    found = expected(record(rates))
    assert found.known.tolist() == [k >= DAY // 2 for k in range(DAY)]
    usual = days(0.5)
    assert found.rates[0] == pytest.approx(usual[-18:].mean(axis=0), rel=0.2)


def test_a_record_shorter_than_a_step_has_its_mean_rate() -> None:
    found = expected(record([[1, 2, 3, 4, 5, 6, np.nan], [3, 2, 1, 4, 5, 6, 8]], seconds=60))
    assert not found.known.any()
    assert found.rates[7].tolist() == pytest.approx([2, 2, 2, 4, 5, 6, 8])


def test_a_partition_without_a_record_gets_its_topics_median_rate() -> None:
    rates = np.tile([10.0, 20, 30, np.nan, 7, 7, 7], (144, 1))
    assert expected(record(rates)).rates[0].tolist() == pytest.approx([10, 20, 30, 20, 7, 7, 7])
    rates[:, 4:] = np.nan
    assert expected(record(rates)).rates[0].tolist() == pytest.approx([10, 20, 30, 20, 0, 0, 0])


# ---- the latest rates ------------------------------------------------------------------------------------------------


def shuffled_days(count: int, seed: int) -> Any:
    """Return constant rates that the partitions of a topic swap each day at noon, an hour before the record ends."""
    rng = np.random.default_rng(seed)
    rates = np.tile(rng.uniform(10, 100, len(TOPIC_OF)), (144 * count + 78, 1))
    for start in range(72, len(rates), 144):
        for t in (0, 1):
            here = np.flatnonzero(t == TOPIC_OF)
            rates[start:, here] = rates[start:, rng.permutation(here)]
    return rates


def test_latest_rates_count_for_a_fixed_share_where_the_course_is_reliable_or_no_day_can_be_compared() -> None:
    for past in (0.1, 0.5, 1):
        found = expected(record(days(past)))
        assert (found.latest_share, found.compared) == (rules.LATEST, False)
    for past in (1.25, 2, 4.5):
        found = expected(record(days(past)))
        assert (found.latest_share, found.compared) == (rules.LEAST_LATEST, True)


@pytest.mark.parametrize("seed", range(4))
def test_latest_rates_take_over_where_they_predicted_earlier_days_better(seed: int) -> None:
    rates = shuffled_days(5, seed)
    found = expected(record(rates))
    assert found.compared
    assert found.latest_share > 0.75
    lags = np.zeros(len(TOPIC_OF), np.int64)

    def error(of: Forecast) -> float:
        several = scenarios(of, lags, TOPIC_OF, 4, 100.0)
        mean = sum(float(weight) * vector for weight, vector in several)
        return float(np.abs(mean / mean.sum() - rates[-1] / rates[-1].sum()).sum())

    assert error(found) < 0.3 * error(replace(found, latest=None))


def test_a_comparison_uses_only_rates_from_before_each_day() -> None:
    """The latest rates of a day are those of the step before it, and the steps after it are all predicted by them."""
    whole = np.ones((2 * DAY, 2))
    whole[DAY:, 0] = 3.0
    course = np.ones((DAY, 2))  # wrong for the whole of the second day
    assert rules._latest_share(whole, course) == pytest.approx(0.5)  # as wrong as the step before the second day
    whole[DAY - 1, 0] = 3.0
    assert rules._latest_share(whole, course) == 1.0


# ---- the next rebalance ----------------------------------------------------------------------------------------------


def test_restarts_are_expected_at_their_time_of_day() -> None:
    hour = 3_600 * SECOND
    nights = [d * 24 * hour + h * hour for d in range(3) for h in (2, 3)]
    at_nine = record(np.ones((2 * 144 + 54, 7)), rebalances=[t for t in nights if t <= 57 * hour])
    assert set(times_between(at_nine)) == {86_400, 17 * 3_600}
    assert expected(at_nine).lasting[[0, 33, 34, 47]].tolist() == [1, 1, 1 / 9, 1 / 9]


@given(st.lists(st.integers(0, 400), max_size=12, unique=True), st.integers(1, 400))
def test_the_chance_that_a_plan_lasts_falls_with_time(changes: list[int], count: int) -> None:
    of = record(np.ones((count, 7)), rebalances=[600 * SECOND * c for c in sorted(changes) if c <= count])
    lasting = expected(of).lasting
    assert lasting[0] == 1
    assert (np.diff(lasting) <= 0).all()
    assert lasting[-1] > 0  # restarts once a day are always thought of


# ---- what a forecast may not depend on -------------------------------------------------------------------------------


@st.composite
def hostile(draw: Any) -> Record:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, size = draw(st.integers(1, 300)), draw(st.integers(1, 7))
    produced = np.floor(rng.lognormal(rng.uniform(-3, 12), rng.uniform(0, 4), (count, size)))
    produced[rng.random((count, size)) < draw(st.sampled_from([0, 0.1, 0.9, 1]))] = np.nan
    produced[:, rng.random(size) < draw(st.sampled_from([0, 0.3]))] *= draw(st.sampled_from([0, np.nan]))
    gaps = rng.choice([1, 60, 600, 7_200, 90_000], count + 1) * SECOND
    times = np.cumsum(gaps)
    return Record(
        times, produced, np.sort(rng.integers(0, 3, size)).astype(np.int32), times[rng.random(count + 1) < 0.2]
    )


@settings(max_examples=cases(150))
@given(hostile())
def test_every_record_gives_finite_rates_or_none(of: Record) -> None:
    found = forecast(of)
    if found is None:
        assert np.isnan(of.produced).all()
        return
    assert np.isfinite(found.rates).all()
    assert found.rates.min() >= 0
    size = of.produced.shape[1]
    lags = np.random.default_rng(0).integers(0, 1000, size)
    for capacity in (None, 0.0, 100.0, 1e12):
        several = scenarios(found, lags, of.topic_of, 3, capacity)
        assert len(several) <= MOST_SCENARIOS
        for weight, vector in several:
            assert weight > 0
            assert (vector.shape, vector.dtype) == ((size,), np.int64)
            assert 0 <= vector.min() <= vector.max() <= MAX_LAG
            assert vector.any()


@settings(max_examples=cases(40))
@given(hostile(), st.sampled_from([0.25, 2.0, 1024.0]))
def test_messages_have_no_unit(of: Record, times: float) -> None:
    found, other = forecast(of), forecast(replace(of, produced=of.produced * times))
    assert (found is None) == (other is None)
    if found is not None and other is not None:
        assert np.allclose(found.rates * times, other.rates, rtol=1e-9, atol=1e-9)
        assert (found.lasting == other.lasting).all()
        assert found.latest_share == pytest.approx(other.latest_share, abs=1e-6)


@settings(max_examples=cases(40))
@given(hostile(), st.integers(0, 2**32))
def test_the_order_of_partitions_does_not_matter(of: Record, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(of.produced.shape[1])
    found = forecast(of)
    other = forecast(replace(of, produced=of.produced[:, order], topic_of=of.topic_of[order]))
    assert (found is None) == (other is None)
    if found is not None and other is not None:
        assert np.allclose(found.rates[:, order], other.rates, rtol=1e-6, atol=1e-6)
        assert found.latest_share == pytest.approx(other.latest_share, abs=1e-6)


def merged_one_by_one(weighted: list[tuple[float, Any]]) -> list[tuple[float, Any]]:
    """Merge the pair of least cost, of all pairs, until few enough are left; the merged one comes last."""
    while len(weighted) > MOST_SCENARIOS:
        best = min(combinations(range(len(weighted)), 2), key=lambda pair: cost(weighted, *pair))
        (v, one), (w, other) = (weighted[place] for place in best)
        rest = [each for place, each in enumerate(weighted) if place not in best]
        weighted = [*rest, (v + w, (v * one + w * other) / (v + w))]
    return weighted


def cost(weighted: list[tuple[float, Any]], i: int, j: int) -> float:
    (v, one), (w, other) = weighted[i], weighted[j]
    lengths = float(np.linalg.norm(one)), float(np.linalg.norm(other))
    return (1 - float(one @ other) / (lengths[0] * lengths[1])) * min(v * lengths[0], w * lengths[1])


@pytest.mark.parametrize("seed", range(20))
def test_the_most_alike_scenarios_are_merged_first(seed: int) -> None:
    rng = np.random.default_rng(seed)
    axes = np.eye(26) * 8 if seed % 2 else rng.random((26, 26))  # one topic in each scenario, or random directions
    weighted = [(float(rng.integers(1, 3)) if seed % 2 else rng.random(), axis) for axis in axes]
    wanted = merged_one_by_one(weighted)
    found = rules._merged(weighted)
    assert [weight for weight, _ in found] == pytest.approx([weight for weight, _ in wanted])
    assert np.allclose([vector for _, vector in found], [vector for _, vector in wanted])


def test_a_thousand_topics_are_merged_without_comparing_all_pairs_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    count, compared = 1_000, []
    plain = rules._costs
    monkeypatch.setattr(rules, "_costs", lambda one, others, *rest: compared.append(len(others)) or plain(
        one, others, *rest))  # fmt: skip
    rng = np.random.default_rng(0)
    topic_of = np.arange(count, dtype=np.int32)
    times = np.array([0, 60]) * SECOND
    found = expected(Record(times, rng.integers(1, 100, (1, count)).astype(float), topic_of, np.zeros(0, np.int64)))
    assert len(scenarios(found, rng.integers(0, 1000, count), topic_of, 10)) == MOST_SCENARIOS
    assert sum(compared) < 10 * count**2  # of all pairs each time: count**3 / 6


def snapshots_of(rng: random.Random, count: int, every: int = 600) -> list[Snapshot]:
    """A group whose partitions and members come and go, with recreated logs and unknown offsets."""
    ends = {("a", 0): 0, ("a", 1): 50, ("b", 0): 7}
    members = ["m0", "m1"]
    found = []
    for n in range(count):
        if rng.random() < 0.1:
            ends["b", len(ends)] = 0
        if rng.random() < 0.1:
            members = [*members[1:], f"n{n}"]
        for key in ends:
            ends[key] = 0 if rng.random() < 0.02 else ends[key] + rng.randint(0, 900)
        lags = {t: {p: rng.randint(0, 99) for name, p in ends if name == t} for t in "ab"}
        problem = Problem.from_lags(lags, {m: ["a", "b"] for m in members})
        known = [None if rng.random() < 0.05 else ends[key] for key in problem.partitions]
        micros = n * every * SECOND
        offsets = [Offsets(micros, end, None if end is None else end // 2) for end in known]
        found.append(Snapshot(f"t{n}", micros, problem, offsets, np.zeros(len(known), np.int64)))
    return found


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.sampled_from([600, 4_000, 30_000]))
def test_the_forecast_ignores_later_snapshots(seed: int, every: int) -> None:
    rng = random.Random(seed)
    history = snapshots_of(rng, 60, every)
    now = rng.randrange(60)
    future = [
        replace(
            each,
            micros=each.micros + rng.randint(0, 100) * SECOND,
            offsets=other.offsets,
            problem=other.problem,
            log_starts=other.log_starts,
        )
        for each, other in zip(history[now + 1 :], snapshots_of(rng, 60, every)[now + 1 :], strict=True)
    ]
    histories = [history, [*history[: now + 1], *future], [*history[: now + 1], *future[:1]]]
    found = []
    for each in histories:
        if len(each) > max(now, 1):
            foresight = Foresight(list(intervals(each)))
            several = foresight.scenarios(history[now].problem, now)
            found.append((foresight.basis, [(weight, lags.tolist()) for weight, lags in several]))
    assert all(each == found[0] for each in found)
