"""The front door for groups: functions that read them from a path, a text, an open file, a DataFrame or a cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from evenlag.compare.history import Snapshot
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.figures import quantity
from evenlag.model.in_memory import File, in_memory
from evenlag.model.literals import FetchFromWord, HorizonWord, ResetWord
from evenlag.model.names import one_of, spelled
from evenlag.model.pair_data import FetchFrom
from evenlag.model.problem import Problem
from evenlag.model.values import check_name, kind
from evenlag.tables import read as tables
from evenlag.tables.cluster_address import Brokers, brokers_of
from evenlag.tables.columns import TableKind
from evenlag.tables.formats import Reading
from evenlag.tables.frames import Frame, is_frame, read_frame

Source = str | os.PathLike[str] | bytes | IO[str] | IO[bytes] | Frame
"""A path, a text, an open file, a DataFrame, or a cluster as `kafka://HOST:PORT`."""
Members = Source | Sequence[str] | Mapping[str, Iterable[str] | None]

_GIVEN = "a path, a text, an open file, a DataFrame or kafka://HOST:PORT"
_OPTION = re.compile(r"(?<!\S)--(group|members|format|auto-offset-reset|horizon|capacity|subscribed|together)\b")
_QUOTED = re.compile(r"--(bootstrap-server|zookeeper|new-consumer)\b")


@spelled
def read(
    source: Source,
    *,
    members: Members | None = None,
    group: str | None = None,
    format: str | None = None,  # noqa: A002
    auto_offset_reset: ResetWord = "latest",
    horizon: float | HorizonWord | str = 0,
    capacity: float | None = None,
    subscribed: Iterable[str] = (),
    fetch_from: FetchFrom | FetchFromWord | None = None,
    config: Mapping[str, str] | None = None,
    since: str | None = None,
) -> Problem:
    r"""Read one consumer group from a file, a text, a DataFrame or a cluster; of several snapshots, the latest.

    Assumptions about the input are listed in `Problem.warnings`, and in the warnings of every result.

    Parameters
    ----------
    source : path, text, open file or DataFrame
        A problem file, a snapshot table as CSV, JSON Lines or Parquet (or a folder of them), or the output of another
        tool such as `kafka-consumer-groups --describe` (docs/formats.md). A `str` that contains a line break or begins
        with `{` or `[` is the text itself; `kafka://HOST:PORT` is a running cluster; any other `str` is a path. A
        folder that `evenlag snapshot` wrote holds both tables. A DataFrame of pandas, Polars, pyarrow or any other
        library that narwhals supports has the columns of the offsets table: `topic`, `partition`, `lag` or offsets, and
        `consumer_id` (or `member`) for the owners.
    members : the same, a list of names, or a mapping of member to its topics; optional
        A members table, a list of member names (subscribed to all topics), or a mapping of name to subscribed topics.
        By default the members are those that the source lists and the owners of its partitions, subscribed to all
        topics unless the source shows their topics.
    group : str, optional
        The group to read; required if the source holds several. Names the group of a source that does not.
    format : str, optional
        The format of a file or text, such as "describe" or "csv"; by default it is recognised by its content.
    auto_offset_reset : {"latest", "earliest"}
        The lag of a partition without a commit: 0, or all messages in its log.
    horizon : float or str
        0: plan for the lag of the latest snapshot. Seconds, or text such as "10m": plan for the lag predicted for that
        time, from the rate since the previous snapshot. "auto": with several snapshots, add scenarios for the time
        until the next rebalance.
    capacity : float, optional
        For the scenarios of "auto": messages per second that a member of weight 1 reads; by default estimated from the
        snapshots.
    subscribed : iterable of str
        Topics to which all members subscribe although none of their partitions has an owner. Where a source does not
        tell subscriptions, such topics are left over: no member gets them, and a warning names them.
    fetch_from : {"followers", "leader"}, optional
        Replicas that members read, for crossings between racks: all of them, or the leader alone. By default as a
        problem file says, otherwise all.
    config : mapping, optional
        For a cluster: properties of the client, by librdkafka's names.
    since : str, optional
        For a cluster: the time to go back, such as "1h", for the rates of incoming messages.

    Raises
    ------
    SourceError
        The source cannot be read. The message names file and line, or the column.
    InvalidProblemError
        The source does not hold the group, holds several groups while `group` is not given, or has an invalid row. The
        message names the row's place and column.

    Examples
    --------
    >>> text = "group,topic,partition,lag,consumer_id\ng,orders,0,100000,c0\ng,orders,1,60000,c1"
    >>> read(text)
    <Problem 'g': partitions=2, topics=1, members=2, total_lag=160000>
    """
    one_of(tables.AUTO_OFFSET_RESETS, auto_offset_reset, "auto_offset_reset")
    with _in_python():
        given, table = _inputs(source, members, group, format, config, since)
        problem, assumed = tables.read_group(given, table, group, auto_offset_reset, horizon, capacity, format)
    return _noted(problem, assumed).subscribing(subscribed).with_pair_data(fetch_from=fetch_from)


def read_recorded(
    source: Source,
    *,
    members: Members | None = None,
    group: str | None = None,
    format: str | None = None,  # noqa: A002
    auto_offset_reset: ResetWord = "latest",
    horizon: float | HorizonWord | str = 0,
    capacity: float | None = None,
    subscribed: Iterable[str] = (),
    fetch_from: FetchFrom | FetchFromWord | None = None,
    config: Mapping[str, str] | None = None,
    since: str | None = None,
) -> tuple[Problem, list[str], list[Snapshot]]:
    """Read one consumer group like `read`, and in addition its last snapshots, from which rates and speeds follow.

    Returns
    -------
    Problem
    list of str
        Notes on the input, which `read` adds to the warnings of the problem.
    list of Snapshot
        In order of time; empty if the source has one snapshot.
    """
    one_of(tables.AUTO_OFFSET_RESETS, auto_offset_reset, "auto_offset_reset")
    with _in_python():
        given, table = _inputs(source, members, group, format, config, since)
        problem, notes, record = tables.read_recorded_group(
            given, table, group, auto_offset_reset, horizon, capacity, format
        )
    problem = problem.subscribing(subscribed).with_pair_data(fetch_from=fetch_from)
    return problem, [*map(_worded, notes)], record


@spelled
def read_history(
    source: Source,
    *,
    members: Members | None = None,
    group: str | None = None,
    format: str | None = None,  # noqa: A002
    auto_offset_reset: ResetWord = "latest",
) -> list[Snapshot]:
    """Read all snapshots of one consumer group, in order of time, for `evenlag.replay`.

    The source is a snapshot table with the column `snapshot_ts`, or a folder of texts with a time in each name.
    Parameters and errors are those of `read`. Assumptions about a snapshot are in the `warnings` of its problem.
    """
    one_of(tables.AUTO_OFFSET_RESETS, auto_offset_reset, "auto_offset_reset")
    with _in_python():
        given, table = _inputs(source, members, group, format)
        snapshots, assumed = tables.read_snapshots(given, table, group, auto_offset_reset, format)
    made = []
    for place, snapshot in enumerate(snapshots):
        begin = f"snapshot of {snapshot.ts}: "
        own = [note.removeprefix(begin) for note in assumed if note.startswith(begin)]
        last = place == len(snapshots) - 1
        others = [note for note in assumed if last and not note.startswith("snapshot of ")]
        made.append(replace(snapshot, problem=_noted(snapshot.problem, [*others, *own])))
    return made


class Groups(dict[str, Problem]):
    """Problems by group name, in name order.

    Attributes
    ----------
    errors : dict of str to InvalidProblemError
        One error per group whose rows cannot be used, as `evenlag.read` would raise it.
    """

    def __init__(self, problems: Mapping[str, Problem], errors: Mapping[str, InvalidProblemError]) -> None:
        super().__init__(problems)
        self.errors = dict(errors)


@spelled
def read_groups(
    source: Source,
    *,
    members: Source | None = None,
    format: str | None = None,  # noqa: A002
    auto_offset_reset: ResetWord = "latest",
    skip_errors: bool = False,
    config: Mapping[str, str] | None = None,
) -> Groups:
    r"""Read all consumer groups of a source in one pass, each in its latest snapshot.

    Each problem is that of `evenlag.read(source, group=NAME)`, with the same warnings. A million rows of 5,000 groups
    take about 2 s.

    Parameters
    ----------
    source, format, auto_offset_reset, config
        As in `read`.
    members : path, text, open file or DataFrame, optional
        A members table with a column `group`.
    skip_errors : bool
        Leave out groups whose rows cannot be used, and list them in `errors`. By default they raise an error.

    Returns
    -------
    Groups
        A dict of group to `Problem`, with the attribute `errors`.

    Raises
    ------
    SourceError
        The source cannot be read.
    InvalidProblemError
        The source has no group; or without `skip_errors`, a group's rows cannot be used. The message names the first
        such group, and the row's place and column.

    Examples
    --------
    >>> text = "group,topic,partition,lag,consumer_id\ng,orders,0,9,c0\nh,paid,0,many,c1\nh,paid,1,4,c1"
    >>> groups = read_groups(text, skip_errors=True)
    >>> groups
    {'g': <Problem 'g': partitions=1, topics=1, members=1, total_lag=9>}
    >>> print(groups.errors["h"])
    the text of the offsets, line 3: paid-0: lag is not a whole number: 'many'
    """
    one_of(tables.AUTO_OFFSET_RESETS, auto_offset_reset, "auto_offset_reset")
    if members is not None and _by_name(members) is not None:
        raise InvalidProblemError("members: names are those of one group; give a members table with a column group")
    with _in_python():
        given, table = _inputs(source, members, None, format, config)
        found, errors = tables.read_every_group(given, table, auto_offset_reset, format)
        if errors and not skip_errors:
            (name, error), more = next(iter(errors.items())), len(errors) - 1
            also = f"; {quantity(more, 'other group')} cannot be used either" if more else ""
            raise InvalidProblemError(f"group {name!r}: {error}{also}; skip_errors=True leaves such groups out")
    return Groups({name: _noted(problem, notes) for name, (problem, notes) in found.items()}, errors)


@contextmanager
def _in_python() -> Iterator[None]:
    """Replace the command's options by parameter names in error messages of the readers."""
    try:
        yield
    except (InvalidProblemError, SourceError) as error:
        if (message := _worded(str(error))) == str(error):
            raise
        raise type(error)(message) from None


