"""The models of the coordinator answer as real brokers have answered, story by story."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from tests.support import coordinator_stories as classic
from tests.support import heartbeat_stories as heartbeats
from tests.support import story_telling
from tests.support.asked_coordinator import ONE_TOPIC, Asked, ready_broker
from tests.support.asked_heartbeats import AskedHeartbeats
from tests.support.broker import VERSION
from tests.support.story_telling import Telling, outcomes_of, recorded, told


@dataclass(frozen=True)
class Kind:
    """Stories, their record, and how they are told to the model and to a real broker with such properties and topics.

    Brokers whose version begins with one of `versions` answer like the record.
    """

    stories: Mapping[str, str]
    golden: str
    versions: tuple[str, ...]
    model: Callable[[], Telling]
    broker: Callable[[str, str], Telling]
    properties: str
    topics: Mapping[str, int]


def of_heartbeats(kafka: str) -> Kind:
    return Kind(
        heartbeats.STORIES,
        heartbeats.golden(kafka),
        (kafka,),
        lambda: heartbeats.HeartbeatTelling(heartbeats.Model(kafka)),
        lambda bootstrap, group: heartbeats.HeartbeatTelling(AskedHeartbeats(bootstrap, group)),
        heartbeats.PROPERTIES,
        heartbeats.TOPICS,
    )


KINDS = {
    "classic": Kind(
        classic.STORIES,
        classic.GOLDEN,
        ("4.1", "4.4"),
        lambda: classic.ClassicTelling(classic.Model()),
        lambda bootstrap, group: classic.ClassicTelling(Asked(bootstrap, group)),
        classic.PROPERTIES,
        ONE_TOPIC,
    ),
    "KIP-848 in 4.1": of_heartbeats("4.1"),
    "KIP-848 in 4.4": of_heartbeats("4.4"),
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, each in KINDS.items() for name in each.stories])
def test_the_model_answers_as_the_recorded_broker(kind: str, name: str) -> None:
    _, outcomes = recorded(KINDS[kind].golden)
    assert told(KINDS[kind].stories[name], KINDS[kind].model()) == outcomes[name]


@pytest.mark.parametrize("kind", KINDS)
def test_all_stories_are_recorded_and_the_broker_is_named(kind: str) -> None:
    version, outcomes = recorded(KINDS[kind].golden)
    assert outcomes.keys() == KINDS[kind].stories.keys()
    assert version.startswith(KINDS[kind].versions[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [0.85, 1.15])
def test_no_outcome_hangs_on_a_little_time(kind: str, step: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # A broker under load answers later, and its timers run beside the clock of who tells the story.
    monkeypatch.setattr(story_telling, "STEP", step * story_telling.STEP)
    outcomes = {name: told(story, KINDS[kind].model()) for name, story in KINDS[kind].stories.items()}
    assert outcomes == recorded(KINDS[kind].golden)[1]


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("kind", [kind for kind, each in KINDS.items() if VERSION.startswith(each.versions)])
def test_a_broker_answers_as_the_recorded_one(kind: str) -> None:
    each = KINDS[kind]
    with ready_broker(each.properties, each.topics) as (bootstrap, _):
        assert outcomes_of(each.stories, lambda group: each.broker(bootstrap, group)) == recorded(each.golden)[1]
