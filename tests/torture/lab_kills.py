"""A run on the hosts of a lab, killed at random moments while its path is up: every host is as it was a moment later.

By SIGKILL to the program alone, to it with its connections, to the agent of one host, to that one's guardian, or to the
sshd of one host's connection. Afterwards a listing of every host is that of before: interfaces, queue disciplines, addresses,
routes, settings, offloads, the journal, processes of ours.
"""

from __future__ import annotations

import atexit
import functools
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from common import ROOT, CannotRunError, Ended, check_answer, end, environment, leftovers, main, start

sys.path.insert(0, str(ROOT / "tests"))
from ssh.namespaces import LabOfNamespaces, missing, three

RACE = (
    *("compare", "cubic", "--engine", "ssh", "--rate", "5mbit", "--rtt", "0ms"),
    *("--queue", "bfifo limit 30kb", "--change", "1s rate=2mbit", "--duration", "2s", "--no-report"),
)
UP_S = 4.0
"""How long a path is there: it settles, is pinged, and carries traffic for two seconds."""
WITHIN_S = 120.0
VICTIMS = ("the program", "the program with its connections", "an agent", "a guardian", "an sshd")


@functools.cache
def agent() -> Path:
    """What runs on the hosts, compiled once for all trials."""
    from dragstrip.engines.agent import binaries
    from dragstrip.errors import DragstripError

    try:
        return binaries.program()
    except DragstripError as error:
        raise CannotRunError(str(error)) from None


@functools.cache
def course() -> tuple[LabOfNamespaces, Path, Path]:
    """The lab, its file, and a folder for sockets with a short name; they end with this process."""
    if why := missing():
        raise CannotRunError(why)
    stack = ExitStack()
    atexit.register(stack.close)
    folder, runtime = (Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp"))) for _ in range(2))
    lab, file = stack.enter_context(three(folder))
    file.write_text(file.read_text().replace('revert_after = "30s"', 'revert_after = "6s"'))
    stack.callback(lab.ask_masters_to_end, runtime)
    return lab, file, runtime


def kill(victim: str, host: str, group: int) -> None:
    """Ends the victim, as far as it is there."""
    space = course()[0].hosts[host]
    if victim == "the program":
        os.kill(group, signal.SIGKILL)
    elif victim == "the program with its connections":
        os.killpg(group, signal.SIGKILL)
    else:
        agents = space.agents()
        sessions = [number for number, words in space.processes().items() if words.startswith("sshd: root")]
        found = {"an agent": agents[:1], "a guardian": agents[1:], "an sshd": sessions}[victim]
        if found:
            space.run("sh", "-c", f"kill -9 {' '.join(map(str, found))}; true")


def await_undone(before: dict[str, dict[str, str]]) -> None:
    """Waits until every host is as it was."""
    until = time.monotonic() + WITHIN_S
    while (after := course()[0].listing()) != before:
        changed = {
            f"{host}: {what}": after[host][what]
            for host in before
            for what in before[host]
            if before[host][what] != after[host][what]
        }
        assert time.monotonic() < until, f"not as it was: {changed}"
        time.sleep(0.2)


def trial(number: int, folder: Path) -> str:
    dice = random.Random(number)
    lab, file, runtime = course()
    more = {"DRAGSTRIP_AGENT": str(agent()), "DRAGSTRIP_SSH": lab.ssh, "XDG_RUNTIME_DIR": str(runtime)}
    before = lab.listing()
    victim, host = VICTIMS[number % len(VICTIMS)], dice.choice(sorted(lab.hosts))
    out = folder / "out"
    process = start(folder, *RACE, "--lab", str(file), "--out", str(out), env=environment(folder, **more))
    router, until = lab.hosts["center"], time.monotonic() + WITHIN_S
    while "htb" not in router.run("tc", "qdisc", "show", "dev", "eth2") and process.poll() is None:
        assert time.monotonic() < until, "its path does not come up"
        time.sleep(0.02)
    time.sleep(dice.uniform(0, UP_S))
    up = "htb" in router.run("tc", "qdisc", "show", "dev", "eth2") or "bfifo" in router.run("tc", "qdisc")
    kill(victim, host, process.pid)
    ended: Ended = end(process)
    if victim.startswith("the program"):
        assert ended.status in (0, -signal.SIGKILL), str(ended)
    else:
        check_answer(ended, 0, 1)
        assert not leftovers(folder), f"left behind: {leftovers(folder)}"
    await_undone(before)
    return f"{victim} {'with its path up' if up else 'later'}"


if __name__ == "__main__":
    main("lab_kills", trial, count=200, sample=3, about=__doc__)
