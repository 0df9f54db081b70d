"""Entry point of `python -m evenlag`."""

from evenlag.cli import main

main()
