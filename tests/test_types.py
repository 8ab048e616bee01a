"""The types that a user's own project sees: every public function with its arguments and what it returns, under `mypy --strict`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dragstrip

USER = """
from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa

import dragstrip
from dragstrip import testing


def race(out: Path) -> dragstrip.Result:
    rtt = timedelta(milliseconds=40)
    made = dragstrip.race("cubic", "bbr", rate_bps=10e6, rtt=rtt, queue="fq_codel", duration="5s", out=out)
    text: str = made.summary()
    median: float | None = made["bbr"].rtt_ms_p50
    table: pa.Table = made.table("samples")
    made.plot("plane").save("plane.svg")
    print(text, median, table.num_rows, [flow.label for flow in made.flows])
    testing.assert_share(made, "bbr", at_least=0.1)
    return dragstrip.Result.read(out)


def own(text: str, saved: Path) -> dragstrip.Result:
    return dragstrip.race(dragstrip.program("mine", text), "cubic", path=saved)


def beside(text: str, file: Path) -> dragstrip.Result:
    mine = dragstrip.program("mine", text)
    dragstrip.race("mine+0.3s", programs=mine, path="cable")
    dragstrip.race("mine", programs={"mine": text}, path="cable")
    return dragstrip.race("mine@80ms", "first", path="cable", programs=[mine, file, "first.cc"])


def described() -> dragstrip.Experiment:
    experiment = dragstrip.compare(["cubic", "bbr"], rate="10mbit", rtt="40ms", queue="fq_codel")
    repeated: dragstrip.Experiment = experiment.changed(repeat=3)
    first: dragstrip.Flow = repeated.flows[0]
    print(first.cc, repeated.path)
    return repeated


def wrong() -> str:
    try:
        dragstrip.race("rneo", path="cable")
    except dragstrip.BadInputError as error:
        return error.field + error.value + error.expected
    return ""
"""


def checked(folder: Path, text: str) -> str:
    """What mypy prints about a file in a folder with no settings of its own."""
    (folder / "uses.py").write_text(text)
    words = ["--strict", "--config-file", "", "--python-executable", sys.executable, "uses.py"]
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    return ended.stdout + ended.stderr


def test_a_users_project_is_typed(tmp_path: Path) -> None:
    verbs = "\n".join(f"print(dragstrip.{name})" for name in dragstrip.__all__)
    assert checked(tmp_path, USER + verbs) == "Success: no issues found in 1 source file\n"


def test_a_wrong_argument_is_an_error(tmp_path: Path) -> None:
    printed = checked(
        tmp_path, USER + 'dragstrip.race("cubic", rtt=40)\ndragstrip.race("cubic", rat="1mbit")\n'
    )
    assert 'Argument "rtt" to "race" has incompatible type "int"' in printed
    assert 'Unexpected keyword argument "rat" for "race"' in printed
