"""What the torture scripts share: the command line, the summary, the program started in a folder of its own.

A script defines `trial(number, folder)`, which raises `AssertionError` where a promise is broken, and ends with
`main(KIND, trial, count=..., sample=...)`. README.md says the rest.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMIT_S = 300.0
"""No command of a trial takes so long; one that does hangs."""

FAULT = 70
"""The exit status of a fault of ours (sysexits.h): a failure whatever was done to the program."""
INTERRUPTED = 130
LEFTOVER = re.compile(r"^\.draft-|\.partial$|^\.replay-")
"""Names of drafts; none is left behind by a command that ended by itself."""

EXPERIMENT = """\
title = "One flow on a path"
duration = "1s"

[path]
rate = "2mbit"
rtt = "20ms"
queue = "bfifo limit 30kb"
loss = "0.1%"

[[flows]]
cc = "cubic"

[[probes]]
from = "d"
target = "s1"
"""
"""Its run takes a few milliseconds."""


class CannotRunError(Exception):
    """What this machine lacks for a kind of trial; the text says what to install."""


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    words: tuple[str, ...]
    status: int
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """Its one `error:` line, without the word; empty if there is none."""
        lines = [line for line in self.stderr.splitlines() if line.startswith("error: ")]
        return lines[-1].removeprefix("error: ") if lines else ""

    def __str__(self) -> str:
        return f"{' '.join(self.words)}: status {self.status}: {self.stderr.strip()[-600:]}"


def program(*words: str) -> list[str]:
    """The words that start `dragstrip` in this interpreter, which imports nothing from the current folder."""
    return [sys.executable, "-P", "-m", "dragstrip", *words]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Ours, with a cache in `folder` and a terminal of a fixed width."""
    return {**os.environ, "DRAGSTRIP_CACHE": str(folder / "cache"), "COLUMNS": "100", **more}


def start(
    folder: Path, *words: str, env: Mapping[str, str] | None = None, **given: Any
) -> subprocess.Popen[str]:
    """Starts `dragstrip WORDS` in `folder`, as the leader of a process group of its own."""
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **given}
    return subprocess.Popen(
        program(*words),
        cwd=folder,
        text=True,
        errors="backslashreplace",
        env=environment(folder) if env is None else env,
        start_new_session=True,
        **given,
    )


def end(process: subprocess.Popen[str], limit_s: float = LIMIT_S) -> Ended:
    """Waits for a process that `start` gave; one that takes longer than the limit is a failure."""
    words = tuple(process.args[3:]) if isinstance(process.args, list) else ()
    try:
        stdout, stderr = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise AssertionError(f"{' '.join(words)}: still runs after {limit_s:g} s") from None
    return Ended(words, process.returncode, stdout or "", stderr or "")


def dragstrip(folder: Path, *words: str, limit_s: float = LIMIT_S, **given: Any) -> Ended:
    """Runs `dragstrip WORDS` in `folder` to its end."""
    return end(start(folder, *words, **given), limit_s)


WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGED = {"os.mkdir": 0, "os.remove": 0, "os.rmdir": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1}
"""Events of the interpreter that change a file system, with the argument that names what they change."""
OUTWARD = ("socket.connect", "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.posix_spawn")
"""Events by which something leaves this process."""


class Guard:
    """What a command that runs in this process may not do; it notes what was done nevertheless."""

    def __init__(self) -> None:
        self.places: tuple[Path, ...] = ()
        """Where it may write; nothing is watched where there are none."""
        self.trespasses: list[str] = []
        sys.addaudithook(self.watch)

    def watch(self, event: str, given: tuple[Any, ...]) -> None:
        """Note a write outside the places, and prevent a program or a connection."""
        if not self.places:
            return
        if event in OUTWARD:
            self.trespasses.append(f"{event} {given[:2]}")
            raise PermissionError(f"{event} in a trial")
        if event in CHANGED:
            path = given[CHANGED[event]]
        elif event == "open" and isinstance(given[2], int) and given[2] & WRITING:
            path = given[0]
        else:
            return
        if isinstance(path, int):
            return
        place = Path(os.path.realpath(os.fsdecode(path)))
        if not any(map(place.is_relative_to, self.places)) and str(place) != os.devnull:
            self.trespasses.append(f"{event} {place}")


@cache
def guard() -> Guard:
    """The one of this process: an audit hook stays until its end."""
    sys.dont_write_bytecode = True
    return Guard()


