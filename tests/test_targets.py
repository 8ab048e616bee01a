"""Where output goes that is no ordinary file: into streams, through links, and nowhere that it would destroy."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dragstrip import cli, playground
from dragstrip.errors import BadInputError
from dragstrip.io import files
from tools import catalogue as pages

CHILD = "import sys; sys.argv[0] = 'dragstrip'; from dragstrip.cli import main; main()"
RACE = "--rate 10mbit --rtt 40ms --queue 1bdp --duration 1s"
ROOT = Path(__file__).parents[1]


def ended(line: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """A command in a process of its own."""
    words = [sys.executable, "-P", "-c", CHILD, *shlex.split(line)]
    return subprocess.run(words, cwd=folder, capture_output=True, check=False, timeout=120)


FILES = {
    "inspect --anonymise": "inspect {capture} --anonymise {target}",
    "passport --junit": "passport reno --only theory --quick --out {new} --junit {target}",
    "policy-bpf --out": f"policy-bpf {ROOT / 'programs/my-delay.json'} --out {{target}}",
    "validate compare --write-docs": "validate --only b-10m-10ms-0.5bdp-reno --write-docs {target}",
}
"""What writes a file: option → a command that does."""
ELSEWHERE = {
    "evidence --out": "half a minute; written as a passport is (tests/test_evidence.py)",
    "shell --out": "needs rights (tests/netns/test_shell.py)",
}
"""Options that are tried elsewhere, and why."""
PAGE = "play --out"
"""Writes the page of the playground, which only `make play` builds; its function is called."""
FOLDERS = {
    "run --out": "run linux-vegas-1999/modem --duration 1s --no-report --out {target}",
    "compare --out": f"compare reno {RACE} --no-report --out {{target}}",
    "sweep --out": f"sweep {ROOT / 'bench/sweep.toml'} --vary path.rate=2mbit --duration 1s --out {{target}}",
    "report --out": "report {capture} --out {target}",
    "inspect --out": "inspect {capture} --out {target}",
    "diagnose --out": "diagnose {capture} --out {target}",
    "whatif --out": "whatif {capture} reno --out {target}",
    "passport --out": "passport reno --only theory --quick --out {target}",
    "attack --out": "attack reno --goal neighbour --evaluations 8 --out {target}",
    "export --out": "export {run} --to csv --out {target}",
    "new-algorithm --out": "new-algorithm my-cc --out {target}",
    "validate compare --out": "validate --only b-10m-10ms-0.5bdp-reno --out {target}",
}
"""What writes a folder: option → a command."""


def outputs() -> Iterator[str]:
    """Options of every command that name an output."""

    def below(command: Any, name: list[str]) -> Iterator[str]:
        for word, inner in getattr(command, "commands", {}).items():
            yield from below(inner, [*name, word])
        for parameter in command.params:
            if set(parameter.opts) & {"--out", "--junit", "--anonymise", "--write-docs"}:
                yield f"{' '.join(name)} {parameter.opts[0]}"

    yield from below(typer.main.get_command(cli.app), [])


def test_every_output_option_is_here() -> None:
    assert set(outputs()) == FILES.keys() | FOLDERS.keys() | {PAGE} | ELSEWHERE.keys()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run with a capture."""
    folder = tmp_path_factory.mktemp("recorded")
    done = ended(f"compare cubic {RACE} --no-report --capture s1 --out out", folder)
    assert done.returncode == 0, done.stderr
    (capture,) = folder.rglob("s1.pcapng")
    return {"capture": capture, "run": folder / "out"}


def line_of(option: str, target: Path, folder: Path, recorded: dict[str, Path]) -> str:
    line = {**FILES, **FOLDERS}[option]
    return line.format(target=shlex.quote(str(target)), new=folder / "new", **recorded)


