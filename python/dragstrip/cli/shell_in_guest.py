"""`dragstrip shell --engine vm`: what goes in from standard input, what comes out, and progress."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dragstrip.cli.output import say
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragstrip.cli.race import Race
    from dragstrip.interop.path_shell.guest import GuestOptions
    from dragstrip.interop.path_shell.path import Ending, ProgramEnds


def run(
    guest: GuestOptions, ends: ProgramEnds, race: Race, seconds: float, out: Path | None, *, as_json: bool
) -> Ending:
    """Run programs, and write what they print and leave to where it belongs."""
    from dragstrip.display.progress import ProgressMessages
    from dragstrip.engines.vm.programs import write_outputs

    reached = [0]
    messages = ProgressMessages()

    def progress(now_ns: int) -> None:
        if not reached[0]:
            messages.doing(lambda: f"running: {reached[0] / 1e9:.1f} s of virtual time ...")
        reached[0] = max(now_ns, 1)

    try:
        ending = guest.run(
            *(ends, race, seconds, _input, out), say=lambda line: say(line, err=True), progress=progress
        )
    finally:
        messages.close()
    _print(ending.streams, output_to_errors=as_json)
    write_outputs(ending.outputs, guest.folder)
    return ending


def _input() -> bytes:
    """Return standard input, where it is a file or a pipe."""
    from dragstrip.engines.vm.programs import INPUT_BYTES_MAX

    try:
        mode = os.fstat(0).st_mode
    except OSError:  # closed
        return b""
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        say("guest: reading standard input to its end (</dev/null: none)", err=True)
    elif not stat.S_ISREG(mode):
        return b""
    content = sys.stdin.buffer.read(INPUT_BYTES_MAX + 1)
    if len(content) > INPUT_BYTES_MAX:
        expected = f"at most {INPUT_BYTES_MAX >> 20} MiB: take a file into the guest by --file"
        raise BadInputError("standard input", None, expected, "command line")
    return content


def _print(streams: Mapping[str, bytes], *, output_to_errors: bool) -> None:
    """Write what programs printed, byte for byte, to where it belongs."""
    errors = sys.stderr.buffer
    sys.stderr.flush()
    for name, sink in (
        ("the server's output", errors),
        ("standard error", errors),
        ("standard output", errors if output_to_errors else sys.stdout.buffer),
    ):
        sink.write(streams.get(name, b""))
        sink.flush()
