"""The number of members that a group needs: compared with all plans, and tried on a real broker."""

import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

import evenlag
from evenlag.compare import SizeRow, size
from evenlag.compare.resized import Staff
from evenlag.errors import InvalidProblemError
from evenlag.live import snapshot
from tests.support.broker import Broker
from tests.support.exact import every_plan
from tests.support.problems import alike, cases, seeds
from tests.support.sizes import NEVER, Time, least_time, random_case, resized, time_to_drain
from tests.support.traffic import commit, create_topics, produce

if TYPE_CHECKING:
    pass


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(200))
def test_the_fewest_members_equal_those_of_all_plans(seed: int) -> None:
    problem, rates, capacity, balance = random_case(seed)
    most = 4
    truth = {n: least_time(resized(problem, n), rates, capacity, balance) for n in range(1, most + 1)}
    free = {n: least_time(resized(problem, n), rates, capacity, "none") for n in range(1, most + 1)}
    finite = [Fraction(each) for each in truth.values() if each not in (0, NEVER)]
    deadline = Random(seed).choice([*finite, *(each * Fraction(999, 1000) for each in finite), Fraction(10)])
    found = size(problem, deadline, capacity, rates=rates, balance=balance, most=most, time_limit=30)
    makes = [n for n, each in truth.items() if each <= found.deadline]
    assert (found.fewest, found.proven) == (min(makes, default=None), True)
    assert [row.members for row in found.sizes] == [n for n in truth if n <= found.most]
    for n in range(found.most, most + 1):  # nobody looks at more: they bring nothing
        assert (truth[n], free[n]) == (truth[found.most], free[found.most])
    for row in found.sizes:
        n = row.members
        assert row.bound_seconds <= truth[n]
        if truth[n] == NEVER:
            assert row.drain_seconds == NEVER
        else:
            assert truth[n] <= row.drain_seconds <= truth[n] * (1 + Fraction(1, 10**5))
            assert row.bound_seconds >= row.drain_seconds * (1 - Fraction(1, 10**4))
        assert row.unruled_seconds >= free[n]
        assert row.rule_seconds <= (0 if truth[n] == free[n] == NEVER else truth[n] - free[n])
    assert not found.slower or balance != "none"
    for slow, fast in found.slower:
        assert truth[slow.members] > truth[fast.members]
    alone = [
        time_to_drain(int(lag), rate, capacity * max([*problem.weights, 1]))
        for lag, rate in zip(problem.lags, rates, strict=True)
    ]
    assert found.floor >= max(alone) or len(set(problem.weights)) == 1
    bound = [n for n, each in truth.items() if each == found.floor < NEVER]
    if found.binding_from is None or not bound:
        assert found.binding_from is None
        assert not bound
    else:
        assert found.binding_from == bound[0]


# ---- what always holds -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=cases(30), deadline=None)
@given(st.lists(st.integers(0, 500), min_size=1, max_size=9), st.integers(1, 4), st.integers(1, 60), st.booleans())
def test_every_sizing_is_consistent(lags: list[int], members: int, drain: int, incoming: bool) -> None:
    problem = alike(lags, members)
    rates = [Fraction(lag % 7, 100) for lag in lags] if incoming else None
    found = size(problem, drain, 10, rates=rates, time_limit=5)
    drains = [row.drain_seconds for row in found.sizes]
    for row in found.sizes:
        assert found.floor <= row.bound_seconds <= row.drain_seconds
        assert row.unruled_seconds <= row.drain_seconds
        assert row.plan is None or sum(row.plan.counts) == len(lags)
        if row.range_seconds is not None:  # one topic and members alike: range keeps every balance
            assert row.range_seconds >= row.bound_seconds
    if found.fewest is not None:
        row = found.row(found.fewest)
        assert row is not None
        assert row.drain_seconds <= drain
        assert all(time > drain for time, row in zip(drains, found.sizes, strict=True) if row.members < found.fewest)
    else:
        assert all(time > drain for time in drains)
    if found.binding_from is not None:
        assert min(drains) == found.floor
    assert len(problem.members) in [row.members for row in found.sizes]


