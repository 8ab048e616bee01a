"""Entry point of the program, as a script and as `python -m dragstrip`."""

from __future__ import annotations

import signal

from dragstrip.io import interruption


def main() -> None:
    """Run the command line; Ctrl-C ends the process with one line while its modules are imported, too."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interruption.end)  # until dragstrip.cli.ending takes over
    from dragstrip.cli import main as run

    run()


if __name__ == "__main__":
    main()
