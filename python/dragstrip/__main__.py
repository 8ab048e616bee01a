"""`python -m dragstrip`."""

from dragstrip.cli import main

main()