def test_twice_the_capacity_takes_half_the_time() -> None:
    problem = alike([900, 500, 400, 300], "ab")
    slow, fast = (size(problem, 60, capacity) for capacity in (10, 20))
    assert [row.drain_seconds for row in fast.sizes if slow.row(row.members)] == [
        row.drain_seconds / 2 for row in slow.sizes if fast.row(row.members)
    ]


# ---- what a user asks ------------------------------------------------------------------------------------------------


def test_a_sizing_names_the_fewest_members_the_hottest_partition_and_the_cost_of_even_counts() -> None:
    found = size(alike([600, *[100] * 5], "ab"), 75, 10)
    assert (found.fewest, found.proven, found.binding_from, found.hottest) == (3, True, 4, ("t", 0))
    assert found.floor == 60
    times = {row.members: row.drain_seconds for row in found.sizes}
    assert (times[1], times[2], times[3], times[4]) == (110, 80, 70, 60)
    assert [(row.members, row.rule_seconds) for row in found.costly] == [(2, 20), (3, 10)]  # without rule 60 each


def test_more_members_can_be_slower_where_weights_differ() -> None:
    """The third, a fifth as fast, has to have one of eight partitions, so that the counts are even by weight."""
    problem = alike([100] * 8, "abc", weights={"a": 5, "b": 5, "c": 1})
    found = size(problem, 17, 5, balance="group", most=3)
    assert found.fewest == 2
    assert [(slow.members, fast.members) for slow, fast in found.slower] == [(3, 2)]


def test_no_group_size_drains_a_partition_faster_than_one_member() -> None:
    found = size(alike([600, 1, 1], "ab"), 59, 10)
    assert (found.fewest, found.proven) == (None, True)
    assert found.needed_capacity == Fraction(600, 59)
    never = size(alike([6, 1], "ab"), 59, 10, rates=[11, 0])
    assert (never.fewest, never.proven, never.floor, never.binding_from) == (None, True, NEVER, None)
    assert all(row.drain_seconds == row.bound_seconds == NEVER for row in never.sizes)


def test_arriving_messages_count() -> None:
    problem = alike([100, 100], "ab")
    rows = {row.members: row for row in size(problem, 60, 10, rates=[4, 5]).sizes}
    assert rows[1].drain_seconds == 200
    assert rows[2].drain_seconds == 20
    behind = {row.members: row for row in size(problem, 60, 10, rates=[4, 7]).sizes}
    assert behind[1].drain_seconds == behind[1].bound_seconds == NEVER
    assert behind[2].drain_seconds == Fraction(100, 3)


def test_members_leave_by_name_and_new_ones_are_numbered() -> None:
    problem = evenlag.Problem.from_lags(
        {"t": [4, 3, 2, 1]}, {name: ["t"] for name in ("b", "c", "new-1")}, pins=[("t", 0, "c")],
        owned={"b": [("t", 1)], "c": [("t", 0)]}, weights=dict.fromkeys(("b", "c", "new-1"), 2),
    )  # fmt: skip
    found = size(problem, 100, 1, most=4)
    members = {row.members: row.plan.problem for row in found.sizes if row.plan is not None}
    assert [members[n].members for n in (1, 2, 3, 4)] == [
        ("c",), ("b", "c"), ("b", "c", "new-1"), ("b", "c", "new-1", "new-2"),
    ]  # fmt: skip
    assert all(set(each.weights) == {2} for each in members.values())
    for row in found.sizes:
        assert row.plan is not None
        assert ("t", 0) in row.plan.assignment["c"]


def test_caps_rule_out_small_groups() -> None:
    found = size(alike([5, 4, 3, 2, 1], "ab", max_partitions={"a": 2, "b": 2}), 100, 1)
    assert found.fewest == 3
    assert found.proven
    assert [row.drain_seconds for row in found.sizes[:2]] == [NEVER, NEVER]


def test_members_that_may_take_nothing_are_skipped() -> None:
    group = alike([5, 6, 7], "ab", max_partitions={"a": 0, "b": 5})
    found = size(group, 20, 1)
    assert (found.fewest, found.proven) == (2, True)
    assert [row.drain_seconds for row in found.sizes[:2]] == [NEVER, 18]


