"""Packet captures, read in pieces and inspected by the core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from dragstrip import _core
from dragstrip.display import quantity
from dragstrip.display.progress import ProgressMessages
from dragstrip.display.quantity import plural
from dragstrip.errors import BadInputError
from dragstrip.interop import guess, readers
from dragstrip.io.untrusted import capture_pieces
from dragstrip.model.recording import CoreTables, Recording

Segments: TypeAlias = tuple[dict[str, Any], list[dict[str, Any]]]
"""The document of a capture, and each flow's segments in columns."""
Finished: TypeAlias = tuple[dict[str, Any], dict[str, Any] | None, list[dict[str, Any]]]
"""Results of a session: the document, the tables of a recording, each flow's segments."""


def inspect(
    paths: Sequence[Path], rows: bool = False, quiet: bool = False, labels: bool = False
) -> tuple[dict[str, Any], Recording | None]:
    """Return what captures of the same connections show, each from its vantage point.

    The document is described in docs/how-to/captures.md.

    With `rows`, return a recording too, in which everything that a capture does not show, such as the
    scenario, is empty. With `labels`, add the terms of Wireshark and tcptrace and every event. Raises
    `BadInputError` for a file that is not a capture.
    """
    session = _core.Inspection(_count(paths), rows, labels)
    return _document_and_recording(_inspected(paths, [session], quiet)[0])


def inspect_with_segments(
    paths: Sequence[Path], rows: bool = False, quiet: bool = False, labels: bool = False
) -> tuple[dict[str, Any], Recording | None, list[Segments]]:
    """Return what `inspect` returns, and what `segments` returns of each capture alone, all read once."""
    count = _count(paths)
    session = _core.Inspection(count, rows, labels, count == 1)
    per_file_sessions = [_core.Inspection(1, False, False, True) for _ in paths] if count > 1 else []
    whole, *per_file = _inspected(paths, [session, *per_file_sessions], quiet)
    return *_document_and_recording(whole), [
        (document, segments) for document, _, segments in per_file or [whole]
    ]


def segments(path: Path, quiet: bool = False) -> Segments:
    """Return what one capture shows, and each flow's segments in columns of 64-bit integers, as bytes.

    The columns are described in crates/inspect/src/series.rs. Three million rows are kept; `left_out` counts
    the others. Raises `BadInputError` for a file that is not a capture.
    """
    ((document, _, rows),) = _inspected([path], [_core.Inspection(1, False, False, True)], quiet)
    return document, rows


def whole(path: Path, quiet: bool = False) -> tuple[dict[str, Any], Recording, list[dict[str, Any]]]:
    """Return what `inspect`, with `rows` and `labels`, and `segments` return of one capture, read once."""
    (inspected,) = _inspected([path], [_core.Inspection(1, True, True, True)], quiet)
    document, recording = _document_and_recording(inspected)
    assert recording is not None
    return document, recording, inspected[2]


def _count(paths: Sequence[Path]) -> int:
    if len(paths) > _core.CAPTURES_MAX:
        raise BadInputError("FILE", len(paths), f"at most {_core.CAPTURES_MAX} captures", "command line")
    return len(paths)


def _inspected(paths: Sequence[Path], sessions: Sequence[_core.Inspection], quiet: bool) -> list[Finished]:
    """Feed all files to the first session, and each to its own if there are more, which then are as many.

    Returns of each session the document, the tables and the segments.
    """
    session, *per_file_sessions = sessions
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
                if per_file_sessions:
                    per_file_sessions[index].feed(0, piece)
    finally:
        speaker.close()
    return [
        _finished(session, paths),
        *(
            _finished(file_session, [path])
            for file_session, path in zip(per_file_sessions, paths, strict=False)
        ),
    ]


def _finished(session: _core.Inspection, paths: Sequence[Path]) -> Finished:
    document, tables, rows = session.finish()
    for file, path in zip(document["files"], paths, strict=True):
        file["path"] = str(path)
    return document, tables, rows


def _document_and_recording(finished: Finished) -> tuple[dict[str, Any], Recording | None]:
    document, tables, _ = finished
    return document, None if tables is None else _recording(document, tables)


def _recording(document: dict[str, Any], tables: dict[str, Any]) -> Recording:
    provenance = {
        "engine": "capture",
        "engine_version": _core.__version__,
        "files": document["files"],
        "flows": document["flows"],
        "between": document["between"],
        "notes": document["notes"],
        "origin_ns": document["origin_ns"],
        "recording_sha256": tables["sha256"],
    }
    return Recording({}, CoreTables(tables["tables"]), provenance)


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
        guessed_format = guess.of_bytes(begin, path.name, readers.KNOWN) if begin else None
        raise BadInputError(field, None, guessed_format or expected, str(path)) from None


