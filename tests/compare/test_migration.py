"""Forecasts of a group on its way to KIP-848, its remarks and steps."""

import shlex
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

import numpy as np
import pytest

import evenlag
from evenlag import Problem
from evenlag.compare.migration import Migration, migrate
from evenlag.compare.migration_remarks import Online, Severity
from evenlag.compare.rolling import rolling
from evenlag.errors import InvalidProblemError
from evenlag.heuristics import HEURISTICS
from evenlag.heuristics.server_side import assign_in_broker
from evenlag.model.origin import Registration, told_by
from evenlag.model.problem import NOBODY
from tests.support.problems import random_document, seeds

EVERY = ("assignor", "dynamic", "session-timeout", "application")  # of a group of Kafka's own lazy assignors


def group(
    assignor: str | None = "cooperative-sticky", registration: Registration | None = None, **more: Any
) -> Problem:
    """A group of three members, in which `a` has far more to read."""
    owned = {"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)], "c": [("t", 4), ("t", 5)]}
    problem = Problem.from_lags(
        {"t": [900, 800, 30, 20, 10, 0]}, ["a", "b", "c"], owned=owned, assignor=assignor, group="billing", **more
    )
    registrations = dict.fromkeys(problem.members, registration) if registration else {}
    facts = problem.facts | told_by([*registrations.values()])
    return replace(problem, origin=replace(problem.origin, registrations=registrations, facts=facts))


def migrated(problem: Problem, **more: Any) -> Migration:
    return migrate(problem, time_limit=2.0, deterministic=True, **more)


def topics(found: Migration) -> list[str]:
    return [remark.topic for remark in found.remarks]


# ---- forecasts ---------------------------------------------------------------------------------------------------


def test_forecasts_are_those_of_the_assignors_themselves() -> None:
    problem = group()
    found = migrated(problem)
    assert [each.strategy for each in found.forecasts] == ["today", "cooperative-sticky", "uniform", "range", "evenlag"]
    plans = {each.strategy: each.plan.member_of.tolist() for each in found.forecasts}
    assert plans["today"] == problem.owner.tolist()
    assert plans["cooperative-sticky"] == HEURISTICS["cooperative-sticky"](problem).member_of.tolist()
    assert plans["uniform"] == assign_in_broker(problem, "uniform").member_of.tolist()
    assert plans["range"] == assign_in_broker(problem, "range").member_of.tolist()
    assert plans["evenlag"] == evenlag.solve(problem, deterministic=True, time_limit=2.0).plan.member_of.tolist()
    assert found.best.status == "OPTIMAL"


def test_two_members_with_a_partition_each_take_four_moves() -> None:
    """By hand: both partitions go to the other member when one leaves, and one comes back; the same once more."""
    problem = Problem.from_lags({"t": [5, 5]}, ["a", "b"], owned={"a": [("t", 0)], "b": [("t", 1)]})
    found = rolling(problem, "uniform", {})
    assert found is not None
    assert (found.moves, found.spread, found.makespan) == ((4, 4), (0, 0), (5, 5))


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_static_members_keep_what_they_have(assignor: Any) -> None:
    for seed in seeds(40):
        problem = Problem.from_dict(random_document(Random(seed), plain=True))
        found = rolling(problem, assignor, {name: f"host-{name}" for name in problem.members})
        today = evenlag.Plan(problem, problem.owner.copy())
        assert found is not None
        assert (found.draws, found.moves) == (1, (0, 0))
        assert found.spread == (today.spread, today.spread)


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_each_restart_of_a_dynamic_member_moves_at_least_what_it_holds(assignor: Any) -> None:
    """All that a member holds at its restart goes to others; with one member, to its next one."""
    for seed in seeds(30):
        problem = Problem.from_dict(random_document(Random(seed), plain=True))
        found = rolling(problem, assignor, {})
        assert found is not None
        assert found.moves[0] <= found.moves[1]
        assert found.spread[0] <= found.spread[1]
        if len(problem.members) == 1:
            assert found.moves == (int(problem.assignable.sum()),) * 2
        elif problem.equal_subscriptions and problem.assignable.any():
            fewest = int(problem.assignable.sum()) // len(problem.members)
            assert found.moves[0] >= 2 * fewest * (len(problem.members) - 1)


def test_the_spreads_after_restarts_are_a_range() -> None:
    (uniform,) = (each for each in migrated(group()).forecasts if each.rolling and each.rolling.spread[0] == 890)
    assert (uniform.spread(restarted=True), uniform.spread(restarted=False)) == ("890 to 1,680", "1,690")


@pytest.mark.slow
def test_the_ids_of_restarts_are_drawn_by_the_seed() -> None:
    problem = Problem.from_lags({"t": [2**i for i in range(30)]}, [f"c{i}" for i in range(12)])
    one, same, *others = (rolling(problem, "uniform", {}, seed=seed) for seed in (1, 1, 2, 3, 4))
    assert one == same
    assert one is not None
    assert one.spread[0] < one.spread[1]
    assert any(other != one for other in others)


def test_a_large_group_has_no_rolling_forecast() -> None:
    lags = {"t": np.zeros(60_000, dtype=np.int64)}
    assert rolling(Problem.from_lags(lags, [f"c{i}" for i in range(100)]), "uniform", {}) is None


def test_uniform_keeps_a_plan_with_even_counts_and_moves_others() -> None:
    even = migrated(group())
    assert even.kept == 0
    uneven = migrated(group(), balance="none")
    owned = replace(uneven.problem, owner=uneven.best.plan.member_of.copy())
    assert uneven.kept == assign_in_broker(owned).moves > 0


def test_a_group_without_members_has_neither_forecast_of_restarts_nor_remarks() -> None:
    found = migrated(Problem.from_lags({"t": [1, 2]}, []))
    assert found.online is Online.NO_MEMBERS
    document = found.to_dict()
    assert {document["bound"], *(each["spread"] for each in document["forecasts"])} == {None}
    assert found.remarks == found.steps == ()
    assert all(each.rolling is None and each.counts is None for each in found.forecasts)
    assert (found.problem.owner == NOBODY).all()


# ---- remarks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assignor", "registration", "online", "expected"),
    [
        ("cooperative-sticky", None, "possible", (*EVERY[:-1], "user-data", EVERY[-1])),
        ("cooperative-sticky", Registration("classic", None, None, 9), "refused", ("user-data", *EVERY)),
        ("range", None, "possible", ("assignor", "eager", "dynamic", "session-timeout", "application")),
        ("cooperative-sticky", Registration("classic", "host"), "possible",
         ("assignor", "static", "session-timeout", "user-data", "application")),
        ("evenlag", None, "possible", ("assignor", "plans", "enforce-rebalance", "dynamic", "session-timeout")),
        ("evenlag-plan", Registration("classic", None, None, 0), "possible",
         ("assignor", "plans", "enforce-rebalance", "dynamic", "session-timeout")),
        ("of-our-own", None, "unknown", ("assignor", "dynamic", "session-timeout", "user-data", "application")),
        ("of-our-own", Registration("classic", None, None, 0), "possible", EVERY),
        ("of-our-own", Registration("classic", None, None, 12), "refused", ("user-data", *EVERY)),
        ("stream", None, "refused", ("streams", "dynamic", "session-timeout", "application")),
        ("range", Registration("classic", None, "orders-.*"), "possible",
         ("assignor", "eager", "dynamic", "regex", "session-timeout", "application")),
        (None, None, "unknown", ("dynamic", "session-timeout", "user-data", "application")),
        ("uniform", Registration("consumer"), "done", ()),
        (None, Registration("follow"), "not-kafkas", ()),
    ],
)  # fmt: skip
def test_remarks_are_those_that_apply(
    assignor: str | None, registration: Registration | None, online: str, expected: tuple[str, ...]
) -> None:
    found = migrated(group(assignor, registration))
    assert found.online == online
    assert tuple(topics(found)) == expected
    assert bool(found.steps) == (online != "not-kafkas" and assignor != "stream")
    order = [list(Severity).index(remark.severity) for remark in found.remarks]
    assert order == sorted(order)


