"""Which files a guest gets for a program; nothing is executed to find out."""

from __future__ import annotations

import os
import py_compile
import shutil
import struct
import sys
from pathlib import Path

import pytest

from dragstrip.engines.vm import closure, elf
from dragstrip.engines.vm.closure import Closure
from dragstrip.errors import BadInputError

SEARCH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin")
PROGRAM = shutil.which("ls", path=":".join(SEARCH)) or "/bin/ls"


def made_elf(
    machine: int = elf.X86_64, needed: bytes = b"libone.so", loader: bytes = b"/lib/loader.so"
) -> bytes:
    """A program of headers alone: an interpreter, one library, two folders to look in; empty: none."""
    strings_at, dynamic_at = 0x200, 0x300
    header = elf.HEADER.pack(
        b"\x7fELF\x02\x01\x01" + bytes(9), 3, machine, 1, 0, 64, 0, 0, 64, elf.SEGMENT.size, 3, 0, 0, 0
    )
    strings = b"\0" + needed + b"\0$ORIGIN/lib:/opt/lib\0" + loader + b"\0"
    folder_at, loader_at = 2 + len(needed), 2 + len(needed) + 21
    dynamic = b"".join(
        elf.DYNAMIC.pack(*entry)
        for entry in (
            *([(elf.DT_NEEDED, 1)] if needed else []),
            (elf.DT_RUNPATH, folder_at),
            (elf.DT_STRTAB, 0x1000 + strings_at),
            (elf.DT_NULL, 0),
        )
    )
    segments = b"".join(
        elf.SEGMENT.pack(kind, 4, at, 0x1000 + at, 0, size, size, 8)
        for kind, at, size in (
            (elf.PT_LOAD, 0, 0x400),
            (elf.PT_DYNAMIC, dynamic_at, len(dynamic)),
            (elf.PT_INTERP if loader else elf.PT_LOAD, strings_at + loader_at, len(loader) + 1),
        )
    )
    content = bytearray(0x400)
    for at, part in ((0, header), (64, segments), (strings_at, strings), (dynamic_at, dynamic)):
        content[at : at + len(part)] = part
    return bytes(content)


def program(place: Path, content: bytes) -> Path:
    place.write_bytes(content)
    place.chmod(0o755)
    return place


def paths(files: Closure) -> set[str]:
    return {entry.path for entry in files.entries()}


def test_a_program_says_what_it_loads() -> None:
    facts = elf.read(made_elf(), "made")
    expected = elf.Elf("x86_64", True, "/lib/loader.so", ("libone.so",), ("$ORIGIN/lib", "/opt/lib"))
    assert facts == expected
    assert elf.read(b"#!/bin/sh\n", "script") is None
    other = elf.read(made_elf(machine=183), "made")
    assert other is not None
    assert (other.machine, other.fits_guest) == ("aarch64", False)


@pytest.mark.parametrize("length", [20, 70, 0x210, 0x308])
def test_a_damaged_program_is_named(length: int) -> None:
    with pytest.raises(BadInputError, match="made: is a damaged ELF file"):
        elf.read(made_elf()[:length], "made")


def test_every_prefix_of_a_program_is_read_or_refused() -> None:
    content = made_elf()
    refused = 0
    for length in range(0, len(content), 7):
        try:
            elf.read(content[:length], "made")
        except BadInputError:
            refused += 1
    assert refused > 20


