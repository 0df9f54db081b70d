"""Which groups are watched, and for how long."""

from types import SimpleNamespace
from typing import Any

import pytest

from evenlag.watch.board import Board, Entry
from evenlag.watch.rounds import share


def entry(as_of: float) -> Entry:
    standing: Any = SimpleNamespace()
    return Entry(standing, as_of, as_of)


def test_the_first_by_name_are_watched_and_the_others_named() -> None:
    board = Board(most=2)
    assert board.choose(["c", "a", "b"]) == ["a", "b"]
    assert board.left_out == ["c"]
    assert board.choose(["c"]) == ["c"]
    assert board.left_out == []


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [((), ["a-1", "a-2", "B"]), (("a-*",), ["a-1", "a-2"]), (("b",), []), (("B", "a-[2-9]"), ["a-2", "B"])],
)
def test_patterns(patterns: tuple[str, ...], chosen: list[str]) -> None:
    assert Board(most=9, patterns=patterns).choose(["a-1", "B", "a-2"]) == sorted(chosen)


def test_a_name_may_contain_the_characters_of_patterns() -> None:
    board = Board(most=9, patterns=["billing[eu]"])
    assert board.choose(["billing[eu]", "billinge", "billing"]) == ["billing[eu]", "billinge"]
    assert Board(most=9, patterns=["a[b]*"]).choose(["a[b]"]) == []
    assert not board.unmatched


@pytest.mark.slow
def test_never_more_groups_than_the_limit_whatever_comes_and_goes() -> None:
    board = Board(most=2_000)
    for round_number in range(5):
        for name in board.choose([f"{round_number}-{number}" for number in range(2_500)]):
            board.put(name, entry(float(round_number)))
        assert len(board.entries) == 2_000
        assert {name.split("-")[0] for name in board.entries} == {str(round_number)}
    assert len(board.left_out) == 500


def test_figures_are_served_until_they_are_stale() -> None:
    board = Board(most=9, lifetime=60.0)
    board.put("old", entry(100.0))
    board.put("new", entry(150.0))
    assert [name for name, _ in board.fresh(160.0)] == ["new", "old"]
    assert [name for name, _ in board.fresh(160.5)] == ["new"]
    assert board.expire(160.5) == ["old"]
    assert list(board.entries) == ["new"]
    assert board.expire(160.5) == []


def test_groups_without_figures_are_those_to_watch_that_have_no_fresh_ones() -> None:
    board = Board(most=3, patterns=["g*"], lifetime=60.0)
    board.choose(["other", "g-never", "g-old", "g-new", "g-o-beyond"])
    for name, as_of in {"g-old": 100.0, "g-new": 150.0, "g-gone": 150.0}.items():
        board.put(name, entry(as_of))
    assert board.left_out == ["g-old"]
    assert [board.without_figures(now) for now in (150.0, 160.5, 211.0)] == [2, 2, 3]
    board = Board(most=9, lifetime=60.0)
    board.choose(["old", "new"])
    board.put("old", entry(100.0))
    assert [board.without_figures(now) for now in (150.0, 160.5)] == [1, 2]


def test_a_cluster_may_hide_the_group_that_a_pattern_names() -> None:
    hidden = ", and a cluster shows a group only to users with the ACL Describe on it"
    for of_cluster, more in ((False, ""), (True, hidden)):
        board = Board(most=9, patterns=["biling"], of_cluster=of_cluster)
        board.choose(["billing"])
        assert board.no_match("biling") == f"no group of the input matches{more}; did you mean 'billing'?"


def test_a_group_that_is_planned_has_failed_no_more() -> None:
    board = Board(most=9, failures={"g": "why", "h": "why"})
    board.put("g", entry(1.0))
    assert board.failures == {"h": "why"}


def test_shares_add_up_to_the_time_left_but_for_the_floor() -> None:
    left, given = 10.0, []
    for groups in range(40, 0, -1):
        given.append(share(left, groups, 0.02, 2.0))
        left -= given[-1] / 2  # each needs but half of its share
    assert given == sorted(given)  # time that is left over goes to the later ones
    assert max(given) <= 2.0
    assert sum(given) / 2 <= 10.0
    assert share(-5.0, 3, 0.02, 2.0) == 0.02
