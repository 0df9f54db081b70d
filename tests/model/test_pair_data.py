"""Pair data of a problem: racks, sizes, traffic and own costs are read, refused by name, and come back the same."""

import copy
import json
import pickle
from random import Random
from typing import Any

import numpy as np
import pytest

import evenlag
from evenlag import Problem
from evenlag.compare import Change, changed
from evenlag.compare.resized import Staff
from evenlag.door import read_recorded
from evenlag.errors import InvalidProblemError
from evenlag.model.pair_costs import crossings
from evenlag.model.pair_data import NO_PAIR_DATA
from tests.support.problems import random_document, seeds

LAGS: dict[str, Any] = {"orders": [5, 3], "paid": [8, 1], "refunds": {0: 5, 7: 2}, "none": []}
MEMBERS = ["c0", "c1", "c2"]


def problem(**given: Any) -> Problem:
    return Problem.from_lags(LAGS, MEMBERS, **given)


def random_pair_fields(random: Random, document: dict[str, Any]) -> dict[str, Any]:
    """Return random fields of pair data for some partitions of a problem document."""
    fields: dict[str, Any] = {}
    topics = {topic: len(lags) for topic, lags in document["topics"].items()}
    zones = ["a", "b", "c"]
    if random.random() < 0.6:
        fields["partition_racks"] = {
            topic: [random.choice([None, random.sample(zones, random.randint(1, 3))]) for _ in range(size)]
            for topic, size in topics.items()
            if random.random() < 0.8
        }
    for name in ("move_sizes", "traffic"):
        if random.random() < 0.5:
            fields[name] = {
                topic: {str(i): random.choice([0, 1, 7, 2**53 - 1]) for i in range(size) if random.random() < 0.7}
                for topic, size in topics.items()
            }
    if random.random() < 0.5:
        names = list(document["members"])
        fields["costs"] = {
            "night": {
                "members": {name: random.randint(0, 5) for name in names if random.random() < 0.4},
                "pairs": [
                    [topic, i, random.choice(names), random.randint(0, 9)]
                    for topic, size in topics.items()
                    for i in range(size)
                    if random.random() < 0.3
                ],
            }
        }
    alike = [topic for topic, size in topics.items() if size == next(iter(topics.values()))]
    readers = [entry for entry in document["members"].values() if {*alike[:2]} <= {*entry["topics"]}]
    if len(alike) > 1 and readers and "pins" not in document and random.random() < 0.5:
        fields["together"] = [alike[:2]]
    return fields


def random_pair_document(random: Random, **size: Any) -> dict[str, Any]:
    """A random problem document with random pair data."""
    document = random_document(random, **size)
    for entry in document["members"].values():
        if random.random() < 0.5:
            entry["rack"] = random.choice("abc")
    return document | random_pair_fields(random, document)


# ---- read ------------------------------------------------------------------------------------------------------


def test_problems_without_pair_data_share_one_empty_object() -> None:
    for bare in (problem(), problem(racks={}), problem(racks={"c0": None}, partition_racks={"orders": [None, []]})):
        assert bare.pairs is NO_PAIR_DATA
        assert not bare.pairs
    assert set(problem().to_dict()) == {"group", "topics", "members", "pins"}
    assert all("rack" not in entry for entry in problem().to_dict()["members"].values())


def test_racks_of_members_and_of_replicas() -> None:
    pairs = problem(
        racks={"c2": "zone-a", "c0": None},
        partition_racks={"paid": [["zone-b", "zone-a"], None], "refunds": {7: ["zone-c"]}, "none": []},
    ).pairs
    assert pairs.racks == (None, None, "zone-a")
    assert pairs.partition_racks == (None, None, ("zone-b", "zone-a"), None, None, ("zone-c",))
    assert pairs


