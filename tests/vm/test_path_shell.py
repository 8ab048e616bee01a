"""`dragstrip.shell(engine="vm")` and the mark `path`: programs in virtual time from Python."""

from __future__ import annotations

import difflib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dragstrip
from dragstrip.errors import BadInputError
from test_testing import PLUGIN

pytestmark = pytest.mark.usefixtures("linux")


def test_a_run_is_an_object_and_the_same_each_time(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    script = "cat; cat key; echo back > answer; echo complaint >&2; date +%N; exit 7"
    with dragstrip.shell(rate="10mbit", rtt="20ms", engine="vm", files=["key"], folder=tmp_path) as shell:
        first, second = (
            shell.run("sh", "-c", script, stdin="given\n", fetch=["answer", "never"], out=out)
            for out in (tmp_path / "out", None)
        )
    assert (first.status, first.stderr) == (7, "complaint\n")
    assert first.stdout.startswith("given\nsecret\n")
    assert first.files == {"answer": b"back\n"}
    assert 0 < first.duration_s < 1
    assert (first.stdout, first.document) == (second.stdout, second.document)
    assert first.document["path"]["ping_ns"] == 20_000_000
    assert (tmp_path / "out/shell.json").is_file()
    assert not (tmp_path / "answer").exists(), "nothing is written that is not asked for"
    with pytest.raises(BadInputError, match="block has not ended"):
        shell.run("true")


def test_the_command_of_a_run_repeats_it(tmp_path: Path) -> None:
    shell = dragstrip.shell(rate="10mbit", rtt="20ms", engine="vm", timeout="5s", seed=3, folder=tmp_path)
    run = shell.run("sh", "-c", "date +%s.%N; head -c 8 /dev/urandom | od -An -tx1")
    words = shlex.split(run.command)[1:]
    done = subprocess.run(
        [sys.executable, "-m", "dragstrip", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stdout) == (0, run.stdout), done.stderr


def test_a_program_that_is_not_there_and_a_time_that_is_over(tmp_path: Path) -> None:
    shell = dragstrip.shell(rate="10mbit", rtt="20ms", engine="vm", timeout_s=2, folder=tmp_path)
    with pytest.raises(
        BadInputError, match=r"^command: got 'no-such-program', expected a program that exists"
    ):
        shell.run("no-such-program")
    late = shell.run("sleep", "100")
    assert (late.status, late.timed_out, late.duration_s) == (124, True, pytest.approx(2, abs=0.01))


@pytest.mark.path("LTE", rate="2mbit", engine="vm")
@pytest.mark.path(rate="10mbit", rtt="100ms", engine="vm")
def test_the_fixture_is_a_shell_on_the_marks_path(path_shell: dragstrip.Shell) -> None:
    script = """
import os, socket, time
for _ in range(2):  # the first one loads codecs
    start = time.monotonic()
    try:
        socket.create_connection((os.environ["DRAGSTRIP_SERVER"], 9))
    except ConnectionRefusedError:
        took_s = time.monotonic() - start
print(took_s)
"""
    run = path_shell.run("/usr/bin/python3", "-c", script)
    idle_s = run["path"]["ping_ns"] / 1e9
    assert idle_s in (0.04, 0.1)
    assert idle_s < float(run.stdout) < idle_s + 0.01


EXAMPLE = Path(__file__).parents[2] / "docs/examples/timeout"


def example(folder: Path) -> str:
    """What pytest prints about the example project."""
    words = [sys.executable, "-m", "pytest", "-q", *PLUGIN, "-p", "no:cacheprovider", "-n", "0", "."]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_the_examples_bug_shows_on_one_path_and_its_fix_passes(tmp_path: Path) -> None:
    project = tmp_path / "timeout"
    shutil.copytree(EXAMPLE, project)
    shown = example(project)
    assert "1 failed, 2 passed" in shown, shown
    assert "FAILED test_client.py::test_the_whole_report_arrives[1mbit-80ms-vm]" in shown
    assert "AssertionError: client: http://server:8000/report: silent for 2 s after" in shown
    shutil.copy(project / "client_fixed.py", project / "client.py")
    assert "3 passed" in example(project)
    written = (
        (EXAMPLE / "client.py").read_text().splitlines(),
        (EXAMPLE / "client_fixed.py").read_text().splitlines(),
    )
    (change,) = (line for line in difflib.ndiff(*written) if line[0] in "+-")
    assert change.split() == ["+", "last_s", "=", "time.monotonic()"]
