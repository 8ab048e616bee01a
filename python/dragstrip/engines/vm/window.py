"""The file through which a run is asked for and answered (its layout: crates/agent/src/exchange.rs)."""

from __future__ import annotations

import json
import mmap
import struct
from pathlib import Path
from typing import Any

from dragstrip.errors import BadInputError, DragstripError, Raw

SIZE = 1 << 28
"""The size of the file in bytes; only what is written takes memory."""

BODY = 4096
ASKED, RUNNING, ANSWERED, FAILED, REFUSED = 1, 2, 3, 4, 5


class SharedWindow:
    """The shared file, mapped."""

    def __init__(self, file: Path) -> None:
        with file.open("w+b") as opened:
            opened.truncate(SIZE)
            self._map = mmap.mmap(opened.fileno(), SIZE)

    def ask(self, content: dict[str, Any], raw: bytes = b"") -> None:
        """Leaves a request: a line of JSON, and what it says stands behind it."""
        request = json.dumps(content).encode() + b"\n" + raw
        if len(request) > SIZE - BODY:
            raise DragstripError("the scenario is too large for the vm engine")
        self._map[BODY : BODY + len(request)] = request
        self._set(8, len(request))
        self._set(0, ASKED)

    def answered(self) -> bool:
        """The run has ended, well or badly."""
        return self._get(0) in (ANSWERED, FAILED, REFUSED)

    def progress(self) -> int:
        """Nanoseconds of the run's own time."""
        return self._get(16)

    def answer(self) -> tuple[dict[str, Any], memoryview]:
        """The line of JSON and the raw columns; raises `DragstripError` with the agent's complaint.

        That is a `BadInputError` where it cannot give what was asked for.
        """
        body = self._map[BODY : BODY + self._get(24)]
        if self._get(0) == FAILED:
            raise DragstripError(f"engine vm: {body.decode(errors='replace')}")
        if self._get(0) == REFUSED:
            field, value, expected = body.decode(errors="replace").split("\n")
            raise BadInputError(field, Raw(value), expected, "engine vm")
        end = body.index(b"\n")
        return json.loads(body[:end]), memoryview(body)[end + 1 :]

    def close(self) -> None:
        """Lets the file go."""
        self._map.close()

    def _get(self, offset: int) -> int:
        (value,) = struct.unpack_from("<Q", self._map, offset)
        assert isinstance(value, int)
        return value

    def _set(self, offset: int, value: int) -> None:
        struct.pack_into("<Q", self._map, offset, value)