def test_cooperative_sticky_of_librdkafka_goes_to_range_first() -> None:
    """Its assignments have user data from the second rebalance on; a group that has just formed has none yet."""
    tails = [f"rdkafka-{UUID(int=number)}" for number in range(3)]
    data = {"owned": {tails[0]: [("t", 0)]}, "assignor": "cooperative-sticky"}
    found = migrated(Problem.from_lags({"t": [5, 4, 3]}, tails, **data))
    assert (found.online, topics(found)[0]) == (Online.REFUSED, "user-data")
    assert "partition.assignment.strategy=range first" in found.remarks[0].action
    java = migrated(
        Problem.from_lags({"t": [5, 4, 3]}, [f"consumer-g-1-{UUID(int=1)}"], group="g", **data | {"owned": {}})
    )
    assert (java.online, "user-data" in topics(java)) == (Online.POSSIBLE, False)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_steps_say_how_a_plan_comes_into_force_after_the_upgrade(protocol: str) -> None:
    (step,) = (each for each in migrated(group(registration=Registration(protocol))).steps if "plan" in each.text)
    assert any("BrokerPlanAssignor" in line for line in step.lines)
    assert step.lines[-1].startswith("evenlag publish plan.json kafka://")


def test_weights_and_racks_are_remarked_with_figures() -> None:
    weights = migrated(group(weights={"a": 2}))
    assert "weights" in topics(weights)
    racks = {"a": "x", "b": "y", "c": "y"}
    found = migrated(group(racks=racks, partition_racks={"t": [["x"]] * 2 + [["y"]] * 4}))
    remark = next(remark for remark in found.remarks if remark.topic == "racks")
    assert "today 0, " in remark.text
    unaware = migrated(group("roundrobin", racks=racks, partition_racks={"t": [["x"]] * 6}))
    assert "racks" not in topics(unaware)


