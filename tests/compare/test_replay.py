import random
from collections.abc import Callable
from dataclasses import replace as changed
from fractions import Fraction
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from evenlag.compare import replay, simulation
from evenlag.compare.history import estimate_capacity, intervals
from evenlag.compare.replay_result import RECORDED, Replay, ReplaySummary
from evenlag.compare.simulation import STRATEGIES
from evenlag.errors import InvalidProblemError
from evenlag.heuristics import HEURISTICS
from evenlag.model.from_rows import Member
from evenlag.model.problem import Problem
from evenlag.report.replay_text import replay_report
from evenlag.search.solver import search
from evenlag.tables.group import GroupRows
from evenlag.tables.past import snapshots
from tests.support.problems import cases
from tests.support.replays import Taken, assert_same_scenarios, by_weight, foreseen, simulate

FAST = ("range", "roundrobin", "lag-aware", "sticky", "fair", "swap-balance")


def group_rows(taken: Taken, group: str = "g", ts: str | None = None) -> GroupRows:
    names = sorted({topic for topic, _ in taken.rows})
    rows = list(taken.rows.items())
    minutes, seconds = divmod(taken.second, 60)
    return GroupRows(
        ts or f"2026-03-02T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}Z", group, tuple(names),
        np.array([names.index(topic) for (topic, _), _ in rows], dtype=np.int64),
        np.array([partition for (_, partition), _ in rows], dtype=np.int64),
        np.array([taken.lag(p) for p, _ in rows], dtype=np.int64),
        [row[3] for _, row in rows],
        members=tuple(Member(name, weight=float(weight)) for name, weight in sorted(taken.members.items())),
        offsets=np.array([row[:3] for _, row in rows], dtype=np.int64).reshape(-1, 3).T,
    ).in_order()  # fmt: skip


def snapshots_of(history: list[Taken]) -> Any:
    return snapshots([group_rows(taken) for taken in history])


def random_history(rng: random.Random, steps: int = 7, odd: bool = True) -> list[Taken]:
    """A small group: members join and leave, partitions appear, topics are recreated, commits go back, logs expire."""
    members = {f"m{n}": rng.choice([1, 1, 2]) for n in range(rng.randint(1, 4))}
    rows: dict[tuple[str, int], Any] = {}
    history: list[Taken] = []
    second = rng.randint(0, 50)
    partitions = [("a", p) for p in range(rng.randint(1, 4))] + [("b", p) for p in range(rng.randint(0, 3))]
    rates = {p: rng.choice([0, 3, 10, 40]) for p in partitions}
    for p in partitions:
        end = rng.randint(0, 90)
        rows[p] = (0, end, rng.randint(0, end), rng.choice([*members, None]))
    for _ in range(steps):
        history.append(Taken(second, dict(rows), dict(members)))
        second += rng.choice([1, 10, 10, 37])
        if odd and rng.random() < 0.3:
            if len(members) > 1 and rng.random() < 0.5:
                del members[rng.choice(list(members))]
            else:
                members[f"n{second}"] = rng.choice([1, 2])
        for p, (start, end, commit, owner) in list(rows.items()):
            end += rng.randint(0, rates[p] * 2)
            commit = min(end, commit + rng.randint(0, 60))
            what = rng.random() if odd else 1.0
            if what < 0.04:
                start, end, commit = 0, rng.randint(0, 20), 0
            elif what < 0.08:
                commit = rng.randint(start, commit) if commit > start else commit
            elif what < 0.14:
                start = rng.randint(start, end)
            owner = rng.choice([*members, owner if owner in members else None])
            rows[p] = (start, end, commit, owner)
        if odd and rng.random() < 0.15:
            p = ("b", 3 + len(history))
            rows[p], rates[p] = (0, 5, 0, None), 10
    return history


