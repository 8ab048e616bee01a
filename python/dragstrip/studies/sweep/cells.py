"""The runs of every cell of the map, on pages of tables with an anchor per cell.

They stand in a folder that is named after their content. The map links to that folder, so that it appears
with all its pages or not at all.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dragstrip.display import html
from dragstrip.display import quantity as q
from dragstrip.report.viewer import COPYING, script
from dragstrip.studies.sweep.plan import Sweep
from dragstrip.studies.sweep.stats import Findings, cells_of_points

FOLDER = "cells"
CELLS_A_PAGE = 100


def replay_line(folder: Path, key: str) -> str:
    """Return the command that makes a run again with its full recording."""
    return shlex.join(["dragstrip", "sweep", "--replay", key[:16], "--from", str(folder), "--out", key[:8]])


@dataclass(frozen=True)
class CellRuns:
    """The runs of a cell: for each flow its figures, and the command that makes its run again."""

    anchor: str
    settings: str
    lines: list[tuple[list[object], str]]


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
        hashed = hashlib.sha256()
        for number, cells in enumerate(self.pages):
            page = html.render(
                "studies/sweep/cells.html",
                title="Runs",
                script=script(COPYING),
                cells=map(self._cell, cells),
            ).encode()
            (draft / f"{number:04d}.html").write_bytes(page)
            hashed.update(page)
        self.name = hashed.hexdigest()[:16]

    def _cell(self, cell: int) -> CellRuns:
        settings = ", ".join(f"{path} {value}" for path, value in self.findings.cells[cell].items())
        first, behind = np.searchsorted(self._sorted, [cell, cell + 1])
        rows: list[dict[str, Any]] = self.data.take(self._order[first:behind]).to_pylist()
        return CellRuns(f"c{cell}", settings, [self._line(row) for row in rows])

    def _line(self, row: dict[str, Any]) -> tuple[list[object], str]:
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
        return cells, replay_line(self.folder, row["key"])
