"""Causes and remedies of groups made for one cause each, and figures computed again by other code."""

import json
from collections.abc import Callable, Mapping
from io import StringIO
from random import Random
from typing import Any

import pytest

import evenlag
from evenlag.compare.case import DEADLINE
from evenlag.compare.remedies import ASSUMED_GAP
from evenlag.errors import InvalidProblemError
from evenlag.model.problem import Problem
from evenlag.search.options import SolveOptions
from evenlag.search.solver import search
from tests.support.problems import seeds

MINUTES = 10
UUID = "00000000-0000-0000-0000-00000000000"


def owned_as(heuristic: str, topics: Mapping[str, list[int]], names: list[str], **more: Any) -> Problem:
    """A group whose assignment today is the answer of an assignor."""
    owned = evenlag.assign(Problem.from_lags(topics, names), heuristic).assignment  # type: ignore[arg-type]
    return Problem.from_lags(topics, names, owned=owned, **more)


def record(
    partitions: list[tuple[str, int, int, int]], steps: int = 3, owners: Callable[[int, str], str] | None = None
) -> str:
    """Return snapshots ten minutes apart; per partition its owner, first lag, and messages/s in and out."""
    rows = ["snapshot_ts,group,topic,partition,log_end_offset,current_offset,consumer_id"]
    for step in range(steps):
        for p, (owner, lag, arrive, read) in enumerate(partitions):
            end = 10**6 + arrive * step * MINUTES * 60
            done = 10**6 - lag + read * step * MINUTES * 60
            name = owner if owners is None else owners(step, owner)
            rows.append(f"2026-01-31T12:{step * MINUTES:02}:00Z,g,t,{p},{end},{done},{name}")
    return "\n".join(rows) + "\n"


def planned(topics: Mapping[str, list[int]], names: list[str]) -> Problem:
    """A group whose assignment today is the best one."""
    return Problem.from_lags(topics, names, owned=evenlag.solve(Problem.from_lags(topics, names)).assignment)


def diagnosed(text: str, **more: Any) -> evenlag.Diagnosis:
    """Diagnose the latest snapshot of a record."""
    history = evenlag.read_history(StringIO(text))
    return evenlag.diagnose(history[-1].problem, record=history, **more)


