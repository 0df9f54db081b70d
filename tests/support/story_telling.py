"""Small stories of consumer groups, told step by step to a real coordinator or to the simulation's model of it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from evenlag.simulation.group_answers import Answer, Pending

RECORDS = Path(__file__).parents[1] / "records"
STEP = 1.0  # seconds for a step, within which a broker answers at once if it can
AT_ONCE = 10  # stories
DRAWN = 40  # stories that are drawn

Outcomes = dict[str, list[str]]
"""The lines of each story's outcome."""


class Clocked(Protocol):
    """A coordinator with one group."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""


class Telling(ABC):
    """A story on its way: each step is a request of one client, or a pause.

    A request is made by the method with its verb, which gets the client's name and the further words of the step.
    """

    def __init__(self, driver: Clocked) -> None:
        self._clocked = driver
        self._waiting: list[tuple[str, str, Pending]] = []

    def step(self, text: str) -> str:
        """Take a step; return the step, the answers that have come since, and the state."""
        verb, *words = text.split()
        if verb == "wait":
            self._clocked.wait(float(words[0]))
        else:
            who, given = words[0], dict(word.split("=") for word in words[1:])
            self._waiting.append((verb, who, getattr(self, f"_{verb}")(who, given)))
        self._clocked.wait(STEP)
        come = [each for each in self._waiting if each[2].answer is not None]
        self._waiting = [each for each in self._waiting if each[2].answer is None]
        answers = sorted(self._told(verb, who, pending.answer) for verb, who, pending in come if pending.answer)
        return " | ".join([text, *answers, self._state()])

    @abstractmethod
    def _state(self) -> str:
        """Return the state of the group in words."""

    @abstractmethod
    def _told(self, verb: str, who: str, answer: Answer) -> str:
        """Return an answer in words, and remember what its client remembers of it."""


def with_drawn(stories: Mapping[str, str], drawn: Callable[[int], str]) -> dict[str, str]:
    """Return stories, followed by some that are drawn by number."""
    return {**stories, **{f"drawn story {number}": drawn(number) for number in range(DRAWN)}}


def told(story: str, telling: Telling) -> list[str]:
    """Tell a story; return the lines of the outcome."""
    return [telling.step(text.strip()) for text in story.split(";")]


def outcomes_of(stories: Mapping[str, str], telling_of: Callable[[str], Telling]) -> Outcomes:
    """Tell all stories to a real coordinator, each about a group of its own; return the outcomes."""
    told(next(iter(stories.values())), telling_of("first"))  # the first requests take a broker longer than a step
    with ThreadPoolExecutor(AT_ONCE) as pool:
        telling = {
            name: pool.submit(told, story, telling_of(f"story-{number}"))
            for number, (name, story) in enumerate(stories.items())
        }
        return {name: each.result() for name, each in telling.items()}


def recorded(name: str) -> tuple[str, Outcomes]:
    """Return the version of the broker recorded in a file of tests/records, and the outcome of each story."""
    content: dict[str, Any] = json.loads((RECORDS / name).read_text())
    return content["kafka"], content["stories"]


def record(name: str, kafka: str, outcomes: Outcomes) -> None:
    """Write a file of tests/records."""
    (RECORDS / name).write_text(json.dumps({"kafka": kafka, "stories": outcomes}, indent=1) + "\n")
