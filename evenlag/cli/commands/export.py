"""`evenlag export`: the MIP of one group, for any solver."""

from __future__ import annotations

import tempfile
from pathlib import Path

from evenlag.cli import options
from evenlag.cli.catalogue import command
from evenlag.cli.options import Source
from evenlag.cli.terminal import say, warn, working


@command("evenlag export group.json --format lp", "evenlag export group.json --format mps --out model.mps")
@options.reading_as("--input-format")
@options.modelling
@options.across
@options.form(("lp", "mps"), required=True)
@options.out("File to write; default: standard output.")
def export(
    source: Source, form: str, out: Path | None, balance: str, slack: int, objective: str, stickiness: str | float,
    max_moves: int | None, across: str,
) -> None:  # fmt: skip
    """Write the MIP of one group as LP or MPS, for any solver."""
    # NumPy and PuLP take a fifth of a second to import, and help and completion do without.
    from evenlag.model.asked_terms import resolve_objective
    from evenlag.model.backends.pulp_models import write
    from evenlag.model.balance import count_rule
    from evenlag.model.files import written_aside
    from evenlag.model.formulation import formulate

    source.keep(out)
    problem, notes = source.read()
    rule = count_rule(problem, balance, slack)
    mip = formulate(problem, rule, resolve_objective(rule, objective, stickiness, max_moves, across))
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