def test_a_library_beside_its_program_comes_with_it(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    loader = program(tmp_path / "loader", made_elf(needed=b"", loader=b""))
    program(tmp_path / "lib/libone.so.1", made_elf(needed=b"", loader=b""))
    (tmp_path / "lib/libone.so").symlink_to("libone.so.1")
    program(tmp_path / "program", made_elf(loader=str(loader).encode()))
    files = Closure(tmp_path)
    files.command("COMMAND", ["./program"])
    expected = {str(tmp_path / name) for name in ("program", "loader", "lib/libone.so", "lib/libone.so.1")}
    assert expected <= paths(files)
    targets = {entry.path: entry.target for entry in files.entries()}
    assert targets[str(tmp_path / "lib/libone.so")] == "libone.so.1"


def test_a_library_that_is_nowhere_is_named(tmp_path: Path) -> None:
    program(tmp_path / "program", made_elf())
    with pytest.raises(BadInputError, match=r"loads libone\.so, which is nowhere"):
        Closure(tmp_path).command("COMMAND", ["./program"])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (made_elf(machine=183), "the guest's machine: it is for aarch64"),
        (b"text", "neither ELF nor a script"),
        (b"#!/nowhere/interpreter -x\n", "/nowhere/interpreter is not"),
        (b"#!/bin/sh\r\necho\r\n", "a script with Unix line ends: its first line ends in a carriage return"),
        (made_elf()[:30], "is a damaged ELF file: it ends within its header"),
        (made_elf()[:0x3F0], "is a damaged ELF file: it is cut: 1008 bytes of 1024"),
    ],
)
def test_a_program_that_the_guest_cannot_run_is_refused(
    content: bytes, complaint: str, tmp_path: Path
) -> None:
    program(tmp_path / "program", content)
    with pytest.raises(BadInputError, match=complaint):
        Closure(tmp_path).command("COMMAND", ["./program"])


def test_a_cut_program_is_data_where_nobody_starts_it(tmp_path: Path) -> None:
    program(tmp_path / "program", made_elf(needed=b"", loader=b""))
    (tmp_path / "core").write_bytes(made_elf()[:0x210])
    files = Closure(tmp_path)
    files.command("COMMAND", ["./program", "core"])
    files.file("core:/srv/core")
    assert {str(tmp_path / "core"), "/srv/core"} <= paths(files)


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("/", "a PLACE that names the file"),
        ("/srv/", "a PLACE that names the file"),
        ("srv/x", "an absolute PLACE"),
        ("/proc/x", "a place outside /dev, /proc and /sys"),
        ("/srv/../dev/null", "a place outside /dev, /proc and /sys"),
        ("/etc/first", "another PLACE: /etc/first is a file in the guest"),
        ("/etc/first/x", "another PLACE: /etc/first is a file in the guest"),
        ("/link/first", "another PLACE: /etc/first is a file in the guest"),
        ("/etc", "another PLACE: /etc is a folder in the guest"),
    ],
)
def test_a_place_that_a_file_cannot_have_is_refused(place: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    files = Closure(tmp_path)
    files.file("data:/etc/first")
    files._entries["/link"] = closure.GuestFile("/link", target="etc")
    with pytest.raises(BadInputError, match=f"--file: got 'data:{place}', expected .*{complaint}"):
        files.file(f"data:{place}")
    files.file("data:/link/second")
    assert "/etc/second" in paths(files), "behind the link"


def test_words_bring_files_and_programs_along(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("first", "second", "third"):
        program(folder / name, made_elf(needed=b"", loader=b""))
    shims = tmp_path / "shims"
    shims.mkdir()
    program(shims / "second", b"text")
    files = Closure(tmp_path, (str(shims), str(folder)))
    files.command("COMMAND", ["first", "second <data; third>/dev/null", "/proc/cpuinfo", "none"])
    names = {"data", "bin/first", "bin/second", "bin/third"}
    assert {path for path in paths(files) if path.startswith(str(tmp_path))} == {
        str(tmp_path / name) for name in names
    }
    assert paths(files) & {"/bin", "/bin/sh"}, "what system(3) starts"
    assert files.path_variable().endswith(f":/bin:{folder}")


def test_a_result_of_the_last_run_is_no_input_of_the_next(tmp_path: Path) -> None:
    for name in ("given", "result"):
        (tmp_path / name).write_text("x")
    files = Closure(tmp_path, SEARCH, ["./result"])
    files.command("COMMAND", ["ls", "given", "result", str(tmp_path / "result")])
    assert {Path(path).name for path in paths(files) if path.startswith(str(tmp_path))} == {"given"}


def test_a_file_is_placed_and_a_folder_comes_whole(tmp_path: Path) -> None:
    (tmp_path / "folder/inner").mkdir(parents=True)
    (tmp_path / "folder/inner/file").write_text("x")
    (tmp_path / "folder/link").symlink_to("inner/file")
    files = Closure(tmp_path)
    files.file("folder")
    files.file("folder/inner/file:/srv/file")
    files.file("folder:/copy")
    by_path = {entry.path: entry for entry in files.entries()}
    assert by_path["/srv/file"].content == b"x"
    assert by_path["/copy/link"].content == b"x"
    assert by_path[str(tmp_path / "folder/link")].target == "inner/file"
    assert by_path[str(tmp_path / "folder/inner")].content is None
    for wrong in ("nowhere", "folder/inner/file:relative"):
        with pytest.raises(BadInputError, match="--file"):
            files.file(wrong)


def test_the_digest_is_that_of_contents_and_rights(tmp_path: Path) -> None:
    file = tmp_path / "file"

    def digest() -> str:
        files = Closure(tmp_path)
        files.file("file")
        return str(files.about()["sha256"])

    file.write_text("x")
    file.chmod(0o644)
    first = digest()
    os.utime(file, (1, 1))
    assert digest() == first, "its time is not the guest's"
    file.chmod(0o600)
    second = digest()
    file.write_text("y")
    assert len({first, second, digest()}) == 3


def test_too_much_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closure, "BYTES_MAX", 1000)
    (tmp_path / "small").write_bytes(bytes(600))
    (tmp_path / "next").write_bytes(bytes(600))
    files = Closure(tmp_path)
    files.file("small")
    with pytest.raises(BadInputError, match=r"2 files of .* the last one ."):
        files.file("next")


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).write_text("x")
    with pytest.raises(BadInputError, match="a name in UTF-8"):
        Closure(tmp_path).file(".")
    with pytest.raises(BadInputError, match="--file: got '/dev/null'"):
        Closure(tmp_path).file("/dev/null")


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(BadInputError, match="too many symbolic links"):
        Closure(tmp_path)._add(tmp_path / "a")


