"""The report: one self-contained HTML page about an output folder, and its figures for papers.

Here live reading such a folder, turning its recordings into curves, drawing them, and the page. What
does not belong here: measuring (the figures of `result.json` are taken as they are; only the curves are
made from the recordings), running, and any network access.

load → setups (what is compared with what) → stats, collect (rows and curves) → charts, picture, tables,
verdict → render, page → write.
"""

from dragstrip.report.write import write_report as write_report

__all__ = ["write_report"]
