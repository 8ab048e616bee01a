"""`dragstrip.race` and `dragstrip.Result`: the result of a race as an object, in memory and in a folder."""

from __future__ import annotations

import json
import pickle
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from markupsafe import escape

import dragstrip
from dragstrip.errors import BadInputError, DragstripError, Note
from dragstrip.io.files import json_text
from dragstrip.report import plane
from dragstrip.report.drawing import KINDS
from dragstrip.report.figure import Axis

OPTIONS: dict[str, Any] = {"rate": "10mbit", "rtt": "40ms", "queue": "1bdp", "duration": "3s"}


@pytest.fixture(scope="module")
def result() -> dragstrip.Result:
    return dragstrip.race("cubic", "bbr", **OPTIONS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("result") / "out"
    dragstrip.race("cubic", "bbr", out=out, **OPTIONS)
    return out


def test_memory_and_folder_give_the_same_result(result: dragstrip.Result, folder: Path) -> None:
    stored = dragstrip.Result.read(folder)
    assert json_text(result.document) == (folder / "result.json").read_text()
    assert result == stored
    assert result == dragstrip.race("cubic", "bbr", **OPTIONS)
    assert result != dragstrip.race("cubic", "bbr", **{**OPTIONS, "rtt": "41ms"})
    assert (folder / "report.html").is_file()


def test_attributes_are_the_fields_of_the_document(result: dragstrip.Result) -> None:
    runs = result.document["runs"]
    for run, entry in zip(result, runs, strict=True):
        assert (run.scenario, run.seed, run.jain) == (entry["scenario"], entry["seed"], entry["jain"])
        for flow, row in zip(run.flows, entry["flows"], strict=True):
            assert flow.goodput_bps == row["goodput_bps"]
            assert flow.rtt_ms.p95 == row["rtt_ms"]["p95"]
            assert flow.limited_s == row["limited_s"]
            assert flow.video is None
            assert "video" not in row
    assert [flow.cc for flow in result.flows] == ["cubic", "bbr"]
    assert [queue.link for queue in result.queues] == [q["link"] for run in runs for q in run["queues"]]
    assert [probe.target for probe in result.probes] == ["s1", "s1"]
    assert [entry.sentence for entry in result.why] == [e["sentence"] for run in runs for e in run["why"]]
    assert {link["name"] for link in result.links} >= {"r-d", "d-r"}
    assert len(result) == 2


def test_alternatives_are_medians_over_repeats() -> None:
    repeated = dragstrip.race("reno", "cubic", loss="1%", repeat=3, **OPTIONS)
    reno = repeated["reno"]
    goodputs = sorted(flow.goodput_bps for flow in repeated.flows if flow.cc == "reno")
    assert len(goodputs) == reno.repeats == 3
    assert reno.goodput_bps == goodputs[1] != goodputs[0]
    assert [entry.name for entry in repeated.alternatives] == ["reno", "cubic"]
    first, second = repeated.ranking
    assert first.goodput_bps is not None
    assert second.goodput_bps is not None
    assert first.goodput_bps >= second.goodput_bps


def test_an_alternative_of_several_setups_is_asked_for_by_setup() -> None:
    race = dragstrip.compare(["cubic"], **OPTIONS)
    result = dragstrip.run(race.changed(vary={"path.rtt": ["20ms", "40ms"]}))
    with pytest.raises(BadInputError, match="a name in one set-up"):
        result["cubic"]
    assert len({entry.setup for entry in result.alternatives}) == 2
    assert result.plot("plane", setup=1).description != result.plot("plane", setup=0).description
    with pytest.raises(BadInputError, match="setup: got 2, expected 0 to 1"):
        result.plot("plane", setup=2)


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = threading.active_count()
    for _ in range(2):  # a cell that is run again
        dragstrip.race("cubic", "bbr", **OPTIONS)
    assert threading.active_count() == before
    assert list(tmp_path.iterdir()) == []


def test_claims_are_graded_in_memory(tmp_path: Path) -> None:
    claim = dragstrip.Claim(
        id="share",
        source="a test",
        metric="goodput_bps",
        range=[1, 20],
        unit="Mbit/s",
        where={"cc": "bbr"},
    )
    race = dragstrip.compare(["cubic", "bbr"], **OPTIONS).changed(claims=[claim])
    in_memory, stored = dragstrip.run(race), dragstrip.run(race, tmp_path / "out")
    assert in_memory == stored
    (graded,) = in_memory.claims
    assert graded.grade == "reproduced"
    assert graded.measured == pytest.approx(in_memory["bbr"].goodput_bps / 1e6)  # type: ignore[operator]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "shares"])
def test_every_figure_is_vega_lite(result: dragstrip.Result, kind: str) -> None:
    drawing = result.plot(kind)
    spec = drawing.to_dict()
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert spec["title"] == drawing.title
    assert json.loads(json.dumps(spec)) == spec
    assert drawing._repr_mimebundle_()["text/plain"] == drawing.description
    spec["title"] = "mine"
    assert drawing.to_dict()["title"] == drawing.title


def test_shares_are_of_flows_that_compete(result: dragstrip.Result) -> None:
    with pytest.raises(BadInputError, match="nothing that it could show"):
        result.plot("shares")
    together = dragstrip.race("cubic", "bbr", together=True, **OPTIONS)
    assert "cubic" in together.plot("shares").description
    assert sum(entry.share or 0 for entry in together.alternatives) == pytest.approx(1.0)


def test_figures_are_saved(result: dragstrip.Result, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="vl-convert-python: pip install vl-convert-python")
    drawing = result.plot("plane")
    for ending, start in (("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("json", b"{")):
        file = tmp_path / f"plane.{ending}"
        drawing.save(file)
        assert file.read_bytes().startswith(start)
    drawing.save(tmp_path / "narrow.svg", width="84mm")
    assert 'width="238.11pt"' in (tmp_path / "narrow.svg").read_text()
    with pytest.raises(BadInputError, match=r"a name that ends with \.svg, \.png"):
        drawing.save(tmp_path / "plane.gif")
    assert not (tmp_path / "plane.gif").exists()


def test_the_plane_needs_no_extra(result: dragstrip.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragstrip.report.drawing.draws", lambda: False)
    bundle = result.plot("plane")._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    assert "image/svg+xml" not in result.plot("rtt")._repr_mimebundle_()


@pytest.mark.parametrize("high", [1e-9, 0.07, 1, 9.4, 10, 53, 128, 24_000, 1e9])
def test_ticks_are_few_and_within_the_axis(high: float) -> None:
    values = plane.ticks(Axis("", 0, high))
    assert 2 <= len(values) <= 7
    assert values[0] == 0
    assert 0.5 * high < values[-1] <= high * (1 + 1e-9)


def test_what_a_notebook_shows(result: dragstrip.Result) -> None:
    assert len(repr(result)) < 300
    assert "cubic" in repr(result)
    html = result._repr_html_()
    assert html.count("<svg") == 1
    assert html.count("<tr>") == 3
    assert escape(result.why[0].sentence)[:20] in html
    assert "<script" not in html
    assert result.summary() in result._repr_html_().replace("<strong>", "").replace("</strong>", "")


def test_an_experiment_shows_its_path_and_what_is_set() -> None:
    race = dragstrip.compare(["cubic", "bbr"], **OPTIONS)
    assert len(repr(race)) < 300
    assert "path.rate=10mbit" in repr(race)
    html = race._repr_html_()
    assert "<svg" in html
    assert "10mbit" in html
    assert len(repr(race.changed(description="long " * 200))) < 300


def test_tables_are_arrow(result: dragstrip.Result) -> None:
    figures = result.table()
    assert figures["goodput_bps"].to_pylist() == [flow.goodput_bps for flow in result.flows]
    samples = result.table("samples")
    assert samples.column_names[:3] == ["run", "scenario", "repeat"]
    assert pa.table(samples).equals(samples)
    assert hasattr(samples, "__arrow_c_stream__")
    with pytest.raises(BadInputError, match='did you mean "samples"'):
        result.table("sample")


def test_wrong_arguments_have_the_names_that_were_passed(tmp_path: Path, folder: Path) -> None:
    for options, words in (
        ({"queue": "bfifo limit"}, 'queue: got "limit" at the end'),
        ({"rtt": "fast"}, "rtt: got .fast."),
    ):
        with pytest.raises(BadInputError, match=f"^{words}"):
            dragstrip.race("cubic", **{**OPTIONS, **options})
    with pytest.raises(BadInputError, match="figures"):
        dragstrip.run(dragstrip.compare(["cubic"], **OPTIONS), figures=["pdf"])
    with pytest.raises(BadInputError, match="is not the output folder"):
        dragstrip.Result.read(tmp_path)
    with pytest.raises(BadInputError, match="one of cubic, bbr"):
        dragstrip.Result.read(folder)["vegas"]
    with pytest.raises(BadInputError, match=r"kind: got 'plan', expected one of .*did you mean"):
        dragstrip.Result.read(folder).plot("plan")


def test_a_failed_race_is_an_error() -> None:
    with pytest.raises(DragstripError):
        dragstrip.race("no-such-algorithm", **OPTIONS)


def test_captures_are_beside_the_recordings(tmp_path: Path) -> None:
    result = dragstrip.race("cubic", "bbr", out=tmp_path / "out", capture=["s1", "d"], **OPTIONS)
    assert [file.name for file in result.captures] == ["d.pcapng", "s1.pcapng"] * 2
    with pytest.raises(BadInputError, match="capture"):
        dragstrip.race("cubic", capture=["s1"], **OPTIONS)
    with pytest.raises(BadInputError, match=r"^capture: got 'x9', expected ") as error:
        dragstrip.race("cubic", capture=["x9"], out=tmp_path / "other", **OPTIONS)
    assert "--" not in str(error.value)
    assert not (tmp_path / "other").exists()


def test_claims_are_a_figure(result: dragstrip.Result) -> None:
    with pytest.raises(BadInputError, match="no graded claim"):
        result.plot("claims")
    claim = dragstrip.Claim(
        id="share",
        source="a test",
        metric="goodput_bps",
        value=8,
        tolerance="5%",
        unit="Mbit/s",
        where={"cc": "bbr"},
    )
    race = dragstrip.compare(["cubic", "bbr"], **OPTIONS).changed(claims=[claim])
    assert "share 1.1" in dragstrip.run(race).plot("claims").description


def test_an_experiment_of_the_catalogue() -> None:
    assert dragstrip.publication("caia-110729a/adsl1").claims
    with pytest.raises(BadInputError, match="caia-110729a/adsl1"):
        dragstrip.publication("caia-110729a/adsl9")


def test_a_result_goes_to_another_process(result: dragstrip.Result, folder: Path) -> None:
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 - our own
    assert pickle.loads(pickle.dumps(dragstrip.Result.read(folder))) == result  # noqa: S301 - our own


@pytest.mark.parametrize("name", ["experiment", "claims", "failed", "runs"])
def test_a_document_without_a_field_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    document = json.loads((copy / "result.json").read_text())
    del document[name]
    (copy / "result.json").write_text(json.dumps(document))
    (copy / "SHA256SUMS").unlink()
    with pytest.raises(BadInputError, match=f"{name}: is missing"):
        dragstrip.Result.read(copy)


def test_keys_that_are_no_names(result: dragstrip.Result) -> None:
    for call in (
        lambda: result[0],
        lambda: result.plot(3),
        lambda: result.table(None),
        lambda: result.plot(setup="0"),
    ):  # type: ignore[index, arg-type, misc]
        with pytest.raises(BadInputError):
            call()
    many = dragstrip.race(
        *[f"cubic:beta=0.{digit}" for digit in range(51, 60)], **{**OPTIONS, "duration": "1s"}
    )
    with pytest.raises(BadInputError, match="at most 8 alternatives for timeline"):
        many.plot("timeline")
    with pytest.raises(BadInputError, match="experiment: got 'cubic', expected an `Experiment`"):
        dragstrip.run("cubic")  # type: ignore[arg-type]


@pytest.mark.parametrize("read", [dragstrip.Result.read, dragstrip.load])
def test_what_is_no_folders_name_is_an_error_that_says_so(read: Callable[[Any], object]) -> None:
    for name in (5, None, b"race", ["race"]):
        with pytest.raises(BadInputError, match="an output folder's name, as text or as a Path"):
            read(name)


def test_a_folder_of_an_interrupted_run_is_read_with_a_note(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    dragstrip.race("cubic", rate="10mbit", rtt="40ms", duration="1s", out=folder)
    (folder / "PARTIAL").write_text("")
    with pytest.warns(
        Note, match=r"out: PARTIAL: the folder is being written, or its run was interrupted"
    ) as notes:
        dragstrip.Result.read(folder)
    assert [Path(warning.filename) for warning in notes] == [Path(__file__)]


def test_finished_runs_of_an_interrupted_race_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    options: dict[str, Any] = {"rate": "10mbit", "rtt": "40ms", "loss": "1%", "duration": "1s", "repeat": 2}
    whole = dragstrip.race("cubic", "bbr", out=folder, **options)
    runs, table = whole.runs, whole.table("samples")
    for name in ("result.json", "experiment.json", "report.html"):
        (folder / name).unlink()
    with pytest.raises(BadInputError, match="is not the output folder of a run"):
        dragstrip.Result.read(folder)
    (folder / "PARTIAL").write_text("")
    with pytest.warns(Note, match=r"interrupted; 4 finished runs are read, no claim is graded"):
        partial = dragstrip.Result.read(folder)
    assert partial.runs == runs
    assert partial.table("samples") == table
    assert partial["bbr"].repeats == 2
    shutil.rmtree(folder / "runs" / "003-bbr-2")
    with pytest.warns(Note, match=r"3 finished runs are read"):
        assert dragstrip.Result.read(folder).runs == runs[:3]
    shutil.rmtree(folder / "runs")
    with pytest.raises(BadInputError, match="is the folder of a run without a finished recording"):
        dragstrip.Result.read(folder)


def test_notes_are_about_the_callers_line_and_sets_are_refused() -> None:
    options = {"rate": "10mbit", "rtt": "40ms", "duration": "1s"}
    with pytest.warns(Note, match="every run is made once") as notes:
        dragstrip.race("cubic", repeat=3, **options)
    assert [Path(warning.filename) for warning in notes] == [Path(__file__)]
    with pytest.raises(
        BadInputError, match=r"change: got .*, expected a list or a tuple: a set has no order"
    ):
        dragstrip.race("cubic", change={"at=1s rate=5mbit", "at=2s rate=1mbit"}, **options)
