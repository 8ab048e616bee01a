"""`python -m dragstrip.playground.lessons FILE...` grades students' answers (docs/how-to/teaching.md)."""

from __future__ import annotations

import sys

from dragstrip.errors import BadInputError
from dragstrip.io.untrusted import one_line, text
from dragstrip.playground.lessons import COUNT, graded

ANSWERS_MAX = 1 << 17
"""Bytes of a student's answers, at most."""


def main(names: list[str]) -> int:
    """Grade the files and return the exit status, which is 2 if any of them cannot be read as answers."""
    if not names:
        print("Usage: python -m dragstrip.playground.lessons FILE...", file=sys.stderr)
        return 2
    status = 0
    for name in names:
        try:
            marks = graded(text(name, ANSWERS_MAX, "a student's answers").splitlines())
        except BadInputError as error:
            message = one_line(str(error))
            message = message.removeprefix(": ")
            print(message if error.source == name else f"{one_line(name)}: {message}", file=sys.stderr)
            status = 2
            continue
        score = len({number for number, mark in marks if mark == "right"})
        print(f"{one_line(name)}: {score} of {COUNT} right")
        for number, mark in marks:
            print(f"  {number}: {one_line(mark)}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
