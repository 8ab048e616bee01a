"""The files that an experiment names: recorded links, traces of values, programs.

The core reads no files. `located` makes their paths absolute, so that an experiment means the same wherever
it is run from; `read_in` puts what they hold where the core looks for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment import programs, traces
from dragstrip.io import untrusted

Json: TypeAlias = dict[str, Any]


def located(content: Mapping[str, Any], folder: Path) -> Json:
    """Content whose traces have absolute paths and whose programs are texts; the files are read and checked.

    A relative path starts at `folder`. What is of a wrong kind is left for the core to refuse. Raises
    `BadInputError`, which names the field, the file and its line.
    """
    result = dict(content)
    if isinstance(media := content.get("media"), dict):
        result["media"] = {name: _medium(name, medium, folder) for name, medium in media.items()}
    if isinstance(changes := content.get("changes"), list):
        result["changes"] = [_change(at, change, folder) for at, change in enumerate(changes)]
    if isinstance(flows := content.get("flows"), list):
        result["flows"] = [_flow(at, flow, folder) for at, flow in enumerate(flows)]
    table = content.get("programs")
    if isinstance(table, dict) and all(isinstance(program, str) for program in table.values()):
        result["programs"] = programs.of_table(table, folder)
    return result


def _medium(name: str, medium: Any, folder: Path) -> Any:
    if not (
        isinstance(medium, dict) and medium.get("kind") == "trace" and isinstance(medium.get("file"), str)
    ):
        return medium
    return {**medium, "file": traces.located(medium["file"], folder, f"media.{name}.file")}


def _flow(at: int, flow: Any, folder: Path) -> Any:
    """A flow whose sizes are the text of their file, if its name has an ending; a program has a folder."""
    application = flow.get("application") if isinstance(flow, dict) else None
    if isinstance(application, dict) and application.get("kind") == "program":
        inner = application.get("folder", "")
        place = str((folder / inner).resolve()) if isinstance(inner, str) else inner
        flow = {**flow, "application": {**application, "folder": place}}
    sizes = flow.get("sizes") if isinstance(flow, dict) else None
    if not (isinstance(sizes, str) and "\n" not in sizes and re.search(r"\.[A-Za-z]\w*$", sizes)):
        return flow
    field = f"flows[{at}].sizes"
    try:
        text = untrusted.text(folder / sizes, SIZES_MAX, "a distribution of sizes")
    except BadInputError as error:
        raise BadInputError(field, sizes, f"a file of sizes: {error}") from None
    try:
        _core.check_sizes(text)
    except _core.InputError as error:
        _, value, expected = error.args
        raise BadInputError(field, Raw(f"{Path(sizes).name}, {value}"), expected) from None
    return {**flow, "sizes": text}


SIZES_MAX = 1 << 20
"""Bytes of a file of sizes, at most."""


def _change(at: int, change: Any, folder: Path) -> Any:
    if not (isinstance(change, dict) and isinstance(change.get("file"), str)):
        return change
    return {**change, "file": traces.located_changes(change["file"], folder, f"changes[{at}].file")}


def read_in(content: Mapping[str, Any]) -> Json:
    """Located content with what its files hold: recorded links have their times, a file of changes its rows.

    Rows behind the end of the run are left out. Raises `BadInputError`.
    """
    result = dict(content)
    if any(medium.get("kind") == "trace" for medium in content.get("media", {}).values()):
        result["media"] = {
            name: {**medium, "opportunities_ms": traces.opportunities_ms(medium["file"])}
            if medium.get("kind") == "trace"
            else medium
            for name, medium in content["media"].items()
        }
    if any("file" in change for change in content.get("changes", [])):
        entries: list[Json] = []
        for at, change in enumerate(content["changes"]):
            entries += _rows(change, f"changes[{at}]", content["duration"]) if "file" in change else [change]
        result["changes"] = entries
    return result


def _rows(change: Mapping[str, Any], field: str, duration: str) -> list[Json]:
    """The changes in a file, whose times begin at the entry's `at`."""
    first = _core.parse_time(change.get("at", "0s"))
    end = _core.parse_time(duration)
    link = {key: change[key] for key in ("link",) if key in change}
    rows = []
    for number, row in traces.changes(change["file"], f"{field}.file"):
        try:
            at = first + _core.change_at({**link, **row})
        except _core.InputError as error:
            inner, value, expected = error.args
            row_text = f"{Path(change['file']).name}, line {number}: {value}"
            raise BadInputError(f"{field}.{inner}", Raw(row_text), expected) from None
        if at < end:
            rows.append({**link, **row, "at": f"{at}ns"})
    return rows
