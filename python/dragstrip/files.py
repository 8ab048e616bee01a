"""Files that are written whole or not at all, and whose errors name their path."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dragstrip.errors import BadInputError, DragstripError

_numbers = itertools.count()
_DRAFT = re.compile(r"\.draft-(.*)-(\d+)-\d+$")


class NotWrittenError(DragstripError):
    """A file could not be written; what was there before is still there."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"{path}: cannot be written: {error.strerror or error}")


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Lets `write` fill a draft beside `path`, which then takes its name, also if the power fails."""
    draft = path.with_name(f".draft-{socket.gethostname()}-{os.getpid()}-{next(_numbers)}")
    try:
        write(draft)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise NotWrittenError(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a text file whole."""
    write_whole(path, lambda draft: draft.write_text(text, encoding="utf-8"))


def write_json(path: Path, content: object) -> None:
    """Writes JSON whole."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def expect_folder(option: str, folder: Path) -> None:
    """Raises `BadInputError`, before any work is done, if no folder of this name can be made and written."""
    above = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        raise BadInputError(option, str(folder), "a folder that can be written", "command line")


def expect_file(option: str, file: Path) -> None:
    """Raises `BadInputError` if a file of this name could not be written, before any work is done."""
    if file.is_dir() or not (file.parent.is_dir() and os.access(file.parent, os.W_OK | os.X_OK)):
        raise BadInputError(option, str(file), "a file in a folder that can be written", "command line")


def make_folder(path: Path) -> None:
    """Makes a folder and those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotWrittenError(path, error) from error


def remove_drafts(folder: Path) -> None:
    """Removes drafts of dead processes of this machine; those of living ones and other machines stay."""
    for draft in folder.glob(".draft-*"):
        found = _DRAFT.match(draft.name)
        if found and found[1] == socket.gethostname() and not _alive(int(found[2])):
            draft.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def only_one(lock: Path, who: str) -> Iterator[None]:
    """Holds a lock that the kernel takes back when this process ends, however it ends."""
    try:
        file = lock.open("a+")
    except OSError as error:
        raise NotWrittenError(lock, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DragstripError(f"{lock.parent}: another {who} is writing here") from None
        except OSError:
            pass  # a file system without locks: parts have names of their own, nothing is overwritten
        yield
