"""`evenlag completion`: completion of commands, options and files in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from evenlag.cli.catalogue import Word, command
from evenlag.cli.terminal import say


@command(
    'eval "$(evenlag completion bash)"    # in ~/.bashrc',
    'eval "$(evenlag completion zsh)"     # in ~/.zshrc, after compinit',
    "evenlag completion fish > ~/.config/fish/completions/evenlag.fish",
)
@click.argument("shell", type=Word(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes evenlag in a shell.

    The script completes commands, options, the values of options, and files.
    """
    root = click.get_current_context().find_root().command
    found = get_completion_class(shell)
    if found is not None:
        say(found(root, {}, "evenlag", "_EVENLAG_COMPLETE").source_template % _names())


def _names() -> dict[str, str]:
    return {"complete_func": "_evenlag_completion", "complete_var": "_EVENLAG_COMPLETE", "prog_name": "evenlag"}
