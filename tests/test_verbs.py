"""The commands as functions: the same documents as the command line's `--json`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.cli import COMMANDS, GROUPS
from dragstrip.display.document import StudyDocument
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.studies.sweep.progress import SweepProgress, Tally

SCRIPT = "tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 20kb latency 50ms\n"


def printed(*words: str) -> dict[str, Any]:
    """Return the document that the command prints with `--json`."""
    command = [sys.executable, "-m", "dragstrip", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def plain(document: StudyDocument) -> Any:
    """Return a document as JSON gives it back."""
    return json.loads(json.dumps(document.to_dict()))


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of one CUBIC flow at its sender."""
    out = tmp_path_factory.mktemp("verbs") / "out"
    options = ["--rate", "10mbit", "--rtt", "40ms", "--queue", "1bdp", "--duration", "10s"]
    command = [
        sys.executable,
        "-m",
        "dragstrip",
        "compare",
        "cubic",
        *options,
        "--capture",
        "s1",
        "--out",
        str(out),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (file,) = out.rglob("s1.pcapng")
    return file


FUNCTIONS = {
    "list": "algorithms",
    "show": "publication",
    "run": "run",
    "compare": "race",
    "sweep": "sweep",
    "play": "play",
    "report": "Result",
    "inspect": "inspect",
    "diagnose": "diagnose",
    "whatif": "whatif",
    "identify": "identify",
    "passport": "passport",
    "attack": "attack",
    "judge": "judge",
    "evidence": "evidence",
    "tc-import": "tc_import",
    "conform": "conform",
    "shell": "shell",
}
"""By command: its function, or the first of several."""
WITHOUT_FUNCTION = {
    "export": "writes files of other programs from a folder",
    "doctor": "is about the machine",
    "new-algorithm": "edits the source tree",
    "new-qdisc": "edits the source tree",
    "policy-bpf": "writes a C file for a kernel",
    "help": "explains the command line; docstrings explain functions",
    "kernel": "fetches and boots kernels, for engine vm",
    "lab": "sets up hosts, for engine ssh",
    "validate": "is for those who work on the simulator",
}
"""Commands without a function, and why."""


def test_every_command_has_a_function_or_a_reason() -> None:
    assert {*FUNCTIONS, *WITHOUT_FUNCTION} == {*COMMANDS, *GROUPS}
    assert not FUNCTIONS.keys() & WITHOUT_FUNCTION.keys()
    for name in FUNCTIONS.values():
        assert name in dragstrip.__all__
        assert callable(getattr(dragstrip, name))


def test_diagnose() -> None:
    options = {"path": "home DSL"}
    answer = dragstrip.diagnose(**options)
    assert plain(answer) == printed("diagnose", "--path", "home DSL")
    assert answer.findings == answer["findings"] != []
    assert str(answer).startswith(answer["verdict"][:20])
    assert "<svg" in answer._repr_html_()


def test_inspect(capture: Path) -> None:
    answer = dragstrip.inspect(capture, labels=True)
    assert plain(answer) == printed("inspect", str(capture), "--labels")
    assert len(answer.flows) == 1
    with pytest.raises(BadInputError, match=r"^infer: got False, expected True"):
        _ = answer.path


def test_a_measured_path_is_raced_and_kept(capture: Path, tmp_path: Path) -> None:
    answer = dragstrip.inspect(capture, infer=True)
    assert plain(answer) == printed("inspect", str(capture), "--infer")
    path = answer.path
    file = path.save(tmp_path / "home.toml")
    printed("inspect", str(capture), "--save-path", str(tmp_path / "command.toml"))
    written = (tmp_path / "command.toml").read_text().splitlines()[3:]
    assert file.read_text().splitlines()[3:] == written  # below the names and the source
    assert path["options"]["rate"] == path.options()["rate"]
    races = [
        dragstrip.race("cubic", duration="1s", **options) for options in (path.options(), {"path": file})
    ]
    assert races[0]["cubic"].goodput_bps == races[1]["cubic"].goodput_bps > 0
    assert path.options(queue="fq_codel")["queue"] == "fq_codel"
    assert "<svg" in path._repr_html_()
    assert dragstrip.whatif(capture, "bbr").path["options"]["rate"]


def test_identify_and_whatif(capture: Path) -> None:
    assert plain(dragstrip.identify(capture)) == printed("identify", str(capture), "--addresses")
    answer = dragstrip.whatif(capture, "bbr", queue="fq_codel")
    assert plain(answer) == printed("whatif", str(capture), "bbr", "--queue", "fq_codel", "--addresses")


def test_whatif_on_a_path_by_name(capture: Path) -> None:
    """The races are on that path: what it does not say is a default, not the capture's."""
    answer = dragstrip.whatif(capture, "bbr", path="cable", queue="fq_codel")
    assert plain(answer) == printed(
        "whatif", str(capture), "bbr", "--path", "cable", "--queue", "fq_codel", "--addresses"
    )
    assert "\nOn path cable with queue fq_codel:\n" in str(answer)
    (mine,) = [row for row in answer["what_if"] if row["algorithm"] == "bbr"]
    race = dragstrip.race("bbr", path="cable", queue="fq_codel", duration="9999ms", seed=1)
    assert mine["goodput_bps"]["value"] == pytest.approx(race["bbr"].goodput_bps, rel=0.02)
    with pytest.raises(BadInputError, match=r'^path: got "nowhere"'):
        dragstrip.whatif(capture, path="nowhere")


def test_tc_import(tmp_path: Path) -> None:
    file = tmp_path / "script"
    file.write_text(SCRIPT)
    document = printed("tc-import", str(file))
    answer = plain(dragstrip.tc_import(SCRIPT))
    assert answer["queues"] == document["queues"]
    assert answer["skipped"] == document["skipped"]


def test_conform() -> None:
    assert plain(dragstrip.conform("prr-step-by-step")) == printed("conform", "prr-step-by-step")


def test_sweep(tmp_path: Path) -> None:
    race = dragstrip.compare(["cubic", "bbr"], rate="10mbit", rtt="40ms", duration="1s")
    answer = dragstrip.sweep(race, tmp_path / "map", vary={"path.rtt": ["20ms", "40ms"]}, report=False)
    assert (answer["runs"], answer["failed"]) == (4, 0)
    table = answer.table()
    assert sorted(set(table["path_rtt_ns"].to_pylist())) == [20_000_000, 40_000_000]
    again = dragstrip.sweep(race, tmp_path / "map", vary={"path.rtt": ["20ms", "40ms"]}, report=False)
    assert (again["made"], again["reused"]) == (0, 4)


def test_passport_and_attack() -> None:
    """Without a folder nothing is written; the documents are those of the commands."""
    rows = dragstrip.passport("cubic", quick=True, only="theory").rows
    assert rows
    attack = dragstrip.attack("vegas", goal=["stall"], using=["loss"], evaluations=30, duration="5s")
    assert isinstance(attack.finds, list)


def test_a_passport_is_that_of_the_command(tmp_path: Path) -> None:
    answer = plain(dragstrip.passport("reno", quick=True, only="theory", out=tmp_path / "function"))
    words = ("passport", "reno", "--quick", "--only", "theory", "--out", str(tmp_path / "command"))
    assert answer == printed(*words)


def test_a_saved_path_is_taken_by_sweep_passport_and_attack(tmp_path: Path) -> None:
    """A file of `save_path` and a name: sweep races on it, passport has its chapter, an attack its figures."""
    home = tmp_path / "home.toml"
    command = ["compare", "reno", "--rate", "3mbit", "--rtt", "30ms", "--queue", "bfifo limit 20kb"]
    words = [sys.executable, "-m", "dragstrip", *command, "--duration", "1s", "--no-report"]
    words += ["--save-path", str(home), "--out", str(tmp_path / "out")]
    subprocess.run(words, check=True, capture_output=True)
    race = dragstrip.compare(["cubic"], rate="10mbit", rtt="40ms", duration="1s")
    answer = dragstrip.sweep(
        race, tmp_path / "map", path=home, vary={"path.loss": ["0%", "1%"]}, report=False
    )
    goodputs = answer.table()["goodput_bps"].to_pylist()
    assert max(goodputs) < 3e6
    passport = dragstrip.passport("reno", quick=True, only="path", path=home)
    assert {row["chapter"] for row in passport.rows} == {"path"}
    attack = dragstrip.attack("reno", goal=["stall"], using=["loss"], evaluations=2, path=home, duration="2s")
    assert plain(attack) == printed(
        *("attack", "reno", "--goal", "stall", "--with", "loss", "--evaluations", "2"),
        *("--path", str(home), "--duration", "2s", "--out", str(tmp_path / "attack")),
    )


def test_errors_name_the_arguments(tmp_path: Path) -> None:
    for call, words in (
        (lambda: dragstrip.diagnose(), r"^file: a file, or a path: path NAME"),
        (lambda: dragstrip.diagnose(path="cable", repeat=2), "^repeat: is not an option of diagnose"),
        (lambda: dragstrip.play(rate="5mbit"), "^algorithms: is needed beside rate"),
        (lambda: dragstrip.inspect(tmp_path / "none.pcap"), "no such file"),
        (lambda: dragstrip.attack("cubic", goal=["fame"]), "^goal: got 'fame'"),
        (lambda: dragstrip.attack("cubic", using=["rain"]), "^using: got 'rain'"),
        (lambda: dragstrip.attack("cubic", goal=["stall"], using=["rtt"]), "beside using rtt"),
        (lambda: dragstrip.attack("cubic", other_rtt="fast"), "^other_rtt: got 'fast'"),
        (lambda: dragstrip.inspect(), "^files: is missing"),
        (lambda: dragstrip.passport("cubic", only="nothing"), "^only: got 'nothing'"),
        (lambda: dragstrip.attack("cubic", path="nowhere"), '^path: got "nowhere"'),
        (
            lambda: dragstrip.sweep(
                "caia-110729a/adsl1", tmp_path / "map", vary={"flows.cc": ["reno,cubic"]}
            ),
            r"^vary\['flows.cc'\]: got 'reno,cubic', expected a value without a comma",
        ),
    ):
        with pytest.raises(BadInputError, match=words) as error:
            call()
        assert "--" not in str(error.value)


def test_a_sweep_of_no_repeats_writes_nothing(tmp_path: Path) -> None:
    race = dragstrip.compare(["cubic"], rate="10mbit", rtt="40ms", duration="1s")
    for repeat in (0, -1, "x", True):
        with pytest.raises(BadInputError, match=r"^repeat: got .*, expected a whole number from 1"):
            dragstrip.sweep(race, tmp_path / "map", repeat=repeat)  # type: ignore[arg-type]
    assert not (tmp_path / "map").exists()


def test_an_interrupt_ends_a_sweep_and_what_is_finished_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`KeyboardInterrupt`, no thread and no draft; the same sweep goes on where it was."""
    race = dragstrip.compare(["cubic"], rate="10mbit", rtt="40ms", duration="1s")
    options: dict[str, Any] = {"vary": {"path.rtt": [f"{ms}ms" for ms in range(1, 61)]}, "report": False}

    interrupted: list[int] = []

    def interrupt(progress: SweepProgress, tally: Tally) -> None:
        if tally.executed >= 1 and not interrupted:
            interrupted.append(tally.executed)
            signal.raise_signal(signal.SIGINT)

    threads = threading.active_count()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(SweepProgress, "update", interrupt)
        dragstrip.sweep(race, tmp_path / "map", workers=1, **options)
    assert threading.active_count() == threads
    assert not list(tmp_path.rglob("*.draft*"))
    rest = dragstrip.sweep(race, tmp_path / "map", **options)
    assert rest["runs"] == 60
    assert 1 <= rest["reused"] < 60


def test_progress_is_one_bar_in_a_notebook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn: list[str] = []

    class Handle:
        def update(self, content: dict[str, str], raw: bool) -> None:
            assert raw
            drawn.append(content["text/html"])

    def display(content: dict[str, str], raw: bool, display_id: bool) -> Handle:
        assert (raw, display_id) == (True, True)
        drawn.append(content["text/html"])
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))  # type: ignore[arg-type]
    dragstrip.race("cubic", duration="1s", rate="10mbit", rtt="40ms")
    assert drawn == []
    dragstrip.race("cubic", duration="1s", rate="10mbit", rtt="40ms", progress=True)
    assert "of 1 simulated seconds" in drawn[0]
    assert drawn[-1] == ""
    drawn.clear()
    race = dragstrip.compare(["cubic"], rate="10mbit", rtt="40ms", duration="1s")
    dragstrip.sweep(race, tmp_path / "map", vary={"path.rtt": ["20ms", "40ms"]}, report=False, progress=True)
    assert "/2 runs" in drawn[0]
    assert 'max="1"' in drawn[0]
    assert drawn[-1] == ""


def test_nothing_is_printed_and_no_thread_stays(capsys: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()
    dragstrip.diagnose(path="cable")
    printed_text = capsys.readouterr()
    assert (printed_text.out, printed_text.err) == ("", "")
    assert threading.active_count() == before


@pytest.mark.parametrize("kind", ["algorithms", "queues", "paths", "media", "workloads", "measures"])
def test_lists(kind: str) -> None:
    rows = getattr(dragstrip, kind)()
    assert json.loads(json.dumps(rows)) == printed("list", f"--{kind}")[kind]
    assert rows._repr_html_().count("<tr>") == len(rows) + 1


def test_publications() -> None:
    assert dragstrip.publications() == printed("list")["experiments"]


def test_play(tmp_path: Path) -> None:
    try:
        page = dragstrip.play("cubic", "bbr", together=True)
    except DragstripError as error:
        pytest.skip(str(error))
    assert '"algorithms": ["cubic", "bbr"]' in page.html
    assert page._repr_html_().startswith("<iframe")
    (tmp_path / "home.toml").write_text('[path]\nrate = "8mbit"\nrtt = "30ms"\n')
    assert '"rate": "8mbit"' in dragstrip.play("cubic", path=str(tmp_path / "home.toml")).html
    (tmp_path / "trace").write_text("1\n2\n3\n")
    recorded = dragstrip.play("cubic", trace=str(tmp_path / "trace"), rtt="30ms", duration="1s").html
    assert '"kind": "runs"' in recorded
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page.html
    with pytest.raises(BadInputError, match=r"^rtt: got"):
        dragstrip.play("cubic", rate="10mbit", rtt="fast")
