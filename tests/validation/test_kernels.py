"""Kernels compared with one another, from recordings that are there."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragstrip.cli import app
from dragstrip.engines.kernels import kernel
from dragstrip.errors import BadInputError
from dragstrip.studies.validation import grid, kernels
from dragstrip.studies.validation.kernel import KernelRun, load, packed
from dragstrip.studies.validation.translate import scenario

GRID, SOURCE = grid.read(None)
OWN = "6.1.0-56-amd64"
CELL, OTHER_CELL = "w-10m-5ms-4bdp-20s-cubic", "w-10m-40ms-4bdp-red-20s-reno"


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kernel that sends a tenth less in one of two cells; its recordings are in the cache."""
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path))
    name = "9.9-amd64"
    known = [kernel.Kernel(name, tmp_path, f"linux-image-{name}")]
    monkeypatch.setattr(kernel, "kernels", lambda: known)
    folder = tmp_path / "grid" / name
    folder.mkdir(parents=True)
    recordings = SOURCE.parent / GRID.recordings
    for file in [recordings / f"{CELL}.json.xz", *recordings.glob(f"{OTHER_CELL}*.json.xz")]:
        content = copy.deepcopy(load(file).content)
        if file.name.startswith(CELL):
            content["flows"][0]["rx_bytes"] = round(content["flows"][0]["rx_bytes"] * 0.9)
        (folder / file.name).write_bytes(packed(KernelRun(file.name, content)))
    return name


def test_what_differs_is_told_and_what_does_not_is_counted(other: str, tmp_path: Path) -> None:
    said: list[str] = []
    two = GRID.model_copy(update={"between_kernels": [CELL, OTHER_CELL]})
    found = kernels.compare_kernels(two, SOURCE, OWN, [other], None, 1, said.append)
    by_name = {cell.name: cell for cell in found.comparisons[other]}
    assert list(by_name) == [CELL, OTHER_CELL]
    assert not said, "everything was recorded"
    (only,) = by_name[CELL].beyond
    assert (only.quantity, round(only.error, 3)) == ("goodput", 10.0)
    assert not by_name[OTHER_CELL].beyond
    assert len(by_name[OTHER_CELL].figures) > 5
    told = list(kernels.lines(found))
    assert told[0] == f"linux-6 against {OWN}: 2 cells"
    assert any(line.startswith(f"{OWN} -> {other}: 1 of ") for line in told)
    (line,) = [line for line in told if line.startswith(f"  {CELL}: ")]
    assert line.startswith(f"  {CELL}: goodput ")
    named, *entries = told[told.index(line) + 1 :]
    assert named.startswith("commits named by their figures: ")
    assert len(entries) == len(found.commits) > 5
    kernels.page(found, tmp_path / "kernels.md")
    page = (tmp_path / "kernels.md").read_text()
    assert f"| {CELL} | goodput " in page
    assert OTHER_CELL not in page.split(f"## {OWN} to {other}")[1].split("## ")[0]
    assert f"`linux-6` from {OWN}" in page
    against = kernels.document(found)["against"][other]
    assert {"quantity": "goodput", "within": len(by_name) - 1, "cells": len(by_name)} in against["standings"]
    assert kernels.document(found)["simulator"][OWN]["profile"] == "linux-6"


def test_a_recording_is_simulated_on_the_profile_nearest_to_its_kernel() -> None:
    run = load(SOURCE.parent / GRID.recordings / f"{CELL}.json.xz")
    for package, profile in [
        ("linux-image-6.1.0-56-amd64", "linux-6"),
        ("linux-image-6.12.117+deb13-amd64", "linux-6.12"),
        ("linux-image-7.3.4+deb13-amd64", "linux-7"),
    ]:
        content = {**run.content, "run": {**run.content["run"], "kernel": package}}
        hosts = [node for node in scenario(KernelRun(CELL, content))["nodes"] if node["kind"] == "host"]
        assert {host["profile"] for host in hosts} == {profile}


def test_the_cells_are_open_ones_of_the_grid() -> None:
    from dragstrip.studies.validation.cells import held_out

    assert len(GRID.between_kernels) > 100
    assert not any(map(held_out, GRID.between_kernels))
    with pytest.raises(ValueError, match="between_kernels has w-nothing: expected a case of cells"):
        grid.Grid.model_validate({**GRID.model_dump(), "between_kernels": ["w-nothing"]})


def test_a_kernel_that_is_not_there_is_refused_before_anything_is_recorded(other: str) -> None:
    for first, against, option in ((OWN, "9.8-amd64", "--against-kernel"), ("9.8-amd64", other, "--kernel")):
        with pytest.raises(
            BadInputError, match=rf"{option}: got '9.8-amd64', expected one of {OWN}, .*, {other}"
        ):
            kernels.compare_kernels(GRID, SOURCE, first, [against], CELL, 1, print)
    with pytest.raises(BadInputError, match="--only: got 'zzz'"):
        kernels.compare_kernels(GRID, SOURCE, OWN, [other], "zzz", 1, print)


@pytest.mark.parametrize(
    ("beginnings", "names"),
    [
        (["6.1", "6.12"], [OWN, "6.12.117+deb13-amd64"]),
        (["7", "6.1.0"], ["7.3.4+deb13-amd64", OWN]),
        (["9.9-amd64", "6.1"], ["9.9-amd64", OWN]),
    ],
)
def test_a_release_is_a_kernel_that_was_recorded(other: str, beginnings: list[str], names: list[str]) -> None:
    assert kernels.releases(SOURCE, beginnings) == names


def test_a_release_that_is_not_there_or_twice_is_refused(other: str) -> None:
    with pytest.raises(
        BadInputError, match=rf"KERNEL: got '6', expected the beginning of one kernel, not of {OWN} and"
    ):
        kernels.releases(SOURCE, ["7", "6"])
    with pytest.raises(
        BadInputError, match=r"KERNEL: got '6\.11', expected the beginning of one of 6\.1\.0-56"
    ):
        kernels.releases(SOURCE, ["6.1", "6.11"])
    # 6.1.0-5 begins the name too, but within a number.
    with pytest.raises(BadInputError, match=r"got '6\.1\.0-5', .*, not cut within a number, or another"):
        kernels.releases(SOURCE, ["6.1.0-5"])
    with pytest.raises(BadInputError, match=r"expected another kernel than 6\.1\.0-56-amd64, named before"):
        kernels.releases(SOURCE, ["6.1", OWN])


def test_kernels_side_by_side_on_the_command_line() -> None:
    words = ["kernel", "compare", "6.1", "6.12", "7.3", "--only", "*nosack*", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert list(document["against"]) == ["6.12.117+deb13-amd64", "7.3.4+deb13-amd64"]
    (bbr,) = (cell for cell in document["against"]["6.12.117+deb13-amd64"]["cells"] if "bbr" in cell["name"])
    goodput = bbr["figures"]["goodput"]
    assert not goodput["within"]
    assert goodput["first"] > 3 * goodput["other"], "BBR without SACK, since RFC 6675's marking changed"
    assert not document["simulator"]
