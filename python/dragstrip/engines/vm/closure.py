"""The files that a guest needs for a program: the program, its libraries, its interpreter, certificates.

What a program loads is read from its file and never found out by running it. A library that is opened by
name at run time is not in there: `--file` adds it. Files keep their paths, so that a command means the same
inside.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragstrip.engines.agent.flow_programs import commands_of
from dragstrip.engines.contract import Json
from dragstrip.engines.vm import elf
from dragstrip.errors import BadInputError, Raw
from dragstrip.io import untrusted

BYTES_MAX = 160 << 20
"""Bytes of all files: they share the exchange (window.py), and are in the guest's memory twice at first."""
FILES_MAX = 20_000
MODIFIED_S = 1_767_225_600
"""Time of all files in the guest (`MODIFIED_S` in crates/agent/src/commands/root.rs)."""
PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""The guest's $PATH, before the folders of programs that are elsewhere."""
SHIMS = "shims"
"""Folders of scripts that choose a program by files of this machine (pyenv, asdf), which a guest has not."""
LIBRARIES = (
    *("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"),
    *("/lib64", "/usr/lib64", "/lib", "/usr/lib"),
)
"""Folders that loaders look in by themselves (ld.so(8); Debian's and others)."""
CACHE = "/etc/ld.so.cache"
"""Tells the loader of libraries elsewhere."""
CONFIGURATION = Path("/etc/ld.so.conf")
OPENED_LATER = {
    "libc.so.6": ("libnss_files.so.2", "libgcc_s.so.1"),
    "libcrypto.so.3": ("ossl-modules/legacy.so",),
}
"""By library: others beside it that it opens at run time."""
TLS = re.compile(r"lib(ssl|crypto|gnutls|nss3)\.so")
CERTIFICATES = (
    *("/etc/ssl/openssl.cnf", "/etc/ssl/certs/ca-certificates.crt", "/usr/lib/ssl/openssl.cnf"),
    *("/usr/lib/ssl/certs/ca-certificates.crt", "/etc/pki/tls/openssl.cnf", "/etc/pki/tls/cert.pem"),
    "/etc/pki/tls/certs/ca-bundle.crt",
)
"""Files that libraries for TLS read, where a distribution has them."""
SHELL = Path("/bin/sh")
"""The shell that programs start by system(3), and that a login has."""
LOOKUPS = ("/etc/services", "/etc/protocols")
OF_THE_MACHINE = re.compile(r"/(dev|proc|sys)(/.*)?|/etc/(hosts|passwd|group|nsswitch\.conf|resolv\.conf)")
"""Files that a guest has of its own."""
RUNNING = re.compile(r"/(dev|proc|sys)(/.*)?")
"""Folders that a guest's kernel fills."""
PYTHON = re.compile(r"python3(\.\d+)?t?")
LEFT_OUT = re.compile(
    r"test|tests|idlelib|turtledemo|ensurepip|tkinter|lib2to3|pydoc_data|config-.*|(site|dist)-packages"
)
"""Folders of Python's library that a server or a client does not import."""
LINKS_MAX = 40
"""Symbolic links on the way to a file, as the kernel has it (path_resolution(7))."""


@dataclass(frozen=True)
class GuestFile:
    """A file, a folder or a symbolic link of the guest."""

    path: str
    mode: int = 0o755
    content: bytes | None = None
    target: str | None = None

    def described(self) -> dict[str, Any]:
        """The entry as the agent takes it (crates/agent/src/commands/root.rs)."""
        if self.target is not None:
            return {"kind": "link", "path": self.path, "target": self.target}
        if self.content is None:
            return {"kind": "folder", "path": self.path, "mode": self.mode}
        return {"kind": "file", "path": self.path, "mode": self.mode, "bytes": len(self.content)}


