"""Results of runs, cached by build and scenario: the next passport simulates what is new.

A wheel also has those of CUBIC and Reno (`dragstrip.studies.passport.baselines` makes them).
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.io import untrusted
from dragstrip.io.cache import cache
from dragstrip.io.files import NotWrittenError, make_folder, read_json, write_text
from dragstrip.io.result_shape import SUMMARY
from dragstrip.io.shape import TEXT, Plain, expect
from dragstrip.model.recording import core_build

SHIPPED = Path(__file__).with_name("baselines.json.gz")
"""Results shipped in the wheel."""


@dataclass(frozen=True)
class StoredRun:
    """Result of a run, or the reason why there is none."""

    summary: dict[str, Any] | None
    sha256: str = ""
    """The recording's hash."""
    failure: str = ""


class RunStore:
    """Finished runs of one build of the engine. A damaged entry counts as absent."""

    def __init__(self, build: str) -> None:
        self.build = build
        self.folder = cache() / "passport"

    def _file(self, simulated: str) -> Path:
        key = hashlib.sha256(f"{self.build} {simulated}".encode()).hexdigest()
        return self.folder / key[:2] / f"{key}.json"

    def find(self, simulated: str) -> StoredRun | None:
        """Returns the result of the run with this hash of engine and scenario; None if absent or damaged."""
        return self._cached(simulated) or _shipped(self.build).get(simulated)

    def _cached(self, simulated: str) -> StoredRun | None:
        file = self._file(simulated)
        if not file.exists():
            return None
        try:
            entry = read_json(file)
            expect(entry, {"sha256": TEXT, "summary": SUMMARY, "check": TEXT}, str(file))
        except BadInputError:
            return None
        result = StoredRun(entry["summary"], entry["sha256"])
        return result if entry["check"] == _check(file.stem, result) else None

    def keep(self, simulated: str, result: StoredRun) -> None:
        """Stores the result of a run; does nothing if the cache cannot be written."""
        file = self._file(simulated)
        entry = {"sha256": result.sha256, "summary": result.summary, "check": _check(file.stem, result)}
        with contextlib.suppress(NotWrittenError):
            make_folder(file.parent)
            write_text(
                file, json.dumps(entry, allow_nan=False) + "\n", synced=False
            )  # the check finds damage


@once
def _shipped(build: str) -> Mapping[str, StoredRun]:
    """The shipped runs, if they are of this build and of the core's sources; else none."""
    if not SHIPPED.is_file():
        return {}
    try:
        archive = json.loads(gzip.decompress(untrusted.content(SHIPPED)))
        expect(archive, {"build": TEXT, "sources": TEXT, "runs": _RUNS}, str(SHIPPED))
    except (BadInputError, OSError, ValueError, EOFError):
        return {}
    if (archive["build"], archive["sources"]) != (build, core_build.built_of()):
        return {}
    return {key: StoredRun(run["summary"], run["sha256"]) for key, run in archive["runs"].items()}


_RUNS = Plain("an object", lambda value: isinstance(value, dict))


def _check(key: str, result: StoredRun) -> str:
    """Return a hash of an entry and of its key, so that an entry in another's place counts as damaged."""
    text = json.dumps([key, result.sha256, result.summary], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
