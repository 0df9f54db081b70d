"""The Java assignor that follows published plans, without a broker: its answers, its reader of plans, its user data."""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from evenlag.live.followed_plan import FollowedPlan, _parsed
from evenlag.protocol.user_data import PlanUserData, decode_plan_member
from tests.oracle.sequences import steps
from tests.support.plan_groups import KAFKAS, KINDS, Case, Held, Rebalances, case_of, uneven
from tests.support.plan_jar import Driver, running_driver
from tests.support.problems import cases, seeds

pytestmark = [pytest.mark.broker, pytest.mark.slow]

SEED = 47
GROUPS = 200
PLAN = {
    "group": "g",
    "version": 7,
    "assignment": {"c1": [["orders", 0], ["orders", 1]], "c2": [["a.b-c_D", 12]], "é ü": []},
    "members": {"c1": {"client_id": "app", "host": None, "zone": 1}, "c2": {"group_instance_id": "i", "rack": "a"}},
    "lags": {"orders": [5, 7], "a.b-c_D": {"12": 2**62}},
}


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    with running_driver() as running:
        yield running


# ---- rebalances ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["cooperative", "eager"])
def test_answers_are_valid_and_follow_the_plan(driver: Driver, tmp_path: Path, protocol: str) -> None:
    """Each step has a new leader, which knows nothing of earlier plans."""
    kinds: Counter[str] = Counter()
    given = 0
    for number in seeds(GROUPS):
        random = Random(f"{SEED}/{number}")
        held: Held = {}
        for version, step in enumerate(steps(SEED, number), 1):
            case = case_of(step, random, version)
            kinds[case.kind] += 1
            place = tmp_path / f"{number}-{version}.json"
            group = Rebalances(driver, place, held, version, **{"evenlag.plan.protocol": protocol})
            for before, after in group.settle(case):
                check(case, before, after)
            owner = {each: name for name, partitions in group.held.items() for each in partitions}
            assert set(owner) == case.existing()
            assert {each: owner[each] for each in case.meant} == case.meant
            given += len(case.meant)
            assert uneven(case, group.held) == []
            if case.kind in ("broken", "none"):
                kafkas = Rebalances(driver, place, held, version, "CooperativeStickyAssignor")
                assert list(kafkas.settle(case))[-1][1] == group.held
            held = group.held
    assert set(kinds) == set(KINDS)
    assert given > 20 * cases(GROUPS)


def check(case: Case, before: Held, after: Held) -> None:
    """Check that each partition goes to one member that reads it, and none that another member still owns."""
    owners = {each: name for name, partitions in before.items() for each in partitions}
    given = [each for partitions in after.values() for each in partitions]
    assert len(given) == len(set(given))
    assert set(given) <= case.existing()
    for member in case.members:
        assert {topic for topic, _ in after[member.id]} <= set(member.topics)
        assert all(owners.get(each, member.id) == member.id for each in after[member.id])


@pytest.mark.parametrize("fallback", ["StickyAssignor", "RangeAssignor", "RoundRobinAssignor"])
def test_without_a_plan_each_fallback_assigns_as_alone(driver: Driver, tmp_path: Path, fallback: str) -> None:
    for number in seeds(60):
        held: Held = {}
        for version, step in enumerate(steps(SEED, number), 1):
            case = case_of(step, Random(number), version)
            case.content = None
            eager = {"evenlag.plan.protocol": "eager", "evenlag.plan.fallback": KAFKAS + fallback}
            ours = Rebalances(driver, tmp_path / f"{number}-{version}", held, version, **eager)
            theirs = Rebalances(driver, tmp_path / f"{number}-{version}", held, version, fallback)
            assert list(ours.settle(case)) == list(theirs.settle(case))
            held = ours.held


def test_a_fallback_that_fails_or_answers_wrongly_fails_no_rebalance(driver: Driver, tmp_path: Path) -> None:
    for fallback in ("Failing", "Wrong"):
        for number in seeds(60):
            for version, step in enumerate(steps(SEED, number), 1):
                case = case_of(step, Random(number), version)
                case.content = None
                settings = {"evenlag.plan.fallback": f"io.evenlag.{fallback}Assignor"}
                group = Rebalances(driver, tmp_path / f"{number}-{version}", {}, version, **settings)
                for before, after in group.settle(case):
                    check(case, before, after)
                assert {each for partitions in group.held.values() for each in partitions} == case.existing()


