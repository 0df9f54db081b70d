"""The `evenlag` command: it owns the terminal; all it does is a call to the library."""

from evenlag.cli.signals import leaving_at_once


def main() -> None:
    """Run the command, and exit with its status."""
    with leaving_at_once():
        # An interrupt may come while this is imported, and must not end in a traceback.
        from evenlag.cli.app import run

        status = run()
    raise SystemExit(status)
