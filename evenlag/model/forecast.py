"""Forecast of a group's rates until its next rebalance, as scenarios for a plan that lasts until then.

docs/forecast.md describes the rules. Only data up to the record's last time is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evenlag.model.arrays import Bools, Index, Whole
from evenlag.model.lag import MAX_LAG
from evenlag.model.rates import SECOND

Table = NDArray[np.float64]
Scenario = tuple[Fraction, NDArray[np.int64]]

STEP = 1_800  # seconds per step, in the record and in the forecast
DAY = 86_400 // STEP  # steps per day
WEEK = 7 * DAY
DAYS_BACK = 7  # earlier days used for a daily course
WEEKS_BACK = 4  # earlier weeks used for a weekly course, in a record of two weeks or more
LAST = 6  # steps whose median serves as the rate if no course is known
RECENT = 12  # steps from which the current deviation from the course is taken
MOST_GROWN = 4.0  # largest plausible growth factor of a topic since an earlier day
FAR_OFF = 1.5  # deviation factor up to which the course is scaled; beyond it, a constant is added instead
BURST = 2.0  # factor relative to a partition's usual share beyond which a rate is treated as a burst
AHEAD = DAY  # steps covered by a forecast
BY_CLOCK = 4  # weight of each earlier day relative to the standing guess of one day
UNEVEN = (0.1, 0.3, 1.0)  # excess shares of a member for which critical windows are determined
PARTS = 3  # scenarios for each window in which a member falls behind
MOST_SCENARIOS = 12
LATEST = 0.5  # share of the latest rates in the weight of all scenarios, if no earlier day can be compared
LEAST_LATEST = 0.3  # the same, if the course predicted earlier days better
LATEST_SECONDS = 3_600  # time for which the latest rates are added to the current lags
DAYS_COMPARED = 3  # earlier days on which the course is compared with the rates just before them
_AT_ONCE = 1_000_000  # rates in memory at once while medians over days are taken
_LEAST = 1e-9  # share of the largest rate: replaces zero in divisions


@dataclass(frozen=True, eq=False)
class Record:
    """Messages that arrived in a group's partitions between consecutive snapshots.

    Attributes
    ----------
    times : int64 array (N,)
        Times of the snapshots in microseconds since the epoch, ascending.
    produced : float array (N - 1, P)
        Messages that arrived between two snapshots; NaN if unknown.
    topic_of : int32 array (P,)
        Topic index of each partition.
    rebalances : int64 array (R,)
        Times, in microseconds since the epoch, ascending, at which members or partitions were seen to have changed.
    watched : int or None
        Time from which on rebalances were seen; None: the first of `times`. Before it, only rates are known.
    """

    times: NDArray[np.int64]
    produced: Table
    topic_of: Index
    rebalances: NDArray[np.int64]
    watched: int | None = None

    def until(self, count: int) -> Record:
        """Return the record of the first `count` snapshots."""
        times = self.times[:count]
        past = self.rebalances[self.rebalances <= times[-1]]
        return replace(self, times=times, produced=self.produced[: count - 1], rebalances=past)

    @property
    def seconds(self) -> float:
        """Seconds from the first to the last snapshot."""
        return int(self.times[-1] - self.times[0]) / SECOND

    @property
    def watched_seconds(self) -> float:
        """Seconds until the last snapshot in which rebalances were seen."""
        first = self.times[0] if self.watched is None else max(self.times[0], self.watched)
        return max(int(self.times[-1] - first), 0) / SECOND


@dataclass(frozen=True, eq=False)
class Forecast:
    """Forecast from the record's last time on, in steps of `STEP` seconds.

    Attributes
    ----------
    rates : float array (K, P)
        Messages per second that arrive in each partition in each step.
    known : bool array (K,)
        True if the record covers this time of day, so that the rates follow a course.
    lasting : float array (K,)
        Probability that no rebalance has occurred by the beginning of each step; never increases.
    latest : float array (P,), optional
        Messages per second that arrived in each partition in the last step; None: they have no scenario.
    latest_share : float
        Share of the latest rates in the weight of all scenarios.
    compared : bool
        True if the share comes from a comparison on earlier days.
    """

    rates: Table
    known: Bools
    lasting: Table
    latest: Table | None = None
    latest_share: float = 0.0
    compared: bool = False


def forecast(record: Record) -> Forecast | None:
    """Return the forecast, or None if the record contains no rate."""
    if np.isnan(record.produced).all():
        return None
    times = np.array(times_between(record))
    lasting = np.array([np.mean(times > STEP * k) for k in range(AHEAD)])
    return _expected(record, lasting)


# ---- when the next rebalance comes -----------------------------------------------------------------------------------


def times_between(record: Record) -> list[float]:
    """Return equally likely guesses of the time until the next rebalance, in seconds.

    For each earlier day, the guess is the time from the same time of day to the first rebalance after it. During the
    first day, the guesses are the times between rebalances so far. One day is always among them, because restarts tend
    to come at a fixed time of day.

    Examples
    --------
    >>> hours = np.array([0, 5, 6, 30]) * 3_600 * SECOND
    >>> record = Record(hours, np.zeros((3, 1)), np.zeros(1, np.int32), hours[1:3])
    >>> [seconds / 3_600 for seconds in times_between(record.until(3))]
    [24.0, 5.0, 1.0]
    """
    now = int(record.times[-1])
    past = [(int(each) - now) / SECOND for each in record.rebalances]
    day = 86_400.0
    by_clock: list[float] = []
    for back in range(1, int(record.watched_seconds // day) + 1):
        by_clock += [each + back * day for each in past if each + back * day > 0][:1]
    if by_clock:
        return [day, *BY_CLOCK * by_clock]
    starts = [-record.watched_seconds, *past]
    return [day, *(after - before for before, after in pairwise(starts) if after > before)]


# ---- rates -----------------------------------------------------------------------------------------------------------


def _expected(record: Record, lasting: Table) -> Forecast:
    """Return the forecast of a record with at least one known rate."""
    seen = _in_steps(record)
    if np.isnan(seen).all():
        seconds = np.diff(record.times) / SECOND
        mean = _rate(np.nansum(record.produced, axis=0), seconds @ ~np.isnan(record.produced))
        rates = np.tile(_usual(mean[None, :], record.topic_of), (AHEAD, 1))
        return Forecast(rates, np.zeros(AHEAD, dtype=bool), lasting, rates[0], LATEST)
    usual = _usual(seen, record.topic_of)
    whole = np.where(np.isnan(seen), usual, seen)
    course = _smoothed(np.clip(whole, usual / BURST, usual * BURST))
    level = np.zeros_like(usual)
    for t in np.unique(record.topic_of):
        level[:, record.topic_of == t] = usual[:, record.topic_of == t].sum(axis=1, keepdims=True)
    rates = _same_time(course, level, range(AHEAD))
    known = ~np.isnan(rates[:, 0])
    late = min(DAYS_COMPARED * DAY, len(seen) - DAY)
    past = _same_time(course, level, range(-late, 0)) if late > 0 else rates[:0]
    recent = min(RECENT, late)
    if recent > 0:
        rates = _corrected(rates, whole[-recent:], past[-recent:])
    rates[~known] = np.median(usual[-LAST:], axis=0)
    share = _latest_share(whole, past)
    trusted = LATEST if share is None else max(LEAST_LATEST, share)
    return Forecast(rates, known, lasting, whole[-1], trusted, share is not None)


def _latest_share(whole: Table, past: Table) -> float | None:
    """Return the weight that the latest rates would have earned against the course, from 0 to 1; None if unknown.

    A day is compared from the current time of day on: the latest rates are then the rates of the step before. Each
    prediction is scaled to the messages that arrived in each step, and only their shares of partitions are compared.
    Weights are inversely proportional to the squared errors (Bates and Granger, 1969).

    Parameters
    ----------
    whole : float array (H, P)
        The rates of the record in each step.
    past : float array (L, P)
        The course's prediction for the last L steps; NaN if unknown.
    """
    steps = np.flatnonzero(~np.isnan(past[:, 0])) + len(whole) - len(past)
    before = len(whole) - DAY * -(-(len(whole) - steps) // DAY) - 1  # the step before each step's day
    steps, before = steps[before >= 0], before[before >= 0]
    came = whole[steps]
    errors = [
        float(((came - shares * came.sum(axis=1, keepdims=True)) ** 2).sum())
        for shares in (_shares(past[steps - len(whole)]), _shares(whole[before]))
    ]
    return errors[0] / sum(errors) if sum(errors) > _LEAST * float((came**2).sum()) else None


def _shares(rates: Table) -> Table:
    """Return each partition's share of the rates in each step."""
    total = rates.sum(axis=1, keepdims=True)
    shares: Table = np.divide(rates, total, out=np.zeros_like(rates), where=total > 0)
    return shares