@dataclass
class Closure:
    """Files for a guest, by path."""

    folder: Path
    """Folder in which programs start; relative paths begin there."""
    search: Sequence[str] = ()
    """Folders of programs: $PATH."""
    written: Sequence[str] = ()
    """Files that the command writes: one from an earlier run is no input of the next."""
    _entries: dict[str, GuestFile] = field(default_factory=dict)
    _followed: set[str] = field(default_factory=set)
    _folders: list[str] = field(default_factory=lambda: list(PATH))
    _libraries: dict[tuple[str, tuple[str, ...]], Path | None] = field(default_factory=dict)
    _bytes: int = 0

    def command(self, option: str, words: Sequence[str]) -> None:
        """Add a command's program and what its other words name: files, and programs on the path.

        Raises `BadInputError` for a program that is not there or that the guest cannot run.
        """
        program = self._program(words[0])
        if program is None:
            raise BadInputError(option, words[0], "a program that exists: command not found", "command line")
        self._add_program(option, words[0], program)
        if SHELL.is_file():
            self._follow(option, str(SHELL), self._add(SHELL))
        for word in (part for text in words[1:] for part in _parts(text)):
            self._add_word(option, word)

    def file(self, text: str) -> None:
        """Add `PATH`, a file or a folder, or `PATH:PLACE` at another place in the guest."""
        source, place = text, None
        if not os.path.lexists(self.folder / text) and ":" in text:
            source, _, place = text.rpartition(":")
        path = self.folder / source
        if not source or not (path.is_file() or path.is_dir()):
            expected = "a file or a folder that exists, or PATH:PLACE"
            raise BadInputError("--file", text, expected, "command line")
        if place is not None and not place.startswith("/"):
            expected = "PATH:PLACE with an absolute PLACE, such as site.conf:/etc/site.conf"
            raise BadInputError("--file", text, expected, "command line")
        at = None if place is None else self._placed(text, place, path.is_dir())
        if path.is_dir():
            self._tree("--file", path, None if at is None else str(at))
        elif at is not None:
            self._put(at, path)
        else:
            self._follow("--file", source, self._add(path))

    def _placed(self, text: str, place: str, is_folder: bool) -> Path:
        """Return where a file or a folder goes. Raises `BadInputError` for a place that it cannot have."""
        at = _normal(Path(place))
        links = {path: entry.target for path, entry in self._entries.items() if entry.target is not None}
        for _ in range(LINKS_MAX):
            link = next((parent for parent in reversed(at.parents) if str(parent) in links), None)
            if link is None:
                break
            at = _normal(link.parent / links[str(link)] / at.relative_to(link))
        file_above = next((parent for parent in (at, *at.parents) if self._is_file(parent)), None)
        if RUNNING.fullmatch(str(at)):
            expected = "a place outside /dev, /proc and /sys, which the guest makes itself"
        elif not is_folder and (place.endswith("/") or at == Path("/")):
            expected = "a PLACE that names the file, such as /srv/site.conf"
        elif not is_folder and self._is_folder(at):
            expected = f"another PLACE: {at} is a folder in the guest"
        elif file_above is not None:
            expected = f"another PLACE: {file_above} is a file in the guest"
        else:
            return at
        raise BadInputError("--file", text, expected, "command line")

    def _is_file(self, path: Path) -> bool:
        entry = self._entries.get(str(path))
        return entry is not None and entry.content is not None

    def _is_folder(self, path: Path) -> bool:
        prefix = f"{path}/"
        entry = self._entries.get(str(path))
        is_entry = entry is not None and entry.content is None and entry.target is None
        return is_entry or any(other.startswith(prefix) for other in self._entries)

    def path_variable(self) -> str:
        """Return $PATH of the guest."""
        return ":".join(dict.fromkeys(self._folders))

    def entries(self) -> list[GuestFile]:
        """Return all entries, by path."""
        return [self._entries[path] for path in sorted(self._entries)]

    def contents(self) -> bytes:
        """Return the contents of all files, by path."""
        return b"".join(entry.content for entry in self.entries() if entry.content is not None)

    def about(self) -> dict[str, Any]:
        """Return number and bytes of the files, and a SHA-256 of all paths, rights and contents."""
        hashed = hashlib.sha256()
        for entry in self.entries():
            content = b"" if entry.content is None else hashlib.sha256(entry.content).digest()
            hashed.update(json.dumps(entry.described()).encode() + b"\n" + content)
        count = sum(entry.content is not None for entry in self._entries.values())
        return {"files": count, "bytes": self._bytes, "sha256": hashed.hexdigest()}

    def _program(self, word: str) -> Path | None:
        """Return the file of a command's first word, or None."""
        if "/" in word:
            path = self.folder / word
            return path if path.is_file() else None
        for name in self.search:
            path = Path(name) / word
            if Path(name).name != SHIMS and path.is_file() and os.access(path, os.X_OK):
                return path
        return None

    def _add_program(self, option: str, word: str, path: Path) -> None:
        if not os.access(path, os.X_OK):
            raise BadInputError(option, word, "a program that may be executed", "command line")
        if "/" not in word:
            self._folders.append(str(path.parent))
        real = self._add(path)
        self._follow(option, word, real, strict=True)
        self._python(path, real)

    def _add_word(self, option: str, word: str) -> None:
        path = self.folder / word
        results = {_normal(self.folder / name) for name in self.written}
        if OF_THE_MACHINE.fullmatch(str(_normal(path))) or _normal(path) in results:
            return
        if "/" in word or path.is_file():
            if path.is_file():
                real = self._add(path)
                self._follow(option, word, real)
                self._python(path, real)
        elif (program := self._program(word)) is not None:
            self._add_program(option, word, program)

    def _add(self, path: Path, hops: int = 0) -> Path:
        """Add a file with all symbolic links on the way to it, and return its real path."""
        if hops > LINKS_MAX:
            raise BadInputError("", None, "leads through too many symbolic links", str(path))
        at = Path("/")
        parts = _normal(path).parts[1:]
        for index, part in enumerate(parts):
            at /= part
            target = untrusted.link_target(at)
            if target is not None:
                self._entries.setdefault(str(at), GuestFile(str(at), target=target))
                return self._add(at.parent.joinpath(target, *parts[index + 1 :]), hops + 1)
        self._put(at, at)
        return at

    def _put(self, place: Path, source: Path) -> None:
        """Put a file's content at a place, once."""
        if str(place) in self._entries or not source.is_file():
            return
        self._keep(str(place), source.stat().st_mode, _content(source), source)

    def _keep(self, place: str, mode: int, content: bytes, source: Path) -> None:
        if not expressible(place):
            raise BadInputError("--file", place, "a name in UTF-8", "command line")
        self._bytes += len(content)
        if self._bytes > BYTES_MAX or len(self._entries) >= FILES_MAX:
            size = untrusted.size_text(self._bytes)
            raise BadInputError(
                "--engine",
                Raw(f"{len(self._entries) + 1} files of {size} for the programs, the last one {source}"),
                f"at most {FILES_MAX} of {untrusted.size_text(BYTES_MAX)}: {_smaller(source)}",
                "command line",
            )
        self._entries[place] = GuestFile(place, mode & 0o777, content)

    def _tree(self, option: str, folder: Path, place: str | None = None) -> None:
        """Add a folder with all that is in it."""
        for path in _walk(folder):
            if place is not None:
                inside = _normal(Path(place)) / path.relative_to(folder)
                if path.is_dir():
                    self._entries.setdefault(str(inside), GuestFile(str(inside), path.stat().st_mode & 0o777))
                else:
                    self._put(inside, path)
            elif path.is_dir() and not path.is_symlink():
                real = path.resolve()
                self._entries.setdefault(str(real), GuestFile(str(real), real.stat().st_mode & 0o777))
            elif path.exists():
                self._follow(option, str(path), self._add(path))

    def _follow(
        self, option: str, word: str, real: Path, *, strict: bool = False, inherited: tuple[str, ...] = ()
    ) -> None:
        """Add what a program or a library loads; if `strict`, all of it has to be there."""
        entry = self._entries.get(str(real))
        if str(real) in self._followed or entry is None or entry.content is None:
            return
        self._followed.add(str(real))
        if entry.content.startswith(b"#!"):
            self._script(option, word, entry.content, strict)
            return
        try:
            facts = elf.read(entry.content, str(real))
        except BadInputError:
            if strict:
                raise
            return  # data, as far as anybody knows
        if facts is None:
            if strict:
                expected = "a program for Linux: it is neither ELF nor a script that begins with #!"
                raise BadInputError(option, word, expected, "command line")
            return
        if not facts.fits_guest:
            if strict:
                bits = "" if facts.is_64_bit else ", 32 bits"
                expected = f"a program for x86_64, the guest's machine: it is for {facts.machine}{bits}"
                raise BadInputError(option, word, expected, "command line")
            return
        if facts.interpreter is not None:
            self._add(Path(facts.interpreter))
        search = (*_folders(facts.search, real), *inherited)
        for name in facts.needed:
            key = (name, search)
            if key not in self._libraries:
                self._libraries[key] = _library(name, search)
            library = self._libraries[key]
            if library is not None:
                added = self._add(library)
                self._follow(option, word, added, strict=strict, inherited=search)
                self._opened_later(option, name, library)
            elif strict:
                expected = f"a program whose libraries are there: {real} loads {name}, which is nowhere"
                raise BadInputError(option, word, expected, "command line")

    def _opened_later(self, option: str, name: str, library: Path) -> None:
        if str(library.parent) not in LIBRARIES:
            self._put(Path(CACHE), Path(CACHE))
        for other in OPENED_LATER.get(name, ()):
            place = library.parent / other
            if place.is_file():
                self._follow(option, str(place), self._add(place))
        if TLS.match(name):
            for certificate in map(Path, CERTIFICATES):
                if certificate.is_file():
                    self._add(certificate)
        for lookup in map(Path, LOOKUPS):
            if lookup.is_file():
                self._add(lookup)

    def _script(self, option: str, word: str, content: bytes, strict: bool) -> None:
        """Add a script's interpreter, also one that env(1) looks for."""
        first = content[2:].split(b"\n", 1)[0]
        if strict and first.endswith(b"\r"):
            expected = "a script with Unix line ends: its first line ends in a carriage return (dos2unix)"
            raise BadInputError(option, word, expected, "command line")
        line = first.decode(errors="replace").strip()
        interpreter, _, arguments = line.partition(" ")
        parts = [part for part in arguments.split() if not part.startswith("-") and "=" not in part]
        names = [interpreter, *(parts[:1] if Path(interpreter).name == "env" else [])]
        for name in names:
            program = self._program(name)
            if program is not None:
                self._add_program(option, name, program)
            elif strict:
                expected = f"a script whose interpreter is there: {name} is not"
                raise BadInputError(option, word, expected, "command line")

    def _python(self, path: Path, real: Path) -> None:
        """Add the library of a Python interpreter, and of a virtual environment its packages."""
        if not PYTHON.fullmatch(real.name):
            return
        for version in _versions(real):
            for place in (real.parents[1] / "lib" / version, real.parents[1] / "lib64" / version):
                if place.is_dir():
                    self._library(place)
        home = path.parent.parent
        if (home / "pyvenv.cfg").is_file():
            self._add(home / "pyvenv.cfg")
            for packages in sorted(home.glob("lib/python3.*/site-packages")):
                self._library(packages)

    def _library(self, folder: Path) -> None:
        """Add modules of Python, and their compiled form, valid for a source of one time (PEP 552)."""
        if str(folder) in self._followed:
            return
        self._followed.add(str(folder))
        for path in _walk(folder, LEFT_OUT):
            if path.is_dir() or not path.exists():
                continue
            if path.suffix == ".pyc" and path.parent.name == "__pycache__":
                compiled = _recompiled(path)
                if compiled is not None:
                    self._keep(str(path.parent.resolve() / path.name), 0o644, compiled, path)
                continue
            real = self._add(path)
            if path.suffix != ".py":  # the first line of a module starts nothing when it is imported
                self._follow("COMMAND", str(path), real)


