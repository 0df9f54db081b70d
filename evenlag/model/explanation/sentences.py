"""Sentences of claims. Each is made of the claim's own names and numbers, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenlag.figures import messages, number, percent, quantity, span
from evenlag.model.explanation.argument_sentences import largest_load, smallest_load
from evenlag.model.explanation.claims import Claim
from evenlag.model.explanation.phrases import joined, listed, named, partition, partitions, priced
from evenlag.model.objective import Across, ObjectiveKind
from evenlag.model.plan import Number

Data = Mapping[str, Any]


def sentence(claim: Claim) -> str:
    """Return a claim as a sentence."""
    return SENTENCES[claim.kind](claim.data)


def _measure(data: Data) -> str:
    """Return the name of the measure in the objective."""
    of = "spread" if data["measure"] == ObjectiveKind.SPREAD else "largest load"
    if not data["scenarios"]:
        return f"the {of}"
    scenarios = quantity(data["scenarios"], "scenario")
    return f"the mean {of} of {scenarios}" if data["across"] == Across.MEAN else f"the {of} in the worst of {scenarios}"


def _change(data: Data) -> str:
    before, after = data["before"], data["after"]
    if before == after:
        return f"stays at {number(after)}"
    return f"{'falls' if after < before else 'rises'} from {number(before)} to {number(after)}"


# ---- the group -------------------------------------------------------------------------------------------------------


def _empty(data: Data) -> str:
    if not data["partitions"]:
        return "There is nothing to assign: the group has no partitions."
    held = f"{quantity(data['partitions'], 'partition')} with {quantity(data['lag'], 'message')}"
    if not data["members"]:
        return (
            f"No member of this group is known; it has {held} of lag. Its consumers are stopped, or assign partitions "
            "to themselves, as Flink and Spark do."
        )
    return f"Nothing can be assigned: the group has {held} of lag, and no member can take any of it."


def _outcome(data: Data) -> str:
    of = _measure(data) if data["scenarios"] else "the busiest member"
    unit = " for its weight" if data["weighted"] and not data["scenarios"] else ""
    moved = [quantity(data["moves"], "move")] if data["moves"] else []
    moved += [f"{quantity(data['assigned'], 'new assignment')}"] if data["assigned"] else []
    how, before, after = " and ".join(moved), data["before"], data["after"]
    if not moved:
        kept = "Today's assignment is kept" if data["pays"] is False else "Nothing moves"
        text = f"{kept}: {of} {'stays at' if data['scenarios'] else 'has'} {messages(after)}{unit}"
    elif before is None:
        verb = "give" if data["moves"] + data["assigned"] > 1 else "gives"
        text = f"{_capital(how)} {verb} {of} {messages(after)}{unit}"
    elif before == after:
        verb = "leave" if data["moves"] + data["assigned"] > 1 else "leaves"
        text = f"{_capital(how)} {verb} {of} at {messages(after)}{unit}"
    elif before < after and data["assigned"]:
        verb = "raise" if data["moves"] + data["assigned"] > 1 else "raises"
        unread = f"{quantity(data['assigned'], 'partition')} {'has' if data['assigned'] == 1 else 'have'} no member"
        text = f"{_capital(how)} {verb} {of} from {number(before)} to {messages(after)}{unit}, as {unread} today"
    else:
        verb = "bring" if data["moves"] + data["assigned"] > 1 else "brings"
        text = f"{_capital(how)} {verb} {of} from {number(before)} to {messages(after)}{unit}"
    if data["floor"] is None:
        return text + "."
    if data["floor"] == after:
        return f"{text}; no assignment within the rules can bring it lower."
    return f"{text}; no assignment within the rules can bring it below {number(data['floor'])}."


def _left_alone(data: Data) -> str:
    moves, share = quantity(data["moves"], "move"), percent(float(data["asked"]))
    if data["saved"] <= 0:
        return f"The best plan found saves nothing once its {moves} are paid."
    saved = f"{number(data['saved'])} of {messages(data['today'])}"
    return f"The best plan found saves {saved} once its {moves} are paid, less than the {share} that were asked for."


def _objective(data: Data) -> str:
    text = _capital(_measure(data))
    if data["measure"] == ObjectiveKind.SPREAD and not data["scenarios"]:
        text += ", the largest load less the smallest,"
    text += f" is {number(data['after'])}" if data["before"] is None else f" {_change(data)}"
    text += " message" + "s" * (data["after"] != 1)
    terms = [_term(*each) for each in data["priced"] if each[1]]
    if not terms:
        return f"{text}."
    return f"{text}. Counting {joined(terms)}, the plan comes to {number(data['objective'])} (the objective)."


def _term(name: str, units: int, price: Number) -> str:
    """Return the price of one term, and its units."""
    each = f"{priced(price)} message{'' if price == 1 else 's'} for"
    if name in ("moves", "crossings"):
        what = quantity(units, name.removesuffix("s"))
    else:
        what = f"{quantity(units, 'unit')} of {name.replace('_', ' ')}"
    return f"{each} {what}" if units == 1 else f"{each} each of {what}"


_PROOFS = {
    "loads": "it follows from the loads that any plan must have",
    "search": "an exhaustive search found none",
    "windows": "no plan keeps all loads within a range that is narrow enough",
    "moves": "bringing the loads closer together takes moves that cost at least as much as they save",
    "scenarios": "it follows from a bound for each scenario",
    "solver": "two runs of a solver agree",
    "none": "no certificate was written",
}


def _bound(data: Data) -> str:
    objective, bound = data["objective"], data["bound"]
    within = " among those that are as good in the criteria that come first" if data["within"] else ""
    if data["by"] is None:
        if objective == bound:
            return f"No plan is better: the objective is {number(bound)}, and none can be lower."
        return f"No objective can be below {number(bound)}."
    how = _PROOFS.get(data["proof"], "all plans were looked at")
    if data["proof"] == "plans" and data["plans"] is not None:
        how = f"{quantity(data['plans'], 'plan')} with allowed counts exist, and all were looked at"
        how = "it is the only one with allowed counts" if data["plans"] == 1 else how
    how = f"{how} ({data['by']})"
    if objective == bound:
        return f"No plan has a lower objective{within}: {how}."
    if objective < bound:  # a plan that breaks a rule
        return f"No plan within the rules has an objective below {number(bound)}{within}: {how}."
    left = number(objective - bound)
    return f"No plan has an objective below {number(bound)}{within}: {how}. A better plan could save {left} at most."


def _limit(data: Data) -> str:
    return _LIMITS[data["rule"]](data)


def _hot(data: Data) -> str:
    if data["partitions"] is None:
        return "Limited by the partition with the most lag."
    return f"Limited by a hot partition: {partitions(data['partitions'])} alone has {_share(data)}."


def _share(data: Data) -> str:
    """Return a lag's share of the total, as text."""
    return "all lag" if data["lag"] == data["total"] else f"{percent(data['lag'] / data['total'])} of all lag"