def test_replicas_without_a_known_rack_are_left_out_but_for_the_leader() -> None:
    given = {"paid": [["", "zone-a", ""], ["zone-b", "", "zone-a"]], "orders": {1: ["", ""]}}
    described = problem(partition_racks=given)
    assert described.pairs.partition_racks[2:4] == (("", "zone-a"), ("zone-b", "zone-a"))
    assert described.pairs.partition_racks[:2] == (None, None)
    assert Problem.from_dict(json.loads(json.dumps(described.to_dict()))).pairs.same_as(described.pairs)
    assert problem(partition_racks={"orders": {1: [""]}}).pairs is NO_PAIR_DATA


def test_a_read_from_a_leader_in_an_unknown_rack_is_not_a_crossing() -> None:
    described = {"racks": {"c0": "a", "c1": "b", "c2": "c"}, "partition_racks": {"paid": [["", "a"], ["a", "b"]]}}
    for fetch_from, first, second in (("leader", [0, 0, 0], [0, 1, 1]), ("followers", [0, 1, 1], [0, 0, 1])):
        costs = crossings(problem(**described, fetch_from=fetch_from))
        assert costs is not None
        assert costs.pairs[2:4].tolist() == [first, second]
    solved = [evenlag.solve(problem(**described, fetch_from=fetch_from)) for fetch_from in ("leader", "followers")]
    assert [[note for note in result.warnings if "rack" in note] for result in solved] == [
        ["the leader's rack is unknown for 5 partitions of 6: reading from it does not count as a crossing"], []
    ]  # fmt: skip


RACKS: dict[str, Any] = {"racks": {"c0": "a"}, "partition_racks": {"paid": [["b", "a"], ["a"]]}, "move_sizes": {}}


@pytest.mark.parametrize("given", [{}, RACKS])
def test_the_replicas_that_members_read_are_data_of_the_group(given: dict[str, Any]) -> None:
    plain, leader = problem(**given), problem(**given, fetch_from="leader")
    assert (plain.pairs.fetch_from, leader.pairs.fetch_from) == ("followers", "leader")
    assert "fetch_from" not in plain.to_dict()
    assert leader.to_dict() == plain.to_dict() | {"fetch_from": "leader"}
    assert not plain.pairs.same_as(leader.pairs)
    for other in (plain.with_pair_data(fetch_from="leader"), Problem.from_dict(leader.to_dict())):
        assert other.pairs.same_as(leader.pairs)
    assert leader.with_pair_data(fetch_from="followers").pairs.same_as(plain.pairs)
    for derived in (
        leader.with_pair_data(racks={"c1": "b"}), leader.with_pair_data(together=[["orders", "paid"]]).units,
        changed(leader, Change(add={"c9": None})), leader.at(leader.lags[::-1].copy(), leader.owner),
    ):  # fmt: skip
        assert derived.pairs.fetch_from == "leader"
    assert leader.pairs.keep(np.arange(6) != 2).fetch_from == "leader"


@pytest.mark.parametrize("written", [None, "leader"])
def test_reading_takes_the_replicas_that_members_read(written: Any) -> None:
    text = json.dumps(problem(**RACKS, fetch_from=written).to_dict())
    assert evenlag.read(text).pairs.fetch_from == (written or "followers")
    for given in ("leader", "followers"):
        assert evenlag.read(text, fetch_from=given).pairs.fetch_from == given
        assert read_recorded(text, fetch_from=given)[0].pairs.fetch_from == given
    with pytest.raises(InvalidProblemError, match="fetch_from must be one of"):
        evenlag.read(text, fetch_from="nobody")  # type: ignore[arg-type]


def test_other_replicas_than_those_of_leader_and_followers_are_refused() -> None:
    for of in (problem, problem().with_pair_data):
        with pytest.raises(InvalidProblemError, match="fetch_from must be one of leader, followers, not 'lead'"):
            of(fetch_from="lead")
    with pytest.raises(InvalidProblemError, match="fetch_from must be one of leader, followers, not 3"):
        Problem.from_dict(problem().to_dict() | {"fetch_from": 3})
    with pytest.raises(TypeError, match="unexpected keyword argument 'fetch_from'"):
        evenlag.solve(problem(), fetch_from="leader")  # type: ignore[call-arg]