def test_two_claims_of_one_partition_are_both_revoked(driver: Driver, tmp_path: Path) -> None:
    place = tmp_path / "plan.json"
    place.write_text(json.dumps({"group": "g", "version": 1, "assignment": {"a": [["t", 0]], "b": [["t", 1]]}}))
    claims = {name: {"topics": ["t"], "owned": [["t", 0]], "generation": 3} for name in ("a", "b")}
    asked = {"topics": {"t": 2}, "leader": "claims", "configs": {"evenlag.plan.file": str(place)}}
    first = driver.ask("assign", members=claims, **asked)["assignment"]
    assert first == {"a": [], "b": [["t", 1]]}


# ---- plans ---------------------------------------------------------------------------------------------------------


def test_a_leader_keeps_its_plan_until_a_newer_valid_one_is_published(driver: Driver, tmp_path: Path) -> None:
    place = tmp_path / "plan.json"
    members = {name: {"topics": ["t"]} for name in ("a", "b")}

    def owner_after(content: str | None) -> str:
        if content is None:
            place.unlink()
        else:
            place.write_text(content)
        answer = driver.ask(
            "assign", topics={"t": 1}, members=members, leader="keeps", configs={"evenlag.plan.file": str(place)}
        )["assignment"]
        return next(name for name, partitions in answer.items() if partitions)

    def plan(version: int, owner: str) -> str:
        return json.dumps({"group": "g", "version": version, "assignment": {owner: [["t", 0]]}})

    assert owner_after(plan(5, "b")) == "b"
    for content in (plan(4, "a"), plan(5, "a"), plan(6, "a")[:-1], plan(7, "a").replace("g", "h", 1), "", None):
        assert owner_after(content) == "b"
    assert owner_after(plan(5, "b")) == "b"
    assert owner_after(plan(6, "a")) == "a"


def test_members_are_named_by_instance_id_member_id_or_client_id(driver: Driver, tmp_path: Path) -> None:
    place = tmp_path / "plan.json"
    tails = [f"{n}c9f2c1e-0000-4000-8000-00000000000{n}" for n in range(6)]
    static, named, plain, late, twin, other = (
        f"{name}-{tail}" for name, tail in zip(("i1", "c2", "c3", "c4", "twin", "twin"), tails, strict=True)
    )
    names = ["i1", named, "c3", f"c4-{tails[0]}", "twin"]
    assignment = {name: [["t", number]] for number, name in enumerate(names)}
    place.write_text(json.dumps({"group": "g", "version": 1, "assignment": assignment}))
    members = {member: {"topics": ["t"]} for member in (static, named, plain, late, twin, other)}
    members[static] |= {"instance": "i1"}
    answer = driver.ask(
        "assign", topics={"t": 5}, members=members, leader="names", configs={"evenlag.plan.file": str(place)}
    )["assignment"]
    for number, member in enumerate((static, named, plain, late)):
        assert ["t", number] in answer[member]
    assert sum(["t", 4] in partitions for partitions in answer.values()) == 1  # by the fallback: two have the name


def test_plans_are_read_as_followers_in_python_read_them(driver: Driver) -> None:
    taken = 0
    for seed in seeds(10_000):
        content = mutated(Random(seed))
        ours = _parsed(content, "g", "plan")
        answer = driver.ask("parse", content=base64.b64encode(content).decode(), group="g")
        if isinstance(ours, FollowedPlan):
            taken += 1
            assert "invalid" not in answer, (content, answer)
            assert answer["version"] == ours.version
            theirs = {name: sorted(map(tuple, pairs)) for name, pairs in answer["assignment"].items()}
            assert theirs == {name: list(pairs) for name, pairs in ours.assignment.items()}
        else:
            assert "invalid" in answer, (content, ours)
    assert cases(10_000) / 10 < taken < cases(10_000) / 1.5


VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    1e300,
    2**31 - 1,
    2**31,
    2**63 - 1,
    2**63,
    "",
    "g",
    "c1",
    "a\tb",
    [],
    {},
    [["t", 0]],
]