def _in_steps(record: Record) -> Table:
    """Return messages per second in each whole step back from the last time, in order of time; shape (H, P)."""
    count = int(record.seconds // STEP)
    if not count:
        return np.empty((0, record.produced.shape[1]))
    seconds = np.diff(record.times) / SECOND
    known = ~np.isnan(record.produced)
    edges = record.times[-1] - STEP * SECOND * np.arange(count, -1, -1)
    place = np.clip(np.searchsorted(record.times, edges, side="right") - 1, 0, len(seconds) - 1)
    part = ((edges - record.times[place]) / SECOND / seconds[place])[:, None]

    def between(amounts: Table) -> Table:
        so_far = np.vstack([np.zeros((1, amounts.shape[1])), np.cumsum(amounts, axis=0)])
        return np.diff(so_far[place] + part * amounts[place], axis=0)

    return _rate(between(np.where(known, record.produced, 0.0)), between(known * seconds[:, None]), least=STEP / 2)


def _rate(messages: Table, seconds: Table, least: float = 0.0) -> Table:
    """Return messages per second; NaN if at most `least` seconds are known."""
    return np.where(seconds > least, messages / np.where(seconds > least, seconds, 1.0), np.nan)


def _usual(seen: Table, topic_of: Index) -> Table:
    """Return the rate of each partition in each step according to its usual share of its topic; shape (H, P).

    A topic's course and its partitions' shares are fitted by medians, so that bursts of some partitions at some times
    affect neither. A partition without a record is treated as the median partition of its topic. A topic without a
    record gets 0; at times without a record, it gets its median.
    """
    usual = np.zeros_like(seen)
    largest = float(np.nanmax(seen)) or 1.0
    for t in range(int(topic_of.max(initial=-1)) + 1):
        here = np.flatnonzero(topic_of == t)
        own = here[~np.isnan(seen[:, here]).all(axis=0)]
        if not len(own):
            continue
        rates = seen[:, own] / largest
        times = ~np.isnan(rates).all(axis=1)
        rates = rates[times]
        shares = mean = np.nanmean(rates, axis=0)
        for _ in range(4):
            shares = shares if shares.any() else mean  # the median is 0 if most rates are
            shares = np.maximum(shares / max(shares.sum(), _LEAST), _LEAST)
            course = np.maximum(_weighted_median(rates / shares, shares), _LEAST)
            shares = np.nanmedian(rates / course[:, None], axis=0)
        whole = np.full(len(seen), np.median(course))
        whole[times] = course
        of_all = np.full(len(here), np.median(shares))
        of_all[np.isin(here, own)] = shares
        usual[:, here] = largest * whole[:, None] * of_all
    return usual


def _weighted_median(values: Table, weights: Table) -> Table:
    """Return the weighted median of the known values in each row; shape (H,)."""
    order = np.argsort(values, axis=1, kind="stable")  # NaN last
    ranked = np.take_along_axis(values, order, axis=1)
    so_far = np.cumsum(np.where(np.isnan(ranked), 0.0, weights[order]), axis=1)
    place = (so_far >= so_far[:, -1:] * (0.5 - _LEAST)).argmax(axis=1)  # robust to the order of summation
    return np.take_along_axis(ranked, place[:, None], axis=1)[:, 0]


def _smoothed(table: Table) -> Table:
    """Return the median of each step and its neighbours."""
    if len(table) < 2:
        return table
    inner = np.median([table[:-2], table[1:-1], table[2:]], axis=0) if len(table) > 2 else table[:0]
    return np.vstack([table[:2].mean(axis=0), inner, table[-2:].mean(axis=0)])


def _same_time(course: Table, level: Table, steps: Sequence[int]) -> Table:
    """Return rates at the same time of earlier days for steps ahead (or back, < 0); (K, P), NaN if never recorded.

    An earlier day's rate is scaled by its topic's growth since then. The result is the median over the days (of two,
    their mean). In a record of two weeks or more, only the same weekdays count.
    """
    count = len(course)
    every, most = (WEEK, WEEKS_BACK) if count >= 2 * WEEK else (DAY, DAYS_BACK)
    backs = every * np.arange(1, most + 1)
    grown = np.array([_grown(level, int(back)) for back in backs])
    found = np.full((len(steps), course.shape[1]), np.nan)
    there = count + np.array(steps, dtype=np.int64)
    days = (there[:, None] >= backs).sum(axis=1)  # recorded at each step's time of day
    for n in np.unique(days[days > 0]).tolist():
        rows = np.flatnonzero(days == n)
        parts = min(1 + rows.size * n * course.shape[1] // _AT_ONCE, rows.size)
        for part in np.array_split(rows, parts):
            found[part] = np.median(course[there[part] - backs[:n, None]] * grown[:n, None, :], axis=0)
    return found


def _grown(level: Table, back: int) -> Table:
    """Return the ratio of the last day's level (or what is comparable) to that of `back` steps earlier; shape (P,)."""
    long = min(DAY, len(level) - back)
    if long < LAST:
        return np.ones(level.shape[1])
    before, now = level[-long - back : -back].sum(axis=0), level[-long:].sum(axis=0)
    ratio: Table = np.divide(now, before, out=np.ones_like(now), where=before > 0)
    return np.clip(ratio, 1 / MOST_GROWN, MOST_GROWN)


def _corrected(rates: Table, seen: Table, by_course: Table) -> Table:
    """Return the rates corrected by each partition's deviation from its course during the last steps."""
    off = np.median(seen - by_course, axis=0)
    expected = np.median(by_course, axis=0)
    ratio = np.divide(np.median(seen, axis=0), expected, out=np.full_like(expected, np.inf), where=expected > 0)
    grown = (ratio <= FAR_OFF) & (ratio >= 1 / FAR_OFF)
    return np.where(grown, rates * np.where(grown, ratio, 1.0), np.maximum(rates + off, 0.0))


# ---- scenarios -------------------------------------------------------------------------------------------------------


def scenarios(
    expected: Forecast, lags: NDArray[np.int64], topic_of: Index, members: int, capacity: float | None = None
) -> list[Scenario]:
    """Return the lag vectors that a plan should even out, with weights; empty if there is nothing to even out.

    For a member that reads up to its capacity c, the backlog is the maximum over all windows of what arrived minus
    what c can read. A plan that evens out arrivals in the critical windows therefore keeps all backlogs low. Critical
    windows are those of a member with an excess share, for each value of `UNEVEN`: they begin when it falls behind and
    end at each later step, weighted by the probability that the plan is still in force.

    Parameters
    ----------
    lags : int64 array (P,)
        Current lags.
    topic_of : int32 array (P,)
    members : int
        Number of members that share the partitions.
    capacity : float, optional
        Messages per second that the whole group reads; if None, the mean arrival rate.
    """
    arrivals = expected.rates * STEP
    total = arrivals.sum(axis=1)
    if capacity is None:
        capacity = float(total @ expected.lasting) / (STEP * float(expected.lasting.sum()))
    weighted = [(0.5, lags.astype(np.float64))]
    for more in UNEVEN:
        found = _windows(arrivals, expected.lasting, lags.astype(np.float64), members, capacity * STEP / (1 + more))
        weighted += [(weight / len(UNEVEN), vector) for weight, vector in found]
    weighted += _topics(expected, topic_of, weighted)
    weighted += _latest(expected, lags.astype(np.float64), weighted)
    merged = _merged([(weight, vector) for weight, vector in weighted if weight > 0 and vector.any()])
    rounded = [
        (Fraction(round(weight * 1_000), 1_000), np.minimum(np.rint(vector), MAX_LAG).astype(np.int64))
        for weight, vector in merged
    ]
    return [(weight, vector) for weight, vector in rounded if weight > 0 and vector.any()]


def _windows(arrivals: Table, lasting: Table, lags: Table, members: int, readable: float) -> list[tuple[float, Table]]:
    """Return arrivals from when an unlucky member falls behind until later steps, in `PARTS` parts per such period.

    The member has the larger of today's largest lag and its share of today's total: no partition can be divided.
    """
    behind, since = max(float(lags.sum()), members * float(lags.max(initial=0.0))), 0
    times: dict[int, list[int]] = {}
    for k, came in enumerate(arrivals.sum(axis=1).tolist()):
        behind = max(behind + came - readable, 0.0)
        if behind == 0:
            since = k + 1
        elif lasting[k] > 0:
            times.setdefault(since, []).append(k)
    so_far = np.cumsum(arrivals, axis=0)
    found = []
    for since, steps in times.items():
        before = so_far[since - 1] if since else -lags
        for part in np.array_split(steps, min(PARTS, len(steps))):
            weights = lasting[part]
            found.append((float(weights.sum()), weights @ (so_far[part] - before) / weights.sum()))
    return found


def _topics(expected: Forecast, topic_of: Index, others: list[tuple[float, Table]]) -> list[tuple[float, Table]]:
    """Return a scenario for each topic, in proportion to the steps without a known course: it may peak at any time.

    Their weight relative to the other scenarios is that of the steps without a course relative to those with one. Their
    size is the mean size of the other scenarios.
    """
    share = float(expected.lasting @ ~expected.known) / float(expected.lasting.sum())
    rates = expected.rates.mean(axis=0)
    if share == 0 or not rates.any():
        return []
    each = [np.where(topic_of == t, rates, 0.0) for t in np.unique(topic_of[rates > 0])]
    weight = sum(weight for weight, _ in others)
    size = sum(weight * vector.sum() for weight, vector in others) / weight or float(rates.sum()) * STEP
    each_weight = weight * share / max(1 - share, 1e-3) / len(each)
    return [(each_weight, vector * (size / vector.sum())) for vector in each]


def _latest(
    expected: Forecast, lags: NDArray[np.int64], others: list[tuple[float, Table]]
) -> list[tuple[float, Table]]:
    """Return the scenario of the latest rates: the current lags and what arrives in an hour, as large as the others."""
    if expected.latest is None or not expected.latest.any():
        return []
    vector = lags + expected.latest * LATEST_SECONDS
    weight = sum(weight for weight, _ in others)
    size = sum(weight * vector.sum() for weight, vector in others) / weight or vector.sum()
    share = min(expected.latest_share, 0.99)
    return [(weight * share / (1 - share), vector * (size / vector.sum()))]


def _merged(weighted: list[tuple[float, Table]]) -> list[tuple[float, Table]]:
    """Return at most `MOST_SCENARIOS`, by merging those that differ least in direction, relative to their weights.

    Ties go to the first pair; a merged scenario comes last. Each scenario keeps the least cost of a pair with a later
    one, or a lower bound until that is needed: hundreds of topics have one each.
    """
    weights = np.array([weight for weight, _ in weighted])
    vectors = np.array([vector for _, vector in weighted])
    left = np.arange(len(weights))
    if len(left) <= MOST_SCENARIOS:
        return weighted
    dots = vectors @ vectors.T
    least, nearest, known = np.full(len(left), -np.inf), left.copy(), np.zeros(len(left), dtype=bool)
    least[-1] = np.inf  # none comes after the last one
    while len(left) > MOST_SCENARIOS:
        place = int(least[left].argmin())
        i, after = int(left[place]), left[place + 1 :]
        if not known[i]:
            costs = _costs(i, after, weights, dots)
            least[i], nearest[i], known[i] = costs.min(), after[costs.argmin()], True
            continue
        pair = np.array([i, nearest[i]])
        others = left[~np.isin(left, pair)]
        known[others[np.isin(nearest[others], pair)]] = False
        shares = weights[pair] / weights[pair].sum()
        vectors[i], dots[i] = shares @ vectors[pair], shares @ dots[pair]
        dots[i, i] = shares @ dots[i, pair]
        dots[:, i] = dots[i]
        weights[i], least[i], nearest[i] = weights[pair].sum(), np.inf, i
        costs = _costs(i, others, weights, dots)
        closer = costs < least[others]
        rows = others[closer]
        least[rows], nearest[rows], known[rows] = costs[closer], i, True
        left = np.append(others, i)
    return [(float(weights[row]), vectors[row]) for row in left.tolist()]


def _costs(one: int, others: Whole, weights: Table, dots: Table) -> Table:
    """Return the costs of merging a scenario with others: 1 − cosine, times the smaller of their weighted lengths."""
    length, lengths = np.sqrt(dots[one, one]), np.sqrt(dots[others, others])
    apart = 1 - dots[one, others] / (length * lengths)
    costs: Table = apart * np.minimum(weights[one] * length, weights[others] * lengths)
    return costs