@pytest.mark.parametrize("field", ["move_sizes", "traffic"])
@pytest.mark.parametrize(
    "given",
    [
        {"orders": [4, 0], "refunds": {7: 9}},
        {"orders": (4.0, 0), "refunds": {"7": np.int64(9)}},
        {"orders": np.array([4, 0], dtype=np.uint8), "refunds": {7: np.float32(9)}, "none": {}},
    ],
)
def test_sizes_and_traffic_default_to_1(field: str, given: Any) -> None:
    amounts = getattr(problem(**{field: given}).pairs, field)
    assert amounts.tolist() == [4, 0, 1, 1, 1, 9]
    assert amounts.dtype == np.int64


def test_sums_of_sizes_and_costs_never_pass_64_bits() -> None:
    large = 2**53 - 1
    many = Problem.from_lags(
        {"t": [1] * 2000}, ["a", "b"], move_sizes={"t": [large] * 2000}, costs={"night": {"a": large}}
    ).pairs
    assert many.move_sizes is not None
    assert many.move_sizes.sum() == many.costs["night"].pairs[:, 0].sum() == 2000 * large


def test_a_pair_of_its_own_goes_before_its_member() -> None:
    for costs in (
        {"c1": 3, ("orders", 1, "c1"): 0, ("refunds", 7, "c0"): 4},
        {("refunds", 7, "c0"): 4, ("orders", 1, "c1"): 0, "c1": 3},
    ):
        night = problem(costs={"night": costs}).pairs.costs["night"]
        assert night.pairs.tolist() == [[0, 3, 0], [0, 0, 0], [0, 3, 0], [0, 3, 0], [0, 3, 0], [4, 3, 0]]


def test_pair_data_is_frozen() -> None:
    pairs = problem(move_sizes={"orders": [2, 2]}, costs={"night": {"c1": 3}}).pairs
    for array in (pairs.move_sizes, pairs.costs["night"].table):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9


