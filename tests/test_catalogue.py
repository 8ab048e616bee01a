"""The catalogue: every experiment can run, the claims that must hold do, and the pages say so."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dragstrip.engines.sim import simulate
from dragstrip.experiment import catalogue
from dragstrip.experiment.types import Experiment
from dragstrip.results.claims import CONTRADICTED, OPEN, REPRODUCED, Finished, concerns, grade, slack_of
from dragstrip.results.measures import Measured
from dragstrip.studies.execution.runner import plan
from dragstrip.studies.publications.document import grades
from tools import catalogue as pages

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "catalogue.md"
DATA = json.loads(PAGE.with_suffix(".json").read_text(encoding="utf-8"))
STORED = {part["name"]: part for part in DATA["experiments"]}
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
    "caia-110729a/homeplug": ["throughput-newreno", "throughput-vegas", "throughput-vegas-hit"],
    "caia-110729a/adsl1": ["rtt-cubic", "rtt-vegas-lower", "rtt-cdg-lower"],
    "caia-110729a/adsl1-tunnel": ["rtt-newreno", "rtt-cubic", "throughput-newreno", "rtt-order"],
    # Receivers of L4STeam's kernel: with delayed ACKs 26 ms.
    "l4s-pam2025/prague-bbr3": ["rtt-dualpi2-1bdp-2ms-prague"],
    "linux-vegas-1999/modem": ["stock-stall", "vegas-sustained", "vegas-no-stalls", "vegas-text"],
    "bufferbloat-2011/vegas-80211n": ["throughput-ten-vegas", "vegas-share", "larger-windows"],
}
"""Claims that hang on nothing unmodelled: losing one of them means that the simulator has changed."""

GRIDS = ("bbr-dominance-2024", "datta-fund-2023", "l4s-pam2025")
"""Publications of cells: written by a program from their data, the causes of contradicted cells on their pages."""

DENIED: dict[str, list[str]] = {
    f"{BU}/throughput": [
        "text-bbr-throughput",
        "text-reno-lowest",
        "text-cubic-above-reno",
        "text-delay-order",
    ],
    f"{BU}/ecn": ["text-delay-reno"],
    f"{BU}/fairness": ["text-cubic-lowest"],
}
"""Statements that the publication's own data deny."""


@cache
def read(name: str) -> Experiment:
    return catalogue.load(name)[0]


def graded(experiment: Experiment, ids: list[str]) -> dict[str, dict[str, Any]]:
    """The lines of some claims, from the runs that they need, in this process."""
    claims = [claim for claim in experiment.claims if claim.id in ids]
    runs = [run for run in plan(experiment).runs if any(concerns(claim, run) for claim in claims)]
    finished = [Finished(run, Measured(simulate(run.scenario))) for run in runs]
    return {claim.id: grade(claim, finished) for claim in claims}


def test_the_publications_are_there() -> None:
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
            if claim.metric == "share":
                step = 0.1  # of the whole: there is one trial of each cell
            if trials := re.search(r"trials, ([\d.e+]+) to ([\d.e+]+)$", claim.source):
                least, most = float(trials[1]), float(trials[2])
                assert least <= claim.value <= most, claim.id
                step = max(claim.value - least, most - claim.value, 10.0 if claim.unit == "segments" else 0.0)
                step *= 1.001  # written with four digits
            assert slack_of(claim) <= max(0.3 * abs(claim.value), step), claim.id


@pytest.mark.parametrize("name", sorted({*MUST, *DENIED}))
def test_what_must_be_reproduced_is_and_what_the_data_deny_is_not(name: str) -> None:
    """And the stored data, of which the pages are made, have the same figures."""
    lines = graded(read(name), [*MUST.get(name, []), *DENIED.get(name, [])])
    wanted = {
        **dict.fromkeys(MUST.get(name, []), REPRODUCED),
        **dict.fromkeys(DENIED.get(name, []), CONTRADICTED),
    }
    assert {claim: line["grade"] for claim, line in lines.items()} == {
        claim: wanted[claim] for claim in lines
    }
    assert lines.keys() == wanted.keys()
    stored = {line["id"]: line["measured"] for line in STORED[name]["claims"]}
    stale = {claim for claim, line in lines.items() if stored[claim] != line["measured"]}
    assert not stale, "make catalogue writes the figures again"


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
    content = read(f"{BU}/throughput").content()
    for part in ("vary", "ablations"):
        del content[part]
    if "cc" in set_up:
        content["flows"][0].update(set_up)
    else:
        content["links"][1].update(set_up)
    content["claims"] = [{**claim, "where": {}} for claim in content["claims"] if claim["id"] in lost]
    lines = graded(Experiment.build(content), lost)
    assert {claim: line["grade"] for claim, line in lines.items()} == dict.fromkeys(lost, CONTRADICTED)