@pytest.mark.parametrize(
    ("lags", "unlike"),
    [([5, 6, 7], {"max_partitions": {"a": 0, "b": 5}}), ([10, 10], {"weights": {"a": 0.5, "b": 0.25}})],
)
def test_more_members_than_partitions_are_tried_if_new_ones_take_more(lags: list[int], unlike: dict[str, Any]) -> None:
    found = size(alike(lags, "ab", **unlike), 10, 1)
    assert (found.fewest, found.proven, found.most) == (4, True, Staff(found.problem).enough)


def test_sizes_with_idle_members_are_not_tried() -> None:
    found = size(alike([5, 3, 9, 1], "ab"), 1, 1, most=100_000)
    assert [row.members for row in found.sizes] == [1, 2, 3, 4]
    assert (found.most, found.not_reached) == (4, [])
    assert found.notes[-1].startswith("sizes above 4 members are not tried")
    few = size(alike([5, 3, 9, 1], "ab"), 1, 1, most=4)
    assert (few.to_dict(), few.notes) == (found.to_dict(), ())


def random_staff(random: Random) -> Staff:
    names = "abc"[: random.randint(1, 3)]
    weights = {name: random.choice([1, 2, 3, 0.5]) for name in names} if random.random() < 0.7 else {}
    caps = {name: random.randint(1, 2) for name in names if random.random() < 0.5} if random.random() < 0.5 else {}
    topics = {f"t{i}": [random.randint(0, 9) for _ in range(random.randint(1, 2))] for i in range(random.randint(1, 2))}
    return Staff(alike(topics, names, weights=weights, max_partitions=caps))


@pytest.mark.parametrize("seed", seeds(20))
def test_more_members_than_enough_drain_no_faster(seed: int) -> None:
    random = Random(seed)
    staff, balance = random_staff(random), random.choice(["both", "topic", "group", "none"])
    times = []
    for members in range(staff.enough, staff.enough + 3):
        result = evenlag.solve(staff.of(members), objective="makespan", stickiness=0, balance=balance, time_limit=10)
        assert result.status == "OPTIMAL"
        loads = zip(result.plan.loads.tolist(), result.plan.problem.weights, strict=True)
        times.append(max(Fraction(load) / weight for load, weight in loads))
    assert len(set(times)) == 1


def test_members_that_read_different_topics_must_be_described() -> None:
    problem = evenlag.Problem.from_lags({"t": [5, 5], "u": [4]}, {"a": ["t"], "b": ["t", "u"]})
    with pytest.raises(
        InvalidProblemError, match=r"read different topics.*Add the new members.*set most \(--most\) to 2"
    ):
        size(problem, 10, 1)
    with pytest.raises(InvalidProblemError, match="different topics"):
        size(problem, 10, 1, most=3)
    found = size(problem, 10, 1, most=2)
    assert found.fewest == 2
    assert [row.drain_seconds for row in found.sizes] == [NEVER, 9]  # nobody else reads u


@pytest.mark.parametrize(
    ("lags", "fewest"), [({}, 1), ({"t": []}, 1), ({"t": [0, 0, 0]}, 1), ({"t": [0] * 9 + [10**6]}, None)]
)
def test_groups_without_lag_and_with_one_hot_partition(lags: dict[str, list[int]], fewest: int | None) -> None:
    found = size(alike(lags, "ab"), 60, 10)
    assert (found.fewest, found.proven) == (fewest, True)


