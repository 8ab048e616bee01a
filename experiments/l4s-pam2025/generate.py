"""Writes the experiments of this folder from the publication's data.

`cells.csv` is not here: it has a row per cell of the JSON files in `Data` of the repository
fatihsarpkaya/L4S-PAM2025, the means of ten trials, with the columns queue, buffer_bdp, rate_mbit, rtt_ms,
threshold_ms, flow1, flow2, flow2_ecn, flow2_receiver, flow1_fallback, n1, n2, goodput1_mean, goodput2_mean,
srtt1_ms and srtt2_ms. `python experiments/l4s-pam2025/generate.py cells.csv` writes a file per pair of
congestion controls beside this one, or into `--out`.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path

Cell = dict[str, str]
"""A row of cells.csv."""

SHARE_TOLERANCE = 0.1
RTT_TOLERANCE = "10%"

PRAGUE = "prague:prague_kernel=5"
BBR2_L4S = "bbr2:ecn_enable=1,ecn_max_rtt_us=0,ecn_l4s=1"
BBR2_ECN = "bbr2:ecn_enable=1,ecn_max_rtt_us=0"
ALGORITHMS = {
    "prague": PRAGUE,
    "bbr2-l4s": BBR2_L4S,
    "cubic": "cubic",
    "bbr": "bbr",
    "bbr2": "bbr2",
    "bbr3": "bbr3",
    "bbr3-ecnlow": "bbr3:ecn_low=1",
}
"""The publication's words → ours."""

NAMES = {
    "prague": "Prague",
    "bbr2-l4s": "BBRv2 of L4STeam",
    "cubic": "CUBIC",
    "bbr": "BBR",
    "bbr2": "BBRv2",
    "bbr3": "BBRv3",
    "bbr3-ecnlow": "BBRv3 with ecn_low",
}

PAPER = "Sarpkaya, Fund and Panwar, *To adopt or not to adopt L4S-compatible congestion control?*, PAM 2025"

HEAD = """\
# Written by generate.py from the publication's data: do not edit. Format: docs/how-to/experiments.md.
title = "{first} beside {second}{many}"
source = "{paper}: {count} cells of ten trials"
description = \"\"\"
Two pairs of hosts of the FABRIC testbed share a router of 100 Mbit/s (htb, and below it the queue of each
cell). netem delays by half the round trip each way. On each pair iperf3 sends for 60 s, both from the start:
{first} with accurate ECN, and {second}, whose hosts have `tcp_ecn` 1, or 0 where a cell's name ends in noecn.

Hosts, emulator and router are virtual machines with all offloads off: TCP builds bursts, the sender cuts
them into frames, and each frame is a packet of the queue and of the receiver (`gso` auto). RTTs on an empty
queue are 0.2 to 0.3 ms above netem's delay there; here receive interrupts at least 250 us apart stand for
what the machines add (mlx5's adaptive moderation goes up to 256 us: `net_dim`'s profiles). The first pair of
hosts has L4STeam's Linux 5.15; 6.1 stands for the others' 5.13 and 6.4.{notes}

Each cell has three claims: the share of all flows of {first} together, to 0.10, and the smoothed
RTT of each kind of flow (iperf3's mean_rtt), to 10 %. Behind dualpi2 the limit was its default in every cell,
so that cells of other depths are repeats, and one run here stands for all of them.
\"\"\"
duration = "60s"

[path]
rate = "100mbit"
rtt = "{rtt}ms"
queue = "bfifo"
senders = 2
receivers = 2

[hosts."*"]
gso = "auto"
interface = {{ interrupts = "250us", gro = false }}

[hosts.s1]
profile = "linux-5.15-l4s"
sysctl = {{ "net.ipv4.tcp_ecn" = 3 }}

[hosts.d1]
profile = "linux-5.15-l4s"
sysctl = {{ "net.ipv4.tcp_ecn" = 3 }}

[hosts.s2]
sysctl = {{ "net.ipv4.tcp_ecn" = 1 }}

[hosts.d2]
sysctl = {{ "net.ipv4.tcp_ecn" = 1 }}

[[flows]]
cc = "{first_cc}"
sender = "s1"
receiver = "d1"

[[flows]]
cc = "{second_cc}"
sender = "s2"
receiver = "d2"

[record]
rtts = false
"""

ALTERNATIVE = """
[[alternatives]]
name = "{name}"
set = {{ {settings} }}
"""

CLAIM = """
[[claims]]
id = "{id}"
source = "{source}"
metric = "{metric}"
where = {{ alternative = "{alternative}", sender = "{sender}" }}
{across}value = {value:.6g}
tolerance = {tolerance}
unit = "{unit}"
"""

PRAGUE_NOTE = """

Prague is the module of L4STeam's 5.15 as of 2024 (`prague_kernel` 5), the testing-build of that time."""
FALLBACK_NOTE = """
Where a cell's name ends in fallback, its module parameter `prague_ecn_fallback` is 1."""
RECEIVER_NOTE = """

Where a cell's name ends in dctcp, the receiver of BBRv2 echoes each mark as DCTCP's does; otherwise it
runs a stack that echoes marks as RFC 3168 says."""


