"""The client gets its report on every path that our users have."""

import sys
from pathlib import Path

import pytest

PYTHON = str(Path(sys.base_prefix, "bin", "python3"))
"""The interpreter itself: a virtual environment would take its packages into the guest."""
PATHS = {"engine": "vm", "server": f"{PYTHON} server.py", "files": ["server.py", "client.py"]}


@pytest.mark.path("LTE", "transatlantic", **PATHS)
@pytest.mark.path(rate="1mbit", rtt="80ms", **PATHS)
def test_the_whole_report_arrives(path_shell):
    run = path_shell.run(PYTHON, "client.py", "http://server:8000/report")
    assert run.status == 0, run.stderr
    assert run.stdout == "260000\n"
