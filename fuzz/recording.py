"""Recordings from outside: their files, damaged, are read or refused in one line, and nothing else.

    python fuzz/recording.py [--seconds 5] [--seed N] [--replay FOLDER]

The stored recording is damaged in a bit, by a cut, by a piece put elsewhere or by other bytes, in provenance,
scenario or a table. A damage that is not met with `BadInputError` (or with a
recording whose columns are the defined ones) is kept in `failures/recording`, with the command that
replays it. Each process reads 200 of them under a limit on memory and time.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent / "tests" / "recordings" / "format-1"
FAILURES = HERE / "failures" / "recording"
BATCH = 200
MEMORY = 4 << 30
BATCH_SECONDS = 120


def damaged(content: bytes, random_source: random.Random) -> bytes:
    """The content with one thing wrong."""
    at = random_source.randrange(len(content))
    match random_source.randrange(4):
        case 0:
            return content[:at] + bytes([content[at] ^ 1 << random_source.randrange(8)]) + content[at + 1 :]
        case 1:
            return content[:at]
        case 2:
            piece = content[at : at + random_source.randrange(1, 64)]
            there = random_source.randrange(len(content))
            return content[:there] + piece + content[there:]
        case _:
            return content[:at] + random_source.randbytes(random_source.randrange(1, 16)) + content[at + 8 :]


def make(folder: Path, seed: int) -> None:
    """Writes the damaged recording of this number."""
    random_source = random.Random(seed)
    shutil.copytree(SAMPLE, folder)
    # What only we read comes up as often as what a library reads.
    files = sorted(folder.glob("*.json")) * 4 + sorted(folder.glob("*.parquet"))
    file = random_source.choice(files)
    file.write_bytes(damaged(file.read_bytes(), random_source))


def read(folder: Path) -> None:
    """Reads a recording as the report and the measures do; anything but `BadInputError` is a failure."""
    from dragstrip.errors import BadInputError
    from dragstrip.recording import read as read_recording
    from dragstrip.recording.definition import SCHEMA

    try:
        recording = read_recording(folder)
        for name, columns in SCHEMA.items():
            missing = set(columns) - set(recording[name].column_names)
            assert not missing, f"{name} lacks {missing}"
    except BadInputError as error:
        assert "\n" not in str(error), error


def batch(first: int) -> None:
    """Reads the recordings from this number on, in a process of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for seed in range(first, first + BATCH):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "recording"
            make(folder, seed)
            print(seed, flush=True)
            read(folder)


def main() -> int:
    """0: nothing found; 1: a failure was kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.replay is not None:
        read(asked.replay)
        return 0
    if asked.batch is not None:
        batch(asked.batch)
        return 0
    first, end = asked.seed, time.monotonic() + asked.seconds
    while time.monotonic() < end:
        command = [sys.executable, __file__, "--batch", str(first)]
        try:
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, timeout=BATCH_SECONDS, check=False
            )
            status, said, why = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as error:
            status, said, why = -1, (error.stdout or b"").decode(), f"took more than {BATCH_SECONDS} s"
        if status != 0:
            seed = int(said.split()[-1]) if said.split() else first
            kept = FAILURES / str(seed)
            shutil.rmtree(kept, ignore_errors=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            make(kept, seed)
            print(f"{why}\nrecording failed; again:\npython fuzz/recording.py --replay {kept}")
            return 1
        first += BATCH
    print(f"recording: {first - asked.seed} inputs, no failure")
    return 0


if __name__ == "__main__":
    sys.exit(main())
