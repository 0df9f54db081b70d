"""The model of the coordinator answers as a real broker has answered, story by story."""

import pytest

from tests.support.asked_coordinator import Asked, ready_broker
from tests.support.coordinator_stories import INITIAL_DELAY, STORIES, Model, outcomes_of, recorded, told


@pytest.mark.parametrize("name", STORIES)
def test_the_model_answers_as_the_recorded_broker(name: str) -> None:
    _, outcomes = recorded()
    assert told(STORIES[name], Model()) == outcomes[name]


def test_all_stories_are_recorded_and_the_broker_is_named() -> None:
    version, outcomes = recorded()
    assert outcomes.keys() == STORIES.keys()
    assert version.startswith("4.1.")


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.long
def test_a_broker_answers_as_the_recorded_one() -> None:
    with ready_broker(INITIAL_DELAY) as (bootstrap, _):
        assert outcomes_of(lambda group: Asked(bootstrap, group)) == recorded()[1]
