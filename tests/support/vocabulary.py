"""The tables of options and columns in the docs, made from the commands and from the declared columns.

`python -m tests.support.vocabulary` writes them into the page anew.
"""

import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import click

import evenlag
import evenlag.spark
from evenlag.cli.sections import HEADINGS
from evenlag.model.parse_pairs import PairArguments
from evenlag.search.options import SolveKeywords
from evenlag.spark.jobs.fleet_options import AuditKeywords
from evenlag.tables import columns, outputs
from evenlag.tables.columns import WORDS, Table
from tests.support.command import commands

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "vocabulary.md"
BLOCK = re.compile(r"<!-- vocabulary: (\w+) -->\n.*?<!-- end -->", re.DOTALL)
LINK, DEFAULT = re.compile(r"\[([^\]]*)\]\([^)]*\)"), re.compile(r"; default:|; null|\.?\s*\[default:")
FUNCTIONS: tuple[Callable[..., object], ...] = (
    evenlag.read, evenlag.diagnose, evenlag.solve, evenlag.audit, evenlag.frontier, evenlag.whatif, evenlag.size,
    evenlag.replay, evenlag.migrate, evenlag.verify, evenlag.live.snapshot, evenlag.spark.audit, evenlag.spark.size,
    evenlag.spark.history, evenlag.Problem.from_lags,
)  # fmt: skip
KEYWORDS = (SolveKeywords, PairArguments, AuditKeywords)
OTHER_NAMES = {
    "--change-members": "Change.members",
    "--add": "Change.add",
    "--remove": "Change.remove",
    "--partitions": "Change.partitions",
    "--new-partitions": "Change.new_partitions",
    "--command-config": "config",
    "--drain": "drain_seconds",
    "--max-drain": "drain_seconds",
    "--weight": "weights",
    "--group-time-limit": "time_limit",
    "--input-format": "format",
    "--price": "prices",
    "--budget": "budgets",
}
"""Names in Python of options that have another one there."""


def options() -> dict[str, dict[str, click.Option]]:
    """The options, each with the commands that have it."""
    found: dict[str, dict[str, click.Option]] = defaultdict(dict)
    for name, command in commands():
        for option in command.params:
            if isinstance(option, click.Option):
                found[option.opts[0]][name] = option
    return found


def parameters() -> set[str]:
    """The names of parameters in Python."""
    named = {name for function in FUNCTIONS for name in inspect.signature(function).parameters}
    return named.union(*(each.__annotations__ for each in KEYWORDS))


def in_python(option: str) -> str | None:
    """The name of an option's parameter in Python; None if only commands have it."""
    name = option.removeprefix("--").replace("-", "_")
    return OTHER_NAMES.get(option) or (name if name in parameters() else None)


def columns_by_name() -> dict[str, dict[str, columns.Column]]:
    """The columns of the tables in the docs, each with the tables that have it."""
    found: dict[str, dict[str, columns.Column]] = defaultdict(dict)
    pages = "".join((PAGE.parents[1] / page).read_text() for page in ("snapshot.md", "reference/tables.md"))
    for name in re.findall(r"<!-- columns: (\w+) -->", pages):
        table: Table = getattr(columns, name, None) or getattr(outputs, name)
        for column in table:
            found[column.name][name.lower()] = column
    return found


def _option_rows() -> Iterator[str]:
    known = options()
    for heading, names in HEADINGS.items():
        yield f"| **{heading}** | | | |"
        for name in names:
            helps = Counter(option.help or "" for option in known[name].values())
            meaning = _short(helps.most_common(1)[0][0])
            word = in_python(name)
            used = list(known[name])
            where = ", ".join(used) if len(used) <= MOST_COMMANDS else f"{len(used)} commands"
            yield f"| `{name}` | {meaning} | {'' if word is None else f'`{word}`'} | {where} |"


def _column_rows() -> Iterator[str]:
    for name, tables in sorted(columns_by_name().items()):
        if len(tables) > 1:
            first = next(iter(tables.values()))
            yield f"| `{name}` | {WORDS[first.kind]} | {_short(first.about)} | {', '.join(tables)} |"


def _short(meaning: str) -> str:
    """Return a meaning without its default and without links."""
    return LINK.sub(r"\1", DEFAULT.split(meaning)[0].rstrip(". "))


MOST_COMMANDS = 4  # named in a row; with more, their number
TABLES: dict[str, tuple[tuple[str, ...], Callable[[], Iterator[str]]]] = {
    "options": (("option", "meaning", "in Python", "commands"), _option_rows),
    "columns": (("column", "type", "meaning", "tables"), _column_rows),
}


def renewed(text: str) -> str:
    """Return the text of the page with its tables written anew."""

    def anew(block: re.Match[str]) -> str:
        headings, rows = TABLES[block[1]]
        head = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
        return f"<!-- vocabulary: {block[1]} -->\n\n" + "\n".join([*head, *rows()]) + "\n\n<!-- end -->"

    return BLOCK.sub(anew, text)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
