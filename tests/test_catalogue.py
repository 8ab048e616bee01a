"""The catalogue: every experiment can run, the claims that must hold do, and the page says so."""

from __future__ import annotations

import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dragstrip import catalogue
from dragstrip.claims import CONTRADICTED, NOT_TESTABLE, REPRODUCED
from dragstrip.experiment import Experiment
from dragstrip.runner import plan

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "catalogue.md").read_text(encoding="utf-8")
TABLE = runpy.run_path(str(ROOT / "experiments" / "table.py"))
NAMES = list(catalogue.files())

BU = "bu-cs655-2022"
CCS = ("reno", "cubic", "vegas", "bbr")

MUST: dict[str, list[str]] = {
    f"{BU}/throughput": [
        *(f"steady-{cc}" for cc in CCS),
        *(f"receiver-{cc}" for cc in CCS),
        "retransmits-reno",
        "retransmits-cubic",
        "retransmits-vegas",
        "window-reno-min",
        "window-reno-max",
        *(f"window-reno-{at}s" for at in (10, 20, 30, 40, 50, 60)),
        # At 60 s CUBIC is in the middle of a reduction: that one is graded, but nothing to rely on.
        *(f"window-cubic-{at}s" for at in (10, 20, 30, 40, 50)),
        *(f"window-vegas-{at}s" for at in (10, 20, 30, 40, 50, 60)),
        "window-vegas-median",
        *(f"window-bbr-{at}s" for at in (20, 30, 40, 50, 60)),
        "window-bbr-median",
        "window-bbr-probe-rtt",
    ],
    f"{BU}/ecn": [
        *(f"receiver-{cc}" for cc in CCS),
        *(f"retransmits-{cc}" for cc in ("reno", "cubic", "vegas")),
        *(f"window-{cc}-{end}" for cc in ("reno", "cubic", "vegas") for end in ("min", "max")),
        "window-bbr",
    ],
    f"{BU}/to-router": [
        *(f"goodput-{cc}" for cc in ("reno", "vegas", "bbr")),
        "goodput-cubic-lossless",
        "window-vegas",
    ],
    f"{BU}/fairness": ["order", *(f"settled-{cc}" for cc in CCS), "text-bbr-share"],
    "geni-tcp/step1": ["goodput-cubic", "goodput-reno"],
    "geni-tcp/step5": ["udp", "total"],
    "geni-tcp/step6": ["udp", "tcp", "tcp-last"],
    # What the media do by themselves, whatever the stack.
    "caia-110729a/wifi": [*(f"throughput-{cc}" for cc in ("newreno", "cubic", "vegas")), "rtt-vegas"],
    "caia-110729a/adsl1": ["rtt-cubic", "rtt-vegas-lower", "rtt-cdg-lower"],
    "bufferbloat-2011/vegas-80211n": ["throughput-ten-vegas", "vegas-share", "larger-windows"],
}
"""Claims that hang on nothing unmodelled: losing one of them means that the simulator has changed."""

DENIED: dict[str, list[str]] = {
    f"{BU}/throughput": [
        "text-bbr-throughput",
        "text-reno-lowest",
        "text-cubic-above-reno",
        "text-delay-order",
    ],
    f"{BU}/ecn": [*(f"not-negotiated-{cc}" for cc in ("reno", "cubic", "vegas")), "text-delay-reno"],
    f"{BU}/fairness": ["text-cubic-lowest"],
}
"""Statements that the publication's own data deny."""


@cache
def read(name: str) -> Experiment:
    return catalogue.load(name)[0]


@cache
def graded(name: str) -> dict[str, dict[str, Any]]:
    return {line["id"]: line for line in TABLE["graded"](read(name))}


def test_the_shelves_are_there() -> None:
    publications = {name.split("/")[0] for name in NAMES}
    assert {BU, "geni-tcp", "caia-110729a"} <= publications
    assert {f"geni-tcp/step{number}" for number in (1, 2, 3, 4, 5, 6, 8)} <= set(NAMES)
    assert {f"caia-110729a/{path}" for path in ("adsl1", "homeplug", "wifi")} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_parses_expands_and_validates(name: str) -> None:
    experiment = read(name)
    assert plan(experiment, name).runs
    assert experiment.title
    assert experiment.source
    assert len(experiment.description) > 200, "a description says what is modelled, calibrated and missing"
    assert experiment.claims


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_gives_its_source_and_no_tolerance_hides_a_wrong_model(name: str) -> None:
    for claim in read(name).claims:
        # A quotation, or the figures that were read off.
        assert re.search(r'"[^"]+"|\d', claim.source), claim.id
        if claim.not_testable is not None:
            assert len(claim.not_testable) > 15, claim.id
        elif claim.value:
            step = 1.0 if claim.unit == "packets" else 0.0  # no window is known to less than a packet
            assert claim.slack() <= max(0.3 * abs(claim.value), step), claim.id


@pytest.mark.parametrize("name", MUST)
def test_what_must_be_reproduced_is(name: str) -> None:
    lines = graded(name)
    wrong = {claim: lines[claim] for claim in MUST[name] if lines[claim]["grade"] != REPRODUCED}
    assert not wrong


@pytest.mark.parametrize("name", DENIED)
def test_what_the_data_deny_is_contradicted(name: str) -> None:
    lines = graded(name)
    assert {lines[claim]["grade"] for claim in DENIED[name]} == {CONTRADICTED}


@pytest.mark.parametrize(
    ("set_up", "lost"),
    [
        ({"queue": "bfifo limit 0.07mb"}, ["window-reno-20s", "window-reno-50s"]),
        ({"overhead": "24b"}, ["steady-reno", "receiver-reno"]),
        ({"cc": "cubic"}, ["window-reno-10s", "window-reno-40s"]),
    ],
    ids=["a smaller buffer", "a longer frame", "another algorithm"],
)
def test_a_wrong_set_up_loses_the_grade(set_up: dict[str, str], lost: list[str]) -> None:
    """What must be reproduced can fail to be."""
    content = read(f"{BU}/throughput").model_dump(mode="json", by_alias=True, exclude_defaults=True)
    del content["vary"]
    if "cc" in set_up:
        content["flows"][0].update(set_up)
    else:
        content["links"][1].update(set_up)
    content["claims"] = [{**claim, "where": {}} for claim in content["claims"] if claim["id"] in lost]
    lines = TABLE["graded"](Experiment.build(content))
    assert {line["id"]: line["grade"] for line in lines} == dict.fromkeys(lost, CONTRADICTED)


@pytest.mark.parametrize("name", NAMES)
def test_the_page_lists_every_claim(name: str) -> None:
    """docs/catalogue.md is written by `python experiments/table.py`."""
    rows = rows_of_the_page(name)
    assert list(rows) == [claim.id for claim in read(name).claims]
    for claim in read(name).claims:
        assert (claim.not_testable is not None) <= rows[claim.id].startswith(NOT_TESTABLE), claim.id


@pytest.mark.parametrize("name", NAMES)
def test_the_pages_grades_are_current(name: str) -> None:
    rows = rows_of_the_page(name)
    stale = {claim for claim, line in graded(name).items() if not rows[claim].startswith(line["grade"])}
    assert not stale, "python experiments/table.py writes the page again"


def rows_of_the_page(name: str) -> dict[str, str]:
    """Claim → grade, as the page has them."""
    part = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
    lines = [line.split(" | ", 4) for line in part.splitlines() if line.startswith("| ")]
    return {cells[0].removeprefix("| "): cells[4] for cells in lines[1:]}
