"""`dragstrip shell --engine vm`: programs behind a path in virtual time, the same bytes every time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shell_client import RECEIVE

pytestmark = pytest.mark.usefixtures("linux")

DRAGSTRIP = [sys.executable, "-m", "dragstrip", "shell", "--engine", "vm"]
PATH = ["--rate", "10mbit", "--rtt", "20ms"]
PYTHON = next((name for name in ("/usr/bin/python3", sys.executable) if Path(name).exists()), "python3")
FETCH = """
import time, urllib.request
start = time.monotonic()
content = urllib.request.urlopen("http://server:8000/content").read()
print(len(content), sum(content), time.monotonic() - start)
"""
SEND = """
import socket
listener = socket.create_server(("", 5000))
connection, _ = listener.accept()
connection.sendall(bytes(1_000_000))
connection.close()
listener.accept()
"""


def shell(
    *words: str, folder: Path, given: str | None = None, path: list[str] = PATH
) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, with an input or with none."""
    command = [*DRAGSTRIP, *path, *words]
    taken: dict[str, Any] = {"stdin": subprocess.DEVNULL} if given is None else {"input": given}
    # `python3` in a script is the machine's: the packages of the tests' environment would be 160 MiB in the guest.
    places = [place for place in os.environ["PATH"].split(os.pathsep) if not place.startswith(sys.prefix)]
    environment = {**os.environ, "PATH": os.pathsep.join(places)}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        cwd=folder,
        env=environment,
        **taken,
    )


def words(*command: str) -> list[str]:
    return ["--", *command]


def test_two_runs_give_the_same_bytes(tmp_path: Path) -> None:
    # What could differ: times, process numbers, random numbers, addresses in memory, names of files.
    script = (
        "date +%s.%N; echo $$; head -c 16 /dev/urandom | od -An -tx1; cat /proc/sys/kernel/random/uuid; "
        "grep stack /proc/self/maps; mktemp"
    )
    outputs, documents = [], []
    for number in range(2):
        out = tmp_path / f"out{number}"
        done = shell("--out", str(out), *words("sh", "-c", script), folder=tmp_path)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
        document = json.loads((out / "shell.json").read_text())
        assert str(out) in document.pop("command_line")
        documents.append(document)
    assert outputs[0] == outputs[1]
    assert documents[0] == documents[1]
    # 2026-01-01 and ten seconds, when nothing of the machine is waited for.
    assert outputs[0].startswith("1767225610.")
    other = shell("--seed", "2", *words("sh", "-c", script), folder=tmp_path)
    assert other.stdout.splitlines()[2] != outputs[0].splitlines()[2], "the seed is the machine's randomness"


def test_a_transfer_takes_what_the_path_allows(tmp_path: Path) -> None:
    # A queue that holds all of it: nothing is lost.
    done = shell(
        *("--queue", "pfifo limit 2000", "--json", "--out", "out", "--capture"),
        *("--server", f"{PYTHON} send.py", "--file", "send.py", *words(PYTHON, "receive.py")),
        folder=_with(tmp_path, {"send.py": SEND, "receive.py": RECEIVE}),
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["kind"], document["engine"], document["status"]) == ("shell", "vm", 0)
    assert document["kernel"]["release"].startswith(("5.", "6.", "7."))
    assert len(document["kernel"]["image_sha256"]) == len(document["files"]["sha256"]) == 64
    assert document["files"]["files"] > 100, "Python's library"
    assert "1000000\n" in done.stderr, "what the command prints, beside the document"
    down, up = document["directions"]
    assert [down["direction"], up["direction"]] == ["down", "up"]
    assert down["drops"] == up["drops"] == {}
    # 691 segments of at most 1448 bytes with 52 bytes of headers, and what opens and ends the connection.
    assert 1_000_000 + 691 * 52 <= down["bytes_out"] <= 1_000_000 + 691 * 52 + 10 * 60
    assert (down["packets_in"], down["bytes_in"]) == (down["packets_out"], down["bytes_out"])
    # At 10 Mbit/s of frames, with 14 bytes of Ethernet each.
    least_ns = (down["bytes_out"] + 14 * down["packets_out"]) * 8 * 100
    assert least_ns < document["duration_ns"] < least_ns + 0.5e9
    assert sorted(file.suffix for file in (tmp_path / "out").iterdir()) == [".json", *[".pcapng"] * 3]


def test_a_medium_carries_a_transfer(tmp_path: Path) -> None:
    folder = _with(tmp_path, {"send.py": SEND, "receive.py": RECEIVE})
    commands = ["--server", f"{PYTHON} send.py", "--file", "send.py", *words(PYTHON, "receive.py")]
    options = ["--path", "home DSL", "--json", "--out", "out", "--capture", *commands]
    done = shell(*options, folder=folder, path=[])
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (line,) = document["lines"]
    assert line["links"] == ["r-d", "d-r"]
    down = document["directions"][0]
    assert line["directions"][0]["packets_out"] == down["packets_out"]
    assert line["directions"][0]["lateness"]["p99_ns"] < 1_000_000
    # 12 Mbit/s of cells: 48 of 53 bytes, and 32 cells for a full packet with its PPP.
    assert 9.9e6 > 8e9 * 1_000_000 / document["duration_ns"] > 5e6
    assert sorted(file.name for file in (tmp_path / "out").glob("r-d.pcapng")) == ["r-d.pcapng"]


