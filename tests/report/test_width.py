"""Pictures as wide as a column of a paper, with text that can be read in print."""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import pytest

from dragstrip.errors import BadInputError
from dragstrip.report.paper import Paper, paper
from dragstrip.report.write import write_report

from . import synthetic
from .test_report import FolderOf

MEDIA_BOX = re.compile(rb"/MediaBox \[0 0 ([\d.]+) [\d.]+\]")
LONG = "bbr, a variant with a name that nobody would print"


@pytest.mark.parametrize(("width", "points"), [("84mm", 238.11), ("7in", 504.0)])
@pytest.mark.parametrize("name", ["together", "five"])
def test_every_picture_is_as_wide_as_the_column(
    folder_of: FolderOf, tmp_path: Path, name: str, width: str, points: float
) -> None:
    folder = tmp_path / "out"
    shutil.copytree(folder_of(name), folder, ignore=shutil.ignore_patterns("figures"))
    write_report(folder, paper(["svg", "pdf", "png"], width))
    pictures = sorted((folder / "figures").glob("*.svg"))
    assert {"path", "rtt", "cdf-rtt", "timeline"} <= {picture.stem for picture in pictures}
    for picture in pictures:
        text = picture.read_text()
        head = text[: text.index(">")]
        assert f'width="{points:g}pt"' in head, picture.name
        box = MEDIA_BOX.search(picture.with_suffix(".pdf").read_bytes())
        assert box is not None
        assert float(box[1]) == pytest.approx(points, abs=0.01), picture.name
        (pixels,) = struct.unpack(">I", picture.with_suffix(".png").read_bytes()[16:20])
        assert pixels == pytest.approx(points * 300 / 72, abs=1), picture.name
        # What is printed: user units of the outermost drawing, to scale.
        across = float(re.findall(r'viewBox="\S+ \S+ (\S+) ', head)[0])
        least = min(float(size) for size in re.findall(r'font-size="([\d.]+)(?:px)?"', text))
        if picture.stem != "path":
            assert least * points / across >= 7.9, picture.name
        elif (name, width) != ("together", "84mm"):  # four senders beside each other are wider than a column
            assert least * points / across >= 6.0


def test_a_width_changes_no_figure_but_its_look(folder_of: FolderOf, tmp_path: Path) -> None:
    """The same axes and the same numbers beside the bars; only without a width each has its own."""
    folder = tmp_path / "out"
    shutil.copytree(folder_of("five"), folder, ignore=shutil.ignore_patterns("figures"))
    words = []
    for sheet in (Paper(("svg",)), paper(["svg"], "240pt"), Paper(("svg",))):
        write_report(folder, sheet)
        words.append((folder / "figures" / "rtt.svg").read_text())
    assert words[0] == words[2] != words[1]
    figures = [re.findall(r">([\d.]+ ms)<", each) for each in words]
    assert figures[0] == figures[1] != []


def test_a_long_name_does_not_widen_the_picture(tmp_path: Path) -> None:
    flows = [synthetic.FlowPlan("cubic", "cubic"), synthetic.FlowPlan("bbr", LONG, "s2", 0.5)]
    synthetic.write(synthetic.Plan([synthetic.RunPlan("both", flows)], duration_s=2.0), tmp_path)
    write_report(tmp_path, paper(["svg"], "84mm"))
    text = (tmp_path / "figures" / "cdf-rtt.svg").read_text()
    assert 'width="238.11pt"' in text
    assert LONG in text


@pytest.mark.parametrize(
    "text", ["84", "84px", "mm", "-84mm", "0mm", "1e2mm", "nanmm", "", "84mm 3in", "69mm", "2m"]
)
def test_a_width_that_is_none(text: str) -> None:
    with pytest.raises(BadInputError, match="a width from 70mm to 1000mm, such as"):
        paper(["svg"], text)


@pytest.mark.parametrize("text", ["84mm", "8.4cm", " 84 MM", "70mm", "1000mm", "240pt", "3.3in"])
def test_a_width_is_read_in_the_units_of_paper(text: str) -> None:
    assert paper(["pdf"], text).width_pt


def test_a_width_needs_pictures() -> None:
    for endings in (list[str](), ["csv"]):
        with pytest.raises(BadInputError, match="needs --figures with svg, png or pdf"):
            paper(endings, "84mm")