def _counts(data: Data) -> str:
    text = f"Limited by the count balance ({data['balance']})"
    fewest, most = data["fewest"], data["most"]
    if fewest is None:
        return text + "."
    return f"{text}: each member holds {span(fewest, most, 'partition')}."


def _stickiness(data: Data) -> str:
    if data["budget"] is not None:
        return f"Limited by the number of moves: {number(data['budget'])} at most."
    unit = "message" if data["price"] == 1 else "messages"
    return f"Limited by the price of moves: a move must save {priced(data['price'])} {unit}."


_LIMITS: dict[str, Callable[[Data], str]] = {
    "hot-partition": _hot,
    "count-balance": _counts,
    "stickiness": _stickiness,
    "subscriptions": lambda _: "Limited by the subscriptions: members may not take every topic.",
    "pins": lambda data: f"Limited by {quantity(data['pins'], 'pin')}.",
    "pair-costs": lambda data: f"Limited by prices, budgets or the order of {joined(_spoken(data['costs']))}.",
    "max-load": lambda data: f"Limited by the ceiling of {messages(data['max_load'])}.",
}


def _spoken(names: Sequence[str]) -> list[str]:
    return [name.replace("_", " ") for name in names]


_COSTS = {"crossings": "Reads from another rack (crossings)", "moved_size": "State that moves (moved size)"}