def in_process(folder: Path, *words: str, given: bytes = b"") -> Ended:
    """Runs `dragstrip WORDS` to its end in this process, in `folder`, with `given` as its standard input.

    This takes milliseconds where a start takes half a second. Failures are: writing outside the folder, a temporary
    file that stays, starting a program and opening a connection. So the command must be one that needs no worker
    processes.
    """
    from dragstrip import cli

    out, err = io.StringIO(), io.StringIO()
    before, arguments, stdin, surroundings = Path.cwd(), sys.argv, sys.stdin, dict(os.environ)
    watch = guard()
    status: object = "no status"
    with tempfile.TemporaryDirectory(prefix="dragstrip-torture-") as scratch:
        os.environ.update(environment(folder, TMPDIR=scratch))
        os.chdir(folder)
        sys.argv, sys.stdin, tempfile.tempdir = (
            ["dragstrip", *words],
            io.TextIOWrapper(io.BytesIO(given)),
            scratch,
        )
        watch.trespasses.clear()
        watch.places = (folder.resolve(), Path(scratch).resolve())
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                cli.main()
        except SystemExit as ended:
            status = ended.code
        finally:
            watch.places = ()
            sys.argv, sys.stdin, tempfile.tempdir = arguments, stdin, None
            os.chdir(before)
            os.environ.clear()
            os.environ.update(surroundings)
        stays = sorted(place.name for place in Path(scratch).iterdir())
    number = status if isinstance(status, int) else FAULT
    done = Ended(tuple(words), number, out.getvalue(), err.getvalue())
    assert isinstance(status, int), f"it ends with {status!r}: {done}"
    assert not watch.trespasses, f"outside its folder: {watch.trespasses}: {done}"
    assert not stays, f"temporary files stay: {stays}: {done}"
    return done


def check_answer(ended: Ended, *statuses: int) -> None:
    """The promise of every answer: an expected status, never a traceback; an error is one line that says what."""
    allowed = statuses or (0, 1, 2)
    assert ended.status in allowed, f"expected status {' or '.join(map(str, allowed))}: {ended}"
    assert "Traceback" not in ended.stderr, f"a traceback: {ended}"
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    if ended.status in (1, 2) and errors:
        assert len(errors) == 1, f"{len(errors)} errors for one: {ended}"
        assert ended.stderr.splitlines()[-1] == errors[0], f"the answer is longer than its line: {ended}"
    assert ended.status != 2 or errors, f"refused without a word: {ended}"
    assert ended.status != FAULT, f"a fault of ours: {ended}"


def leftovers(folder: Path) -> list[str]:
    """Drafts that lie in a folder or below it."""
    return sorted(
        str(Path(place, name).relative_to(folder))
        for place, folders, files in os.walk(folder)
        for name in (*folders, *files)
        if LEFTOVER.search(name)
    )


def written(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content, to be compared with another time."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and not file.is_symlink())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@contextmanager
def _place(keep: Path | None, number: int) -> Iterator[Path]:
    if keep is None:
        made = Path(tempfile.mkdtemp(prefix="dragstrip-torture-"))
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)
    else:
        made = keep / str(number)
        made.mkdir(parents=True)
        yield made


Trial = Callable[[int, Path], str | None]
"""Makes trial `number` in an empty folder; raises `AssertionError` where a promise is broken.

What it returns is a word for what happened (`killed`, `refused`, ...), which the summary counts.
"""


def main(kind: str, trial: Trial, *, count: int, sample: int, about: str | None = None) -> NoReturn:
    """Runs the trials that the command line asks for, prints the summary and exits: 1 if any failed.

    `count` trials by default, `sample` of them with --sample (what `make test` runs).
    """
    script = Path(sys.argv[0]).resolve()
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=count, help=f"How many trials; {count} by default.")
    parser.add_argument(
        "--seed", type=int, default=1, help="Number of the first trial; it decides everything random."
    )
    parser.add_argument("--seconds", type=float, help="Begin no further trial after this time.")
    parser.add_argument("--sample", action="store_true", help=f"{sample} trials, as `make test` does.")
    parser.add_argument("--share", type=float, default=1.0, help="Of the trials, such as 0.1.")
    parser.add_argument("--keep", type=Path, help="Leave each trial's folder in this one.")
    asked = parser.parse_args()
    wanted = sample if asked.sample else max(1, round(asked.count * asked.share))
    began, tried = time.monotonic(), 0
    failures: list[dict[str, str]] = []
    outcomes: Counter[str] = Counter()
    skipped = None
    for number in range(asked.seed, asked.seed + wanted):
        if asked.seconds is not None and time.monotonic() - began > asked.seconds:
            break
        replay = f"python {script.relative_to(ROOT)} --seed {number} --count 1"
        try:
            with _place(asked.keep, number) as folder:
                outcomes[trial(number, folder) or "held"] += 1
        except CannotRunError as error:
            skipped = str(error)
            break
        except Exception as error:
            outcomes["failed"] += 1
            what = str(error) if isinstance(error, AssertionError) and str(error) else traceback.format_exc()
            failures.append({"replay": replay, "what": what[-2000:]})
            print(f"{kind}: {what}\nagain: {replay}", file=sys.stderr, flush=True)
        tried += 1
    summary = {
        "kind": kind,
        "wanted": wanted,
        "tried": tried,
        "failures": failures,
        "outcomes": dict(sorted(outcomes.items())),
        "skipped": skipped,
        "seconds": round(time.monotonic() - began, 1),
    }
    print(json.dumps(summary, ensure_ascii=False), flush=True)
    sys.exit(1 if failures else 0)