def plain_assigner(name: str) -> Callable[..., Any]:
    """Return a function that calls a heuristic on a new problem made from plain values."""

    def assign(lags: dict[Any, int], owners: dict[Any, str], members: dict[str, int]) -> dict[Any, str]:
        by_topic: dict[str, dict[int, int]] = {}
        for (topic, partition), lag in lags.items():
            by_topic.setdefault(topic, {})[partition] = lag
        owned: dict[str, list[Any]] = {}
        for p, m in owners.items():
            owned.setdefault(m, []).append(p)
        topics = {m: list(by_topic) for m in members}
        problem = Problem.from_lags(by_topic, topics, owned=owned, weights=members)
        return {p: m for m, held in HEURISTICS[name](problem).assignment.items() for p in held}

    return assign


# ---- against plain Python ------------------------------------------------------------------------------------------


def _no_better(found: Replay, keys: dict[str, tuple[Any, ...]]) -> None:
    """Check that the strategies that no other beats are marked, and that a tie has no best."""
    least = [name for name, key in keys.items() if key == min(keys.values())]
    assert found.tied == [row.strategy for row in found.summary if row.best] == least
    assert found.best == (least[0] if len(least) == 1 else None)


@pytest.mark.slow
@settings(max_examples=cases(60))
@given(
    st.integers(0, 2**32),
    st.sampled_from([0, 10, 90]),
    st.sampled_from([None, 0, 0.5]),
    st.sampled_from([0.05, 1.5, 4]),
    st.sampled_from([0, 7, 1000]),
)
def test_a_replay_equals_one_in_plain_python(
    seed: int, horizon: int, above: float | None, capacity: float, pause: int
) -> None:
    rng = random.Random(seed)
    history, limit = random_history(rng), rng.randint(0, 100)
    names = rng.sample(FAST, 3)
    found = replay(
        snapshots_of(history), strategies=names, horizon=horizon, rebalance_above=above, capacity=capacity,
        lag_limit=limit, stickiness=3, pause=pause,
    )  # fmt: skip
    threshold = None if above is None else Fraction(str(above))
    for row in found.summary:
        assign = None if row.strategy == RECORDED else plain_assigner(row.strategy)
        expected = simulate(history, assign, Fraction(str(capacity)), horizon, threshold, pause)
        steps = [step for step in found.steps if step.strategy == row.strategy]
        assert [{name: getattr(step, name) for name in expected[0]} for step in steps] == expected

        seconds = sum(step["seconds"] for step in expected)

        def mean(values: list[Any], expected: Any = expected, seconds: int = seconds) -> float:
            return float(sum(Fraction(s["seconds"]) * v for s, v in zip(expected, values, strict=True)) / seconds)

        assert row.rebalances == sum(step["rebalance"] is not None for step in expected)
        assert row.moves == sum(step["moves"] for step in expected)
        assert row.mean_spread == mean([step["spread"] for step in expected])
        assert row.cost == mean([step["spread"] + 3 * step["moves"] for step in expected])
        assert row.mean_lag == mean([step["lag"] for step in expected])
        assert row.seconds_above == sum(step["seconds"] for step in expected if step["makespan"] > limit)
        spent = sorted(v for step in expected for v in [step["spread"]] * step["seconds"])
        assert row.p99_spread == float(spent[-(-99 * len(spent) // 100) - 1])
    able = [row for row in found.summary if row.strategy != RECORDED]
    _no_better(found, {row.strategy: (row.seconds_above, row.cost, row.moves) for row in able})


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([0.05, 1.5, 4]))
def test_horizon_auto_plans_for_the_forecast_of_plain_python(seed: int, capacity: float) -> None:
    rng = random.Random(seed)
    history = random_history(rng)
    solved: list[Any] = []

    def watched(problem: Problem, *arguments: Any, **keywords: Any) -> Any:
        solved.append((problem, search(problem, *arguments, **keywords)))
        return solved[-1][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "search", watched)
        found = replay(snapshots_of(history), strategies=["range", "evenlag"], capacity=capacity, time_limit=0.05)
    steps = [step for step in found.steps if step.strategy == "evenlag"]
    plans = iter([(n, *each) for n, each in zip([n for n, s in enumerate(steps) if s.rebalance], solved, strict=True)])

    def assign(lags: dict[Any, int], *_owners_and_members: Any) -> dict[Any, str]:
        n, problem, result = next(plans)
        names = problem.partitions
        assert dict(zip(names, problem.lags.tolist(), strict=True)) == lags
        expected = foreseen(history[: n + 1], lags, capacity)
        several = zip(problem.scenario_weights, problem.scenario_lags.tolist(), strict=True)
        assert_same_scenarios([(weight, dict(zip(names, lags, strict=True))) for weight, lags in several], expected)
        return {p: m for m, held in result.assignment.items() for p in held}

    expected = simulate(history, assign, Fraction(str(capacity)), 0, None)
    assert [{name: getattr(step, name) for name in expected[0]} for step in steps] == expected
    assert any(note.startswith("horizon auto: each plan of evenlag") for note in found.notes)
    # The others see today's lag.
    other = replay(snapshots_of(history), strategies=["range"], capacity=capacity, horizon=0)
    assert other.steps == [step for step in found.steps if step.strategy != "evenlag"]


# ---- what holds of every replay ------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_messages_are_conserved_and_partitions_move_only_in_a_rebalance(seed: int) -> None:
    found = replay(
        snapshots_of(random_history(random.Random(seed))), strategies=FAST, capacity=2.5, rebalance_above=0.3
    )
    for step in found.steps:
        flows = step.produced - step.consumed - step.expired + step.restated
        assert step.lag - step.lag_before == flows
        assert min(step.lag, step.lag_before, step.produced, step.consumed, step.expired, step.spread) >= 0
        assert step.spread <= step.makespan
        if step.rebalance is None:
            assert (step.moves, step.forced_moves) == (0, 0)


@settings(max_examples=15)
@given(st.integers(0, 2**32))
def test_a_group_without_changes_is_assigned_once(seed: int) -> None:
    found = replay(snapshots_of(random_history(random.Random(seed), odd=False)), strategies=FAST, capacity=1)
    for row in found.summary:
        if row.strategy != RECORDED:
            steps = [step for step in found.steps if step.strategy == row.strategy]
            assert row.rebalances == 1
            assert sum(step.moves + step.forced_moves for step in steps[1:]) == 0


@settings(max_examples=15)
@given(st.integers(0, 2**32))
def test_members_that_read_faster_leave_no_more_lag(seed: int) -> None:
    history = snapshots_of(random_history(random.Random(seed)))
    lags = [[s.lag for s in replay(history, strategies=["range"], capacity=c).steps] for c in (0.1, 1, 10)]
    assert all(slow >= fast for a, b in pairwise(lags) for slow, fast in zip(a, b, strict=True))


def steady_history(seconds: int = 6, **rates: int) -> list[Taken]:
    """Return a history in which each member reads one partition at its rate; 100 messages a second arrive in each."""
    history = []
    for n in range(seconds):
        rows = {("t", p): (0, 1000 + 100 * n, min(r * n, 1000 + 100 * n), m) for p, (m, r) in enumerate(rates.items())}
        history.append(Taken(n, rows, dict.fromkeys(rates, 1)))
    return history


def test_the_recorded_assignment_replayed_gives_the_recorded_lags() -> None:
    found = replay(snapshots_of(steady_history(a=90, b=90, c=90)), strategies=["range"])
    assert (found.capacity.rate, found.capacity.source, found.capacity.cases) == (90, "backlog", 15)
    assert found.summary[0].mean_lag == found.recorded_lag == 3 * (1000 + 10 * 3)


def test_capacity_is_the_median_of_members_with_a_backlog() -> None:
    assert estimate_capacity(list(intervals(snapshots_of(steady_history(a=80, b=90, c=120))))).rate == 90
    # Without a backlog that lasts, what they are seen to read is the least that they can.
    history = steady_history(a=100, b=100)
    kept_up = [Taken(t.second, {p: (0, r[1], r[1], r[3]) for p, r in t.rows.items()}, t.members) for t in history]
    found = estimate_capacity(list(intervals(snapshots_of(kept_up))))
    assert (found.rate, found.source) == (100, "highest")
    # By weight: twice the weight, twice the rate.
    heavy = [Taken(t.second, t.rows, {"a": 2, "b": 1}) for t in steady_history(a=180, b=90)]
    assert estimate_capacity(list(intervals(snapshots_of(heavy)))).rate == 90


def test_a_record_without_readers_is_an_error_that_asks_for_capacity() -> None:
    history = snapshots_of(steady_history(a=0, b=0))
    with pytest.raises(InvalidProblemError, match="give capacity"):
        replay(history)
    assert replay(history, strategies=["range"], capacity=1).capacity.source == "given"


def test_a_horizon_balances_predicted_lags() -> None:
    # Today's lags, 100 and 100 beside 90 and 110, are even; what comes in is not: all of it to the first two.
    lags = (100, 100, 90, 110)
    rows = [
        Taken(n, {("t", p): (0, lag + 10 * n * (p < 2), 0, "aabb"[p]) for p, lag in enumerate(lags)}, {"a": 1, "b": 1})
        for n in range(3)
    ]
    spreads = {}
    for horizon in (0, "1s"):
        found = replay(snapshots_of(rows), strategies=["evenlag"], horizon=horizon, capacity=0.1, rebalance_above=0)
        spreads[horizon] = found.steps[-1].spread
    assert spreads["1s"] < spreads[0]


@pytest.mark.parametrize(("slack", "spread"), [(0, 99), (1, 97)])
def test_slack_allows_counts_outside_their_range(slack: int, spread: int) -> None:
    lags = (100, 1, 1, 1)  # 101 beside 2; with three partitions in one hand 100 beside 3
    rows = {("t", p): (0, lag, 0, "aabb"[p]) for p, lag in enumerate(lags)}
    history = snapshots_of([Taken(n, rows, {"a": 1, "b": 1}) for n in (0, 1)])
    found = replay(history, strategies=["evenlag"], capacity=0.1, slack=slack, stickiness=0)
    assert found.steps[-1].spread == spread


# ---- the history ---------------------------------------------------------------------------------------------------


def test_the_owner_of_a_rejected_row_stays_a_member() -> None:
    def taken(minute: int, partitions: list[int], left_out: frozenset[str]) -> GroupRows:
        count = len(partitions)
        return GroupRows(
            f"2026-01-01T00:{minute:02}:00Z", "g", ("t",), np.zeros(count, dtype=int), np.array(partitions),
            np.full(count, 5), ["a"] * count, offsets=np.full((3, count), 9), left_out=left_out,
        )  # fmt: skip

    nobody = frozenset[str]()
    expected = snapshots([taken(0, [0, 1], nobody), taken(10, [0], frozenset({"b"})), taken(20, [0, 1], nobody)])
    assert [snapshot.problem.members for snapshot in expected] == [("a",), ("a", "b"), ("a",)]
    assert [len(snapshot.problem.lags) for snapshot in expected] == [2, 2, 2]


def test_a_lost_row_causes_no_rebalance_and_loses_no_messages() -> None:
    whole = steady_history(a=50, b=60)
    holed = [Taken(t.second, dict(t.rows), t.members) for t in whole]
    del holed[2].rows["t", 1]
    del holed[3].rows["t", 1]
    found, expected = (replay(snapshots_of(each), strategies=["roundrobin"], capacity=70) for each in (holed, whole))
    for row, other in zip(found.summary, expected.summary, strict=True):
        assert (row.rebalances, row.moves) == (other.rebalances, other.moves)
    for name in ("produced", "consumed"):
        assert sum(getattr(s, name) for s in found.steps) == sum(getattr(s, name) for s in expected.steps)
    # … but one that never comes back is gone.
    for taken in holed[2:]:
        taken.rows.pop(("t", 1), None)
    gone = replay(snapshots_of(holed), strategies=["roundrobin"], capacity=70)
    assert [s.rebalance for s in gone.steps if s.strategy == "roundrobin"] == ["start", None, "membership", None, None]


def test_snapshots_come_in_any_order() -> None:
    rows = [group_rows(taken) for taken in steady_history(a=50, b=60)]
    mixed = random.Random(0).sample(rows, len(rows))
    assert (
        replay(snapshots(mixed), strategies=["range"]).summary == replay(snapshots(rows), strategies=["range"]).summary
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "at least two snapshots of the group; there is none"),
        ([group_rows(steady_history(a=1)[0])], "at least two snapshots of the group; there is one"),
        (
            [group_rows(taken, ts="2026-03-02") for taken in steady_history(a=1)],
            "must increase, but 2026-03-02 follows",
        ),
        ([group_rows(taken, ts="yesterday") for taken in steady_history(a=1)], "not a time such as .*'yesterday'"),
        ([changed(group_rows(taken), snapshot_ts=None) for taken in steady_history(a=1)], "snapshot_ts is missing"),
        ([group_rows(t, group=f"g{t.second}") for t in steady_history(a=1)], "'g0' and 'g1'"),
        ([changed(group_rows(taken), offsets=None) for taken in steady_history(a=1)], "needs log_end_offset"),
    ],
)
def test_invalid_histories_are_refused(rows: list[GroupRows], message: str) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        replay(snapshots(rows))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategies": ["best"]}, "strategies must be one or more of .*'best'"),
        ({"strategies": []}, "strategies must be one or more of"),
        ({"strategies": "range"}, "strategies must be one or more of"),
        ({"horizon": "soon"}, "at most 365d, or auto, not 'soon'"),
        ({"lag_limit": -1}, "lag_limit must be a number >= 0"),
        ({"rebalance_above": float("nan")}, "rebalance_above must be a number >= 0"),
        ({"capacity": 0}, "capacity must be messages per second > 0"),
        ({"capacity": "fast"}, "capacity must be messages per second > 0"),
        ({"capacity": 2**63}, "> 0 and < 2.63, not 9223372036854775808"),
        ({"stickiness": "much"}, "stickiness must be"),
        ({"balance": "all"}, "balance"),
        ({"slack": -1}, "slack"),
    ],
)
def test_invalid_options_are_refused(options: Any, message: str) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        replay(snapshots_of(steady_history(a=50, b=60)), **options)


