"""Files and folders that are written whole or not at all, and whose errors name their path."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import itertools
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dragstrip import outside
from dragstrip.errors import BadInputError, DragstripError

_numbers = itertools.count()


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


class DamagedError(DragstripError):
    """A stored file is not what was written; nothing is made of it."""

    def __init__(self, path: Path, reason: str, advice: str = "") -> None:
        self.path, self.reason = path, reason
        super().__init__(" ".join(f"{path}: damaged: {reason}{advice and '; '}{advice}".split()))


def warn(error: DamagedError) -> None:
    """Reports damage that costs nothing but time."""
    sys.stderr.write(f"warning: {outside.one_line(str(error))}\n")


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Lets `write` fill a draft beside `path`, which then takes its name, also if the power fails."""
    _write(path, write, lambda _: path)


def write_by_hash(folder: Path, ending: str, write: Callable[[Path], object]) -> Path:
    """As `write_whole`; the file's name is the SHA-256 of its bytes and `ending`. Gives the file."""
    return _write(folder / f"*{ending}", write, lambda draft: folder / f"{sha256(draft)}{ending}")


def _write(path: Path, write: Callable[[Path], object], place: Callable[[Path], Path]) -> Path:
    draft = path.with_name(f".draft-{_tag()}")
    try:
        with _locked(os.open(draft, os.O_RDONLY | os.O_CREAT, 0o666)):
            write(draft)
            _sync(draft)
            return draft.replace(place(draft))
    except OSError as error:
        raise NotWrittenError(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _sync(file: Path) -> None:
    with file.open("ab") as opened:
        os.fsync(opened.fileno())


def sha256(path: Path) -> str:
    """Of a file's bytes, in hexadecimal digits. Raises `BadInputError` for one that cannot be read."""
    with outside.opened(path, outside.TABLE_MAX) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it has readinto


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


# --- drafts -----------------------------------------------------------------------------------
# A draft is locked as long as its writer lives. The kernel takes the lock back however the writer ends.

YOUNG_S = 60.0
"""A draft this old whose lock is free has lost its writer, even if a process of that number lives."""


@contextmanager
def appearing(folder: Path, reported: Path | None = None) -> Iterator[Path]:
    """A draft folder beside `folder` that takes its name when the block ends well, and vanishes otherwise.

    Raises `NotWrittenError` about `reported`, or `folder`.
    """
    with aside(folder, reported) as draft:
        yield draft
        draft.replace(folder)


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """As `appearing`, but `folder` may exist: what it holds stays until the draft is complete."""
    with aside(folder) as beside:
        draft = beside / "new"
        draft.mkdir()
        yield draft
        with writing(folder):
            move_in(draft, folder)


def move_in(made: Path, place: Path) -> None:
    """Gives a folder its place; what was there is beside `made` or in it then."""
    if not (place.exists() and _exchanged(made, place)):
        with contextlib.suppress(FileNotFoundError):
            place.rename(made.with_name(f"old-{made.name}"))
        made.rename(place)


def _exchanged(one: Path, other: Path) -> bool:
    """Lets two folders change places in one step; false where the system cannot (renameat2(2))."""
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


@contextmanager
def aside(path: Path, reported: Path | None = None) -> Iterator[Path]:
    """A folder beside `path` for what will be moved there; it goes when the block ends.

    What the system refuses there is a `NotWrittenError` about `reported`, or `path`.
    """
    reported = reported or path
    make_folder(path.parent)
    draft = path.parent
    try:
        with _folder(path.parent, f".{path.name}.", ".partial", 0o777) as draft:
            yield draft
    except OSError as error:
        if _below(draft, error.filename, error.filename2):
            raise NotWrittenError(reported, error) from error
        raise


def _below(draft: Path, *names: object) -> bool:
    """Whether an error is of a file in this draft: it names one there, or none as where a disk is full."""
    known = [Path(os.fsdecode(name)) for name in names if isinstance(name, str | bytes | os.PathLike)]
    return not known or any(path.is_relative_to(draft) for path in known)


@contextmanager
def scratch(purpose: str, parent: Path | None = None) -> Iterator[Path]:
    """A folder for temporary files; it goes when the block ends. `purpose`: a word of small letters."""
    with _folder(parent or Path(tempfile.gettempdir()), f"dragstrip-{purpose}-", "", 0o700) as made:
        yield made


@contextmanager
def _folder(parent: Path, prefix: str, suffix: str, mode: int) -> Iterator[Path]:
    _remove_drafts_once(parent.absolute())
    while True:
        made = parent / f"{prefix}{_tag()}{suffix}"
        with contextlib.suppress(FileExistsError):
            made.mkdir(mode)
            break
    try:
        with _locked(os.open(made, os.O_RDONLY)):
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _tag() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{next(_numbers)}"


@contextmanager
def _locked(opened: int) -> Iterator[None]:
    """Holds the lock on an open draft, where the file system has locks; closes it."""
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)