def queue(cell: Cell, bytes_limit: int) -> str:
    """The router's queue in tc's words, as the publication's scripts set it."""
    packets, target = bytes_limit // 1500 + 1, f"{cell['threshold_ms']}ms"
    codel = f"limit {packets} target {target} interval 100ms"
    fair = f"fq limit {packets} flow_limit {packets} ce_threshold {target}"
    return {
        "bfifo": f"bfifo limit {bytes_limit}b",
        "codel_ecn": f"codel {codel} ecn",
        "codel_noecn": f"codel {codel} noecn",
        "fq_codel": f"fq_codel {codel} ecn",
        "fq_codel_l4s": f"fq_codel {codel} ecn ce_threshold 1ms ce_threshold_selector 0x1/0x1",
        "fq": fair,
        "fq_single_queue": f"{fair} orphan_mask 0",
        "pie_noecn": f"pie limit {packets} target {target} noecn",
        # L4STeam's module marks by the threshold where more than one packet waits (`apply_step`).
        "dualpi2": f"dualpi2 target {target} min_qlen_step 2",
    }[cell["queue"]]


def name(cell: Cell, *, with_depth: bool) -> str:
    """The cell's part of ids: queue, depth, and what departs from one flow against one at 10 ms with ECN."""
    depth = f"-{float(cell['buffer_bdp']):g}bdp" if with_depth else ""
    text = cell["queue"].replace("_", "-") + depth
    if (cell["n1"], cell["n2"]) != ("1", "1"):
        text += f"-{cell['n1']}v{cell['n2']}"
    if cell["rtt_ms"] != "10":
        text += f"-{cell['rtt_ms']}ms"
    if cell["flow2_ecn"] == "0":
        text += "-noecn"
    if cell["flow2_receiver"] == "dctcp":
        text += "-dctcp"
    if cell["flow1_fallback"] == "1":
        text += "-fallback"
    return text


def settings(cell: Cell) -> dict[str, str | int]:
    """Settings of the cell's run."""
    bytes_limit = int(125 * float(cell["buffer_bdp"]) * float(cell["rate_mbit"]) * float(cell["rtt_ms"]))
    values: dict[str, str | int] = {"path.queue": queue(cell, bytes_limit)}
    if cell["rtt_ms"] != "10":
        values["path.rtt"] = f"{cell['rtt_ms']}ms"
    for place, count in (("flows.0.count", cell["n1"]), ("flows.1.count", cell["n2"])):
        if count != "1":
            values[place] = int(count)
    if cell["flow1_fallback"] == "1":
        values["flows.0.cc"] = f"{PRAGUE},prague_ecn_fallback=1"
    if cell["flow2_ecn"] == "0":
        values |= {f'hosts.{host}.sysctl."net.ipv4.tcp_ecn"': 0 for host in ("s2", "d2")}
    elif cell["flow2"] == "bbr2":
        values["flows.1.cc"] = BBR2_ECN
        if cell["flow2_receiver"] == "classic":
            values["flows.1.receiver_cc"] = "cubic"
    return values


def alternative(cell: Cell) -> str:
    """The name of the run that measures the cell; dualpi2's do not differ in depth."""
    return name(cell, with_depth=cell["queue"] != "dualpi2")


def claims(cell: Cell) -> str:
    """The cell's three claims."""
    first, second = (
        int(cell[count]) * float(cell[f"goodput{kind}_mean"]) for kind, count in ((1, "n1"), (2, "n2"))
    )
    cell_name = name(cell, with_depth=True)
    text = CLAIM.format(
        id=f"share-{cell_name}",
        source=f"{first:g} and {second:g} Mbit/s",
        metric="share",
        alternative=alternative(cell),
        sender="s1",
        across='across = "sum"\n',
        value=first / (first + second),
        tolerance=SHARE_TOLERANCE,
        unit="1",
    )
    for number in (1, 2):
        text += CLAIM.format(
            id=f"rtt-{cell_name}-{cell[f'flow{number}']}",
            source=f"mean_rtt {cell[f'srtt{number}_ms']} ms",
            metric="srtt_ms_mean",
            alternative=alternative(cell),
            sender=f"s{number}",
            across="",
            value=float(cell[f"srtt{number}_ms"]),
            tolerance=f'"{RTT_TOLERANCE}"',
            unit="ms",
        )
    return text


def experiment(cells: list[Cell], *, many: bool) -> str:
    """The file of one pair."""
    first, second = cells[0]["flow1"], cells[0]["flow2"]
    notes = PRAGUE_NOTE if first == "prague" else ""
    if any(cell["flow1_fallback"] == "1" for cell in cells):
        notes += FALLBACK_NOTE
    if any(cell["flow2_receiver"] == "dctcp" for cell in cells):
        notes += RECEIVER_NOTE
    text = HEAD.format(
        paper=PAPER,
        first=NAMES[first],
        second=NAMES[second],
        many=", many flows" if many else "",
        count=len(cells),
        notes=notes,
        rtt=10,
        first_cc=ALGORITHMS[first],
        second_cc=ALGORITHMS[second],
    )
    runs: dict[str, dict[str, str | int]] = {}
    for cell in cells:
        runs.setdefault(alternative(cell), settings(cell))
    for run, values in runs.items():
        words = ", ".join(f"'{path}' = {json.dumps(value)}" for path, value in values.items())
        text += ALTERNATIVE.format(name=run, settings=words)
    return text + "".join(map(claims, cells))


def main() -> None:
    """Reads the command line, writes the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="cells.csv")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the files")
    options = parser.parse_args()
    files: dict[tuple[str, str, bool], list[Cell]] = defaultdict(list)
    with options.data.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            many = (row["n1"], row["n2"]) != ("1", "1")
            files[row["flow1"], row["flow2"], many].append(row)
    for (first, second, many), cells in files.items():
        stem = f"{first}-{second}" + ("-many" if many else "")
        (options.out / f"{stem}.toml").write_text(experiment(cells, many=many), encoding="utf-8")


if __name__ == "__main__":
    main()
