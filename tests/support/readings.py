"""Checks of the messages that followers have processed: one reader per partition, none read again after its commit.

All times are of `time.monotonic`, which processes of one machine share.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.support.followers import Followers
from tests.support.members import Member

Event = dict[str, Any]


class KeptFollowers(Followers):
    """Followers whose events are kept when another process takes over their name.

    Attributes
    ----------
    earlier : list of (str, Member)
        The processes that others have replaced, by name.
    wakes : list of (float, str)
        When stopped ones were resumed.
    """

    def __init__(self, *arguments: Any, **config: Any) -> None:
        super().__init__(*arguments, **config)
        self.earlier: list[tuple[str, Member]] = []
        self.wakes: list[tuple[float, str]] = []

    def start(self, *names: str, **config: Any) -> None:
        """Start followers; a process that had one of these names has ended."""
        self.earlier += [(name, self[name]) for name in names if name in self]
        super().start(*names, **config)

    def end(self) -> None:
        """End all processes."""
        for _, member in (*self.earlier, *self.items()):
            member.end()

    def history(self) -> list[tuple[float, str, Event]]:
        """Return the events of all processes with their times and names, in order of time."""
        several = [*self.earlier, *self.items()]
        events = [(each["t"], name, each) for name, member in several for each in list(member.events)]
        events += [(t, name, {"event": "woken"}) for t, name in self.wakes]
        return sorted(events, key=lambda each: each[0])


def faults_of(history: Iterable[tuple[float, str, Event]]) -> list[str]:
    """Return messages that were read by a member whose partition another one had taken, or again after their commit.

    A member that was stopped finishes the one message at hand when it wakes, before it can look who owns its partition.
    """
    faults: list[str] = []
    owners: dict[int, str] = {}
    committed: dict[int, int] = {}
    waking: set[str] = set()
    for t, name, event in history:
        if event["event"] in ("assigned", "lost", "committed"):
            waking.discard(name)
        if event["event"] == "woken":
            waking.add(name)
        elif event["event"] == "assigned":
            owners |= dict.fromkeys((number for _, number in event["partitions"]), name)
        elif event["event"] == "committed":
            committed |= {number: max(offset, committed.get(number, 0)) for number, offset in event["offsets"]}
        elif event["event"] == "processed":
            number, offset = event["partition"], event["offset"]
            at_hand = name in waking
            waking.discard(name)
            if at_hand:
                continue
            if owners.get(number) != name:
                faults.append(f"{t:.2f}: {name} reads {number}@{offset}, which {owners.get(number)} has taken")
            if offset < committed.get(number, 0):
                faults.append(f"{t:.2f}: {name} reads {number}@{offset} again, committed up to {committed[number]}")
    return faults


def story_of(faults: Iterable[str], history: Iterable[tuple[float, str, Event]]) -> str:
    """Return what happened to the partitions of faults, from half a minute before the first on, a line each."""
    found = [each.split() for each in faults]  # 12.34: c1 reads 3@56 …
    partitions, since = {int(words[3].partition("@")[0]) for words in found}, float(found[0][0][:-1]) - 30

    def of_them(event: Event) -> bool:
        named = [event["partition"]] if "partition" in event else [number for number, _ in event.get("offsets", ())]
        return not named or not partitions.isdisjoint(named)

    return "\n".join(f"{t:.2f} {name} {event}" for t, name, event in history if t >= since and of_them(event))


def processed(history: Iterable[tuple[float, str, Event]]) -> Counter[tuple[int, int]]:
    """Return how often each message, a partition and an offset, was processed."""
    return Counter((event["partition"], event["offset"]) for _, _, event in history if event["event"] == "processed")


def uncommitted(member: Member) -> int:
    """Return how many messages a member has processed since its last commit of their partitions."""
    committed: dict[int, int] = {}
    done: set[tuple[int, int]] = set()
    for event in member.of("committed", "processed"):
        if event["event"] == "committed":
            committed |= dict(event["offsets"])
        else:
            done.add((event["partition"], event["offset"]))
    return sum(offset >= committed.get(number, 0) for number, offset in done)
