"""A first race loads what it needs (docs/explanation/performance.md, Latency of a command): counted in modules, not in seconds."""

from __future__ import annotations

import json
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragstrip.experiment import race
from dragstrip.experiment.comparison import compare
from dragstrip.report import load
from dragstrip.studies.execution.runner import execute, plan, write_report

RACE = [
    "compare",
    "--rate",
    "10mbit",
    "--rtt",
    "40ms",
    "--queue",
    "bfifo limit 200kb",
    "--duration",
    "1s",
    "reno",
    "cubic",
]
PROGRAM = """
import json, sys
from dragstrip.cli import main
try:
    main()
except SystemExit as ended:
    print(json.dumps([ended.code, sorted(sys.modules)]), file=sys.stderr)
"""


def loaded(program: str, folder: Path, words: list[str]) -> tuple[int, set[str]]:
    ended = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    status, modules = json.loads(ended.stderr.splitlines()[-1])
    return status, set(modules)


def test_a_race_loads_no_other_command_and_no_foreign_validator(tmp_path: Path) -> None:
    status, modules = loaded(PROGRAM, tmp_path, [*RACE, "--out", "new"])
    assert status == 0
    assert (tmp_path / "new" / "report.html").exists()
    unneeded = (
        "pydantic",
        "numpy.ma",
        "urllib.request",
        "altair",
        "vl_convert",
        "pandas",
        "polars",
        "duckdb",
        "distributed",
    )
    assert not modules.intersection(unneeded)
    commands = {file.stem for file in (Path(__file__).parents[1] / "python/dragstrip/cli").glob("*.py")}
    other = {
        "attack",
        "catalogue",
        "diagnose",
        "inspect",
        "judge",
        "kernel",
        "lab",
        "passport",
        "play",
        "sweep",
        "validate",
        "whatif",
    }
    assert other <= commands
    assert not modules.intersection(f"dragstrip.cli.{name}" for name in other)


def test_a_report_of_recordings_in_memory_reads_no_table_and_is_that_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a table was read back")

    planned = plan(compare(["reno", "vegas"], rate="10mbit", rtt="20ms", queue="1bdp", duration="2s"))
    with monkeypatch.context() as patched:
        patched.setattr(load, "read_table", refuse)
        execute(planned, tmp_path / "out")
    report = tmp_path / "out" / "report.html"
    first = report.read_text()
    write_report(tmp_path / "out")
    assert report.read_text() == first


def test_the_package_alone_loads_neither_numpy_nor_arrow(tmp_path: Path) -> None:
    program = "import json, sys, dragstrip; print(json.dumps([0, sorted(sys.modules)]), file=sys.stderr)"
    _, modules = loaded(program, tmp_path, [])
    assert "dragstrip._core" in modules
    assert not modules.intersection(("numpy", "pyarrow", "typer", "rich", "jinja2", "pydantic"))


def test_help_lists_every_function_and_nothing_private(tmp_path: Path) -> None:
    program = "import json, sys, dragstrip; dir(dragstrip); print(json.dumps([0, sorted(sys.modules)]), file=sys.stderr)"
    _, modules = loaded(program, tmp_path, [])
    assert not [name for name in modules if name in ("dragstrip.verbs", "dragstrip.interop.race")], (
        "dir is lazy"
    )
    import dragstrip

    text = pydoc.render_doc(dragstrip, renderer=pydoc.plaintext)
    functions = [name for name in dragstrip.__all__ if name.islower() and not name.startswith("_")]
    assert re.findall(r"^    (\w+)\(", text.split("\nFUNCTIONS\n")[1], re.MULTILINE) == sorted(functions)
    overview = (dragstrip.__doc__ or "").split("Races and experiments:")[1]
    assert {name for name in functions if not re.search(rf"\b{name}\b", overview)} == set()


def test_help_on_a_race_has_its_options() -> None:
    import dragstrip

    for function in (dragstrip.race, dragstrip.compare):
        text = function.__doc__ or ""
        assert re.findall(r"^    (\w+)\n", text, re.MULTILINE) == [option.name for option in race.OPTIONS]
        assert "    duration\n        Duration of each run, such as 30s. Default: 30s.\n" in text
        assert "with both_ways, the forward rate" in text, "arguments, not options of the command line"
        assert "rtt_ms" in text