EVEN = {"t": [100, 101, 99, 100]}
GROUPS: dict[str, tuple[str, Callable[[], evenlag.Diagnosis], str]] = {
    "even": ("none", lambda: evenlag.diagnose(owned_as("range", EVEN, ["a", "b"])), "0.50 % above the mean: leave"),
    "assignor": (
        "setting",
        lambda: evenlag.diagnose(owned_as("range", {f"t{n}": [90, 80] for n in range(9)}, [*"abcdef"])),
        "exactly what range gives, and 4 of 6 members are idle: change partition.assignment.strategy",
    ),
    "assignment": (
        "plan",
        lambda: evenlag.diagnose(
            Problem.from_lags(
                {"t": [900, 800, 10, 20]},
                ["a", "b"],
                owned={"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]},
                assignor="lag-based",
            )
        ),
        "Member a has 1,700 messages, where the mean is 865: apply the plan of evenlag plan (2 moves)",
    ),
    "hot-partition": (
        "partitions",
        lambda: evenlag.diagnose(owned_as("range", {"t": [90_000, 10, 10, 10]}, ["a", "b"])),
        "Partition t-0 alone has 99.97 % of all lag (90,000 messages)",
    ),
    "count-balance": (
        "plan",
        lambda: evenlag.diagnose(planned({"t": [300, 100, 100, 100]}, ["a", "b"])),
        "The count balance holds the group up",
    ),
    "idle-members": (
        "members",
        lambda: evenlag.diagnose(owned_as("range", {"t": [100, 100, 100]}, [*"abcde"])),
        "5 members share 3 partitions, so 2 of them are idle: run 3 members",
    ),
    "left-over": (
        "setting",
        lambda: evenlag.diagnose(
            evenlag.read(
                StringIO("group,topic,partition,lag,consumer_id\ng,live,0,10,a\ng,live,1,11,b\ng,old,0,100000,\n")
            )
        ),
        "of the lag is of old, which has no owner, so it is assumed",
    ),
    "no-members": (
        "members",
        lambda: evenlag.diagnose(Problem.from_lags({"t": [5, 6]}, [])),
        "The group has no members, and 11 messages in 2 partitions wait",
    ),
    "unsettled": (
        "none",
        lambda: evenlag.diagnose(owned_as("range", EVEN, ["a", "b"], facts={"state": "PreparingRebalance"})),
        "A rebalance was under way (state PreparingRebalance)",
    ),
    "stuck-member": (
        "members",
        lambda: diagnosed(record([("a", 100, 10, 10), ("b", 500, 10, 0), ("c", 90_000, 20, 30)])),
        "Member b commits nothing while its lag grows",
    ),
    "too-slow": (
        "partitions",
        lambda: diagnosed(record([("a", 90_000, 30, 20), *((name, 90_000, 1, 20) for name in "bcd")])),
        "No number of members reads as much as comes in, because t-0 receives 30 messages/s and a member reads 20/s",
    ),
    "too-few-members": (
        "members",
        lambda: diagnosed(record([(name, 90_000, 15, 10) for name in "aabb"])),
        "2 members read 40 messages/s, and 60/s arrive: run 4 members instead of 2",
    ),
    "unlike-members": (
        "weights",
        lambda: diagnosed(record([("a", 100_000, 1, 20)] * 6 + [("b", 100_000, 1, 5)] * 6)),
        "The members read at different speeds, 30 to 120 messages/s, and their weights are equal",
    ),
}


@pytest.mark.parametrize("cause", GROUPS)
def test_each_cause_is_named_with_the_remedy_of_least_effort(cause: str) -> None:
    kind, diagnose, words = GROUPS[cause]
    found = diagnose()
    assert (found.cause, found.remedies[0].kind) == (cause, kind), str(found)
    assert words in found.verdict
    assert found.remedies[0].sentence in str(found)
    verdicts = evenlag.check_diagnosis(found, found.case.problem)
    assert "refused" not in {each.outcome for each in verdicts}, verdicts


@pytest.mark.parametrize(
    ("unowned", "words"),
    [
        ([1], "Partition t-1 has no owner, with 7 messages"),
        ([1, 2, 4], "Partitions t-1, t-2 and t-4 have no owner, with 112 messages"),
        ([1, 2, 4, 5], "Partitions t-1, t-2, t-4 and 1 more have no owner, with 113 messages"),
    ],
)
def test_partitions_without_an_owner_are_named(unowned: list[int], words: str) -> None:
    owned = {"a": [("t", p) for p in range(6) if p not in unowned], "b": []}
    problem = Problem.from_lags({"t": [100, 7, 99, 100, 6, 1]}, ["a", "b"], owned=owned)
    assert str(evenlag.diagnose(problem, time_limit=1)).startswith(f"{words}:")


@pytest.mark.parametrize(("lag", "seen"), [(90_000, "members with a backlog"), (100, "the fastest member")])
def test_the_speed_of_members_is_told_with_where_it_was_seen(lag: int, seen: str) -> None:
    found = diagnosed(record([("a", lag, 20, 20), ("b", lag, 20, 20)]))
    assert found.case.assumed_speed == f"a member reads 20 messages/s, as {seen} read in the record"


def group(random: Random) -> Problem:
    """A random group with owners by one of several rules."""
    names = [f"c{m}" for m in range(random.randint(1, 8))]
    topics = {
        f"t{n}": [
            int(random.choice([0, 1, 10]) * random.lognormvariate(5, random.choice([0.2, 1.5]))) for _ in range(size)
        ]
        for n, size in enumerate(random.randint(1, 10) for _ in range(random.randint(1, 4)))
    }
    weights = {name: random.choice([1, 2, 0.5]) for name in names} if random.random() < 0.2 else {}
    rule = random.choice(["range", "roundrobin", "sticky", "swap-balance", None])
    if rule is not None:
        return owned_as(rule, topics, names, weights=weights)
    owned: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    for topic, lags in topics.items():
        for p in range(len(lags)):
            owned[random.choice(names)].append((topic, p))
    return Problem.from_lags(topics, names, owned=owned, weights=weights)


@pytest.mark.parametrize("seed", seeds(40))
def test_all_figures_hold_and_the_first_remedy_recovers_half(seed: int) -> None:
    problem = group(Random(seed))
    found = evenlag.diagnose(problem, time_limit=1, deterministic=True)
    document = json.loads(json.dumps(found.to_dict()))
    assert {each.outcome for each in evenlag.check_diagnosis(document, problem.to_dict())} == {"verified"}
    shares = [each.recovers for each in found.remedies if each.recovers is not None]
    assert all(share >= max(shares) / 2 > 0 for share in shares)
    if found.remedies[0].kind == "none" and found.cause == "even":  # nothing that evenlag knows does better
        best = found.case.solved.payoff
        assert best is None or not best.saved >= 0.2 * float(best.today) > 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["remedies"][0].update(spread=d["remedies"][0]["spread"] - 1), "spread is"),
        (lambda d: d["remedies"][0].update(makespan=1), "makespan is"),
        (lambda d: d["remedies"][0].update(moves=0), "moves is"),
        (lambda d: d["remedies"][0].update(recovers=0.99), "recovers is"),
        (lambda d: d["remedies"][0].update(drain_seconds=3), "a drain time belongs to a lag that drains"),
        (lambda d: d["remedies"][0]["group_after"]["topics"]["t"].update({"0": 1}), "other lags"),
        (lambda d: d["remedies"][0]["group_after"]["assignment"]["a"].append(["t", 7]), "unknown one"),
        (lambda d: d["remedies"][0]["group_after"]["weights"].update(b=2.0), "weight of b is"),
        (lambda d: d["today"].update(lag=1), "lag is"),
        (lambda d: d["finding"].update(busiest_lag=1), "busiest_lag is"),
        (lambda d: d["finding"].update(busiest="b"), "not the busiest"),
        (lambda d: d["finding"].update(busiest="z"), "cannot be read"),
        (lambda d: d["finding"].update(other=1), "unknown figure"),
    ],
)  # fmt: skip
def test_a_changed_figure_is_refused(change: Callable[[dict[str, Any]], None], reason: str) -> None:
    found = GROUPS["assignment"][1]()
    document = json.loads(json.dumps(found.to_dict()))
    change(document)
    refused = [
        each.reason for each in evenlag.check_diagnosis(document, found.case.problem) if each.outcome == "refused"
    ]
    assert len(refused) == 1
    assert reason in refused[0]


