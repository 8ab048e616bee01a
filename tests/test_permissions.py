"""Experiments of somebody else: whoever runs one decides on its engine and on what goes into a kernel."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from dragstrip.errors import BadInputError, Note
from dragstrip.experiment import catalogue

TEXT = """\
engine = "netns"
load = ["theirs.bpf.c"]
duration = "1s"
path = {rate = "1mbit", rtt = "10ms"}
flows = [{cc = "reno"}]
"""


@pytest.fixture
def theirs(tmp_path: Path) -> str:
    """Their file names an engine and a BPF file, which is not there: whatever compiled it would fail."""
    file = tmp_path / "theirs.toml"
    file.write_text(TEXT)
    return str(file)


def test_it_runs_on_the_simulator_unless_its_user_says_otherwise(theirs: str) -> None:
    with pytest.warns(Note, match=r"asks for engine netns; it runs on the simulator without --engine netns"):
        experiment, _ = catalogue.load(theirs)
    assert (experiment.engines, list(experiment.load), experiment.engine_options) == (("sim",), [], {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert catalogue.load(theirs, "sim")[0].engines == ("sim",)


def test_its_program_goes_into_a_running_kernel_only_by_the_command_line(theirs: str) -> None:
    with pytest.raises(BadInputError, match=r"load: got .*expected --load FILE on the command line"):
        catalogue.load(theirs, "netns")


def test_an_engine_that_there_is_not_is_refused_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(TEXT.replace('"netns"', '"ns3"'))
    with pytest.raises(BadInputError, match="engine: got 'ns3'"):
        catalogue.load(str(file))