def device(folder: Path) -> Path:
    """A device like /dev/null, which a defect may destroy."""
    place = folder / "null"
    try:
        os.mknod(place, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        place.write_bytes(b"x")
    except OSError:
        pytest.skip("no device can be made here (root)")
    return place


class Reader(threading.Thread):
    """Reads a FIFO to its end."""

    def __init__(self, fifo: Path) -> None:
        super().__init__(daemon=True)
        self.fifo, self.content = fifo, b""
        self.start()

    def run(self) -> None:
        self.content = self.fifo.read_bytes()


@pytest.mark.parametrize("option", FILES)
def test_a_file_option_writes_into_a_device_and_through_a_link(
    option: str, tmp_path: Path, recorded: dict[str, Path]
) -> None:
    null = device(tmp_path)
    before = null.lstat()
    done = ended(line_of(option, null, tmp_path, recorded), tmp_path)
    assert done.returncode == 0, done.stderr
    after = null.lstat()
    assert (after.st_rdev, after.st_ino, after.st_mode) == (before.st_rdev, before.st_ino, before.st_mode)
    (tmp_path / "real").write_text("earlier")
    link = tmp_path / "link"
    link.symlink_to("real")
    done = ended(line_of(option, link, tmp_path, recorded), tmp_path)
    assert done.returncode == 0, done.stderr
    assert link.readlink() == Path("real")
    assert len((tmp_path / "real").read_bytes()) > 100


@pytest.mark.parametrize("option", FILES)
def test_a_file_option_writes_into_a_fifo_and_to_standard_output(
    option: str, tmp_path: Path, recorded: dict[str, Path]
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = Reader(fifo)
    done = ended(line_of(option, fifo, tmp_path, recorded), tmp_path)
    assert done.returncode == 0, done.stderr
    reader.join(timeout=60)
    assert stat.S_ISFIFO(fifo.lstat().st_mode)
    assert len(reader.content) > 100
    done = ended(line_of(option, Path("/dev/stdout"), tmp_path, recorded), tmp_path)
    assert done.returncode == 0, done.stderr
    assert Path("/dev/stdout").is_symlink()
    assert reader.content[:40] in done.stdout
    with (tmp_path / "log").open("wb") as log:
        log.write(b"before\n")
        log.flush()
        words = shlex.split(line_of(option, Path("/dev/stdout"), tmp_path, recorded))
        subprocess.run([sys.executable, "-P", "-c", CHILD, *words], cwd=tmp_path, stdout=log, check=True)
    written = (tmp_path / "log").read_bytes()
    assert written.startswith(b"before\n")
    assert reader.content[:40] in written


@pytest.mark.parametrize("option", FOLDERS)
def test_a_folder_option_refuses_a_device(option: str, tmp_path: Path, recorded: dict[str, Path]) -> None:
    null = device(tmp_path)
    before = null.lstat()
    done = ended(line_of(option, null, tmp_path, recorded), tmp_path)
    (error,) = [line for line in done.stderr.decode().splitlines() if line.startswith("error: ")]
    assert done.returncode in (1, 2)
    assert "null" in error
    assert "a fault in dragstrip" not in error
    after = null.lstat()
    assert (after.st_rdev, after.st_ino) == (before.st_rdev, before.st_ino)


def test_the_page_of_the_playground_goes_into_a_fifo(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = Reader(fifo)
    playground.write(fifo, "page")
    reader.join(timeout=60)
    assert (reader.content, stat.S_ISFIFO(fifo.lstat().st_mode)) == (b"page", True)


def test_pages_of_a_checkout_are_no_stream(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(BadInputError, match="PAGE"):
        pages.check([], tmp_path / "fifo")


def test_what_no_output_belongs_into_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(place))
        with pytest.raises(files.NotWrittenError, match="cannot be written: it is a socket"):
            files.write_text(place, "text")
        with pytest.raises(BadInputError, match="expected a file \\(it is a socket\\)"):
            files.expect_file("--junit", place)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(files.NotWrittenError, match="Too many levels of symbolic links"):
        files.write_text(tmp_path / "loop", "text")


def test_a_link_to_a_file_that_is_not_there_yet_makes_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "later")
    files.write_text(tmp_path / "link", "text")
    assert (tmp_path / "later").read_text() == "text"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_an_entry_of_a_folder_that_is_no_file_stays_and_nothing_is_added(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_text("old")
    if kind == "link":
        (folder / "b").symlink_to("/dev/null")
    else:
        os.mkfifo(folder / "b")
    before = (folder / "b").lstat()

    def add() -> None:
        with files.adding(folder) as draft:
            (draft / "a").write_text("new")
            (draft / "b").write_text("new")

    with pytest.raises(files.NotWrittenError, match="b: cannot be written: it is a link, a device or a FIFO"):
        add()
    assert (folder / "b").lstat().st_ino == before.st_ino
    assert (folder / "a").read_text() == "old"
    assert sorted(entry.name for entry in folder.iterdir()) == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    [
        "whatif CAPTURE reno --sender-algorithm cubic --anyway --out verdict",
        "whatif CAPTURE reno --sender-algorithm cubic --anyway --out verdict --addresses",
        "report CAPTURE RUN --out beside",
        "report RUN --figures csv,svg",
        "inspect CAPTURE --json",
        "inspect CAPTURE --infer",
        "identify CAPTURE",
        "export RUN --to csv --out exported",
        "diagnose CAPTURE --out diagnosis",
    ],
)
def test_a_name_that_is_not_utf_8_is_read_and_shown(line: str, tmp_path: Path) -> None:
    """A byte that is no UTF-8 stands in Python's text as a surrogate, which cannot be encoded."""
    done = ended(f"compare cubic {RACE.replace('1s', '9s')} --no-report --capture s1 --out out", tmp_path)
    assert done.returncode == 0, done.stderr
    strange, run = os.fsdecode(b"s\xff1.pcapng"), os.fsdecode(b"r\xffn")
    try:
        shutil.copyfile(next(tmp_path.rglob("s1.pcapng")), tmp_path / strange)
    except OSError:
        pytest.skip("a file system that takes no such name")
    (tmp_path / "out").rename(tmp_path / run)
    done = ended(line.replace("CAPTURE", strange).replace("RUN", run), tmp_path)
    assert b"a fault in dragstrip" not in done.stderr
    assert done.returncode == 0, done.stderr
