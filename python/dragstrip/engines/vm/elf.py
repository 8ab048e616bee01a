"""Interpreter and libraries of an ELF program, read from the file (elf(5)); nothing is executed."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from dragstrip.errors import BadInputError

MAGIC = b"\x7fELF"
X86_64 = 62
"""EM_X86_64, the guest's machine."""
MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv"}
CLASS_64, LITTLE_ENDIAN = 2, 1
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NULL, DT_NEEDED, DT_STRTAB, DT_RPATH, DT_RUNPATH = 0, 1, 5, 15, 29
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
DYNAMIC = struct.Struct("<qQ")


@dataclass(frozen=True)
class Elf:
    """Facts about a program or a library."""

    machine: str
    is_64_bit: bool
    interpreter: str | None = None
    """Program that loads it; a static program has none."""
    needed: tuple[str, ...] = ()
    """Names of libraries."""
    search: tuple[str, ...] = ()
    """Folders in which these are looked for first (DT_RUNPATH, or DT_RPATH)."""

    @property
    def fits_guest(self) -> bool:
        """True for a program of the guest's machine."""
        return self.is_64_bit and self.machine == MACHINES[X86_64]


def read(content: bytes, source: str) -> Elf | None:
    """Return the facts about a file; None if it is no ELF file. Raises `BadInputError` for a damaged one."""
    if not content.startswith(MAGIC):
        return None
    try:
        return _read(content)
    except (struct.error, IndexError, ValueError) as error:
        raise BadInputError("", None, f"is a damaged ELF file: {error}", source) from None


def _read(content: bytes) -> Elf:
    if len(content) < HEADER.size:
        raise ValueError("it ends within its header")
    order = "little" if content[5] == LITTLE_ENDIAN else "big"
    number = int.from_bytes(content[18:20], order)  # type: ignore[arg-type]
    machine = MACHINES.get(number, f"machine {number}")
    if content[4] != CLASS_64 or content[5] != LITTLE_ENDIAN or number != X86_64:
        return Elf(machine, content[4] == CLASS_64)
    fields = HEADER.unpack_from(content)
    start, size, count = fields[5], fields[9], fields[10]
    segments = [SEGMENT.unpack_from(content, start + size * index) for index in range(count)]
    loaded = [segment for segment in segments if segment[0] == PT_LOAD]
    end = max((segment[2] + segment[5] for segment in loaded), default=0)
    if end > len(content):
        raise ValueError(f"it is cut: {len(content)} bytes of {end}")
    interpreter, entries = None, []
    for kind, _, offset, _, _, length, _, _ in segments:
        if kind == PT_INTERP:
            interpreter = _text(content, offset)
        elif kind == PT_DYNAMIC:
            entries = _entries(content, offset, length)
    places = [value for tag, value in entries if tag == DT_STRTAB]
    if not places:
        return Elf(machine, True, interpreter)
    strings = _offset(loaded, places[0])
    texts = [(tag, _text(content, strings + value)) for tag, value in entries if tag in _TEXTS]
    needed = tuple(text for tag, text in texts if tag == DT_NEEDED)
    paths = {tag: text for tag, text in texts if tag != DT_NEEDED}
    search = paths.get(DT_RUNPATH, paths.get(DT_RPATH, ""))
    return Elf(machine, True, interpreter, needed, tuple(part for part in search.split(":") if part))


_TEXTS = (DT_NEEDED, DT_RPATH, DT_RUNPATH)


def _entries(content: bytes, offset: int, length: int) -> list[tuple[int, int]]:
    entries = []
    for at in range(offset, offset + length, DYNAMIC.size):
        tag, value = DYNAMIC.unpack_from(content, at)
        if tag == DT_NULL:
            break
        entries.append((tag, value))
    return entries


def _offset(loaded: list[tuple[int, ...]], address: int) -> int:
    """Place in the file of an address in memory."""
    for _, _, offset, start, _, length, _, _ in loaded:
        if start <= address < start + length:
            return offset + address - start
    raise ValueError(f"no segment has address {address:#x}")


def _text(content: bytes, offset: int) -> str:
    return content[offset : content.index(b"\0", offset)].decode()