# ---- refused, and where ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "places"),
    [
        ({"racks": ["a"]}, ["racks", "mapping of member to rack", "list"]),
        ({"racks": {"c9": "a"}}, ["racks", "'c9'", "not a member"]),
        ({"racks": {"c0": 5}}, ["'c0'", "rack", "got 5"]),
        ({"racks": {"c0": ""}}, ["'c0'", "rack"]),
        ({"partition_racks": [["a"]]}, ["partition_racks", "mapping of topic", "list"]),
        ({"partition_racks": {"order": [["a"]]}}, ["partition_racks", "'order'", "did you mean 'orders'"]),
        ({"partition_racks": {"orders": [["a"]]}}, ["partition_racks", "'orders'", "1 values", "2 partitions"]),
        ({"partition_racks": {"refunds": [["a"], ["b"]]}}, ["'refunds'", "2 values", "name the partitions"]),
        ({"partition_racks": {"none": [["a"]]}}, ["'none'", "1 values", "0 partitions"]),
        ({"partition_racks": {"orders": ["a", "b"]}}, ["partition_racks of orders-0", "list of the racks", "str"]),
        ({"partition_racks": {"orders": {1: [5]}}}, ["partition_racks of orders-1", "got 5"]),
        ({"partition_racks": {"orders": {2: ["a"]}}}, ["partition_racks", "orders-2", "no partition"]),
        ({"partition_racks": {"orders": {"x": ["a"]}}}, ["'orders'", "'x'"]),
        ({"partition_racks": {"orders": {1: ["a"], "1": ["a"]}}}, ["'orders'", "twice"]),
        ({"move_sizes": {"orders": "12"}}, ["move_sizes", "'orders'", "str"]),
        ({"move_sizes": {"orders": 5}}, ["move_sizes", "'orders'", "int"]),
        ({"move_sizes": {"orders": [2.5, 1]}}, ["move_sizes of orders-0", "2.5", "scale them"]),
        ({"move_sizes": {"orders": [1, -1]}}, ["move_sizes of orders-1", "-1"]),
        ({"move_sizes": {"orders": [1, 2**53]}}, ["move_sizes of orders-1", "2^53", "larger unit"]),
        ({"move_sizes": {"orders": [1, None]}}, ["move_sizes of orders-1", "nothing"]),
        ({"move_sizes": {"orders": [1, True]}}, ["move_sizes of orders-1", "True"]),
        ({"move_sizes": {"orders": [1, "2"]}}, ["move_sizes of orders-1", "'2'"]),
        ({"traffic": {"refunds": {7: float("nan")}}}, ["traffic of refunds-7", "nan"]),
        ({"traffic": {"refunds": {7: float("inf")}}}, ["traffic of refunds-7", "inf"]),
        ({"traffic": {5: [1]}}, ["traffic", "unknown topic 5"]),
        ({"together": "orders,paid"}, ["together", "list of lists", "str"]),
        ({"together": ["orders", "paid"]}, ["together", "list of at least two topics", "str"]),
        ({"together": [["orders"]]}, ["together", "at least two topics", "orders"]),
        ({"together": [["orders", "paids"]]}, ["together", "unknown topic 'paids'", "did you mean 'paid'"]),
        ({"together": [["orders", 5]]}, ["together", "unknown topic 5"]),
        ({"together": [["orders", "orders"]]}, ["together", "'orders'", "twice"]),
        ({"together": [["orders", "paid"], ["refunds", "paid"]]}, ["together", "'paid'", "twice"]),
        ({"together": [["orders", "refunds"]]}, ["'orders'", "'refunds'", "'orders' has partition 1"]),
        ({"together": [["orders", "none"]]}, ["'orders'", "'none'", "they have 2 and 0"]),
        ({"costs": [1]}, ["costs", "list"]),
        ({"costs": {"night": [1]}}, ["costs", "'night'", "list"]),
        ({"costs": {"": {}}}, ["pair cost", "name"]),
        ({"costs": {"moves": {}}}, ["costs", "'moves'", "another name"]),
        ({"costs": {"crossings": {}}}, ["costs", "'crossings'", "another name"]),
        ({"costs": {"night": {"c9": 1}}}, ["'night'", "'c9'", "not a member"]),
        ({"costs": {"night": {"c0": 0.5}}}, ["'night'", "'c0'", "0.5", "scale them"]),
        ({"costs": {"night": {("orders", 0): 1}}}, ["'night'", "0"]),
        ({"costs": {"night": {(): 1}}}, ["'night'", "()"]),
        ({"costs": {"night": {("orders", 2, "c0"): 1}}}, ["'night'", "orders-2"]),
        ({"costs": {"night": {("order", 0, "c0"): 1}}}, ["'night'", "order-0"]),
        ({"costs": {"night": {("orders", "0", "c0"): 1}}}, ["'night'", "'0'", "whole number"]),
        ({"costs": {"night": {("orders", 0, "c9"): 1}}}, ["'night'", "'c9'"]),
        ({"costs": {"night": {("orders", 0, "c0"): -1}}}, ["'night'", "orders-0", "'c0'", "-1"]),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], places: list[str]) -> None:
    with pytest.raises(InvalidProblemError) as caught:
        problem(**given)
    for place in places:
        assert place in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "places"),
    [
        ({"costs": []}, ["costs", "list"]),
        ({"costs": {"night": []}}, ["'night'", "list"]),
        ({"costs": {"night": {"member": {}}}}, ["'night'", "'member'", "did you mean 'members'"]),
        ({"costs": {"night": {"members": [1]}}}, ["'night'", "members", "list"]),
        ({"costs": {"night": {"pairs": {}}}}, ["'night'", "pairs", "dict"]),
        ({"costs": {"night": {"pairs": [["orders", 0, "c0"]]}}}, ["'night'", "[topic, partition, member, cost]"]),
        ({"costs": {"night": {"pairs": [["orders", 0, ["c0"], 1]]}}}, ["'night'", "['c0']"]),
        ({"costs": {"night": {"pairs": [["orders", 0, "c0", 1]] * 2}}}, ["'night'", "orders-0", "'c0'", "twice"]),
        ({"costs": {"night": {"pairs": [["orders", 0, "c0", None]]}}}, ["'night'", "orders-0", "nothing"]),
        ({"partition_rack": {}}, ["unknown field 'partition_rack'", "did you mean 'partition_racks'"]),
        ({"members": {"c0": {"topics": [], "racks": "a"}}}, ["'c0'", "'racks'", "did you mean 'rack'"]),
        ({"members": {"c0": {"topics": [], "rack": 5}}}, ["'c0'", "rack", "got 5"]),
    ],
)
def test_wrong_pair_data_in_a_file_is_named(fields: dict[str, Any], places: list[str]) -> None:
    with pytest.raises(InvalidProblemError) as caught:
        Problem.from_dict(problem().to_dict() | fields)
    for place in places:
        assert place in str(caught.value)


