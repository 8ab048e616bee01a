"""Runs one program once and says what it used."""

# ruff: noqa: S603 -- starting the programs is the point; their command lines are built in cases.py

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from statistics import median

TIMEOUT_S = 900


class RunError(Exception):
    """A program did not give a result; the text says why."""


@dataclass(frozen=True)
class Sample:
    """One process: what it delivered and what it used. CPU is per repetition, without a set-up it states."""

    data_packets: int
    goodput_mbps: float
    user_s: float
    system_s: float
    peak_rss_kib: int


def run(command: list[str], repeat: int = 1) -> Sample:
    """Runs `command`, which prints a JSON object, and takes its CPU time from the kernel's accounting.

    Peak memory is the program's own word (VmHWM): the kernel's figure for a child starts from
    what the parent had resident when it forked.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr)
        timer = threading.Timer(TIMEOUT_S, process.kill)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            timer.cancel()
        texts = []
        for stream in (stdout, stderr):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    if process.returncode != 0:
        reason = texts[1].strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
        raise RunError(reason[0])
    result = _last_json("\n".join(texts), command)
    total_s = usage.ru_utime + usage.ru_stime
    share = (1 - result.get("setup_cpu_s", 0.0) / total_s) / repeat
    return Sample(
        data_packets=int(result["data_packets"]),
        goodput_mbps=float(result["goodput_mbps"]),
        user_s=usage.ru_utime * share,
        system_s=usage.ru_stime * share,
        peak_rss_kib=int(result["peak_rss_kib"]),
    )


def _last_json(text: str, command: list[str]) -> dict[str, float]:
    """The last line that is a JSON object: ns-2 prints other things before it."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            result: dict[str, float] = json.loads(line)
            return result
    raise RunError(f"{command[0]} printed no result")


@dataclass(frozen=True)
class Summary:
    """Several samples of the same thing: medians, and how far the CPU times spread."""

    runs: int
    data_packets: int
    goodput_mbps: float
    user_s: float
    cpu_s: float
    """User and system time."""
    spread: float
    """(slowest - fastest) / median of the user time."""
    peak_rss_kib: int

    @property
    def packets_per_cpu_s(self) -> float:
        """Data packets delivered per second of user CPU."""
        return self.data_packets / self.user_s


def summarise(samples: list[Sample]) -> Summary:
    """Medians."""
    user = [sample.user_s for sample in samples]
    return Summary(
        runs=len(samples),
        data_packets=round(median(sample.data_packets for sample in samples)),
        goodput_mbps=median(sample.goodput_mbps for sample in samples),
        user_s=median(user),
        cpu_s=median(sample.user_s + sample.system_s for sample in samples),
        spread=(max(user) - min(user)) / median(user),
        peak_rss_kib=round(median(sample.peak_rss_kib for sample in samples)),
    )
