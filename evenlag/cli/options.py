"""Options shared by several commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import click
from click.core import ParameterSource

from evenlag import compare, live, model, report, tables
from evenlag.cli import terms
from evenlag.cli.catalogue import Word
from evenlag.cli.decorators import Command, FloatRange, into, names, price, settings, together, weights_of_members
from evenlag.cli.paths import BrokersOrPath, GivenPath, InputOrTables, InputPath, Place, as_given
from evenlag.cli.terminal import working
from evenlag.cli.terms import MoreData, data
from evenlag.errors import InvalidProblemError, SourceError
from evenlag.model import literals
from evenlag.model.defaults import DEFAULT_STICKINESS, MOST_SEED, REPLAY_GAP
from evenlag.model.literals import listed
from evenlag.tables.cluster_address import Brokers
from evenlag.tables.topics import is_topic, topic_address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from evenlag.compare import Weighing
    from evenlag.compare.catch_up import Pace
    from evenlag.compare.history import Snapshot
    from evenlag.model.drain_time import MaxLoad
    from evenlag.model.problem import Problem
    from evenlag.tables.read import Input
    from evenlag.tables.topics import TopicAddress


class Rate(click.ParamType):  # type: ignore[type-arg, unused-ignore] # not generic in earlier versions of click
    """A number of messages per second, above 0."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the rate as a number."""
        try:
            rate = float(value)
        except ValueError:
            rate = 0.0
        if rate <= 0:
            self.fail(f"must be a number of messages per second above 0, such as 60, not {value!r}", param, ctx)
        return rate


FILE, INPUT, TABLE, PLACE = GivenPath(), BrokersOrPath(), InputPath(), Place()
POSITIVE = FloatRange(0, min_open=True)
BARE = "a bare number is seconds"
AUTO, METHODS = "auto", listed(literals.MethodWord)
NO_RATE = (
    "{option} needs the rate at which members read: give --capacity in messages per second, an INPUT with several "
    "snapshots, or --past with what evenlag history wrote"
)


# ---- callbacks -------------------------------------------------------------------------------------------------------


