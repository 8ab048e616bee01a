"""The boundary between Python and the core: what crosses it, and how."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragstrip import _core
from dragstrip.errors import BadInputError

SOURCES = Path(__file__).parents[1] / "crates/py/src"
EXPORTED = re.compile(r"^( *)(?:pub )?fn (\w+)(<[^>]*>)?\((.*?)^\1\}$", re.MULTILINE | re.DOTALL)
NO_WORK = {
    "stack_of_release",
    "__len__",
    "flows",
    "queued_links",
    "measure_of",
    "has_window",
    "hungry",
    "__reduce__",
    "is_algorithm_alone",
    "own_name",
    "actions",
    "algorithm_table",
    "fractions",
    "quic_table",
    "limiting_factor",
}
"""What takes nothing from outside, and looks something up."""


def exported() -> dict[str, str]:
    """Text of every function that Python can call, by name."""
    found = {}
    for file in sorted(SOURCES.glob("*.rs")):
        text = file.read_text()
        for start in re.finditer(r"#\[pyfunction|#\[pymethods\]\nimpl", text):
            rest = text[start.end() :]
            end = re.search(r"^\}$", rest, re.MULTILINE)
            assert end
            inside = rest[: end.end()]
            found |= {match[2]: match[0] for match in EXPORTED.finditer(inside)}
    return found


def test_every_call_turns_a_panic_into_an_error() -> None:
    functions = exported()
    assert {
        "run",
        "conform",
        "problems",
        "flow_facts",
        "path_facts",
        "series",
        "figure",
        "planned",
        "jain",
    } <= set(functions)
    bare = {
        name
        for name, text in functions.items()
        if not re.search(r"\bcaught(_at)?\(|\bread\(|\bself\.each\(", text)
    }
    assert bare == NO_WORK


def scenario(rate_bps: int | None = 10_000_000, mtu: int = 1500, queue: str = "bfifo limit 2mb") -> dict:
    """One flow between two hosts."""
    hosts = [{"kind": "host", "name": name, "mtu_bytes": mtu} for name in ("a", "b")]
    there = {"name": "a-b", "from": "a", "to": "b", "rate_bps": rate_bps, "delay_ns": 20_000_000}
    back = {"name": "b-a", "from": "b", "to": "a", "delay_ns": 20_000_000}
    flow = {
        "label": "f",
        "sender": "a",
        "receiver": "b",
        "transport": {"protocol": "tcp", "cc": "cubic"},
        "application": {"kind": "bulk"},
    }
    return {
        "name": "x",
        "seed": 1,
        "duration_ns": 5 * 10**9,
        "nodes": hosts,
        "links": [{**there, "qdisc": _core.parse_qdisc(queue)}, back],
        "flows": [flow],
    }


@pytest.mark.parametrize("mtu", [65_521, 65_522, 65_535])
def test_the_largest_packets_are_as_long_as_they_are(mtu: int) -> None:
    from dragstrip.engines.sim.engine import simulate

    flows = simulate(scenario(mtu=mtu)).tables["flows"]
    goodput = flows["bytes_received"].to_pylist()[0] * 8 / 5
    assert 8_000_000 < goodput < 10_000_000


@pytest.mark.parametrize(
    ("queue", "field"),
    [
        ("tbf rate 1bit burst 1600 limit 100kb", "links[0].qdisc.rate_bps"),
        ("htb rate 7bit", "links[0].qdisc.rate_bps"),
        ("htb rate 100bit", "links[0].qdisc.rate_bps"),
        ("netem rate 1bit", "links[0].qdisc.rate_bps"),
    ],
)
def test_a_rate_that_a_shaper_would_not_keep_is_refused(queue: str, field: str) -> None:
    fields = [found[0] for found in _core.problems_of(scenario(rate_bps=None, queue=queue))]
    assert field in fields
    ordinary = queue.replace("1bit", "1kbit").replace("7bit", "1kbit").replace("100bit", "1kbit")
    assert not _core.problems_of(scenario(rate_bps=None, queue=ordinary))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# t\n1e30 connect\n", 2),
        ("# t\npeer mss 1\n0 < syn\n", 2),
        ("# t\nmtu 39\n0 connect\n", 2),
        ("# t\nopen server 100\n100 < data 0..1000000000\n", 3),
    ],
)
def test_a_script_out_of_bounds_is_refused_with_its_line(text: str, line: int) -> None:
    from dragstrip.studies.validation.conformance import play

    with pytest.raises(BadInputError, match=f"line {line}: "):
        play({"own.script": text}, "sim")
