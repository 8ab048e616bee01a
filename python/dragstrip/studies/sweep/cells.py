"""The runs of every cell of the map, on pages of tables with an anchor per cell.

They stand in a folder that is named after their content. The map links to that folder, so that it appears
with all its pages or not at all.
"""

from __future__ import annotations

import hashlib
import html
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dragstrip.display import quantity as q
from dragstrip.report.page import style
from dragstrip.report.viewer import COPYING, policy, script
from dragstrip.studies.sweep.plan import Sweep
from dragstrip.studies.sweep.stats import Findings, cells_of_points

FOLDER = "cells"
CELLS_A_PAGE = 100


def replay_line(folder: Path, key: str) -> str:
    """Return the command that makes a run again with its full recording."""
    return shlex.join(["dragstrip", "sweep", "--replay", key[:16], "--from", str(folder), "--out", key[:8]])


class Pages:
    """The pages of cells, and each cell's page and anchor."""

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
        # A hundred thousand runs: columns and their order, not a dictionary of Python objects.
        self._runs = np.asarray(data["run"].to_numpy(), dtype=np.int64)
        cells = cells_of_points(sweep)[self._runs // sweep.repeat]
        self._order = np.argsort(cells, kind="stable")
        self._sorted = cells[self._order]
        self.name = ""
        """Name of the folder with the pages, known once they are written."""

    def link(self, cell: int) -> str:
        """Return the link from the report to the runs of a cell."""
        return f"{FOLDER}/{self.name}/{self._page[cell]:04d}.html#c{cell}"

    def replay(self, number: int) -> str:
        """Return the command that makes a run again."""
        place = int(np.searchsorted(self._runs, number))
        if place == len(self._runs) or self._runs[place] != number:
            return "not there"
        return replay_line(self.folder, str(self.data["key"][place].as_py()))

    def write(self, draft: Path) -> None:
        """Write all pages into the new folder `draft`."""
        draft.mkdir()
        look = style()
        hashed = hashlib.sha256()
        for number, cells in enumerate(self.pages):
            text = "".join(self._cell(cell) for cell in cells)
            page = (
                '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
                f'content="width=device-width, initial-scale=1"><title>Runs</title>'
                f'<meta http-equiv="Content-Security-Policy" content="{policy(look, script(COPYING))}">'
                f"<style>{look}</style></head>"
                f'<body><main><p><a href="../../report.html">← the map</a></p>{text}</main>'
                f"<script>{script(COPYING)}</script></body></html>\n"
            ).encode()
            (draft / f"{number:04d}.html").write_bytes(page)
            hashed.update(page)
        self.name = hashed.hexdigest()[:16]

    def _cell(self, cell: int) -> str:
        settings = ", ".join(f"{path} {value}" for path, value in self.findings.cells[cell].items())
        first, behind = np.searchsorted(self._sorted, [cell, cell + 1])
        rows: list[dict[str, Any]] = self.data.take(self._order[first:behind]).to_pylist()
        lines = "".join(self._line(row) for row in rows)
        return (
            f'<h2 id="c{cell}">{html.escape(settings)}</h2><div class="scroll"><table class="runs">'
            "<thead><tr>"
            "<th>run</th><th>seed</th><th>flow</th><th>beside</th><th>goodput</th><th>median RTT</th>"
            "<th>retransmitted</th><th>to repeat it</th></tr></thead>"
            f"<tbody>{lines}</tbody></table></div>"
        )

    def _line(self, row: dict[str, Any]) -> str:
        settings = self.sweep.settings(row["run"] // self.sweep.repeat)
        contender = str(settings.get(self.findings.axis or "", ""))
        label = row["label"] or contender
        contender_label = contender if label == contender or not contender else f"{label} ({contender}’s run)"
        figures = (
            [q.rate(row["goodput_bps"]), q.milliseconds(row["rtt_ms_p50"]), q.count(row["retransmits"])]
            if row["status"] == "ok"
            else [f"{row['status']}: {row['reason']}", "", ""]
        )
        cells = [row["run"], row["seed"], contender_label, settings.get("against", "alone"), *figures]
        columns = "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells)
        command = html.escape(replay_line(self.folder, row["key"]))
        return f"<tr>{columns}<td><code class=copy>{command}</code></td></tr>"