def test_lags_beyond_64_bits_are_sized() -> None:
    found = size(alike([2**62] * 4, "ab"), 2**61, 2)
    assert (found.fewest, found.proven) == (4, True)
    assert found.sizes[0].drain_seconds == 2**63


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"capacity": 0}, "capacity must be messages per second > 0, not 0"),
        ({"capacity": math.nan}, "capacity must be"),
        ({"capacity": True}, "capacity must be"),
        ({"drain_seconds": -1}, "drain_seconds must be a number of seconds > 0, not -1"),
        ({"drain_seconds": Fraction(-1, 3)}, "drain_seconds must be a number of seconds > 0, not -1/3"),
        ({"rates": 5}, "rates must be a list of messages per second; got int"),
        ({"drain_seconds": math.inf}, "drain_seconds must be"),
        ({"drain_seconds": "15m"}, "drain_seconds must be"),
        ({"rates": [1]}, "rates needs one number for each of the 2 partitions, not 1"),
        ({"rates": [1, -1]}, "t-1: rate must be messages per second >= 0, not -1"),
        ({"most": 0}, "most must be a number of members from 1 to 100,000, not 0"),
        ({"balance": "odd"}, "balance must be one of"),
        ({"time_limit": 0}, "time_limit must be"),
    ],
)
def test_invalid_parameters_are_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        size(**{"problem": alike([5, 4], "ab"), "drain_seconds": 10, "capacity": 1} | changed)


def test_scenarios_are_ignored() -> None:
    lags, members = {"t": [5, 4]}, {"a": ["t"], "b": ["t"]}
    found = size(evenlag.Problem.from_lags(lags, members, scenarios=[(1, {"t": [900, 900]})]), 5, 1, most=2)
    assert [row.drain_seconds for row in found.sizes] == [9, 5]


def test_a_group_without_members() -> None:
    with pytest.raises(InvalidProblemError, match="group 'group' has no members"):
        size(evenlag.Problem.from_lags({"t": [1]}, {}), 10, 1)


def test_a_sizing_ends_in_time_and_lists_the_sizes_not_reached() -> None:
    random = Random(1)
    problem = alike([random.randint(0, 10_000) for _ in range(600)], 20)
    started = time.monotonic()
    found = size(problem, 900, 100, time_limit=0.02)
    assert time.monotonic() - started < 5
    assert found.not_reached
    assert found.sizes
    assert not {row.members for row in found.sizes} & set(found.not_reached)


@pytest.mark.slow
def test_sizes_that_would_take_too_long_are_skipped() -> None:
    """The work grows with topics times members: all sizes for 2,000 topics would take a minute and gigabytes."""
    topics = {f"t{i:04}": [i % 97, i % 89] for i in range(2_000)}
    found = size(alike(topics, 20), 10, 10, time_limit=0.4)
    assert found.sizes[0].members == 1
    assert max(row.members for row in found.sizes) <= 100
    assert found.sizes[-1].members < found.most == 4_000
    assert not found.proven


