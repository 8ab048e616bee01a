"""The guest's first file system: the agent and the modules it loads, as a cpio archive (newc)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragstrip.io import untrusted

WATCHDOG = "ib700wdt.ko"
SOONEST = "timeout=2"
"""Seconds until the watchdog fires: the least that the device can."""

FOLDER, PROGRAM, PLAIN = 0o040755, 0o100755, 0o100644


def initramfs(file: Path, agent: Path, modules: Sequence[Path]) -> None:
    """Writes the archive; its bytes depend on the contents alone."""
    order = "".join(f"{m.name} {SOONEST}\n" if m.name == WATCHDOG else f"{m.name}\n" for m in modules)
    entries: list[tuple[str, int, bytes]] = [
        *((name, FOLDER, b"") for name in ("dev", "proc", "sys", "modules")),
        ("init", PROGRAM, untrusted.content(agent)),
        ("modules/order", PLAIN, order.encode()),
        *((f"modules/{module.name}", PLAIN, untrusted.content(module)) for module in modules),
    ]
    parts = [_entry(number, *entry) for number, entry in enumerate(entries, start=1)]
    file.write_bytes(b"".join(parts) + _entry(0, "TRAILER!!!", 0, b""))


def _entry(number: int, name: str, mode: int, content: bytes) -> bytes:
    """Header of hexadecimal fields, name and content, each padded to four bytes (cpio(5), newc)."""
    text = name.encode() + b"\0"
    # number, mode, owner, group, links, time, size, device (4 fields), name's length, checksum
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(text), 0)
    header = b"070701" + b"".join(b"%08X" % value for value in fields)
    return _padded(header + text) + _padded(content)


def _padded(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % 4)