def mutated(random: Random) -> bytes:
    """Return the text of a plan with a change of its values, its characters or its bytes, or unchanged."""
    document = json.loads(json.dumps(PLAN))
    kind = random.choice(["value", "text", "text", "bytes", "none"])
    if kind == "value":
        places = [document, document["assignment"], document["members"], document["members"]["c1"]]
        place = random.choice([document, *places, document["lags"], document["lags"]["a.b-c_D"]])
        place[random.choice([*place, "more"])] = random.choice(VALUES)
        if random.random() < 0.5 and isinstance(document["assignment"], dict):
            document["assignment"]["c3"] = [[random.choice(["t", "", "a b", 3, "x" * 250]), random.choice(VALUES)]]
    text = json.dumps(document, ensure_ascii=random.random() < 0.5, indent=random.choice([None, 1]))
    if kind == "text":
        at = random.randrange(len(text))
        new = random.choice(["", *'{}[]",:0123456789.eE+-\\ntu \n\x00'])
        text = text[:at] + new + text[at + random.choice([0, 1]) :]
    content = text.encode()
    if kind == "bytes":
        at = random.randrange(len(content))
        content = content[:at] + bytes([random.randrange(256)]) + content[at + 1 :]
    return content


# ---- user data -----------------------------------------------------------------------------------------------------


def test_user_data_hold_the_weight_the_plan_and_what_an_eager_member_had(driver: Driver, tmp_path: Path) -> None:
    place = tmp_path / "plan.json"
    settings = {"evenlag.plan.file": str(place), "evenlag.plan.weight": "900"}
    owned = [("t", 3), ("t", 0), ("u.v", 2**31 - 1)]
    sent = driver.ask("join", leader="weight", configs=settings)["sent"]
    assert decode_plan_member(bytes.fromhex(sent)) == PlanUserData(900)
    place.write_text(json.dumps({"group": "g", "version": 2**63 - 1, "assignment": {}}))
    sent = driver.ask("join", leader="weight", configs=settings, assigned=owned)["sent"]
    assert decode_plan_member(bytes.fromhex(sent)) == PlanUserData(900, 2**63 - 1)
    sent = driver.ask("join", leader="eager", configs=settings | {"evenlag.plan.protocol": "eager"}, assigned=owned)[
        "sent"
    ]
    told = decode_plan_member(bytes.fromhex(sent))
    assert (told.weight, sorted(told.owned)) == (900, sorted(owned))


def test_any_user_data_are_survived(driver: Driver, tmp_path: Path) -> None:
    for seed in seeds(1000):
        random = Random(seed)
        sent = bytes.fromhex("0001 00000384 0000000000000007 00000001 74 00000002 00000000 00000001")
        at = random.randrange(len(sent))
        sent = sent[:at] + random.randbytes(random.choice([0, 1, 4])) + sent[at + random.choice([0, 1, 4]) :]
        members = {"a": {"topics": ["t"], "generation": 1, "sent": sent.hex()}, "b": {"topics": ["t"], "generation": 1}}
        answer = driver.ask(
            "assign",
            topics={"t": 3},
            members=members,
            leader="bytes",
            configs={"evenlag.plan.file": str(tmp_path / "x")},
        )["assignment"]
        assert sorted(pair for pairs in answer.values() for pair in pairs) == [["t", 0], ["t", 1], ["t", 2]]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "needs either evenlag.plan.file or evenlag.plan.topic"),
        ({"file": "x", "topic": "y"}, "needs either evenlag.plan.file or evenlag.plan.topic"),
        ({"file": "x", "fiel": "y"}, "evenlag.plan.fiel is not a setting of PlanAssignor"),
        ({"file": "x", "protocol": "fast"}, "String must be one of: cooperative, eager"),
        ({"file": "x", "fallback": "java.lang.String"}, "evenlag.plan.fallback: "),
        ({"file": "x", "fallback": "io.evenlag.PlanAssignor"}, "evenlag.plan.fallback"),
        ({"file": "x", "weight": "0"}, "evenlag.plan.weight"),
    ],
)
def test_wrong_settings_fail_at_the_start_and_are_named(
    driver: Driver, settings: dict[str, str], expected: str
) -> None:
    configs = {f"evenlag.plan.{name}": value for name, value in settings.items()}
    with pytest.raises(RuntimeError, match=expected):
        driver.ask("join", leader=f"wrong {settings}", configs=configs)
