"""`python -m evenlag` is the command."""

from evenlag.cli import main

main()
