"""Fidelity and speed by commit: `python -m tools.history FOLDER` writes history-fidelity.md and history-speed.md.

The figures are those that each commit stores: docs/reference/fidelity.md (before that in docs) and
bench/instructions.json. It reads the clone's history and no network.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragstrip.io.files import write_text

ROOT = Path(__file__).resolve().parents[1]
FORMER = "/".join(("docs", "fidelity.md"))
"""The fidelity page's former place."""
FIDELITY = ("docs/reference/fidelity.md", FORMER)
SPEED = ("bench/instructions.json",)
GIT = shutil.which("git") or "git"
QUANTITIES = (
    "goodput",
    "median RTT, flow",
    "median RTT, ping",
    "window reductions",
    "retransmissions",
    "share of each flow",
)
"""Rows of the fidelity page's first table that the history shows."""
GROUPS = ("case", "algorithm", "queue")
"""Beginnings of the names of benchmarks, which are averaged."""
CHANGE_MIN = 0.001
"""Relative change of a mean below which it is not marked."""
WITHIN = re.compile(r"(\d+) of (\d+)")


@dataclass(frozen=True)
class Version:
    """A commit that changed a file, and the file's content then."""

    commit: str
    date: str
    subject: str
    text: str


def git(*words: str, root: Path = ROOT) -> str:
    """Return git's output, empty if it fails or is not installed."""
    try:
        ended = subprocess.run(
            [GIT, *words], cwd=root, capture_output=True, text=True, encoding="utf-8", check=False
        )
    except FileNotFoundError:
        return ""
    return ended.stdout if ended.returncode == 0 else ""


def versions(files: Sequence[str], root: Path = ROOT) -> list[Version]:
    """Return the versions of a file under its names, the oldest first; empty without a history."""
    log = git("log", "--reverse", "--first-parent", "--format=%h%x09%cs%x09%s", "--", *files, root=root)
    entries = [line.split("\t", 2) for line in log.splitlines()]
    contents = [
        (entry, next((text for file in files if (text := git("show", f"{entry[0]}:{file}", root=root))), ""))
        for entry in entries
    ]
    return [Version(commit, date, subject, text) for (commit, date, subject), text in contents if text]


def complete(root: Path = ROOT) -> bool:
    """True when the clone has its history: more than one commit, and not a shallow one."""
    shallow = git("rev-parse", "--is-shallow-repository", root=root).strip()
    count = git("rev-list", "--count", "HEAD", root=root).strip()
    return shallow == "false" and int(count or 0) > 1


def fidelity(text: str) -> dict[str, tuple[int, int]]:
    """Return the cases within the limit and all cases, by quantity, from a fidelity page's first table."""
    figures: dict[str, tuple[int, int]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) > 3 and cells[0] in QUANTITIES and (within := WITHIN.fullmatch(cells[2])):
            figures.setdefault(cells[0], (int(within[1]), int(within[2])))
    return figures


def speed(text: str) -> dict[str, tuple[float, int]]:
    """Return the mean instructions per packet and the number of benchmarks, by group."""
    counts: Mapping[str, float] = json.loads(text)["instructions"]
    members = {group: [v for name, v in counts.items() if name.split(" ")[0] == group] for group in GROUPS}
    return {group: (statistics.mean(values), len(values)) for group, values in members.items() if values}


def fidelity_page(found: Sequence[Version], has_history: bool) -> str:
    """Return the page of fidelity by commit, in Markdown."""
    return "\n".join(_fidelity(found, has_history)) + "\n"


def _fidelity(found: Sequence[Version], has_history: bool) -> Iterator[str]:
    yield "<!-- Written by `make history`: do not edit. -->"
    yield "# Fidelity by commit"
    yield ""
    yield "Cases without random loss that are within the limit of [the fidelity page](fidelity.md), of all open"
    yield "cases, at each commit that changed a figure. The number of cases grows when cases are recorded."
    yield ""
    yield from _without_history(has_history)
    yield f"| commit | date | {' | '.join(QUANTITIES)} | change |"
    yield "|---|---|" + "---|" * (len(QUANTITIES) + 1)
    before: dict[str, tuple[int, int]] = {}
    for version in found:
        figures = fidelity(version.text)
        if figures and figures != before:
            cells = [_within(figures.get(name), before.get(name)) for name in QUANTITIES]
            yield _line(version, cells)
            before = figures


def _within(figure: tuple[int, int] | None, before: tuple[int, int] | None) -> str:
    if figure is None:
        return "–"
    text = f"{figure[0]} of {figure[1]}"
    if before is None or figure == before:
        return text
    return f"**{text}**" if figure[1] != before[1] else f"**{text}** ({figure[0] - before[0]:+d})"


def speed_page(found: Sequence[Version], has_history: bool) -> str:
    """Return the page of instructions per packet by commit, in Markdown."""
    return "\n".join(_speed(found, has_history)) + "\n"


def _speed(found: Sequence[Version], has_history: bool) -> Iterator[str]:
    yield "<!-- Written by `make history`: do not edit. -->"
    yield "# Speed by commit"
    yield ""
    yield "Instructions per packet (`bench/instructions`, counted under valgrind, so that a machine's load does not"
    yield "matter) at each commit that stored new counts: the mean over cases, algorithms with one flow, and queue"
    yield "disciplines. A group with another number of benchmarks than before has no change in percent."
    yield "[Performance](../explanation/performance.md) has seconds, and other simulators."
    yield ""
    yield from _without_history(has_history)
    yield f"| commit | date | {' | '.join(f'{group}, mean' for group in GROUPS)} | change |"
    yield "|---|---|" + "---|" * (len(GROUPS) + 1)
    before: dict[str, tuple[float, int]] = {}
    for version in found:
        figures = speed(version.text)
        if figures != before:
            yield _line(version, [_mean(figures.get(group), before.get(group)) for group in GROUPS])
            before = figures


def _mean(figure: tuple[float, int] | None, before: tuple[float, int] | None) -> str:
    if figure is None:
        return "–"
    text = f"{figure[0]:,.0f} ({figure[1]})"
    if before is None or before[1] != figure[1]:
        return text
    change = figure[0] / before[0] - 1
    return f"{text} {change:+.1%}" if abs(change) >= CHANGE_MIN else text


def _line(version: Version, cells: Sequence[str]) -> str:
    subject = version.subject.replace(FORMER, Path(FORMER).name).replace("|", "\\|").replace("<", "&lt;")
    return f"| `{version.commit[:8]}` | {version.date} | {' | '.join(cells)} | {subject} |"


def _without_history(has_history: bool) -> Iterator[str]:
    if not has_history:
        yield "This page was made in a clone without its history (a shallow clone or an archive), so lines are"
        yield "missing. `git fetch --unshallow`, then `make history`."
        yield ""


def main(folder: str) -> None:
    """Write both pages into the folder."""
    has_history = complete()
    write_text(Path(folder) / "history-fidelity.md", fidelity_page(versions(FIDELITY), has_history))
    write_text(Path(folder) / "history-speed.md", speed_page(versions(SPEED), has_history))


if __name__ == "__main__":
    main(*sys.argv[1:])
