from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dragstrip.errors import BadInputError
from dragstrip.experiment.expand import PlannedRun, expand
from dragstrip.experiment.types import Claim, Experiment
from dragstrip.model.recording import Recording
from dragstrip.results.claims import Finished, check, conversion, grade
from dragstrip.results.measures import Measured


@pytest.fixture
def finished(recording: Recording) -> list[Finished]:
    return [Finished(PlannedRun(0, "reno", recording.scenario, {"path.rate": "10mbit"}), Measured(recording))]


def claim(**given: Any) -> Claim:
    return Claim.of({"id": "c", "source": "page 1", **given})


@pytest.mark.parametrize(
    ("given", "measured", "grade_"),
    [
        ({"metric": "goodput_bps", "where": {"label": "reno-1"}, "value": 1.04, "unit": "Mbit/s", "tolerance": "5%"}, 1.0, "reproduced"),
        ({"metric": "goodput_bps", "where": {"label": "reno-1"}, "value": 1.1, "unit": "Mbit/s", "tolerance": "5%"}, 1.0, "contradicted"),
        ({"metric": "goodput_bps", "value": 2000, "unit": "kbit/s", "tolerance": 1}, 2000.0, "reproduced"),
        ({"metric": "rtt_ms_p50", "where": {"flow": 0}, "range": [31, 40], "unit": "ms"}, 30.0, "contradicted"),
        ({"metric": "rtt_ms_p50", "where": {"flow": 0}, "range": [31, 40], "unit": "ms", "tolerance": 1.5}, 30.0, "reproduced"),
        ({"metric": "goodput_bps", "where": {"flow": 0}, "over": {"flow": 1}, "range": [0.3, 0.4]}, 1 / 3, "reproduced"),
        ({"metric": "share", "where": {"flow": 1}, "value": 75, "unit": "%", "tolerance": 0.1}, 75.0, "reproduced"),
        ({"metric": "dropped", "value": 3, "unit": "packets", "tolerance": 0}, 3.0, "reproduced"),
        ({"metric": "goodput_bps", "order": ["reno-1", "reno-2"], "by": "label"}, ["reno-1", "reno-2"], "reproduced"),
        ({"metric": "goodput_bps", "order": ["reno-2", "reno-1"], "by": "label"}, ["reno-1", "reno-2"], "contradicted"),
        ({"metric": "goodput_bps", "order": ["reno-1", "reno-2"], "by": "label", "tolerance": "190%"}, ["reno-1", "reno-2"], "reproduced"),
        ({"metric": "goodput_bps", "order": ["reno-1", "reno-2"], "by": "label", "tolerance": "210%"}, ["reno-1", "reno-2"], "contradicted"),
        ({"metric": "dropped", "order": ["reno-1", "reno-2"], "by": "label"}, ["reno-1", "reno-2"], "contradicted"),  # a tie
        ({"metric": "goodput_bps", "value": 1, "unit": "bit/s", "not_testable": "no such medium"}, 2e6, "not testable here"),
        ({"metric": "cwnd_bytes_p50", "value": 1, "unit": "B", "tolerance": 1, "state": "never"}, None, "not testable here"),
    ],
)  # fmt: skip
def test_grades(finished: list[Finished], given: dict[str, Any], measured: Any, grade_: str) -> None:
    line = grade(claim(**given), finished)
    assert line["grade"] == grade_
    assert line["measured"] == (pytest.approx(measured) if isinstance(measured, float) else measured)
    assert ("reason" in line) == (
        grade_ == "not testable here" or ("order" in given and grade_ == "contradicted")
    )


def test_what_the_machine_limited_neither_holds_nor_is_contradicted(recording: Recording) -> None:
    idle = "the processors were idle for 3 % of the time only"
    limited = replace(recording, provenance={**recording.provenance, "verified": {"limits": [idle]}})
    fine = replace(recording, provenance={**recording.provenance, "verified": {"limits": []}})
    runs = [
        Finished(PlannedRun(number, "reno", one.scenario, {"path.rate": rate}), Measured(one))
        for number, (one, rate) in enumerate(
            [(limited, "10mbit"), (limited, "20mbit"), (fine, "20mbit"), (fine, "30mbit")]
        )
    ]
    given = {"metric": "goodput_bps", "unit": "Mbit/s", "tolerance": 0.01, "value": 9}
    asked = {
        rate: grade(claim(**given, where={"path.rate": rate}), runs)
        for rate in ("10mbit", "20mbit", "30mbit")
    }
    assert [(line["grade"], line.get("reason"), line.get("agrees")) for line in asked.values()] == [
        ("limited", f"the run: {idle}", False),
        ("limited", f"1 of 2 runs: {idle}", False),
        ("contradicted", None, None),
    ]
    assert asked["10mbit"]["measured"] == asked["30mbit"]["measured"]
    given = {**given, "value": asked["10mbit"]["measured"]}
    assert grade(claim(**given, where={"path.rate": "10mbit"}), runs)["agrees"], "and is limited all the same"


def test_a_varied_path_selects_runs(finished: list[Finished]) -> None:
    given = {"metric": "jain", "value": 0.8, "tolerance": 0.01}
    assert grade(claim(**given, where={"path.rate": "10mbit"}), finished)["grade"] == "reproduced"
    assert grade(claim(**given, where={"path.rate": "20mbit"}), finished)["grade"] == "not testable here"


def test_units_convert_only_within_their_kind() -> None:
    assert conversion("bit/s", "kbit/s") == pytest.approx(1e-3)
    assert conversion("ms", "s") == pytest.approx(1e-3)
    assert conversion("ms", "kbit/s") is None
    assert conversion("ms", "fortnight") is None


BASE: dict[str, Any] = {
    "duration": "10s",
    "path": {"rate": "10mbit"},
    "flows": [{"cc": "reno"}],
}


@pytest.mark.parametrize(
    ("given", "field", "hint"),
    [
        ({"metric": "rtt_ms_p5O", "value": 1, "unit": "ms", "tolerance": 1}, "claims[0] (c).metric", "rtt_ms_p50"),
        ({"metric": "rtt_ms_p50", "value": 1, "unit": "kbit/s", "tolerance": 1}, "claims[0] (c).unit", "ms"),
        ({"metric": "jain", "value": 1, "tolerance": 1, "where": {"cc": "cubic"}}, "claims[0] (c).where.cc", "reno"),
        ({"metric": "retransmits", "value": 1, "tolerance": 1, "until": "5s"}, "claims[0] (c).until", "whole"),
        ({"metric": "jain", "value": 1, "tolerance": 1, "where": {"colour": "red"}}, "claims[0] (c).where.colour", "cc"),
    ],
)  # fmt: skip
def test_claims_that_could_never_be_measured_are_refused(
    given: dict[str, Any], field: str, hint: str
) -> None:
    experiment = Experiment.build({**BASE, "claims": [{"id": "c", "source": "page 1", **given}]})
    with pytest.raises(BadInputError) as caught:
        check(experiment, expand(experiment))
    assert caught.value.field == field
    assert hint in caught.value.expected
