"""The report: one self-contained HTML page about an output folder, and its figures for papers.

Belongs here: reading such a folder, turning its recordings into curves, drawing them, and the page. Does not
belong here: measuring (the figures of `result.json` are used as they are; only curves are made from the
recordings), running anything, and any network access.

load → setups (what is compared with what) → stats, collect (rows and curves) → charts, picture, tables,
verdict → render, page → write.
"""
