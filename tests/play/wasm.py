"""Just enough of WebAssembly's binary format (its core specification, 5.5) to make one function trap."""

from __future__ import annotations

EXPORTS, IMPORTS, CODE = 7, 2, 10
UNREACHABLE = b"\x00"


def _read(data: bytes, at: int) -> tuple[int, int]:
    """A LEB128 number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _written(value: int) -> bytes:
    made = b""
    while True:
        byte, value = value & 0x7F, value >> 7
        made += bytes([byte | (0x80 if value else 0)])
        if not value:
            return made


def _sections(module: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 8
    while at < len(module):
        kind = module[at]
        size, at = _read(module, at + 1)
        found.append((kind, module[at : at + size]))
        at += size
    return found


def _exported(content: bytes, name: str) -> int:
    count, at = _read(content, 0)
    for _ in range(count):
        size, at = _read(content, at)
        its = content[at : at + size].decode()
        index, at = _read(content, at + size + 1)
        if its == name:
            return index
    raise AssertionError(name)


def _imported_functions(content: bytes) -> int:
    """How many functions are imported, which are numbered first; other imports are not expected."""
    count, at = _read(content, 0)
    for _ in range(count):
        for _ in range(2):
            size, at = _read(content, at)
            at += size
        assert content[at] == 0, "an import that is no function"
        _, at = _read(content, at + 1)
    return count


def trapping(module: bytes, name: str) -> bytes:
    """The module with the exported function `name` beginning with `unreachable`."""
    sections = _sections(module)
    content = dict(sections)
    wanted = _exported(content[EXPORTS], name) - _imported_functions(content.get(IMPORTS, b"\x00"))
    count, at = _read(content[CODE], 0)
    made = _written(count)
    for number in range(count):
        size, at = _read(content[CODE], at)
        body = content[CODE][at : at + size]
        at += size
        if number == wanted:
            groups, start = _read(body, 0)
            for _ in range(groups):
                _, start = _read(body, start)
                start += 1  # the type of these locals
            body = body[:start] + UNREACHABLE + body[start:]
        made += _written(len(body)) + body
    whole = module[:8]
    for kind, inside in sections:
        inside = made if kind == CODE else inside
        whole += bytes([kind]) + _written(len(inside)) + inside
    return whole