def _picture(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    if path is not None:
        report.check_kind(path)
    return path


def refuse_without_out(*names: str) -> None:
    """Refuse options about the output when no `--out` is given.

    Raises
    ------
    click.UsageError
        One of the options was given; the message names the first.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.opts[0] in names:
            raise click.UsageError(f"{parameter.opts[0]} needs --out; without it nothing is written", context)


# ---- input -----------------------------------------------------------------------------------------------------------


def command_config(where: str = "") -> Command:
    """Return the option for a file with Kafka client settings; `where` says when the file is used."""
    return click.option(
        "--command-config", type=FILE,
        help=f"Properties file with client settings (TLS, SASL, …){f', {where}' if where else ''}. Accepts Java's "
        "and librdkafka's names.",
    )  # fmt: skip


kafka = together(
    command_config("for kafka:// places"),
    click.option("--option", multiple=True, metavar="NAME=VALUE", callback=settings,
                 help="Option for Spark's Kafka source, such as kafka.security.protocol=SSL. Repeatable."),
)  # fmt: skip
"""Options for `kafka://` places that Spark reads."""


@dataclass(frozen=True)
class OnSpark:
    """The session of Spark that a command needs, and the settings of its client of Kafka.

    Attributes
    ----------
    settings : dict of str to str
        Settings of Spark.
    config : dict of str to str
        Properties of evenlag's own client.
    kafka : dict of str to str
        Options of Spark's Kafka source.
    complete : bool
        False if `--option` has a login that only Spark's client can use.
    """

    settings: dict[str, str]
    config: dict[str, str]
    kafka: dict[str, str]
    complete: bool

    @classmethod
    def of(
        cls, master: str | None, conf: dict[str, str], command_config: Path | None = None,
        option: dict[str, str] | None = None,
    ) -> OnSpark:  # fmt: skip
        """Return it from the options of a command; read the file of the client's properties."""
        config = client_config(command_config)
        client = {f"kafka.{name}": value for name, value in live.java_names(config).items()}
        more = option or {}
        own = live.own_properties(
            {name.removeprefix("kafka."): more[name] for name in more if name.startswith("kafka.")}
        )
        config |= own
        return cls(
            conf | ({} if master is None else {"spark.master": master}), config, client | more,
            complete=not own or live.can_log_in(config),
        )  # fmt: skip

    def session(self, *places: str | Path | None, native: bool = False) -> SparkSession:
        """Start Spark to read from these places; see `session_for`.

        Brokers are asked for topics first, because Spark takes minutes to report a missing answer, login or topic.

        Raises
        ------
        SourceError
            No broker of a topic answers, it refuses the login, or it has no such topic for the user; and as in
            `session_for`.
        """
        if self.complete and find_spec("kafka") is not None:
            for place in (each for each in places if each is not None and is_topic(each)):
                partitions_of(topic_address(str(place)), self.config)
        from evenlag.spark.driver.kafka import session_for  # PySpark takes a second to import; help does not need it

        return session_for(places, self.settings, self.kafka, native=native)


def client_config(path: Path | None) -> dict[str, str]:
    """Return the properties in the file of `--command-config`; none without one."""
    return {} if path is None else live.read_client_config(path)


def partitions_of(address: TopicAddress, config: dict[str, str]) -> dict[str, list[int]]:
    """Return the partitions of topics, as the brokers report them."""
    return live.partitions_of_topics(address.topics.split(","), address.servers, timeout=FIRST_ANSWER, config=config)


def assigned(address: TopicAddress, config: dict[str, str]) -> dict[str, str]:
    """Return the option of Spark's Kafka source that names the partitions of topics."""
    return {"assign": json.dumps(partitions_of(address, config))}


auto_offset_reset = click.option(
    "--auto-offset-reset", type=Word(get_args(literals.ResetWord)), default="latest", show_default=True,
    help="Where consumers start on a partition without a commit: at its end (no lag) or its beginning.",
)  # fmt: skip
horizon = click.option(
    "--horizon", default="0", show_default=True, metavar="TIME",
    help="Balance the lag predicted for this far ahead (10m, 1h), from the rate since the previous "
    f"snapshot; {BARE}.",
)  # fmt: skip
horizon_or_auto = click.option(
    "--horizon", default=AUTO, show_default=True, metavar="auto|TIME",
    help="auto: with several snapshots, plan for the load forecast until the next rebalance; with one, plan for its "
    "current lag. A time (0, 10m, 1h): plan for the lag predicted for that far ahead, from the rate since the previous "
    f"snapshot; {BARE}.",
)  # fmt: skip


FIRST_ANSWER = 10.0  # seconds to wait for brokers that do not answer, without --timeout
OF_CLUSTER = "With kafka://: seconds to wait for the brokers."


def timeout(default: float | None, what: str = "Seconds to wait for the brokers.") -> Command:
    """Return the option for the time to wait for brokers."""
    return click.option(
        "--timeout", type=POSITIVE, metavar="SECONDS", default=default, show_default=default is not None, help=what
    )


of_cluster = together(
    command_config("for kafka:// inputs"),
    timeout(FIRST_ANSWER, OF_CLUSTER),
    click.option("--since", metavar="TIME",
                 help="With kafka://: read the log ends of this time too (1h, 1d), for rates of incoming messages."),
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """Input of one group: a cluster or files, and the options that say how to read them."""

    path: Brokers | Input
    members: Path | None
    group: str | None
    auto_offset_reset: str
    input_format: str | None
    more: MoreData = field(default_factory=MoreData)
    command_config: Path | None = None
    since: str | None = None
    timeout: float = 10.0
    weighing: Weighing | None = None
    horizon: str = "0"

    def keep(self, out: Path | None) -> None:
        """Refuse an output file that cannot be written or is an input, before any work; see `keep_inputs`."""
        if out is not None:
            model.problem_files.check_place(out)
        keep_inputs(out, self.path if isinstance(self.path, Path) else None, self.members, *self.more.files)

    def _inputs(self, progress: Callable[[str, int, int], None]) -> tuple[Input, Input | None]:
        """Return the inputs of the readers: the files, or rows from the brokers.

        Raises
        ------
        SourceError
            The brokers do not answer, or an option does not apply to the input.
        """
        if not isinstance(self.path, Brokers):
            for option, value in (("--command-config", self.command_config), ("--since", self.since)):
                if value is not None:
                    raise SourceError(
                        f"{tables.read.name_of(self.path)}: {option} applies to a cluster, given as kafka://HOST:PORT"
                    )
            return self.path, self.members
        client = None if self.command_config is None else client_config(self.command_config)
        from evenlag import door  # imports the readers, which help does not need

        brokers = replace(self.path, timeout=self.timeout)
        return door.of_cluster(brokers, self.group, self.members, self.input_format, client, self.since, progress)

    def read(self) -> tuple[Problem, list[str]]:
        """Return the group and any notes; see `read_group`."""
        if self.weighing:
            return self.read_with_record()[:2]
        with working("reading") as update:
            problem, notes = tables.read_group(
                *self._inputs(update), self.group, self.auto_offset_reset, self.horizon, form=self.input_format
            )
            problem, more = self.more.added(problem)
        return problem, [*map(as_given, notes), *more]

    def read_with_record(self, capacity: float | None = None) -> tuple[Problem, list[str], list[Snapshot]]:
        """Return the group, any notes and its earlier snapshots; see `read_recorded_group`."""
        with working("reading") as update:
            problem, notes, record = tables.read_recorded_group(
                *self._inputs(update), self.group, self.auto_offset_reset, self.horizon, capacity, self.input_format
            )
            problem, more = self.more.added(problem)
        if self.weighing:
            problem, record = self.weighing.of(problem, record)
        notes += [] if (unlike := compare.unlike_speeds(record)) is None else [unlike]
        return problem, [*map(as_given, notes), *more], record

    def read_history(self) -> tuple[list[Snapshot], list[str]]:
        """Return all snapshots of the group, and any notes; see `read_snapshots`."""
        with working("reading") as update:
            history, notes = tables.read_snapshots(
                *self._inputs(update), self.group, self.auto_offset_reset, self.input_format
            )
        return history, [*map(as_given, notes)]


members = click.option(
    "--members", type=TABLE, help="Members table for the offsets table in INPUT; - is standard input."
)  # fmt: skip


def input_format(flag: str = "--format") -> Command:
    """Return the option for the format of INPUT; `flag` is its name where the command also writes a format."""
    return click.option(
        flag, "input_format", metavar="NAME",
        help="Format of INPUT (describe, prometheus, csv, …); default: detected from the content.",
    )  # fmt: skip


def _weighing(weights: str | None, weight: dict[str, float]) -> Weighing | None:
    return compare.Weighing(weights is not None, weight) if weights is not None or weight else None


weighing = together(
    click.option("--weights", type=Word(("from-record",)), metavar="from-record",
                 help="Weigh members by the speeds at which they read between the snapshots of INPUT."),
    click.option("--weight", metavar="NAME=W", multiple=True, callback=weights_of_members,
                 help="Weight of a member: it reads W times as fast as one of weight 1. Repeatable."),
    into("weighing", _weighing),
)  # fmt: skip
"""Options for weights of members; the command gets them as `weighing`, None without any."""


def reading_as(flag: str, *, weighed: bool = True, kind: Any = INPUT, several: bool = False) -> Command:
    """Return a decorator that adds the argument and options for one group; the command gets them as `source`.

    With `several`, each of the arguments is a group, and the command gets `sources`.
    """
    path = click.argument("path", metavar="INPUT...", type=kind, nargs=-1, required=True) if several else (
        click.argument("path", metavar="INPUT", type=kind)
    )  # fmt: skip
    return together(
        path,
        members,
        click.option("--group", metavar="NAME", help="Group to read if INPUT has several; its name if INPUT has none."),
        input_format(flag),
        auto_offset_reset,
        data,
        of_cluster,
        *([weighing] if weighed else []),
        into("sources", _sources, Source) if several else into("source", Source),
    )


def _sources(path: tuple[Brokers | Path, ...], **how: Any) -> list[Source]:
    """Return the sources of several arguments; output files named by their time form one record."""
    found: list[Brokers | Input] = [each for each in path if not isinstance(each, Path)]
    found += tables.records([each for each in path if isinstance(each, Path)], how["input_format"])
    for option, value in (("--group", how["group"]), ("--weight", how["weighing"] and how["weighing"].named)):
        if len(found) > 1 and value:
            raise click.UsageError(f"{option} needs a single INPUT, not {len(path)}", click.get_current_context())
    return [Source(each, **how) for each in found]


reading = reading_as("--format")
reading_unweighted = reading_as("--format", weighed=False)
reading_tables = reading_as("--format", kind=InputOrTables())
reading_several = reading_as("--format", several=True)


# ---- problem and objective -------------------------------------------------------------------------------------------

balance = click.option(
    "--balance", type=Word(get_args(literals.BalanceWord)), default="both", show_default=True,
    help="Partition counts that must be even across members: of each topic, of the group in total, both, or none.",
)  # fmt: skip
stickiness = click.option(
    "--stickiness", metavar="PRICE", default=DEFAULT_STICKINESS, show_default=True, callback=price,
    help="Saving of spread that justifies a move: messages or a share of the mean load. fewest-moves: minimize moves "
    "first.",
)  # fmt: skip
slack = click.option(
    "--slack", type=click.IntRange(0), metavar="N", default=0, show_default=True,
    help="Allow counts to be N partitions above or below even.",
)  # fmt: skip
pricing = together(
    stickiness,
    click.option("--max-moves", type=click.IntRange(0), metavar="N", help="Move at most N partitions."),
    slack,
    click.option("--objective", type=Word(get_args(literals.ObjectiveWord)),
                 default="spread", show_default=True,
                 help="Minimize the largest load minus the smallest (spread), or the largest load (makespan)."),
)  # fmt: skip
modelling = together(balance, pricing)
across = click.option(
    "--across", type=Word(get_args(literals.AcrossWord)), default="mean", show_default=True,
    help="With scenarios in the problem file, optimize their mean or the worst.",
)  # fmt: skip
method = click.option(
    "--method", type=Word(METHODS), default=METHODS[0], show_default=True, metavar="METHOD",
    help=f"One of {', '.join(METHODS)}.",
)  # fmt: skip


def check_solving(parameters: Mapping[str, Any]) -> None:
    """Check the parameters of a fleet command before Spark starts, which takes seconds.

    Raises
    ------
    InvalidProblemError
        The message names the parameter and its value.
    SourceError
        A table of state sizes or traffic cannot be read.
    """
    # These imports take NumPy, which help does not need.
    from evenlag.search.options import SolveKeywords, solving_options
    from evenlag.tables.fleet_data import DataKeywords, FleetData

    asked, data = (
        {name: value for name, value in parameters.items() if name in known.__annotations__}
        for known in (SolveKeywords, DataKeywords)
    )
    solving_options("solve", cast("SolveKeywords", asked), check_solving)
    FleetData.of(**data)


only_if_better = click.option(
    "--only-if-better", metavar="SHARE",
    help="Keep today's assignment unless the plan saves this share of today's spread, such as 10%. evenlag plan then "
    "exits with status 3.",
)  # fmt: skip
capacity = click.option(
    "--capacity", type=Rate(), metavar="RATE",
    help="Messages per second read by a member of weight 1; default: estimated if INPUT has several snapshots.",
)  # fmt: skip


drain = click.option(
    "--drain", required=True, metavar="TIME", help=f"Time within which all lag must be read (90s, 15m, 2h); {BARE}."
)
most = click.option(
    "--most", type=click.IntRange(1), metavar="N", help="The largest group size to try; default: just past the answer."
)  # fmt: skip


def seconds(name: str, time: str) -> Fraction:
    """Parse a time such as 15m; return seconds.

    Raises
    ------
    InvalidProblemError
        The text is not a time; the message calls it `name`.
    """
    return Fraction(model.rates.horizon_micros(time, name), model.rates.SECOND)


def deadline(drain: str) -> Fraction:
    """Return the seconds of `--drain` or `--max-drain`.

    Raises
    ------
    InvalidProblemError
        The text is not a time above 0.
    """
    found = seconds("drain", drain)
    if not found:
        raise InvalidProblemError(f"drain must be a time > 0, such as 15m, not {drain!r}")
    return found


@dataclass(frozen=True)
class Ceiling:
    """Limit on the lag of a member, given in messages or as a time at a capacity."""

    max_load: float | None
    max_drain: str | None
    capacity: float | None

    def __post_init__(self) -> None:
        if self.max_drain is not None and self.max_load is not None:
            raise click.UsageError(
                "--max-drain and --max-load set the same limit; give one of them", click.get_current_context()
            )

    @property
    def of_fleet(self) -> dict[str, Any]:
        """The limit as parameters of a fleet call."""
        seconds = None if self.max_drain is None else deadline(self.max_drain)
        return {"max_load": self.max_load, "drain_seconds": seconds, "capacity": self.capacity}

    def of(self, problem: Problem, pace: Pace) -> tuple[MaxLoad | None, list[str]]:
        """Return the limit on the load per weight, and notes.

        Raises
        ------
        InvalidProblemError
            The members' rate of reading is unknown.
        """
        if self.max_drain is None:
            return self.max_load, []
        most = pace.ceiling(problem, deadline(self.max_drain), "max_drain")
        if most is None:
            raise InvalidProblemError(NO_RATE.format(option="--max-drain"))
        counted = f"--max-drain {self.max_drain} counts today's lag, not messages that arrive meanwhile"
        return most, [] if pace.rates is None else [counted]


ceiling = together(terms.max_load, terms.max_drain, capacity, into("ceiling", Ceiling))
"""Options `--max-load`, `--max-drain` and `--capacity`; the command gets them as `ceiling`."""

# ---- limits and repeatability ----------------------------------------------------------------------------------------


def group_time_limit(default: float, what: str = "Seconds per group.") -> Command:
    """Return the option that limits the time of each group."""
    return click.option(
        "--group-time-limit", type=POSITIVE, metavar="SECONDS", default=default, show_default=True, help=what
    )


def gap(
    default: float | None, what: str = "Stop when this close to the bound, as a fraction of the mean load."
) -> Command:
    """Return the option for the gap at which a search stops."""
    return click.option(
        "--gap", type=FloatRange(0), metavar="FRACTION", default=default,
        show_default=default is not None, help=what,
    )  # fmt: skip


def time_limit(default: float | None, what: str = "Seconds for the whole call.") -> Command:
    """Return the option that limits the time of the whole call."""
    return click.option(
        "--time-limit", type=POSITIVE, metavar="SECONDS", default=default, show_default=default is not None, help=what
    )


repeating = together(
    click.option(
        "--seed", type=click.IntRange(0, MOST_SEED), metavar="N", default=0, show_default=True, help="Random seed."
    ),
    click.option("--deterministic", is_flag=True, help="Limit work, not time, so that runs repeat exactly."),
)


def limiting(default: float | None, what: str = "Seconds for the whole call.") -> Command:
    """Return the limits shared by all commands that solve single groups."""
    return together(
        time_limit(default, what),
        repeating,
        click.option(
            "--threads",
            type=click.IntRange(1),
            metavar="N",
            help="Threads for the MIP; default: all processors, at most 8.",
        ),
    )


replaying = together(
    click.option("--strategies", metavar="NAME,…", callback=names, default=",".join(listed(literals.StrategyWord)),
                 help="Strategies to compare, separated by commas; default: all, which are "
                 f"{', '.join(listed(literals.StrategyWord))}."),
    click.option("--horizon", default=AUTO, show_default=True, metavar="auto|TIME",
                 help="auto: evenlag plans for the load forecast until the next rebalance, from the record so far; "
                 "the other strategies see the lag at that moment. A time (0, 10m, 1h): all strategies see the lag "
                 f"predicted for that far ahead; {BARE}."),
    click.option("--lag-limit", type=FloatRange(0), metavar="MESSAGES",
                 help="Report for how long members have more than this many messages to read."),
    click.option("--rebalance-above", type=FloatRange(0), metavar="FRACTION",
                 help="Rebalance when the spread exceeds this fraction of the mean load."),
    click.option("--capacity", type=Rate(), metavar="RATE",
                 help="Messages per second read by a member of weight 1; default: estimated."),
    balance,
    slack,
    stickiness,
    group_time_limit(1.0, "Seconds for each search by evenlag."),
    gap(REPLAY_GAP, "Stop each search by evenlag when this close to the bound, as a fraction of the mean load."),
    repeating,
)  # fmt: skip

# ---- output ----------------------------------------------------------------------------------------------------------

as_json = click.option("--json", "as_json", is_flag=True, help="Print only JSON on stdout.")
overwrite = click.option("--overwrite", is_flag=True, help="Replace tables already in the folder.")


def form(choices: tuple[str, ...], **more: Any) -> Command:
    """Return the option for the output format."""
    return click.option("--format", "form", type=Word(choices), help="Format to write.", **more)


def out(what: str, **more: Any) -> Command:
    """Return the option for the output file or folder."""
    return click.option("--out", type=FILE, help=what, **more)


def plot(what: str) -> Command:
    """Return the option for a picture; its suffix is checked before any work starts."""
    return click.option("--plot", type=FILE, callback=_picture, help=f"{what} ({', '.join(report.KINDS)}).")


def keep_inputs(out: Path | None, *inputs: Path | None) -> None:
    """Refuse to overwrite an input file.

    Raises
    ------
    SourceError
        `out` is one of the inputs, even by another path.
    """
    if out is not None and any(_same_file(out, path) for path in inputs if path is not None):
        raise SourceError(f"{out}: is also the input and would be overwritten; name another output file")


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.is_file() and one.samefile(other)
    except OSError:  # a file that cannot be examined is refused later, when it is read or written
        return False


def spark_out(what: str, **more: Any) -> Command:
    """Return the option for Spark's output folder, on this machine or on any file system that Hadoop supports."""
    return click.option("--out", type=PLACE, metavar="PATH", help=what, **more)


# ---- a fleet ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fleet:
    """The tables of a fleet, and the session of Spark that reads them."""

    offsets: str | Path
    members: str | Path | None
    on: OnSpark

    @classmethod
    def of(
        cls, offsets: str | Path, members: str | Path | None, master: str | None, conf: dict[str, str],
        command_config: Path | None, option: dict[str, str],
    ) -> Fleet:  # fmt: skip
        """Return it from the options of a command."""
        return cls(offsets, members, OnSpark.of(master, conf, command_config, option))

    def check(self, out: str | Path | None, tables: Sequence[str], overwrite: bool) -> None:
        """Check tables and output that are on this machine, before Spark starts.

        Raises
        ------
        SourceError
            A table cannot be read, or the output cannot be written.
        """
        from evenlag.spark.driver.local_out import check_local_out
        from evenlag.tables.fleet_files import check_local_tables

        check_local_tables(self.offsets, self.members)
        check_local_out(out, tables, overwrite)

    def opened(self) -> tuple[SparkSession, str | Path, str | Path | None]:
        """Start Spark; return its session and the tables."""
        return self.on.session(self.offsets, self.members), self.offsets, self.members


fleet = together(
    click.argument("offsets", type=PLACE),
    click.option("--members", type=PLACE, metavar="PATH", help="Members table for the offsets table."),
    kafka,
    auto_offset_reset,
    into("fleet", Fleet.of),
)
"""Argument and options for the tables; the command gets them and the options of `spark` as `fleet`."""

# ---- where Spark runs ------------------------------------------------------------------------------------------------

spark = together(
    click.option("--master", metavar="URL",
                 help="Spark's master: spark://HOST:PORT, yarn, k8s://…; default: the one Spark is "
                 "configured with, else this machine."),
    click.option("--conf", multiple=True, metavar="NAME=VALUE", callback=settings,
                 help="Spark setting, such as spark.executor.memory=4g. Repeatable."),
)  # fmt: skip
on_spark = into("on", OnSpark.of)
"""After `spark` and `kafka`: the command gets their options as `on`."""
tasks = click.option(
    "--tasks",
    type=click.IntRange(1),
    metavar="N",
    help="Spark tasks; default: from the number of groups, rows and processors.",
)
