"""Readers of other programs' files, as recordings.

Belongs here: a module per format, with a function from a document or a text, and the name for error messages,
to a `Found`. Columns that a file does not contain stay empty; nothing is estimated. Does not belong here:
opening files, which `io.untrusted` does, and packet captures, which the core reads.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from dragstrip.errors import BadInputError
from dragstrip.interop import guess
from dragstrip.interop.readers import (
    autorate,
    fields,
    flent,
    iperf3,
    iperf_text,
    irtt,
    mtr,
    nest,
    ping,
    ping_table,
    probe,
    qlog,
    speedtest,
    ss,
    tc,
)
from dragstrip.interop.readers.measurements import Measurements
from dragstrip.io import untrusted
from dragstrip.model.recording import Recording

Json: TypeAlias = dict[str, Any]

DOCUMENTS: Mapping[str, tuple[Callable[[Json], bool], Callable[[Json, str], Measurements]]] = {
    "iperf3": (iperf3.is_one, iperf3.read),
    "irtt": (irtt.is_one, irtt.read),
    "flent": (flent.is_one, flent.read),
    "qlog": (qlog.is_one, qlog.read),
    "mtr": (mtr.is_one, mtr.read),
    "ookla": (speedtest.is_ookla, speedtest.read_ookla),
    "librespeed": (speedtest.is_librespeed, speedtest.read_librespeed),
    "speedtest-cli": (speedtest.is_speedtest_cli, speedtest.read_speedtest_cli),
    "cloudflare": (speedtest.is_cloudflare, speedtest.read_cloudflare),
    "nest": (nest.is_one, nest.read),
}
TEXTS: Mapping[str, tuple[Callable[[str], bool], Callable[[str, str], Measurements]]] = {
    "tshark": (fields.is_one, fields.read),
    "cake-autorate": (autorate.is_one, autorate.read),
    "mtr": (mtr.is_text, mtr.read_text),
    "ping": (ping.is_one, ping.read),
    "ping_table": (ping_table.is_one, ping_table.read),
    "tcp_probe": (probe.is_one, probe.read),
    "ss": (ss.is_one, ss.read),
    "tc": (tc.is_one, tc.read),
    "iperf": (iperf_text.is_one, iperf_text.read),
}
NAMES = tuple(dict.fromkeys((*DOCUMENTS, *TEXTS)))
KNOWN = (
    "JSON of iperf3, irtt, flent, qlog, mtr, NeST or a speed test, output of iperf, ping, fping, mtr, "
    "ss -tin, tcp_probe, tc -s, cake-autorate or tshark -T fields"
)
LOOKED_AT = 1 << 16
"""Characters at the beginning of a text by which its format is recognised."""


def recognises(begin: bytes) -> bool:
    """Return whether a file that begins so looks like one of these formats; False for a capture."""
    begin = _beginning(begin)
    if begin.startswith(b"\n\r\r\n"):  # pcapng
        return False
    text = begin.decode("utf-8", "replace")
    return begin.lstrip()[:1] in (b"{", b"[", b"\x1e") or any(
        is_one_of(text) for is_one_of, _ in TEXTS.values()
    )


def read(path: Path) -> Recording:
    """Return the recording of a file.

    Raises `BadInputError` if it has none of these formats or is damaged.
    """
    return recording(*untrusted.unpacked_content(path, untrusted.JSON_MAX, KNOWN), path)


def recording(packed: bytes, content: bytes, path: Path) -> Recording:
    """Return the recording of a file's bytes, as stored and decompressed.

    Raises `BadInputError` if it has none of these formats or is damaged.
    """
    name, measurements = parsed(content, str(path))
    digest = hashlib.sha256(packed).hexdigest()
    return measurements.recording({"engine": name, "source": path.name, "source_sha256": digest})


def parsed(content: bytes, source: str) -> tuple[str, Measurements]:
    """Return the name of the format and what the file contains; raises `BadInputError`."""
    content = _beginning(content)
    begin = content[:LOOKED_AT].lstrip(b"\xef\xbb\xbf \t\r\n")
    if begin[:1] in (b"{", b"\x1e"):
        document, *more = _documents(content, source)
        if more:
            return "iperf3", iperf3.read_several([document, *more], source)
        for name, (is_one, reader) in DOCUMENTS.items():
            if is_one(document):
                return name, reader(document, source)
        raise BadInputError("", None, guess.of_document(document, KNOWN), source)
    text = content.decode("utf-8", "replace")
    if begin[:1] == b"[" and tc.is_one(text[:LOOKED_AT]):
        return "tc", tc.read_document(_writable(untrusted.parsed_json(content, source)), source)
    for name, (is_one_of, reader_of) in TEXTS.items():
        if is_one_of(text[:LOOKED_AT]):
            return name, reader_of(text, source)
    if begin[:1] == b"[" and not _SECTION.match(begin):
        rows = untrusted.parsed_json(content, source)
        if isinstance(rows, list) and len(rows) == 1 and isinstance(rows[0], dict):
            for name in ("librespeed", "ookla"):
                recognises, reader = DOCUMENTS[name]
                if recognises(rows[0]):
                    return name, reader(_writable(rows[0]), source)
        raise BadInputError(
            "", None, guess.of_document(untrusted.parsed_json(content, source), KNOWN), source
        )
    raise BadInputError("", None, guess.of_text(text[:LOOKED_AT], KNOWN), source)


_IPERF3 = re.compile(rb'(?m)^\{(?=\s{0,20}"start"\s{0,20}:)')
"""Beginning of a document of iperf3's. Its warnings, on the same output, stand before and after."""
_SECTION = re.compile(rb"\[{1,2}[A-Za-z]")
"""Beginning of a section of TOML, and of no JSON list."""
_NAN = re.compile(rb"(?<=[:,\[\s])-?nan(?=\s{0,20}[,}\]])")
"""Not-a-number as C prints it."""


