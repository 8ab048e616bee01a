"""A recording in a folder: six Parquet tables, the scenario and its provenance.

The tables hold nothing of the machine or the hour: the same scenario and seed give the same bytes,
however many workers ran. Where and when it ran is in `provenance.json`.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dragstrip.errors import BadInputError

TABLES = ("flows", "samples", "received", "rtts", "probes", "queues")
NULL = np.iinfo(np.int64).min
"""How the core writes "no value"."""


@dataclass(frozen=True)
class Recording:
    """What a run left behind."""

    scenario: dict[str, Any]
    tables: Mapping[str, pa.Table]
    provenance: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, table: str) -> pa.Table:
        return self.tables[table]


def from_core(columns: Mapping[str, Mapping[str, tuple[str, Any]]]) -> dict[str, pa.Table]:
    """The core's columns of bytes as Arrow tables (their form: crates/py/src/tables.rs)."""
    return {
        name: pa.table({column: _array(kind, data) for column, (kind, data) in table.items()})
        for name, table in columns.items()
    }


def _array(kind: str, data: Any) -> pa.Array[Any]:
    match kind:
        case "int":
            values = np.frombuffer(data, dtype="<i8")
            integers: pa.Array[Any] = pa.array(values, mask=values == NULL)
            return integers
        case "text":
            names, indexes = data
            return pa.DictionaryArray.from_arrays(
                pa.array(np.frombuffer(indexes, dtype="<i4")), pa.array(names, pa.string())
            )
        case "bool":
            flags: pa.Array[Any] = pa.array(np.frombuffer(data, dtype=np.uint8).astype(bool))
            return flags
        case _:
            raise AssertionError(f"the core sent a column of kind {kind}")


def write(recording: Recording, folder: Path) -> None:
    """Writes a recording so that `folder` is there whole or not at all."""
    with appearing(folder) as draft:
        for name in TABLES:
            pq.write_table(recording[name], draft / f"{name}.parquet", compression="zstd")
        write_json(draft / "scenario.json", recording.scenario)
        write_json(draft / "provenance.json", recording.provenance)


def read(folder: Path) -> Recording:
    """Reads a recording; raises `BadInputError` for a file that is missing or damaged."""
    tables = {}
    for name in TABLES:
        file = folder / f"{name}.parquet"
        try:
            tables[name] = pq.read_table(file)
        except (OSError, pa.ArrowException) as error:
            reason = (
                "is missing" if not file.exists() else f"is not a Parquet table that can be read: {error}"
            )
            raise BadInputError("", None, reason, str(file)) from None
    return Recording(read_json(folder / "scenario.json"), tables, read_json(folder / "provenance.json"))


def write_json(file: Path, content: object) -> None:
    """JSON for people too: two spaces, a final newline, no NaN."""
    file.write_text(
        json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8"
    )


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object from a file; raises `BadInputError` otherwise."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInputError("", None, "is missing", str(file)) from None
    except (OSError, ValueError) as error:
        raise BadInputError("", None, f"is not JSON that can be read: {error}", str(file)) from None
    if not isinstance(content, dict):
        raise BadInputError("", None, "holds no JSON object", str(file))
    return content


ABANDONED_S = 86_400
"""No draft takes so long."""


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A draft folder beside `folder` that takes its name when the block ends well, and vanishes otherwise.

    One whose process was killed stays behind, marked; after a day the next draft for `folder` removes it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(folder)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent))
    try:
        yield draft
        draft.chmod(0o777 & ~_umask())
        draft.replace(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """As `appearing`, but `folder` may exist: what it holds stays until the draft is complete."""
    _remove_abandoned(folder)
    prefix, parent = f".{folder.name}.", _made(folder.parent)
    with tempfile.TemporaryDirectory(prefix=prefix, suffix=".partial", dir=parent) as aside:
        place = Path(aside) / "new"
        with appearing(place) as draft:
            yield draft
        if not (folder.exists() and _exchanged(place, folder)):
            with contextlib.suppress(FileNotFoundError):
                folder.rename(Path(aside) / "old")
            place.rename(folder)


def _exchanged(one: Path, other: Path) -> bool:
    """Lets two folders change places in one step; false where the system cannot (renameat2(2))."""
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _remove_abandoned(folder: Path) -> None:
    for draft in folder.parent.glob(f".{glob.escape(folder.name)}.*.partial"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > ABANDONED_S:
                shutil.rmtree(draft, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