def test_a_compiled_module_gets_the_time_of_its_source(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text("x = 1\n")
    compiled = Path(str(py_compile.compile(str(source), doraise=True)))
    content = closure._recompiled(compiled)
    assert content is not None
    assert struct.unpack("<I", content[8:12]) == (closure.MODIFIED_S,)
    assert content[12:] == compiled.read_bytes()[12:]
    source.write_text("x = 22\n")
    assert closure._recompiled(compiled) is None, "it is another source's"


def test_an_interpreter_brings_its_library() -> None:
    interpreter = Path(sys.executable).resolve()
    files = Closure(Path.cwd(), SEARCH)
    files.command("COMMAND", [str(interpreter), "-c", "import json"])
    places = paths(files)
    assert any(place.endswith("/json/decoder.py") for place in places)
    assert any("/lib-dynload/" in place or "/libpython" in place for place in places)
    assert not any("/idlelib/" in place for place in places)


def test_the_first_line_of_a_module_brings_no_other_interpreter(tmp_path: Path) -> None:
    """An activated environment is first on $PATH, and modules begin with `#!/usr/bin/env python3`."""
    environment = tmp_path / "environment"
    packages = environment / "lib/python3.11/site-packages"
    (environment / "bin").mkdir(parents=True)
    packages.mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (environment / "bin/python3").symlink_to(Path(sys.executable).resolve())
    (packages / "large.py").write_text("x = 1\n")
    files = Closure(Path.cwd(), (str(environment / "bin"), *SEARCH))
    files.command("COMMAND", [str(Path(sys.executable).resolve()), "-c", "import webbrowser"])
    assert any(place.endswith("/webbrowser.py") for place in paths(files))
    assert not any(place.endswith("/large.py") for place in paths(files))


def test_too_many_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (packages / "large.py").write_bytes(bytes(2000))
    monkeypatch.setattr(closure, "BYTES_MAX", 1000)
    monkeypatch.setattr(closure, "_content", Path.read_bytes)
    with pytest.raises(BadInputError, match=rf"fewer packages than {packages}, such as /usr/bin/python3"):
        Closure(tmp_path, SEARCH)._library(packages)


def test_a_real_program_comes_with_its_loader() -> None:
    files = Closure(Path.cwd(), SEARCH)
    files.command("COMMAND", ["ls"])
    names = {Path(place).name for place in paths(files)}
    facts = elf.read(Path(PROGRAM).read_bytes(), PROGRAM)
    assert facts is not None
    assert facts.interpreter
    assert {"ls", *facts.needed, Path(facts.interpreter or "").name} <= names
