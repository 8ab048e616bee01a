"""A disk that fills: every command on a file system of every size, page by page, up to what it needs, and of every
number of files. It ends with status 1 and one line that names a path, and leaves what was there before, or a complete
result without its report. A sweep keeps what it made, and the same command finishes it once there is room.

The file system is a tmpfs in a user namespace, so this needs no root.
"""

from __future__ import annotations

import atexit
import functools
import json
import random
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from common import (
    EXPERIMENT,
    CannotRunError,
    Ended,
    check_answer,
    environment,
    leftovers,
    main,
    program,
    written,
)

PAGE = 4096
AMPLE = 16_384
"""Pages on which every command here succeeds."""
FILES = 40
"""Numbers of files that are tried: a run without a report makes about a dozen."""
MOUNTED = """
mount -t tmpfs -o size=$SIZE,nr_inodes=$INODES none "$PLACE" && cp -r "$BEFORE/." "$PLACE" && cd "$PLACE" || exit 99
"$@"; status=$?
cp -r "$PLACE/." "$AFTER"
exit $status
"""
NAMED = re.compile(r"[\w.-]+: cannot be written")
COMPARE = tuple(
    shlex.split("compare --rate 2mbit --rtt 20ms --queue 'bfifo limit 30kb' --duration 1s --out out")
)
RUN = ("run", "path.toml", "--out", "out")
SWEEP = tuple(shlex.split("sweep path.toml --out out --workers 1 --repeat 2 --vary flow.cc=reno,cubic"))
WIDER = (*SWEEP[:-1], "flow.cc=reno,cubic,vegas")
PING = """\
PING h (10.0.0.2) 56(84) bytes of data.
64 bytes from h (10.0.0.2): icmp_seq=1 ttl=64 time=20.1 ms
64 bytes from h (10.0.0.2): icmp_seq=2 ttl=64 time=20.3 ms

--- h ping statistics ---
2 packets transmitted, 2 received, 0% packet loss, time 1001ms
rtt min/avg/max/mdev = 20.100/20.200/20.300/0.100 ms
"""


@dataclass(frozen=True)
class Command:
    """What is run, what before it, and whether what it made stays."""

    words: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    resumed: bool = False


COMMANDS = {
    "compare": Command((*COMPARE, "reno", "cubic")),
    "figures": Command((*COMPARE, "--figures", "svg,png,pdf", "reno")),
    "json": Command((*COMPARE, "--no-report", "--json", "reno")),
    "next": Command((*COMPARE[:-2], "--no-report", "reno")),
    "run": Command((*RUN, "--repeat", "3")),
    "check": Command(("run", "path.toml", "--check")),
    "report": Command(("report", "out"), (RUN,)),
    "report figures": Command(("report", "out", "--figures", "svg"), (RUN,)),
    "export": Command(("export", "out", "--to", "csv", "--out", "exported/csv"), (RUN,)),
    "export beside": Command(("export", "out", "--to", "csv"), (RUN,)),
    "inspect": Command(("inspect", "ping.txt", "two.txt", "--out", "read/out"), (RUN,)),
    "inspect beside": Command(("inspect", "ping.txt", "two.txt", "--out", "."), (RUN,)),
    "captures": Command((*COMPARE, "--no-report", "--capture", "d", "--", "reno")),
    "inspect captures": Command(
        ("inspect", "out/runs/000-reno/captures/d.pcapng", "ping.txt", "--out", "read"),
        ((*COMPARE, "--no-report", "--capture", "d", "--", "reno"),),
    ),
    "files": Command(("report", "ping.txt", "two.txt", "--out", "read", "--figures", "csv,svg")),
    "play": Command(("play", "cubic", *COMPARE[1:5], "--queue", "pfifo limit 100", "--out", "play.html")),
    "sweep": Command(SWEEP, resumed=True),
    "recordings": Command((*SWEEP, "--keep-recordings"), resumed=True),
    "wider": Command(WIDER, (SWEEP,), resumed=True),
    "map": Command(("report", "out"), (SWEEP,), resumed=True),
    "kernel": Command(("kernel", "use", "vmlinuz-6.1.0-own")),
    "other kernel": Command(
        ("kernel", "use", "vmlinuz-6.1.0-own"), (("kernel", "use", "vmlinuz-6.1.0-own"),)
    ),
    "agreement": Command(("validate", "--only", "b-10m-40ms-1bdp-reno", "--out", "out")),
}


@functools.cache
def namespaces() -> None:
    """Raises `CannotRunError` where a user may not mount."""
    tried = subprocess.run(
        shlex.split("unshare -rm mount -t tmpfs none /mnt"), capture_output=True, check=False
    )
    if tried.returncode != 0:
        raise CannotRunError("needs user namespaces (sysctl kernel.unprivileged_userns_clone=1), or root")


