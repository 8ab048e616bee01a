"""Files and folders that are written whole or not at all, and whose errors name their path."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import glob
import itertools
import json
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dragstrip import outside
from dragstrip.errors import BadInputError, DragstripError

_numbers = itertools.count()
_DRAFT = re.compile(r"\.draft-(.*)-(\d+)-\d+$")


class NotWrittenError(DragstripError):
    """A file could not be written; what was there before is still there."""

    def __init__(self, path: Path, error: OSError) -> None:
        said = os.strerror(error.errno) if error.errno else str(error)
        super().__init__(f"{path}: cannot be written: {said}")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system refuses in the block is reported as of `path`."""
    try:
        yield
    except OSError as error:
        raise NotWrittenError(path, error) from error


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Lets `write` fill a draft beside `path`, which then takes its name, also if the power fails."""
    draft = path.with_name(f".draft-{socket.gethostname()}-{os.getpid()}-{next(_numbers)}")
    try:
        write(draft)
        _sync(draft)
        draft.replace(path)
    except OSError as error:
        raise NotWrittenError(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _sync(file: Path) -> None:
    with file.open("ab") as opened:
        os.fsync(opened.fileno())


def write_text(path: Path, text: str) -> None:
    r"""Writes a text file whole; what a path has that is not UTF-8 is written as `\udcff`, as JSON has it."""
    write_whole(path, lambda draft: draft.write_text(text, encoding="utf-8", errors="backslashreplace"))


READABLE_MAX = 1 << 20
"""Characters of a JSON document; longer ones have no line breaks, which take ten times as long to write."""


def json_text(content: object) -> str:
    """JSON, for people too as long as they would read it: two spaces, a final newline, no NaN."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    if len(text) <= READABLE_MAX:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return text + "\n"


def write_json(path: Path, content: object) -> None:
    """Writes JSON whole."""
    write_text(path, json_text(content))


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; raises `BadInputError` where it is missing or something else."""
    return outside.json_object(path)


ABANDONED_S = 86_400
"""No draft of a folder takes so long."""


@contextmanager
def appearing(folder: Path, reported: Path | None = None) -> Iterator[Path]:
    """A draft folder beside `folder` that takes its name when the block ends well, and vanishes otherwise.

    One whose process was killed stays behind, marked; after a day the next draft for `folder` removes it.
    Raises `NotWrittenError` about `reported`, or `folder`.
    """
    reported = reported or folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent))
    except OSError as error:
        raise NotWrittenError(reported, error) from error
    try:
        yield draft
        draft.chmod(0o777 & ~_umask())
        draft.replace(folder)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        if isinstance(error, OSError) and _below(draft, error.filename):
            raise NotWrittenError(reported, error) from error
        raise


def _below(draft: Path, name: object) -> bool:
    """Whether an error is of a file in this draft: it names one there, or none as where a disk is full."""
    return name is None or (isinstance(name, str) and Path(name).is_relative_to(draft))


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """As `appearing`, but `folder` may exist: what it holds stays until the draft is complete."""
    _remove_abandoned(folder)
    prefix, parent = f".{folder.name}.", folder.parent
    make_folder(parent)
    with writing(folder):
        aside = Path(tempfile.mkdtemp(prefix=prefix, suffix=".partial", dir=parent))
    try:
        place = aside / "new"
        with appearing(place, folder) as draft:
            yield draft
        with writing(folder):
            if not (folder.exists() and _exchanged(place, folder)):
                with contextlib.suppress(FileNotFoundError):
                    folder.rename(aside / "old")
                place.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _exchanged(one: Path, other: Path) -> bool:
    """Lets two folders change places in one step; false where the system cannot (renameat2(2))."""
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def _remove_abandoned(folder: Path) -> None:
    for draft in folder.parent.glob(f".{glob.escape(folder.name)}.*.partial"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > ABANDONED_S:
                shutil.rmtree(draft, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
