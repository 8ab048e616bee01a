"""Recordings from outside: their files, damaged, are read or refused in one line, and nothing else.

    python fuzz/recording.py [--seconds 5] [--count N] [--seed N] [--summary] [--replay FOLDER]

The stored recording is damaged in a bit, by a cut, by a piece put elsewhere or by other bytes, in provenance,
scenario or a table. A damage that is not met with `BadInputError` (or with a
recording whose columns are the defined ones) is kept in `failures/recording`, with the command that
replays it. Each process reads 500 of them under a limit on memory and time. With --summary, the last
line is the one that tests/torture/README.md describes, and what fails is kept in a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent / "tests" / "recordings" / "format-1"
FAILURES = HERE / "failures" / "recording"
BATCH = 500
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


def damage(folder: Path, seed: int) -> Path:
    """Damages the sound recording in `folder` as this number says; gives the damaged file."""
    random_source = random.Random(seed)
    # What only we read comes up as often as what a library reads.
    files = sorted(folder.glob("*.json")) * 4 + sorted(folder.glob("*.parquet"))
    file = random_source.choice(files)
    file.write_bytes(damaged(file.read_bytes(), random_source))
    return file


def make(folder: Path, seed: int) -> None:
    """Writes the damaged recording of this number."""
    shutil.copytree(SAMPLE, folder)
    damage(folder, seed)


def read(folder: Path) -> None:
    """Reads a recording as the report and the measures do; anything but `BadInputError` is a failure."""
    from dragstrip.errors import BadInputError
    from dragstrip.model.recording import read as read_recording
    from dragstrip.model.recording.definition import SCHEMA

    try:
        recording = read_recording(folder)
        for name, columns in SCHEMA.items():
            missing = set(columns) - set(recording[name].column_names)
            assert not missing, f"{name} lacks {missing}"
    except BadInputError as error:
        assert "\n" not in str(error), error


def batch(first: int, count: int) -> None:
    """Reads the recordings from this number on, in a process of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "recording"
        shutil.copytree(SAMPLE, folder)
        for seed in range(first, first + count):
            print(seed, flush=True)
            file = damage(folder, seed)
            read(folder)
            shutil.copyfile(SAMPLE / file.name, file)


@dataclass
class Failure:
    """What was found, and the folder that it is found in again."""

    why: str
    kept: Path

    @property
    def replay(self) -> str:
        """The command."""
        return f"python fuzz/recording.py --replay {self.kept}"


def run(first: int, count: int, seconds: float, failures: Path) -> tuple[int, Failure | None]:
    """Reads damaged recordings until the count, the time or a failure; gives how many, and the failure."""
    tried, end = 0, time.monotonic() + seconds
    while tried < count and time.monotonic() < end:
        here = min(BATCH, count - tried)
        command = [sys.executable, __file__, "--batch", str(first + tried), "--count", str(here)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BATCH_SECONDS, check=False)  # noqa: S603
            status, said, why = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as error:
            status, said, why = -1, (error.stdout or b"").decode(), f"took more than {BATCH_SECONDS} s"
        if status != 0:
            seed = int(said.split()[-1]) if said.split() else first + tried
            kept = failures / str(seed)
            shutil.rmtree(kept, ignore_errors=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            make(kept, seed)
            return seed - first + 1, Failure(why, kept)
        tried += here
    return tried, None


def main() -> int:
    """0: nothing found; 1: a failure was kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--count", type=int, default=sys.maxsize)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.replay is not None:
        read(asked.replay)
        return 0
    if asked.batch is not None:
        batch(asked.batch, asked.count)
        return 0
    began = time.monotonic()
    failures = Path(tempfile.mkdtemp(prefix="dragstrip-fuzz-")) if asked.summary else FAILURES
    tried, failure = run(asked.seed, asked.count, asked.seconds, failures)
    if asked.summary:
        if failure is None:
            failures.rmdir()
        found = [] if failure is None else [{"replay": failure.replay, "what": failure.why[-2000:]}]
        summary = {
            "kind": "fuzz-recording",
            "wanted": tried if asked.count == sys.maxsize else asked.count,
            "tried": tried,
            "failures": found,
            "outcomes": {"held": tried - len(found)},
            "skipped": None,
            "seconds": round(time.monotonic() - began, 1),
        }
        print(json.dumps(summary))
    elif failure is None:
        print(f"recording: {tried} inputs, no failure")
    else:
        print(f"{failure.why}\nrecording failed; again:\n{failure.replay}")
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main())
