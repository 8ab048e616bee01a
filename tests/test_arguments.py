"""Arguments of functions: kinds, unknown and missing names, and errors that cross processes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dragstrip
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
            "^algorithm: got 'mine', expected a name: a",
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
