"""The loop's decisions: every combination of reasons to wait, and courses of time."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.live.followed_plan import FollowedPlan
from evenlag.live.group_state import TopicPartition
from evenlag.live.ownership import LEASE
from evenlag.model.facts import Facts
from evenlag.watch.loop_decision import Caution, Decision, Published, Reason, Sight

LEAST = 600.0
START = 1_750_000_000.0  # seconds since 1970
ANY_TIME = START - 10 * LEAST
FOLLOWED = Facts(state="Empty", protocol="follow")
JAVA = Facts(state="Stable", protocol="classic", assignor="evenlag-plan")


def keys(*numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(("orders", number) for number in numbers)


def version(at: float) -> int:
    return round(1000 * at)


OWNERS: dict[TopicPartition, str | None] = {("orders", 0): "c1", ("orders", 1): "c1", ("orders", 2): "c2"}
SIGHT = Sight(
    "billing", facts=FOLLOWED, members={"c1": {}, "c2": {}}, owners=OWNERS, pays=True, moves=1, spread=90,
    best_spread=10,
)  # fmt: skip
IN_FORCE = FollowedPlan("billing", version(ANY_TIME), {"c1": keys(0, 1), "c2": keys(2)})


def decided(caution: Caution, sight: Sight, place: Published, now: float = START) -> Decision:
    at_sight = caution.at_sight(sight, now)
    return caution.with_place(sight, place, now) if at_sight is None else at_sight


ITS_PLACE = Published(IN_FORCE)


def reason(sight: Sight, place: Published = ITS_PLACE) -> Reason | None:
    caution = Caution(LEAST)
    caution.at_sight(sight, START - LEASE)
    return decided(caution, sight, place).reason


def test_followers_are_watched_anew_after_too_long_a_time_without_a_reading() -> None:
    caution, every, longest = Caution(LEAST), 60.0, 2 * 60.0 + LEASE
    for now in (START - LEASE, START, START + longest):
        caution.note_read(["another", "billing"], now, every)
        reason = None if now > START - LEASE else Reason.WATCHING
        assert decided(caution, SIGHT, ITS_PLACE, now).reason == reason
    later = START + 2 * longest + 1
    caution.note_read(["billing"], later, every)
    assert decided(caution, SIGHT, ITS_PLACE, later).reason == Reason.WATCHING
    assert decided(caution, SIGHT, ITS_PLACE, later + LEASE).reason is None


# ---- every combination ----------------------------------------------------------------------------------------------

Case = tuple[Sight, Published, bool, bool]  # and whether its followers are new, and whether it is a dry run


def _with(**changes: Any) -> Callable[[Case], Case]:
    return lambda case: (replace(case[0], **changes), *case[1:])


def _facts(**changes: Any) -> Callable[[Case], Case]:
    return lambda case: (replace(case[0], facts=replace(case[0].facts, **changes)), *case[1:])


def _place(**changes: Any) -> Callable[[Case], Case]:
    return lambda case: (case[0], replace(case[1], **changes), *case[2:])


def _owned(number: int, owner: str | None) -> Callable[[Case], Case]:
    return lambda case: (replace(case[0], owners=dict(case[0].owners) | {("orders", number): owner}), *case[1:])


def _renamed(case: Case) -> Case:
    assert case[1].plan is not None
    named = {f"x{name}": mine for name, mine in case[1].plan.assignment.items()}
    return case[0], replace(case[1], plan=replace(case[1].plan, assignment=named)), *case[2:]


def _young(case: Case) -> Case:
    assert case[1].plan is not None
    return case[0], replace(case[1], plan=replace(case[1].plan, version=version(START - LEAST + 1))), *case[2:]


# In the order in which they are named: the first that holds is the reason.
REASONS: tuple[tuple[Reason, Callable[[Case], Case]], ...] = (
    (Reason.REBALANCING, _facts(state="PreparingRebalance")),
    (Reason.UNSEEN, _facts(assumed={"subscriptions": "the input does not name them"})),
    (Reason.NO_MEMBERS, _with(members={})),
    (Reason.NO_FOLLOWERS, _facts(protocol="classic", assignor="range")),
    (Reason.WATCHING, lambda case: (*case[:2], True, case[3])),
    (Reason.NOT_WORTH, _with(pays=False)),
    (Reason.TOO_MANY_MOVES, _with(moves=6)),
    (Reason.UNREAD_PLACE, _place(unread="no broker answers")),
    (Reason.OTHER_LOOP, _place(other_loop="another loop publishes there")),
    (Reason.NOBODY_NAMED, _renamed),
    (Reason.STOPPED, _owned(2, None)),
    (Reason.NOT_IN_FORCE, _owned(0, "c2")),
    (Reason.INTERVAL, _young),
    (Reason.DRY_RUN, lambda case: (*case[:3], True)),
)
UNDONE = {Reason.WATCHING: Reason.NO_FOLLOWERS, Reason.NOBODY_NAMED: Reason.NO_MEMBERS}


def combinations() -> Iterator[list[bool]]:
    """Every combination, without those in which one reason takes away what another is about."""
    for holds in product((False, True), repeat=len(REASONS)):
        there = {why for (why, _), each in zip(REASONS, holds, strict=True) if each}
        if not any({why, other} <= there for why, other in UNDONE.items()):
            yield list(holds)


def test_the_first_reason_that_holds_is_given() -> None:
    tried = 0
    for holds in combinations():
        case: Case = (SIGHT, Published(IN_FORCE), False, False)
        for (_, change), each in zip(REASONS, holds, strict=True):
            case = change(case) if each else case
        sight, place, is_new, dry = case
        caution = Caution(LEAST, max_moves=5, dry_run=dry)
        if not is_new:
            caution.at_sight(replace(SIGHT), START - LEASE)
        expected = next((why for (why, _), each in zip(REASONS, holds, strict=True) if each), None)
        assert decided(caution, sight, place).reason == expected, (expected, case)
        tried += 1
    assert tried > 9_000
    assert {why for why, _ in REASONS} == {*Reason} - {Reason.CHANGED, Reason.FAILED}  # these come after the decision


def test_the_page_lists_the_reasons_in_their_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "loop.md").read_text()
    listed = re.findall(r"^\| `([a-z-]+)` \|", page.partition("## Reasons to wait")[2], re.MULTILINE)
    assert listed == [*Reason]


# ---- single rules ---------------------------------------------------------------------------------------------------


def test_a_first_plan_is_published_at_once() -> None:
    assert reason(SIGHT, Published()) is None


def test_partitions_that_the_plan_leaves_out_or_that_are_gone_do_not_matter() -> None:
    assert reason(replace(SIGHT, owners=OWNERS | {("orders", 3): None})) is None
    assert reason(SIGHT, Published(replace(IN_FORCE, assignment={"c1": keys(0, 1), "c2": keys(2, 7)}))) is None
    gone_and_moved = replace(IN_FORCE, assignment={"c1": keys(7, 2), "c2": keys(0, 1)})
    assert reason(SIGHT, Published(gone_and_moved)) == Reason.NOT_IN_FORCE


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (Facts(state="Stable", protocol="consumer", assignor="evenlag-plan"), None),
        (Facts(state="Stable", protocol="consumer", assignor="uniform"), Reason.NO_FOLLOWERS),
        (Facts(state="Stable", protocol="classic"), Reason.NO_FOLLOWERS),
        (replace(JAVA, state="Reconciling"), Reason.REBALANCING),
        (replace(JAVA, assumed={"members": "the group has 3 members, but the input names 2"}), Reason.UNSEEN),
        (replace(JAVA, assumed={"membership": "assumed without members"}), None),
    ],
)
def test_facts_of_groups_of_java(facts: Facts, expected: Reason | None) -> None:
    assert reason(replace(SIGHT, facts=facts)) == expected


def test_an_absent_member_of_java_leaves_its_partitions_to_others_and_a_follower_does_not() -> None:
    plan = Published(replace(IN_FORCE, assignment={"c1": keys(0, 1), "c3": keys(2)}))
    assert reason(replace(SIGHT, facts=JAVA), plan) is None
    assert reason(SIGHT, plan) == Reason.NOT_IN_FORCE


def test_members_of_java_are_known_by_what_outlasts_a_restart() -> None:
    members = {"u1": {"client_id": "c1", "host": "/h"}, "u2": {"client_id": "c2", "host": "/h"}}
    owners: dict[TopicPartition, str | None] = dict(zip(OWNERS, ("u1", "u1", "u2"), strict=True))
    java = replace(SIGHT, facts=JAVA, members=members, owners=owners)
    known = {"v1": {"client_id": "c1", "host": "/h"}, "v2": {"client_id": "c2", "host": "/h"}}
    plan = replace(IN_FORCE, assignment={"v1": keys(0, 1), "v2": keys(2)}, members=known)
    assert reason(java, Published(plan)) is None
    swapped = replace(plan, assignment={"v2": keys(0, 1), "v1": keys(2)})
    assert reason(java, Published(swapped)) == Reason.NOT_IN_FORCE
    alike = {name: {"client_id": "billing"} for name in ("v1", "v2")}  # each of them bears both names
    shared = replace(java, members={"u1": {"client_id": "billing"}, "u2": {"client_id": "billing"}})
    assert reason(shared, Published(replace(swapped, members=alike))) is None
    by_host = {name: {"host": "/h"} for name in ("v1", "v2")}
    assert reason(java, Published(replace(swapped, members=by_host))) is None


def test_words() -> None:
    caution = Caution(LEAST)
    caution.at_sight(SIGHT, START - LEASE)

    def said(sight: Sight = SIGHT, plan: FollowedPlan = IN_FORCE) -> str:
        return decided(caution, sight, Published(plan)).text

    assert said() == "1 move, spread 90 → 10 messages"
    number = IN_FORCE.version
    stopped = replace(SIGHT, owners=OWNERS | {("orders", 2): None})
    assert said(stopped) == f"c2 does not hold orders-2: stopped, or too slow to take up plan {number}"
    other = replace(SIGHT, owners=OWNERS | {("orders", 2): "c1"})
    assert said(other) == f"plan {number} is not in force: orders-2 with other members"
    assert said(plan=replace(IN_FORCE, assignment={"c3": keys(0)})) == (
        f"plan {number} names none of its 2 members (c1, c2); publish a plan for them by evenlag publish if this is "
        "their place"
    )


# ---- time -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (START - LEAST, None),
        (START - LEAST + 1, Reason.INTERVAL),
        (START + 10 * LEAST, Reason.INTERVAL),
        (0.001, None),  # a version that is not a time
    ],
)
def test_the_interval_outlasts_a_restart_of_the_loop(made: float, expected: Reason | None) -> None:
    assert reason(SIGHT, Published(replace(IN_FORCE, version=version(made)))) == expected


def test_a_version_in_the_future_delays_by_one_interval() -> None:
    caution, place = Caution(LEAST), Published(replace(IN_FORCE, version=2**62))
    caution.at_sight(SIGHT, START - LEASE)
    assert decided(caution, SIGHT, place).reason == Reason.INTERVAL
    assert decided(caution, SIGHT, place, START + LEAST - 1).reason == Reason.INTERVAL
    assert decided(caution, SIGHT, place, START + LEAST).reason is None


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_clock_that_is_set_back_delays_by_one_interval(dry_run: bool) -> None:
    caution = Caution(LEAST, dry_run=dry_run)
    for now in (START - LEASE, START):
        caution.note_read(["billing"], now, 60.0)
        decision = decided(caution, SIGHT, ITS_PLACE, now)
    assert decision.reason is (Reason.DRY_RUN if dry_run else None)
    caution.published("billing", version(START), START)
    place = Published(replace(IN_FORCE, version=version(START)))
    back = START - 1_000_000
    seen = []
    for seconds in (0.0, LEASE - 1, LEASE, LEAST, LEAST + LEASE):
        caution.note_read(["billing"], back + seconds, LEAST)
        seen.append(decided(caution, SIGHT, place, back + seconds).reason)
    last = Reason.DRY_RUN if dry_run else None
    assert seen == [Reason.WATCHING, Reason.WATCHING, Reason.INTERVAL, Reason.INTERVAL, last]


def test_a_plan_that_somebody_else_publishes_starts_an_interval_whatever_its_version() -> None:
    caution = Caution(LEAST)
    caution.at_sight(SIGHT, START - LEASE)
    assert decided(caution, SIGHT, Published(IN_FORCE)).reason is None
    by_hand = Published(replace(IN_FORCE, version=IN_FORCE.version + 1))
    assert decided(caution, SIGHT, by_hand, START + 60).reason == Reason.INTERVAL
    assert decided(caution, SIGHT, by_hand, START + 60 + LEAST).reason is None


def test_a_dry_run_counts_what_it_would_have_published() -> None:
    caution = Caution(LEAST, dry_run=True)
    found = [decided(caution, replace(SIGHT, facts=JAVA), Published(IN_FORCE), START + n).reason for n in (0, 599, 600)]
    assert found == [Reason.DRY_RUN, Reason.INTERVAL, Reason.DRY_RUN]


@given(
    st.lists(st.tuples(st.floats(0.0, 2 * LEAST), st.booleans(), st.booleans()), max_size=30),
    st.floats(0.0, 2 * LEAST),
    st.sampled_from([FOLLOWED, JAVA]),
)
def test_plans_keep_their_distance_and_no_group_waits_for_ever(
    steps: list[tuple[float, bool, bool]], least: float, facts: Facts
) -> None:
    """Each step waits some seconds, may let somebody else publish, and may restart the loop."""
    now, caution, sight = START, Caution(least), replace(SIGHT, facts=facts)
    plan: FollowedPlan | None = None
    made: list[float] = []
    for seconds, by_hand, restarts in [*steps, (2 * LEAST + LEASE, False, False), (LEASE, False, False)]:
        now += seconds
        if by_hand:
            plan = replace(IN_FORCE, version=version(now))
            made.append(now)
        caution = Caution(least) if restarts else caution
        decision = decided(caution, sight, Published(plan), now)
        if decision.reason is None:
            assert not made or now - made[-1] >= least - 0.001
            plan = replace(IN_FORCE, version=version(now))
            caution.published("billing", plan.version, now)
            made.append(now)
        else:
            assert decision.reason in (Reason.INTERVAL, Reason.WATCHING)
    assert now - made[-1] <= 2 * LEAST + LEASE