def test_a_strategy_that_fails_does_not_affect_the_others() -> None:
    """When `c` leaves, strategies that give `a` two of the three partitions break its cap."""
    rows = [group_rows(taken) for taken in steady_history(a=50, b=60, c=60)]
    members = tuple(Member(name, max_partitions=1) for name in "abc")
    rows = [changed(each, members=members, topics=("t",)) for each in rows]
    for each in rows[2:]:
        object.__setattr__(each, "members", (Member("a", max_partitions=1), Member("b", max_partitions=2)))
    found = replay(snapshots(rows), strategies=["range", "roundrobin", "evenlag"])
    errors = {row.strategy: str(row.error) for row in found.summary if row.error is not None}
    assert set(errors) == {"range", "roundrobin"}
    assert all(error.endswith("'a' has 2 partitions; its max_partitions is 1") for error in errors.values())
    assert found.best == "evenlag"


def test_a_tie_names_no_single_best() -> None:
    found = replay(snapshots_of(steady_history(a=50, b=60)), strategies=["range", "fair", "sticky", "uniform"])
    out = StringIO()
    Console(file=out, width=200).print(replay_report(found))
    shown = out.getvalue()
    assert (found.best, sorted(found.tied)) == (None, ["fair", "range", "sticky", "uniform"])
    assert shown.startswith(f"{', '.join(found.tied[:3])} and 1 more tie as the best in this replay: ")
    assert shown.count("← tied") == 4