def test_the_stored_data_are_of_these_experiments() -> None:
    assert list(STORED) == NAMES, "make catalogue"


@pytest.mark.parametrize("name", NAMES)
def test_the_stored_data_have_every_claim_and_ablation(name: str) -> None:
    """As the file has them now: what is published, where, and what is asked or not testable."""
    planned = plan(read(name), name)
    stored = {line["id"]: line for line in STORED[name]["claims"]}
    assert list(stored) == [claim.id for claim in planned.experiment.claims]
    for claim in planned.experiment.claims:
        line = stored[claim.id]
        assert (line["source"], line["metric"]) == (claim.source, claim.metric)
        published = claim.value if claim.value is not None else claim.order or claim.range
        assert line["published"] == (list(published) if isinstance(published, tuple) else published)
        assert (line["grade"] == OPEN) == (claim.asked is not None)
        if claim.not_testable is not None or claim.asked is not None:
            assert line["reason"] == (claim.not_testable or claim.asked)
    told = {
        (claim, other["about"], json.dumps(other["setting"]))
        for claim, line in stored.items()
        for other in line.get("ablations", [])
    }
    assert told == {
        (claim.id, part.about, json.dumps(part.setting))
        for part in planned.ablations
        for claim in part.claims
    }
    tables = [(table["source"], table["published"]) for table in STORED[name]["flow_tables"]]
    assert tables == [
        (table.source, sorted(table.published, reverse=True)) for table in planned.experiment.flow_tables
    ]


def test_the_pages_say_what_the_stored_data_say() -> None:
    stale = [
        str(file.relative_to(ROOT))
        for file, text in pages.all_pages(DATA, PAGE).items()
        if not file.exists() or file.read_text(encoding="utf-8") != text
    ]
    assert not stale, "make catalogue writes the pages again"
    assert DATA["grades"] == grades(line for part in DATA["experiments"] for line in part["claims"])
    assert DATA["failed"] == []


def test_kernels_in_real_time_have_columns_beside_ours() -> None:
    part = STORED["geni-tcp/step4"]
    claim = part["claims"][0]["id"]
    line = {
        "measured": 8.693792,
        "grade": "limited",
        "agrees": True,
        "reason": "2 of 3 runs: the link was late",
    }
    found = {
        "kernel": "6.1.0-56-amd64",
        "duration_s": [10.0],
        "runs": 3,
        "failed": [],
        "idle_shares": [0.69, 0.87],
        "limited_runs": 2,
        "claims": {claim: line},
    }
    page = pages.catalogue_page([part], {part["name"]: {"netns": found}})
    rows = [row for row in page.splitlines() if row.startswith(f"| {claim} |")]
    assert [row.endswith("| 8.694 limited, agrees |") for row in rows] == [True]
    missing = next(row for row in page.splitlines() if row.startswith(f"| {part['claims'][1]['id']} |"))
    assert missing.endswith("| – |")
    assert (
        "netns: 3 runs of 10 s on Linux 6.1.0-56-amd64, processors idle for 69 % to 87 % of the time; "
        "the machine limited 2 (the link was late); 1 of 1 limited figures agree with the publication."
    ) in page


def test_each_contradicted_claim_has_an_experiment_that_shows_why() -> None:
    missing = {
        f"{name} {line['id']}"
        for name, part in STORED.items()
        for line in part["claims"]
        if line["grade"] == CONTRADICTED and not line.get("ablations") and not name.startswith(GRIDS)
    }
    assert (
        missing
        <= {
            "bufferbloat-2011/shaping text-slower-thus-fewer-side-effects",  # the rows beside it are the experiment
            "caia-110729a/adsl1 ping-cdg",  # rtt-cdg, by pings
            "caia-110729a/wifi ping-cdg",
            "linux-vegas-1999/lan vegas-faster",  # still to be made
        }
    )


def test_what_is_drawn_is_there_and_on_the_page() -> None:
    for publication in {name.split("/")[0] for name in NAMES}:
        folder = ROOT / "experiments" / publication
        for stem in catalogue.publication(publication).distributions:
            for kind in ("rtt", "throughput"):
                assert (folder / f"{stem}-{kind}.svg").exists()
                assert f"({stem}-{kind}.svg)" in (folder / "README.md").read_text()
