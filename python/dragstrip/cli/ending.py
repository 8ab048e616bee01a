"""Exit of the program: every error is one line on standard error, and the status tells its kind.

| status | |
|---|---|
| 0 | everything was done |
| 1 | the environment: a full disk, a missing program, a run that failed, output that nobody reads |
| 2 | something that the user can write differently |
| 3 | a kept find is worse than recorded (`attack --rerun`), or rows of a passport are (`passport`) |
| 70 | a fault of Dragstrip (EX_SOFTWARE of sysexits.h) |
| 130 | interrupted by Ctrl-C (SIGINT) |
| 143 | interrupted by SIGTERM |
"""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TextIO

import typer

from dragstrip.errors import BadInputError, DragstripError, FaultError, Note, of_system
from dragstrip.io import interruption
from dragstrip.io.untrusted import one_line

FAILED = 1
BAD_INPUT = 2
WORSE = 3
FAULT = 70
INTERRUPTED = 130

PATH_ERRORS = (errno.ENAMETOOLONG, errno.ELOOP, errno.EISDIR, errno.ENOTDIR)
"""Errors of the operating system that another path would avoid."""


def run(program: Callable[[], object]) -> NoReturn:
    """Call the program and end the process with its status."""
    outputs = _outputs()
    with contextlib.suppress(ValueError):  # not in the main thread
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:  # what is temporary is removed on the way out
            signal.signal(signal.SIGTERM, interruption.interrupt)
    try:
        if signal.getsignal(signal.SIGINT) is interruption.end:  # from here on there may be work to tidy up
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _refuse_empty(sys.argv[1:])
        with warnings.catch_warnings():
            warnings.simplefilter("once", Note)
            warnings.showwarning = _with_notes(warnings.showwarning)
            status = _called(program)
        sys.stdout.flush()
    except typer.exceptions.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else _command()
        message = _renamed(error) or _valued(error) or error.format_message()
        _fail(f"{message} (see {command} --help)", BAD_INPUT)
    except BadInputError as error:
        from dragstrip.io import toml

        _fail(str(toml.pointed(_in_program(error))), BAD_INPUT)
    except FaultError as error:
        _fail(str(error), FAULT)
    except DragstripError as error:
        _fail(str(error), _status(error.__cause__))
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", interruption.status())
    except OSError as error:
        _fail(of_system(error), _status(error))
    except MemoryError:
        _fail("out of memory: use fewer runs, flows or workers", FAILED)
    except Exception as error:
        if os.environ.get("DRAGSTRIP_TRACEBACK"):
            raise
        _fail(
            f"a fault in dragstrip: {type(error).__name__}: {error} "
            "(DRAGSTRIP_TRACEBACK=1 shows where; please report it)",
            FAULT,
        )
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # PyO3's, of a call that no engine makes
            raise
        _fail(f"a fault in dragstrip's core: {error} (please report it)", FAULT)
    if status == INTERRUPTED:  # Typer's own way to tell of a KeyboardInterrupt
        _fail("interrupted", interruption.status())
    for output in outputs:
        if output.failure is not None:
            unread = output.failure.errno in (errno.EPIPE, errno.EBADF)
            _fail("" if unread else f"standard output: {of_system(output.failure)}", FAILED)
    sys.exit(status if isinstance(status, int) else 0)


def _called(program: Callable[[], object]) -> object:
    """Call the program; a group of commands without any prints its help and succeeds."""
    try:
        return program()
    except typer.exceptions.TyperException as error:
        if type(error).__name__ != "NoArgsIsHelpError":
            raise
        typer.echo(error.format_message())  # its message is the help
        return 0


OTHERWISE = {
    "--delay": "--rtt TIME, the round-trip time: twice a one-way delay",
    "--latency": "--rtt TIME, the round-trip time: twice a one-way delay",
    "--bandwidth": "--rate",
    "--bw": "--rate",
    "--speed": "--rate",
    "--buffer": "--queue",
    "--qdisc": "--queue",
    "--limit": "--queue",
    "--time": "--duration",
    "--parallel": "--flows",
    "--output": "--out",
}
"""Names of our options in other programs."""