def table(document: dict[str, Any]) -> str:
    """Return the flows as a table for a terminal."""
    from rich.table import Table

    from dragstrip.display.terminal import as_text

    lines = Table(box=None, pad_edge=False, header_style="bold")
    for heading in (
        "flow",
        "bytes",
        "time",
        "goodput",
        "RTT p5/p50/p95 (ms)",
        "by",
        "retransmitted",
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
    for flow in document["flows"]:
        lines.add_row(*_cells(flow))
    return as_text(lines)


SHOWN = 8
"""Lines of a kind that a terminal gets; the document has all."""


def empty_text(document: dict[str, Any]) -> str:
    """Return what captures without a TCP connection with data hold instead."""
    if advice := one_way_text(document):
        return f"No TCP connection with data: {advice}."
    rows = [row for row in document["other"] if row["packets"]]
    packets = sum(file["packets"] for file in document["files"])
    refused = len(document["unanswered"]) + len(document["refused"])
    if not rows:
        return "No TCP connection with data." if packets or refused else "No packets."
    return f"No TCP connection with data. {_listed([_other_text(row) for row in rows])}."


def one_way_text(document: dict[str, Any]) -> str:
    """Return what to capture if a capture without data has acknowledgements of some, or headers cut off."""
    if document["flows"]:
        return ""
    if any("headers that are cut off" in note for note in document["notes"]):
        return "the headers are cut off; capture at least 96 bytes of each packet: tcpdump -s 96"
    missing = sum(file["missing"] for file in document["files"])
    if missing and any("without data" in note for note in document["notes"]):
        return (
            f"one direction alone was captured, the acknowledgements of at least {missing:,} segments; "
            "capture both directions: tcpdump -i INTERFACE -s 96 host HOST"
        )
    return ""


def details(document: dict[str, Any]) -> list[str]:
    """Return lines for a terminal: details of flows, connections without an answer, QUIC, other packets."""
    special = [(flow["label"], ", ".join(_special(flow))) for flow in document["flows"]]
    lines = _shortened([f"{label}: {text}" for label, text in special if text], "flows with such details")
    for name, verb in (("unanswered", "not answered"), ("refused", "refused (RST)")):
        lines += _attempts_text(document[name], verb)
    lines += _shortened([_quic_text(row) for row in document["quic"]], "QUIC connections")
    if document["flows"] and document["other"]:
        lines.append(f"Not TCP: {_listed([_other_text(row) for row in document['other']])}")
    return lines


def _shortened(lines: list[str], noun: str) -> list[str]:
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"{len(lines) - SHOWN:,} more {noun}"]


def _listed(words: list[str]) -> str:
    return ", ".join(_shortened(words, "protocols and ports"))


def _other_text(row: dict[str, Any]) -> str:
    port = "" if row["port"] is None else f" port {row['port']}"
    name = "" if row["name"] is None else f" ({row['name']})"
    return f"{plural(row['packets'], 'packet')} of {row['protocol']}{port}{name}"


def _attempts_text(rows: list[dict[str, Any]], verb: str) -> list[str]:
    servers: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        servers.setdefault(row["server"], []).append(row)
    lines = []
    for server, mine in sorted(servers.items(), key=lambda item: -len(item[1])):
        were = "was" if len(mine) == 1 else "were"
        syns, again = (sum(row[name] for row in mine) for name in ("syns", "retransmitted"))
        connections = f"{plural(len(mine), 'connection')} to {server} {were} {verb}"
        lines.append(f"{connections}: {plural(syns, 'SYN')}, of which {again:,} retransmitted")
    return _shortened(lines, f"servers, connections {verb}")


def _quic_text(row: dict[str, Any]) -> str:
    version = "" if row["version"] is None else f" version {row['version']}"
    moved = f"{plural(row['packets'], 'packet')}, {quantity.size(row['bytes'])} in {row['duration_s']:.2f} s"
    text = f"QUIC{version} {row['client']} → {row['server']}: {moved}"
    if (rtt := row["rtt_ms"]) is None:
        return f"{text}; no spin bit"
    quantiles = "/".join(f"{rtt[name]:.4g}" for name in ("p5", "p50", "p95"))
    return f"{text}; RTT p5/p50/p95 {quantiles} ms by the spin bit"


def _special(flow: dict[str, Any]) -> list[str]:
    words = []
    if flow["encapsulation"]:
        words.append(f"inside {flow['encapsulation']}")
    for name, noun in (("syn", "SYN"), ("syn_ack", "SYN-ACK"), ("fin", "FIN")):
        if count := flow[f"{name}_retransmissions"]:
            words.append(f"{plural(count, noun)} retransmitted")
    if flow["closed_s"]:
        words.append(f"receive window closed for {flow['closed_s']:.3g} s")
    if flow["ecn_feedback"] == "accurate":
        words.append(f"accurate ECN, {plural(flow['marks_reported'], 'mark')} reported")
    if flow["mptcp"]:
        words.append(f"Multipath TCP ({flow['mptcp']})")
    if opened := flow["fast_open"]:
        acceptance = {None: "", True: ", accepted", False: ", not accepted"}[opened["accepted"]]
        words.append(f"Fast Open (cookie {opened['cookie']}, {opened['bytes']} bytes in the SYN{acceptance})")
    return words


def labels_table(document: dict[str, Any]) -> str:
    """Return the terms of Wireshark and tcptrace for the same retransmissions, for a terminal."""
    lines = ["", "Retransmissions as others call them (docs/how-to/captures.md):"]
    for flow in document["flows"]:
        ours = ", ".join(f"{count} {name}" for name, count in flow["retransmissions"].items() if count)
        lines.append(flow["label"])
        words = [("dragstrip", ours), ("Wireshark", _words(flow["wireshark"]))]
        words.append(("tcptrace", _words(flow["tcptrace"])))
        lines += [f"  {tool:<10} {terms or 'none'}" for tool, terms in words]
    return "\n".join(lines)


def _words(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count)


def _cells(flow: dict[str, Any]) -> list[str]:
    rtt, again = flow["rtt_ms"], flow["retransmissions"]
    quantiles = [rtt[name] for name in ("p5", "p50", "p95")]
    total = sum(again.values())
    parts = ", ".join(f"{count} {name}" for name, count in again.items() if count)
    total_s = sum(flow["limited_s"].values()) or 1.0
    limits = [
        f"{name} {(seconds / total_s) * 100:.0f} %"
        for name, seconds in flow["limited_s"].items()
        if seconds > 0.005 * total_s
    ]
    return [
        flow["label"],
        quantity.size(flow["bytes"]),
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
