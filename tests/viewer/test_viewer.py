"""What the viewer is made of, without a browser: one script of modules, whole coordinates, colours to tell apart."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragstrip.display import colours as colours_module
from dragstrip.display import html
from dragstrip.display.colours import GREY, KNOWN, ON_DARK, PALETTE, assign
from dragstrip.report import embed, viewer
from dragstrip.report.figure import Axis
from dragstrip.results.comparison.setups import Contender, _dashed

IMPORT = re.compile(r"^import (?:\* as \w+|\{(?P<names>[^}]*)\}) from \"\./(?P<module>\w+)\.js\";$")


def test_every_module_imports_from_earlier_ones_what_they_export() -> None:
    files = {path.stem for path in viewer.HERE.glob("*.js")}
    assert set(viewer.MODULES) == files
    exported: dict[str, set[str]] = {}
    for name in viewer.MODULES:
        text = (viewer.HERE / f"{name}.js").read_text(encoding="utf-8")
        assert text.startswith("// "), "a file says in its first line what lives there"
        for line in text.splitlines():
            if line.startswith("import"):
                found = IMPORT.match(line)
                assert found, f"{name}.js: imports stand on one line: {line}"
                names = [word.strip() for word in (found["names"] or "").split(",") if word.strip()]
                assert set(names) <= exported[found["module"]], line
        exported[name] = set(re.findall(r"^export (?:const|function) (\w+)", text, re.M))
        assert len(exported[name]) == len(re.findall(r"^export\b", text, re.M)), name


def test_the_script_has_neither_imports_nor_requests() -> None:
    text = viewer.script()
    assert not re.search(r"^(import|export)\b", text, re.M)
    assert not re.search(r"fetch|XMLHttp|WebSocket|eval\(|Function\(|innerHTML|import\(", text)
    assert "</" not in text
    assert len(text.encode()) < 60_000


def test_the_policy_names_style_and_script_by_hash() -> None:
    # echo -n a | openssl dgst -sha256 -binary | base64
    known = "'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='"
    assert html.policy("a") == f"default-src 'none'; style-src {known}; base-uri 'none'; form-action 'none'"
    assert f"script-src {known};" in html.policy("b", "a")
    assert "unsafe" not in html.policy("a", "b")


@pytest.mark.parametrize("axis", [Axis("x", 0, 30), Axis("x", 0.5, 900, logarithmic=True), Axis("x", 2, 2)])
def test_coordinates_are_whole_steps_of_the_axis(axis: Axis) -> None:
    values = np.random.default_rng(1).uniform(axis.low, axis.high, 500)
    steps = embed.steps(values, axis, 4000)
    assert all(type(step) is int for step in steps)
    places = np.cumsum(steps) / 4000
    if axis.logarithmic:
        back = axis.low * (axis.high / axis.low) ** places
        assert np.abs(np.log(back / values)).max() <= math.log(axis.high / axis.low) / 8000 * 1.001
    else:
        assert (
            np.abs(axis.low + places * (axis.high - axis.low) - values).max()
            <= (axis.high - axis.low) / 8000 * 1.001
        )


# --- colours ----------------------------------------------------------------------------------------

# Machado, Oliveira, Fernandes 2009: the matrices of severity 1.0, on linear sRGB.
VISIONS = {
    "normal": np.eye(3),
    "protan": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deutan": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritan": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip
SCHEMES = {
    "light": (list(PALETTE), ["#ffffff", "#f6f8fa"], 3.0),
    "dark": ([ON_DARK[colour] for colour in PALETTE], ["#0d1117", "#161b22"], 4.5),
}


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(colour: str, ground: str) -> float:
    """WCAG 2.2."""
    light = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (colour, ground))
    return (light[1] + 0.05) / (light[0] + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB under D65."""
    matrix = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
    xyz = np.array(matrix) @ np.clip(rgb, 0, 1) / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def difference(one: np.ndarray, two: np.ndarray) -> float:
    """CIEDE2000 (Sharma, Wu, Dalal 2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, two
    mean_c = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    g = 0.5 * (1 - math.sqrt(mean_c**7 / (mean_c**7 + 25**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = math.degrees(math.atan2(b1, a1)) % 360, math.degrees(math.atan2(b2, a2)) % 360
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    if c1 * c2 == 0:
        h = h1 + h2
    elif abs(h1 - h2) <= 180:
        h = (h1 + h2) / 2
    else:
        h = (h1 + h2 + (360 if h1 + h2 < 360 else -360)) / 2
    dl, dc, dh = l2 - l1, c2 - c1, 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2))
    ml, mc = (l1 + l2) / 2, (c1 + c2) / 2
    cos = [math.cos(math.radians(x)) for x in (h - 30, 2 * h, 3 * h + 6, 4 * h - 63)]
    t = 1 - 0.17 * cos[0] + 0.24 * cos[1] + 0.32 * cos[2] - 0.20 * cos[3]
    sl = 1 + 0.015 * (ml - 50) ** 2 / math.sqrt(20 + (ml - 50) ** 2)
    sc, sh = 1 + 0.045 * mc, 1 + 0.015 * mc * t
    rt = (
        -2
        * math.sqrt(mc**7 / (mc**7 + 25**7))
        * math.sin(math.radians(60 * math.exp(-(((h - 275) / 25) ** 2))))
    )
    return math.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + rt * dc / sc * dh / sh)


def test_the_difference_of_colours_is_that_of_the_paper() -> None:
    """Sharma, Wu, Dalal 2005, table 1: pairs 1, 7, 17 and 25."""
    for one, two, expected in [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 0, 0), (50, -1, 2), 2.3669),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ]:
        assert difference(np.array(one), np.array(two)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_colours_can_be_told_apart_and_seen(scheme: str) -> None:
    colours, grounds, least = SCHEMES[scheme]
    for colour in [*colours, GREY if scheme == "light" else ON_DARK[GREY]]:
        assert min(contrast(colour, ground) for ground in grounds) >= least
    for vision in VISIONS.values():
        seen = [lab(vision @ linear(colour)) for colour in colours]
        assert min(difference(a, b) for a, b in itertools.combinations(seen[:5], 2)) >= 15
        assert min(difference(a, b) for a, b in itertools.combinations(seen, 2)) >= 13


@pytest.mark.parametrize(("scheme", "ground"), [(0, "#ffffff"), (1, "#0d1117")])
def test_colours_of_phases_differ_from_those_of_flows_and_from_each_other(scheme: int, ground: str) -> None:
    """The playground's strips; their words stand on them and in a legend, so that colour alone says nothing."""
    look = json.loads((Path(colours_module.__file__).parent / "look.json").read_text())
    strips = [pair[scheme] for pair in look["strips"].values()]
    flows = [lab(linear(look["colours"][name][scheme])) for name in (*look["palette"], "grey")]
    marks = [lab(linear(colour)) for colour in strips]
    assert min(difference(mark, flow) for mark in marks for flow in flows) >= 15
    assert min(difference(a, b) for a, b in itertools.combinations(marks, 2)) >= 20
    assert min(contrast(colour, ground) for colour in strips) >= 1.9


@pytest.mark.parametrize("case", json.loads((Path(__file__).parent / "looks.json").read_text()))
def test_a_flow_looks_as_in_the_playground(case: dict[str, list[Any]]) -> None:
    """The playground's own test reads the same cases (playground/test/link.test.ts)."""
    colours = assign(case["algorithms"])
    found = _dashed([Contender(str(at), "", cc, colours[cc]) for at, cc in enumerate(case["algorithms"])])
    assert [it.colour for it in found] == case["colours"]
    assert [list(it.dash) for it in found] == case["dashes"]


def test_every_algorithms_colour_has_one_for_dark_pages() -> None:
    assert {*KNOWN.values(), *PALETTE} <= set(ON_DARK)
