"""The report as a whole: what it says, that it stands alone, and that bad input leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import altair as alt
import jsonschema
import pytest
import vl_convert

from dragstrip.display import html
from dragstrip.display.colours import assign
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.report import charts, embed, pdf, vega
from dragstrip.report.collect import curves_of, shares_of
from dragstrip.report.load import load
from dragstrip.report.paper import Paper, paper
from dragstrip.report.write import write_report
from dragstrip.results.comparison.setups import algorithms_of, setups_of
from dragstrip.results.comparison.stats import rows_of

from . import synthetic
from .conftest import PLANS

FolderOf = Callable[[str], Path]
VOID = {"meta", "input", "br", "hr", "img", "link"}


class Page(HTMLParser):
    """Checks that tags close in order; collects ids, addresses and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href", "srcset", "action", "data", "poster"):
                self.addresses.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.mark.parametrize("name", PLANS)
def test_the_page_is_whole_and_stands_alone(page_of: FolderOf, folder_of: FolderOf, name: str) -> None:
    written = page_of(name)
    text = written.read_text(encoding="utf-8")
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    # Links inside the page only: nothing to fetch, however the page is looked at.
    assert all(address.startswith("#") for address in page.addresses)
    assert {address[1:] for address in page.addresses} <= set(page.ids)
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest|<link|<iframe", text)
    assert set(re.findall(r"https?://[^\"' <)]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "None" not in page.text
    assert "nan" not in page.text.lower().split()
    assert not [path.name for path in folder_of(name).iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("name", PLANS)
def test_figures_for_papers_are_complete_and_well_formed(figures_of: FolderOf, name: str) -> None:
    figures = figures_of(name)
    stems = {path.stem for path in figures.iterdir()}
    assert {path.name for path in figures.iterdir()} == {
        f"{s}.{e}" for s in stems for e in ("svg", "png", "pdf")
    }
    for path in figures.glob("*.svg"):
        ElementTree.parse(path)  # noqa: S314 - our own file
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in figures.glob("*.png"))
    assert all(path.read_bytes().startswith(b"%PDF") for path in figures.glob("*.pdf"))
    if name == "together":
        assert stems == {
            "goodput", "rtt", "retransmissions", "cdf-rtt", "cdf-throughput",
            "shares", "pie", "jain", "overlay", "delay-throughput", "timeline", "path",
        }  # fmt: skip
    if name == "five":
        assert "pie" not in stems


def test_medians_in_the_legends_are_those_of_the_result(figures_of: FolderOf, folder_of: FolderOf) -> None:
    result = json.loads((folder_of("five") / "result.json").read_text())
    rates = (figures_of("five") / "cdf-throughput.svg").read_text()
    times = (figures_of("five") / "cdf-rtt.svg").read_text()
    for run in result["runs"]:
        flow = run["flows"][0]
        assert f"{flow['cc']}  {flow['throughput_bps_p50'] / 1e6:.2f} Mbit/s" in rates
        # The made-up summary takes the curve, the made-up table samples of it.
        legend = re.search(rf"{flow['cc']}  ([\d.]+) ms", times)
        assert legend is not None
        assert float(legend[1]) == pytest.approx(flow["rtt_ms"]["p50"], rel=0.02)


def test_claims_are_shown_with_their_grades_and_reasons(page_of: FolderOf) -> None:
    page = Page(page_of("five").read_text(encoding="utf-8"))
    assert "1 reproduced, 2 contradicted, 1 not testable here" in page.text
    assert "492 ms 497 ms reproduced 1.06 % above" in page.text
    assert "70 to 76 ms 51.3 ms contradicted 26.7 % below" in page.text
    assert "ADSL's ATM cells <are> not modelled yet" in page.text
    assert "vegas < reno reno < vegas contradicted" in page.text


def test_failed_runs_are_told_first(page_of: FolderOf) -> None:
    page = Page(page_of("failed").read_text(encoding="utf-8"))
    assert "1 of 2 runs failed cubic (seed 1): worker killed <by> signal 9" in page.text
    assert page.text.index("failed") < page.text.index("The path")


def test_provenance_is_told(page_of: FolderOf, folder_of: FolderOf) -> None:
    page = Page(page_of("repeats").read_text(encoding="utf-8"))
    assert "dragstrip compare --rate 10mbit" in page.text
    for run in load(folder_of("repeats")).runs:
        assert run.recording.provenance["recording_sha256"] in page.text
        assert str(run.summary["recording"]) in page.text


def test_without_shared_runs_there_is_neither_pie_nor_jain(page_of: FolderOf) -> None:
    assert "Jain" not in Page(page_of("five").read_text(encoding="utf-8")).text
    text = Page(page_of("together").read_text(encoding="utf-8")).text
    assert "Jain" in text
    assert "Shares of all bytes" in text


def test_twice_the_same_bytes(figures_of: FolderOf, folder_of: FolderOf) -> None:
    folder, figures = folder_of("together"), figures_of("together")
    first = (folder / "report.html").read_bytes()
    pictures = {path.name: path.read_bytes() for path in figures.iterdir()}
    assert len(pictures) == 36
    write_report(folder_of("one"), Paper(("svg",)))  # Vega's counters go on in between.
    assert write_report(folder, Paper(("svg", "png", "pdf"))).read_bytes() == first
    assert {path.name: path.read_bytes() for path in figures.iterdir()} == pictures


@pytest.mark.parametrize("name", ["path", "rtt", "timeline"])
def test_a_pdf_is_the_same_whatever_the_converters_dice(figures_of: FolderOf, name: str) -> None:
    picture = (figures_of("together") / f"{name}.svg").read_text()
    made = {vl_convert.svg_to_pdf(picture) for _ in range(12)}
    assert len(made) > 1, "the converter has become deterministic: report/pdf.py may go"
    (one,) = {pdf.ordered(document) for document in made}
    assert pdf.ordered(one) == one
    # Every offset leads to its object, and the page's fonts are those of its stream.
    for number, place in enumerate(re.findall(rb"(\d{10}) 00000 n", one), 1):
        assert one[int(place) :].startswith(b"%d 0 obj\n" % number)
    assert int(one.split(b"startxref\n")[1].split()[0]) == one.index(b"xref\n0 ")
    streams = [
        zlib.decompress(part) for part in re.findall(rb"FlateDecode\n>>\nstream\n(.*?)\nendstream", one, re.S)
    ]
    named = set(re.findall(rb"/(fo\d+) \d+ 0 R", one))
    assert set(re.findall(rb"/(fo\d+) [\d.]+ Tf", b"".join(streams))) == named != set()


def test_a_pdf_of_another_make_is_refused() -> None:
    with pytest.raises(DragstripError, match="no catalogue"):
        pdf.ordered(b"%PDF-1.4\ntrailer << >>\n")


@pytest.mark.parametrize("name", ["five", "together", "crowd", "udp", "repeats", "short"])
def test_specifications_are_vega_lite(folder_of: FolderOf, name: str) -> None:
    schema = alt.load_schema()
    runs = load(folder_of(name)).runs
    (setup,) = setups_of(runs, assign(algorithms_of(runs)))
    groups = charts.all_figures(setup, rows_of(setup), curves_of(setup), shares_of(setup))
    for figure in (figure for figures in groups.values() for figure in figures):
        jsonschema.Draft7Validator(schema).validate(_thinned(vega.spec(figure)))


def _thinned(spec: Any) -> Any:
    """A specification with one row of each table: the schema has nothing to say about more."""
    if isinstance(spec, dict):
        return {
            k: v[:1] if k == "values" and v and isinstance(v[0], dict) else _thinned(v)
            for k, v in spec.items()
        }
    return [_thinned(part) for part in spec] if isinstance(spec, list) else spec


def _calls(folder: Path) -> int:
    """Calls of Python functions that writing the report makes."""
    count = 0

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        write_report(folder)
    finally:
        sys.setprofile(before)
    return count


def test_a_report_costs_no_calls_by_the_row(tmp_path: Path) -> None:
    ccs = ["reno", "cubic", "vegas", "cdg", "bbr"]
    short, long = (
        synthetic.write(synthetic.compare(ccs, duration_s=seconds), tmp_path / f"{seconds}")
        for seconds in (30.0, 120.0)
    )
    write_report(short)  # what is computed once in a process
    assert _calls(long) < 1.1 * _calls(short)


def test_a_page_is_of_bearable_size(page_of: FolderOf) -> None:
    for name in PLANS:
        assert page_of(name).stat().st_size < 1_500_000, name


def test_of_many_flows_the_words_tell_of_the_least_and_the_greatest(tmp_path: Path) -> None:
    synthetic.write(synthetic.crowd("reno", 60, rate_bps=10**8, duration_s=4.0, rtt_samples=600), tmp_path)
    runs = load(tmp_path).runs
    (setup,) = setups_of(runs, assign(algorithms_of(runs)))
    (shares,) = shares_of(setup)
    stacked, pie, _ = charts.share_figures(setup, shares)
    found = re.fullmatch(
        r"Shares of all bytes that arrived: 40 flows, from ([\d.]+) % to ([\d.]+) % each; 20 others ([\d.]+) % together\.",
        pie.description,
    )
    assert found is not None, pie.description
    least, greatest, others = map(float, found.groups())
    assert 20 * 0.5 < others < 20 * least
    assert greatest > least
    table = embed.table(stacked)
    assert [head for head, _ in table.heads] == ["Time (s)", "Least", "Median", "Greatest", "20 others"]
    for row in table.rows:
        low, middle, high, rest = (float(cell.text.split()[0]) for cell in row[1:])
        assert low <= middle <= high
        assert 40 * low + rest < 100 < 40 * high + rest


# --- pictures only when asked for ---------------------------------------------------------------------

WRITE = """
import sys
from pathlib import Path
from dragstrip.report.write import write_report
write_report(Path(sys.argv[1]))
heavy = {"vl_convert", "altair", "numpy.ma", "pyarrow.compute"}
print(sorted(heavy & set(sys.modules)))
"""


def test_a_page_loads_nothing_that_draws(folder_of: FolderOf, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    shutil.copytree(folder_of("repeats"), folder, ignore=shutil.ignore_patterns("figures"))
    ended = subprocess.run([sys.executable, "-c", WRITE, folder], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
    assert not (folder / "figures").exists()


def test_only_what_was_asked_for_is_drawn(folder_of: FolderOf, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    shutil.copytree(folder_of("short"), folder, ignore=shutil.ignore_patterns("figures"))
    write_report(folder, Paper(("pdf",)))
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".pdf"}
    write_report(folder, Paper(("svg", "png")))
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".svg", ".png"}
    kept = sorted(path.read_bytes() for path in (folder / "figures").iterdir())
    write_report(folder)
    assert sorted(path.read_bytes() for path in (folder / "figures").iterdir()) == kept
    with pytest.raises(BadInputError, match="gif"):
        paper(["gif"])


def test_a_template_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.html").write_text("{{ x }} one")
    monkeypatch.setattr(html, "PACKAGE", tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def rendered() -> str:
        return html.environment.__wrapped__().get_template("a.html").render(x=1)

    assert rendered() == "1 one"
    (kept,) = (tmp_path / "__pycache__").iterdir()
    first = kept.read_bytes()
    assert rendered() == "1 one"
    (tmp_path / "a.html").write_text("{{ x }} two")
    assert rendered() == "1 two"
    assert kept.read_bytes() != first
    kept.write_bytes(b"damaged")
    assert rendered() == "1 two"


# --- golden pictures: look at them when they change; DRAGSTRIP_GOLDEN=write writes them ------------

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", ["path", "cdf-rtt", "rtt", "shares", "pie", "timeline"])
def test_pictures_look_as_they_did(tmp_path: Path, name: str) -> None:
    shares = {"reno": 0.7, "vegas": 0.3}
    synthetic.write(synthetic.together(shares, duration_s=2.0, rtt_samples=120), tmp_path)
    write_report(tmp_path, Paper(("svg",)))
    drawn = _outline((tmp_path / "figures" / f"{name}.svg").read_text())
    file = GOLDEN / f"{name}.svg"
    if os.environ.get("DRAGSTRIP_GOLDEN") == "write":
        file.write_text(drawn)
    assert drawn == file.read_text()


def _outline(svg: str) -> str:
    """An SVG without what nobody sees: places in whole points, one element per line."""

    def whole(match: re.Match[str]) -> str:
        text = f"{float(match.group()):.0f}"
        return "0" if text == "-0" else text

    return re.sub(r"-?\d+\.\d+", whole, svg).replace("><", ">\n<") + "\n"


# --- bad input -------------------------------------------------------------------------------------


def _flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    for place in range(4, min(len(content) - 8, 600)):
        content[place] ^= 0xFF
    file.write_bytes(bytes(content))


def _drop_column(file: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(file)
    pq.write_table(table.drop_columns(["rtt_ns"]), file)


DAMAGES: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "cut off": (
        "runs/000-cubic/rtts.parquet",
        lambda f: f.write_bytes(f.read_bytes()[:100]),
        "a Parquet file",
    ),
    "empty": ("runs/000-cubic/flows.parquet", lambda f: f.write_bytes(b""), "a Parquet file"),
    "no Parquet": ("runs/000-cubic/queues.parquet", lambda f: f.write_text("time_ns\n1"), "a Parquet file"),
    "flipped bytes": ("runs/000-cubic/received.parquet", _flip, "a Parquet file"),
    "missing table": ("runs/000-cubic/samples.parquet", Path.unlink, "missing"),
    "missing column": ("runs/000-cubic/rtts.parquet", _drop_column, "rtt_ns"),
    "missing recording": ("runs/000-cubic", shutil.rmtree, "recording"),
    "missing scenario": ("runs/000-cubic/scenario.json", Path.unlink, "no such file"),
    "bad scenario": ("runs/000-cubic/scenario.json", lambda f: f.write_text("{"), "a JSON document"),
    "missing result": ("result.json", Path.unlink, "no such file"),
    "bad result": ("result.json", lambda f: f.write_text("[]"), "a JSON object"),
    "binary result": ("result.json", lambda f: f.write_bytes(b"\xff\xfe\x00"), "a JSON document"),
    "runs no list": ("result.json", lambda f: f.write_text('{"runs": 3}'), "a list of objects"),
    "no recording named": ("result.json", lambda f: f.write_text('{"runs": [{}]}'), "runs[0].recording"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_one_clear_error_and_changes_nothing(
    folder_of: FolderOf, tmp_path: Path, damage: str
) -> None:
    folder = tmp_path / "out"
    shutil.copytree(folder_of("one"), folder)
    (folder / "report.html").write_text("the old one")
    where, harm, says = DAMAGES[damage]
    harm(folder / where)
    with pytest.raises(BadInputError) as error:
        write_report(folder)
    assert says in str(error.value)
    assert Path(where).name in str(error.value)
    assert "\n" not in str(error.value)
    assert (folder / "report.html").read_text() == "the old one"
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="not a folder"):
        write_report(tmp_path / "nowhere")