def test_steps_name_the_settings_and_keep_static_ids() -> None:
    lines = "\n".join(line for step in migrated(group(), assignor="range").steps for line in step.lines)
    assert "group.protocol=consumer" in lines
    assert "group.remote.assignor=range" in lines
    assert "--describe --group billing --state" in lines
    assert "group.instance.id" not in lines
    static = migrated(group(registration=Registration("classic", "host")))
    assert "group.instance.id" in "\n".join(line for step in static.steps for line in step.lines)


def test_commands_quote_the_group_for_the_shell() -> None:
    lines = [line for step in migrated(replace(group(), group="a b; ls")).steps for line in step.lines]
    named = [line for line in lines if "--group" in line]
    assert len(named) == 3
    assert all(shlex.split(line)[shlex.split(line).index("--group") + 1] == "a b; ls" for line in named)


def test_a_refused_group_is_stopped_first() -> None:
    steps = migrated(group("of-our-own", Registration("classic", None, None, 3))).steps
    assert "Stop all members" in steps[1].text


def test_instances_may_be_given_and_override_the_input() -> None:
    found = migrated(group(), instance_ids={name: name for name in "abc"})
    forecast = found.forecast("uniform")
    assert forecast is not None
    assert forecast.rolling is not None
    assert forecast.rolling.moves == (0, 0)
    assert "static" in topics(found)
    assert "dynamic" not in topics(found)


def test_wrong_parameters_are_named() -> None:
    with pytest.raises(InvalidProblemError, match="uniform2"):
        migrate(group(), assignor="uniform2")  # type: ignore[arg-type]
    with pytest.raises(InvalidProblemError, match="only_if_better"):
        migrate(group(), only_if_better="10%")
    with pytest.raises(TypeError, match="horizon"):
        migrate(group(), horizon="10m")  # type: ignore[call-arg]


def test_the_document_has_all_of_it() -> None:
    document = migrated(group()).to_dict()
    assert document["group"] == "billing"
    assert document["online_upgrade"] == "possible"
    uniform = document["forecasts"][2]
    assert uniform["strategy"] == "uniform"
    assert uniform["counts"] == [2, 2]
    assert uniform["rolling"]["draws"] == 20
    assert document["remarks"][0].keys() == {"topic", "severity", "text", "action"}
    assert document["steps"][0].keys() == {"text", "lines"}