def test_figures_that_read_the_same_are_not_compared() -> None:
    recorded = ReplaySummary(RECORDED, cost=1000.2, seconds_above=90_001.0)
    best = ReplaySummary("range", best=True, cost=1000.1, seconds_above=90_000.0)
    found = changed(replay(snapshots_of(steady_history(a=50)), strategies=["range"]), summary=[recorded, best])
    assert found.verdict.endswith(": a mean spread of 1,000 messages with moves paid, as recorded.")


@pytest.mark.parametrize(("since", "spread"), [(99, 0), (98, 50)])
def test_the_99th_percentile_of_the_spread_is_weighted_by_time(since: int, spread: int) -> None:
    """For the last seconds of a hundred the lags are 50 apart; for one of them that is 1 %, and not counted."""
    rows = [
        Taken(second, {("t", 0): (0, end, 0, "a"), ("t", 1): (0, 10, 0, "b")}, {"a": 1, "b": 1})
        for second, end in ((0, 10), (since, 10), (100, 60))
    ]
    found = replay(snapshots_of(rows), strategies=["range"], capacity=0.001).summary[1]
    assert (found.p99_spread, found.mean_spread) == (spread, 50 * (100 - since) / 100)


def test_all_partitions_may_be_new() -> None:
    whole = snapshots_of(steady_history(a=50, b=60))
    bare = [
        changed(each, problem=Problem.from_lags({}, ["a"], group="g"), offsets=[], log_starts=each.log_starts[:0])
        for each in whole
    ]
    lags = [step.lag for step in replay(whole[2:], strategies=["range"], capacity=40).steps if step.strategy == "range"]
    found = replay([*bare[:2], *whole[2:]], strategies=["range", "evenlag"], capacity=40)
    assert [step.lag for step in found.steps if step.strategy == "range"] == [0, 0, *lags]
    assert [row.error for row in found.summary] == [None, None, None]


