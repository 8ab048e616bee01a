"""`dragstrip.shell` in real time from Python; skipped by name where this machine lacks what it needs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import dragstrip

PATH: dict[str, Any] = {"rate": "10mbit", "rtt": "20ms", "offline": True}
ECHO = """
import socket
listener = socket.create_server(("", 5000))
print("listening", flush=True)
while True:
    connection, _ = listener.accept()
    connection.sendall(connection.recv(100).upper())
    connection.close()
"""
ASK = """
import os, socket, sys
with socket.create_connection((os.environ["DRAGSTRIP_SERVER"], 5000)) as connection:
    connection.sendall(sys.stdin.buffer.read())
    connection.shutdown(socket.SHUT_WR)
    print(connection.recv(100).decode())
print("done", file=sys.stderr)
open("answer", "w").write("back")
"""


@pytest.fixture(scope="module", autouse=True)
def allowed() -> None:
    if lacks := dragstrip.shell(**PATH).missing():
        pytest.skip(lacks)


def test_streams_files_and_figures_are_a_runs_own(tmp_path: Path) -> None:
    server = [sys.executable, "-c", ECHO]
    with dragstrip.shell(**PATH, server=server, folder=tmp_path, timeout_s=20) as shell:
        run = shell.run(sys.executable, "-c", ASK, stdin="given", fetch=["answer", "never"])
    assert (run.status, run.stdout, run.stderr) == (0, "GIVEN\n", "done\n")
    assert run.server_output == "listening\n"
    assert run.files == {"answer": b"back"}
    assert run["engine"] == "netns"
    assert run["directions"][0]["bytes_out"] > 100
    assert run["flooded"] is None


def test_what_ends_a_command_is_its_status(tmp_path: Path) -> None:
    shell = dragstrip.shell(**PATH, timeout_s=1, folder=tmp_path)
    assert shell.run("sh", "-c", "kill -TERM $$").status == 143
    late = shell.run("sleep", "30")
    assert (late.status, late.timed_out) == (124, True)
    flood = shell.run("yes")
    assert (flood.status, len(flood.stdout), flood["flooded"]) == (125, 16 << 20, "standard output")
    with pytest.raises(dragstrip.BadInputError, match="no-such-program"):
        shell.run("no-such-program")
    with pytest.raises(dragstrip.BadInputError, match="its last line: no socket"):
        shell.changed(server="sh -c 'echo no socket; exit 3'").run("true")


def test_an_interrupt_ends_the_programs(tmp_path: Path) -> None:
    script = (
        "import dragstrip, signal, sys\n"
        "def interrupt(*_): raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGALRM, interrupt)\n"
        f"shell = dragstrip.shell(**{PATH!r})\n"
        "signal.alarm(3)\n"
        "try:\n"
        "    shell.run('sleep', '4321')\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60
    )
    assert done.stdout == "interrupted\n", done.stderr
    end = time.monotonic() + 60  # the kernel ends a namespace's processes one by one
    while "sleep 4321" in processes() and time.monotonic() < end:
        time.sleep(0.05)
    assert "sleep 4321" not in processes()


def processes() -> str:
    return subprocess.run(["/bin/ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
