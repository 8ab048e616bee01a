"""Entry point of `python -m dragstrip`."""

from dragstrip.cli import main

main()
