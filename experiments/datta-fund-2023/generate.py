"""Writes the experiments of this folder from the publication's data.

`goodput.csv` is not here: it is made from `data/` of the repository sdatta97/imcbbrrepro, with the columns
kernel, buffer_kB, rate_mbit, rtt_ms, cc, trial, goodput_mbit and retransmits, a row per trial. `python
experiments/datta-fund-2023/generate.py goodput.csv` writes every set-up that the file has (a file per
kernel and buffer) beside this one, or into `--out`.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections import defaultdict
from pathlib import Path

Trials = list[tuple[float, float]]
"""Goodput in Mbit/s and retransmitted segments of each trial."""
Cell = tuple[int, int, str]
"""Rate in Mbit/s, round trip in ms, congestion control."""

PROFILES = {"4.15": "linux-4.15", "5.15": "linux-6"}
GOODPUT_SHARE = 0.05
RETRANSMITS_SHARE = 0.2

HEAD = """\
# Written by generate.py from the publication's data: do not edit. Format: docs/how-to/experiments.md.
title = "One flow of BBR or CUBIC on Linux {kernel}, a buffer of {buffer} kB"
source = "Datta and Fund, *Replication: When to Use and When Not to Use BBR*, IMC 2023; data of five trials"
description = \"\"\"
iperf3 -w 100M sends for 60 s from one host of the FABRIC testbed through a router to another: htb with a
bfifo towards the receiver, netem with the whole round trip and room for 10000 packets on the way back, as
the publication's scripts set them. tc counts the buffer's kB in 1024 bytes.{profile_note}

Hosts and router are virtual machines whose offloads the scripts leave on: TSO at the sender, GRO and TSO at
the router, GRO at the receiver. A burst is therefore one packet of the bfifo and gets one ACK (hosts `veth`).

Each cell has two claims: goodput and retransmitted segments of iperf3, the median of the trials. The
tolerance is 5 % (goodput) or 20 % and at least ten segments (retransmissions), or the trial farthest from
the median if that is wider.
\"\"\"
duration = "60s"

[path]
rate = "{first_rate}mbit"
queue = "bfifo limit {buffer}kb"
up_netem = "delay {first_rtt}ms limit 10000"

[hosts."*"]
preset = "veth"
profile = "{profile}"
sysctl = {{ "net.core.rmem_max" = 2147483647, "net.core.wmem_max" = 2147483647 }}

[[flows]]
cc = "bbr"
send_buffer = "100mb"
receive_buffer = "100mb"

[record]
interval = "1s"
rtts = false

[vary]
"path.rate" = [{rates}]
"path.up_netem" = [{delays}]
"flows.cc" = ["bbr", "cubic"]
"""

CLAIM = """
[[claims]]
id = "{measure}-{cc}-{rate}-{rtt}"
source = "{rate} Mbit/s, {rtt} ms, {cc}: {count} trials, {least:g} to {most:g}"
metric = "{metric}"
where = {{ "path.rate" = "{rate}mbit", "path.up_netem" = "delay {rtt}ms limit 10000", "flows.cc" = "{cc}" }}
value = {middle:.6g}
tolerance = {slack:.4g}
unit = "{unit}"
"""


def claim(cell: Cell, measure: str, trials: list[float], share: float, least_slack: float) -> str:
    """The claim of a cell: the median with its slack, widened to what the trials gave."""
    rate, rtt, cc = cell
    middle = statistics.median(trials)
    slack = max(share * middle, least_slack, *(abs(trial - middle) for trial in trials))
    metric, unit = ("goodput_bps", "Mbit/s") if measure == "goodput" else ("retransmits", "segments")
    return CLAIM.format(
        measure=measure,
        metric=metric,
        unit=unit,
        rate=rate,
        rtt=rtt,
        cc=cc,
        count=len(trials),
        least=min(trials),
        most=max(trials),
        middle=middle,
        slack=slack,
    )


def experiment(kernel: str, buffer: int, cells: dict[Cell, Trials]) -> str:
    """The file of one kernel and one buffer."""
    rates = sorted({rate for rate, _, _ in cells})
    rtts = sorted({rtt for _, rtt, _ in cells})
    profile = PROFILES[kernel]
    note = "" if profile.endswith(kernel) else f" The profile {profile} (6.1) stands for Linux {kernel}."
    text = HEAD.format(
        kernel=kernel,
        buffer=buffer,
        profile=profile,
        profile_note=note,
        first_rate=rates[0],
        first_rtt=rtts[0],
        rates=", ".join(f'"{rate}mbit"' for rate in rates),
        delays=", ".join(f'"delay {rtt}ms limit 10000"' for rtt in rtts),
    )
    for cell, trials in sorted(cells.items()):
        text += claim(cell, "goodput", [goodput for goodput, _ in trials], GOODPUT_SHARE, 0)
        text += claim(cell, "retransmits", [resent for _, resent in trials], RETRANSMITS_SHARE, 10)
    return text


def main() -> None:
    """Reads the command line, writes the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="goodput.csv")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the files")
    options = parser.parse_args()
    files: dict[tuple[str, int], dict[Cell, Trials]] = defaultdict(lambda: defaultdict(list))
    with options.data.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            cell = (int(row["rate_mbit"]), int(row["rtt_ms"]), row["cc"])
            trial = (float(row["goodput_mbit"]), float(row["retransmits"]))
            files[row["kernel"], int(row["buffer_kB"])][cell].append(trial)
    for (kernel, buffer), cells in files.items():
        file = options.out / f"linux-{kernel}-{buffer}kb.toml"
        file.write_text(experiment(kernel, buffer, cells), encoding="utf-8")


if __name__ == "__main__":
    main()
