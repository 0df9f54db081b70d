"""The Java jar decides on the rebalances and plans of simulated stories by the rules of Python, and of its page."""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from evenlag.live import time_source
from evenlag.live.assignor.course import in_phases
from evenlag.live.bearers import bearers_of
from evenlag.live.follow import Follow
from evenlag.live.followed_plan import FollowedPlan, UnreadError, _parsed
from evenlag.simulation.plan_assignor import PlanAssignor
from tests.support.plain_kafka import Consumer, Inbox, Kafka
from tests.support.plan_groups import uneven
from tests.support.plan_jar import Driver, running_driver
from tests.support.problems import seeds
from tests.support.recorded_stories import (
    Given,
    Partition,
    Reading,
    Rebalance,
    Step,
    broker_cases,
    readings,
    rebalances,
)
from tests.support.story_plans import KINDS, Told, leftovers_shared, told

pytestmark = [pytest.mark.broker, pytest.mark.slow]

HOURS = 0.25
MEMBER_ID = "{}-00000000-0000-0000-0000-000000000001"


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    with running_driver() as running:
        yield running


# ---- rebalances ----------------------------------------------------------------------------------------------------


def shapes(story: list[Rebalance], random: Random) -> Iterator[tuple[Rebalance, Rebalance]]:
    """Yield the rebalances of a story, each with the one before it, and changed in three ways."""
    for before, now in zip([story[0], *story], story, strict=False):
        spread = random.random()
        yield before, now
        yield before.spread(Random(spread)), now.spread(Random(spread))
        yield before.alike(), now.alike()
        yield before, now.with_return_of(before)


def test_java_divides_the_partitions_of_stories_by_its_page_and_as_python_does(driver: Driver) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds(10):
        random = Random(seed)
        for before, now in shapes(rebalances(seed, HOURS), random):
            for kind in KINDS:
                case = told(now, before, kind, random)
                answer = driver.ask("divide", **case.request(random))
                again = driver.ask("divide", **case.request(random))
                assert again == answer or answer["by_plan"] == 0  # Kafka's fallback looks at the order
                check(case, answer, seen)
    assert seen.total() > 10_000
    assert all(seen[each] > 20 for each in ("cases", "names", "planned", "shared", "as decided", "waiting")), seen


def check(case: Told, answer: Any, seen: Counter[str]) -> None:
    target, now = (pairs(answer[name]) for name in ("target", "now"))
    withheld = {tuple(each) for each in answer["withheld"]}
    seen["cases"] += 1
    check_validity(case, target, now, withheld, answer["by_plan"])
    seen["waiting"] += len(withheld)
    planned = check_names(case, answer, target)
    seen["names"] += len(answer["names"])
    seen["planned"] += sum(map(len, planned.values()))
    if planned:
        left = leftovers_shared(case, planned)
        assert {key: name for name, keys in target.items() for key in keys if key in left} == left
        assert uneven_by_java(case, planned, target) == []
        seen["shared"] += len(left)
    check_phases(case, target, now, seen)


def check_validity(case: Told, target: Given, now: Given, withheld: set[Partition], by_plan: int) -> None:
    """Check that each subscribed partition has one member that reads it, or waits for its last owner."""
    members = case.rebalance.members
    claims = {key for each in members.values() for key in each.owned}
    for given in (target, now):
        keys = [key for mine in given.values() for key in mine]
        assert len(keys) == len(set(keys))
        assert all(key[0] in members[name].topics for name, mine in given.items() for key in mine)
    assert now.keys() == members.keys()
    assert {key for mine in now.values() for key in mine} | withheld == case.existing
    assert {key for mine in target.values() for key in mine} >= case.existing - claims
    assert not by_plan or sum(map(len, target.values())) == len(case.existing)


def check_names(case: Told, answer: Any, target: Given) -> Given:
    """Check that names stand for members as Python finds them; return what the plan gives to these members."""
    plan, names = case.plan, answer["names"]
    if plan is None:
        assert names == {}
        return {}
    known = {
        name: {"client_id": name[:-37], "group_instance_id": case.instances[name], "host": None}
        for name in case.rebalance.members
    }
    bearers = {name: bearers_of(plan, name, known) for name in plan.assignment}
    of_member = dict(names)
    by_name = {name: member for member, name in of_member.items()}
    assert len(by_name) == len(of_member)
    assert all(member in bearers[name] for name, member in by_name.items())
    assert all(bearers[name] <= of_member.keys() for name in plan.assignment.keys() - by_name.keys())
    assert {name: by_name[name] for name in case.stands_for} == case.stands_for
    assert len(answer["absent"]) == len(plan.assignment) - len(by_name)
    check_choice(case, plan, bearers, by_name)
    meant = {name: plan.assignment[by] for name, by in of_member.items()}
    reads = {name: each.topics for name, each in case.rebalance.members.items()}
    planned = {
        name: [key for key in keys if key in case.existing and key[0] in reads[name]] for name, keys in meant.items()
    }
    assert all(set(keys) <= set(target.get(name, ())) for name, keys in planned.items())
    assert answer["by_plan"] == sum(map(len, planned.values()))
    ignored = sorted(key for name, keys in meant.items() for key in keys if key not in planned[name])
    assert sorted(pairs({"": answer["missing"] + answer["not_read"]})[""]) == ignored
    return planned if answer["by_plan"] else {}


