"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from evenlag.cli.paths import GivenPath, InputPath, given
from evenlag.cli.terminal import working
from evenlag.compare.foresight import AUTO
from evenlag.compare.history import Snapshot
from evenlag.errors import SourceError
from evenlag.live import read_client_config
from evenlag.model.balance import Balance
from evenlag.model.objective import DEFAULT_STICKINESS, Across, ObjectiveKind
from evenlag.model.payoff import PAUSE
from evenlag.model.problem import Problem
from evenlag.report.picture import KINDS, check_kind
from evenlag.search.options import METHODS, MOST_SEED
from evenlag.tables.read import AUTO_OFFSET_RESETS, read_group, read_recorded_group

Command = Callable[..., Any]

FILE, INPUT = GivenPath(), InputPath()
POSITIVE = click.FloatRange(0, min_open=True)
FLEET_GAP = 1e-4  # of the mean load: closer is not worth a fleet's time


def together(*several: Command) -> Command:
    """Return several options as one decorator; help lists them in this order."""

    def add(command: Command) -> Command:
        for option in reversed(several):
            command = option(command)
        return command

    return add


# ---- callbacks -------------------------------------------------------------------------------------------------------


def _stickiness(_: click.Context, __: click.Parameter, value: str) -> str | float:
    try:
        return float(value) if "." in value else int(value)
    except ValueError:
        return value


def names(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    """Read names joined by commas."""
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]