def _with(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder


def test_a_web_server_and_its_client_agree_twice(tmp_path: Path) -> None:
    (tmp_path / "content").write_bytes(bytes(range(256)) * 800)
    client = [
        "curl",
        "-sS",
        "-w",
        "%{size_download} %{time_total}\n",
        "-o",
        "copy",
        "http://server:8000/content",
    ]
    if shutil.which("curl") is None:
        client = [PYTHON, "-c", FETCH]
    command = [
        *("--file", "content", "--server", f"{PYTHON} -m http.server 8000", "--fetch", "copy"),
        *words(*client),
    ]
    first, second = (shell(*command, folder=tmp_path) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout.split()[0] == "204800"
    assert first.stdout == second.stdout
    assert '[01/Jan/2026 00:00:20] "GET /content HTTP/1.1" 200 -' in first.stderr
    if client[0] == "curl":
        assert (tmp_path / "copy").read_bytes() == (tmp_path / "content").read_bytes()


def test_exit_statuses_are_the_commands(tmp_path: Path) -> None:
    ended = shell(*words("sh", "-c", "kill -TERM $$"), folder=tmp_path)
    assert ended.returncode == 143
    assert "status 143 is that of a command ended by SIGTERM" in ended.stderr
    own = shell("--date", "2030-05-06", *words("sh", "-c", "date -I; exit 255"), folder=tmp_path)
    assert (own.returncode, own.stdout) == (255, "2030-05-06\n")
    assert "ended by" not in own.stderr


def test_input_files_and_outputs_come_and_go(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("secret\n")
    key.chmod(0o600)
    script = (
        "cat; cat key; stat -c %a key; cat /srv/placed; echo back > folder/answer; "
        "(: <>/dev/mem) 2>/dev/null || echo no exchange; exit 7"
    )
    (tmp_path / "folder").mkdir()
    done = shell(
        *("--file", "key", "--file", f"{key}:/srv/placed", "--file", "folder", "--fetch", "folder/answer"),
        *("--fetch", "never", *words("sh", "-c", script)),
        folder=tmp_path,
        given="given\n",
    )
    assert (done.returncode, done.stdout) == (7, "given\nsecret\n600\nsecret\nno exchange\n"), done.stderr
    assert (tmp_path / "folder/answer").read_text() == "back\n"
    assert "--fetch never: the command wrote no such file" in done.stderr


def test_a_command_that_never_ends_or_floods_is_ended(tmp_path: Path) -> None:
    late = shell("--timeout", "2s", *words("sleep", "100"), folder=tmp_path)
    assert late.returncode == 124
    assert "its time was over" in late.stderr
    flood = shell(*words("yes"), folder=tmp_path)
    assert flood.returncode == 125
    assert len(flood.stdout) == 16 << 20
    assert "standard output has more than 16 MiB" in flood.stderr


def test_a_program_cannot_stop_the_machine(tmp_path: Path) -> None:
    script = (
        "for key in c o b; do echo $key > /proc/sysrq-trigger; done; umount /proc/sysrq-trigger; echo alive"
    )
    done = shell("--timeout", "5s", *words("sh", "-c", script), folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def test_a_server_that_does_not_listen_is_one_line(tmp_path: Path) -> None:
    gone = shell("--server", "sh -c 'echo no socket; exit 3'", *words("true"), folder=tmp_path)
    assert gone.returncode == 2
    assert "ended with status 3, its last line: no socket" in gone.stderr.splitlines()[-1]
    silent = shell("--server", "sleep 100", *words("true"), folder=tmp_path)
    assert silent.returncode == 2
    assert "listens on some port within 10 s" in silent.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (words("no-such-program"), "COMMAND: got 'no-such-program', expected a program that exists"),
        ([], "COMMAND: is missing"),
        (["--file", "nowhere", *words("true")], "--file: got 'nowhere'"),
        (["--capture", *words("true")], "--out FOLDER with it"),
        (["--fetch", "../x", *words("true")], "--fetch: got '../x'"),
        (["--date", "2026-02-30", *words("true")], "--date: got '2026-02-30'"),
        (words("./text"), "./text', expected a program for Linux"),
    ],
)
def test_what_cannot_be_is_one_line_with_status_2(given: list[str], complaint: str, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no program\n")
    text.chmod(0o755)
    done = subprocess.run(
        [*DRAGSTRIP, *PATH, *given], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=600
    )
    assert done.returncode == 2
    assert complaint in done.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == [text]
