"""Changes to a group: equal to edits of the problem file, with the plan that `plan` gives for it."""

import copy
import json
from fractions import Fraction
from math import lcm
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenlag
from evenlag.compare import Change, changed, whatif
from evenlag.compare.change import rehashed
from evenlag.errors import InfeasibleError, InvalidProblemError
from tests.support.command import evenlag as run
from tests.support.command import refused
from tests.support.exact import Goal, exhaustive
from tests.support.problems import alike, random_document, random_owners, seeds

GROUP: dict[str, Any] = {
    "group": "g",
    "topics": {"t": [40, 30, 20, 10], "u": [5, 5]},
    "members": {
        "a": {"topics": ["t", "u"], "owned": [["t", 0], ["t", 1]]},
        "b": {"topics": ["t", "u"], "owned": [["t", 2], ["u", 0]]},
        "c": {"topics": ["t", "u"], "owned": [["t", 3], ["u", 1]]},
    },
    "pins": [["u", 0, "b"]],
}


def group(**changes: Any) -> evenlag.Problem:
    return evenlag.Problem.from_dict(GROUP | changes)


def edited_document(document: dict[str, Any], change: Change) -> dict[str, Any]:
    """Return the document after a change, edited without evenlag's code; new members read all topics."""
    document = copy.deepcopy(document)
    for name in change.remove:
        del document["members"][name]
    for name in [f"new-{number}" for number in range(1, change.members + 1)]:
        document["members"][name] = {"topics": list(document["topics"])}
    for name, topics in change.add.items():
        document["members"][name] = {"topics": list(document["topics"] if topics is None else topics)}
    for topic, size in change.partitions.items():
        document["topics"][topic] += [0] * (size - len(document["topics"][topic]))
    for name, weight in change.weights.items():
        document["members"][name]["weight"] = weight
    return document


def random_change(random: Random, document: dict[str, Any]) -> Change:
    """Return a possible change: at least one member stays, and pinned members do."""
    pinned = {member for _, _, member in document.get("pins", [])}
    free = [name for name in document["members"] if name not in pinned]
    gone = random.sample(free, random.randint(0, max(len(free) - 1, 0)))
    stay = [name for name in document["members"] if name not in gone]
    topics = list(document["topics"])
    added = {"z": random.choice([topics, topics[:1]])} if random.random() < 0.3 else {}
    grown = {topic: len(document["topics"][topic]) + random.randint(0, 2) for topic in topics if random.random() < 0.3}
    alike = all(document["members"][name]["topics"] == topics for name in stay)
    more = random.randint(0, 1) if alike else 0
    return Change(
        members=more, remove=gone, add=added, partitions=grown,
        weights={random.choice(stay): random.choice([1, 2, 0.5])}, balance=random.choice([None, "topic", "none"]),
    )  # fmt: skip


@pytest.mark.parametrize("seed", seeds(4))
def test_a_wider_balance_is_no_worse(seed: int) -> None:
    random = Random(seed)
    topics = {f"t{t}": [random.choice([0, int(10**5 * random.random() ** 3)]) for _ in range(10)] for t in range(6)}
    problem = alike(topics, 5, owned=random_owners(random, topics, 5))
    done = whatif(problem, Change(balance="none"), balance="group", time_limit=0.05, stickiness=0)
    assert done.after.objective <= done.before.objective


