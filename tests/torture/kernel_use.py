"""`kernel use` killed while it replaces a kernel, and given hostile names: what was kept is kept, whole.

The kernel that was there, or the new one, is there afterwards with all its files; a name is a folder's below the
cache, or refused in one line; nothing is written elsewhere; no name is run by a shell.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from pathlib import Path

from common import check_answer, dragstrip, end, leftovers, main, start, written

IMAGE = bytes(0x202) + b"HdrS"
IMAGE_BYTES = 8 << 20
"""As large as Debian's, so that copying takes its time."""
KEPT = "6.1-kept"
HOSTILE = (
    *("", ".", "..", "...", "-", "--help", "in-use", ".6.1-kept.x.partial", "a/../../b", "~", "6.1 kept"),
    *(
        "$(touch ran)",
        "`touch ran`",
        "';touch ran;'",
        '";touch ran;"',
        "|touch ran",
        "&touch ran&",
        "\n",
        "a\tb",
    ),
    *("\x1b[2J", "[bold]", "%s%n", "\u202e6.1", "ｖ6.1", "é", "con", "a" * 250, "*", "?", "{6.1-kept,x}"),
)


def unpacked(folder: Path, name: str, mark: bytes) -> Path:
    """An unpacked package: an image and a module, both with a mark."""
    modules = folder / "lib/modules" / (name or "none") / "kernel/net"
    modules.mkdir(parents=True)
    image = folder / "boot" / f"vmlinuz-{name}"
    image.parent.mkdir(parents=True, exist_ok=True)
    image.parent.joinpath(image.name.replace("/", "")).write_bytes(IMAGE + mark * (IMAGE_BYTES // len(mark)))
    (modules / "sch_htb.ko").write_bytes(b"\0depends=\0" + mark)
    return folder


def marks(folder: Path) -> set[str]:
    """Which marks the kept kernel's files have."""
    kernel = folder / "cache/kernels" / KEPT
    image, module = (kernel / "vmlinuz").read_bytes(), (kernel / "modules/sch_htb.ko").read_bytes()
    assert len(image) == len(IMAGE) + IMAGE_BYTES, "the image is not whole"
    return {image[-4:].decode(), module[-4:].decode()}


def names(folder: Path) -> list[str]:
    """The kernels that `kernel list` knows."""
    ended = dragstrip(folder, "kernel", "list", "--json")
    check_answer(ended, 0)
    return [kernel["name"] for kernel in json.loads(ended.stdout)["kernels"]]


def killed(draws: random.Random, folder: Path) -> str:
    """A kernel of the same name is taken in, and the program killed on the way."""
    unpacked(folder / "two", KEPT, b"new.")
    process = start(folder, "kernel", "use", "two")
    while process.poll() is None and not list((folder / "cache/kernels").glob(f".{KEPT}.*")):
        time.sleep(0.001)
    time.sleep(draws.uniform(0, draws.choice([0.005, 0.05, 0.3])))
    process.send_signal(signal.SIGKILL)
    ended = end(process)
    kept = marks(folder)
    assert len(kept) == 1, f"half of one kernel and half of another: {kept}"
    assert names(folder) == [KEPT]
    assert ended.status != 0 or kept == {"new."}
    check_answer(dragstrip(folder, "kernel", "use", "two"), 0)
    assert marks(folder) == {"new."}
    assert not leftovers(folder / "cache"), leftovers(folder / "cache")
    return "too late" if ended.status == 0 else f"killed, {'new' if kept == {'two'} else 'old'} kernel"


def named(name: str, folder: Path) -> str:
    """An image with this name, as a path and in a folder."""
    before = written(folder / "cache")
    here = folder / "here"
    here.mkdir()
    image = here / f"vmlinuz-{name.replace('/', '')}"
    try:
        image.write_bytes(IMAGE)
    except OSError:  # longer than a name may be
        return "no file of this name"
    outside = written(folder)
    for given in (str(image), str(here), name):
        ended = dragstrip(folder, "kernel", "use", "--", given)
        check_answer(ended, 0, 2)
        assert "\x1b" not in ended.stderr, f"an escape reaches the terminal: {ended}"
        if ended.status == 0:
            assert given == name, f"taken in: {ended}"
    after = {file: content for file, content in written(folder).items() if not file.startswith("cache/")}
    assert after == {file: content for file, content in outside.items() if not file.startswith("cache/")}
    assert {**written(folder / "cache"), "kernels/in-use": b""} == {**before, "kernels/in-use": b""}
    assert marks(folder) == {"old."}
    return "refused"


def trial(number: int, folder: Path) -> str:
    """Odd numbers: a kill; even ones: a name."""
    unpacked(folder / "one", KEPT, b"old.")
    check_answer(dragstrip(folder, "kernel", "use", "one"), 0)
    shutil.rmtree(folder / "one")
    if number % 2:
        return killed(random.Random(number), folder)
    return named(HOSTILE[number // 2 % len(HOSTILE)], folder)


if __name__ == "__main__":
    main("kernel_use", trial, count=400, sample=4, about=__doc__)
