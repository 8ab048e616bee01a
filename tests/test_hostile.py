"""Hostile input, a row a case: every answer is one line, in little memory, with the right status, and comes."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

EXPERIMENT = """
title = "TITLE"
duration = "1s"

[path]
rate = "2mbit"
rtt = "20ms"
queue = "bfifo limit 30kb"

[[flows]]
cc = "reno"
label = "LABEL"
"""
HUNG_S = 300.0
"""A process that still runs then is killed, which is no right status; most answers take half a second."""
PEAK_MB = 400
"""Resident; the libraries take about 150."""


@dataclass(frozen=True)
class Case:
    """What lies in the folder, what is typed there, and the answer."""

    name: str
    words: str
    says: str
    prepare: Callable[[Path], object] = lambda _folder: None
    status: int = 2


def _experiment(text: str = EXPERIMENT) -> Callable[[Path], object]:
    return lambda folder: (folder / "e.toml").write_text(text, errors="surrogatepass")


def _large(folder: Path, name: str, size: int = 1 << 33) -> None:
    with (folder / name).open("wb") as file:
        file.truncate(size)  # takes no disk


def _socket(folder: Path) -> None:
    before = Path.cwd()
    os.chdir(folder)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("e.toml")
    finally:
        os.chdir(before)


def _trace(path: str) -> str:
    media = f'[media.air]\nkind = "trace"\nfile = "{path}"\n'
    return EXPERIMENT.replace('rate = "2mbit"\n', 'medium = "air"\n') + media


def _many_rows(folder: Path) -> None:
    """A file of some 100 kB that has 2*10^8 rows."""
    zeros = pa.table({"time_ns": pa.array([0], pa.int64()).take(pa.array([0] * 1_000_000))})
    zeros = zeros.append_column("flow", zeros["time_ns"]).append_column("rtt_ns", zeros["time_ns"])
    with pq.ParquetWriter(
        folder / "out/runs/000-reno/rtts.parquet", zeros.schema, compression="zstd"
    ) as writer:
        for _ in range(200):
            writer.write_table(zeros)


def _changed(file: str, change: Callable[[dict[str, object]], object]) -> Callable[[Path], object]:
    def change_it(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        change(content)
        (folder / file).write_text(json.dumps(content))
        for sums in folder.rglob("SHA256SUMS"):
            sums.unlink()

    return change_it


def _other_types(folder: Path) -> None:
    words = pa.table({"time_ns": ["a"], "flow": ["b"], "rtt_ns": ["c"]})
    pq.write_table(words, folder / "out/runs/000-reno/rtts.parquet")


def _unsummed(damage: Callable[[Path], object]) -> Callable[[Path], object]:
    def both(folder: Path) -> None:
        damage(folder)
        for sums in folder.rglob("SHA256SUMS"):
            sums.unlink()

    return both


DEEP = "x = " + "[" * 5_000 + "]" * 5_000
PRODUCT = "[vary]\n" + "\n".join(
    f'"hosts.s{n}.sysctl.x" = [{", ".join(map(str, range(50)))}]' for n in range(5)
)
CASES = [
    Case("a named pipe", "show e.toml", "is a named pipe", lambda f: os.mkfifo(f / "e.toml")),
    Case("a socket", "show e.toml", "is a socket", _socket),
    Case("a device", "show /dev/zero", "is a device"),
    Case("a huge file", "show e.toml", "at most 1 MiB", lambda f: _large(f, "e.toml")),
    Case("a deep list", "show e.toml", "nested more than 64 deep", _experiment(DEEP)),
    Case("a deep key", "show e.toml", "nested more than 64 deep", _experiment("a." * 50_000 + "a = 1")),
    Case("a number of digits", "show e.toml", "is not TOML", _experiment(f"x = {'9' * 6_000}")),
    Case("no text", "show e.toml", "not UTF-8 text", lambda f: (f / "e.toml").write_bytes(b"\xff\xfe\x00")),
    Case("a product", "show e.toml", "runs, expected at most", _experiment(EXPERIMENT + PRODUCT)),
    Case("repeats", "run e.toml --repeat 1000000000", "from 1 to 100000", _experiment()),
    Case("repeats beyond 64 bits", f"run e.toml --repeat {10**30}", "", _experiment()),
    Case("a trace that never ends", "show e.toml", "is a device", _experiment(_trace("/dev/zero"))),
    Case(
        "a trace that never comes",
        "show e.toml",
        "is a named pipe",
        lambda f: (os.mkfifo(f / "pipe"), _experiment(_trace("pipe"))(f)),
    ),
    Case(
        "a huge trace",
        "show e.toml",
        "at most 16 MiB",
        lambda f: (_large(f, "trace"), _experiment(_trace("trace"))(f)),
    ),
    Case("a script that is a pipe", "conform pipe", "is a named pipe", lambda f: os.mkfifo(f / "pipe")),
    Case("a script without end", "conform /dev/zero", "is a device"),
    Case("a huge script", "conform huge", "at most 1 MiB", lambda f: _large(f, "huge")),
    Case("a kernel that is a pipe", "kernel use vmlinuz-x", "PATH", lambda f: os.mkfifo(f / "vmlinuz-x")),
    Case("a shard of odd digits", "sweep e.toml --vary flow.cc=reno --shard ²/3", "k/N", _experiment()),
    Case(
        "a shard of many digits",
        f"sweep e.toml --vary flow.cc=reno --shard 1/{'9' * 5000}",
        "k/N",
        _experiment(),
    ),
    Case(
        "levels without end", "sweep e.toml --vary path.rtt=1ms..9ms:lin:1000000000", "at most", _experiment()
    ),
    Case("a level of many digits", f"sweep e.toml --vary flow.start={'9' * 5000}", "", _experiment()),
    Case("no time", "run e.toml --time-limit 0s", "above zero", _experiment()),
    Case("less than no time", "run e.toml --time-limit=-1s", "--time-limit", _experiment()),
    Case(
        "runs that are no list", "report out", "runs", _changed("out/result.json", lambda d: d.update(runs=5))
    ),
    Case(
        "a flow that is none",
        "report out",
        "runs[0].flows[0]: got 7, expected an object",
        _changed("out/result.json", lambda d: d["runs"][0].update(flows=[7])),  # type: ignore[index]
    ),
    Case(
        "a figure that is a text",
        "report out",
        "goodput_bps: got 'much'",
        _changed("out/result.json", lambda d: d["runs"][0]["flows"][0].update(goodput_bps="much")),  # type: ignore[index]
    ),
    Case(
        "half a surrogate pair",
        "report out",
        "recording",
        _changed("out/result.json", lambda d: d["runs"][0].update(recording="\ud800")),  # type: ignore[index]
    ),
    Case("2*10^8 rows", "report out", "200000000 rows", _unsummed(_many_rows)),
    Case("columns of other types", "report out", "a column of type int", _unsummed(_other_types)),
    Case(
        "a table that is a pipe",
        "report out",
        "is a named pipe",
        _unsummed(
            lambda f: (
                (f / "out/runs/000-reno/rtts.parquet").unlink(),
                os.mkfifo(f / "out/runs/000-reno/rtts.parquet"),
            )
        ),
    ),
    Case(
        "a document nested deep",
        "report out",
        "nested more than 64 deep",
        _unsummed(lambda f: (f / "out/result.json").write_text('{"runs":' + "[" * 900 + "]" * 900 + "}")),
    ),
]


def _peak_kb(pid: int) -> int:
    """Most memory that the program of a process has had; 0 before it runs and once it has ended."""
    try:
        if b"dragstrip" not in Path(f"/proc/{pid}/cmdline").read_bytes():
            return 0
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found.group(1)) if found else 0


def _answer(folder: Path, words: str) -> tuple[int, str, str, float]:
    """Status, both outputs, and the peak of resident memory in MB."""
    late = time.monotonic() + HUNG_S
    with (folder / ".out").open("w+", errors="replace") as out, (folder / ".err").open("w+") as err:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "dragstrip", *words.split()],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, "DRAGSTRIP_CACHE": str(folder / "cache"), "COLUMNS": "100"},
        )
        # What wait4 tells counts the process that began it too, of which it is a copy at first.
        peak_kb = 0
        while process.poll() is None:
            peak_kb = max(peak_kb, _peak_kb(process.pid))
            if time.monotonic() > late:
                process.kill()
            time.sleep(0.005)
        out.seek(0)
        err.seek(0)
        return process.returncode, out.read(), err.read(), peak_kb / 1024


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a run."""
    folder = tmp_path_factory.mktemp("made")
    _experiment()(folder)
    status, _, error, _ = _answer(folder, "run e.toml --out out --no-report")
    assert status == 0, error
    return folder


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_answer_is_one_line(case: Case, made: Path, tmp_path: Path) -> None:
    if case.words == "report out":
        shutil.copytree(made / "out", tmp_path / "out")
    case.prepare(tmp_path)
    status, output, error, peak_mb = _answer(tmp_path, case.words)
    assert status == case.status, error + output
    lines = error.splitlines()
    assert len(lines) == 1, error
    assert lines[0].startswith("error: ")
    assert case.says in lines[0]
    assert len(lines[0]) < 2100
    assert output == ""
    assert peak_mb < PEAK_MB


