"""Packet captures, read in pieces and inspected by the core."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from dragstrip import _core
from dragstrip.errors import BadInputError
from dragstrip.formats import guess, readers
from dragstrip.io.progress import ProgressMessages
from dragstrip.io.untrusted import capture_pieces, size_text
from dragstrip.recording import Recording, from_core

Segments: TypeAlias = tuple[dict[str, Any], list[dict[str, Any]]]
"""What a capture shows, and each flow's segments in columns."""
Finished: TypeAlias = tuple[dict[str, Any], dict[str, Any] | None, list[dict[str, Any]]]
"""What a session has found: the document, the tables of a recording, each flow's segments."""


def inspect(
    paths: Sequence[Path], rows: bool = False, quiet: bool = False, labels: bool = False
) -> tuple[dict[str, Any], Recording | None]:
    """Return what captures of the same connections show, each from its vantage point.

    The document is described in docs/how-to/captures.md.

    With `rows`, return a recording too, in which everything that a capture does not show, such as the
    scenario, is empty. With `labels`, add the terms of Wireshark and tcptrace and every event. Raises
    `BadInputError` for a file that is no capture.
    """
    session = _core.Inspection(_count(paths), rows, labels)
    return _shown(_inspected(paths, [session], quiet)[0])


def inspect_with_segments(
    paths: Sequence[Path], rows: bool = False, quiet: bool = False, labels: bool = False
) -> tuple[dict[str, Any], Recording | None, list[Segments]]:
    """Return what `inspect` returns, and what `segments` returns of each capture alone, all read once."""
    count = _count(paths)
    session = _core.Inspection(count, rows, labels, count == 1)
    own = [_core.Inspection(1, False, False, True) for _ in paths] if count > 1 else []
    whole, *each = _inspected(paths, [session, *own], quiet)
    return *_shown(whole), [(said, segments) for said, _, segments in each or [whole]]


def segments(path: Path, quiet: bool = False) -> Segments:
    """Return what one capture shows, and each flow's segments in columns of 64-bit integers, as bytes.

    The columns are described in crates/inspect/src/series.rs. Three million rows are kept; `left_out` counts
    the others. Raises `BadInputError` for a file that is no capture.
    """
    ((said, _, rows),) = _inspected([path], [_core.Inspection(1, False, False, True)], quiet)
    return said, rows


def whole(path: Path, quiet: bool = False) -> tuple[dict[str, Any], Recording, list[dict[str, Any]]]:
    """Return what `inspect`, with `rows` and `labels`, and `segments` return of one capture, read once."""
    (found,) = _inspected([path], [_core.Inspection(1, True, True, True)], quiet)
    said, recording = _shown(found)
    assert recording is not None
    return said, recording, found[2]


def _count(paths: Sequence[Path]) -> int:
    if len(paths) > _core.CAPTURES_MAX:
        raise BadInputError("FILE", len(paths), f"at most {_core.CAPTURES_MAX} captures", "command line")
    return len(paths)


def _inspected(paths: Sequence[Path], sessions: Sequence[_core.Inspection], quiet: bool) -> list[Finished]:
    """Feed all files to the first session, and each to its own if there are more, which then are as many.

    Returns of each session the document, the tables and the segments.
    """
    session, *own = sessions
    files: list[Iterator[tuple[bytes, float]]] = [capture_pieces(path) for path in paths]
    shares = [0.0] * len(paths)
    begins: dict[int, bytes] = {}
    speaker = ProgressMessages()
    try:
        if not quiet:
            speaker.doing(lambda: f"reading captures: {(sum(shares) / len(shares)) * 100:.0f} %")
        while (index := session.hungry()) is not None:
            piece, shares[index] = next(files[index], (b"", 1.0))
            begins.setdefault(index, beginning(piece))
            with refusing(paths[index], begins[index]):
                session.feed(index, piece)
                if own:
                    own[index].feed(0, piece)
    finally:
        speaker.close()
    return [
        _finished(session, paths),
        *(_finished(one, [path]) for one, path in zip(own, paths, strict=False)),
    ]


