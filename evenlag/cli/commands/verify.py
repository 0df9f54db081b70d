"""`evenlag verify`: check a result with code that is independent of the search."""

from __future__ import annotations

from pathlib import Path

import click

import evenlag
from evenlag import model
from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.decorators import FloatRange
from evenlag.cli.options import Source
from evenlag.cli.terminal import print_json, say, working

STATUS = {"verified": 0, "plan verified": 3, "refused": 1}


@command("evenlag verify plan.json group.json", "evenlag verify plan.json group.json --json")
@click.argument("result", metavar="RESULT", type=options.TABLE)
@options.reading
@options.horizon_or_auto
@options.capacity
@click.option(
    "--effort", type=FloatRange(0, min_open=True), metavar="FACTOR", default=1.0, show_default=True,
    help="Multiply the work that the check may do to prove the bound.",
)  # fmt: skip
@options.as_json
def verify(result: Path, source: Source, capacity: float | None, effort: float, as_json: bool) -> None:
    """Check a result independently of the search.

    The check covers the plan, its figures and its bound. RESULT is the file that evenlag plan --out wrote; INPUT and
    its options must be those of that plan. The exit status is 0 if everything is proven, 3 if the plan and its figures
    are right but the bound could not be proven, and 1 if anything is wrong.
    """
    document = model.problem_files.read_json(result)
    problem, _, _ = source.read_with_record(capacity)
    with working("verifying"):
        verdict = evenlag.verify(document, problem, effort=effort)
    if as_json:
        print_json(verdict.to_dict())
    else:
        by = f" (bound by {verdict.bound_by})" if verdict.bound_by else ""
        say(f"{problem.group}: {verdict.outcome}{by}: {verdict.reason}")
    if STATUS[verdict.outcome]:
        raise click.exceptions.Exit(STATUS[verdict.outcome])
