"""Make the runs of CUBIC and Reno that a wheel ships: a passport of another algorithm begins with them.

    python -m dragstrip.studies.passport.baselines FILE

makes what the cache does not have. `make wheel` does so (`.ci/shipped`); a checkout has no such file.
`dragstrip.studies.passport.store` reads it.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragstrip.io.files import write_whole
from dragstrip.model.recording import core_build
from dragstrip.studies.passport import runs, suite
from dragstrip.studies.passport.rows import BASELINES, SIMULATOR, PassportRow, Subject


def baseline_runs(rows: list[PassportRow], workers: int | None = None) -> dict[str, Any]:
    """The runs of both baselines in these rows, by scenario, with their build and sources."""
    subjects = [Subject(name) for name in BASELINES]
    results = runs.make(rows, subjects, workers, quiet=False).results
    ended = {key: result for key, result in sorted(results.items()) if result.summary is not None}
    return {
        "build": SIMULATOR.build,
        "sources": core_build.built_of(),
        "runs": {key: {"sha256": result.sha256, "summary": result.summary} for key, result in ended.items()},
    }


def write(file: Path, document: Mapping[str, Any]) -> None:
    """Writes the runs to a file; the same runs give the same bytes. Raises `NotWrittenError`."""
    text = json.dumps(document, allow_nan=False, sort_keys=True, separators=(",", ":"))
    write_whole(file, lambda draft: draft.write_bytes(gzip.compress(text.encode(), mtime=0)))


if __name__ == "__main__":
    write(Path(sys.argv[1]), baseline_runs(suite.rows(BASELINES[0], suite.NAMES, quick=False)))
