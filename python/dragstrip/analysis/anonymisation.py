"""Copies of captures without payload and addresses."""

from __future__ import annotations

from pathlib import Path

from dragstrip import _core
from dragstrip.analysis import captures
from dragstrip.display.progress import ProgressMessages
from dragstrip.errors import BadInputError
from dragstrip.io import files
from dragstrip.io.untrusted import capture_pieces


def anonymise(path: Path, out: Path, quiet: bool = False) -> tuple[int, int]:
    """Write the TCP segments of a capture without payload and addresses, as a pcap file with nanoseconds.

    Hosts are numbered as they appear, stamps count from the first segment; ports, sequence numbers and the
    options that congestion control rests on stay. Returns how many packets the capture has, and how many of
    them are in the copy. Memory grows with the number of hosts. Raises `BadInputError` for a file that is no
    capture or has no TCP; then nothing is written.
    """
    anonymiser, counts, share = _core.Anonymous(), (0, 0), 0.0
    speaker = ProgressMessages()

    def fill(draft: Path) -> None:
        nonlocal counts, share
        begin = b""
        with draft.open("wb") as file:
            for piece, read in capture_pieces(path):
                share = read
                begin = begin or captures.beginning(piece)
                with captures.refusing(path, begin):
                    file.write(anonymiser.feed(piece))
        with captures.refusing(path, begin):
            counts = anonymiser.end()
        if not counts[1]:
            raise BadInputError("", None, "a capture with TCP", str(path))

    try:
        if not quiet:
            speaker.doing(lambda: f"reading the capture: {share * 100:.0f} %")
        files.write_whole(out, fill)
    finally:
        speaker.close()
    return counts
