"""Facts of a group: what follows from them, how they are told, and topics that are left over."""

from typing import Any

import pytest

import evenlag
from evenlag.errors import InvalidProblemError
from evenlag.model.facts import Facts, completed
from evenlag.model.problem import Problem

HEAD = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID\n"
LEFT_OVER = HEAD + (
    "g live 0 100 110 10 c-1 /192.0.2.1 c\ng live 1 100 120 20 c-2 /192.0.2.2 c\ng old 0 100 100100 100000 - - -\n"
)
STATE = "\nGROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS\n"


def test_a_topic_without_any_owner_is_left_over_and_not_planned() -> None:
    problem = evenlag.read(LEFT_OVER)
    assert problem.facts.left_over_topics == ("old",)
    assert problem.total_lag == 30
    result = evenlag.solve(problem)
    assert (result.status, result.spread, result.moves, result.unassigned) == ("OPTIMAL", 10, 0, [("old", 0)])
    assert any(note.startswith("left over: old (1 partition, 100,000 messages)") for note in result.warnings)


def test_members_may_be_said_to_subscribe_to_a_topic_without_owners() -> None:
    problem = evenlag.read(LEFT_OVER, subscribed=["old"])
    assert problem.facts.left_over == ()
    assert problem.total_lag == 100_030
    assert not any("left over" in note for note in problem.warnings)
    with pytest.raises(InvalidProblemError, match="subscribed: group 'g' has no topic 'odl'; did you mean 'old'"):
        evenlag.read(LEFT_OVER, subscribed=["odl"])


@pytest.mark.parametrize("members", [["c-1", "c-2"], {"c-1": ["live"], "c-2": ["live", "old"]}])
def test_a_members_table_tells_the_subscriptions(members: Any) -> None:
    assert evenlag.read(LEFT_OVER, members=members).total_lag == 100_030


def test_nothing_is_left_over_in_a_group_without_owners() -> None:
    text = HEAD + "g a 0 1 5 4 - - -\ng b 0 1 5 4 - - -\n"
    assert evenlag.read(text).facts.left_over == ()
    assert evenlag.read(text, members=["c"]).total_lag == 8


def test_an_owner_in_a_row_that_cannot_be_used_keeps_its_topic() -> None:
    table = "group,topic,partition,lag,consumer_id\ng,a,0,1,c\ng,b,0,,d\ng,b,1,5,\n"
    assert evenlag.read(table).facts.left_over == ()


def test_problem_files_keep_the_facts() -> None:
    problem = evenlag.read(LEFT_OVER + STATE + "g 192.0.2.9:9092 (1) range Stable 2\n")
    assert problem.facts.told() == "state Stable, assignor range"
    again = Problem.from_dict(problem.to_dict())
    assert (again.facts, again.warnings) == (problem.facts, problem.warnings)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ([], "'facts' must be an object"),
        ({"stat": "Stable"}, "facts: unknown field 'stat'"),
        ({"members": -1}, "facts: members: must be a whole number >= 0, not -1"),
        ({"members": "2"}, "facts: members: must be a whole number >= 0"),
        ({"left_over": [{"topic": "t"}]}, "facts: left_over: must have topic, partitions, lag"),
        ({"left_over": 0.5}, "'left_over' must be a list; got float"),
        ({"assumed": ["x"]}, "'assumed' must be an object"),
    ],
)
def test_invalid_facts_are_refused(facts: Any, said: str) -> None:
    with pytest.raises(InvalidProblemError, match=said):
        Problem.from_dict({"topics": {"t": [1]}, "members": {"c": {"topics": ["t"]}}, "facts": facts})


@pytest.mark.parametrize(
    ("facts", "names", "told"),
    [
        (Facts(assignor="uniform"), (), "KIP-848 protocol, assignor uniform"),
        (Facts(assignor="cooperative-sticky"), (), "classic protocol, assignor cooperative-sticky"),
        (Facts(assignor="range"), (), "assignor range"),
        (Facts(group_epoch=7, assignor="range"), (), "KIP-848 protocol, assignor range, epoch 7"),
        (Facts(assignor="stream"), (), "classic protocol, assignor stream, Kafka Streams"),
        (Facts(), ("app-1-StreamThread-1-consumer-x",), "Kafka Streams"),
        (Facts(), ("connector-consumer-s3-0-x",), "Kafka Connect"),
        (Facts(state="rebalancing"), (), "rebalancing"),
        (Facts(protocol="consumer", classic_members=1), (), "KIP-848 protocol, 1 member still classic"),
    ],
)
def test_facts_follow_from_others_and_from_names(facts: Facts, names: tuple[str, ...], told: str) -> None:
    assert completed(facts, "g", ["t"], names).told() == told


def test_internal_topics_of_the_group_show_kafka_streams() -> None:
    assert completed(Facts(), "app", ["app-counts-repartition"], ["c"]).application == "streams"
    assert completed(Facts(), "app", ["other-counts-changelog"], ["c"]).application is None


def test_members_that_an_input_does_not_name_are_noted() -> None:
    text = LEFT_OVER + STATE + "g 192.0.2.9:9092 (1) range Stable 5\n"
    assert any("the group has 5 members, but the input names 2" in note for note in evenlag.read(text).warnings)


@pytest.mark.parametrize(
    ("state", "online"),
    [
        ("stream Stable 2", "refused"),
        ("range Stable 2", "possible"),
        ("uniform Stable 2", "done"),
        ("cooperative-sticky PreparingRebalance 2", "possible"),
    ],
)
def test_migration_knows_what_texts_tell(state: str, online: str) -> None:
    text = LEFT_OVER + STATE + f"g 192.0.2.9:9092 (1) {state}\n"
    assert evenlag.migrate(evenlag.read(text), time_limit=1).online == online


def test_a_group_half_way_to_kip_848_is_known() -> None:
    head = "\nGROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT UPGRADED\n"
    members = "g c-1 /192.0.2.1 c 1 7 live(0) true\ng c-2 /192.0.2.2 c 1 7 live(1) false\n"
    found = evenlag.migrate(evenlag.read(LEFT_OVER + head + members), time_limit=1)
    assert (found.online, found.problem.facts.classic_members) == ("half-way", 1)
