"""How the program ends: every error is one line on standard error, and a status says whose it was.

| status | |
|---|---|
| 0 | everything was done |
| 1 | the world: a full disk, a missing program, a run that failed, output that nobody reads |
| 2 | something that the user can write differently |
| 70 | a fault of ours (EX_SOFTWARE of sysexits.h) |
| 130 | interrupted |
"""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, NoReturn, TextIO

import typer

from dragstrip.errors import BadInputError, DragstripError, FaultError, Note, of_system
from dragstrip.outside import one_line

FAILED = 1
BAD_INPUT = 2
FAULT = 70
INTERRUPTED = 130

WRITTEN_OTHERWISE = (errno.ENAMETOOLONG, errno.ELOOP, errno.EISDIR, errno.ENOTDIR)
"""Errors of the system that another path would not meet."""


def run(program: Callable[[], object]) -> NoReturn:
    """Calls the program and ends the process."""
    outputs = _outputs()
    try:
        _refuse_empty(sys.argv[1:])
        with warnings.catch_warnings():
            warnings.simplefilter("once", Note)
            warnings.showwarning = _noted(warnings.showwarning)
            status = program()
        sys.stdout.flush()
    except typer.exceptions.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "dragstrip"
        _fail(f"{error.format_message()} (see {command} --help)", BAD_INPUT)
    except BadInputError as error:
        from dragstrip import toml

        _fail(str(toml.pointed(error)), BAD_INPUT)
    except FaultError as error:
        _fail(str(error), FAULT)
    except DragstripError as error:
        _fail(str(error), _status(error.__cause__))
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", INTERRUPTED)
    except OSError as error:
        _fail(of_system(error), _status(error))
    except MemoryError:
        _fail("out of memory: fewer runs, flows or workers need less", FAILED)
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
    if status == INTERRUPTED:  # Typer's own way to tell of Ctrl-C
        _fail("interrupted", INTERRUPTED)
    for output in outputs:
        if output.failure is not None:
            unread = output.failure.errno in (errno.EPIPE, errno.EBADF)
            _fail("" if unread else f"standard output: {of_system(output.failure)}", FAILED)
    sys.exit(status if isinstance(status, int) else 0)


def _noted(otherwise: Callable[..., None]) -> Callable[..., None]:
    """Shows our own notes as one line; other warnings as before."""

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, Note):
            sys.stderr.write(f"note: {one_line(str(message))}\n")
        else:
            otherwise(message, category, *rest, **more)

    return show


def _status(error: BaseException | None) -> int:
    return BAD_INPUT if isinstance(error, OSError) and error.errno in WRITTEN_OTHERWISE else FAILED


def _fail(message: str, status: int) -> NoReturn:
    if message:
        sys.stderr.write(f"error: {one_line(message)}\n")
    sys.exit(status)


def _refuse_empty(words: list[str]) -> None:
    """Raises `BadInputError` for a word without a character: `--out ""` would be the current folder."""
    for before, word in zip(["", *words], words, strict=False):
        option, equals, value = word.partition("=")
        if option.startswith("--") and equals and not value.strip():
            raise BadInputError(option, value, "a value that is not empty", "command line")
        if not word.strip():
            option = before if before.startswith("--") else ""
            raise BadInputError(option, word, "a value that is not empty", "command line")


# --- standard output and error ----------------------------------------------------------------


class _Output(io.FileIO):
    """A standard stream whose failure does not end the work; it is reported when that is done."""

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        if self.failure is None:
            try:
                return super().write(data)
            except OSError as error:
                self.failure = error
        return len(memoryview(data))


def _outputs() -> list[_Output]:
    """Replaces the process's own standard streams; gives standard output's, unless a test captures it."""
    closed = _opened()
    found = []
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
            found.append(output)
    return found


def _opened() -> set[int]:
    """Opens /dev/null for standard streams that are closed: no file must get their numbers."""
    closed = set()
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            closed.add(descriptor)
    return closed
