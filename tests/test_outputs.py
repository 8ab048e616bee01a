"""The program in a process of its own: where its output goes, signals, and what is said when it takes long."""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

import pytest

from dragstrip.display.progress import ProgressMessages
from dragstrip.errors import DragstripError
from dragstrip.experiment.comparison import compare
from dragstrip.io.files import only_one
from dragstrip.runs.progress import _Lines
from dragstrip.studies.execution.runner import plan

RUN = shlex.split("compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb' --duration 1s --out out reno")
CHILD = "import sys; sys.argv[0] = 'dragstrip'; from dragstrip.cli import main; main()"


def start(arguments: list[str], folder: Path, **settings: Any) -> subprocess.Popen[str]:
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", CHILD, *arguments], cwd=folder, text=True, **settings
    )


def ended(arguments: list[str], folder: Path, **settings: Any) -> tuple[int, str]:
    process = start(arguments, folder, **settings)
    _, err = process.communicate(timeout=120)
    return process.returncode, err


full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")


@full
@pytest.mark.parametrize(
    "arguments", [["list"], ["list", "--json"], ["--help"], ["compare", "--help"], ["--version"]]
)
def test_a_full_output_is_one_line(arguments: list[str], tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as output:
        status, err = ended(arguments, tmp_path, stdout=output)
    assert (status, err) == (1, "error: standard output: No space left on device\n")


@full
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_output_loses_no_run(more: list[str], tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as output:
        status, err = ended([*RUN, *more], tmp_path, stdout=output)
    assert status == 1
    assert err.splitlines()[-1] == "error: standard output: No space left on device"
    assert {"result.json", "report.html"} <= {file.name for file in (tmp_path / "out").iterdir()}
    assert not (tmp_path / "out" / "PARTIAL").exists()


@full
def test_a_full_standard_error_ends_nothing(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as errors:
        status, _ = ended(RUN, tmp_path, stderr=errors)
    assert status == 0


def test_a_reader_that_has_gone_ends_it_without_a_word_and_loses_no_run(tmp_path: Path) -> None:
    process = start(RUN, tmp_path)
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "error" not in err
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(closed: str, tmp_path: Path) -> None:
    words = " ".join(f"'{word}'" for word in [sys.executable, "-P", "-c", CHILD.replace("'", '"'), *RUN])
    done = subprocess.run(["/bin/sh", "-c", f"{words} {closed}"], cwd=tmp_path, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == (1 if ">&-" in closed.replace("2>&-", "") else 0)
    assert "error" not in done.stderr
    assert json.loads((tmp_path / "out" / "result.json").read_text())["failed"] == []


@pytest.mark.parametrize("line", ["list", "show caia-110729a/adsl1"])
def test_a_terminal_of_another_encoding(line: str, tmp_path: Path) -> None:
    status, err = ended(line.split(), tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (status, err) == (0, "")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_long_second_speaks_and_can_be_interrupted(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    long = ["40s" if word == "1s" else word for word in RUN]
    process = start([*long, "--no-report", "--flows", "30000"], tmp_path)
    assert process.stderr is not None
    said = ""
    while "simulated seconds" not in said and (line := process.stderr.readline()):
        said += line
    assert "simulated seconds ..." in said
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err.splitlines()[-1]) == (status, "error: interrupted")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "line", ["compare --rate 10mbit --rtt 40ms --queue pfifo rneo", "run nowhere.toml", "compare --rat"]
)
def test_a_typo_is_refused_before_anything_heavy_is_loaded(line: str, tmp_path: Path) -> None:
    listing = (
        "import atexit, sys\n"
        "heavy = {'numpy', 'pyarrow', 'rich', 'jinja2', 'vl_convert', 'distributed'}\n"
        "atexit.register(lambda: print(sorted(heavy & set(sys.modules)), file=sys.stderr))\n"
    )
    process = subprocess.run(
        [sys.executable, "-P", "-c", listing + CHILD, *line.split()],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    error, loaded = process.stderr.splitlines()
    assert (process.returncode, loaded) == (2, "[]"), error


def test_what_takes_long_is_said_again_and_again_and_then_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    speaker = ProgressMessages(patience_s=0.01)
    speaker.doing(lambda: "waiting")
    time.sleep(0.2)
    speaker.doing(None)
    said = capsys.readouterr().err.splitlines()
    assert 2 <= len(said) <= 5
    assert set(said) == {"waiting"}
    time.sleep(0.05)
    speaker.close()
    assert capsys.readouterr().err == ""


def test_how_far_long_runs_have_come_is_told_without_exponents() -> None:
    described = compare(["reno"], rate="10mbit", rtt="40ms", queue="1bdp", duration="6480s")
    lines = _Lines(plan(described).runs)
    lines.messages.close()
    lines.advanced(0, 1_440_000_000_000)
    assert lines._running() == "[0/1] 1440 of 6480 simulated seconds ..."


def limited() -> None:
    """4 GiB of address space, as clusters set it."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def test_pictures_that_cannot_be_drawn_are_refused_before_anything_runs(tmp_path: Path) -> None:
    """The picture library aborted the process in native code, behind the runs."""
    status, err = ended([*RUN, "--figures", "svg,csv"], tmp_path, preexec_fn=limited)
    assert status == 2
    assert err == (
        "error: command line: --figures: got 'svg', expected csv alone, or more address space: the library that draws "
        "pictures does not start within `ulimit -v 4194304`\n"
    )
    assert list(tmp_path.iterdir()) == []
    status, err = ended([*RUN, "--figures", "csv"], tmp_path, preexec_fn=limited)
    assert status == 0, err


def roomy() -> None:
    """A limit in which the library starts."""
    resource.setrlimit(resource.RLIMIT_AS, (64 << 40, 64 << 40))


def test_pictures_are_drawn_under_a_limit_that_has_room(tmp_path: Path) -> None:
    status, err = ended([*RUN, "--figures", "svg"], tmp_path, preexec_fn=roomy)
    assert status == 0, err
    assert (tmp_path / "out" / "figures" / "rtt.svg").exists()


KILLED = (
    "import os, pathlib\n"
    "written = pathlib.Path.write_text\n"
    "def killing(path, *words, **more):\n"
    "    if path.name == 'report.html': os.kill(os.getpid(), 9)\n"
    "    return written(path, *words, **more)\n"
    "pathlib.Path.write_text = killing\n"
)
"""What kills the process while it draws the report."""


def test_a_report_completes_a_run_that_was_killed_while_drawing_it(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-P", "-c", KILLED + CHILD, *RUN], cwd=tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL
    out = tmp_path / "out"
    before = {file.name for file in out.iterdir()}
    assert {"PARTIAL", "result.json"} < before
    assert any(name.endswith(".partial") for name in before)
    status, err = ended(["report", "out"], tmp_path)
    assert (status, err) == (0, "")
    after = {file.name for file in out.iterdir()}
    assert after == {"SHA256SUMS", "counterfactuals", "experiment.json", "report.html", "result.json", "runs"}


def test_runs_that_stand_still_are_told_with_what_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    described = compare(["reno"], rate="10mbit", rtt="40ms", queue="1bdp", duration="60s")
    lines = _Lines(plan(described).runs)
    lines.messages.close()
    lines.advanced(0, 1_000_000_000)
    assert lines._running() == "[0/1] 1 of 60 simulated seconds ..."
    lines.moved_at -= 31
    lines.advanced(0, 1_000_000_000)
    said = "[0/1] 1 of 60 simulated seconds ... (no progress for 31 s: an endless loop? --time-limit ends such a run)"
    assert lines._running() == said
    lines.advanced(0, 2_000_000_000)
    assert lines._running() == "[0/1] 2 of 60 simulated seconds ..."


def test_whoever_locks_a_file_that_has_just_been_removed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs once took one folder: the second cleared it between the first one's opening and its locking."""
    opened = Path.open

    def replaced(path: Path, mode: str) -> IO[Any]:
        file = opened(path, mode)
        path.unlink()
        path.touch()
        return file

    monkeypatch.setattr(Path, "open", replaced)
    with (
        pytest.raises(DragstripError, match="another run is writing here"),
        only_one(tmp_path / "PARTIAL", "run"),
    ):
        pass


def test_ctrl_c_while_the_program_is_imported_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "dragstrip", "--version"],
        cwd=tmp_path,  # in front of the installed packages
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "error: interrupted\n")