def _beginning(content: bytes) -> bytes:
    """Return the text in UTF-8 from its first document of iperf3's on, and any other text whole."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):  # UTF-16, as PowerShell's > writes it
        content = content.decode("utf-16", "replace").encode(errors="replace")
    if content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"\x1e"):
        return content
    first = _IPERF3.search(content, 0, LOOKED_AT)
    return content[first.start() :] if first else content


def _documents(content: bytes, source: str) -> list[Json]:
    """Return the JSON objects of a text: one, or several runs of iperf3.

    Lines or records are joined (`iperf3 --json-stream`, qlog's JSON-SEQ).
    """
    content = _NAN.sub(b"null", content)
    if content.lstrip()[:1] == b"\x1e":
        parts = [untrusted.parsed_json(part, source) for part in content.split(b"\x1e") if part.strip()]
        return [_writable(qlog.joined(parts))]
    first = content.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", 1)[0]
    if iperf3.EVENT.match(first):
        lines = [line for line in content.split(b"\n") if line.strip()]
        return [_writable(iperf3.joined([untrusted.parsed_json(line, source) for line in lines], source))]
    begins = [match.start() for match in _IPERF3.finditer(content)]
    if begins:
        runs = [content[begin:end] for begin, end in zip(begins, [*begins[1:], len(content)], strict=True)]
        return [_iperf3(run, source) for run in runs]
    return [_object(content, source)]


def _iperf3(content: bytes, source: str) -> Json:
    """Return a document of iperf3; of one that ends in the middle its whole intervals and an error."""
    try:
        return _object(_run(content), source)
    except BadInputError:
        cut = iperf3.cut(content.decode("utf-8", "replace"))
        if cut is None:
            raise
        if not cut["intervals"]:
            raise BadInputError(
                "", None, "ends in the middle, before its first whole interval", source
            ) from None
        return _object(json.dumps(cut).encode(), source)


def _run(content: bytes) -> bytes:
    """Return a document of iperf3's, of one line or of many, without the lines behind it."""
    first = content.split(b"\n", 1)[0].rstrip()
    end = content.rfind(b"\n}")
    return first if first.endswith(b"}") or end < 0 else content[: end + 2]


def _object(content: bytes, source: str) -> Json:
    value = untrusted.parsed_json(content, source)
    if not isinstance(value, dict):
        raise BadInputError("", None, "is not a JSON object", source)
    document: Json = _writable(value)
    return document


def _writable(document: Any) -> Any:
    """Replace unpaired surrogates, which cannot be written to a file."""
    return json.loads(json.dumps(document, ensure_ascii=False).encode(errors="replace"))