def _worded(text: str) -> str:
    """Return a sentence of the readers with parameters in place of options, unless it quotes a command of Kafka's."""
    if _QUOTED.search(text):
        return text
    named = _OPTION.sub(lambda match: f"`{match[1].replace('-', '_')}`", text)
    return named.replace(" as INPUT", " as the source")


def _noted(problem: Problem, notes: Iterable[str]) -> Problem:
    warnings = tuple(dict.fromkeys([*map(_worded, notes), *problem.warnings]))
    return replace(problem, origin=replace(problem.origin, warnings=warnings))


def _inputs(
    source: Source, members: Members | None, group: str | None, form: str | None,
    config: Mapping[str, str] | None = None, since: str | None = None,
) -> tuple[tables.Input, tables.Input | None]:  # fmt: skip
    """Return the source and the members as inputs of the readers."""
    if group is not None:
        check_name(group, "a group")
    if (brokers := brokers_of(source) if isinstance(source, str) else None) is not None:
        return of_cluster(brokers, group, members, form, config, since)
    if config is not None or since is not None:
        raise SourceError("config and since apply to a cluster, given as kafka://HOST:PORT")
    given = _input(source, "offsets", group)
    if form is not None and isinstance(given, Reading):
        raise SourceError(f"{given.source}: a DataFrame has no format; omit format={form!r}")
    if members is None:
        return given, None
    by_name = _by_name(members)
    if by_name is None:
        return given, _input(members, "members", group)
    return given, _members_of(by_name)


