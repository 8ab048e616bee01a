"""A core with algorithms in it: the checkout's sources and theirs, compiled once and kept."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from dragstrip import _core
from dragstrip.authoring.rust_files.source import RustFile, registered
from dragstrip.authoring.skeletons import clone
from dragstrip.engines import cargo
from dragstrip.engines.agent.locking import locked
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import checksums, untrusted
from dragstrip.io.cache import cache
from dragstrip.io.files import make_folder, replacing, write_json, writing
from dragstrip.model.recording import core_build

FILE = "_core.abi3.so"
PROFILE = "quick"
"""Cargo's profile: the figures of a full build, compiled in seconds after an edit."""
KEPT = 10
"""Cores that the cache keeps, 13 MB each: those used last."""
_COPIED = ("Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "crates", "bench/dumbbell")
"""Files of a checkout that cargo reads."""


def core(algorithms: Sequence[RustFile]) -> Path:
    """The core with these algorithms; compiles it if need be.

    Raises `BadInputError` for a file that does not compile, with the compiler's first error and its line, or
    where there is no checkout; `DragstripError` without cargo.
    """
    root = _checkout(algorithms[0].file)
    base = core_build.sources(root)
    manifest = "".join(f"{algorithm.name} {algorithm.sha256}\n" for algorithm in algorithms)
    key = hashlib.sha256(f"{base}\n{manifest}".encode()).hexdigest()[:16]
    place = cache() / "cores" / key
    changed = registered(root, list(algorithms))
    if not checksums.whole(place):
        if shutil.which("cargo") is None:
            raise DragstripError(f"compiling {algorithms[0].file} needs cargo (https://rustup.rs)")
        with locked(cache() / "cores" / "lock"):
            if not checksums.whole(place):
                library = _build(root, algorithms, changed)
                with replacing(place) as draft:
                    shutil.copyfile(library, draft / FILE)
                    about = {
                        "base": base,
                        "files": {algorithm.name: algorithm.sha256 for algorithm in algorithms},
                    }
                    write_json(draft / core_build.FILES, about)
                    checksums.write(draft, [FILE, core_build.FILES])
                _forget(place)
    with writing(place):
        place.touch()
    return place / FILE


def _checkout(file: str) -> Path:
    """The sources that this package runs from, or those around the current folder if they are the same."""
    if (core_build.ROOT / "crates/py/Cargo.toml").is_file():
        return core_build.ROOT
    lacking = (
        "needs a checkout of the sources and cargo, for it is compiled with them; an algorithm as a text "
        "does not (docs/how-to/program.md)"
    )
    try:
        root = clone("ALGORITHM")
    except BadInputError:
        raise BadInputError("ALGORITHM", file, lacking, "command line") from None
    if core_build.sources(root) != _core.BUILT_OF:
        expected = f"{lacking}: {root} is not what this package was built from"
        raise BadInputError("ALGORITHM", file, expected, "command line")
    return root


def _build(root: Path, algorithms: Sequence[RustFile], changed: dict[str, str]) -> Path:
    """Compile the core in a copy of the sources, which stays, so that the next edit takes seconds."""
    # A folder for each checkout: cargo tells the packages of two apart by their place in it alone.
    place = cache() / "cores" / f"of-{hashlib.sha256(str(root).encode()).hexdigest()[:8]}"
    sources, target = place / "sources", place / "target"
    _mirror(root, sources, changed)
    file_list = ", ".join(algorithm.file for algorithm in algorithms)
    words = ["--profile", PROFILE, "--package", "dragstrip-py", "--message-format", "short"]
    words += ["--features", "extension-module"]
    ended = cargo.build(words, file_list, sources, target, {"PYO3_PYTHON": sys.executable})
    if not ended.ok:
        raise _refused(algorithms, ended.messages)
    library = "lib_core.dylib" if sys.platform == "darwin" else "lib_core.so"
    return target / PROFILE / library


def _mirror(root: Path, sources: Path, changed: dict[str, str]) -> None:
    """Make the copy equal to the sources with these changes; a file that is equal keeps its time."""
    contents = {path: _content(root / path) for path in _files(root)}
    contents |= {path: text.encode() for path, text in changed.items()}
    for path in set(_files(sources)) - contents.keys():
        with writing(sources / path):
            (sources / path).unlink()
    for path, content in contents.items():
        file = sources / path
        if not file.is_file() or _content(file) != content:
            make_folder(file.parent)
            with writing(file):
                file.write_bytes(content)


def _content(file: Path) -> bytes:
    return untrusted.content(file, untrusted.SOURCE_MAX, "a source")


def _files(root: Path) -> Iterator[str]:
    for name in _COPIED:
        place = root / name
        files = place.rglob("*") if place.is_dir() else [place]
        yield from (str(file.relative_to(root)) for file in files if file.is_file())


_ERROR = re.compile(r"([^\s:]+):([0-9]+:[0-9]+): error(?:\[E[0-9]+\])?: (.*)")


def _refused(algorithms: Sequence[RustFile], compiler_output: list[str]) -> DragstripError:
    """The first error of the compiler that is about one of them, or else its last words."""
    errors = [match for line in compiler_output if (match := _ERROR.match(line))]
    for error in errors:
        for algorithm in algorithms:
            if error[1] == algorithm.module:
                return BadInputError(
                    "", None, f"does not compile: {error[3]}", f"{algorithm.file}:{error[2]}"
                )
    for error in errors:
        for algorithm in algorithms:
            if algorithm.called.module in error[3] or algorithm.called.kind in error[3]:
                return BadInputError("", None, f"does not compile: {error[3]}", algorithm.file)
    files = ", ".join(algorithm.file for algorithm in algorithms)
    return DragstripError(f"{files}: does not compile: {' '.join(compiler_output)[-2000:]}")


def _forget(current: Path) -> None:
    """Remove the cores that were not used for longest."""
    cores = [
        place
        for place in current.parent.iterdir()
        if (place / core_build.FILES).is_file() and place != current
    ]
    for old in sorted(cores, key=lambda folder: folder.stat().st_mtime)[: -KEPT + 1 or None]:
        shutil.rmtree(old, ignore_errors=True)
