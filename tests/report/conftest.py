"""Output folders made once and only read."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragstrip.report.paper import Paper
from dragstrip.report.write import write_report

from . import synthetic

FIVE = ["reno", "cubic", "vegas", "cdg", "bbr"]
CLAIMS = [
    {"id": "reno-rtt", "source": "Figure 1", "metric": "rtt_ms_p50", "published": 492, "measured": 497.2,
     "unit": "ms", "grade": "reproduced"},
    {"id": "vegas-rtt", "source": "Figure 1", "metric": "rtt_ms_p50", "published": [70, 76], "measured": 51.3,
     "unit": "ms", "grade": "contradicted"},
    {"id": "cdg-rtt", "source": "Figure 1", "metric": "rtt_ms_p50", "published": 134, "measured": None,
     "unit": "ms", "grade": "not testable here", "reason": "ADSL's ATM cells <are> not modelled yet"},
    {"id": "order", "source": "§IV", "metric": "goodput_bps", "published": ["vegas", "reno"],
     "measured": ["reno", "vegas"], "unit": "order", "grade": "contradicted"},
]  # fmt: skip

PLANS = {
    "five": synthetic.compare(FIVE, claims=CLAIMS),
    "one": synthetic.compare(["cubic"], duration_s=10.0, claims=None),
    "repeats": synthetic.compare(["reno", "vegas"], repeats=3, duration_s=20.0),
    "together": synthetic.together({"reno": 0.161, "cubic": 0.119, "vegas": 0.063, "bbr": 0.657}),
    "crowd": synthetic.crowd("reno", 30, rate_bps=100_000_000, duration_s=20.0),
    "udp": synthetic.together({"cubic": 0.7, "udp": 0.1}, duration_s=10.0),
    "only-udp": synthetic.compare(["udp"], duration_s=10.0),
    "unknown": synthetic.compare([f"alg{i}" for i in range(9)], duration_s=5.0),
    "failed": synthetic.Plan(
        [
            synthetic.RunPlan("reno", [synthetic.FlowPlan("reno", "reno")]),
            synthetic.RunPlan("cubic", [], failed="worker killed <by> signal 9"),
        ],
        duration_s=5.0,
    ),
    "no-flow-rows": synthetic.Plan([synthetic.RunPlan("empty", [])], duration_s=5.0),
    "nothing": synthetic.Plan([]),
    "short": synthetic.compare(["reno", "cubic"], duration_s=0.5),
}


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory):  # noqa: ANN201 - a function from name to folder
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = synthetic.write(PLANS[name], tmp_path_factory.mktemp(name))
        return made[name]

    return get


@pytest.fixture(scope="session")
def page_of(folder_of):  # noqa: ANN001, ANN201 - a function from name to the page, written once
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = write_report(folder_of(name))
        return made[name]

    return get


@pytest.fixture(scope="session")
def figures_of(folder_of):  # noqa: ANN001, ANN201 - a function from name to the folder of figures, written once
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = write_report(folder_of(name), Paper(("svg", "png", "pdf"))).parent / "figures"
        return made[name]

    return get
