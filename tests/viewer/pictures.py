"""The tutorials' pictures, made again from what their commands give: `python -m tests.viewer.pictures`.

It runs the commands, opens the reports in a headless Chromium and writes docs/images/tutorial-*.png.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

from .browser import Browser, program

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WIDTH = 1000
HEIGHT = 640
BYTES_MAX = 150_000
PATH = ["--rate", "10mbit", "--rtt", "40ms", "--queue", "bfifo limit 200kb", "--duration", "60s"]
REPORTS = {
    "student": ["compare", *PATH, "--together", "reno", "vegas"],
    "researcher": ["run", "bu-cs655-2022/fairness"],
    "author": ["passport", "bbr", "--quick"],
}
"""Tutorial → the command whose page it shows."""
TERMINALS = {"engineer": ["diagnose", "--path", "cable"]}
"""Tutorial → the command whose output it shows as text, its first lines."""
LINES = 26


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


def main() -> None:
    """Writes every picture."""
    chromium = program()
    if chromium is None:
        raise SystemExit("Chromium is missing")
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(chromium, Path(profile) / "profile")
        for name in [*REPORTS, *TERMINALS]:
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                if name in REPORTS:
                    output([*REPORTS[name], "--out", "out"], folder)
                    (shown,) = (folder / "out").glob("*.html")
                    width, height = WIDTH, HEIGHT
                else:
                    shown, width, height = terminal(TERMINALS[name], folder), 720, 0
                page = browser.page(shown, width, HEIGHT, prefers_color_scheme="light")
                height = height or page.value("document.querySelector('pre').offsetHeight")
                picture = page.picture(width, height)
                if len(picture) > BYTES_MAX:
                    raise SystemExit(f"{name}: {len(picture)} bytes, more than {BYTES_MAX}")
                (IMAGES / f"tutorial-{name}.png").write_bytes(picture)
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
