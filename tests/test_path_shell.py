"""`dragstrip.shell` and the mark `path`, as far as they need neither a kernel nor a TUN device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.errors import BadInputError
from dragstrip.interop.path_shell.path import Ending
from dragstrip.interop.path_shell.shell import ShellRun
from test_testing import PLUGIN

PATH: dict[str, Any] = {"rate": "10mbit", "rtt": "40ms"}
DIRECTION = {"direction": "down", "bytes_out": 1_000, "drops": {"full": 2}, "marks": 0}


def ran(status: int = 0, **streams: bytes) -> ShellRun:
    """A run as an engine leaves it."""
    document = {
        "command": ["curl", "http://server/"],
        "command_line": "dragstrip shell -- curl http://server/",
        "duration_ns": 2_000_000_000,
        "timed_out": status == 124,
        "path": {"lines": ["down: 10 Mbit/s"]},
        "directions": [DIRECTION, {**DIRECTION, "direction": "up"}],
    }
    names = {"out": "standard output", "errors": "standard error", "server": "the server's output"}
    printed = {names[name]: content for name, content in streams.items()}
    return ShellRun(Ending(document, status, ["down: 1000 bytes"], printed, {"copy": b"content"}))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"rate": "10mbit"}, "rtt: is missing"),
        ({"path": "LTE", "engine": "sim"}, "engine: got 'sim', expected netns or vm"),
        ({**PATH, "duration": "3s"}, "duration: is not an option of shell"),
        ({**PATH, "timeout": "soon"}, "timeout: got 'soon', expected a time"),
        ({**PATH, "timeout_s": 0}, "timeout: got '0s', expected a time above zero"),
        ({**PATH, "timeout": "6h"}, "timeout: got '6h', expected"),
        ({**PATH, "files": "site"}, "files: got 'site', expected a list of files"),
        ({**PATH, "files": ["nowhere"]}, "files: got 'nowhere', expected a file or a folder that exists"),
        ({**PATH, "server": "'"}, 'server: got "\'", expected a command'),
        ({**PATH, "server": []}, "server: got '[]', expected a command"),
        ({**PATH, "date": "2026-01-01"}, "date: is for engine vm"),
        ({**PATH, "folder": "nowhere"}, "folder: got 'nowhere', expected a folder that exists"),
        ({**PATH, "cc": "tahoe-2", "engine": "vm"}, "cc: got "),
        ({**PATH, "engin": "vm"}, 'engin: is not an option of shell; did you mean "engine"'),
    ],
)
def test_what_cannot_be_is_an_error_that_names_the_argument(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInputError) as error:
        dragstrip.shell(**options)
    assert complaint in str(error.value)


def test_a_shell_shows_its_path_and_takes_other_options() -> None:
    shell = dragstrip.shell(**PATH, server="python3 -m http.server 80", timeout_s=60)
    assert repr(shell) == "<Shell: netns; rate=10mbit rtt=40ms; server python3 -m http.server 80; 0 runs>"
    assert "<svg" in shell._repr_html_()
    slow = shell.changed(rate="1mbit", queue="fq_codel", server=["nc", "-l", "80"])
    assert repr(slow) == "<Shell: netns; rate=1mbit rtt=40ms queue=fq_codel; server nc -l 80; 0 runs>"
    assert repr(shell.changed(path="LTE")).startswith("<Shell: netns; path=LTE; server python3")
    assert slow.runs is shell.runs
    with pytest.raises(BadInputError, match=r"^command: a program and its arguments"):
        shell.run()
    with pytest.raises(BadInputError, match=r"capture: is for engine vm"):
        shell.run("true", capture=["d"])


def test_a_run_has_the_commands_ends_as_attributes(tmp_path: Path) -> None:
    run = ran(7, out=b"printed \xff\n", errors=b"a complaint\n", server=b"GET /\n")
    assert (run.status, run.duration_s, run.timed_out) == (7, 2.0, False)
    assert (run.stdout, run.stdout_bytes) == ("printed \ufffd\n", b"printed \xff\n")
    assert (run.stderr, run.server_output) == ("a complaint\n", "GET /\n")
    assert run.document == dict(run)
    assert repr(run) == "<ShellRun: curl http://server/: status 7 after 2.000 s; down 1,000 bytes>"
    assert "standard error:\na complaint" in str(run)
    shown = run._repr_html_()
    assert "full 2" in shown
    assert "a complaint" in shown
    run.write(tmp_path / "out")
    assert (tmp_path / "out/copy").read_bytes() == b"content"
    assert (tmp_path / "out/shell.json").is_file()
    with pytest.raises(BadInputError, match="folder"):
        run.write(tmp_path / "out")
    assert "ended by its timeout" in repr(ran(124))


def printed_by_pytest(folder: Path, text: str, **environment: str) -> str:
    """What pytest prints about a file with this text."""
    (folder / "test_mine.py").write_text(text)
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        *PLUGIN,
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        ".",
    ]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    return done.stdout + done.stderr


def test_a_test_runs_on_each_path_and_is_skipped_with_what_helps(tmp_path: Path) -> None:
    shown = printed_by_pytest(
        tmp_path,
        "import pytest\n"
        "@pytest.mark.path('LTE', 'cable', engine='vm')\n"
        "@pytest.mark.path(rate='10mbit', rtt='40ms', engine='vm')\n"
        "def test_mine(path_shell):\n"
        "    raise AssertionError('it has run')\n",
        PATH="/nowhere",
    )
    assert "3 skipped" in shown, shown
    assert "qemu-system-x86_64 is not installed: apt-get install qemu-system-x86" in shown


def test_a_test_without_a_mark_and_a_path_that_cannot_be_are_errors(tmp_path: Path) -> None:
    shown = printed_by_pytest(tmp_path, "def test_mine(path_shell):\n    pass\n")
    assert 'a mark such as @pytest.mark.path("LTE", engine="vm")' in shown
    shown = printed_by_pytest(
        tmp_path,
        "import pytest\n@pytest.mark.path('LTEE', engine='vm')\ndef test_mine(path_shell):\n    pass\n",
    )
    assert "1 error" in shown, shown
    assert "BadInputError: path: got" in shown


def test_the_runs_of_a_test_that_fails_are_in_its_report(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import sys, pytest\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_path_shell import ran\n"
        "from dragstrip.interop.path_shell.shell import Shell\n"
        "Shell.missing = lambda self: ''\n"
        "def run(self, *words):\n"
        "    self.runs.append(ran(7, errors=b'a complaint'))\n"
        "    return self.runs[-1]\n"
        "Shell.run = run\n"
    )
    shown = printed_by_pytest(
        tmp_path,
        "import pytest\n"
        "@pytest.mark.path('LTE')\n"
        "def test_mine(path_shell):\n"
        "    assert path_shell.run('curl').status == 0\n",
    )
    assert "dragstrip: curl http://server/: status 7 after 2.000 s" in shown, shown
    assert "repeat: dragstrip shell -- curl http://server/" in shown
    assert "a complaint" in shown
