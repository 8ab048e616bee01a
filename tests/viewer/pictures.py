"""The pictures of README and docs, made again from what their commands give: `python -m tests.viewer.pictures`.

It runs the commands, opens their pages in a headless Chromium and writes docs/images/*.png.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from .browser import Browser, program

IMAGES = Path(__file__).parents[2] / "docs" / "images"
BYTES_MAX = 150_000
PATH = ["--rate", "10mbit", "--rtt", "40ms", "--queue", "bfifo limit 200kb", "--duration", "60s"]
PLAY = ["play", "cubic", "vegas", *PATH, "--together", "--no-open", "--out", "out.html"]
RACED = "document.querySelector('#hash').textContent.length === 64"


@dataclass(frozen=True)
class Picture:
    """What a command's page shows first, or as text (without a height) the first lines of its output."""

    command: Sequence[str]
    width: int = 1000
    height: int | None = 640
    ready: str = "true"
    """What the page is asked until it is drawn."""


PICTURES = {
    "report": Picture(["compare", *PATH, "--together", "cubic", "vegas"], height=900),
    "playground": Picture(PLAY, 1100, 900, RACED),
    "playground-phone": Picture(PLAY, 390, 900, RACED),
    "tutorial-student": Picture(["compare", *PATH, "--together", "reno", "vegas"]),
    "tutorial-researcher": Picture(["run", "bu-cs655-2022/fairness"]),
    "tutorial-author": Picture(["passport", "bbr", "--quick"]),
    "tutorial-engineer": Picture(["diagnose", "--path", "cable"], 720, None),
}
"""File in docs/images → the picture."""
LINES = 26
WITHOUT_BUILD = """document.querySelectorAll(".caution").forEach((note) => {
  if (/quick build|older than its sources/.test(note.textContent)) note.remove();
})"""
"""Removes notes on the core's build, which are about the machine that makes the pictures."""


def output(arguments: Sequence[str], folder: Path) -> str:
    """What a command prints in this folder; a passport may end with 3, for a limit missed."""
    command = [sys.executable, "-m", "dragstrip", *arguments]
    ended = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.PIPE, text=True)
    if ended.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(command)}: status {ended.returncode}")
    return ended.stdout


def terminal(arguments: Sequence[str], folder: Path) -> Path:
    """A page with a command and the first lines of its output."""
    lines = [f"$ dragstrip {' '.join(arguments)}", *output(arguments, folder).splitlines()[:LINES]]
    style = "margin:0;white-space:pre-wrap;padding:16px 20px;background:#14171c;color:#e6e8eb;font:14px/1.35 monospace"
    page = folder / "terminal.html"
    text = escape("\n".join(lines))
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><body style="margin:0"><pre style="{style}">{text}</pre>'
    )
    return page


def shown(picture: Picture, folder: Path) -> Path:
    """Runs the command in this folder and returns the page to look at."""
    if picture.height is None:
        return terminal(picture.command, folder)
    told = [] if "--out" in picture.command else ["--out", "out"]
    output([*picture.command, *told], folder)
    (page,) = [*folder.glob("out/*.html"), *folder.glob("out.html")]
    return page


def drawn(browser: Browser, picture: Picture) -> bytes:
    """The picture as a PNG."""
    with tempfile.TemporaryDirectory() as place:
        file = shown(picture, Path(place))
        page = browser.page(file, picture.width, picture.height or 640, prefers_color_scheme="light")
        page.wait_for(lambda: page.value(picture.ready))
        page.value(WITHOUT_BUILD)
        height = picture.height or page.value("document.querySelector('pre').offsetHeight")
        made = page.picture(picture.width, height)
        page.close()
    return made


def main(names: Sequence[str]) -> None:
    """Writes the pictures of these names, or every one."""
    chromium = program()
    if chromium is None:
        raise SystemExit("Chromium is missing")
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(chromium, Path(profile) / "profile")
        for name in names or PICTURES:
            made = drawn(browser, PICTURES[name])
            if len(made) > BYTES_MAX:
                raise SystemExit(f"{name}: {len(made)} bytes, more than {BYTES_MAX}")
            (IMAGES / f"{name}.png").write_bytes(made)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