def settings(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Read `NAME=VALUE`, given any number of times."""
    pairs = [value.partition("=") for value in values]
    for name, equals, _value in pairs:
        if not name or not equals:
            raise click.BadParameter(f"{name!r} is no NAME=VALUE")
    return {name: value for name, _equals, value in pairs}


def place(text: str) -> str | Path:
    """Return a topic, a table, and a place in a file system with a scheme as the text it is, all else as a path."""
    return text if text.startswith(("kafka:", "table:")) or "://" in text else Path(given(text))


def _picture(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    if path is not None:
        check_kind(path)
    return path


# ---- what means nothing here -----------------------------------------------------------------------------------------

WRITES_NOTHING = "goes with --out, and without it nothing is written"
OF_SPARK = ("--out", "--overwrite", "--tasks", "--master", "--conf", "--option", "--command-config")


def refuse(names: Collection[str], why: str) -> None:
    """Refuse the options of these names that the command which runs was given, though they mean nothing there.

    Raises
    ------
    click.UsageError
        Names the first of them.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.opts[0]
        if name in names and context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{name} {why}")


def file_of(members: Path | str | None) -> Path | None:
    """Return the members table that goes with single groups, which are read from files.

    Raises
    ------
    click.BadParameter
        It is a place that only Spark reads.
    """
    if isinstance(members, str):
        raise click.BadParameter(f"{members} is no file, and goes with --offsets alone", param_hint="--members")
    return members


# ---- what is read ----------------------------------------------------------------------------------------------------


def kafka(command: Command) -> Command:
    """Give a command the options for `kafka://` places; it gets them as `kafka_options`, those of Spark's source."""

    @wraps(command)
    def with_options(command_config: Path | None, option: dict[str, str], **others: Any) -> Any:
        config = {} if command_config is None else read_client_config(command_config)
        client = {f"kafka.{name}": value for name, value in config.items()}
        return command(kafka_options=client | option, **others)

    source = together(
        click.option("--command-config", type=FILE,
                     help="Properties file of Kafka's Java client (TLS, SASL, …), for kafka:// places."),
        click.option("--option", multiple=True, metavar="NAME=VALUE", callback=settings,
                     help="An option of Spark's Kafka source, as kafka.security.protocol=SSL; may be given again."),
    )  # fmt: skip
    decorated: Command = source(with_options)
    return decorated


auto_offset_reset = click.option(
    "--auto-offset-reset", type=click.Choice(AUTO_OFFSET_RESETS), default=AUTO_OFFSET_RESETS[0], show_default=True,
    help="What the lag of a partition without a commit is.",
)  # fmt: skip
horizon = click.option(
    "--horizon", default="0", show_default=True, metavar="TIME",
    help="Balance the lag predicted for then (10m, 1h), by the rate since the snapshot before.",
)  # fmt: skip
horizon_or_auto = click.option(
    "--horizon", default=AUTO, show_default=True, metavar="auto|TIME",
    help="auto: plan for the time until the next rebalance, as a record of several snapshots lets expect; a single one "
    "is planned for its lag. A time (0, 10m, 1h): for the lag predicted for then, by the rate since the snapshot "
    "before.",
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """Where one group is to be read from."""

    path: Path
    members: Path | None
    group: str | None
    auto_offset_reset: str

    def keep(self, out: Path | None) -> None:
        """Refuse to write over what is read; see `keep_inputs`."""
        keep_inputs(out, self.path, self.members)

    def read(self, horizon: str = "0") -> tuple[Problem, list[str]]:
        """Return the group and notes; see `read_group`."""
        with working("reading"):
            return read_group(self.path, self.members, self.group, self.auto_offset_reset, horizon)

    def read_with_record(
        self, horizon: str = "0", capacity: float | None = None
    ) -> tuple[Problem, list[str], list[Snapshot]]:
        """Return the group, notes and the snapshots before; see `read_recorded_group`."""
        with working("reading"):
            return read_recorded_group(self.path, self.members, self.group, self.auto_offset_reset, horizon, capacity)


def reading(command: Command) -> Command:
    """Give a command the argument and options that name one group; it gets them as `source`."""

    @wraps(command)
    def with_source(
        path: Path, members: Path | None, group: str | None, auto_offset_reset: str, **others: Any
    ) -> Any:  # fmt: skip
        return command(source=Source(path, members, group, auto_offset_reset), **others)

    source = together(
        click.argument("path", metavar="INPUT", type=INPUT),
        click.option("--members", type=FILE, help="Members table that goes with an offsets table."),
        click.option("--group", help="The group to take from a table of several."),
        auto_offset_reset,
    )
    decorated: Command = source(with_source)
    return decorated


# ---- what is solved --------------------------------------------------------------------------------------------------

balance = click.option(
    "--balance", type=click.Choice([rule.value for rule in Balance]), default=Balance.BOTH.value, show_default=True,
    help="Counts that must be even: of each topic, of the whole group, or both.",
)  # fmt: skip
stickiness = click.option(
    "--stickiness", default=DEFAULT_STICKINESS, show_default=True, callback=_stickiness,
    help="Messages one move must save, a share of the mean load, or fewest-moves.",
)  # fmt: skip
slack = click.option(
    "--slack", type=click.IntRange(0), default=0, show_default=True,
    help="Partitions by which a count may leave its range.",
)  # fmt: skip
pricing = together(
    stickiness,
    click.option("--max-moves", type=click.IntRange(0), help="Hard budget of moves."),
    slack,
    click.option("--objective", type=click.Choice([kind.value for kind in ObjectiveKind]),
                 default=ObjectiveKind.SPREAD.value, show_default=True,
                 help="The largest load less the smallest, or the largest alone."),
)  # fmt: skip
modelling = together(balance, pricing)
across = click.option(
    "--across", type=click.Choice([each.value for each in Across]), default=Across.MEAN.value, show_default=True,
    help="What counts where the problem file has scenarios: their mean, or the worst.",
)  # fmt: skip
method = click.option(
    "--method", type=click.Choice(METHODS), default=METHODS[0], show_default=True, metavar="METHOD",
    help=f"One of {', '.join(METHODS)}.",
)  # fmt: skip

only_if_better = click.option(
    "--only-if-better", metavar="SHARE",
    help="Leave the group as it is unless the plan saves this share of today's spread, as 10%; the exit status of "
    "evenlag plan is 3 then.",
)  # fmt: skip
pause = click.option(
    "--pause", type=click.FloatRange(0), default=PAUSE, show_default=True,
    help="Seconds for which a partition that moves stands still.",
)  # fmt: skip
capacity = click.option(
    "--capacity", type=POSITIVE,
    help="Messages per second of a member of weight 1; default: estimated where the input has a record.",
)  # fmt: skip


# ---- how long, how close, how exactly again --------------------------------------------------------------------------


def group_time_limit(default: float, what: str = "Seconds for one group.") -> Command:
    """Return the option for the time of one group."""
    return click.option("--group-time-limit", type=POSITIVE, default=default, show_default=True, help=what)


def gap(default: float | None, what: str = "Stop within this fraction of the mean load of the bound.") -> Command:
    """Return the option for how close to the bound is close enough."""
    return click.option(
        "--gap", type=click.FloatRange(0), default=default, show_default=default is not None, help=what
    )  # fmt: skip


repeating = together(
    click.option(
        "--seed",
        type=click.IntRange(0, MOST_SEED),
        default=0,
        show_default=True,
        help="Of all that is drawn at random.",
    ),
    click.option("--deterministic", is_flag=True, help="Work limits in place of the wall clock."),
)


def limiting(default: float | None, what: str = "Seconds for the whole call.") -> Command:
    """Return the options that every command has that solves single groups."""
    return together(
        click.option("--time-limit", type=POSITIVE, default=default, show_default=default is not None, help=what),
        repeating,
        click.option("--threads", type=click.IntRange(1), help="For the MIP; default all processors, at most 8."),
    )


# ---- what is written -------------------------------------------------------------------------------------------------

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else on stdout.")
overwrite = click.option("--overwrite", is_flag=True, help="Replace tables that are in the folder.")


def form(choices: tuple[str, ...], **more: Any) -> Command:
    """Return the option for the format of what is written."""
    return click.option("--format", "form", type=click.Choice(choices), **more)


def out(what: str, **more: Any) -> Command:
    """Return the option for the file or folder to write."""
    return click.option("--out", type=FILE, help=what, **more)


def plot(what: str) -> Command:
    """Return the option for a picture to write, whose suffix is looked at before anything else is done."""
    return click.option("--plot", type=FILE, callback=_picture, help=f"{what} ({', '.join(KINDS)}).")


def keep_inputs(out: Path | None, *inputs: Path | None) -> None:
    """Refuse to write over a file that is read.

    Raises
    ------
    SourceError
        `out` is one of the inputs, by whatever name.
    """
    if out is not None and any(_same_file(out, path) for path in inputs if path is not None):
        raise SourceError(f"{out}: is read here, so it is not written over; name another file to write")


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.is_file() and one.samefile(other)
    except OSError:  # one that cannot be looked at is refused where it is read or written
        return False


def spark_out(what: str, **more: Any) -> Command:
    """Return the option for the folder that Spark writes: of this machine, or of any file system that Hadoop knows."""
    return click.option("--out", type=place, metavar="PATH", help=what, **more)


# ---- where Spark runs ------------------------------------------------------------------------------------------------

spark = together(
    click.option("--master", help="Spark's master: spark://HOST:PORT, yarn, k8s://…; default: the one that Spark is "
                 "configured for, else this machine."),
    click.option("--conf", multiple=True, metavar="NAME=VALUE", callback=settings,
                 help="A setting of Spark, as spark.executor.memory=4g; may be given again."),
)  # fmt: skip
tasks = click.option(
    "--tasks", type=click.IntRange(1), help="Spark tasks; default: by the number of groups, rows and processors."
)


def spark_settings(master: str | None, conf: dict[str, str]) -> dict[str, str]:
    """Return the settings that `--master` and `--conf` ask for."""
    return conf | ({} if master is None else {"spark.master": master})
