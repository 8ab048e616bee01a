"""Results of runs, cached by build and scenario: the next passport simulates what is new.

A wheel also has those of CUBIC and Reno (`dragstrip.passport.baselines` makes them).
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
from dragstrip.io.shape import SUMMARY, TEXT, Plain, expect
from dragstrip.recording import core_build

SHIPPED = Path(__file__).with_name("baselines.json.gz")
"""Results shipped in the wheel."""


@dataclass(frozen=True)
class Shown:
    """Result of a run, or the reason why there is none."""

    summary: dict[str, Any] | None
    sha256: str = ""
    """The recording's hash."""
    failure: str = ""


class Store:
    """Finished runs of one build of the engine. An entry that is damaged is made again."""

    def __init__(self, build: str) -> None:
        self.build = build
        self.folder = cache() / "passport"

    def _file(self, simulated: str) -> Path:
        key = hashlib.sha256(f"{self.build} {simulated}".encode()).hexdigest()
        return self.folder / key[:2] / f"{key}.json"

    def find(self, simulated: str) -> Shown | None:
        """Returns the result of the run with this hash of engine and scenario; None if absent or damaged."""
        return self._kept(simulated) or _shipped(self.build).get(simulated)

    def _kept(self, simulated: str) -> Shown | None:
        file = self._file(simulated)
        if not file.exists():
            return None
        try:
            entry = read_json(file)
            expect(entry, {"sha256": TEXT, "summary": SUMMARY, "check": TEXT}, str(file))
        except BadInputError:
            return None
        made = Shown(entry["summary"], entry["sha256"])
        return made if entry["check"] == _check(file.stem, made) else None

    def keep(self, simulated: str, made: Shown) -> None:
        """Keep what a run showed; a cache that cannot be written keeps nothing."""
        file = self._file(simulated)
        entry = {"sha256": made.sha256, "summary": made.summary, "check": _check(file.stem, made)}
        with contextlib.suppress(NotWrittenError):
            make_folder(file.parent)
            write_text(file, json.dumps(entry, allow_nan=False) + "\n")


@once
def _shipped(build: str) -> Mapping[str, Shown]:
    """The shipped runs, if they are of this build and of the core's sources; else none."""
    if not SHIPPED.is_file():
        return {}
    try:
        found = json.loads(gzip.decompress(untrusted.content(SHIPPED)))
        expect(found, {"build": TEXT, "sources": TEXT, "runs": _RUNS}, str(SHIPPED))
    except (BadInputError, OSError, ValueError, EOFError):
        return {}
    if (found["build"], found["sources"]) != (build, core_build.built_of()):
        return {}
    return {key: Shown(one["summary"], one["sha256"]) for key, one in found["runs"].items()}


_RUNS = Plain("an object", lambda it: isinstance(it, dict))


def _check(key: str, made: Shown) -> str:
    """Return a hash of an entry and of its key, so that an entry in another's place counts as damaged."""
    text = json.dumps([key, made.sha256, made.summary], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
