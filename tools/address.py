"""The repository's address in every file that names it: `python -m tools.address OWNER/REPO`.

The address stands in pyproject.toml ([project.urls]); this program writes it into the files of `FILES`.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = (
    "pyproject.toml",
    "Cargo.toml",
    "CITATION.cff",
    ".zenodo.json",
    "mkdocs.yml",
    "action.yml",
    "docs/gallery.md",
    "docs/how-to/action.md",
)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")


def address() -> str:
    """Return the repository as OWNER/REPO."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    return str(urls["Repository"]).removeprefix("https://github.com/")


def pages(repository: str) -> str:
    """Return the site's address without its scheme."""
    owner, _, name = repository.partition("/")
    return f"{owner}.github.io/{name}"


def main() -> None:
    """Write the address; ends with status 2 and one line if it is none."""
    new = sys.argv[1] if len(sys.argv) == 2 else ""
    if not NAME.fullmatch(new):
        print(f"REPO: got {new!r}, expected OWNER/REPO, such as example/dragstrip", file=sys.stderr)
        sys.exit(2)
    old = address()
    for name in FILES:
        file = ROOT / name
        file.write_text(moved(file.read_text(), old, new))


def moved(text: str, old: str, new: str) -> str:
    """Return a text whose addresses of the repository `old` are those of `new`."""
    text = text.replace(pages(old), pages(new)).replace(f"github.com/{old}", f"github.com/{new}")
    return text.replace(f"uses: {old}@", f"uses: {new}@")


if __name__ == "__main__":
    main()
