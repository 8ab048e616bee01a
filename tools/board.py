"""The board of the passports in a folder, board.html and board.json: `python -m tools.board FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from dragstrip.errors import BadInputError
from dragstrip.studies.passport import board


def main(folder: str) -> None:
    """Write the board into the folder; what is wrong with it ends the program with status 2."""
    try:
        board.write(Path(folder))
    except BadInputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main(*sys.argv[1:])