@pytest.mark.parametrize("seed", seeds(60))
def test_a_changed_group_equals_the_edited_file(seed: int) -> None:
    random = Random(seed)
    document = random_document(random)
    change = random_change(random, document)
    after = changed(evenlag.Problem.from_dict(document), change)
    expected = evenlag.Problem.from_dict(edited_document(document, change))
    assert after.to_dict() == expected.to_dict()
    assert evenlag.Problem.from_dict(after.to_dict()).to_dict() == after.to_dict()


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(25))
def test_before_and_after_are_optimal(seed: int) -> None:
    random = Random(seed)
    document = random_document(random, partitions=6, members=3)
    for entry in document["members"].values():
        entry.pop("max_partitions", None)  # so that every change is feasible
    change = random_change(random, document)
    found = whatif(evenlag.Problem.from_dict(document), change, time_limit=20)
    after = evenlag.Problem.from_dict(edited_document(document, change))
    for result, problem, balance in (
        (found.before, evenlag.Problem.from_dict(document), "both"),
        (found.after, after, change.balance or "both"),
    ):
        if result.status == "EMPTY":
            continue
        best = exhaustive(problem, Goal(balance=balance))
        assert (result.status, result.objective, result.bound) == ("OPTIMAL", best.objective, best.objective)
    again = evenlag.solve(after, balance=change.balance or "both", time_limit=20)
    fields = ("status", "objective", "bound", "binding", "forced_moves", "stickiness")
    assert [getattr(found.after, name) for name in fields] == [getattr(again, name) for name in fields]


# ---- members ---------------------------------------------------------------------------------------------------------


def test_remaining_members_keep_their_partitions_and_leaving_ones_give_them_up() -> None:
    after = changed(group(), Change(remove=["c"], members=+2))
    assert after.members == ("a", "b", "new-1", "new-2")
    owners = [after.members[m] if m >= 0 else None for m in after.owner]
    assert dict(zip(after.partitions, owners, strict=True)) == {
        ("t", 0): "a", ("t", 1): "a", ("t", 2): "b", ("t", 3): None, ("u", 0): "b", ("u", 1): None,
    }  # fmt: skip
    found = whatif(group(), Change(remove=["c"]))
    assert found.after.forced_moves == 2
    assert found.today is not None
    assert found.today.spread == 70 - 15


def test_today_is_shown_even_if_a_partition_has_no_owner() -> None:
    problem = alike([40, 30, 20], "ab", owned={"a": [("t", 0)], "b": [("t", 1)]})
    today = whatif(problem, Change(members=+1)).today
    assert today is not None
    assert today.spread == 40 - 30
    assert whatif(alike([40, 30], "ab"), Change(members=+1)).today is None


def test_an_older_claim_counts_again_once_the_newer_one_has_left() -> None:
    owned = [["t", 0]]
    members = {name: {"topics": ["t"], "owned": owned, "generation": age} for name, age in (("a", 3), ("b", 7))}
    problem = evenlag.Problem.from_dict({"topics": {"t": [5]}, "members": members})
    assert problem.members[problem.owner[0]] == "b"
    after = changed(problem, Change(remove=["b"]))
    assert after.members[after.owner[0]] == "a"


def test_new_members_get_unused_names() -> None:
    problem = alike([5, 3, 1], ["new-1", "new-3", "x"])
    assert changed(problem, Change(members=2, add={"new-2": None})).members == (
        "new-1", "new-2", "new-3", "new-4", "new-5", "x",
    )  # fmt: skip
    assert changed(problem, Change(members=1, remove=["new-1"])).members == ("new-2", "new-3", "x")


def test_fewer_members_are_the_last_by_name() -> None:
    found = whatif(alike([5, 3, 1], "dbca"), Change(members=-2))
    assert found.after.plan.problem.members == ("a", "b")
    assert "the last members by name leave: c, d; to remove others, name them" in found.notes
    assert changed(alike([5], "abc"), Change(members=-1, remove=["c"])).members == ("a",)


def test_new_members_read_what_all_remaining_members_read() -> None:
    mixed = evenlag.Problem.from_lags({"t": [5], "u": [3], "v": []}, {"a": ["t", "v"], "b": ["t", "v"], "c": ["u"]})
    after = changed(mixed, Change(members=1, remove=["c"]))
    assert after.to_dict()["members"]["new-1"]["topics"] == ["t", "v"]
    with pytest.raises(InvalidProblemError, match="members read different topics"):
        changed(mixed, Change(members=1))
    with pytest.raises(InvalidProblemError, match="members read different topics"):
        changed(mixed, Change(add={"d": None}))
    assert changed(mixed, Change(add={"d": ["u"]})).to_dict()["members"]["d"]["topics"] == ["u"]
    everybody = Change(remove=["a", "b"], members=2)
    assert changed(alike([5, 3], "ab"), everybody).members == ("new-1", "new-2")