@pytest.mark.parametrize("odd", ["[/a]", "[bold]x", "a\\u001b[31mred\\u0007", "\\u202Eabc", ":smile:"])
def test_odd_names_are_shown_and_not_obeyed(odd: str, tmp_path: Path) -> None:
    _experiment(EXPERIMENT.replace("LABEL", odd).replace("TITLE", odd))(tmp_path)
    for words in ("show e.toml", "run e.toml --out out"):
        status, output, error, _ = _answer(tmp_path, words)
        assert status in (0, 2), error
        assert not set(output + error) & set("\x1b\x07\u202e"), output
    if "\\" not in odd:
        assert odd in _answer(tmp_path, "show e.toml")[1]


def test_a_path_that_is_not_utf_8(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    folder.mkdir()
    _experiment()(folder)
    assert _answer(folder, "show e.toml")[0] == 0
    status, _, error, _ = _answer(folder, f"run e.toml --out {os.fsdecode(bytes([111, 255]))}")
    assert (status, len(error.splitlines())) == (2, 1), error
    assert "a path of printable characters in UTF-8" in error
    assert not (folder / os.fsdecode(bytes([111, 255]))).exists()


@pytest.mark.parametrize(
    "line",
    [
        "inspect ping.txt --out OUT",
        "inspect ping.txt --anonymise OUT",
        "diagnose ping.txt --out OUT",
        "report ping.txt idle.txt --out OUT",
        "export runs --to csv --out OUT",
        "play --out OUT",
        "passport reno --out OUT",
        "attack reno --out OUT",
    ],
)
def test_no_output_has_a_path_that_is_not_utf_8(tmp_path: Path, line: str) -> None:
    out = os.fsdecode(bytes([111, 255]))
    for name in ("ping.txt", "idle.txt"):
        (tmp_path / name).write_text("64 bytes from h: icmp_seq=1 ttl=64 time=1.0 ms\n")
    status, _, error, _ = _answer(tmp_path, line.replace("OUT", out))
    assert (status, len(error.splitlines())) == (2, 1), error
    assert "got 'o\\xff', expected a path of printable characters in UTF-8" in error
    assert not (tmp_path / out).exists()
