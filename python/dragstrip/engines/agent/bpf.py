"""The user's congestion controls for engines with a kernel: compiled here, loaded there by the agent.

A source becomes an object file that is called like the algorithm in it, kept by the content of the source,
of the headers beside it and of ours.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache as once
from functools import cached_property
from pathlib import Path
from typing import Any

from dragstrip.engines.agent.binaries import warn_of_rebuild
from dragstrip.engines.agent.locking import locked
from dragstrip.engines.contract import Json, Say, quietly
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import checksums, untrusted
from dragstrip.io.cache import cache
from dragstrip.io.files import replacing

HOME = Path(__file__).resolve().parents[4] / "bpf"
"""Folder of our algorithms, their header and the loader."""

LOADER = "load"
INSTALL = "apt-get install clang libbpf-dev"
NAME = re.compile(r"[A-Za-z0-9_.]{1,15}")
"""Names that Linux 6.1 takes for a BPF congestion control."""


@dataclass(frozen=True)
class Loadable:
    """A congestion control, compiled from `source`; the file is called like it."""

    source: str
    file: Path

    @property
    def name(self) -> str:
        """The algorithm's name: that of the file."""
        return self.file.stem

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the compiled program."""
        return hashlib.sha256(untrusted.content(self.file)).hexdigest()


def missing() -> str | None:
    """Reason why BPF programs cannot be compiled here, or None."""
    if not (HOME / "load.c").is_file():
        return "it needs a clone of the sources, whose folder bpf/ this package has not"
    for tool in ("clang", "cc"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed: {INSTALL}"
    if not _libbpf():
        return f"libbpf's headers are not installed: {INSTALL}"
    return None


def names(source: str) -> list[str]:
    """The names of congestion controls that a C file writes out (`.name = "exp"`), without compiling it.

    Raises `BadInputError` where there is no such file.
    """
    text = untrusted.content(_existing(source), untrusted.SOURCE_MAX, "a C file").decode(errors="replace")
    return re.findall(r'\.name\s*=\s*"([^"]*)"', text)


def _existing(source: str) -> Path:
    file = Path(source)
    if not file.is_file():
        raise BadInputError("load", source, "a C file with a BPF congestion control, such as bpf/exp.bpf.c")
    return file


def compiled(source: str, say: Say = quietly) -> Loadable:
    """The congestion control in a C file; compiles it if need be.

    Raises `BadInputError` for a source that is none, `DragstripError` where it cannot be compiled at all.
    """
    file = _existing(source)
    if reason := missing():
        raise DragstripError(f"loading a congestion control: {reason}")
    tool = loader()
    place = cache() / "bpf" / _key(file)
    with locked(cache() / "bpf" / "lock"):
        if not checksums.whole(place, warn_of_rebuild):
            say(f"compiling {source}, once ...")
            with replacing(place) as draft:
                object_file = draft / "made"
                compile_object(file, object_file)
                named_object = object_file.rename(draft / f"{_name(tool, source, object_file)}.o")
                checksums.write(draft, [named_object.name])
    (cached_object,) = place.glob("*.o")
    return Loadable(source, cached_object)


def request(scenario: Json, load: Sequence[Loadable], **words: Any) -> tuple[Json, bytes]:
    """The agent's request, and the files that follow it: the loader, then what it is to load."""
    files = [loader(), *(loadable.file for loadable in load)] if load else []
    contents = [untrusted.content(file) for file in files]
    listed = [{"name": file.name, "bytes": len(raw)} for file, raw in zip(files, contents, strict=True)]
    return {"scenario": scenario, "load": listed, **words}, b"".join(contents)


def at_source(error: BadInputError, load: Sequence[Loadable]) -> BadInputError:
    """The agent's refusal, with the C file's name where it is of a program that a kernel does not take."""
    sources = {f"load {loadable.name}": loadable.source for loadable in load}
    host, _, field = error.field.rpartition(": ")
    if field not in sources:
        return error
    return BadInputError(f"{host}: load" if host else "load", sources[field], error.expected, error.source)


def loader() -> Path:
    """The static program that puts objects into the kernel it runs on (bpf/load.c)."""
    source = HOME / "load.c"
    place = cache() / "bpf" / f"loader-{hashlib.sha256(untrusted.content(source)).hexdigest()[:16]}"
    with locked(cache() / "bpf" / "lock"):
        if not checksums.whole(place, warn_of_rebuild):
            with replacing(place) as draft:
                libraries = ["-lbpf", "-lelf", "-lz", *_zstd()]
                compilation = _run("cc", "-O2", "-static", "-o", str(draft / LOADER), str(source), *libraries)
                if compilation.returncode != 0:
                    raise DragstripError(
                        f"the loader of BPF programs does not compile: {compilation.stderr[-2000:]}"
                    )
                checksums.write(draft, [LOADER])
    return place / LOADER


def _zstd() -> list[str]:
    """Newer versions of libelf want it."""
    library = _run("cc", "-print-file-name=libzstd.a").stdout.strip()
    return ["-lzstd"] if Path(library).is_absolute() else []


@once
def _libbpf() -> bool:
    """True if libbpf's headers are installed."""
    return _run("cc", "-E", "-include", "bpf/libbpf.h", "-x", "c", "/dev/null").returncode == 0


@once
def _compiler() -> tuple[str, ...]:
    """The command line but for the files; first what tells one compiler from another."""
    headers = Path("/usr/include") / _run("cc", "-print-multiarch").stdout.strip()
    flags = ("-x", "c", "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-fno-caret-diagnostics")
    # The same object wherever the sources are.
    reproducible_flags = ("-fdebug-compilation-dir=.", f"-ffile-prefix-map={HOME}=bpf")
    return (_run("clang", "--version").stdout, *flags, *reproducible_flags, f"-I{HOME}", f"-I{headers}")


def _key(file: Path) -> str:
    hashed = hashlib.sha256("\0".join(_compiler()).encode())
    headers = {header.resolve() for folder in (file.parent, HOME) for header in folder.glob("*.h")}
    for part in (file, *sorted(headers)):
        hashed.update(
            part.name.encode()
            + hashlib.sha256(untrusted.content(part, untrusted.SOURCE_MAX, "a C file or header")).digest()
        )
    return hashed.hexdigest()[:16]


def compile_object(file: Path, object_file: Path) -> None:
    """Runs clang; raises `BadInputError` with its error messages."""
    _, *flags = _compiler()
    compilation = _run(
        "clang", *flags, f"-ffile-prefix-map={file.parent}=.", "-c", str(file), "-o", str(object_file)
    )
    if compilation.returncode != 0:
        errors = [line.strip() for line in compilation.stderr.splitlines() if "error:" in line]
        why = " | ".join(errors[:3]) or compilation.stderr.strip()[-500:]
        raise BadInputError("load", str(file), f"a C file that clang compiles: {why}")


def _name(tool: Path, source: str, object_file: Path) -> str:
    query = _run(str(tool), "name", str(object_file))
    name = query.stdout.strip()
    if query.returncode != 0:
        raise BadInputError("load", source, f"a struct tcp_congestion_ops: it {query.stderr.strip()}")
    if not NAME.fullmatch(name):
        raise BadInputError("load", source, f"a .name of letters, digits, _ and ., 15 at most, not {name!r}")
    return name


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
