"""kᵢ-partitioning: instances, the other solvers against every plan, and the checks that stop the table."""

from itertools import product

import pytest

from benchmarks import k_partitioning as table
from benchmarks.k_partitioning import SPREADS, WEIGHTS, Instance, WrongProofError, attempt, cp_sat, drawn, lpt
from benchmarks.pcmax import group

SMALL = Instance(WEIGHTS[0], 1, (9, 8, 7, 3, 2, 2), (1, 2, 4))


def best(instance: Instance) -> int:
    """Return the least makespan of all plans within the limits."""
    members = range(len(instance.most))
    plans = [
        [[weight for weight, to in zip(instance.items, plan, strict=True) if to == m] for m in members]
        for plan in product(members, repeat=len(instance.items))
    ]
    kept = [plan for plan in plans if all(len(plan[m]) <= instance.most[m] for m in members)]
    return min(max(map(sum, plan)) for plan in kept)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("spread", SPREADS)
def test_limits_hold_all_items_and_weights_are_in_their_range(weights: table.Weights, spread: int) -> None:
    instance = drawn(weights, spread, 25, 10, 0)
    assert instance == drawn(weights, spread, 25, 10, 0) != drawn(weights, spread, 25, 10, 1)
    assert (len(instance.items), len(instance.most)) == (25, 10)
    assert min(instance.items) >= (weights[1] if weights[0] == "uniform" else 1)
    assert sum(instance.most) >= 25
    assert all(max(3 - spread, 1) <= most <= 3 + spread for most in instance.most)


@pytest.mark.parametrize("instance", [SMALL, drawn(WEIGHTS[0], 1, 7, 3, 0), drawn(WEIGHTS[8], 3, 7, 3, 2)])
def test_each_solver_is_checked_against_all_plans(instance: Instance) -> None:
    least, outcome = best(instance), attempt(instance)
    assert (outcome.makespan, outcome.bound, outcome.verified, outcome.proven) == (least, least, True, True)
    assert cp_sat(instance) == (least, True)
    assert outcome.lpt >= least


def test_the_greedy_rule_goes_on_to_the_next_member_if_one_is_full() -> None:
    assert lpt(SMALL) == 12  # 9; 8 and 2; 7, 3 and 2
    assert lpt(Instance(WEIGHTS[0], 1, (9, 1, 1, 1), (4, 1))) == 11


def test_a_plan_beyond_a_limit_stops_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "group", lambda items, members, _limits: group(items, members))
    with pytest.raises(WrongProofError, match="member 0 holds 2 items, its limit is 1"):
        attempt(Instance(WEIGHTS[0], 1, (9, 8, 7, 3, 2, 2), (1, 1, 6)))


def test_a_plan_below_the_bound_stops_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "lpt", lambda _: best(SMALL) - 1)
    with pytest.raises(WrongProofError, match=r"another plan is below the bound"):
        attempt(SMALL)


def test_large_models_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MOST_BOOLEANS", 17)
    assert cp_sat(SMALL) == (None, False)
    assert table.tally("all", [attempt(SMALL)]).split(" | ")[7:9] == ["0", "–"]


def test_the_table_has_a_row_for_each_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "SIZES", ((6, 3), (7, 3)))
    monkeypatch.setattr(table, "WEIGHTS", WEIGHTS[::8])
    lines = list(table.k_partitioning(0))
    rows = [line.split(" | ")[:3] for line in lines if line.startswith("| ") and "instances" not in line]
    assert rows == [
        ["| 6 × 3", "6", "6"],
        ["| 7 × 3", "6", "6"],
        ["| all", "12", "12"],
        ["| uniform, 10 to 1,000", "6", "6"],
        ["| normal, mean 100, standard deviation 100", "6", "6"],
        ["| ⌈n/m⌉", "4", "4"],
        ["| ⌈n/m⌉ ± 1", "4", "4"],
        ["| ⌈n/m⌉ ± 3", "4", "4"],
    ]
