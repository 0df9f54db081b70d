"""The assignor on a real broker: the group follows the solver, and settles on a baseline when something fails."""

from collections.abc import Mapping
from typing import Any

import pytest

import evenlag
from evenlag.heuristics import HEURISTICS
from evenlag.live.assignor.course import STANDS
from evenlag.model.balance import count_rule
from evenlag.model.check import violation
from evenlag.model.plan import Plan, current_plan
from tests.support.broker import Broker
from tests.support.members import SESSION_TIMEOUT, Members, members, wait_until
from tests.support.traffic import add_partitions, commit, create_topics, produce

BACKLOG = [9000, 10, 4000, 30, 2500, 20, 700, 1200, 5, 60, 3300, 90]
PATIENCE = 120.0  # seconds for a proof, which takes one where nothing else runs
PROTOCOLS = {"cooperative": True, "eager": False}


def create_skewed_topic(broker: Broker, topic: str, group: str) -> dict[tuple[str, int], int]:
    """Create a topic with a backlog and a few commits, and return its lags."""
    create_topics(broker.bootstrap, {topic: len(BACKLOG)})
    produce(broker.bootstrap, topic, BACKLOG)
    commit(broker.bootstrap, group, {(topic, 0): 500, (topic, 8): 5})
    return {(topic, p): lag for p, lag in enumerate(BACKLOG)} | {(topic, 0): 8500, (topic, 8): 0}


def plan_of(decision: Mapping[str, Any]) -> Plan:
    """Return the plan that a decision names."""
    assignment = {name: [(topic, p) for topic, p in mine] for name, mine in decision["assignment"].items()}
    return Plan.from_assignment(evenlag.Problem.from_dict(decision["problem"]), assignment)


def verified_plan(decision: Mapping[str, Any], lags: Mapping[tuple[str, int], int]) -> Plan:
    """Return the plan of a decision after comparing it with the one that `evenlag.solve` finds for the same input."""
    assert decision["solved"], decision["line"]
    plan = plan_of(decision)
    problem = plan.problem
    assert dict(zip(problem.partitions, problem.lags.tolist(), strict=True)) == lags
    best = evenlag.solve(problem, time_limit=PATIENCE)
    assert best.status == "OPTIMAL"
    assert (plan.spread, plan.moves) == (best.spread, best.moves)
    assert violation(plan, count_rule(problem, "both", 0)) is None
    return plan


def assert_held(group: Members, plan: Plan) -> None:
    """Assert that each member holds the partitions that the plan assigns to it."""
    of_clients = {name.rsplit("-", 5)[0]: sorted(mine) for name, mine in plan.assignment.items()}
    assert group.loads() == of_clients, group.story()


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_follows_the_solver_as_members_join_and_leave(broker: Broker, protocol: str) -> None:
    topic = group = f"assigned-{protocol}"
    lags = create_skewed_topic(broker, topic, group)
    with members(broker.bootstrap, group, [topic], cooperative=PROTOCOLS[protocol]) as several:
        several.start("a", "b", "c", "d")
        several.wait_until_settled(12)
        first = next(each for each in several.decisions() if len(each["assignment"]) == 4)
        verified_plan(first, lags)
        assert_held(several, verified_plan(several.decisions()[-1], lags))

        several["b"].kill()
        several.wait_until_settled(12)
        assert_held(several, verified_plan(several.decisions()[-1], lags))

        several.start("e", weight=2)
        several.wait_until_settled(12)
        plan = verified_plan(several.decisions()[-1], lags)
        assert_held(several, plan)
        (heavy,) = (name for name in plan.problem.members if name.startswith("e-"))
        assert [int(weight) for weight in plan.problem.weights] == [
            2 if name == heavy else 1 for name in plan.problem.members
        ]
        assert len(plan.assignment[heavy]) in (4, 5)

        add_partitions(broker.bootstrap, topic, 15)
        lags |= {(topic, p): 0 for p in (12, 13, 14)}
        several.wait_until_settled(15)
        assert_held(several, verified_plan(several.decisions()[-1], lags))

        moved = sum(each["moves"] for each in several.decisions() if not each["waiting"])
        alive = [member for member in several.values() if member.alive()]
        revoked = sum(len(event["partitions"]) for member in alive for event in member.of("revoked", "lost"))
        if PROTOCOLS[protocol]:  # nobody gave up more than what moved
            assert revoked <= moved
        else:
            assert revoked > moved


