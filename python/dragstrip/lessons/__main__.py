"""`python -m dragstrip.lessons FILE...` runs what students handed in, and marks it (docs/teaching.md)."""

from __future__ import annotations

import sys
from pathlib import Path

from dragstrip.errors import BadInputError
from dragstrip.lessons import COUNT, graded


def main(names: list[str]) -> int:
    """The exit status: 2 for a file that cannot be read as answers."""
    if not names:
        print("Usage: python -m dragstrip.lessons FILE...", file=sys.stderr)
        return 2
    for name in names:
        try:
            marks = graded(Path(name).read_text(encoding="utf-8").splitlines())
        except (OSError, UnicodeDecodeError, BadInputError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
        score = len({number for number, mark in marks if mark == "right"})
        print(f"{name}: {score} of {COUNT} right")
        for number, mark in marks:
            print(f"  {number}: {mark}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