@functools.cache
def _remove_drafts_once(folder: Path) -> None:
    remove_drafts(folder)


REMOVED_S = 0.5
"""Whoever looks whether an empty folder can go holds its lock for a moment, not longer than this."""


@contextmanager
def taken(folder: Path) -> Iterator[bool]:
    """Makes a folder and holds it, so that `remove_empty` of another process leaves it alone.

    False where there is one of that name.
    """
    while True:
        try:
            folder.mkdir()
        except FileExistsError:
            yield False
            return
        try:
            opened = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:  # removed as somebody's who was killed
            continue
        with _locked(opened):
            if _is_ours(opened, folder):
                yield True
                return


def _is_ours(opened: int, folder: Path) -> bool:
    """Locks a folder that this process has just made.

    False where it was removed before it was locked, also if somebody else has another there by now.
    """
    until = time.monotonic() + REMOVED_S
    while time.monotonic() < until:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.001)
            continue
        except OSError:
            pass  # a file system without locks
        return folder.exists() and os.path.samestat(os.fstat(opened), folder.stat())
    return False


def remove_empty(folder: Path) -> None:
    """Removes a folder that is empty and that nobody holds."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.rmdir()
    except OSError:
        pass  # held, not empty, or a file system without locks
    finally:
        os.close(opened)


def remove_drafts(folder: Path) -> None:
    """Removes drafts of dead processes of this machine; those of living ones and other machines stay."""
    try:
        drafts = [entry for entry in folder.iterdir() if entry.name.startswith((".", "dragstrip-"))]
    except OSError:
        return
    host = re.escape(socket.gethostname())
    ours = re.compile(rf"(?:\.draft-|\..*\.|dragstrip-[a-z]+-){host}-(\d+)-\d+(?:\.partial)?")
    for draft in drafts:
        found = ours.fullmatch(draft.name)
        if found and _abandoned(draft, int(found[1])):
            if draft.is_dir() and not draft.is_symlink():
                shutil.rmtree(draft, ignore_errors=True)
            else:
                draft.unlink(missing_ok=True)


def _abandoned(draft: Path, pid: int) -> bool:
    """Whether a draft's writer is gone: nobody holds its lock, and its process has ended or was another."""
    try:
        opened = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False  # it has just taken its name, or is somebody else's
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return not _alive(pid) or time.time() - os.fstat(opened).st_mtime > YOUNG_S
    except BlockingIOError:
        return False
    except OSError:
        return not _alive(pid)  # a file system without locks
    finally:
        os.close(opened)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


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


@contextmanager
def only_one(lock: Path, who: str) -> Iterator[None]:
    """Holds a lock that the kernel takes back when this process ends, however it ends."""
    try:
        file = lock.open("a+")
    except OSError as error:
        raise NotWrittenError(lock, error) from error
    with file:
        # A file system without locks: parts have names of their own, nothing is overwritten. A file that was
        # removed before it was locked: whoever removed it goes on there.
        if not (_held(file, fcntl.LOCK_EX) and _is_still(file, lock)):
            raise DragstripError(f"{lock.parent}: another {who} is writing here")
        yield


def _is_still(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def is_held(lock: Path) -> bool:
    """Whether somebody holds a lock that is there, or it cannot be known."""
    try:
        with lock.open("a+") as file:
            return not _held(file, fcntl.LOCK_EX)
    except OSError:
        return True


WAIT_S = 5.0
"""For somebody who is describing the folder's contents anew; a moment."""


@contextmanager
def shared(lock: Path, who: str, describe: Callable[[bool], object]) -> Iterator[None]:
    """Holds a lock that others may hold too, so that what `describe` settled stays as it is.

    `describe(True)` is called while nobody else holds the lock and may change things; `describe(False)` while
    others do, and raises where it would have to.
    """
    try:
        file = lock.open("a+")
    except OSError as error:
        raise NotWrittenError(lock, error) from error
    with file:
        until = time.monotonic() + WAIT_S
        while not _held(file, fcntl.LOCK_EX):
            if _held(file, fcntl.LOCK_SH):
                break
            if time.monotonic() > until:
                raise DragstripError(f"{lock.parent}: another {who} is writing here")
            time.sleep(0.02)
        else:
            describe(True)
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_SH)
        describe(False)
        yield


@contextmanager
def in_turn(lock: Path) -> Iterator[None]:
    """Waits for a lock and holds it."""
    try:
        file = lock.open("a+")
    except OSError as error:
        raise NotWrittenError(lock, error) from error
    with file:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _held(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True
