"""Every cell's runs, one click away from the map: pages of tables, a cell an anchor."""

from __future__ import annotations

import html
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dragstrip.report import quantity as q
from dragstrip.report.page import style
from dragstrip.sweep.plan import Sweep
from dragstrip.sweep.stats import Findings, cell_of_points

CELLS_A_PAGE = 100


def replay_line(folder: Path, key: str) -> str:
    """What to type to make a run again, with its full recording."""
    return shlex.join(["dragstrip", "sweep", "--replay", key[:16], "--from", str(folder), "--out", key[:8]])


class Pages:
    """Which page and anchor a cell has, and the pages."""

    def __init__(
        self, sweep: Sweep, findings: Findings, data: pa.Table, folder: Path, facets: Sequence[Sequence[int]]
    ) -> None:
        self.sweep = sweep
        self.findings = findings
        self.data = data
        self.folder = folder
        self.pages: list[list[int]] = [
            list(cells[start : start + CELLS_A_PAGE])
            for cells in facets
            for start in range(0, len(cells), CELLS_A_PAGE)
        ]
        self._page = {cell: number for number, cells in enumerate(self.pages) for cell in cells}
        self._cells = cell_of_points(sweep, findings.axis)
        runs: list[Any] = data["run"].to_pylist()
        keys: list[Any] = data["key"].to_pylist()
        self._keys: dict[int, str] = dict(zip(runs, keys, strict=True))
        self._rows: dict[int, list[int]] = {}
        for place, run in enumerate(runs):
            self._rows.setdefault(self._cells[run // sweep.repeat], []).append(place)

    def link(self, cell: int) -> str:
        """Where the cell's runs stand, from the report."""
        return f"cells/{self._page[cell]:04d}.html#c{cell}"

    def replay(self, number: int) -> str:
        """The command that makes a run again."""
        key = self._keys.get(number)
        return "not there" if key is None else replay_line(self.folder, key)

    def write(self, place: Path) -> None:
        """Writes all pages into a new folder."""
        place.mkdir()
        look = style()
        for number, cells in enumerate(self.pages):
            text = "".join(self._cell(cell) for cell in cells)
            (place / f"{number:04d}.html").write_text(
                '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
                f'content="width=device-width, initial-scale=1"><title>Runs</title>'
                f"<style>{look}</style></head>"
                f'<body><main><p><a href="../report.html">← the map</a></p>{text}</main></body></html>\n',
                encoding="utf-8",
            )

    def _cell(self, cell: int) -> str:
        settings = ", ".join(f"{path} {value}" for path, value in self.findings.cells[cell].items())
        rows: list[dict[str, Any]] = self.data.take(
            pa.array(self._rows.get(cell, []), pa.int64())
        ).to_pylist()
        lines = "".join(self._line(row) for row in rows)
        return (
            f'<h2 id="c{cell}">{html.escape(settings)}</h2><div class="scroll"><table class="runs">'
            "<thead><tr>"
            "<th>run</th><th>seed</th><th>flow</th><th>beside</th><th>goodput</th><th>median RTT</th>"
            "<th>sent again</th><th>make it again</th></tr></thead>"
            f"<tbody>{lines}</tbody></table></div>"
        )

    def _line(self, row: dict[str, Any]) -> str:
        settings = self.sweep.settings(row["run"] // self.sweep.repeat)
        contender = str(settings.get(self.findings.axis or "", ""))
        label = row["label"] or contender
        shown = contender if label == contender or not contender else f"{label} ({contender}’s run)"
        figures = (
            [q.rate(row["goodput_bps"]), q.milliseconds(row["rtt_ms_p50"]), q.count(row["retransmits"])]
            if row["status"] == "ok"
            else [f"{row['status']}: {row['reason']}", "", ""]
        )
        cells = [row["run"], row["seed"], shown, settings.get("against", "alone"), *figures]
        told = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells)
        return f"<tr>{told}<td><code>{html.escape(replay_line(self.folder, row['key']))}</code></td></tr>"