def check_choice(case: Told, plan: FollowedPlan, bearers: dict[str, set[str]], by_name: dict[str, str]) -> None:
    """Check that among members alike, none would rather have a name whose member holds less of its partitions."""
    had = case.had()
    of_member = {member: name for name, member in by_name.items()}

    def share(name: str | None, member: str | None) -> float:
        keys = set(plan.assignment.get(name or "", ()))
        return len(keys & set(had[member])) / len(keys) if keys and member else 0.0

    if len({name[:-37] for name in case.rebalance.members}) == 1 < len(case.rebalance.members):
        direct = {name for name in plan.assignment if name == "app" or name in had}
        told = plan.members.keys() - direct  # these names come first, then names of earlier runs
        for names in (told, plan.assignment.keys() - direct - told):
            taken = {by_name.get(each) for each in plan.assignment.keys() - names}
            for name in names:
                for member in bearers[name] - taken:
                    better = share(name, member)
                    assert better <= max(share(of_member.get(member), member), share(name, by_name.get(name)))


def uneven_by_java(case: Told, planned: Given, target: Given) -> list[tuple[str, str]]:
    """Return pairs of members of which the first could give a leftover to the second, which has two less."""
    members = [SimpleNamespace(id=name, topics=each.topics) for name, each in case.rebalance.members.items()]
    meant = {key: name for name, keys in planned.items() for key in keys}
    held = {member.id: set(target.get(member.id, ())) for member in members}
    return uneven(SimpleNamespace(members=members, meant=meant), held)  # type: ignore[arg-type]


def check_phases(case: Told, target: Given, now: Given, seen: Counter[str]) -> None:
    """Check that members get the target at once but for what others hold, by Python's rule for a hand-over.

    Where members claim a partition in several generations, Python waits for the latest claim, and Java for all.
    """
    members = case.rebalance.members
    generations: dict[Partition, set[int | None]] = {}
    for each in members.values():
        for key in each.owned:
            generations.setdefault(key, set()).add(each.generation)
    given, _ = in_phases({name: target.get(name, []) for name in members}, members)
    disputed = {key for key, several in generations.items() if len(several) > 1}
    for name, keys in given.items():
        assert set(now[name]) - disputed == set(keys) - disputed
        assert set(now[name]) <= set(keys)
    decided = case.rebalance.target
    if case.kind == "decided" and decided and set(case.stands_for.values()) == members.keys():
        seen["as decided"] += 1
        assert {name: sorted(target.get(name, ())) for name in decided} == {n: sorted(k) for n, k in decided.items()}
        assert {name: sorted(keys) for name, keys in now.items()} == {
            name: sorted(keys) for name, keys in case.rebalance.now.items()
        }


def pairs(answer: dict[str, list[list[Any]]]) -> Given:
    return {name: [(topic, number) for topic, number in several] for name, several in answer.items()}


def test_the_broker_s_jar_assigns_as_the_simulated_broker(driver: Driver) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds(10):
        for case in broker_cases(seed, 2 * HOURS):
            members = {
                each.member_id: {
                    "topics": sorted(each.topics & case.topics.keys()),
                    "client": each.client_id,
                    "instance": each.instance,
                    "owned": case.before.get(each.member_id, []),
                }
                for each in case.members
            }
            content = json.dumps(case.plan.to_dict() | {"group": "g"})
            given = driver.ask("broker", topics=case.topics, members=members, plan=content)["assignment"]
            assert {name: sorted(keys) for name, keys in pairs(given).items()} == case.given
            seen["cases"] += 1
            seen["static"] += any(each.instance is not None for each in case.members)
            planned = PlanAssignor(case.plan).planned(case.members, case.topics, case.before)
            seen["left over"] += sum(map(len, case.given.values())) > sum(map(len, planned.values()))
            seen["unknown"] += any(each.client_id is None for each in case.members)
    assert all(seen[each] > 20 for each in ("cases", "static", "left over", "unknown")), seen