def test_an_unknown_keyword_is_answered_with_the_nearest() -> None:
    with pytest.raises(TypeError, match="did you mean 'move_sizes'"):
        problem().with_pair_data(move_size={"orders": [1, 1]})  # type: ignore[call-arg]


# ---- what comes back -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(200))
def test_round_trip(seed: int) -> None:
    document = random_pair_document(Random(seed), empty_topics=True)
    read = Problem.from_dict(json.loads(json.dumps(document)))
    written = json.loads(json.dumps(read.to_dict()))
    again = Problem.from_dict(written)
    assert again.to_dict() == written
    assert again.pairs.same_as(read.pairs)
    assert again.same_structure(read)
    for other in (pickle.loads(pickle.dumps(read)), copy.deepcopy(read)):
        assert other.pairs.same_as(read.pairs)
    assert read.at(np.asarray(read.lags, dtype=np.int64), read.owner).pairs is read.pairs
    bare = {name: value for name, value in document.items() if name in ("topics", "members", "pins")}
    for entry in bare["members"].values():
        entry.pop("rack", None)
    assert Problem.from_dict(bare).same_structure(read) == (not read.pairs)


def test_new_pair_data_replaces_only_the_fields_it_names() -> None:
    first = problem(racks={"c0": "a"}, move_sizes={"orders": [2, 2]}, together=[("orders", "paid")])
    second = first.with_pair_data(move_sizes={"paid": [3, 3]}, traffic={"paid": [4, 4]})
    wanted = problem(
        racks={"c0": "a"}, move_sizes={"paid": [3, 3]}, traffic={"paid": [4, 4]}, together=[("orders", "paid")]
    )
    assert second.pairs.same_as(wanted.pairs)
    assert first.with_pair_data() is first
    assert first.with_pair_data(racks={}, move_sizes={}, together=[]).pairs.move_sizes is not None


@pytest.mark.parametrize(
    "given",
    [
        {"racks": {"c0": "a"}},
        {"partition_racks": {"orders": [["a"], None]}},
        {"move_sizes": {"orders": [1, 1]}},
        {"traffic": {"orders": [1, 1]}},
        {"costs": {"night": {}}},
        {"together": [["orders", "paid"]]},
    ],
)
def test_each_field_alone_makes_problems_unequal(given: dict[str, Any]) -> None:
    described = problem(**given)
    assert described.pairs
    assert not described.pairs.same_as(NO_PAIR_DATA)
    assert not NO_PAIR_DATA.same_as(described.pairs)
    assert not described.same_structure(problem())
    assert described.pairs.same_as(problem(**given).pairs)
    other = next(iter(given))
    assert other in described.to_dict() or other == "racks"