def test_only_assignors_of_the_client_are_proposed() -> None:
    topics = {f"t{n}": [90, 80] for n in range(9)}
    rdkafka = owned_as("range", topics, [f"rdkafka-{UUID}{n}" for n in range(6)])
    assert rdkafka.facts.client == "librdkafka"
    found = evenlag.diagnose(rdkafka)
    assert "to roundrobin (cooperative-sticky does as well)" in found.verdict
    assert any("that of librdkafka may differ" in sentence for sentence in found.assumed)
    only = owned_as("roundrobin", topics, [f"kafkajs-{UUID}{n}" for n in range(6)])
    assert "setting" not in {each.kind for each in evenlag.diagnose(only).remedies}


def test_kafka_streams_keeps_its_own_assignment() -> None:
    names = [f"app-{UUID}1-StreamThread-{n}-consumer-{UUID}2" for n in (1, 2)]
    owned = {names[0]: [("t", 0), ("t", 1)], names[1]: [("t", 2), ("t", 3)]}
    found = evenlag.diagnose(Problem.from_lags({"t": [900, 800, 1, 2]}, names, owned=owned))
    assert [each.kind for each in found.remedies] == ["none"]
    assert "leave the assignment to Kafka Streams" in found.verdict


def test_a_deadline_asks_for_more_members() -> None:
    text = record([("a", 90_000, 1, 10), ("a", 90_000, 1, 10), ("b", 90_000, 1, 10), ("b", 90_000, 1, 10)])
    unasked, asked = diagnosed(text), diagnosed(text, drain_seconds=4_500)
    assert unasked.cause == "even"
    assert asked.cause == "too-few-members"
    assert "cannot read all lag within 1 h 15 min" in asked.verdict
    assert float(asked.remedies[0].drain_seconds or 0) <= 4_500 < float(unasked.case.drain_today or 0)
    assert DEADLINE == 3_600