def _cost(data: Data) -> str:
    name = _COSTS.get(data["name"], f'Cost "{data["name"].replace("_", " ")}"')
    if data["before"] is None:
        return f"{name}: {number(data['after'])}."
    return f"{name}: {number(data['before'])} today, {number(data['after'])} planned."


def _first(data: Data) -> str:
    units = f"{data['name'].replace('_', ' ')} ({number(data['units'])})"
    least = "" if data["units"] == data["least"] else f" than {number(data['least'])}"
    if not data["given"]:
        return f"Minimized first: {units}; no plan has less{least}."
    return f"Minimized next: {units}; no plan that is as good in {joined(_spoken(data['given']))} has less{least}."


def _fewest(data: Data) -> str:
    fewest = quantity(data["fewest"], "move")
    if data["moves"] == data["fewest"]:
        return f"Moves come first: the count balance needs {fewest}, and the plan makes no more."
    return f"Moves come first: the count balance needs {fewest}; the plan makes {number(data['moves'])}."


def _ceiling(data: Data) -> str:
    return f"No member may have more than {messages(data['max_load'])}; the most is {number(data['highest'])}."


def _assigned(data: Data) -> str:
    new = f"{quantity(data['number'], 'partition')} without an owner"
    return f"With {new} assigned, {_measure(data)} {_change(data)}."


def _step(data: Data) -> str:
    where = "nobody" if data["member"] is None else named(data["member"])
    way = f"{partition(data['partition'])} ({number(data['lag'])}) from {named(data['owner'])} to {where}"
    return f"Move {data['step']}: {way}; {_measure(data)} {_change(data)}."


def _more_steps(data: Data) -> str:
    count = data["number"]
    verb = "moves follow" if count > 1 else "move follows"
    return f"{number(count)} more {verb}; {_measure(data)} {_change(data)}."


# ---- a partition -----------------------------------------------------------------------------------------------------


def _place(data: Data) -> str:
    owners, member, several = data["owners"], data["member"], len(data["partitions"]) > 1
    what = f"{partitions(data['partitions'])} ({messages(data['lag'])}{' together' if several else ''})"
    stay, move, go = ("stay", "move", "go") if several else ("stays", "moves", "goes")
    if member is None:
        return f"{what} {go} to nobody: no member is known to subscribe to {'them' if several else 'it'}."
    if not owners:
        return f"{what} {go} to {named(member)}; {'some of them' if several else 'it'} had no owner."
    if owners == [member]:
        return f"{what} {stay} with {named(member)}."
    return f"{what} {move} from {joined([named(owner) for owner in owners])} to {named(member)}."


def _takers(data: Data) -> str:
    others = f"{number(data['takers'])} of {quantity(data['members'], 'member')}"
    return f"Only {others} may take {'it' if len(data['partitions']) == 1 else 'them'}."


def _heavy(data: Data) -> str:
    alone, it = ("alone has", "it") if len(data["partitions"]) == 1 else ("together have", "them")
    return (
        f"{partitions(data['partitions'])} {alone} {_share(data)}, more than the mean load of "
        f"{number(data['mean'])}: any member that holds {it} has {number(data['lag'])} at least."
    )


def _pinned(data: Data) -> str:
    are, they = ("is", "it") if len(data["partitions"]) == 1 else ("are", "they")
    return f"{partitions(data['partitions'])} {are} pinned to {named(data['member'])}, so {they} cannot go elsewhere."


def _no_other_place(data: Data) -> str:
    what = partitions(data["partitions"])
    return f"No single move or exchange takes {what} from {named(data['member'])} and keeps all rules and budgets."


def _swap(data: Data) -> str:
    other = named(data["other"])
    if data["exchanged"] is None:
        return f"{other}, by a single move"
    return f"{other}, in exchange for {partitions(data['exchanged'])}"


def _other_place(data: Data) -> str:
    it = "it" if len(data["partitions"]) == 1 else "them"
    return f"The best other place for {it} is {_swap(data)}: {_consequences(data)}."


def _other_plan(data: Data) -> str:
    what = partitions(data["partitions"])
    way = named(data["other"]) if data["exchanged"] is None else _swap(data)
    return (
        f"The best single move or exchange that changes the load of {named(data['of'])} is {what} to {way}: "
        f"{_consequences(data)}."
    )