def test_an_interval_without_members_is_left_out_of_means() -> None:
    history = steady_history(a=50, b=60)
    history[3].members = {}
    one = replay(snapshots_of(history), strategies=["range"])
    assert any(note.startswith("1 interval without an active member") for note in one.notes)
    history[2].members = {}
    found = replay(snapshots_of(history), strategies=["range"], lag_limit=0)
    assert [step.members for step in found.steps if step.strategy == "range"] == [2, 2, 0, 0, 2]
    assert any("2 intervals without an active member" in note for note in found.notes)
    assert found.summary[1].seconds_above == 3


def test_moves_come_first_with_fewest_moves() -> None:
    history = snapshots_of(random_history(random.Random(5)))
    found = replay(history, strategies=FAST, capacity=1, stickiness="fewest-moves")
    able = [row for row in found.summary if row.strategy != RECORDED]
    _no_better(found, {row.strategy: (row.moves, row.cost) for row in able})


def test_every_strategy_runs_and_deterministic_runs_agree() -> None:
    history = snapshots_of(random_history(random.Random(3), steps=4))
    runs: list[Replay] = [
        replay(history, capacity=1, deterministic=True, rebalance_above=0.2, time_limit=0.2, threads=1)
        for _ in range(2)
    ]
    assert [row.strategy for row in runs[0].summary] == [RECORDED, *STRATEGIES]
    assert not any(row.error for row in runs[0].summary)
    assert runs[0].steps == runs[1].steps


