"""What `dragstrip inspect` takes for connections of a single packet each, as a scan or a flood leaves them.

    python bench/lone.py [--connections 10000000]

Writes a capture (70 bytes a connection) to a temporary folder, reads it, prints processor time and memory.
"""

from __future__ import annotations

import argparse
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

FRAME = (
    bytes(12) + b"\x08\x00" + struct.pack(">BBHHHBBH", 0x45, 0, 40, 0, 0x4000, 64, 6, 0)
    + bytes([10, 0, 0, 1, 192, 168, 0, 1])
    + struct.pack(">HHIIBBHHH", 1, 80, 0, 0, 5 << 4, 16, 500, 0, 0)
)  # fmt: skip
SOURCE, PORT = 16 + 26, 16 + 34
PIECE = 1 << 20


def write(path: Path, connections: int) -> None:
    """ACKs a microsecond apart, each from another address or port."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1))
        record = struct.pack("<IIII", 0, 0, len(FRAME), len(FRAME)) + FRAME
        for first in range(0, connections, PIECE):
            numbers = np.arange(first, min(first + PIECE, connections), dtype=np.uint64)
            rows = np.tile(np.frombuffer(record, dtype=np.uint8), (len(numbers), 1))
            stamps = np.stack([10**9 + numbers // 10**6, numbers % 10**6], axis=1).astype("<u4")
            rows[:, 0:8] = stamps.view(np.uint8)
            sources = (0x0A000000 + numbers // 60_000).astype(">u4")[:, None]
            rows[:, SOURCE : SOURCE + 4] = sources.view(np.uint8)
            ports = (1 + numbers % 60_000).astype(">u2")[:, None]
            rows[:, PORT : PORT + 2] = ports.view(np.uint8)
            file.write(rows.tobytes())


def main() -> None:
    """Writes, reads, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connections", type=int, default=10**7)
    connections = parser.parse_args().connections
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lone.pcap"
        write(path, connections)
        size = path.stat().st_size
        program = [sys.executable, "-m", "dragstrip", "inspect", str(path)]
        child = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # noqa: S603 - our own program
        assert child.stdout is not None
        said = child.stdout.read().decode()
        _, status, used = os.wait4(child.pid, 0)
    if status != 0 or f"{connections} connections of a single packet" not in " ".join(said.split()):
        raise SystemExit(said)
    took = used.ru_utime + used.ru_stime
    size_mb, memory_gb = size / 1e6, used.ru_maxrss / 1e6
    print(f"{connections} connections, {size_mb:.0f} MB: {took:.1f} s of CPU time, {memory_gb:.2f} GB")  # noqa: T201


if __name__ == "__main__":
    main()
