"""The playground's file: the page that `make play` builds, with a race in it, and a local server for it.

Belongs here: filling the built page, writing it and serving it. Does not belong here: the page itself, which
is in playground/, and running a race, which the page does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragstrip.errors import BadInputError, DragstripError
from dragstrip.experiment.saved_paths import CARRIERS, DEFAULT_PATH
from dragstrip.io.files import is_stream, write_text
from dragstrip.io.untrusted import content as content_of
from dragstrip.io.untrusted import text

if TYPE_CHECKING:
    from dragstrip.studies.execution.runner import Plan

PAGE = Path(__file__).with_name("page.html")
EMPTY = '<script type="application/json" id="dragstrip-race">null</script>'
"""Occurs in the page once; a race replaces `null`. Data need no hash in the page's content security
policy."""
PAGE_MAX = 16 << 20
RACE_MAX = 8 << 20
"""Bytes of a race in a page, at most."""

Race = Mapping[str, Any]


def of_form(form: Mapping[str, Any]) -> Race:
    """Return a race described by `compare`'s options, each of which the page can change."""
    return {"kind": "form", "form": form}


def with_path(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a race's options, on the page's own path if they say nothing of one."""
    is_described = any(name in options for name in (*CARRIERS, "rtt"))
    return dict(options) if is_described else {**DEFAULT_PATH, **options}


def of_race(algorithms: Sequence[str], options: Mapping[str, Any], planned: Plan) -> Race:
    """Return a race of algorithms, planned from these options; with a recorded link its runs are fixed."""
    described = planned.experiment
    if "trace" in options or "up_trace" in options:
        return of_runs(described.title, [(run.name, run.text, None) for run in planned.runs])
    seeds = {"duration": described.duration, "seed": described.seed}
    return of_form({"algorithms": list(algorithms), **seeds, **options})


def of_runs(title: str, runs: Sequence[tuple[str, str, str | None]]) -> Race:
    """Return a race of fixed runs: each a name, a scenario as JSON, and the recording's SHA-256 or None."""
    listed = [{"name": name, "scenario": scenario, "sha256": sha256} for name, scenario, sha256 in runs]
    return {"kind": "runs", "title": title, "runs": listed}


def page(race: Race | None, version: str) -> str:
    """Return the whole page with this race in it, or with the page's own example for None.

    Raises `DragstripError` if the page is not built, and `BadInputError` if the race is too large.
    """
    if not PAGE.exists():
        raise DragstripError("the playground's page is not built: make play (docs/how-to/play.md)")
    built_page = text(PAGE, PAGE_MAX, "the playground's page")
    if built_page.count(EMPTY) != 1:
        raise DragstripError(f"{PAGE}: is of another version: make play (docs/how-to/play.md)")
    if race is None:
        return built_page
    race_text = json.dumps({"version": version, **race}, ensure_ascii=True).replace("<", "\\u003c")
    if len(race_text) > RACE_MAX:
        size = f"{len(race_text) / 1e6:.1f} MB of scenarios"
        raise BadInputError("", size, f"at most {RACE_MAX >> 20} MiB in a page", "command line")
    return built_page.replace(EMPTY, EMPTY.replace("null", race_text))


def write(file: Path, content: str) -> None:
    """Write the page to `file`.

    Raises `BadInputError` if the file exists and is not a page of the playground, and `DragstripError` if it
    cannot be written.
    """
    if file.exists() and not is_stream(file) and not _is_ours(file):
        raise BadInputError("--out", file, "a new file, or an earlier page of the playground", "command line")
    try:
        write_text(file, content)
    except OSError as error:
        raise DragstripError(f"{file}: {error.strerror}") from None


def _is_ours(file: Path) -> bool:
    return file.is_file() and b'id="dragstrip-' in content_of(file, PAGE_MAX, "a page of the playground")
