"""A congestion control to start from.

It compiles, is documented, tested, registered and raceable at once, and behaves as Reno until its author
changes it (docs/how-to/new-algorithm.md). There is one in Rust, and one in BPF for a real kernel.
"""

from __future__ import annotations

import re
from pathlib import Path

from dragstrip.authoring.skeletons.clone import MARK, WrittenFiles, read, with_line, with_module, write
from dragstrip.authoring.skeletons.names import Names, existing, names
from dragstrip.engines.contract import alike
from dragstrip.io import untrusted

ALGORITHMS = "crates/cc/src/algorithms"
SKELETON = "crates/cc/skeleton.rs.txt"
PROGRAM_SKELETON = "bpf/skeleton.bpf.c.txt"


def new_algorithm(clone: Path, name: str, *, bpf: bool = False) -> WrittenFiles:
    """Write an algorithm's file and register it; with `bpf` also a BPF program, even for a known algorithm.

    Raises `BadInputError` for a name that cannot be used, `NotWrittenError`; nothing is written then.
    """
    called = names(name)
    program = f"bpf/{called.module}.bpf.c"
    exists = _exists(clone, called)
    if (clone / program).exists() if bpf else exists:
        raise existing(name)
    files = {} if exists else _registered(clone, called)
    if bpf:
        files[program] = called.filled(read(clone, PROGRAM_SKELETON))
    following = (
        f"dragstrip compare --engine vm --load {program} ... reno {called.module}"
        if bpf
        else f"cargo test --locked -p dragstrip-cc {called.module}, then cargo xtask generate"
    )
    return WrittenFiles(write(clone, files), following)


def new_file(clone: Path, name: str, folder: Path) -> WrittenFiles:
    """Write an algorithm's file alone into a folder of its author's; the clone stays as it is.

    `dragstrip compare FILE` compiles it (docs/how-to/new-algorithm.md). Raises `BadInputError` for a name
    that cannot be used or a file that exists, `NotWrittenError`; nothing is written then.
    """
    called = names(name)
    file = folder / f"{called.module}.rs"
    if _exists(clone, called) or file.exists():
        raise existing(name)
    write(folder, {file.name: called.filled(read(clone, SKELETON))})
    return WrittenFiles([str(file)], f"dragstrip passport {file} --quick")


def _registered(clone: Path, called: Names) -> dict[str, str]:
    modules = f"{ALGORITHMS}/mod.rs"
    return {
        f"{ALGORITHMS}/{called.module}.rs": called.filled(read(clone, SKELETON)),
        modules: with_module(modules, read(clone, modules), called),
        MARK: with_line(MARK, read(clone, MARK), "algorithms", f"{called.module}: {called.kind},"),
    }


def _exists(clone: Path, called: Names) -> bool:
    """Return whether the sources, not the core at hand, have an algorithm or a module of this name."""
    folder = clone / ALGORITHMS
    if any((folder / place).exists() for place in (f"{called.module}.rs", called.module)):
        return True
    texts = (untrusted.text(file, untrusted.SOURCE_MAX, "a source") for file in folder.rglob("*.rs"))
    rows = (name for text in texts for name in re.findall(r'^    name: "([^"]+)",$', text, re.MULTILINE))
    return called.module in map(alike, rows)