def ended(folder: Path, words: tuple[str, ...], pages: int, inodes: int) -> Ended:
    """The command on a file system of this size that begins with `before`; what it then holds is in `after`."""
    for name in ("place", "before", "after"):
        (folder / name).mkdir(exist_ok=True)
    # Its cache and its temporary files are on the disk that fills.
    places = {name.upper(): str(folder / name) for name in ("place", "before", "after")}
    env = environment(folder / "place", TMPDIR=str(folder / "place"), PYTHONDONTWRITEBYTECODE="1", **places)
    env |= {"SIZE": str(pages * PAGE), "INODES": str(inodes)}
    command = ["unshare", "-rm", "sh", "-c", MOUNTED, "sh", *program(*words)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return Ended(words, done.returncode, done.stdout, done.stderr)


def prepare(folder: Path) -> None:
    """What every command finds: an experiment, and a kernel of one's own."""
    before = folder / "before"
    before.mkdir()
    (before / "path.toml").write_text(EXPERIMENT)
    for name in ("ping.txt", "two.txt"):
        (before / name).write_text(PING)
    (before / "vmlinuz-6.1.0-own").write_bytes(b"\0" * 0x202 + b"HdrS" + b"\0" * 20_000)
    modules = before / "lib/modules/6.1.0-own/kernel"
    modules.mkdir(parents=True)
    for name in ("veth", "sch_netem"):
        (modules / f"{name}.ko").write_bytes(b"\0depends=\0" + b"\0" * 10_000)


def first(command: Command, folder: Path) -> None:
    """The commands before it, with room; what they leave is what this one finds."""
    for words in command.before:
        check_answer(ended(folder, words, AMPLE, AMPLE), 0)
        shutil.rmtree(folder / "before")
        (folder / "after").rename(folder / "before")


@functools.cache
def found(name: str) -> Path:
    """A folder as the command finds it."""
    made = Path(tempfile.mkdtemp(prefix="dragstrip-torture-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    prepare(made)
    first(COMMANDS[name], made)
    return made / "before"


@functools.cache
def needed(name: str) -> int:
    """Pages that the command leaves where there is room, and a quarter for what it removes again."""
    with tempfile.TemporaryDirectory(prefix="dragstrip-torture-") as scratch:
        shutil.copytree(found(name), Path(scratch) / "before")
        check_answer(ended(Path(scratch), COMMANDS[name].words, AMPLE, AMPLE), 0)
        least = pages(Path(scratch) / "before")
        return least + (pages(Path(scratch) / "after") - least) * 5 // 4 + 4


def pages(folder: Path) -> int:
    """That a folder's files fill."""
    return sum(-(-file.stat().st_size // PAGE) for file in folder.rglob("*") if file.is_file())


def trial(number: int, folder: Path) -> str:
    """A command and a size of disk, or a number of files on it."""
    namespaces()
    draws = random.Random(number)
    name = list(COMMANDS)[number % len(COMMANDS)]
    command = COMMANDS[name]
    shutil.copytree(found(name), folder / "before")
    files = sum(1 for _ in (folder / "before").rglob("*")) + 1
    if draws.random() < 0.25:
        size, inodes = AMPLE, files + draws.randrange(FILES)
    else:
        size, inodes = draws.randrange(pages(folder / "before") + 1, needed(name)), AMPLE
    done = ended(folder, command.words, size, inodes)
    if done.status == 99:
        return "no room for what was there"
    if done.status == 0:
        return "enough"
    check_answer(done, 1)
    assert "No space left on device" in done.error, f"the reason is not told: {done}"
    assert "/" in done.error or NAMED.match(done.error), f"no path is told: {done}"
    before, after = written(folder / "before"), written(folder / "after")
    assert not leftovers(folder / "after"), f"left behind: {leftovers(folder / 'after')}"
    if after == before:
        assert tree(folder / "after") == tree(folder / "before") or command.resumed, "empty folders are left"
        return "nothing left"
    if command.resumed:
        return finished(command, folder)
    added = sorted(set(after) - set(before))
    changed = [file for file in before if after.get(file) != before[file]]
    assert not changed, f"changed: {changed}: {done}"
    kept = [file for file in added if file.endswith("result.json")]
    assert kept, f"left behind: {added}: {done}"
    json.loads(after[kept[0]])
    assert not any(file.endswith(("PARTIAL", ".html")) for file in added), f"half a result: {added}: {done}"
    return "result without report"


def tree(folder: Path) -> set[str]:
    """Folders below it, but for the cache's."""
    below = (path.relative_to(folder) for path in folder.rglob("*") if path.is_dir())
    return {path.as_posix() for path in below if path.parts[0] != "cache"}


def finished(command: Command, folder: Path) -> str:
    """With room, the same command finishes what is there."""
    shutil.rmtree(folder / "before")
    (folder / "after").rename(folder / "before")
    again = ended(folder, command.words, AMPLE, AMPLE)
    check_answer(again, 0)
    assert not leftovers(folder / "after"), f"left behind: {leftovers(folder / 'after')}"
    return "finished later"


if __name__ == "__main__":
    main("full_disk", trial, count=900, sample=2, about=__doc__)
