"""Tables at 80 columns: in a pipe and where COLUMNS says so, no figure is cut or broken and no line is wider."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
from rich import box
from rich.table import Table

from dragstrip.display.terminal import Terminal, hanging

RACE = "compare cubic vegas bbr --rate 10mbit --rtt 40ms --duration 1s"
MADE = {
    "race": f"{RACE} --repeat 2 --out race --no-report",
    "shared": f"{RACE} bbr*2 --together --out shared --no-report --capture",
    "sweep": "sweep e.toml --vary path.rtt=20ms,40ms --vary flow.cc=cubic,vegas,bbr --repeat 2 --competitor cubic --out swept",
}
READ = (
    "list",
    "list --algorithms",
    "list --queues",
    "list --measures",
    "list --paths",
    "list --media",
    "list --workloads",
    "show caia-110729a/adsl1",
    "inspect shared/runs/000-cubic+vegas+bbr+bbr-2/captures/s1.pcapng",
    "inspect shared/runs/000-cubic+vegas+bbr+bbr-2/captures/d.pcapng",
    "validate --only w-10m-40ms-0.5bdp",
    "conform",
)
EXPERIMENT = """\
name = "tables"
duration = "1s"
path = { rate = "10mbit", rtt = "40ms" }
flows = [{ cc = "cubic" }]
"""


def run(line: str, folder: Path, columns: str | None) -> str:
    """Return what a command prints into a pipe."""
    usual = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    ended = subprocess.run(
        [sys.executable, "-m", "dragstrip", *line.split()],
        cwd=folder,
        env=usual | ({} if columns is None else {"COLUMNS": columns}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode in (0, 1), ended.stderr
    return ended.stdout


def check(said: str) -> None:
    assert said.count("\n") > 3
    assert "…" not in said
    assert [line for line in said.splitlines() if len(line) > 80] == []


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder of results, and what making them printed."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "e.toml").write_text(EXPERIMENT)
    return folder, {name: run(line, folder, "80") for name, line in MADE.items()}


@pytest.mark.parametrize("name", MADE)
def test_what_runs_print_fits(made: tuple[Path, dict[str, str]], name: str) -> None:
    check(made[1][name])


@pytest.mark.parametrize("line", READ)
def test_what_commands_print_fits(made: tuple[Path, dict[str, str]], line: str) -> None:
    """As on a terminal of 80 columns, so in a pipe."""
    folder, _ = made
    said = run(line, folder, None)
    check(said)
    assert run(line, folder, "80") == said


def printed(table: Table, width: int) -> str:
    out = StringIO()
    Terminal(file=out, width=width).print(table)
    return out.getvalue()


def table_of(rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title="figures")
    table.add_column("case")
    for at in range(len(rows[0]) - 2):
        table.add_column(f"figure {at}", justify="right", no_wrap=True)
    table.add_column("what it means")
    for row in rows:
        table.add_row(*row)
    return table


@pytest.mark.parametrize("width", range(40, 200, 7))
def test_every_figure_of_a_wide_table_is_shown(width: int) -> None:
    words = "a text of many words that goes on and on and says nothing"
    rows = [[f"case-{row}", *(f"{row}{at}.125 ms" for at in range(9)), words] for row in range(3)]
    said = printed(table_of(rows), width)
    assert max(map(len, said.splitlines())) <= width
    for row in rows:
        for figure in row[:-1]:
            assert figure in said
    assert said.count("figures") == 1
    # A text wraps, and each of its words is there.
    assert all(len(re.findall(rf"\b{word}\b", said)) >= 3 for word in words.split())


def test_columns_that_do_not_fit_follow_beside_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[f"case-{row}", *(f"{row}{at}.125 ms" for at in range(9)), "word"] for row in range(3)]
    wide, narrow = (printed(table_of(rows), width) for width in (160, 80))
    assert (wide.count("case-2"), narrow.count("case-2")) == (1, 2)


def test_a_long_line_hangs_below_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    said = hanging(f"ok       engine sim: {'ready ' * 12}", 9)
    first, *rest = said.split("\n")
    assert first.startswith("ok       engine sim: ready")
    assert rest
    assert all(line.startswith(" " * 9 + "ready") and len(line) <= 40 for line in rest)