ENVIRONMENT = {"HOME": "/root", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "dumb", "TZ": "UTC"}
"""Variables of programs in the guest, beside PATH: none of this process's."""


def for_flows(scenario: Json) -> tuple[dict[str, Any], Closure | None]:
    """Return what a request has for a scenario's programs, and their files; nothing without any.

    Raises `BadInputError` for what the guest cannot run.
    """
    commands = commands_of(scenario)
    if not commands:
        return {}, None
    closure = Closure(Path(), os.environ.get("PATH", "").split(":"))
    for entry in commands:
        closure.folder = Path(entry.folder)
        field = "client"
        try:
            closure.command(entry.field(field), entry.client)
            if entry.server:
                closure.command(entry.field(field := "server"), entry.server)
            field = "files"
            for text in entry.files:
                closure.file(text)
        except BadInputError as error:
            raise error.reworded(entry.field(field), source="engine vm") from None
    environment = {**ENVIRONMENT, "PATH": closure.path_variable()}
    files = [entry.described() for entry in closure.entries()]
    flows = [entry.described() for entry in commands]
    return {"commands": {"files": files, "environment": environment, "flows": flows}}, closure


def expressible(text: str) -> bool:
    """True for a name that is text: one of other bytes cannot be part of a request."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _parts(text: str) -> list[str]:
    """A word, or the words in it where it has several: a command for `sh -c`."""
    if not any(letter.isspace() for letter in text):
        return [text]
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return text.split()


def _normal(path: Path) -> Path:
    """An absolute path without `.` and `..`."""
    return Path(os.path.normpath(Path.cwd() / path))


def _content(path: Path) -> bytes:
    return untrusted.content(path, BYTES_MAX, "a file for the guest")


def _smaller(source: Path) -> str:
    """Return what to do where a file is one too many."""
    packages = next((folder for folder in source.parents if folder.name == "site-packages"), None)
    if packages is None:
        return "leave out a large --file"
    return f"an interpreter with fewer packages than {packages}, such as /usr/bin/python3, or no large --file"


def _walk(folder: Path, left_out: re.Pattern[str] | None = None) -> Iterator[Path]:
    """A folder and everything below it, by name; no folder behind a link."""
    yield folder
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            if left_out is None or not left_out.fullmatch(path.name):
                yield from _walk(path, left_out)
        else:
            yield path


def _folders(search: Sequence[str], real: Path) -> tuple[str, ...]:
    """Folders of DT_RUNPATH, whose names may have variables (ld.so(8))."""
    origin = str(real.parent)
    return tuple(
        re.sub(r"\$(ORIGIN|\{ORIGIN\})", lambda _: origin, part)
        .replace("$LIB", "lib/x86_64-linux-gnu")
        .replace("${LIB}", "lib/x86_64-linux-gnu")
        for part in search
    )


def _library(name: str, search: Sequence[str]) -> Path | None:
    """Path of a library, for a program of the guest's machine."""
    if "/" in name:
        return Path(name) if Path(name).is_file() else None
    for folder in (*search, *LIBRARIES, *_configured(CONFIGURATION)):
        place = Path(folder) / name
        if place.is_file():
            facts = elf.read(_content(place), str(place))
            if facts is not None and facts.fits_guest:
                return place
    return None