def _finished(session: _core.Inspection, paths: Sequence[Path]) -> Finished:
    text, tables, rows = session.finish()
    said: dict[str, Any] = json.loads(text)
    for file, path in zip(said["files"], paths, strict=True):
        file["path"] = str(path)
    return said, tables, rows


def _shown(found: Finished) -> tuple[dict[str, Any], Recording | None]:
    said, tables, _ = found
    return said, None if tables is None else _recording(said, tables)


def _recording(said: dict[str, Any], tables: dict[str, Any]) -> Recording:
    provenance = {
        "engine": "capture",
        "engine_version": _core.__version__,
        "files": said["files"],
        "flows": said["flows"],
        "between": said["between"],
        "notes": said["notes"],
        "origin_ns": said["origin_ns"],
        "recording_sha256": tables["sha256"],
    }
    return Recording({}, from_core(tables["tables"]), provenance)


def beginning(piece: bytes) -> bytes:
    """Return as much of a file's first piece as tells what it is."""
    return piece[: readers.LOOKED_AT]


@contextmanager
def refusing(path: Path, begin: bytes) -> Iterator[None]:
    """Raise what the core cannot read over as a `BadInputError` that says what the file seems to be."""
    try:
        yield
    except _core.InputError as error:
        field, _, expected = error.args
        known = guess.of_bytes(begin, path.name, readers.KNOWN) if begin else None
        raise BadInputError(field, None, known or expected, str(path)) from None


def table(said: dict[str, Any]) -> str:
    """Return the flows as a table for a terminal."""
    from rich.table import Table

    from dragstrip.io.terminal import as_text

    lines = Table(box=None, pad_edge=False, header_style="bold")
    for heading in (
        "flow",
        "bytes",
        "time",
        "goodput",
        "RTT p5/p50/p95 (ms)",
        "by",
        "sent again",
        "reordered",
        "limited by",
        "ECN",
        "at",
    ):
        lines.add_column(
            heading,
            justify="left" if heading in ("flow", "by", "limited by", "at") else "right",
            no_wrap=heading != "flow",
        )
    for flow in said["flows"]:
        lines.add_row(*_cells(flow))
    return as_text(lines)


def labels_table(said: dict[str, Any]) -> str:
    """Return the terms of Wireshark and tcptrace for the same retransmissions, for a terminal."""
    lines = ["", "Retransmissions as others call them (docs/how-to/captures.md):"]
    for flow in said["flows"]:
        ours = ", ".join(f"{count} {name}" for name, count in flow["retransmissions"].items() if count)
        lines.append(flow["label"])
        words = [("dragstrip", ours), ("Wireshark", _words(flow["wireshark"]))]
        words.append(("tcptrace", _words(flow["tcptrace"])))
        lines += [f"  {who:<10} {what or 'none'}" for who, what in words]
    return "\n".join(lines)


def _words(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count)


def _cells(flow: dict[str, Any]) -> list[str]:
    rtt, again = flow["rtt_ms"], flow["retransmissions"]
    quantiles = [rtt[name] for name in ("p5", "p50", "p95")]
    total = sum(again.values())
    parts = ", ".join(f"{count} {name}" for name, count in again.items() if count)
    spent = sum(flow["limited_s"].values()) or 1.0
    limits = [
        f"{name} {(seconds / spent) * 100:.0f} %"
        for name, seconds in flow["limited_s"].items()
        if seconds > 0.005 * spent
    ]
    return [
        flow["label"],
        size_text(flow["bytes"]),
        f"{flow['duration_s']:.2f} s",
        f"{flow['goodput_bps'] / 1e6:.3g} Mbit/s",
        "/".join("-" if value is None else f"{value:.4g}" for value in quantiles),
        rtt["method"],
        f"{total} ({parts})" if total else "0",
        str(flow["reordered"]),
        ", ".join(limits),
        {None: "?", True: "yes", False: "no"}[flow["ecn"]],
        flow["place"],
    ]