def of_cluster(
    brokers: Brokers, group: str | None, members: object, form: str | None, config: Mapping[str, str] | None,
    since: str | None, progress: Callable[[str, int, int], None] | None = None,
) -> tuple[list[Reading], list[Reading]]:  # fmt: skip
    """Read rows from the brokers, as inputs of the readers.

    Raises
    ------
    SourceError
        The brokers do not answer, or `members` or `form` are given, which apply to files.
    """
    brokers.check_alone(members, form)
    from evenlag.live.cluster.from_brokers import readings_of  # needs the extra kafka

    return readings_of(replace(brokers, config=config or {}, since=since), group, progress)


def _input(source: Any, table: TableKind, group: str | None) -> File | Reading:
    if isinstance(source, str):
        if not source.strip():  # an empty path would mean the current folder
            raise SourceError(f"the path or text of the {table} is empty; give {_GIVEN}")
        return in_memory(source, f"the text of the {table}") if is_text(source) else Path(source)
    if isinstance(source, os.PathLike):
        return Path(os.fspath(source))
    if hasattr(source, "read"):
        return in_memory(source, str(getattr(source, "name", "the file")))
    if isinstance(source, bytes | bytearray):
        return in_memory(bytes(source), f"the text of the {table}")
    if is_frame(source):
        return read_frame(source, table, group=group)
    hint = "; for a problem document use Problem.from_dict" if isinstance(source, Mapping) else ""
    raise SourceError(f"cannot read the {table} from {kind(source)}; give {_GIVEN}{hint}")


def is_text(source: str) -> bool:
    """Return whether a string is a text rather than a path: it has a line break, or begins like JSON."""
    return "\n" in source or "\r" in source or source.lstrip()[:1] in ("{", "[")


def _by_name(members: Any) -> dict[str, Iterable[str] | None] | None:
    """Return the topics of each member given by name (None: all topics); None if the members are given as a table."""
    if isinstance(members, Mapping):
        return {check_name(name, "a member"): _topics(name, topics) for name, topics in members.items()}
    if not isinstance(members, Sequence | Set) or isinstance(members, str | bytes | bytearray):
        return None
    by_name: dict[str, Iterable[str] | None] = {}
    for name in members:
        if check_name(name, "a member") in by_name:
            raise InvalidProblemError(f"members: {name!r} is listed twice")
        by_name[name] = None
    return by_name


def _topics(member: str, topics: Any) -> list[str] | None:
    if topics is not None and (isinstance(topics, str | bytes) or not isinstance(topics, Iterable)):
        raise InvalidProblemError(f"member {member!r}: its topics must be a list of names; got {kind(topics)}")
    return None if topics is None else list(topics)


def _members_of(by_name: Mapping[str, Iterable[str] | None]) -> Reading:
    """Return a members table of members given by name, which has no group and no time, and so applies to all times."""
    rows = [{"consumer_id": name, "topics": topics} for name, topics in by_name.items()]
    return Reading(members=list(enumerate(rows)), source="members", unit="row", group="group")
