"""`python -m dragstrip.lessons FILE...` runs what students handed in, and marks it (docs/teaching.md)."""

from __future__ import annotations

import sys

from dragstrip.errors import BadInputError
from dragstrip.lessons import COUNT, graded
from dragstrip.outside import text

ANSWERS_MAX = 1 << 20
"""Bytes of what a student hands in."""


def main(names: list[str]) -> int:
    """The exit status: 2 for a file that cannot be read as answers."""
    if not names:
        print("Usage: python -m dragstrip.lessons FILE...", file=sys.stderr)
        return 2
    for name in names:
        try:
            marks = graded(text(name, ANSWERS_MAX, "a student's answers").splitlines())
        except BadInputError as error:
            said = str(error)
            print(said if name in said else f"{name}: {said}", file=sys.stderr)
            return 2
        score = len({number for number, mark in marks if mark == "right"})
        print(f"{name}: {score} of {COUNT} right")
        for number, mark in marks:
            print(f"  {number}: {mark}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
