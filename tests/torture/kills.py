"""SIGKILL at a random moment of every command that writes; sweeps have theirs in tests/sweep/test_faults.py too.

What is there afterwards is the state of before or the new one, never a half; whatever was finished can be
read; the next start of the command removes what the killed one left.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path

from common import EXPERIMENT, Ended, check_answer, dragstrip, leftovers, main, start, written

EXPERIMENT_FILE = "path.toml"
PATH = ("--rate", "2mbit", "--rtt", "20ms", "--queue", "bfifo limit 30kb", "--duration", "1s")
RUN = ("run", EXPERIMENT_FILE, "--repeat", "6", "--out", "out")
COMPARE = (
    "compare",
    *PATH,
    "--loss",
    "0.01%",
    "--repeat",
    "15",
    "--out",
    "out",
    "reno",
    "cubic",
)  # in processes
SWEEP = ("sweep", EXPERIMENT_FILE, "--vary", "flow.cc=reno,cubic", "--repeat", "3", "--out", "out")
SOON_S = 0.05
"""Before that there is only the interpreter."""
LASTED: dict[tuple[str, ...], float] = {}
"""Seconds that a command took when it ran to its end: on a busy machine several times what an idle one takes."""


def whole(folder: Path, *words: str) -> Ended:
    """Runs a command to its end."""
    began = time.monotonic()
    ended = dragstrip(folder, *words)
    LASTED[words] = time.monotonic() - began
    return ended


def lasts(*words: str) -> float:
    """Seconds that a command takes which needs no more than the experiment; tried out if it never ran whole."""
    if words not in LASTED:
        with tempfile.TemporaryDirectory(prefix="dragstrip-torture-") as scratch:
            (Path(scratch) / EXPERIMENT_FILE).write_text(EXPERIMENT)
            check_answer(whole(Path(scratch), *words), 0)
    return LASTED[words]


def kill(folder: Path, draws: random.Random, within_s: float, *words: str) -> bool:
    """Starts a command and kills it in this time; whether it still ran. Its workers have ended too then."""
    process = start(folder, *words)
    time.sleep(draws.uniform(SOON_S, max(2 * SOON_S, within_s)))
    hit = process.poll() is None
    process.kill()
    process.communicate()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return hit
        time.sleep(0.02)
    raise AssertionError(f"workers of a killed {words[0]} live on")


def run(words: tuple[str, ...], folder: Path, draws: random.Random) -> str:
    """A run's folder is finished, taken anew, or refused with every recording in it readable."""
    from dragstrip.model.recording import read

    hit = kill(folder, draws, lasts(*words), *words)
    out = folder / "out"
    finished = (out / "result.json").exists() and not (out / "PARTIAL").exists()
    again = dragstrip(folder, *words)
    check_answer(again, 2 if finished else 0, 2)
    assert not leftovers(folder), f"left behind: {leftovers(folder)}"
    for scenario in out.glob("runs/*/scenario.json"):
        read(scenario.parent)
    if finished:
        check_answer(dragstrip(folder, "report", "out"), 0)
        return "killed late" if hit else "not hit"
    if again.status == 2:
        assert "cannot be resumed" in again.error, f"it does not say why: {again}"
        assert list(out.glob("runs/*/scenario.json")), "refused without a recording"
        return "refused"
    return "taken"


def report(words: tuple[str, ...], folder: Path, draws: random.Random) -> str:
    """A report is the old one or the new one, which are the same; nothing else changes."""
    check_answer(dragstrip(folder, *words), 0)
    check_answer(whole(folder, "report", "out"), 0)
    before = written(folder / "out")
    hit = kill(folder, draws, lasts("report", "out"), "report", "out")
    check_answer(dragstrip(folder, "report", "out"), 0)
    assert written(folder / "out") == before, "a killed report has changed something"
    assert not leftovers(folder), f"left behind: {leftovers(folder)}"
    return "killed" if hit else "not hit"


def kernel(folder: Path, draws: random.Random) -> str:
    """A kernel that is taken in again is the old one or the new one, whole."""
    from dragstrip.io import checksums

    contents = [random.Random(at).randbytes(8_000_000) for at in (1, 2)]
    for at, content in enumerate(contents):
        modules = folder / str(at) / "lib/modules/6.1-a/kernel/net"
        modules.mkdir(parents=True)
        (folder / str(at) / "boot").mkdir()
        (folder / str(at) / "boot/vmlinuz-6.1-a").write_bytes(bytes(0x202) + b"HdrS" + content)
        for name in ("sch_htb", "sch_fq", "tcp_bbr"):
            (modules / f"{name}.ko").write_bytes(b"\0depends=\0" + content[: 1_000_000 * (at + 1)])
    check_answer(whole(folder, "kernel", "use", "0"), 0)
    hit = kill(folder, draws, lasts("kernel", "use", "0"), "kernel", "use", "1")
    kept = folder / "cache" / "kernels" / "6.1-a"
    listed = checksums.read(kept)
    assert listed is not None, "a kernel without its checksums"
    for name in listed:
        checksums.check(kept, name)
    listed_now = dragstrip(folder, "kernel", "list", "--json")
    check_answer(listed_now, 0)
    assert '"in_use": true' in listed_now.stdout, "no kernel is in use"
    check_answer(dragstrip(folder, "kernel", "use", "1"), 0)
    assert (kept / "vmlinuz").read_bytes().endswith(contents[1])
    assert not leftovers(folder), f"left behind: {leftovers(folder)}"
    return "killed" if hit else "not hit"


def sweep(folder: Path, draws: random.Random) -> str:
    """A sweep goes on where it was, to the dataset of one that was never killed."""
    hit = kill(folder, draws, lasts(*SWEEP), *SWEEP)
    check_answer(dragstrip(folder, *SWEEP), 0)
    assert not leftovers(folder), f"left behind: {leftovers(folder)}"
    once = written(folder / "out" / "dataset")
    whole = (*SWEEP[:-1], "whole")
    check_answer(dragstrip(folder, *whole), 0)
    assert written(folder / "whole" / "dataset") == once, "the dataset differs"
    return "killed" if hit else "not hit"


def trial(number: int, folder: Path) -> str:
    """Number's command, killed at number's moment."""
    draws = random.Random(number)
    (folder / EXPERIMENT_FILE).write_text(EXPERIMENT)
    match number % 6:
        case 0:
            return f"sweep {sweep(folder, draws)}"
        case 1:
            return f"run {run(RUN, folder, draws)}"
        case 2:
            return f"compare {run(COMPARE, folder, draws)}"
        case 3:
            return f"kernel use {kernel(folder, draws)}"
        case 4:
            return f"report {report(RUN, folder, draws)}"
        case _:
            return f"report of a sweep {report(SWEEP, folder, draws)}"


if __name__ == "__main__":
    main("kills", trial, count=500, sample=3, about=__doc__)
