"""`python -m agent.cli` is the `cairn` command."""

from agent.cli import main

main()