# ---- groups that follow ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(60))
def test_pair_data_of_a_part_equals_that_of_a_problem_of_the_part(seed: int) -> None:
    random = Random(seed)
    document = random_pair_document(random, plain=True) | {"together": None}
    whole = Problem.from_dict(document)
    chosen = np.array([random.random() < 0.7 for _ in whole.partitions])
    left = [partition for partition, kept in zip(whole.partitions, chosen.tolist(), strict=True) if kept]
    names = {(topic, str(i)) for topic, i in left}

    def part(values: Any) -> Any:
        numbered = {
            topic: dict(enumerate(each)) if isinstance(each, list) else each for topic, each in (values or {}).items()
        }
        return {
            topic: {str(i): value for i, value in each.items() if (topic, str(i)) in names}
            for topic, each in numbered.items()
        }

    smaller = dict(document)
    for field in ("topics", "partition_racks", "move_sizes", "traffic"):
        smaller[field] = part(document.get(field)) if field in document else None
    if "costs" in document:
        night = document["costs"]["night"]
        pairs = [pair for pair in night["pairs"] if (pair[0], str(pair[1])) in names]
        smaller["costs"] = {"night": {"members": night["members"], "pairs": pairs}}
    wanted, kept = Problem.from_dict(smaller).pairs, whole.pairs.keep(chosen)
    assert kept.racks == wanted.racks
    assert (kept.partition_racks or (None,) * len(left)) == (wanted.partition_racks or (None,) * len(left))
    for field in ("move_sizes", "traffic"):
        assert np.array_equal(getattr(kept, field), getattr(wanted, field)), field
    assert kept.costs.keys() == wanted.costs.keys()
    for name in wanted.costs:
        assert np.array_equal(kept.costs[name].pairs, wanted.costs[name].pairs)


def test_the_hottest_partition_may_be_left_out() -> None:
    described = problem(racks={"c0": "a"}, partition_racks={"paid": [["a"], ["b"]]}, move_sizes={"paid": [7, 5]})
    result = evenlag.solve(described, balance="none")
    assert result.binding is not None


def test_new_members_get_the_rack_and_costs_that_all_share() -> None:
    shared = problem(racks=dict.fromkeys(MEMBERS, "a"), costs={"night": dict.fromkeys(MEMBERS, 2), "day": {"c1": 1}})
    more = Staff(shared).of(4)
    assert more.members == ("c0", "c1", "c2", "new-1")
    assert more.pairs.racks == ("a",) * 4
    assert more.pairs.costs["night"].pairs.tolist() == [[2] * 4] * 6
    assert more.pairs.costs["day"].pairs.tolist() == [[0, 1, 0, 0]] * 6
    unlike = Staff(problem(racks={"c0": "a", "c1": "b"})).of(4)
    assert unlike.pairs.racks == ("a", "b", None, None)
    fewer = Staff(problem(racks={"c0": "a", "c2": "b"}, costs={"day": {"c1": 1}})).of(2)
    assert fewer.pairs.racks == ("a", None)
    assert fewer.pairs.costs["day"].pairs.tolist() == [[0, 1]] * 6


def test_a_changed_group_keeps_the_pair_data_of_what_stays() -> None:
    described = problem(
        racks={"c0": "a", "c2": "b"},
        partition_racks={"orders": [["a"], ["b"]]},
        move_sizes={"orders": [2, 3]},
        traffic={"orders": [4, 5]},
        costs={"night": {"c0": 3, "c1": 1, ("orders", 0, "c2"): 5}},
    )
    after = changed(described, Change(remove=["c0"], members=1, partitions={"orders": 3}))
    assert after.members == ("c1", "c2", "new-1")
    assert after.pairs.racks == (None, "b", None)
    assert after.pairs.partition_racks[:3] == (("a",), ("b",), None)
    assert after.pairs.move_sizes is not None
    assert after.pairs.traffic is not None
    assert after.pairs.move_sizes.tolist() == [2, 3, 1, 1, 1, 1, 1]
    assert after.pairs.traffic.tolist() == [4, 5, 1, 1, 1, 1, 1]
    night = after.pairs.costs["night"]
    assert night.pairs.tolist() == [[1, 5, 0], [1, 0, 0], [1, 0, 0], *([[1, 0, 0]] * 4)]
    assert changed(described, Change(remove=["c2"])).pairs.costs["night"].pairs.tolist() == [[3, 1]] * 6


def test_topics_that_go_together_grow_together() -> None:
    described = problem(together=[("orders", "paid")])
    with pytest.raises(InvalidProblemError, match="'orders' and 'paid' must have the same partitions; they have 3 and"):
        changed(described, Change(partitions={"orders": 3}))
    assert changed(described, Change(partitions={"orders": 3, "paid": 3})).pairs.together == (("orders", "paid"),)