# ---- weights ---------------------------------------------------------------------------------------------------------


def test_a_faster_member_does_not_look_worse() -> None:
    problem = alike([100, 100], "ab", owned={"a": [("t", 0)], "b": [("t", 1)]})
    found = whatif(problem, Change(weights={"a": 3}))
    assert found.to_pandas().set_index("side")["makespan"].to_dict() == {"today": 100, "before": 100, "after": 100}
    document = found.to_dict()
    assert (document["before"]["makespan"], document["after"]["makespan"]) == (100, 100)
    assert document["after"]["spread"] == pytest.approx(100 - 100 / 3)
    assert "spread before=0, after=200/3" in repr(found)


@pytest.mark.parametrize("seed", seeds(20))
def test_both_sides_have_one_weight_unit(seed: int) -> None:
    random = Random(seed)
    names = "abcd"
    weights = {name: random.choice([1, 2, 0.5]) for name in names}
    lags = [random.randrange(1_000) for _ in range(8)]
    owned = {name: [("t", p) for p in range(8) if p % 4 == place] for place, name in enumerate(names)}
    problem = alike(lags, names, owned=owned, weights=weights)
    change = Change(weights={random.choice(names): random.choice([3, 4])}, members=random.randint(0, 1))
    price = random.choice([7, "1%"])
    found = whatif(problem, change, stickiness=price, time_limit=4)
    unit = sum(Fraction(str(weights[name])) for name in names) / len(names)
    document = found.to_dict()
    after_weights = weights | dict(change.weights) | {"new-1": 1}
    for side, of in (("before", weights), ("after", after_weights)):
        shown, row = document[side], found.to_pandas().set_index("side").loc[side]
        per_weight = [Fraction(load) / Fraction(str(of[name])) * unit for name, load in shown["loads"].items()]
        assert shown["makespan"] == row["makespan"] == pytest.approx(float(max(per_weight)))
        spread = max(per_weight) - min(per_weight)
        assert shown["spread"] == row["spread"] == pytest.approx(float(spread))
        assert shown["objective"] == row["objective"] == pytest.approx(spread + shown["stickiness"] * shown["moves"])
        assert shown["payoff"]["planned"] == pytest.approx(float(spread))
        if price == 7:
            assert shown["stickiness"] == 7
    own = document.get("after_in_own_unit", document["after"])
    assert evenlag.verify(own, found.after.plan.problem).outcome != "refused"


def test_a_ceiling_holds_for_one_weight_unit_on_both_sides() -> None:
    problem = alike([60, 40, 40, 60], "ab")
    found = whatif(problem, Change(weights={"a": 3}), max_load=100, balance="none")
    document = found.to_dict()
    assert document["before"]["max_load"] == document["after"]["max_load"] == 100
    assert document["after"]["makespan"] <= 100


# ---- partitions ------------------------------------------------------------------------------------------------------


def test_new_partitions_are_empty_and_have_no_owner() -> None:
    found = whatif(group(), Change(partitions={"t": 6, "u": 2}))
    after = found.after.plan.problem
    assert after.to_dict()["topics"] == {"t": [40, 30, 20, 10, 0, 0], "u": [5, 5]}
    assert found.after.forced_moves == 2
    (note,) = found.notes
    assert note.startswith("the 2 new partitions of t are empty")
    sparse = changed(group(topics={"t": {"0": 1, "3": 4}, "u": [5]}), Change(partitions={"t": 6}))
    assert sparse.to_dict()["topics"]["t"] == {"0": 1, "3": 4, "4": 0, "5": 0}
    assert changed(group(topics=GROUP["topics"] | {"v": []}), Change(partitions={"v": 2})).topics == ("t", "u", "v")


