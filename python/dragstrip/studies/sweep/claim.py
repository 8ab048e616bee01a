"""The claim on a sweep's folder: which process may write there, and the folder's description.

Nothing is written before the locks are held. Several sweeps may share a folder if they have the same
description (`--shard`); the description changes only while no other process works there.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import files
from dragstrip.io.files import DamagedError, read_json
from dragstrip.studies.sweep.plan import Index, Json, Sweep

DESCRIPTION = "sweep.json"
STORE = "store"
LOCK = ".lock"
WHO = "sweep"
OWN_SUM = "sha256"
"""The field of sweep.json with the SHA-256 of all others."""

Confirm = Callable[[str], bool]
"""Asks a person a question and returns the answer."""


@contextmanager
def claimed(
    out: Path, sweep: Sweep, index: Index, shard: tuple[int, int], replace: bool, confirm: Confirm
) -> Iterator[None]:
    """Hold the folder during the block: a new or empty one, or an earlier sweep's, which is described anew.

    A sweep that includes all runs of the one described there replaces it. For any other sweep `replace` must
    be true, or `confirm` must answer true. Raises `BadInputError` or `DragstripError` before anything is
    changed.
    """
    _expect(out)
    files.make_folder(out)
    document = json.loads(json.dumps(sweep.document()))

    def describe(alone: bool) -> None:
        stored_description = _stored_description(out)
        if stored_description == document:
            return
        if not alone:
            raise DragstripError(f"{out}: another sweep is writing here, a different one")
        if stored_description is not None and not _has_same_runs(stored_description, document):
            _settle(out, stored_description, sweep, index, replace, confirm)
        write_description(out, sweep)

    with ExitStack() as lock_stack:
        lock_stack.enter_context(files.only_one(out / f"{LOCK}-{shard[0]}-of-{shard[1]}", WHO))
        files.remove_drafts(out)
        lock_stack.enter_context(files.shared(out / LOCK, WHO, describe))
        yield


@contextmanager
def reported(out: Path) -> Iterator[None]:
    """Hold a lock while dataset and report are written, so that the last report includes all runs."""
    with files.in_turn(out / f"{LOCK}-report"):
        files.remove_drafts(out)
        yield


def write_description(out: Path, sweep: Sweep) -> None:
    """Write sweep.json."""
    document = sweep.document()
    files.write_json(out / DESCRIPTION, {**document, OWN_SUM: description_sum(document)})


def read_description(out: Path) -> Sweep:
    """Read a sweep from sweep.json; raises `DamagedError` if the file differs from what was written."""
    return Sweep.read(_read(out / DESCRIPTION), str(out / DESCRIPTION))


def _read(file: Path) -> Json:
    try:
        document = read_json(file)
    except BadInputError as error:
        if not file.exists():
            raise
        raise DamagedError(file, error.explanation) from error
    stored_sum = document.pop(OWN_SUM, None)
    if stored_sum is None or stored_sum != description_sum(document):
        raise DamagedError(file, f"its SHA-256 is not the one in its field {OWN_SUM}")
    return document


def description_sum(document: Json) -> str:
    """Return the SHA-256 of a description without its own, in hexadecimal digits."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _expect(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise BadInputError("--out", str(out), "a folder", "command line")
    is_sweep_folder = (out / DESCRIPTION).exists() or (out / STORE).exists()
    # Locks and drafts are all that is there if a sweep was killed at once.
    ours = (LOCK, ".draft-")
    if (
        not is_sweep_folder
        and out.exists()
        and not all(entry.name.startswith(ours) for entry in out.iterdir())
    ):
        raise BadInputError(
            "--out", str(out), "a folder that is empty, does not exist yet, or holds a sweep", "command line"
        )


def _stored_description(out: Path) -> Json | None:
    """Return the folder's description, or None if there is none or it cannot be read."""
    if not (out / DESCRIPTION).exists():
        return None
    try:
        return _read(out / DESCRIPTION)
    except (BadInputError, DamagedError) as error:
        sys.stderr.write(f"warning: {error}; written anew\n")
        return None


def _has_same_runs(stored: Json, requested: Json) -> bool:
    """Return whether two descriptions, of any versions, have the same runs."""
    words = ("version", "title")
    pair = [
        {key: value for key, value in description.items() if key not in words}
        for description in (stored, requested)
    ]
    return json.dumps(pair[0], sort_keys=True) == json.dumps(pair[1], sort_keys=True)


def _settle(out: Path, stored: Json, sweep: Sweep, index: Index, replace: bool, confirm: Confirm) -> None:
    """Raise `BadInputError` unless this sweep may replace the one that is described."""
    if replace:
        return
    try:
        before = Index(Sweep.read({**stored, "version": sweep.version}, str(out / DESCRIPTION)))
        missing_runs = len(set(before.all_keys()) - set(index.all_keys()))
        difference = f"of whose {len(before):,} runs this one lacks {missing_runs:,}"
    except (DragstripError, LookupError, TypeError, ValueError):  # it is no sweep of this version
        missing_runs, difference = 1, "of another version"
    if not missing_runs:
        return
    holds = f"{out} holds another sweep ({stored.get('name', '')}), {difference}"
    effect = "its description, dataset and report are replaced, its runs stay in store/"
    if not confirm(f"{holds}. Go on? ({effect})"):
        raise BadInputError("--out", None, f"{holds}; another folder, or --replace: {effect}", "command line")
