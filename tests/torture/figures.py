"""Figures drawn again in a process of their own: SVG, PNG, PDF and page have the same bytes each time.

Two runs show every kind of figure: contenders that share a path, and contenders alone with repetitions.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

from common import check_answer, dragstrip, main, written

COMPARE = ("compare", "--rate", "2mbit", "--rtt", "20ms", "--queue", "bfifo limit 30kb", "--duration", "3s")
RUNS = (
    (*COMPARE, "--repeat", "2", "--together", "--out", "out", "reno", "cubic"),
    (*COMPARE, "--repeat", "3", "--out", "out", "reno", "cubic", "bbr"),
)
ENDINGS = "svg,png,pdf"
PLACES: list[Path] = []
"""Folders of the runs, removed at the end."""


def redrawn(folder: Path) -> dict[str, bytes]:
    """The page and the figures of the run in `out`, drawn anew."""
    check_answer(dragstrip(folder, "report", "out", "--figures", ENDINGS), 0)
    return {"report.html": (folder / "out/report.html").read_bytes(), **written(folder / "out/figures")}


@functools.cache
def reference(words: tuple[str, ...]) -> tuple[Path, dict[str, bytes]]:
    """A folder with the run, and its figures as first drawn."""
    folder = Path(tempfile.mkdtemp(prefix="dragstrip-torture-"))
    PLACES.append(folder)
    check_answer(dragstrip(folder, *words, "--no-report"), 0)
    first = redrawn(folder)
    assert len(first) > 3 * 6, sorted(first)
    return folder, first


def trial(number: int, folder: Path) -> str:
    """Number's run, copied and drawn again."""
    place, first = reference(RUNS[number % len(RUNS)])
    shutil.copytree(place / "out", folder / "out")
    shutil.rmtree(folder / "out/figures")
    again = redrawn(folder)
    assert again.keys() == first.keys(), sorted(again.keys() ^ first.keys())
    different = [name for name in first if first[name] != again[name]]
    assert not different, f"drawn differently: {', '.join(different)}"
    return "the same"


if __name__ == "__main__":
    try:
        main("figures", trial, count=40, sample=2, about=__doc__)
    finally:
        for place in PLACES:
            shutil.rmtree(place, ignore_errors=True)
