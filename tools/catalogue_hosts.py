"""The catalogue's claims on kernels in real time, for the page's columns.

`python -m tools.catalogue_hosts OUT docs/reference/catalogue-hosts.json` gathers them from the
output folders of `dragstrip run NAME --engine netns` and `--engine ssh` below OUT. No command makes these
runs together: they take hours, and what they show depends on the machine. `make catalogue` shows them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from dragstrip.io import untrusted
from dragstrip.io.files import write_json
from dragstrip.model.recording import read
from dragstrip.results.claims import LIMITED
from dragstrip.studies.publications.document import Json

ENGINES = ("netns", "ssh")
FILE = "catalogue-hosts.json"
"""File beside the catalogue's page."""
RESULT_MAX = 64 << 20


def host_claims(page: Path) -> Json:
    """Return the claims beside the catalogue's page, by experiment and engine; nothing without a file."""
    file = page.with_name(FILE)
    if not file.is_file():
        return {}
    claims: Json = json.loads(untrusted.text(file, RESULT_MAX, "the claims on hosts"))
    return claims


def gathered(folder: Path) -> Json:
    """Return the claims of all runs in real time below a folder, by experiment and engine."""
    claims: Json = {}
    for file in sorted(folder.rglob("result.json")):
        result = json.loads(untrusted.text(file, RESULT_MAX, "a result"))
        engine = result["runs"][0]["engine"] if result["runs"] else None
        if engine in ENGINES:
            claims.setdefault(result["experiment"], {})[engine] = _claims(result, file.parent)
    return dict(sorted(claims.items()))


def _claims(result: Json, folder: Path) -> Json:
    runs = [read(folder / run["recording"]) for run in result["runs"]]
    about = [run.provenance["verified"] for run in runs]
    idle = sorted(verification["cpu_idle_share"] for verification in about)
    claims = {
        line["id"]: {key: line[key] for key in ("measured", "grade", "agrees", "reason") if key in line}
        for line in result["claims"]
    }
    return {
        "kernel": ", ".join(sorted({run.provenance["kernel"]["release"] for run in runs})),
        "duration_s": sorted({run.scenario["duration_ns"] / 1e9 for run in runs}),
        "runs": len(runs),
        "failed": [line["reason"] for line in result["failed"]],
        "idle_shares": [round(idle[0], 3), round(idle[-1], 3)],
        "limited_runs": sum(bool(verification["limits"]) for verification in about),
        "claims": claims,
    }


def cell(engine_claims: Json, claim: str, figure: str) -> str:
    """Return a claim's cell in an engine's column; `figure` is its text."""
    line = engine_claims["claims"].get(claim)
    if line is None:
        return "–"
    return f"{figure} {line['grade']}{', agrees' * line.get('agrees', False)}"


def sentence(engine: str, engine_claims: Json) -> str:
    """Return how an engine's figures came about."""
    lengths = " and ".join(f"{seconds:g} s" for seconds in engine_claims["duration_s"])
    runs = f"{engine_claims['runs']} run{'s' * (engine_claims['runs'] != 1)} of {lengths}"
    idle = " to ".join(dict.fromkeys(f"{share * 100:.0f} %" for share in engine_claims["idle_shares"]))
    words = f"{engine}: {runs} on Linux {engine_claims['kernel']}, processors idle for {idle} of the time"
    words += f"; the machine limited {engine_claims['limited_runs']}" if engine_claims["limited_runs"] else ""
    limited = [line for line in engine_claims["claims"].values() if line["grade"] == LIMITED]
    reasons = [line["reason"].partition(": ")[2] for line in limited]
    if reasons:
        agree = sum(line["agrees"] for line in limited)
        words += f" ({reasons[0]}{', and the like' * (len(set(reasons)) > 1)})"
        words += f"; {agree} of {len(limited)} limited figures agree with the publication"
    failed = dict.fromkeys(engine_claims["failed"])
    return words + (f"; failed: {'; '.join(failed)}" if failed else "") + "."


def main(words: list[Any]) -> None:
    """Gathers the results below the folder of the first word into the file of the second."""
    folder, file = map(Path, words)
    write_json(file, gathered(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
