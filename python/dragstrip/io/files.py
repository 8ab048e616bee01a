"""Atomic writes of files and folders, locks, and errors that name the path.

A file or folder is written as a draft and then renamed, so readers see all of it or nothing. Two targets of
a file are no names of an ordinary one: a symbolic link stays, and the file that it leads to is replaced; a
character device, a FIFO or an open descriptor (/dev/stdout) is written into.
"""

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
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import untrusted

_numbers = itertools.count()


class NotWrittenError(DragstripError):
    """A file could not be written; the previous file, if any, is unchanged."""

    def __init__(self, path: Path, error: OSError) -> None:
        self.path: Path = path
        self.error: OSError = error
        self.reason: str = os.strerror(error.errno) if error.errno else str(error)
        super().__init__(f"{path}: cannot be written: {self.reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.error)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise an `OSError` of the block as a `NotWrittenError` that names `path`."""
    try:
        yield
    except OSError as error:
        raise NotWrittenError(path, error) from error


class DamagedError(DragstripError):
    """A stored file differs from what was written, so it is not used."""

    def __init__(self, path: Path, reason: str, advice: str = "") -> None:
        self.path: Path = path
        self.reason: str = reason
        super().__init__(" ".join(f"{path}: damaged: {reason}{advice and '; '}{advice}".split()))


def warn(error: DamagedError) -> None:
    """Print a warning about damage that can be repaired by doing the work again."""
    sys.stderr.write(f"warning: {untrusted.one_line(str(error))}\n")


def write_whole(path: Path, write: Callable[[Path], object], synced: bool = True) -> None:
    """Call `write` with a draft beside `path`, then rename the draft to `path`.

    The draft is synchronised to disk first if `synced`, so `path` is never partly written, even after a power
    failure. A stream (`is_stream`) gets the draft's bytes instead, and of a symbolic link the file that it
    leads to is replaced. Raises `NotWrittenError`, also for a block device or a socket.
    """
    if is_stream(path):
        _write_into(path, write)
        return
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    _write(target, write, lambda _: target, synced)


def is_stream(path: Path) -> bool:
    """Return whether a file is written into and not replaced: a character device, a FIFO, a descriptor.

    Raises `NotWrittenError` for a block device and a socket, which no output belongs into, and for a link
    that leads nowhere in the end.
    """
    if _descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise NotWrittenError(path, error) from error
    for is_kind, kind in ((stat.S_ISBLK, "block device"), (stat.S_ISSOCK, "socket")):
        if is_kind(mode):
            raise NotWrittenError(path, OSError(f"it is a {kind}"))
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


LINKS_MAX = 40
"""Symbolic links in a row that Linux follows."""


def _descriptor(path: Path) -> int | None:
    """Return the number of this process's descriptor that a path such as /dev/stdout leads to."""
    for _ in range(LINKS_MAX):
        folder = os.path.realpath(path.parent)
        if re.fullmatch(rf"/proc/{os.getpid()}(/task/\d+)?/fd", folder) and path.name.isdecimal():
            return int(path.name)
        place = Path(folder, path.name)
        if not place.is_symlink():
            return None
        path = place.parent / place.readlink()
    return None


def _write_into(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` with a temporary draft and copy it into a stream."""
    with scratch("stream") as folder, writing(path):
        draft = folder / "draft"
        write(draft)
        descriptor = _descriptor(path)
        if descriptor is None:
            opened = os.open(path, os.O_WRONLY | os.O_NOCTTY)
        else:
            sys.stdout.flush()
            sys.stderr.flush()
            opened = os.dup(descriptor)  # opened again, a regular file would be written from its beginning
        with draft.open("rb") as content, os.fdopen(opened, "wb") as stream:
            shutil.copyfileobj(content, stream)


def write_by_hash(folder: Path, ending: str, write: Callable[[Path], object]) -> Path:
    """Write a file whose name is the SHA-256 of its bytes followed by `ending`, and return its path.

    Atomic, as `write_whole` is. Raises `NotWrittenError`.
    """
    return _write(folder / f"*{ending}", write, lambda draft: folder / f"{sha256(draft)}{ending}")


def _write(
    path: Path, write: Callable[[Path], object], place: Callable[[Path], Path], synced: bool = True
) -> Path:
    draft = path.with_name(f".draft-{_tag()}")
    try:
        with _locked(os.open(draft, os.O_RDONLY | os.O_CREAT, 0o666)):
            write(draft)
            if synced:
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
    """Return the SHA-256 of a file as hexadecimal digits; raises `BadInputError` if it cannot be read."""
    with untrusted.opened(path, untrusted.TABLE_MAX) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it has readinto


def write_text(path: Path, text: str, synced: bool = True) -> None:
    r"""Write a text file atomically, in UTF-8; raises `NotWrittenError`.

    Bytes of a path that are not UTF-8 (surrogates, in Python) are written as `\udcff`, as JSON writes them.
    Without `synced`, a power failure soon afterwards may leave the file empty: for what its reader checks.
    """

    def write(draft: Path) -> None:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")

    write_whole(path, write, synced)


READABLE_MAX = 1 << 20
"""Characters of the longest JSON document written with line breaks, which take ten times as long to write."""


_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_READABLE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=2)


def json_text(content: object) -> str:
    """Return `content` as JSON with a final newline; raises `ValueError` for NaN.

    It is indented by two spaces if its compact form has at most `READABLE_MAX` characters.
    """
    text = _COMPACT.encode(content)
    if len(text) <= READABLE_MAX:
        text = _READABLE.encode(content)
    return text + "\n"


def write_json(path: Path, content: object) -> None:
    """Write `content` as a JSON file atomically; raises `NotWrittenError`."""
    write_text(path, json_text(content))


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises `BadInputError` if the file is missing or holds something else.
    """
    return untrusted.json_object(path)


# --- drafts -----------------------------------------------------------------------------------
# A draft is locked as long as its writer lives. The kernel takes the lock back however the writer ends.

ABANDONED_S = 60.0
"""Seconds after which an unlocked draft counts as abandoned even if a process with its writer's number
lives."""


@contextmanager
def appearing(folder: Path, reported: Path | None = None) -> Iterator[Path]:
    """Yield a draft folder that is renamed to `folder` when the block succeeds and removed otherwise.

    Raises `NotWrittenError` about `reported`, or about `folder` if that is None.
    """
    with aside(folder, reported) as draft:
        yield draft
        draft.replace(folder)


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield a draft folder, as `appearing` does, and replace an existing `folder` once the block succeeds.

    Of a symbolic link the folder that it leads to is replaced.
    """
    if folder.is_symlink():
        folder = Path(os.path.realpath(folder))
    with aside(folder) as draft_parent:
        draft = draft_parent / "new"
        draft.mkdir()
        yield draft
        with writing(folder):
            move_in(draft, folder)


@contextmanager
def adding(folder: Path, reported: Path | None = None) -> Iterator[Path]:
    """Yield a draft folder whose entries are in `folder` once the block succeeds: all of them, or none.

    `folder` is made if it does not exist; entries with the names of new ones are replaced. Raises
    `NotWrittenError` about `reported`, or about `folder` if that is None. It is also raised about an entry
    that is there and is neither a file nor a folder: a link, a device or a FIFO stays.
    """
    if not folder.is_dir():
        with appearing(folder, reported) as draft:
            yield draft
        return
    with aside(folder / "new", reported or folder) as draft:
        yield draft
        entries = sorted(draft.iterdir())
        for place in (folder / entry.name for entry in entries):
            if os.path.lexists(place) and (place.is_symlink() or not (place.is_file() or place.is_dir())):
                raise NotWrittenError(place, OSError("it is a link, a device or a FIFO; remove it first"))
        moved: list[tuple[Path, bool]] = []
        try:
            for entry in entries:
                place = folder / entry.name
                moved.append((place, os.path.lexists(place)))
                move_in(entry, place)
        except OSError:
            moved.pop()  # `move_in` has left its place as it was
            for place, replaced in reversed(moved):
                with contextlib.suppress(OSError):
                    _move_out(draft, place, replaced)
            raise


def _move_out(draft: Path, place: Path, replaced: bool) -> None:
    """Undo a `move_in` from `draft` to `place`."""
    earlier_entries = [
        old for old in (draft / place.name, draft / f"old-{place.name}") if os.path.lexists(old)
    ]
    if replaced:
        move_in(earlier_entries[0], place)
    else:
        place.rename(draft / place.name)


def move_in(source: Path, place: Path) -> None:
    """Move the file or folder `source` to `place`; what was there ends up beside `source` or in its place.

    If this fails, `place` is as it was.
    """
    if os.path.lexists(place) and _exchanged(source, place):
        return
    old = source.with_name(f"old-{source.name}")
    with contextlib.suppress(FileNotFoundError):
        place.rename(old)
    try:
        source.rename(place)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            old.rename(place)
        raise


def _exchanged(first: Path, second: Path) -> bool:
    """Exchange two folders in one step (renameat2(2)); return False where the system cannot."""
    at_fdcwd, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return (
        rename is not None
        and rename(at_fdcwd, os.fsencode(first), at_fdcwd, os.fsencode(second), exchange) == 0
    )


@contextmanager
def aside(path: Path, reported: Path | None = None) -> Iterator[Path]:
    """Yield a temporary folder beside `path` that is removed when the block ends.

    An `OSError` there is raised as a `NotWrittenError` about `reported`, or about `path` if that is None.
    """
    reported = reported or path
    draft = path.parent
    with parents_of(path):
        try:
            with _folder(path.parent, f".{path.name}.", ".partial", 0o777) as draft:
                yield draft
        except OSError as error:
            if _below(draft, error.filename, error.filename2):
                raise NotWrittenError(reported, error) from error
            raise
        except NotWrittenError as error:
            if error.path.is_relative_to(draft):
                raise NotWrittenError(reported, error.error) from error
            raise


@contextmanager
def parents_of(path: Path) -> Iterator[None]:
    """Make the folders above `path`, and remove those that it made if the block fails and they are empty."""
    missing = [parent for parent in path.parents if not parent.exists()]
    try:
        make_folder(path.parent)
        yield
    except BaseException:
        for parent in missing:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def _below(draft: Path, *names: object) -> bool:
    """Return whether an error concerns this draft: it names a file in it, or no file (a full disk)."""
    paths = [Path(os.fsdecode(name)) for name in names if isinstance(name, str | bytes | os.PathLike)]
    return not paths or any(path.is_relative_to(draft) for path in paths)


@contextmanager
def scratch(purpose: str, parent: Path | None = None) -> Iterator[Path]:
    """Yield a folder for temporary files that is removed when the block ends.

    `purpose` is one lower-case word that becomes part of its name.
    """
    with _folder(parent or Path(tempfile.gettempdir()), f"dragstrip-{purpose}-", "", 0o700) as folder:
        yield folder


@contextmanager
def _folder(parent: Path, prefix: str, suffix: str, mode: int) -> Iterator[Path]:
    _remove_drafts_once(parent.absolute())
    while True:
        folder = parent / f"{prefix}{_tag()}{suffix}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode)
            break
    try:
        with _locked(os.open(folder, os.O_RDONLY)):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _tag() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{next(_numbers)}"


@contextmanager
def _locked(opened: int) -> Iterator[None]:
    """Hold the lock of an open draft, where the file system has locks, and close the draft afterwards."""
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)


@functools.cache
def _remove_drafts_once(folder: Path) -> None:
    remove_drafts(folder)


LOCK_WAIT_S = 0.5
"""Seconds to wait for the lock of a new folder; `remove_empty` of another process holds it for a moment
only."""


@contextmanager
def claimed_folder(folder: Path) -> Iterator[bool]:
    """Make a folder and lock it, so that `remove_empty` in another process does not remove it.

    Yields False if the folder exists already.
    """
    while True:
        try:
            folder.mkdir()
        except FileExistsError:
            yield False
            return
        try:
            opened = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:  # removed as the draft of a killed process
            continue
        with _locked(opened):
            if _is_ours(opened, folder):
                yield True
                return


def _is_ours(opened: int, folder: Path) -> bool:
    """Lock a folder that this process has just made.

    Returns False if it was removed before it was locked, even if another process has made one of that name
    since.
    """
    until = time.monotonic() + LOCK_WAIT_S
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
    """Remove a folder if it is empty and not locked."""
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
    """Remove the drafts in `folder` whose processes on this machine are dead; keep all others."""
    try:
        drafts = [entry for entry in folder.iterdir() if entry.name.startswith((".", "dragstrip-"))]
    except OSError:
        return
    host = re.escape(socket.gethostname())
    ours = re.compile(rf"(?:\.draft-|\..*\.|dragstrip-[a-z]+-){host}-(\d+)-\d+(?:\.partial)?")
    for draft in drafts:
        match = ours.fullmatch(draft.name)
        if match and _abandoned(draft, int(match[1])):
            if draft.is_dir() and not draft.is_symlink():
                shutil.rmtree(draft, ignore_errors=True)
            else:
                draft.unlink(missing_ok=True)


def _abandoned(draft: Path, pid: int) -> bool:
    """Return whether a draft's writer is gone: it is unlocked, and its process ended or is a later one."""
    try:
        opened = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False  # it has just got its name, or belongs to another user
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return not _alive(pid) or time.time() - os.fstat(opened).st_mtime > ABANDONED_S
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


def expect_name(option: str, path: Path) -> None:
    """Raise `BadInputError` for an output whose path has bytes that are not UTF-8 or control characters.

    Arrow opens no such paths, and documents and pages cannot name them.
    """
    if untrusted.printable(str(path)) != str(path):
        raise BadInputError(option, str(path), "a path of printable characters in UTF-8", "command line")


def expect_folder(option: str, folder: Path) -> None:
    """Raise `BadInputError` before any work is done if `folder` cannot be created, written or named."""
    expect_name(option, folder)
    above = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    reason = ""
    writable = above.is_dir() and os.access(above, os.W_OK | os.X_OK)
    if writable:
        try:
            with scratch("probe", above):  # root has access to /proc, where no folder is made
                return
        except OSError as error:
            reason = f" ({error.strerror})"
    raise BadInputError(option, str(folder), f"a folder that can be written{reason}", "command line")


def expect_empty_folder(option: str, folder: Path) -> None:
    """Raise `BadInputError` also for a folder that has something in it."""
    expect_folder(option, folder)
    if folder.is_dir() and any(folder.iterdir()):
        raise BadInputError(
            option, str(folder), "a folder that is empty or does not exist yet", "command line"
        )


def expect_own_folder(option: str, folder: Path, marks: Mapping[str, str]) -> None:
    """Raise `BadInputError` also for a folder with files that no earlier call of the command has written.

    Each of `marks` is a document that such a call writes: its file, and a field of it. A folder that has one
    of them may be written again; any other must be empty or not exist.
    """
    expect_folder(option, folder)
    if not folder.exists() or not any(folder.iterdir()):
        return
    for name, field in marks.items():
        with contextlib.suppress(BadInputError):
            if (folder / name).is_file() and field in read_json(folder / name):
                return
    names = " or ".join(marks)
    expected = f"an empty folder, one that does not exist, or one with {names} of an earlier call"
    raise BadInputError(option, str(folder), expected, "command line")


def expect_file(option: str, file: Path) -> None:
    """Raise `BadInputError` before any work is done if `file` cannot be written or named."""
    expect_name(option, file)
    try:
        stream = is_stream(file)
    except NotWrittenError as error:
        raise BadInputError(option, str(file), f"a file ({error.reason})", "command line") from None
    folder = Path(os.path.realpath(file)).parent
    writable = folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    if not (stream or (writable and not file.is_dir())):
        raise BadInputError(option, str(file), "a file in a folder that can be written", "command line")


def make_folder(path: Path) -> None:
    """Make a folder and its parents; raises `NotWrittenError`."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotWrittenError(path, error) from error


@contextmanager
def only_one(lock: Path, writer: str, place: Path | None = None) -> Iterator[None]:
    """Hold an exclusive lock, which the kernel releases when this process ends for any reason.

    Raises `DragstripError` if another process holds it; `writer` names such a process in the message, and
    `place` the file or folder that it writes, in place of the lock's folder.
    """
    try:
        file = lock.open("a+")
    except OSError as error:
        raise NotWrittenError(lock, error) from error
    with file:
        # A file system without locks: parts have names of their own, nothing is overwritten. A file that was
        # removed before it was locked: its remover goes on there.
        if not (_try_lock(file, fcntl.LOCK_EX) and _is_still(file, lock)):
            raise DragstripError(f"{place or lock.parent}: another {writer} is writing here")
        yield


def _is_still(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def is_held(lock: Path) -> bool:
    """Return whether another process holds an existing lock; True also where this cannot be determined."""
    try:
        with lock.open("a+") as file:
            return not _try_lock(file, fcntl.LOCK_EX)
    except OSError:
        return True


WAIT_S = 5.0
"""Seconds to wait for a process that is rewriting the folder's description, which takes a moment."""


@contextmanager
def shared(lock: Path, writer: str, describe: Callable[[bool], object]) -> Iterator[None]:
    """Hold a lock that other processes may share, so that what `describe` has written stays valid.

    `describe(True)` is called while no other process holds the lock, and may change files. `describe(False)`
    is called while others hold it, and must raise if it would have to change any. Raises `DragstripError` if
    another process holds the lock exclusively.
    """
    try:
        file = lock.open("a+")
    except OSError as error:
        raise NotWrittenError(lock, error) from error
    with file:
        until = time.monotonic() + WAIT_S
        while not _try_lock(file, fcntl.LOCK_EX):
            if _try_lock(file, fcntl.LOCK_SH):
                break
            if time.monotonic() > until:
                raise DragstripError(f"{lock.parent}: another {writer} is writing here")
            time.sleep(0.02)
        else:
            describe(True)
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_SH)
        describe(False)
        yield


@contextmanager
def in_turn(lock: Path) -> Iterator[None]:
    """Wait for an exclusive lock and hold it during the block."""
    try:
        file = lock.open("a+")
    except OSError as error:
        raise NotWrittenError(lock, error) from error
    with file:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _try_lock(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True
