"""Sentences of the arguments on loads: why some member has at least, or at most, a number of messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evenlag.figures import messages, number, quantity
from evenlag.model.explanation.phrases import joined, named, partitions

Data = Mapping[str, Any]


def largest_load(data: Data) -> str:
    """Return the sentence on the largest load."""
    why = _REASONS[data["argument"]](data, True)
    return f"In any plan some member has at least {messages(data['value'])}: {why}."


def smallest_load(data: Data) -> str:
    """Return the sentence on the smallest load."""
    why = _REASONS[data["argument"]](data, False)
    return f"In any plan some member has at most {messages(data['value'])}: {why}."


def _mean(data: Data, _: bool) -> str:
    members = quantity(data["members"], "member")
    return f"{members} share{'s' * (data['members'] == 1)} {messages(data['total'])}"


def _oversized(data: Data, largest: bool) -> str:
    """Return the giant partitions with their companions, or the messages that they leave for the others."""
    text = _holders(data)
    if data["companions"]:
        text += f" and at least {quantity(data['companions'], 'other partition')} ({number(data['their_lag'])} or more)"
    if largest:
        return text
    left = data["total"] - data["lag"] - data["their_lag"]
    rest = f"{number(left)} or less" if left else "nothing"
    return f"{text}, which leaves {rest} for {quantity(data['members'] - data['holders'], 'member')}"


def _holders(data: Data) -> str:
    holders = data["holders"]
    what = partitions(data["partitions"])
    if len(data["partitions"]) < holders:
        what = f"the {number(holders)} biggest partitions"
    who = "one member holds" if holders == 1 else f"{number(holders)} members (or fewer) hold"
    return f"{who} {what} ({number(data['lag'])})"


def _topics(data: Data, _: bool) -> str:
    return f"{_holders(data)} and the partitions of each topic that their counts require"


def _weights(data: Data, _: bool) -> str:
    holders = data["holders"]
    what = f"{partitions(data['partitions'])} ({number(data['lag'])})"
    if holders > len(data["partitions"]):
        what = f"the {number(holders)} biggest partitions ({number(data['lag'])})"
    who = "goes to the member" if holders == 1 else f"go to the {number(holders)} members"
    rest = f"the others share the rest of {number(data['total'])} by weight"
    return f"at best {what} {who} of the highest weight, and {rest}"


def _weights_and_counts(data: Data, _: bool) -> str:
    rest = f"the other members share the rest of {number(data['total'])} by weight"
    return f"{_holders(data)} and as many of the smallest partitions as counts require, and {rest}"


def _undersized(data: Data, largest: bool) -> str:
    who = "one member holds" if data["number"] == 1 else f"{number(data['number'])} members (or fewer) hold"
    text = f"{who} the smallest partitions, and counts limit the number of others next to them"
    return f"{text}, so the rest is left to the other members" if largest else text


def _pigeonholes(data: Data, largest: bool) -> str:
    which, shared = "biggest" if largest else "smallest", number(data["shared"])
    members = quantity(data["members"], "member")
    return f"with {members}, {shared} of the {number(data['biggest'])} {which} partitions must share one"


def _uneven(data: Data, largest: bool) -> str:
    who = "some member holds" if data["number"] == 1 else f"some {number(data['number'])} members together hold"
    text = f"{who} at least {quantity(data['held'], 'partition')}, at best the smallest ones"
    return text if largest else f"{text}, which leaves the biggest to the others"


def _pairs(_: Data, __: bool) -> str:
    return "members hold two partitions at most, and pairing the biggest with the smallest is best"


def _companions(data: Data, _: bool) -> str:
    total, members = messages(data["total"]), quantity(data["members"], "member")
    return (
        f"{total} are not enough to give each of {members} more. A partition goes to one member as a whole: "
        "a member whose big partition is just short needs another one, and then has more than it needs"
    )


def _member(data: Data, _: bool) -> str:
    return f"it follows from the pins, subscriptions and counts of {named(data['member'])}"


def _topic(data: Data, _: bool) -> str:
    takers = quantity(data["takers"], "member")
    return f"only {takers} may take {joined([named(topic) for topic in data['topics']])}"


def _subscriptions(data: Data, _: bool) -> str:
    return f"{named(data['member'])}, and those who may take no other topics than it, share the lag of these topics"


_REASONS: dict[str, Callable[[Data, bool], str]] = {
    "mean": _mean,
    "oversized": _oversized,
    "topics": _topics,
    "weights": _weights,
    "weights_and_counts": _weights_and_counts,
    "undersized": _undersized,
    "pigeonholes": _pigeonholes,
    "uneven": _uneven,
    "pairs": _pairs,
    "companions": _companions,
    "member": _member,
    "topic": _topic,
    "subscriptions": _subscriptions,
}
