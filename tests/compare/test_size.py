"""How many members a group needs: held against all plans there are, and as a user meets it."""

import json
import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

import evenlag
from evenlag import pipeline
from evenlag.compare import SizeRow, size
from evenlag.compare.resized import Staff
from evenlag.errors import InvalidProblemError
from evenlag.live import snapshot
from evenlag.report.picture import blank_figure, head, save
from tests.support.broker import Broker
from tests.support.command import evenlag as run
from tests.support.command import refused
from tests.support.exact import Group, every_plan
from tests.support.fleet import fleet, write_tables
from tests.support.problems import alike, cases, seeds
from tests.support.traffic import commit, create_topics, produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEVER = math.inf
Time = Fraction | float


# ---- all plans, by definition ----------------------------------------------------------------------------------------


def resized(problem: evenlag.Problem, members: int) -> evenlag.Problem:
    """The first members by name, and new ones like them; no pins, no caps."""
    document = problem.to_dict()
    names = sorted(document["members"])
    topics = document["members"][names[0]]["topics"]
    weights = {document["members"][name]["weight"] for name in names}
    new = {f"z{i}": {"topics": topics, "weight": min(weights) if len(weights) == 1 else 1} for i in range(members)}
    kept = {name: document["members"][name] for name in names[:members]}
    more = dict(list(new.items())[: members - len(kept)])
    return evenlag.Problem.from_dict({**document, "members": {**kept, **more}, "pins": []})


def drained(load: int, rate: Fraction, reads: Fraction) -> Time:
    """When a member has read everything: the least t with load + rate · t <= reads · t; never if it falls behind."""
    if rate > reads or (rate == reads and load):
        return NEVER
    return load / (reads - rate) if load else Fraction(0)


def least_time(problem: evenlag.Problem, rates: Sequence[Fraction], capacity: Fraction, balance: str) -> Time:
    """The least time to drain of all assignments that keep the balance.

    One partition after another goes to each member; what is already as slow as the best there is, is not gone on with,
    since nobody is done sooner for having more to read.
    """
    group = Group(problem)
    allowed = {counts.tobytes() for counts in group.allowed_counts(balance)}
    best: Time = NEVER

    @cache
    def alone(m: int, held: tuple[int, ...]) -> Time:
        rate = sum((rates[p] for p in held), Fraction(0))
        return drained(sum(group.lags[p] for p in held), rate, capacity * Fraction(problem.weights[m]))

    def go_on(plan: tuple[int, ...], held: tuple[tuple[int, ...], ...], slowest: Time) -> None:
        nonlocal best
        if slowest >= best:
            return
        if len(plan) == len(group.lags):
            if group.counts(dict(enumerate(plan)))[0].tobytes() in allowed:
                best = slowest
            return
        for m in group.members:
            more = (*held[m], len(plan))
            go_on((*plan, m), (*held[:m], more, *held[m + 1 :]), max(slowest, alone(m, more)))

    go_on((), ((),) * len(group.members), Fraction(0))
    return best


