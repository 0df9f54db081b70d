"""A replay in plain Python: dictionaries and loops, message by message, sharing nothing with evenlag's own.

It knows groups whose members all subscribe to every topic and have weight 1 or 2, and gives, for each interval, lag per
partition and who reads it.
"""

from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Any

import pytest

Partition = tuple[str, int]


class Taken:
    """A snapshot: time in seconds; per partition (log start, log end, commit, owner); members with their weights."""

    def __init__(self, second: int, rows: dict[Partition, Any], members: dict[str, int]) -> None:
        self.second, self.rows, self.members = second, rows, members

    def lag(self, partition: Partition) -> int:
        start, end, commit, _ = self.rows[partition]
        return end - max(start, commit) if commit <= end else 0


def simulate(
    history: list[Taken], assign: Any, capacity: Fraction, horizon: int, above: Fraction | None, pause: int = 0
) -> list[Any]:
    """`assign(lags, owners, members)` -> owners by partition; None follows the record. A dictionary per interval."""
    first = history[0]
    lag = {p: first.lag(p) for p in first.rows}
    owner = {p: first.rows[p][3] for p in first.rows if first.rows[p][3] in first.members}
    done = []
    paused: dict[Partition, int] = {}
    for n, (now, then) in enumerate(pairwise(history)):
        before = dict(owner)
        seen = dict(lag)
        for p in lag if horizon and n > 0 else ():
            earlier = [h for h in history[:n] if p in h.rows and h is history[n - 1]]
            if earlier and now.rows[p][1] >= earlier[-1].rows[p][1]:
                produced = now.rows[p][1] - earlier[-1].rows[p][1]
                ahead = Fraction(produced * horizon, now.second - earlier[-1].second)
                seen[p] += -(-ahead.numerator // ahead.denominator)
        last = history[n - 1]
        reason = None
        if n == 0:
            reason = "start"
        elif last.members != now.members or last.rows.keys() != now.rows.keys():
            reason = "membership"
        elif above is not None:
            loads = by_weight(seen, owner, now.members)
            total = Fraction(sum(seen.values()), len(now.members))
            if max(loads) - min(loads) > above * total:
                reason = "threshold"
        if assign is None:
            owner = {p: row[3] for p, row in now.rows.items() if row[3] in now.members}
            reason = "recorded" if owner != before else None
        elif reason is not None:
            owner = assign(seen, before, now.members)
        step = {
            "rebalance": reason,
            "moves": sum(owner.get(p) != m for p, m in before.items()),
            "forced_moves": sum(p not in before for p in owner) if reason else 0,
            "lag_before": sum(lag.values()),
            "produced": 0, "consumed": 0, "expired": 0, "restated": 0,
        }  # fmt: skip
        steady: dict[Partition, int] = {}
        for p in list(lag):
            if p not in then.rows:
                steady[p] = 0
            elif then.rows[p][1] >= now.rows[p][1] and then.rows[p][2] >= now.rows[p][2]:
                steady[p] = then.rows[p][1] - now.rows[p][1]
            else:
                step["restated"] += then.lag(p) - lag[p]
                lag[p] = then.lag(p)
        for p, produced in steady.items():
            lag[p] += produced
            step["produced"] += produced
        paused = {p: end for p, end in paused.items() if p in now.rows}
        paused |= {p: now.second + pause for p, m in before.items() if owner.get(p) != m}
        resumed = sorted({end for end in paused.values() if now.second < end < then.second})
        for m, weight in now.members.items():
            for begin, end in pairwise([now.second, *resumed, then.second]):
                since, until = (capacity * weight * (second - first.second) for second in (begin, end))
                polls = until.__floor__() - since.__floor__()
                mine = sorted(p for p in steady if owner.get(p) == m and paused.get(p, 0) <= begin)
                while polls and any(lag[p] for p in mine):
                    for p in mine:
                        if polls and lag[p]:
                            lag[p] -= 1
                            polls -= 1
                            step["consumed"] += 1
        for p in steady:
            if p in then.rows:
                kept = min(lag[p], then.rows[p][1] - then.rows[p][0])
                step["expired"] += lag[p] - kept
                lag[p] = kept
        loads = by_weight(lag, owner, now.members)
        step |= {"lag": sum(lag.values()), "spread": max(loads) - min(loads), "makespan": max(loads)}
        step["seconds"] = then.second - now.second
        done.append(step)
        lag = {p: lag[p] if p in lag else then.lag(p) for p in then.rows}
        owner = {p: m for p, m in owner.items() if p in then.rows and m in then.members}
    return done


def by_weight(lag: dict[Partition, int], owner: dict[Partition, str], members: dict[str, int]) -> list[Fraction]:
    """Messages per member over its weight, weights being 1 on average."""
    mean = Fraction(sum(members.values()), len(members))
    held = {m: sum(lag[p] for p in lag if owner.get(p) == m) for m in members}
    return [held[m] * mean / weight for m, weight in members.items()]


def foreseen(history: list[Taken], lag: dict[Partition, int], capacity: float) -> list[tuple[Fraction, dict[Any, int]]]:
    """What a plan is for under horizon `auto`, where the record up to now is shorter than half an hour.

    Rates are means then, no course is known, and the windows that count all begin now. Scenarios are not merged.
    """
    produced, seconds = dict.fromkeys(lag, 0), dict.fromkeys(lag, 0)
    gaps, changed = [86_400], history[0].second
    for then, now in pairwise(history):
        if then.members != now.members or then.rows.keys() != now.rows.keys():
            gaps.append(now.second - changed)
            changed = now.second
        for p in lag:
            if p in then.rows and p in now.rows:
                grown, committed = (now.rows[p][n] - then.rows[p][n] for n in (1, 2))
                if grown >= 0 and committed >= 0:
                    produced[p] += grown
                    seconds[p] += now.second - then.second
    if not any(seconds.values()):
        return []
    rates = {p: produced[p] / seconds[p] for p in lag if seconds[p]}
    for p in lag:
        others = [rates[q] for q in lag if q[0] == p[0] and seconds[q]]
        rates.setdefault(p, median(others) if others else 0.0)
    step, total = 1_800, sum(rates.values())
    lasting = [sum(gap > step * k for gap in gaps) / len(gaps) for k in range(48)]
    found = [(0.5, dict(lag))]
    readable = capacity * sum(history[-1].members.values()) * step
    for more in (0.1, 0.3, 1.0):
        behind, ends = float(max(sum(lag.values()), len(history[-1].members) * max(lag.values()))), []
        for k in range(48):
            behind += step * total - readable / (1 + more)
            if behind <= 0:  # a steady flow that is caught up with never gets ahead again
                break
            ends += [k] if lasting[k] else []
        parts = min(3, len(ends))
        sizes = [len(ends) // parts + (n < len(ends) % parts) for n in range(parts)]
        for size in sizes:
            part, ends = ends[:size], ends[size:]
            weight = sum(lasting[k] for k in part)
            time = sum(lasting[k] * (k + 1) * step for k in part) / weight
            found.append((weight / 3, {p: lag[p] + rates[p] * time for p in lag}))
    whole = sum(weight for weight, _ in found)
    size = sum(weight * sum(lags.values()) for weight, lags in found) / whole or total * step
    topics = sorted({p[0] for p in lag if rates[p]})
    for topic in topics:
        of_topic = sum(rates[p] for p in lag if p[0] == topic)
        alone = {p: rates[p] * size / of_topic if p[0] == topic else 0.0 for p in lag}
        found.append((whole / 1e-3 / len(topics), alone))
    if total:
        whole = sum(weight for weight, _ in found)
        latest = {p: lag[p] + rates[p] * 3_600 for p in lag}
        scale = sum(weight * sum(lags.values()) for weight, lags in found) / whole / sum(latest.values())
        found.append((whole, {p: messages * scale for p, messages in latest.items()}))  # half of all weight
    rounded = [(Fraction(round(w * 1_000), 1_000), {p: round(v) for p, v in lags.items()}) for w, lags in found]
    return [(weight, lags) for weight, lags in rounded if weight and any(lags.values())]


def assert_same_scenarios(
    found: list[tuple[Fraction, dict[Any, int]]], expected: list[tuple[Fraction, dict[Any, int]]]
) -> None:
    """Compare the scenarios of a plan with those of `foreseen`; if these are more than 12, the plan's are merged."""
    if len(expected) <= 12:
        assert [weight for weight, _ in found] == [weight for weight, _ in expected]
        for (_, of_plan), (_, of_python) in zip(found, expected, strict=True):
            assert of_plan == pytest.approx(of_python, abs=1)
        return
    assert len(found) == 12
    total = float(sum(weight for weight, _ in expected))
    assert float(sum(weight for weight, _ in found)) == pytest.approx(total, abs=0.01)
    means = [
        {p: sum(float(weight) * lags[p] for weight, lags in several) / total for p in expected[0][1]}
        for several in (found, expected)
    ]
    assert means[0] == pytest.approx(means[1], rel=1e-3, abs=1)
