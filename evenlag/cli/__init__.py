"""The `evenlag` command: options, terminal output and exit statuses; the library does the work."""

from evenlag.cli.signals import leaving_at_once


def main() -> None:
    """Run the command and exit with its status."""
    with leaving_at_once():
        # An interrupt during this import must not end in a traceback.
        from evenlag.cli.app import run

        status = run()
    raise SystemExit(status)