# ---- plans that are read ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "count"), [("followers", 2), ("loops", 1)])
def test_java_follows_the_plans_that_followers_of_stories_follow(driver: Driver, kind: str, count: int) -> None:
    several = [each for seed in seeds(count) for each in readings(seed, 2 * HOURS, kind)]
    seen: Counter[str] = Counter()
    for reading in several:
        check_reading(driver, reading, seen)
    for number in range(100):
        check_reading(driver, reread(several[number % len(several)], Random(number)), seen)
    assert all(seen[each] > 20 for each in ("taken", "troubled", "unread", "due", "in force", "behind")), seen


def check_reading(driver: Driver, reading: Reading, seen: Counter[str]) -> None:
    """Check what a member in Java follows, and when it asks for a rebalance, if it reads and holds the same."""
    member = MEMBER_ID.format(reading.member)
    answers = driver.ask("watch", group=reading.group, member=member, steps=list(map(told_step, reading.steps)))
    known = taken = in_force = 0
    holds: set[Partition] | None = None
    for step, answer in zip(reading.steps, answers["steps"], strict=True):
        owners = {key: name for name, keys in pairs(answer["assignment"]).items() for key in keys}
        assert (answer["version"], owners, answer["trouble"] != "") == (step.version, step.owners, step.troubled)
        mine = {key for key, name in step.owners.items() if name == reading.member}
        due = holds is not None and step.version > known
        if due:
            known, in_force = step.version, step.version * follows(holds or set(), mine, step)
        assert answer["due"] == (step.version if due and not in_force else 0)
        if step.holds is not None:
            holds, known = set(step.holds), step.version
            in_force = step.version * follows(holds, mine, step)
            assert (answer["joins_with"], answer["by_plan"]) == (step.version, len(holds & mine))
        assert answer["in_force"] == in_force
        seen["taken"] += step.version > taken
        taken = step.version
        seen["unread"] += step.news is None
        for name, is_so in {"troubled": step.troubled, "due": answer["due"], "in force": in_force}.items():
            seen[name] += bool(is_so)
        seen["behind"] += bool(step.version and not in_force)


def follows(holds: set[Partition], mine: set[Partition], step: Step) -> bool:
    """Return whether a member holds what the plan gives it, and nothing that the plan gives to others."""
    return mine <= holds and not any(key in step.owners for key in holds - mine)


def told_step(step: Step) -> dict[str, Any]:
    news = None if step.news is None else [base64.b64encode(each).decode() for each in step.news]
    return {"news": news} | ({} if step.holds is None else {"holds": step.holds})


def reread(reading: Reading, random: Random) -> Reading:
    """Return the looks of a follower in Python at the records of a reading, with others among them."""
    kafka = Kafka([("t", number) for number in range(8)])
    inbox, found = Inbox(reading.group), Reading(reading.group, reading.member)
    before, time_source.now = time_source.now, kafka.clock
    try:
        follow = Follow(Consumer(kafka), inbox, reading.member, auto_offset_reset="earliest")
        for news in changed([each for step in reading.steps for each in step.news or ()], random):
            told = [UnreadError("not read")] if news is None else [_parsed(each, reading.group, "") for each in news]
            inbox.unread = list(told)
            for _ in range(random.randint(1, 3)):  # a claim stands at the second look
                kafka.now += 10.0
                assert list(follow.consume(0)) == []
            found.note(follow, news)
    finally:
        time_source.now = before
    return found


def changed(records: list[bytes], random: Random) -> Iterator[list[bytes] | None]:
    """Yield the news of looks at a topic with these records and others, which is not read now and then."""
    written: list[bytes] = []
    unread: list[bytes] = []
    for record in records:
        for each in [*([another(written, random)] if random.random() < 0.5 else ()), record]:
            written.append(each)
            unread.append(each)
        if random.random() < 0.2:
            yield None
            written = written[-1:] if random.random() < 0.5 else written  # compacted meanwhile
            unread = list(written)
        if random.random() < 0.6:
            yield unread
            unread = []
    yield unread


def another(written: list[bytes], random: Random) -> bytes:
    """Return a record that followers must not take for the next plan."""
    before = random.choice(written) if written else b""
    try:
        plan = json.loads(before)
        names = list(plan["assignment"])
    except (ValueError, TypeError):  # it is none itself
        return before
    assignment = dict(zip([*names[1:], names[0]], plan["assignment"].values(), strict=True))
    other = json.dumps(plan | {"assignment": assignment}).encode()  # under the same version
    return random.choice([before, other, b"", before[:-1], before.replace(b"billing", b"another", 1), b"[]", b"\xff"])
