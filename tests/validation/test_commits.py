"""Commits of the kernel are named by figures alone, and what no figure shows is said so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from dragstrip.errors import BadInputError
from dragstrip.studies.validation import commits, grid, kernels
from dragstrip.studies.validation.commits import CommitAnswer, KernelCommit
from dragstrip.studies.validation.figures import FigurePair
from dragstrip.studies.validation.kernel import KernelRun

DOCS = Path(__file__).parents[2] / "docs"
KERNELS = ["6.12.9-b", "6.1.0-a", "7.3.4-c"]
CELL = "w-10m-5ms-4bdp-20s-cubic"


def commit(direction: str = "less", release: str = "6.10", cell: str = CELL) -> KernelCommit:
    return KernelCommit.model_validate(
        {
            "commit": "0123456789ab",
            "release": release,
            "change": "a change",
            "cell": cell,
            "quantity": "goodput" if cell else "",
            "direction": direction,
            "reason": "a reason",
        }
    )


def answer(asked: KernelCommit, goodputs: dict[str, float], lacking: str = "") -> CommitAnswer:
    """The answer where the kernels have these goodputs, and a difference of 3 % counts."""

    def runs(kernel: str, cell: str) -> list[KernelRun]:
        return [] if kernel == lacking else [KernelRun(cell, {"goodput": goodputs[kernel]})]

    def figures(cell: str, before: Sequence[KernelRun], after: Sequence[KernelRun]) -> list[FigurePair]:
        assert cell == CELL
        old, new = before[0].content["goodput"], after[0].content["goodput"]
        return [FigurePair("goodput", old, new, abs(new / old - 1) * 100, 3.0)]

    (only,) = commits.answers([asked], KERNELS, runs, figures)
    return only


def test_a_commit_came_where_its_figure_moves_whatever_the_order_of_the_kernels() -> None:
    fell = answer(commit(), {"6.1.0-a": 100, "6.12.9-b": 90, "7.3.4-c": 91})
    assert fell.between == ("6.1.0-a", "6.12.9-b")
    assert fell.is_right
    assert not answer(commit(release="6.17"), {"6.1.0-a": 100, "6.12.9-b": 90, "7.3.4-c": 91}).is_right


@pytest.mark.parametrize(
    ("goodputs", "direction", "verdict"),
    [
        ((100, 99, 98), "less", "not seen"),
        ((100, 90, 90), "more", "not seen"),
        ((100, 90, 80), "less", "moves more than once"),
    ],
)
def test_what_does_not_move_once_is_not_named(
    goodputs: tuple[float, float, float], direction: str, verdict: str
) -> None:
    kept = answer(commit(direction), dict(zip(("6.1.0-a", "6.12.9-b", "7.3.4-c"), goodputs, strict=True)))
    assert kept.between is None
    assert not kept.is_right
    assert list(commits.lines([kept]))[1].endswith(verdict)


def test_what_is_not_recorded_or_has_no_cell_is_said() -> None:
    goodputs = {"6.1.0-a": 100.0, "6.12.9-b": 90.0, "7.3.4-c": 91.0}
    lacking, nowhere = answer(commit(), goodputs, lacking="7.3.4-c"), answer(commit(cell=""), goodputs)
    told = list(commits.lines([lacking, nowhere]))
    assert told[0] == "commits named by their figures: 0 of 2"
    assert [line.rpartition(": ")[2] for line in told[1:]] == ["not recorded", "not seen"]
    assert commits.document([nowhere])[0]["between"] is None


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [("cell", "w-nowhere", "the name of a cell"), ("quantity", "speed", "one of goodput")],
)
def test_a_list_with_a_wrong_cell_or_figure_is_refused(
    tmp_path: Path, field: str, value: str, expected: str
) -> None:
    fields = {**commit().model_dump(), field: value}
    lines = [f'{name} = "{text}"' for name, text in fields.items()]
    file = tmp_path / commits.FILE
    file.write_text("\n".join(["[[commits]]", *lines]))
    with pytest.raises(BadInputError, match=expected):
        commits.read(file)
    assert commits.read(tmp_path / "nothing.toml") == []


def test_the_page_has_the_answers_of_the_stored_recordings() -> None:
    layout, source = grid.read(None)
    names = kernels.releases(source, ["6.1", "6.12", "7.3"])
    listed = commits.read(source.parent.parent / commits.FILE)
    cells = [cell for cell in layout.between_kernels if cell in {entry.cell for entry in listed}]
    few = layout.model_copy(update={"between_kernels": cells})
    result = kernels.compare_kernels(
        few, source, names[0], names[1:], None, 1, lambda _: None, with_simulator=False
    )
    page = (DOCS / "reference/kernels.md").read_text()
    assert "\n".join(commits.section(result.commits)) in page
    assert all(entry.is_right for entry in result.commits if entry.between is not None)
    assert [entry.commit for entry in result.commits] == listed
