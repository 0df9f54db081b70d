"""Remarks on the gain of another built-in assignor, checked against the assignors' own answers."""

import pytest

import evenlag
from evenlag.compare.built_in import built_in, setting_notes
from evenlag.model.problem import Problem

TOPICS = {f"t{n:02}": [10 * n + 10, 7 * n + 5] for n in range(10)}


def owned_as(heuristic: str, members: int, **facts: object) -> Problem:
    """A group whose assignment today is the answer of an assignor."""
    names = [f"c{m:02}" for m in range(members)]
    fresh = Problem.from_lags(TOPICS, names)
    owned = evenlag.assign(fresh, heuristic).assignment  # type: ignore[arg-type]
    return Problem.from_lags(TOPICS, names, owned=owned, **facts)  # type: ignore[arg-type]


def test_range_that_leaves_members_idle_is_named_though_nobody_tells_it() -> None:
    problem = owned_as("range", 10)
    (note,) = setting_notes(problem)
    assert "is exactly what range gives, so this is assumed to be the assignor in use" in note
    assert "leaves 8 of 10 members without a partition" in note
    best = min(evenlag.assign(problem, name).spread for name in ("roundrobin", "sticky", "cooperative-sticky"))
    assert f" {best:,} (" in note
    assert note.endswith("change partition.assignment.strategy of the consumers")


def test_a_known_assignor_is_stated_and_not_assumed() -> None:
    (note,) = setting_notes(owned_as("range", 10, assignor="range"))
    assert note.startswith("range, which the group uses, leaves 8 of 10 members")
    assert "assumed" not in note


def test_a_kip_848_group_changes_the_setting_of_its_broker() -> None:
    (note,) = setting_notes(owned_as("range", 10, assignor="range", facts={"protocol": "consumer"}))
    assert "uniform gives" in note
    assert note.endswith("change group.remote.assignor of the consumers")


def test_an_assignor_that_raises_the_largest_load_is_not_proposed() -> None:
    owned = {"a": [("t", 0)], "b": [("t", 1), ("u", 0)], "c": [("u", 1)]}
    setting = built_in(Problem.from_lags({"t": [10, 60], "u": [10, 70]}, ["a", "b", "c"], owned=owned))
    assert setting is not None
    assert setting.others["range"].makespan == 130
    assert "range" not in setting.best
    assert all(setting.others[name].makespan <= 70 for name in setting.best)


def test_a_new_assignor_of_clients_begins_without_owners() -> None:
    owned = {"a": [("t00", 0), ("t01", 0), ("t02", 0)], "b": [("t00", 1), ("t01", 1), ("t02", 1)], "c": []}
    topics = {name: TOPICS[name] for name in ("t00", "t01", "t02")}
    setting = built_in(Problem.from_lags(topics, ["a", "b", "c"], owned=owned))
    fresh = evenlag.assign(Problem.from_lags(topics, ["a", "b", "c"]), "sticky")
    assert setting is not None
    assert setting.others["sticky"].assignment == fresh.assignment
    assert fresh.assignment != evenlag.assign(setting.problem, "sticky").assignment
    of_brokers = built_in(Problem.from_lags(topics, ["a", "b", "c"], owned=owned, facts={"protocol": "consumer"}))
    assert of_brokers is not None
    assert of_brokers.others["uniform"].assignment == evenlag.assign(of_brokers.problem, "uniform").assignment


@pytest.mark.parametrize(
    "problem",
    [
        owned_as("range", 2),  # nothing to gain
        owned_as("roundrobin", 10),
        owned_as("swap-balance", 10),  # no built-in assignor, and none is told
        owned_as("range", 10, assignor="stream"),
        owned_as("range", 10, facts={"protocol": "follow"}),
        Problem.from_lags(TOPICS, ["a", "b"]),  # no owners
        Problem.from_lags({}, []),
    ],
)
def test_other_groups_have_no_remark(problem: Problem) -> None:
    assert setting_notes(problem) == []
