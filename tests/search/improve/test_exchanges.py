"""Filters of members' lists, against all ways to combine the lists of a few members."""

from itertools import product
from random import Random

import numpy as np
import pytest

from evenlag.model.balance import count_rule
from evenlag.search.exact.column_enumeration import Completion, completed
from evenlag.search.exact.member_options import Exchanges, MemberOptions
from evenlag.search.subsets import EnumerationLimitError, bits_of, unpacked
from tests.support.problems import alike, random_owners, seeds

COUNT, MEMBERS, MOST = 6, 3, 8  # partitions, members, exchanges of each


def options(random: Random) -> list[MemberOptions]:
    """The options of members of a group that owns most partitions."""
    lags = {"t": [random.randint(1, 9) for _ in range(COUNT)]}
    rule = count_rule(alike(lags, MEMBERS, owned=random_owners(random, lags, MEMBERS, 0.8)), "none")
    every = rule.problem.lags.astype(np.int64)
    return [MemberOptions(rule, m, every, 0) for m in range(MEMBERS)]


def as_exchanges(me: MemberOptions, held: list[list[int]], lost: list[int]) -> Exchanges:
    """Return the exchanges after which a member holds these sets."""
    columns = [bits_of(np.array([each], dtype=np.int64), me.words)[:, 0] ^ me.inside for each in held]
    gives = np.array([len(set(me.held.tolist()) - set(each)) for each in held], dtype=np.int64)
    bits = np.array(columns, dtype=np.uint64).reshape(len(held), me.words).T
    return Exchanges(bits, np.zeros_like(gives), np.zeros_like(gives), gives, np.array(lost, dtype=np.int64))


def held_by(me: MemberOptions, listed: Exchanges) -> list[set[int]]:
    """Return the set that a member holds after each exchange."""
    return [set(np.flatnonzero(unpacked(words ^ me.inside, COUNT)).tolist()) for words in listed.bits.T]


def plans(members: list[MemberOptions], lists: list[Exchanges | None], slack: int) -> set[tuple[int | None, ...]]:
    """Return all ways to take one set of each list with every partition held once; None for a missing list."""
    held = [[None] if one is None else held_by(me, one) for me, one in zip(members, lists, strict=True)]
    lost = [[0] if one is None else one.lost.tolist() for one in lists]
    found: set[tuple[int | None, ...]] = set()
    for chosen in product(*map(range, map(len, held))):
        sets = [each for of, n in zip(held, chosen, strict=True) if (each := of[n]) is not None]
        sizes, union = sum(map(len, sets)), set().union(*sets)
        whole = len(union) == COUNT or None in lists  # who has no list takes what is left
        if sizes == len(union) and whole and sum(of[n] for of, n in zip(lost, chosen, strict=True)) <= slack:
            found.add(tuple(None if one is None else n for one, n in zip(lists, chosen, strict=True)))
    return found


def random_lists(random: Random, members: list[MemberOptions], *, unlisted: bool) -> list[Exchanges | None]:
    """Return some exchanges of each member, among them those of two plans."""
    held: list[list[list[int]]] = [[] for _ in members]
    for _ in range(2):
        holders = [random.randrange(MEMBERS) for _ in range(COUNT)]
        for m in range(MEMBERS):
            held[m].append([p for p in range(COUNT) if holders[p] == m])
    for m in range(MEMBERS):
        held[m] += [[p for p in range(COUNT) if random.random() < 0.4] for _ in range(random.randrange(MOST))]
    lists: list[Exchanges | None] = [
        as_exchanges(me, of, [random.choice([0, 0, 1, 2, 5]) for _ in of]) for me, of in zip(members, held, strict=True)
    ]
    if unlisted:
        lists[random.randrange(MEMBERS)] = None
    return lists


@pytest.mark.parametrize("unlisted", [False, True])
def test_filters_keep_every_list_that_belongs_to_a_plan(*, unlisted: bool) -> None:
    dropped = kept = 0
    for seed in seeds(150):
        random = Random(seed)
        members = options(random)
        lists, slack = random_lists(random, members, unlisted=unlisted), random.randint(0, 8)
        left, _ = completed(members, lists, slack, lambda: False)
        for n, (before, after) in enumerate(zip(lists, left, strict=True)):
            if before is None or after is None:
                assert before is after
                continue
            of_plans = {chosen[n] for chosen in plans(members, lists, slack)}
            columns = [(*words.tolist(), lost) for words, lost in zip(after.bits.T, after.lost.tolist(), strict=True)]
            for used in of_plans:
                assert used is not None
                assert (*before.bits[:, used].tolist(), int(before.lost[used])) in columns
            dropped, kept = dropped + len(before) - len(after), kept + len(of_plans)
    assert dropped > len(seeds(150))
    assert kept > len(seeds(150)) / 2


@pytest.mark.parametrize("unlisted", [False, True])
def test_the_others_complete_what_belongs_to_a_plan(*, unlisted: bool) -> None:
    belong = 0
    for seed in seeds(100):
        random = Random(seed)
        members = options(random)
        lists, slack = random_lists(random, members, unlisted=unlisted), 20
        completion = Completion(members, lists, slack)
        for chosen in plans(members, lists, slack):
            for n, one in enumerate(lists):
                if one is not None:
                    row = [chosen[n]]
                    assert completion.possible([k for k in range(MEMBERS) if k != n], one.bits[:, row], one.lost[row])
                    belong += 1
    assert belong > len(seeds(100)) / 5


def test_bounds_on_takers_and_losses_hold_for_every_plan() -> None:
    rule = count_rule(alike([5, 4, 3, 2], "abc", owned={"a": [("t", 0)], "b": [("t", 1)], "c": [("t", 2), ("t", 3)]}))
    a, b, c = members = [MemberOptions(rule, m, rule.problem.lags.astype(np.int64), 0) for m in range(3)]
    lists: list[Exchanges | None] = [
        as_exchanges(a, [[0], [0, 1], [0, 1, 2], [0, 3]], [0, 1, 4, 0]),  # nobody gives partition 3
        as_exchanges(b, [[1], []], [1, 2]),
        as_exchanges(c, [[2, 3], [3]], [2, 3]),
    ]
    for slack, kept in ((7, [3, 2, 2]), (4, [2, 2, 1]), (3, [1, 1, 1])):
        left, _ = completed(members, lists, slack, lambda: False)
        assert [len(each) for each in left if each is not None] == kept


def test_filters_end_when_the_time_is_up() -> None:
    random = Random(0)
    members = options(random)
    with pytest.raises(EnumerationLimitError):
        completed(members, random_lists(random, members, unlisted=False), 5, lambda: True)