def test_scenarios_change_with_the_group() -> None:
    scenarios = [
        {"topics": {"t": [8, 6, 4, 2], "u": [1, 1]}},
        {"weight": 2, "topics": {"t": [0, 0, 0, 9], "u": [3, 5]}},
    ]
    document = GROUP | {"scenarios": scenarios}
    for how, first, second in (("empty", [1, 1, 0], [3, 5, 0]), ("rehashed", [1, 1, 0], [3, 3, 2])):
        change = Change(partitions={"u": 3}, members=1, new_partitions=how)
        after = changed(evenlag.Problem.from_dict(document), change)
        changed_scenarios = after.to_dict()["scenarios"]
        assert [scenario["topics"] for scenario in changed_scenarios] == [
            {"t": [8, 6, 4, 2], "u": first}, {"t": [0, 0, 0, 9], "u": second},
        ]  # fmt: skip
        fresh, found = (
            evenlag.solve(after, across="worst"),
            whatif(evenlag.Problem.from_dict(document), change, across="worst"),
        )
        assert (found.after.objective, found.after.bound) == (fresh.objective, fresh.bound)


def test_rehashed_keys_spread_the_lag() -> None:
    found = whatif(group(), Change(partitions={"t": 8}, new_partitions="rehashed"))
    assert found.after.plan.problem.to_dict()["topics"]["t"] == [20, 15, 10, 5, 20, 15, 10, 5]
    assert found.after.plan.problem.total_lag == 110
    with pytest.raises(InvalidProblemError, match="2 of its 4 partitions are missing in the input"):
        changed(group(topics={"t": {"0": 1, "3": 4}, "u": [5]}), Change(partitions={"t": 6}, new_partitions="rehashed"))


@given(st.integers(1, 8), st.integers(0, 10), st.randoms(use_true_random=True))
def test_rehashing_equals_counting_keys(now: int, more: int, random: Random) -> None:
    """Every hash once (they repeat after lcm(n, size)), so many messages a key in each old partition."""
    size, messages = now + more, [random.randint(0, 5) for _ in range(now)]
    old, new = [0] * now, [0] * size
    for key in range(lcm(now, size)):
        old[key % now] += messages[key % now]
        new[key % size] += messages[key % now]
    assert rehashed(old, size) == new


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=9), st.integers(0, 20))
def test_rehashing_keeps_the_total_lag(lags: list[int], more: int) -> None:
    spread = rehashed(lags, len(lags) + more)
    assert (sum(spread), len(spread)) == (sum(lags), len(lags) + more)
    assert max(spread) <= max(lags)
    assert rehashed(lags, len(lags)) == lags


# ---- what cannot be --------------------------------------------------------------------------------------------------

IMPOSSIBLE: dict[str, tuple[list[object], str]] = {
    "no such member": (["--remove", "d"], "unknown member 'd'; the group has a, b, c"),
    "a member twice": (["--remove", "a", "--remove", "a"], "'a' is removed 2 times"),
    "nobody left": (
        ["--change-members", "-2", "--remove", "c", "--weight", "a=2"],
        "'b' cannot leave: u-0 is pinned to it",
    ),
    "more than there are": (["--change-members", "-4"], "4 members cannot leave: there are 3"),
    "a pinned member": (["--remove", "b"], "'b' cannot leave: u-0 is pinned to it"),
    "one who is there": (["--add", "a"], "'a' is in the group already"),
    "one who has just left": (["--remove", "a", "--add", "a"], "'a' is in the group already"),
    "no name": (["--add", "=t"], "a member needs a name"),
    "a topic of nobody": (["--add", "d=t,x"], "unknown topic 'x'; the group has t, u"),
    "no such topic": (["--partitions", "x=5"], "unknown topic 'x'"),
    "fewer partitions": (["--partitions", "t=3"], "topic 't' has 4 partitions, and Kafka cannot remove any"),
    "no partitions": (["--partitions", "t=0"], "partitions must be a whole number from 1"),
    "negative partitions": (["--partitions", "t=-1"], "partitions must be a whole number from 1"),
    "too many partitions": (["--partitions", "t=99999999999"], "to 1,000,000, not 99999999999"),
    "too many members": (["--change-members", "+99999999"], "at most 100,000"),
    "no weight": (["--weight", "a=0"], "member 'a': weight must be a number > 0"),
    "not a number": (["--weight", "a=nan"], "member 'a': weight must be a number > 0"),
    "weight of nobody": (["--weight", "d=2"], "unknown member 'd'"),
    "weight of one who leaves": (["--remove", "a", "--weight", "a=2"], "unknown member 'a'"),
    "nothing": ([], "nothing changes"),
    "no members table": (["--members", __file__, "--change-members", "+1"], "a problem file lists its members itself"),
    "budget": (
        ["--change-members", "+3", "--max-moves", "0"],
        "after the change: --max-moves is 0, but both",
    ),
}


