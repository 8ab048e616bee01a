"""Arguments of functions: kinds, unknown and missing names, and errors that cross processes."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dragstrip
from dragstrip.display.document import StudyDocument
from dragstrip.errors import BadInputError
from dragstrip.experiment.programs import ProgramError
from dragstrip.interop.arguments import named_arguments
from dragstrip.io.files import NotWrittenError

RACE: dict[str, Any] = {"rate": "10mbit", "rtt": "40ms", "duration": "1s"}


def sweep(**options: Any) -> Any:
    return dragstrip.sweep(dragstrip.compare(["cubic"], **RACE), "nowhere", vary={"rtt": ["20ms"]}, **options)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sweep(workers=-1), "^workers: got -1, expected a whole number from 1"),
        (
            lambda: dragstrip.race("cubic", workers=0, **RACE),
            "^workers: got 0, expected a whole number from 1",
        ),
        (lambda: dragstrip.race("cubic", workers="2", **RACE), "^workers: got '2', expected a whole number"),
        (
            lambda: dragstrip.attack("cubic", evaluations=26, seed=-1),
            "^seed: got -1, expected a whole number from 0",
        ),
        (lambda: dragstrip.attack("cubic", seed=True), "^seed: got True, expected a whole number"),
        (lambda: dragstrip.attack("cubic", rate=10), "^rate: got 10, expected a text"),
        (lambda: dragstrip.passport("cubic", only=["theory"]), "^only: got .*, expected a text"),
        (
            lambda: dragstrip.passport(dragstrip.program("mine", PROGRAM)),
            "^algorithm: got 'mine', expected a name, beside the program in `programs`",
        ),
        (
            lambda: dragstrip.passport("cubic", quik=True),
            '^quik: is not an argument of passport; did you mean "quick"',
        ),
        (lambda: dragstrip.identify(), "^capture: is missing: identify"),
        (lambda: dragstrip.identify("a.pcap", flow=443), "^flow: got 443, expected a text"),
        (lambda: dragstrip.inspect(["a.pcap"]), "^files: got .*, expected the name of a file"),
        (lambda: dragstrip.compare(["cubic"], nonsense=None), "^nonsense: is not an option of compare"),
        (
            lambda: dragstrip.race("cubic", path=dragstrip.Path(rate="1mbit", rtt="9ms")),
            "^path: got .*, expected a text",
        ),
    ],
)
def test_an_argument_of_another_kind_is_named(call: Callable[[], object], words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        call()
    assert not Path("nowhere").exists()


PROGRAM = "on ack { cwnd = cwnd + acked }\non loss { ssthresh = cwnd / 2 }"


def test_numbers_of_numpy_and_time_spans_are_taken() -> None:
    @named_arguments
    def function(*, seed: int = 1, duration: str | None = None) -> tuple[int, str | None]:
        return seed, duration

    assert function(seed=np.int64(3), duration=timedelta(seconds=2)) == (3, "2000000us")  # type: ignore[arg-type]
    assert type(function(seed=np.int64(3))[0]) is int  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error",
    [
        BadInputError("rate", "fast", "a rate", "file"),
        ProgramError("mine", "on_ack {", "1:8", "{", "}"),
        NotWrittenError(Path("a"), OSError(28, "No space left on device")),
    ],
)
def test_errors_cross_processes(error: Exception) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):  # noqa: S301 - our own
        assert type(other) is type(error)
        assert str(other) == str(error)


def test_a_folder_is_checked_before_the_work(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for call in (dragstrip.passport, dragstrip.evidence):
        with pytest.raises(BadInputError, match=r"^out: "):
            call("cubic", quick=True, out=file)


def test_a_measured_path_takes_options_of_a_path_alone() -> None:
    from dragstrip.experiment.saved_paths import Knowledge, SavedPath
    from dragstrip.verbs import MeasuredPath

    path = MeasuredPath(
        SavedPath("", {"rate": "5mbit", "rtt": "30ms"}, "here", {"queue": Knowledge(unknown="no loss")})
    )
    with pytest.raises(
        BadInputError, match=r"^queue: is not known, no loss; options\(queue=\.\.\.\) gives it"
    ):
        path.options()
    with pytest.raises(BadInputError, match=r"^quue: is not an option of a measured path; did you mean"):
        path.options(quue="fq")
    assert path.options(queue="fq")["queue"] == "fq"
    with pytest.raises(BadInputError, match=r"^name: a name or a file"):
        path.save(None)  # type: ignore[arg-type]
    assert str(pickle.loads(pickle.dumps(path))) == str(path)  # noqa: S301 - our own


def test_a_result_has_its_alternatives() -> None:
    result = dragstrip.race("cubic", "bbr", **RACE)
    assert "bbr" in result
    assert "reno" not in result
    assert next(iter(result)) in result


@pytest.mark.parametrize("call", [dragstrip.passport, dragstrip.evidence])
def test_a_foreign_folder_is_not_written(call: Callable[..., object], tmp_path: Path) -> None:
    """Files of the same names as ours do not make a folder ours."""
    for name in ("passport.json", "evidence.json", "passport.html", "notes.txt"):
        (tmp_path / name).write_text('{"owner": "somebody else"}')
    before = {file.name: file.read_text() for file in tmp_path.iterdir()}
    with pytest.raises(BadInputError, match=r"^out: got .*, expected an empty folder, one that does not"):
        call("cubic", quick=True, out=tmp_path)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == before


def test_an_earlier_passport_is_replaced(tmp_path: Path) -> None:
    for algorithm in ("cubic", "reno"):
        dragstrip.passport(algorithm, quick=True, only="theory", out=tmp_path / "p")
        assert json.loads((tmp_path / "p/passport.json").read_text())["algorithm"] == algorithm


def test_a_sweep_takes_quantities_as_a_race_does(tmp_path: Path) -> None:
    def values(vary: dict[str, Any], **options: Any) -> list[object]:
        race = dragstrip.compare(["cubic"], **RACE)
        answer = dragstrip.sweep(race, tmp_path / str(len(vary_log)), vary=vary, report=False, **options)
        vary_log.append(answer)
        (name,) = (name for name in answer.table().column_names if name.startswith("path_rtt"))
        return sorted(set(answer.table()[name].to_pylist()))

    vary_log: list[Any] = []
    texts = values({"rtt": ["20ms", "40ms"]})
    assert len(texts) == 2
    assert values({"rtt_ms": [20, np.float64(40)]}) == texts
    assert values({"rtt": [timedelta(milliseconds=20), "40ms"]}, duration_s=1) == texts


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vary": {"rtt_ms": "20..40"}}, r"^vary\['rtt_ms'\]: got '20..40', expected a list of numbers; rtt"),
        ({"vary": {"rtt_ms": ["20ms"]}}, r"^vary\['rtt_ms'\]: got '20ms', expected a number, in ms"),
        ({"vary": {5: [20]}}, "^vary: got 5, expected the name of a field"),
        ({"vary": {"rtt_ms": [-1]}}, r"^vary\['rtt_ms'\]: got -1, expected a number from 0"),
        ({"vary": {"rtt_ms": 5}}, r"^vary\['rtt_ms'\]: got 5, expected a list of values"),
        (
            {"vary": {"rtt_ms": [5], "rtt": ["5ms"]}},
            r"^vary\['rtt'\]: is the field rtt, which is given twice",
        ),
        ({"vary": {"rtt": ["5ms"]}, "duration": "1s", "duration_s": 1}, r"^duration_s: got 1, expected none"),
    ],
)
def test_quantities_of_a_sweep_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        dragstrip.sweep(dragstrip.compare(["cubic"], **RACE), "nowhere", **options)
    assert not Path("nowhere").exists()


def test_an_attack_takes_quantities_as_a_race_does() -> None:
    scenes = [
        dragstrip.attack("cubic", goal=["utilisation"], evaluations=26, **scene)["goals"]
        for scene in ({"rtt": "30ms", "duration": "5s"}, {"rtt_ms": 30, "duration_s": 5})
    ]
    assert scenes[0] == scenes[1]
    with pytest.raises(BadInputError, match=r"^rtt_ms: got 30, expected none beside rtt='30ms'"):
        dragstrip.attack("cubic", rtt="30ms", rtt_ms=30)


def test_answers_of_studies_have_a_line_each(tmp_path: Path) -> None:
    race = dragstrip.compare(["cubic"], **RACE)
    passport = dragstrip.passport("cubic", quick=True, only="theory")
    sweep = dragstrip.sweep(race, tmp_path / "map", vary={"rtt": ["20ms"]}, report=False)
    attack = dragstrip.attack("cubic", goal=["utilisation"], evaluations=26, duration="5s")
    lines = {
        repr(passport): f"<PassportDocument: cubic, {len(passport.rows)} row",
        repr(sweep): f"<SweepResult: 1 run, in {tmp_path / 'map'}>",
        repr(attack): "<AttackDocument: cubic, 26 attacks: ",
        repr(dragstrip.conform("prr-step-by-step")): "<Conformance: sim, 1 script: 1 pass>",
        repr(dragstrip.tc_import("tc qdisc add dev eth0 root sfq")): "<ImportedQueues: eth0, out: sfq",
    }
    for line, beginning in lines.items():
        assert line.startswith(beginning)
        assert line.endswith(">")
        assert len(line) <= 300
        assert "\n" not in line


def test_a_long_line_is_cut() -> None:
    document = StudyDocument({"version": 1}, "\n\n" + "long " * 200 + "\nrest")
    assert len(repr(document)) <= 300
    assert repr(document).startswith("<StudyDocument: long long")
    assert "rest" not in repr(StudyDocument({}, "\nfirst\nrest"))


@pytest.mark.parametrize("word", ["mine", "mine+0.3s", "mine@80ms", "mine*2"])
@pytest.mark.parametrize("form", ["program", "list", "file", "path", "files", "dict", "file by name", "text"])
def test_programs_are_taken_in_every_form(word: str, form: str, tmp_path: Path) -> None:
    mine = dragstrip.program("mine", PROGRAM)
    file = tmp_path / "mine.cc"
    file.write_text(PROGRAM)
    forms: dict[str, Any] = {
        "program": mine,
        "list": [mine],
        "file": str(file),
        "path": file,
        "files": (file, mine),
        "dict": {"mine": dragstrip.program("another", PROGRAM)},
        "file by name": {"mine": file},
        "text": {"mine": PROGRAM},
    }
    assert dragstrip.compare([word], programs=forms[form], **RACE).programs == {"mine": PROGRAM}


TAKEN = "expected a program, a file, a list of them, or a dict of them by name$"


@pytest.mark.parametrize(
    ("programs", "words"),
    [
        (3, f"^programs: got 3, {TAKEN}"),
        ((name for name in ["mine.cc"]), f"^programs: got <generator .*, {TAKEN}"),
        ([3], "^programs: got 3, expected a program, a file or, by name, a text$"),
        ({"mine": None}, r"^programs\['mine'\]: a program, a file or, by name, a text$"),
        ({3: PROGRAM}, "^programs: got 3, expected the name of an algorithm"),
        ([PROGRAM], "^programs: got .*: a text alone has no name$"),
        (["x/mine.cc"], "^programs: got 'x/mine.cc', expected a program's file: x/mine.cc: no such file$"),
        ({"mine": "on ack { \ud800 }"}, r"^programs\['mine'\]: got .*, expected text in UTF-8$"),
        (
            [dragstrip.program("mine", PROGRAM), dragstrip.program("mine", PROGRAM + "\n")],
            "^programs: got 'mine', expected another name: two programs have this one$",
        ),
        (
            dragstrip.program("other", PROGRAM),
            "^programs: got other, which nothing names, expected an algorithm other beside it$",
        ),
    ],
)
def test_programs_of_another_kind_are_refused(programs: Any, words: str) -> None:
    with pytest.raises(BadInputError, match=words) as raised:
        dragstrip.race("mine", programs=programs, **RACE)
    assert "\n" not in str(raised.value)


def test_studies_take_programs_as_a_race_does() -> None:
    for call in (dragstrip.passport, dragstrip.evidence, dragstrip.attack):
        with pytest.raises(BadInputError, match=f"^programs: got 3, {TAKEN}"):
            call("mine", programs=3)  # type: ignore[operator]
    rows = dragstrip.passport(
        "mine", quick=True, only="theory", programs=[dragstrip.program("mine", PROGRAM)]
    )
    assert rows["algorithm"] == "mine"


def test_program_is_a_word_for_programs() -> None:
    with pytest.raises(BadInputError, match=r'^program: .*; did you mean "programs"'):
        dragstrip.race("mine", program=dragstrip.program("mine", PROGRAM), **RACE)  # type: ignore[call-arg]