def _consequences(data: Data) -> str:
    kind = "spread" if data["measure"] == ObjectiveKind.SPREAD else "largest load"
    before, after = data["before"], data["after"]
    parts = [f"the {kind} would be {number(after)} instead of {number(before)}"]
    if before == after:
        parts = [f"the {kind} would stay at the plan's {number(after)}"]
    now, then = data["moves"]
    if now != then:
        parts.append(f"with {quantity(then, 'move')} instead of {number(now)}")
    for name, present, changed in data["costs"]:
        parts.append(f"{name.replace('_', ' ')} {number(changed)} instead of {number(present)}")
    if data["counts"][:2] != data["counts"][2:]:
        mine, theirs = data["counts"][2:]
        counts = f"{named(data['member'])} would hold {quantity(mine, 'partition')}"
        parts.append(f"{counts} and {named(data['other'])} {number(theirs)}")
    change = data["objective_there"] - data["objective"]
    if change == 0:
        return ", ".join(parts) + "; the objective would be the same, so neither plan is better"
    way = "higher" if change > 0 else "lower, so this plan is not the best"
    return f"{', '.join(parts)}; the objective would be {number(abs(change))} {way}"


# ---- a member --------------------------------------------------------------------------------------------------------


def _holds(data: Data) -> str:
    member = named(data["member"])
    text = f"{member} holds {quantity(data['count'], 'partition')} with {messages(data['load'])}"
    if data["count_today"] is not None:
        text += f"; today {number(data['count_today'])} with {number(data['load_today'])}"
    text += f". Its fair share is {number(data['share'])}"
    ends = [name for name, there in (("the busiest", data["most"]), ("the least loaded", data["least"])) if there]
    return f"{text}; it is {ends[0]} member." if len(ends) == 1 else f"{text}."  # both: all loads are equal


def _idle(data: Data) -> str:
    return f"{named(data['member'])} can hold no partition."


def _gives(data: Data) -> str:
    names = [
        f"{partition(each[:2])} ({number(each[2])}) to {'nobody' if each[3] is None else named(each[3])}"
        for each in data["listed"]
    ]
    return _given("gives", data, names)


def _gets(data: Data) -> str:
    names = [
        f"{partition(each[:2])} ({number(each[2])})" + ("" if each[3] is None else f" from {named(each[3])}")
        for each in data["listed"]
    ]
    return _given("gets", data, names)


def _given(verb: str, data: Data, names: Sequence[str]) -> str:
    number_of, lag = quantity(data["number"], "partition"), messages(data["lag"])
    return f"{named(data['member'])} {verb} {number_of} with {lag}: {listed(names, data['number'])}."


def _count(data: Data) -> str:
    fewest, most, member = data["fewest"], data["most"], named(data["member"])
    if fewest == most:
        return f"The count balance gives {member} {quantity(fewest, 'partition')}, no fewer and no more."
    return f"The count balance lets {member} hold {span(fewest, most, 'partition')}; it holds {data['count']}."


def _subscribed(data: Data) -> str:
    topics = listed([named(topic) for topic in data["listed"]], data["topics"])
    what = f"{quantity(data['partitions'], 'partition')} with {messages(data['lag'])}"
    return f"{named(data['member'])} may take {what}: those of {topics}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


SENTENCES: dict[str, Callable[[Data], str]] = {
    "outcome": _outcome,
    "left alone": _left_alone,
    "objective": _objective,
    "bound": _bound,
    "largest load": largest_load,
    "smallest load": smallest_load,
    "limit": _limit,
    "cost": _cost,
    "first": _first,
    "fewest moves": _fewest,
    "ceiling": _ceiling,
    "assigned": _assigned,
    "step": _step,
    "more steps": _more_steps,
    "place": _place,
    "takers": _takers,
    "heavy": _heavy,
    "pinned": _pinned,
    "no other place": _no_other_place,
    "other place": _other_place,
    "other plan": _other_plan,
    "holds": _holds,
    "idle": _idle,
    "gives": _gives,
    "gets": _gets,
    "count": _count,
    "subscribed": _subscribed,
    "empty": _empty,
}
"""Sentences by kind of claim."""
