"""Files of other programs as recordings: with what each says, every other column empty, nothing made up.

A reader is a function from a document or a text, and the name to complain about, to a `Found`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from dragstrip import outside
from dragstrip.errors import BadInputError
from dragstrip.foreign import flent, iperf3, irtt, ping, probe, qlog, ss
from dragstrip.foreign.found import Found
from dragstrip.recording import Recording

Json: TypeAlias = dict[str, Any]

DOCUMENTS: Mapping[str, tuple[Callable[[Json], bool], Callable[[Json, str], Found]]] = {
    "iperf3": (iperf3.is_one, iperf3.read),
    "irtt": (irtt.is_one, irtt.read),
    "flent": (flent.is_one, flent.read),
    "qlog": (qlog.is_one, qlog.read),
}
TEXTS: Mapping[str, tuple[Callable[[str], bool], Callable[[str, str], Found]]] = {
    "ping": (ping.is_one, ping.read),
    "tcp_probe": (probe.is_one, probe.read),
    "ss": (ss.is_one, ss.read),
}
NAMES = (*DOCUMENTS, *TEXTS)
KNOWN = "JSON of iperf3, irtt, flent or qlog, or output of ping, fping, ss -tin or tcp_probe"
LOOKED_AT = 1 << 16
"""Characters at the beginning of a text by which it is known."""


def is_one(path: Path) -> bool:
    """Whether a file looks like one of these, by its beginning; a capture does not."""
    begin = next(outside.capture_pieces(path), (b"", 1.0))[0][:LOOKED_AT]
    if begin.startswith(b"\n\r\r\n"):  # pcapng
        return False
    text = begin.decode("utf-8", "replace")
    return begin.lstrip()[:1] in (b"{", b"\x1e") or any(is_one_of(text) for is_one_of, _ in TEXTS.values())


def read(path: Path) -> Recording:
    """The recording of a file; raises `BadInputError` for one that is none of these, or is damaged."""
    packed, said = outside.unpacked_content(path, outside.JSON_MAX, KNOWN)
    name, found = understood(said, str(path))
    digest = hashlib.sha256(packed).hexdigest()
    return found.recording({"engine": name, "source": path.name, "source_sha256": digest})


def understood(said: bytes, source: str) -> tuple[str, Found]:
    """Which format it is, and what it says."""
    begin = said[:LOOKED_AT].lstrip(b"\xef\xbb\xbf \t\r\n")
    if begin[:1] in (b"{", b"\x1e"):
        document = _document(said, source)
        for name, (is_one, reader) in DOCUMENTS.items():
            if is_one(document):
                return name, reader(document, source)
    else:
        text = said.decode("utf-8", "replace")
        for name, (is_one_of, reader_of) in TEXTS.items():
            if is_one_of(text[:LOOKED_AT]):
                return name, reader_of(text, source)
    raise BadInputError("", None, f"is no {KNOWN}", source)


def _document(said: bytes, source: str) -> Json:
    """A JSON object; lines or records of them become one (`iperf3 --json-stream`, qlog's JSON-SEQ)."""
    if said.lstrip()[:1] == b"\x1e":
        parts = [outside.parsed_json(part, source) for part in said.split(b"\x1e") if part.strip()]
        return _writable(qlog.joined(parts))
    first = said.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", 1)[0]
    if iperf3.EVENT.match(first):
        lines = [line for line in said.split(b"\n") if line.strip()]
        return _writable(iperf3.joined([outside.parsed_json(line, source) for line in lines], source))
    value = outside.parsed_json(said, source)
    if not isinstance(value, dict):
        raise BadInputError("", None, "is not a JSON object", source)
    return _writable(value)


def _writable(document: Json) -> Json:
    """The same without halves of surrogate pairs, which no file can be written with."""
    return json.loads(json.dumps(document, ensure_ascii=False).encode(errors="replace"))  # type: ignore[no-any-return]
