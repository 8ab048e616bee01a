# %% [markdown]
# # A sweep and its map
#
# Who wins where: two algorithms over rates and round-trip times. A sweep has a folder, which resumes it
# ([sweeps](../how-to/sweeps.md)).

# %%
import tempfile
from pathlib import Path

import dragstrip

folder = Path(tempfile.mkdtemp()) / "map"
race = dragstrip.compare(
    ["cubic", "bbr"], rate="10mbit", rtt="20ms", queue="bfifo limit 100kb", duration="5s"
)
answer = dragstrip.sweep(
    race, folder, vary={"path.rate": ["2mbit", "10mbit", "50mbit"], "path.rtt": ["10ms", "40ms", "160ms"]}
)
print(answer["runs"], answer["failed"])

# %% [markdown]
# The dataset is an Arrow table with a row per flow and run. Here the goodput of BBR over that of CUBIC, in each cell:

# %%
cells = {}
for row in answer.table().to_pylist():
    cell = cells.setdefault((row["path_rate_bps"], row["path_rtt_ns"]), {})
    cell[row["flows_cc"]] = row["goodput_bps"]
for (rate_bps, rtt_ns), goodput in sorted(cells.items()):
    print(f"{rate_bps / 1e6:4.0f} Mbit/s {rtt_ns / 1e6:4.0f} ms: {goodput['bbr'] / goodput['cubic']:.2f}")

# %% [markdown]
# The map itself, with a picture for each measure, is the page `report.html` in the folder. One cell can be looked at closely:

# %%
cell = dragstrip.race("cubic", "bbr", rate="50mbit", rtt="160ms", queue="bfifo limit 100kb", duration="5s")
cell.plot("plane")