def random_case(seed: int) -> tuple[evenlag.Problem, list[Fraction], Fraction, str]:
    random = Random(seed)
    sizes = random.choice([[3], [4], [5], [6], [2, 2], [3, 2], [2, 2, 2], [1, 3]])
    top = random.choice([9, 100, 10_000])
    topics = {f"t{i}": [random.choice([0, random.randint(0, top)]) for _ in range(n)] for i, n in enumerate(sizes)}
    names = "abc"[: random.randint(1, 3)]
    weights = {name: random.choice([1, 2, 0.5]) for name in names} if random.random() < 0.3 else {}
    problem = alike(topics, names, weights=weights)
    capacity = Fraction(random.choice([1, 3, 50, 12.5]))
    rates = [Fraction(0)] * len(problem.lags)
    if random.random() < 0.6:
        rates = [Fraction(random.randint(0, 12), random.choice([1, 7, 20])) * capacity / 20 for _ in rates]
    return problem, rates, capacity, random.choice(["both", "both", "topic", "group", "none"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(200))
def test_size_against_all_plans(seed: int) -> None:
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
        drained(int(lag), rate, capacity * max([*problem.weights, 1]))
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
def test_what_every_sizing_keeps(lags: list[int], members: int, drain: int, incoming: bool) -> None:
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


def test_the_fewest_the_hottest_and_what_even_counts_cost() -> None:
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


def test_no_number_of_members_makes_a_partition_faster() -> None:
    found = size(alike([600, 1, 1], "ab"), 59, 10)
    assert (found.fewest, found.proven) == (None, True)
    assert found.needed_capacity == Fraction(600, 59)
    never = size(alike([6, 1], "ab"), 59, 10, rates=[11, 0])
    assert (never.fewest, never.proven, never.floor, never.binding_from) == (None, True, NEVER, None)
    assert all(row.drain_seconds == row.bound_seconds == NEVER for row in never.sizes)


def test_what_comes_in_meanwhile_counts() -> None:
    problem = alike([100, 100], "ab")
    rows = {row.members: row for row in size(problem, 60, 10, rates=[4, 5]).sizes}
    assert rows[1].drain_seconds == 200
    assert rows[2].drain_seconds == 20
    behind = {row.members: row for row in size(problem, 60, 10, rates=[4, 7]).sizes}
    assert behind[1].drain_seconds == behind[1].bound_seconds == NEVER
    assert behind[2].drain_seconds == Fraction(100, 3)


def test_who_goes_and_who_comes() -> None:
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


def test_caps_make_small_groups_impossible() -> None:
    found = size(alike([5, 4, 3, 2, 1], "ab", max_partitions={"a": 2, "b": 2}), 100, 1)
    assert found.fewest == 3
    assert found.proven
    assert [row.drain_seconds for row in found.sizes[:2]] == [NEVER, NEVER]


def test_numbers_at_which_members_idle_are_not_looked_at() -> None:
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
def test_more_members_than_enough_bring_nothing(seed: int) -> None:
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
    with pytest.raises(InvalidProblemError, match=r"read different topics.*add them.*set most to 2"):
        size(problem, 10, 1)
    with pytest.raises(InvalidProblemError, match="different topics"):
        size(problem, 10, 1, most=3)
    found = size(problem, 10, 1, most=2)
    assert found.fewest == 2
    assert [row.drain_seconds for row in found.sizes] == [NEVER, 9]  # nobody else reads u


@pytest.mark.parametrize(
    ("lags", "fewest"), [({}, 1), ({"t": []}, 1), ({"t": [0, 0, 0]}, 1), ({"t": [0] * 9 + [10**6]}, None)]
)
def test_nothing_to_read_and_all_in_one(lags: dict[str, list[int]], fewest: int | None) -> None:
    found = size(alike(lags, "ab"), 60, 10)
    assert (found.fewest, found.proven) == (fewest, True)


def test_a_group_larger_than_64_bits() -> None:
    found = size(alike([2**62] * 4, "ab"), 2**61, 2)
    assert (found.fewest, found.proven) == (4, True)
    assert found.sizes[0].drain_seconds == 2**63


@pytest.mark.parametrize(
    ("changed", "said"),
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
def test_parameters_that_are_no_such_thing(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidProblemError, match=said):
        size(**{"problem": alike([5, 4], "ab"), "drain_seconds": 10, "capacity": 1} | changed)


def test_scenarios_are_left_out_of_it() -> None:
    lags, members = {"t": [5, 4]}, {"a": ["t"], "b": ["t"]}
    found = size(evenlag.Problem.from_lags(lags, members, scenarios=[(1, {"t": [900, 900]})]), 5, 1, most=2)
    assert [row.drain_seconds for row in found.sizes] == [9, 5]


def test_a_group_without_members() -> None:
    with pytest.raises(InvalidProblemError, match="group 'group' has no members"):
        size(evenlag.Problem.from_lags({"t": [1]}, {}), 10, 1)


def test_a_call_ends_in_time_and_says_what_it_did_not_reach() -> None:
    random = Random(1)
    problem = alike([random.randint(0, 10_000) for _ in range(600)], 20)
    started = time.monotonic()
    found = size(problem, 900, 100, time_limit=0.02)
    assert time.monotonic() - started < 5
    assert found.not_reached
    assert found.sizes
    assert not {row.members for row in found.sizes} & set(found.not_reached)


def test_numbers_of_members_that_take_longer_than_the_call_may_are_not_looked_at() -> None:
    """Each topic counts for each member: of 2,000 topics so many members take a minute, and gigabytes."""
    topics = {f"t{i:04}": [i % 97, i % 89] for i in range(2_000)}
    found = size(alike(topics, 20), 10, 10, time_limit=0.4)
    assert found.sizes[0].members == 1
    assert max(row.members for row in found.sizes) <= 100
    assert found.sizes[-1].members < found.most == 4_000
    assert not found.proven


def test_two_deterministic_sizings_agree() -> None:
    random = Random(2)
    problem = alike({"t": [random.randint(0, 1_000) for _ in range(17)], "u": [random.randint(0, 99)] * 5}, "abc")
    calls = [size(problem, 60, 20, rates=[0.5] * 22, deterministic=True, time_limit=2, most=6) for _ in range(2)]
    once, again = ([(row.members, row.drain_seconds, row.bound_seconds) for row in found.sizes] for found in calls)
    assert once == again


def test_progress_is_told() -> None:
    seen: list[tuple[int, int]] = []
    size(alike([5, 4, 3], "ab"), 10, 1, progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert all(done < total for done, total in seen)


# ---- the command -----------------------------------------------------------------------------------------------------

HEAD = "snapshot_ts,group,topic,partition,log_end_offset,current_offset,consumer_id\n"
PINNED = {
    "members", "drain_seconds", "bound_seconds", "range_seconds", "cooperative_sticky_seconds", "uniform_seconds",
}  # fmt: skip


@pytest.fixture
def billing(tmp_path: Path) -> Path:
    path = tmp_path / "billing.json"
    topics, members = {"t": [600, *[100] * 5]}, {"a": {"topics": ["t"]}, "b": {"topics": ["t"]}}
    path.write_text(json.dumps({"group": "billing", "topics": topics, "members": members}))
    return path


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Two snapshots, 100 s apart: 200 and 300 messages come in, a reads 1,000 of 5,000 and b 50 of 50."""
    path = tmp_path / "record.csv"
    rows = ["00:00Z,g,t,0,5000,0,a", "00:00Z,g,t,1,50,0,b", "01:40Z,g,t,0,5200,1000,a", "01:40Z,g,t,1,350,50,b"]
    path.write_text(HEAD + "".join(f"2026-01-02T00:{row}\n" for row in rows))
    return path


def test_the_answer_as_json(billing: Path) -> None:
    done = run("size", billing, "--drain", "75s", "--capacity", 10, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (told["fewest"], told["proven"], told["binding_from"]) == (3, True, 4)
    assert all(set(each) >= PINNED for each in told["sizes"])
    assert told["sizes"][0]["drain_seconds"] == 110
    assert (told["capacity"], told["capacity_source"], told["rates"], told["incoming"]) == (10, "given", "none", 0)
    assert told["deadline_seconds"] == 75


def test_the_answer_as_text(billing: Path) -> None:
    said = " ".join(run("size", billing, "--drain", "75s", "--capacity", 10).stdout.split())
    assert "3 members meet the deadline, and fewer cannot: 2 would take at least 1 min 20 s" in said
    assert "From 4 members on, the hottest partition, t-0, sets the time: it alone takes 1 min" in said
    assert "A member reads 10 messages a second (as given)." in said
    assert "No messages are assumed to arrive meanwhile, because a single snapshot has no rates." in said
    none = " ".join(run("size", billing, "--drain", "59s", "--capacity", 10).stdout.split())
    assert "No group size meets the deadline: t-0 alone takes 1 min" in none
    assert "members that read 11 messages a second" in none


def test_capacity_and_rates_come_from_the_record(record: Path) -> None:
    told = json.loads(run("size", record, "--drain", "30m", "--json").stdout)
    assert (told["capacity"], told["capacity_source"], told["rates"], told["incoming"]) == (10, "backlog", "record", 5)
    assert [each["drain_seconds"] for each in told["sizes"][:2]] == [4500 / 5, 4200 / 8]
    assert (told["fewest"], told["binding_from"]) == (1, 2)
    said = run("size", record, "--drain", "30m").stdout
    assert "the median of 1 times that a member had a backlog" in said
    assert "Meanwhile 5 messages a second arrive" in said
    later = json.loads(run("size", record, "--drain", "30m", "--horizon", "100s", "--json").stdout)
    assert [each["drain_seconds"] for each in later["sizes"][:2]] == [5000 / 5, 4400 / 8]


def test_a_picture(billing: Path, tmp_path: Path) -> None:
    for name, drain in (("a.png", "70s"), ("b.svg", "1s")):
        done = run("size", billing, "--drain", drain, "--capacity", 10, "--plot", tmp_path / name)
        assert done.returncode == 0
        assert (tmp_path / name).stat().st_size > 5_000
    refused(
        run("size", billing, "--drain", "9s", "--capacity", 1, "--plot", tmp_path / "a.xyz"), "unknown picture format"
    )


@pytest.mark.parametrize(
    ("group", "title"),
    [
        ("pay", "pay: lag"),
        ("a$\\frac$b", "a$\\frac$b: lag"),  # matplotlib would take it for a formula
        ("connect-jdbc-sink-orders-production-of-shop-eu", "connect-jdbc-sink-o…roduction-of-shop-eu: lag"),
    ],
)
def test_a_picture_is_named_after_any_group(tmp_path: Path, group: str, title: str) -> None:
    figure = blank_figure(9, 5)
    axes = figure.subplots()
    head(axes, group, "lag")
    save(figure, tmp_path / "head.png")
    assert axes.get_title(loc="left") == title


def test_a_picture_of_one_size_has_whole_members(tmp_path: Path) -> None:
    alone = tmp_path / "alone.json"
    alone.write_text(json.dumps({"topics": {"t": [90]}, "members": {"a": {"topics": ["t"]}}}))
    done = run("size", alone, "--drain", "1s", "--capacity", 10, "--plot", tmp_path / "alone.svg")
    assert done.returncode == 0
    assert "<!-- 1 -->" in (tmp_path / "alone.svg").read_text()
    assert "<!-- 1.00 -->" not in (tmp_path / "alone.svg").read_text()


def test_what_the_command_refuses(billing: Path, tmp_path: Path) -> None:
    refused(
        run("size", billing, "--drain", "15m"),
        "billing.json: a single snapshot has no rates, so the rate at which members read is unknown: give capacity",
    )
    refused(run("size", billing, "--drain", "soon", "--capacity", 1), "drain must be seconds or a time such as")
    for none in ("0", "0s", "0.0m"):
        refused(
            run("size", billing, "--drain", none, "--capacity", 1),
            f"drain must be a time > 0, such as 15m, not '{none}'",
        )
    for rate in ("nan", "inf"):
        refused(
            run("size", billing, "--drain", "1m", "--capacity", rate),
            f"capacity must be messages per second > 0 and < 2^63, not {rate}",
        )
    refused(run("size", tmp_path / "none.json", "--drain", "1m", "--capacity", 1), "none.json")
    refused(run("size", billing, "--drain", "1m", "--capacity", 1, "--horizon", "1h"), "no rates for a horizon")
    for words in (("--capacity", "0"), ("--capacity", "1", "--most", "0"), ()):
        assert run("size", billing, *(("--drain", "-5") if not words else ("--drain", "1m", *words))).returncode != 0
    assert run("size", billing, "--capacity", 1).returncode == 2


# ---- a fleet ---------------------------------------------------------------------------------------------------------


def test_a_fleet_on_spark_is_sized_as_its_groups_are(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(3)
    now = "2026-01-01T00:01:40Z"
    later = [row | {"snapshot_ts": now, "log_end_offset": row["log_end_offset"] + 40} for row in offsets]
    again = [row | {"snapshot_ts": now} for row in members]
    alone = [row | {"group": "alone"} for row in offsets if row["group"] == "g000"]  # nobody is in the members table
    places = write_tables(tmp_path, [*offsets, *later, *alone], [*members, *again])
    tables = [pipeline.read_table(spark, path, kind) for path, kind in zip(places, ("offsets", "members"), strict=True)]
    told: list[tuple[int, ...]] = []
    sizes = pipeline.size(
        *tables, drain_seconds=600, capacity=30, most=4, group_time_limit=20, deterministic=True,
        progress=lambda *done: told.append(done),
    )  # fmt: skip
    rows = {row["group"]: row.asDict(recursive=True) for row in sizes.collect()}
    assert sorted(rows) == ["alone", "g000", "g001", "g002"]
    assert "has no members" in rows["alone"]["error"]
    assert rows["alone"]["sizes"] == []
    assert told[-1][:2] == (4, 4)
    for group in ("g000", "g001", "g002"):
        row, words = rows[group], ("--members", places[1], "--group", group, "--drain", "10m", "--capacity", 30)
        here = json.loads(
            run("size", places[0], *words, "--most", 4, "--time-limit", 20, "--deterministic", "--json").stdout
        )
        same = ("fewest", "proven", "binding_from", "incoming", "capacity", "hottest_seconds", "sizes")
        assert {name: row[name] for name in same} == {name: here[name] for name in same}
        for name in ("moves", "units", "bound"):
            assert row[f"handover_{name}"] == here["handover"][name]
        assert [row["hottest_topic"], row["hottest_partition"]] == here["hottest"]
        assert (row["error"], row["snapshots"], row["snapshot_ts"]) == (None, 2, now)
        assert row["members"] == len({each["consumer_id"] for each in members if each["group"] == group})
    with pytest.raises(InvalidProblemError, match="capacity must be"):
        pipeline.size(*tables, drain_seconds=600, capacity=0)


def test_the_command_sizes_a_fleet_as_its_groups_are(spark: "SparkSession", tmp_path: Path) -> None:
    offsets, members = fleet(6)
    members = [row for row in members if row["group"] != "g005"]  # which has no members then
    broken = offsets[0] | {"partition": "x"}
    places = write_tables(tmp_path, [*offsets, broken], members)
    asked = ("--drain", "3m", "--capacity", 60, "--most", 4)
    placed = ("--offsets", places[0], "--members", places[1], "--out", tmp_path / "out")
    words = ("size", *placed, *asked, "--group-time-limit", 20, "--deterministic")
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (tmp_path / "good").mkdir()
    good = write_tables(tmp_path / "good", offsets, members)
    answers, rows = dict.fromkeys(document["answers"], 0), {row["group"]: row for row in document["groups"]}
    assert list(rows) == [row["group"] for row in document["groups"]]
    lacks = []
    for group in (f"g{n:03}" for n in range(5)):
        words_of_one = ("--members", good[1], "--group", group, *asked, "--time-limit", 20, "--deterministic", "--json")
        here = json.loads(run("size", good[0], *words_of_one).stdout)
        row, today = rows[group], len({each["consumer_id"] for each in members if each["group"] == group})
        same = ("fewest", "proven", "binding_from", "hottest_seconds")
        assert {name: row[name] for name in same} == {name: here[name] for name in same}
        assert (row["members"], row["capacity"], row["capacity_source"]) == (today, 60, "given")
        lack = math.inf if here["fewest"] is None else here["fewest"] - today
        answers["none" if lack == math.inf else "more" if lack > 0 else "fewer" if lack < 0 else "enough"] += 1
        lacks.append((-lack, group))
        written = spark.read.parquet(f"{tmp_path}/out/sizes").filter(f"`group` = '{group}'").orderBy("members")
        assert [each.asDict() for each in written.drop("group", "snapshot_ts").collect()] == here["sizes"]
    assert [group for _, group in sorted(lacks)] == list(rows)
    assert document["answers"] == answers | {"failed": 1}
    assert sum(count > 0 for count in answers.values()) > 1
    assert document["rejects"] == 1
    [error] = document["errors"]
    assert error.startswith("g005: InvalidProblemError")
    assert document["written"] == [f"{tmp_path}/out/{name}" for name in ("groups", "sizes")]
    assert spark.read.parquet(f"{tmp_path}/out/groups").count() == 6
    refused(run(*words), "exists already")
    shown = run(*words, "--overwrite").stdout
    assert "6 groups: " in shown
    assert "1 failed" in shown
    assert "failed: g005: InvalidProblemError" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "missing argument 'INPUT'"),
        (("a.csv", "--out", "o"), "evenlag size has no --out; evenlag fleet size has"),
        (("a.csv", "--group-time-limit", 2), "evenlag size has no --group-time-limit; evenlag fleet size has"),
        (("a.csv", "--horizon", "auto"), "auto applies to plans; a size needs one lag"),
        (("--offsets", "b.csv", "--group", "g"), "no such option '--group'"),
        (("a.csv", "--offsets", "b.csv"), "got unexpected extra argument"),
    ],
)
def test_what_goes_with_one_group_and_what_with_a_fleet(words: tuple[Any, ...], said: str) -> None:
    done = run("size", *words, "--drain", "5m")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.split())


# ---- a real broker ---------------------------------------------------------------------------------------------------


def read_for(broker: Broker, group: str, row: SizeRow, capacity: float, seconds: float) -> int:
    """Let the members of a plan read their partitions for so long, each at most so fast; return the lag left."""
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
    """Read partitions for so long, message i not before i / capacity; commit what was read and say how much."""
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
def test_on_a_real_broker_the_fewest_members_make_it_and_one_fewer_do_not(broker: Broker) -> None:
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
    assert read_for(broker, "sized-enough", enough, capacity, deadline) == 0
    assert read_for(broker, "sized-fewer", fewer, capacity, deadline) >= sum(lags) - 3 * deadline * capacity


# ---- the least that must move ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(25))
@pytest.mark.parametrize("sized", [True, False])
def test_the_least_that_must_move_is_that_of_all_plans(seed: int, sized: bool) -> None:
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
             if _through(changed, row, rates, capacity) <= found.deadline]  # fmt: skip
    least = min(
        sum(cost.get(name, 0) for name, m in zip(names, plan, strict=True) if changed.members[m] != holder[name])
        for plan in plans
    )
    assert found.handover is not None
    assert found.handover.units >= least >= found.handover.bound
    if not any(rates):  # else the search rounds lags
        assert (found.handover.units, found.handover.bound) == (least, least)
    assert found.handover.sized == sized


def _through(problem: evenlag.Problem, row: Any, rates: list[Fraction], capacity: Fraction) -> Time:
    """Return when the last member of a plan has read everything."""
    held = [[p for p, m in enumerate(row.tolist()) if m == member] for member in range(len(problem.members))]
    return max(
        drained(sum(int(problem.lags[p]) for p in mine), sum((rates[p] for p in mine), Fraction(0)), capacity * weight)
        for mine, weight in zip(held, problem.weights, strict=True)
    )


def test_the_report_says_the_least_that_must_move(tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    problem = alike([60, 60, 60, 60], "ab", owned={"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]})
    path.write_text(json.dumps(problem.to_dict()))
    words = ("--drain", "6s", "--capacity", 10)
    assert json.loads(run("size", path, *words, "--json").stdout)["handover"] == {
        "moves": 2, "units": 2, "bound": 2, "sized": False
    }  # fmt: skip
    said = " ".join(run("size", path, *words).stdout.split())
    assert "Getting there from today's assignment moves 2 partitions, the least possible." in said
    sized = " ".join(run("size", path, *words, "--move-sizes", "t=7").stdout.split())
    assert "moves 2 partitions of size 14 in total, the least possible." in sized
    assert (
        "Getting there from today's assignment needs no move."
        in run("size", path, "--drain", "12s", "--capacity", 10).stdout
    )