def _configured(file: Path, depth: int = 0) -> list[str]:
    """Folders of ld.so.conf(5), with those of the files that it includes."""
    if depth > 4 or not file.is_file():
        return []
    folders = []
    for line in untrusted.text(file, untrusted.MIB, "a list of folders").splitlines():
        word, _, rest = line.split("#", 1)[0].strip().partition(" ")
        if word == "include":
            pattern = rest.strip()
            base = file.parent if not pattern.startswith("/") else Path("/")
            for module in sorted(base.glob(pattern.lstrip("/"))):
                folders += _configured(module, depth + 1)
        elif word.startswith("/"):
            folders.append(word)
    return folders


def _versions(real: Path) -> list[str]:
    """Folder names of an interpreter's library."""
    if "." in real.name:
        return [real.name]
    return sorted(path.name for path in (real.parents[1] / "lib").glob("python3.*") if path.is_dir())


_COMPILED = struct.Struct("<4sIII")


def _recompiled(path: Path) -> bytes | None:
    """A compiled module for a source with the time that files have in the guest; None if it is stale."""
    stem, _, rest = path.name.partition(".")
    source = path.parent.parent / f"{stem}.py"
    content = _content(path)
    if ".opt-" in rest or not source.is_file() or len(content) < _COMPILED.size:
        return None
    magic, flags, time_s, size = _COMPILED.unpack_from(content)
    about = source.stat()
    if flags or time_s != int(about.st_mtime) & 0xFFFFFFFF or size != about.st_size & 0xFFFFFFFF:
        return None
    return _COMPILED.pack(magic, flags, MODIFIED_S, size) + content[_COMPILED.size :]
