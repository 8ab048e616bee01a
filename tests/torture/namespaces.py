"""A run in network namespaces, killed at random moments: nothing of it is left on the machine.

By SIGKILL to the program alone, to the agent alone, or to everything at once. Afterwards no process of it runs, no namespace
of it is held by anybody, and a listing of the machine is that of before: interfaces, queue disciplines, named namespaces,
settings, modules, congestion controls, files of ours.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

from common import CannotRunError, check_answer, end, environment, leftovers, main, start

RACE = (
    *("compare", "reno", "cubic", "--together", "--rate", "5mbit", "--rtt", "0ms"),
    *("--queue", "bfifo limit 30kb", "--duration", "1s", "--engine", "netns", "--no-report"),
)
RUN_S = 4.0
"""Of the agent's: it builds the path, waits for it to settle, verifies it, and runs for a second."""
GONE_WITHIN_S = 60.0
"""The kernel takes a dead process's namespaces apart in its own time."""


@functools.cache
def agent() -> Path:
    """The program that makes the namespaces, compiled once for all trials."""
    from dragstrip.engines.netns import host
    from dragstrip.errors import DragstripError

    try:
        host.about()
        return host.program()
    except DragstripError as error:
        raise CannotRunError(str(error)) from None


@functools.cache
def whole_s() -> float:
    """What a run takes that nobody kills."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        check_answer(end(begin(Path(folder))), 0)
        return time.monotonic() - began


def begin(folder: Path):  # noqa: ANN201 - as common.start
    return start(folder, *RACE, env={**environment(folder), "DRAGSTRIP_AGENT": str(agent())})


def listing() -> dict[str, str]:
    """What of the machine a run could have left changed."""
    found = {}
    for folder, _, files in os.walk("/proc/sys/net"):
        for name in files:
            file = Path(folder, name)
            try:
                found[str(file)] = file.read_text()
            except OSError:
                continue
    for what, command in (
        ("interfaces", ("ip", "-o", "link")),
        ("addresses", ("ip", "-o", "address")),
        ("disciplines", ("tc", "qdisc")),
    ):
        if shutil.which(command[0]):
            found[what] = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found["devices"] = _names(Path("/sys/class/net"))
    modules = Path("/proc/modules")
    lines = modules.read_text().splitlines() if modules.exists() else []
    found["modules"] = " ".join(sorted(line.split()[0] for line in lines))
    for place in ("/run/netns", "/sys/fs/bpf"):
        found[place] = _names(Path(place))
    return found


def _names(folder: Path) -> str:
    return " ".join(sorted(file.name for file in folder.iterdir())) if folder.is_dir() else ""


def differences(before: dict[str, str]) -> list[str]:
    """What of the listing is another now."""
    now = listing()
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def agents(group: int) -> list[int]:
    """The agents of a process group."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[0] == str(agent()).encode() and os.getpgid(int(process.name)) == group:
                found.append(int(process.name))
        except (OSError, ProcessLookupError):
            continue
    return found


def held(processes: list[Path]) -> set[str]:
    """The network namespaces that these processes live in or hold by a file."""
    found = set()
    for process in processes:
        try:
            links = [process / "ns/net", *(process / "fd").iterdir()]
        except OSError:
            continue
        for link in links:
            try:
                found.add(str(link.readlink()))
            except OSError:
                continue
    return {name for name in found if name.startswith("net:[")}


def everybody() -> list[Path]:
    return list(Path("/proc").glob("[0-9]*"))


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def trial(number: int, folder: Path) -> str:
    dice = random.Random(number)
    agent()
    before, ours = listing(), held([Path("/proc/self")])
    victim = ("the program", "the agent", "all")[number % 3]
    process = begin(folder)
    if number % 4:
        while not agents(process.pid) and process.poll() is None:
            time.sleep(0.01)
        time.sleep(dice.uniform(0, RUN_S))
    else:
        time.sleep(dice.uniform(0, whole_s()))
    running = agents(process.pid)
    theirs = held([Path(f"/proc/{one}") for one in running]) - ours
    if victim == "the program":
        process.kill()
    elif victim == "all":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        for one in running:
            os.kill(one, signal.SIGKILL)
    ended = end(process)
    if victim == "the agent":
        check_answer(ended, 0 if not running else 1, 0)
    until = time.monotonic() + GONE_WITHIN_S
    while alive(process.pid) or theirs & held(everybody()):
        assert time.monotonic() < until, f"still there: {agents(process.pid)}, {theirs & held(everybody())}"
        time.sleep(0.05)
    assert not (changed := differences(before)), f"changed: {changed}"
    if victim == "the agent":
        assert not leftovers(folder), f"left behind: {leftovers(folder)}"
    return f"{victim} {'in a run' if theirs else 'before or after'}"


if __name__ == "__main__":
    main("namespaces", trial, count=200, sample=3, about=__doc__)
