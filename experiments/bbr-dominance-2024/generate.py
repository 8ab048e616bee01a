"""Writes the experiments of this folder from the publication's data.

`bbr_N.csv` and `cubic_N.csv` (columns N_bdp, flow, trial, bits_per_second: all BBR flows together, all
CUBIC flows together) come from the repository ashutoshs25/bbr-dominance-experiments and are not here.
`python experiments/bbr-dominance-2024/generate.py FOLDER` writes the files here: slices to 100 Mbit/s, with
a sample of the numbers of BBR flows. `--all --out OTHER` writes every slice in the data with 1 to 49 BBR
flows, which take hours: `dragstrip run OTHER/slice-9.toml` and so on.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

FLOWS = 50
SAMPLE = (1, 10, 20, 30, 40, 49)
SLICES = (1, 3, 5, 7)
RATES_MBIT = (50, 100, 500)
ONE_WAY_MS = (2.5, 10, 20, 40)
TOLERANCE = 0.1

HEAD = """\
# Written by generate.py from the publication's data: do not edit. Format: docs/how-to/experiments.md.
title = "Fifty flows, some of them BBR: {rate} Mbit/s, {rtt:g} ms"
source = "After Mishra et al., *Are we heading towards a BBR-dominant internet?*, IMC 2022: slice {number}"
description = \"\"\"
Two iperf3, one with the BBR flows and one with the CUBIC flows, send for 120 s from one client of the
FABRIC testbed through netem ({one_way:g} ms each way) and a router with htb and a bfifo of 0.5 to 50 BDP.

Both were started at the same time over connections of their own to the testbed, so which was first is not
known. The rule here: the BBR flows start at 0 s, the CUBIC flows 1 s later. A lone BBR flow's share turns
on it.

Hosts, emulator and router are virtual machines with 100 Gbit/s cards (NIC_Basic) whose offloads the
scripts leave on: TSO at the sender, GRO and TSO on the way, GRO at the receiver. A burst is therefore one
packet of the bfifo and gets one ACK (hosts `veth`).

Each cell is the share of all BBR flows together in what both iperf3 report, to 0.10: there is one trial of
each, so what a second one would give is not known.
\"\"\"
duration = "121s"

[path]
rate = "{rate}mbit"
rtt = "{rtt:g}ms"
queue = "{first}bdp"

[hosts."*"]
preset = "veth"

[[flows]]
cc = "bbr"
stop = "120s"

[[flows]]
cc = "cubic"
start = "1s"

[record]
interval = "1s"
rtts = false

[vary]
"path.queue" = [{queues}]
"""

ALTERNATIVE = """
[[alternatives]]
name = "{count}"
set = {{ "flows.0.count" = {count}, "flows.1.count" = {others} }}
"""

CLAIM = """
[[claims]]
id = "share-{count}-{bdp}bdp"
source = "{count} BBR flows of 50, {bdp} BDP"
metric = "share"
where = {{ cc = "bbr", alternative = "{count}", "path.queue" = "{bdp}bdp" }}
across = "sum"
value = {share:.4f}
tolerance = {tolerance}
unit = "1"
"""


def read(file: Path) -> dict[tuple[str, int], float]:
    """Buffer in BDP and number of BBR flows → bit/s."""
    with file.open(encoding="utf-8", newline="") as rows:
        return {
            (row["N_bdp"], int(row["flow"])): float(row["bits_per_second"]) for row in csv.DictReader(rows)
        }


def experiment(number: int, folder: Path, counts: tuple[int, ...]) -> str:
    """The file of one slice."""
    bbr, cubic = read(folder / f"bbr_{number}.csv"), read(folder / f"cubic_{number}.csv")
    rate, one_way = RATES_MBIT[(number - 1) // 4], ONE_WAY_MS[(number - 1) % 4]
    buffers = sorted({bdp for bdp, _ in bbr}, key=float)
    text = HEAD.format(
        number=number,
        rate=rate,
        rtt=2 * one_way,
        one_way=one_way,
        first=buffers[0],
        queues=", ".join(f'"{bdp}bdp"' for bdp in buffers),
    )
    text += "".join(ALTERNATIVE.format(count=count, others=FLOWS - count) for count in counts)
    for bdp in buffers:
        for count in counts:
            share = bbr[bdp, count] / (bbr[bdp, count] + cubic[bdp, count])
            text += CLAIM.format(count=count, bdp=bdp, share=share, tolerance=TOLERANCE)
    return text


def main() -> None:
    """Reads the command line, writes the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with bbr_N.csv and cubic_N.csv")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the files")
    parser.add_argument("--all", action="store_true", help="every slice, and 1 to 49 BBR flows")
    options = parser.parse_args()
    counts = tuple(range(1, FLOWS)) if options.all else SAMPLE
    for number in range(1, 13) if options.all else SLICES:
        if (options.data / f"bbr_{number}.csv").exists():
            text = experiment(number, options.data, counts)
            (options.out / f"slice-{number}.toml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
