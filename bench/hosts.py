#!/usr/bin/env python3
"""What `dragstrip compare` takes with N hosts, a flow each: time and peak memory, as a table in Markdown.

    uv run --locked python bench/hosts.py [N ...]

A run simulates one second and includes everything: checks, recording, measures, the table and the report.
Memory is the sum over the command's processes, sampled every 50 ms.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOSTS = (1_000, 2_000, 4_000, 10_000, 20_000, 50_000, 100_000)
PATH = ["--rate", "1gbit", "--rtt", "40ms", "--queue", "bfifo limit 5mb", "--duration", "1s"]
INTERVAL_S = 0.05
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(session: int) -> int:
    """What the processes of a session have in memory."""
    total = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                total += int((folder / "statm").read_text().split()[1]) * PAGE_BYTES
        except (OSError, IndexError):  # it has ended
            continue
    return total


def measured(hosts: int) -> tuple[float, float, int]:
    """Wall-clock and processor seconds, and peak bytes, of one command; ends the program if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "dragstrip", "compare", *PATH, "--flows", str(hosts)]
        command += ["--out", str(Path(folder) / "out"), "cubic"]
        before = os.times()
        started = time.monotonic()
        process = subprocess.Popen(  # noqa: S603  (our own interpreter, our own module)
            command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        peak = 0
        while process.poll() is None:
            peak = max(peak, resident_bytes(process.pid))
            time.sleep(INTERVAL_S)
        elapsed = time.monotonic() - started
        after = os.times()
        if process.returncode != 0:
            sys.exit(f"{hosts} hosts: {process.stderr.read() if process.stderr else ''}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return elapsed, used, peak


def main() -> None:
    """Prints the table, a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("hosts", nargs="*", type=int, default=HOSTS, metavar="N")
    sys.stdout.write("| hosts | seconds | of a processor | peak memory |\n|---|---|---|---|\n")
    for hosts in parser.parse_args().hosts or HOSTS:
        elapsed, used, peak = measured(hosts)
        sys.stdout.write(f"| {hosts:,} | {elapsed:.1f} | {used:.1f} s | {peak / 2**20:,.0f} MiB |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