def test_one_member_that_cannot_leave_has_a_singular_noun() -> None:
    with pytest.raises(InvalidProblemError, match=r"^1 member cannot leave: there are 0$"):
        changed(evenlag.Problem.from_lags({"t": [1]}, {}), Change(members=-1))


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_an_impossible_change_is_one_line(tmp_path: Path, what: str) -> None:
    words, expected = IMPOSSIBLE[what]
    path = tmp_path / "group.json"
    path.write_text(json.dumps(GROUP))
    refused(run("whatif", path, *words, "--out", tmp_path / "after.json"), expected)
    assert not (tmp_path / "after.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            (["--change-members", none], f"'{none}': write +2 to add two members, or -1 to remove one")
            for none in ("x", "2", "+1.5", "+9999999999999999999999")
        ),
        (["--members", ""], "the path is empty"),
        (["--partitions", "t"], "'t': write NAME=VALUE"),
        (["--partitions", "t=many"], "must be a whole number, not 'many'"),
        (["--partitions", "t=5", "--partitions", "t=6"], "'t' is given twice"),
        (["--weight", "a=heavy"], "the weight must be a number, not 'heavy'"),
        (["--add", "d", "--add", "d=t"], "'d' is given twice"),
        (["--balance", "odd"], "--balance"),
        (["--new-partitions", "full"], "--new-partitions"),
    ],
)
def test_wrong_usage_is_status_2(words: list[str], message: str) -> None:
    done = run("whatif", "x.json", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.split())


def test_a_change_that_leaves_no_member_is_an_error() -> None:
    with pytest.raises(InvalidProblemError, match="no member would be left"):
        changed(alike([5], "ab"), Change(remove=["a", "b"]))
    with pytest.raises(InvalidProblemError, match="no member would be left"):
        changed(alike([5], "ab"), Change(members=-2))


@pytest.mark.parametrize(
    "wrong",
    [
        {"members": True}, {"members": 1.5}, {"remove": "a"}, {"remove": [3]}, {"add": {"": None}},
        {"partitions": {"t": True}}, {"weights": {"a": "2"}}, {"balance": "odd"}, {"new_partitions": "odd"}, {},
        {"partitions": 5}, {"weights": 5}, {"add": 5}, {"add": None}, {"add": ["a"]}, {"remove": None},
    ],
)  # fmt: skip
def test_a_change_is_validated(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidProblemError):
        Change(**({"members": 1} | wrong if wrong else {}))


def test_a_change_of_another_type_is_refused() -> None:
    given: Any = {"members": 1}
    with pytest.raises(InvalidProblemError, match="the change must be a Change; got dict"):
        whatif(alike([5], "ab"), given)


def test_unknown_topics_of_a_new_member_are_refused() -> None:
    nested: Any = [["t"]]
    with pytest.raises(InvalidProblemError, match="unknown topic"):
        changed(alike([5], "ab"), Change(add={"c": nested}))


def test_an_error_names_the_side_on_which_it_occurred() -> None:
    full = alike([5, 3, 1], "ab", max_partitions={"a": 1, "b": 1})
    with pytest.raises(InfeasibleError, match="before the change: "):
        whatif(full, Change(members=1))
    with pytest.raises(TypeError, match="unexpected keyword argument 'limit'"):
        whatif(full, Change(members=1), limit=3)  # type: ignore[call-arg]