def _command() -> str:
    """Return the command of the command line, for an error that names none: `dragstrip compare`."""
    from dragstrip.cli import COMMANDS, GROUPS

    word = sys.argv[1] if len(sys.argv) > 1 else ""
    return f"dragstrip {word}" if word in COMMANDS or word in GROUPS else "dragstrip"


def _renamed(error: Exception) -> str:
    """Return the message for an unknown option that is like one of the command's; else an empty string."""
    from dragstrip import _core

    option, context = getattr(error, "option_name", ""), getattr(error, "ctx", None)
    if not option or context is None:
        return ""
    names = sorted({name for parameter in context.command.params for name in parameter.opts})
    suggestion = OTHERWISE.get(option, "")
    if suggestion.split(" ")[0] not in names:
        suggestion = _core.nearest(option, names) or ""
    return f"No such option: {option}; did you mean {suggestion}?" if suggestion else ""


def _valued(error: typer.exceptions.TyperException) -> str:
    """Return the message for a value that is no such number, with that value; else an empty string."""
    before, refusal_mark, after = error.format_message().partition("': Input should be ")
    option, expected = before.rpartition("'")[2], after.partition(", unable ")[0]
    if not refusal_mark or not option.startswith("--"):
        return ""
    values = _values_of(option)
    return str(BadInputError(option, values[-1], expected, "command line")) if values else ""


def _values_of(option: str) -> list[str]:
    """Return the values of an option on the command line, those after `=` last."""
    values = [value for word, value in itertools.pairwise(sys.argv) if word == option]
    return values + [word.removeprefix(f"{option}=") for word in sys.argv if word.startswith(f"{option}=")]


def _in_program(error: BadInputError) -> BadInputError:
    """Return an error in a line of a program with the file that `--program` names; any other unchanged."""
    from dragstrip.experiment.programs import in_file

    files = _values_of("--program")
    return in_file(error, {Path(file).stem: file for file in reversed(files)})


def _with_notes(otherwise: Callable[..., None]) -> Callable[..., None]:
    """Return a warning printer that shows the program's own notes as one line, and others as before."""

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, Note):
            sys.stderr.write(f"note: {one_line(str(message))}\n")
        else:
            otherwise(message, category, *rest, **more)

    return show


def _status(error: BaseException | None) -> int:
    return BAD_INPUT if isinstance(error, OSError) and error.errno in PATH_ERRORS else FAILED


def _fail(message: str, status: int) -> NoReturn:
    if message:
        sys.stderr.write(f"error: {one_line(message)}\n")
    sys.exit(status)


def _refuse_empty(words: list[str]) -> None:
    """Raise `BadInputError` for an empty word, since `--out ""` would mean the current folder.

    Words behind `--` are another command's own.
    """
    words = words[: words.index("--")] if "--" in words else words
    for before, word in zip(["", *words], words, strict=False):
        option, equals, value = word.partition("=")
        if option.startswith("--") and equals and not value.strip():
            raise BadInputError(option, value, "a value that is not empty", "command line")
        if not word.strip():
            option = before if before.startswith("--") else ""
            raise BadInputError(option, word, "a value that is not empty", "command line")


# --- standard output and error ----------------------------------------------------------------


class _Output(io.FileIO):
    """A standard stream whose failure does not stop the work; it is reported afterwards."""

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        if self.failure is None:
            try:
                return super().write(data)
            except OSError as error:
                self.failure = error
        return len(memoryview(data))


def _outputs() -> list[_Output]:
    """Replace the process's standard streams and return those for output, unless a test captures them."""
    closed = _opened()
    outputs = []
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        stream: TextIO | None = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__"):
            continue
        output = _Output(descriptor, "wb", closefd=False)
        if descriptor in closed:
            output.failure = OSError(errno.EBADF, os.strerror(errno.EBADF))
        text = io.TextIOWrapper(
            io.BufferedWriter(output),
            encoding=stream.encoding if stream else "utf-8",
            errors="backslashreplace",
            line_buffering=descriptor == 2 or output.isatty(),
        )
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)
        if descriptor == 1:
            outputs.append(output)
    return outputs


def _opened() -> set[int]:
    """Open /dev/null for closed standard streams, so that no file gets their numbers.

    Return those numbers.
    """
    closed = set()
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            closed.add(descriptor)
    return closed