FAILURES: dict[str, tuple[dict[str, object], dict[str, object], str]] = {
    "the solver hangs": ({"hangs": True}, {}, "the solver did not answer in time and was killed"),
    "no lags": ({"without_lags": True}, {}, "no lags: no Kafka broker answers at 127.0.0.1:9"),
    "broken user data": ({}, {"corrupt": True}, "cannot be decoded: the checksum does not match the bytes before it"),
}


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.parametrize("failure", FAILURES)
def test_a_group_settles_on_a_baseline_when_something_fails(broker: Broker, failure: str) -> None:
    of_leader, of_other, why = FAILURES[failure]
    topic = group = f"failing-{failure.replace(' ', '-')}"
    lags = create_skewed_topic(broker, topic, group)
    with members(broker.bootstrap, group, [topic]) as several:
        several.start("leader", **of_leader)
        several.wait_until_settled(12)
        several.start("other", **of_other)
        several.wait_until_settled(12)
        assert sorted(map(len, several.loads().values())) == [6, 6]

        assert not several["other"].of("decision")
        decision = next(each for each in several.decisions() if each["waiting"])
        assert not decision["solved"]
        assert any(why in reason for reason in decision["why"]), decision["line"]
        assert decision["seconds"] < SESSION_TIMEOUT
        logged = next(each for each in several["leader"].of("log") if each["line"] == decision["line"])
        assert logged["level"] == "WARNING"
        assert "baseline" in logged["line"]
        assert why in logged["line"]

        # The baseline is the best on what is known: by moves alone where no lag is.
        problem = evenlag.Problem.from_dict(decision["problem"])
        known = dict(zip(problem.partitions, problem.lags.tolist(), strict=True))
        assert known == (dict.fromkeys(lags, 0) if failure == "no lags" else lags)
        assert decision["moves"] == 6
        published = [assign(problem) for assign in HEURISTICS.values()]
        valid = [plan for plan in published if violation(plan, count_rule(problem, "both", 0)) is None]
        assert decision["spread"] == min(plan.spread for plan in valid if plan.moves == 6)


INTERVAL = 12.0  # seconds: the least from any rebalance to one that is asked for
LOOK = 2.0  # seconds between looks at the lags, each of which may take a solve
PAYS_WITHIN = 300.0  # seconds; with a forecast, moves pay once the burst is two minutes old and the mean rate is low


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["eager", pytest.param("cooperative", marks=pytest.mark.long)])
def test_a_group_requests_a_rebalance_that_pays_and_no_other_within_the_interval(broker: Broker, protocol: str) -> None:
    topic = f"asking-{protocol}"
    create_topics(broker.bootstrap, {topic: 12})
    lags = [100] * 12
    produce(broker.bootstrap, topic, lags)
    horizon = "auto" if PROTOCOLS[protocol] else 0
    asking = {"rejoin_if_better": "20%", "rejoin_interval": INTERVAL, "read_every": LOOK, "horizon": horizon}
    with (
        members(broker.bootstrap, topic, [topic], options=asking, cooperative=PROTOCOLS[protocol]) as several,
        members(broker.bootstrap, f"{topic}-off", [topic], options={"read_every": LOOK}) as off,
    ):
        off.start("off-a", "off-b")
        several.start("a", "b", "c")
        off.wait_until_settled(12)
        several.wait_until_settled(12)
        no_record = ": no record of them yet" if horizon else ""
        assert several.decisions()[0]["planned_for"] == f"the current lags{no_record}"
        assert requested_decisions(several) == []
        before = several.loads()

        def now() -> dict[tuple[str, int], int]:
            return {(topic, p): lag for p, lag in enumerate(lags)}

        def skew(name: str) -> list[dict[str, Any]]:
            """Let a member fall behind, wait for the rebalance that this causes, and return its decisions."""
            count = len(requested_decisions(several))
            more = [1000 * ((topic, p) in several.loads()[name]) for p in range(12)]
            produce(broker.bootstrap, topic, more)
            lags[:] = [lag + each for lag, each in zip(lags, more, strict=True)]
            wait_until(
                lambda: len(requested_decisions(several)) > count,
                lambda: f"a rebalance: {several.story()}",
                PAYS_WITHIN,
            )
            several.wait_until_settled(12)
            return requested_decisions(several)[count:]

        (first,) = skew("a")
        assert several.loads() != before
        assert max(map(len, several.loads().values())) == 4
        plan = plan_of(first)
        assert_held(several, plan)
        assert dict(zip(plan.problem.partitions, plan.problem.lags.tolist(), strict=True)) == now()
        assert violation(plan, count_rule(plan.problem, "both", 0)) is None
        assert plan.spread < 0.5 * current_plan(plan.problem).spread
        if horizon:
            by_record = "the time until the next rebalance, by the usual rates and, for "
            assert first["planned_for"].startswith(by_record)
        else:
            verified_plan(first, now())

        (second,) = skew("b")
        rebalances = [each["t"] for each in several.decisions() if each["t"] < second["t"]]
        assert second["t"] - max(rebalances) >= INTERVAL
        assert_held(several, plan_of(second))

        logged = [event["line"] for event in several["a"].of("log") + several["b"].of("log") + several["c"].of("log")]
        assert sum("a rebalance is requested: the plan saves " in line for line in logged) == 2
        assert requested_decisions(off) == []
        assert [each["t"] for each in off.decisions() if each["t"] > first["t"] - INTERVAL / 2] == []


def requested_decisions(group: Members) -> list[dict[str, Any]]:
    """Return the decisions of the first phase of each rebalance that a leader requested."""
    found: list[dict[str, Any]] = []
    for each in group.decisions():
        if "requested: " in " ".join(each["why"]) and (not found or each["t"] > found[-1]["t"] + STANDS):
            found.append(each)
    return found