# ---- the command -----------------------------------------------------------------------------------------------------

CHANGES = ["--change-members", "+2", "--remove", "c", "--partitions", "t=6", "--weight", "a=2", "--balance", "topic"]


def test_the_saved_file_has_the_plan_on_screen(tmp_path: Path) -> None:
    path, after = tmp_path / "group.json", tmp_path / "after.json"
    path.write_text(json.dumps(GROUP))
    done = run("whatif", path, *CHANGES, "--out", after, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    fresh = json.loads(run("plan", after, "--balance", "topic", "--json").stdout)
    assert fresh.pop("catch_up") is None
    for each in (shown["after_in_own_unit"], fresh):
        assert each.pop("seconds") >= 0
    assert shown["after_in_own_unit"] == fresh
    assert evenlag.verify(fresh, json.loads(after.read_text())).outcome == "verified"
    before = json.loads(run("plan", path, "--json").stdout)
    assert shown["before"] | {"seconds": 0, "catch_up": None} == before | {"seconds": 0}
    assert shown["today"] == {
        "spread": 55, "makespan": 70, "counts": {"a": 2, "b": 2, "c": 2}, "loads": {"a": 70, "b": 25, "c": 15},
        "without_owner": 0,
    }  # fmt: skip
    assert len(shown["notes"]) == 2


def test_a_person_reads_before_and_after_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    path.write_text(json.dumps(GROUP))
    done = run("whatif", path, *CHANGES)
    assert done.returncode == 0
    rows = {line.split("  ")[0].strip(): line.split() for line in done.stdout.splitlines() if line.strip()}
    assert rows["balance"][-3:] == ["–", "both", "topic"]
    assert rows["active members"][2:6] == ["3", "3", "4", "+1"]
    assert rows["status"][1:] == ["OPTIMAL", "OPTIMAL"]
    assert rows["c"][-1] == "gone"
    assert rows["new-1"][-1] == "new"
    assert rows["a"][1:4] == ["1", "→", "2"]
    assert "note: new members, which read the same topics as the others: new-1, new-2" in done.stdout
    GROUP_OF_NOBODY = {"topics": {"t": [5, 3]}, "members": {}}  # noqa: N806
    path.write_text(json.dumps(GROUP_OF_NOBODY))
    shown = run("whatif", path, "--add", "a=t").stdout
    assert "EMPTY" in shown
    assert "note: before: 2 partitions without a subscriber" in shown
    assert shown.count("without a subscriber") == 1


def test_a_snapshot_table_and_its_members_are_read_as_plan_reads_them(tmp_path: Path) -> None:
    offsets, members = tmp_path / "offsets.csv", tmp_path / "members.csv"
    offsets.write_text("group,topic,partition,lag,consumer_id\ng,t,0,9,a\ng,t,1,5,a\ng,t,2,4,b\n")
    members.write_text("group,consumer_id,topics\ng,a,t\ng,b,t\n")
    words = [offsets, "--members", members]
    shown = json.loads(run("whatif", *words, "--change-members", "+1", "--json").stdout)
    assert shown["before"]["loads"] == json.loads(run("plan", *words, "--json").stdout)["loads"]
    assert shown["after"]["spread"] == 5


def test_a_verdict_calls_figures_that_read_the_same_equal() -> None:
    found = whatif(alike([10**6, 7, 3, 2], "ab"), Change(members=2), capacity=1, stickiness=0)
    assert "1,000,000 messages under evenlag's plan instead of 1,000,002," in found.verdict
    assert found.verdict.endswith("all lag is read in 11 d 14 h, as before.")
    tiny = whatif(alike([1, 2], "ab", weights={"a": 1, "b": 1.001}), Change(weights={"b": 1.002}), stickiness=0)
    assert tiny.verdict.endswith("has 2.00 messages for its weight under evenlag's plan, as before.")