def test_members_that_are_replaced_all_the_time_get_fixed_names() -> None:
    names = {"a": "xyz", "b": "uvw"}
    text = record([("a", 100, 1, 1), ("b", 100, 1, 1)], owners=lambda step, owner: names[owner][step])
    found = diagnosed(text)
    assert (found.cause, found.remedies[0].kind) == ("unsettled", "setting")
    assert "set group.instance.id on each member" in found.verdict
    assert found.remedies[0].sentence.endswith("causes no rebalance.")


def test_whole_figures_are_checked_to_the_last_message() -> None:
    problem = Problem.from_lags({"t": [2**60 + 1, 2**60]}, ["a", "b"], owned={"a": [("t", 0), ("t", 1)]})
    document = evenlag.diagnose(problem, time_limit=1).to_dict()
    assert {each.outcome for each in evenlag.check_diagnosis(document, problem)} == {"verified"}
    document["today"]["makespan"] += 1
    assert evenlag.check_diagnosis(document, problem)[0].outcome == "refused"


def test_a_cause_found_without_a_plan_needs_none_that_keeps_the_limits() -> None:
    problem = Problem.from_lags({"t": [50]}, ["a", "b"], owned={"a": [("t", 0)]}, facts={"state": "Assigning"})
    document = evenlag.diagnose(problem, max_load=40, time_limit=1).to_dict()
    assert (document["cause"], document["bound"]) == ("unsettled", None)


def test_parameters_are_checked() -> None:
    problem = owned_as("range", EVEN, ["a", "b"])
    with pytest.raises(TypeError, match="diagnose"):
        evenlag.diagnose(problem, horizon=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidProblemError, match="capacity"):
        evenlag.diagnose(problem, capacity=-1)
    for seconds in (0, -1, "soon"):
        with pytest.raises(InvalidProblemError, match="drain_seconds must be a number of seconds > 0"):
            evenlag.diagnose(problem, drain_seconds=seconds)  # type: ignore[arg-type]
    with pytest.raises(InvalidProblemError, match="not a diagnosis"):
        evenlag.check_diagnosis({}, problem)


def test_times_that_read_the_same_are_shown_once() -> None:
    owned = {"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)], "c": [("t", 4), ("t", 5)]}
    group = Problem.from_lags({"t": [10**6, 3, 500_000, 499_990, 0, 1]}, list("abc"), owned=owned)
    sentences = [remedy.sentence for remedy in evenlag.diagnose(group, capacity=1).remedies]
    assert sentences
    assert all("all lag read after 11 d 14 h, " in sentence for sentence in sentences)


def test_the_command_to_delete_offsets_quotes_names_and_counts_the_rest() -> None:
    rows = "".join(f"a b,old{n},0,1000,\n" for n in range(5))
    found = evenlag.diagnose(evenlag.read(StringIO(f"group,topic,partition,lag,consumer_id\na b,live,0,10,a\n{rows}")))
    assert "--delete-offsets --group 'a b' --topic old0 --topic old1 --topic old2 and 2 more)" in found.verdict


def test_plans_for_assumed_partitions_are_not_searched_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[int, float] = {}

    def noted(problem: Problem, options: SolveOptions, **how: Any) -> evenlag.Result:
        asked[len(problem.lags)] = options.gap
        return search(problem, options, **how)

    monkeypatch.setattr("evenlag.compare.case.search", noted)
    found = GROUPS["hot-partition"][1]()
    there = len(found.case.problem.lags)
    assert asked.pop(there) < ASSUMED_GAP
    assert asked
    assert set(asked.values()) == {ASSUMED_GAP}
