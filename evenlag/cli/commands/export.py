"""`evenlag export`: write the MIP of one group for any solver."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from evenlag.cli import options, terms
from evenlag.cli.catalogue import command
from evenlag.cli.options import Source
from evenlag.cli.terminal import say, warn, working

_SEVERAL = (
    "with --first, each criterion is a program of its own: find its optimum with evenlag plan --first, then export "
    "with that optimum as --budget (or --max-moves)"
)


@command("evenlag export group.json --format lp", "evenlag export group.json --format mps --out model.mps",
         "evenlag export group.json --format lp --rack-price 2 --max-load 1000")  # fmt: skip
@options.reading_as("--input-format")
@options.modelling
@options.across
@terms.asked
@options.form(("lp", "mps"), required=True)
@options.out("File to write; default: standard output.")
def export(source: Source, form: str, out: Path | None, **parameters: Any) -> None:
    """Write the MIP of one group as LP or MPS, for any solver.

    Topics given to --together are one topic in the model.
    """
    # NumPy and PuLP take a fifth of a second to import; help and completion do not need them.
    from evenlag.model.asked_terms import resolve_objective
    from evenlag.model.backends.pulp_models import write
    from evenlag.model.balance import count_rule
    from evenlag.model.formulation import formulate
    from evenlag.model.problem_files import written_aside
    from evenlag.search.options import SolveOptions

    source.keep(out)
    problem, notes = source.read()
    asked = SolveOptions(**parameters)
    rule = count_rule(problem.units, asked.balance, asked.slack)
    goal = resolve_objective(rule, asked.objective, asked.stickiness, asked.max_moves, asked.across, asked.asked)
    if goal.first:
        raise click.UsageError(_SEVERAL, click.get_current_context())
    mip = formulate(problem.units, rule, goal)
    warn([*notes, *problem.warnings])
    if out is not None:
        with written_aside(out) as part:
            write(mip, part, form)
        return
    with working("writing the model"), tempfile.TemporaryDirectory(prefix="evenlag-") as folder:
        path = Path(folder) / f"model.{form}"
        write(mip, path, form)
        text = path.read_text(encoding="utf-8")
    say(text, nl=False)