@pytest.mark.slow
def test_a_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from evenlag.report.replay_picture import draw_replay

    found = replay(snapshots_of(random_history(random.Random(1))), strategies=FAST, capacity=1, lag_limit=5)
    draw_replay(found, tmp_path / "replay.png")
    assert (tmp_path / "replay.png").read_bytes().startswith(b"\x89PNG")


def test_loads_by_weight_equal_those_of_the_model() -> None:
    assert by_weight({("t", 0): 6, ("t", 1): 6}, {("t", 0): "a", ("t", 1): "b"}, {"a": 2, "b": 1}) == [
        Fraction(9, 2),
        9,
    ]


def test_figures_beyond_the_precision_of_doubles_are_written(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    from evenlag.tables import write_replay

    end = 2**61 + 1
    history = [Taken(n, {("t", p): (0, end, n, "ab"[p]) for p in range(2)}, {"a": 1, "b": 1}) for n in range(3)]
    found = replay(snapshots_of(history), strategies=["range"], lag_limit=2.0**60)
    assert found.steps[0].lag == 2 * end - 2
    steps = parquet.read_table(write_replay(found, tmp_path, "parquet", overwrite=False)[1]).to_pylist()
    assert [row["lag"] for row in steps] == [float(step.lag) for step in found.steps]
    assert [row["seconds_above"] for row in map(vars, found.summary)] == [2, 2]