@pytest.mark.slow
def test_two_deterministic_sizings_agree() -> None:
    random = Random(2)
    problem = alike({"t": [random.randint(0, 1_000) for _ in range(17)], "u": [random.randint(0, 99)] * 5}, "abc")
    calls = [size(problem, 60, 20, rates=[0.5] * 22, deterministic=True, time_limit=2, most=6) for _ in range(2)]
    once, again = ([(row.members, row.drain_seconds, row.bound_seconds) for row in found.sizes] for found in calls)
    assert once == again


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int]] = []
    size(alike([5, 4, 3], "ab"), 10, 1, progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert all(done < total for done, total in seen)


# ---- a real broker ---------------------------------------------------------------------------------------------------


def lag_after_reading(broker: Broker, group: str, row: SizeRow, capacity: float, seconds: float) -> int:
    """Let the members of a plan read for some seconds, each at its capacity; return the lag that is left."""
    assert row.plan is not None
    held = [partitions for partitions in row.plan.assignment.values() if partitions]
    ready = threading.Barrier(len(held))
    with ThreadPoolExecutor(len(held)) as members:
        done = [members.submit(read_slowly, broker, group, each, ready, capacity, seconds) for each in held]
    read = [each.result() for each in done]
    assert all(count <= capacity * seconds for count in read)
    return sum(int(row["lag"]) for row in snapshot(broker.bootstrap, [group]).offsets)


def read_slowly(
    broker: Broker, group: str, partitions: Sequence[tuple[str, int]], ready: threading.Barrier, capacity: float,
    seconds: float,
) -> int:  # fmt: skip
    """Read partitions for some seconds, message i not before i / capacity; commit, and return the number read."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": False,
         "auto.offset.reset": "earliest", "log_level": 0}
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(*each) for each in partitions])
        message = consumer.poll(60)
        ready.wait(60)
        start, read, reached = time.monotonic(), 0, dict.fromkeys(partitions, 0)
        while message is not None and (read + 1) / capacity <= seconds:
            time.sleep(max(start + (read + 1) / capacity - time.monotonic(), 0))
            if time.monotonic() - start > seconds:
                break
            read += 1
            reached[message.topic(), message.partition()] = message.offset() + 1
            message = consumer.poll(0.5)
        consumer.commit(offsets=[TopicPartition(*each, at) for each, at in reached.items()], asynchronous=False)
        return read
    finally:
        consumer.close()


@pytest.mark.broker
@pytest.mark.slow
def test_on_a_real_broker_the_fewest_members_meet_the_deadline_and_one_fewer_do_not(broker: Broker) -> None:
    lags, capacity, deadline = [400, 400, 300, 300, 100, 100], 100, 5
    create_topics(broker.bootstrap, {"sized": len(lags)})
    produce(broker.bootstrap, "sized", lags)
    commit(broker.bootstrap, "sizing", {("sized", p): 0 for p in range(len(lags))})
    rows = snapshot(broker.bootstrap, ["sizing"]).offsets
    found = size(alike({"sized": [int(row["lag"]) for row in rows]}, "ab"), deadline, capacity)
    assert (found.fewest, found.proven) == (4, True)
    enough, fewer = found.row(4), found.row(3)
    assert enough is not None
    assert fewer is not None
    assert lag_after_reading(broker, "sized-enough", enough, capacity, deadline) == 0
    assert lag_after_reading(broker, "sized-fewer", fewer, capacity, deadline) >= sum(lags) - 3 * deadline * capacity


# ---- the least that must move ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(25))
@pytest.mark.parametrize("sized", [True, False])
def test_the_least_handover_equals_that_of_all_plans(seed: int, sized: bool) -> None:
    random = Random(1_000 + seed)
    problem, rates, capacity, balance = random_case(seed)
    names = problem.partitions
    holder = {name: random.choice([*problem.members, None]) for name in names}
    document = problem.to_dict()
    for member in problem.members:
        document["members"][member]["owned"] = [list(name) for name in names if holder[name] == member]
    problem = evenlag.Problem.from_dict(document)
    sizes = {topic: [random.randint(0, 9) for t, _ in names if t == topic] for topic in problem.topics}
    if sized:
        problem = problem.with_pair_data(move_sizes=sizes)
    times = [least_time(resized(problem, n), rates, capacity, balance) for n in (2, 3)]
    times = [Fraction(each) * random.choice([1, Fraction(5, 4)]) for each in times if each not in (0, NEVER)]
    found = size(problem, random.choice(times or [Fraction(10)]), capacity, rates=rates, balance=balance, most=4,
                 time_limit=60)  # fmt: skip
    if found.fewest is None or set(holder.values()) == {None}:
        assert found.handover is None
        return
    changed = resized(problem, found.fewest)
    cost = {name: sizes[name[0]][name[1]] if sized else 1 for name in names if holder[name] is not None}
    plans = [row.tolist() for row in every_plan(changed, balance)
             if time_to_drain_all(changed, row, rates, capacity) <= found.deadline]  # fmt: skip
    least = min(
        sum(cost.get(name, 0) for name, m in zip(names, plan, strict=True) if changed.members[m] != holder[name])
        for plan in plans
    )
    assert found.handover is not None
    assert found.handover.units >= least >= found.handover.bound
    if not any(rates):  # else the search rounds lags
        assert (found.handover.units, found.handover.bound) == (least, least)
    assert found.handover.sized == sized


def time_to_drain_all(problem: evenlag.Problem, row: Any, rates: list[Fraction], capacity: Fraction) -> Time:
    """Return when the last member of a plan has read everything."""
    held = [[p for p, m in enumerate(row.tolist()) if m == member] for member in range(len(problem.members))]
    return max(
        time_to_drain(
            sum(int(problem.lags[p]) for p in mine), sum((rates[p] for p in mine), Fraction(0)), capacity * weight
        )
        for mine, weight in zip(held, problem.weights, strict=True)
    )
