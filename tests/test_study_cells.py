"""Answers of studies in a notebook's cell: a picture, a sentence, a table; no more than a screen."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.display import notebook
from dragstrip.experiment.saved_paths import SavedPath
from dragstrip.verbs import AttackDocument, Diagnosis, PassportDocument, WhatIfVerdict

FIND = {
    "name": "utilisation-loss", "value": 0.125, "figure": 1.43, "reference": 11.5, "unit": "Mbit/s",
    "words": "2.1 % <random> loss",
}  # fmt: skip
ATTACK = {"algorithm": "cubic", "evaluations": 26, "goals": [{}, {}], "finds": [FIND] * 9}
FIGURES = {
    "goodput_bps": {"value": 8e6, "low": 7e6, "high": 9e6},
    "rtt_ms_p50": {"value": 30.0, "low": 30.0, "high": 30.0},
    "rtt_ms_p95": None,
    "retransmitted_share": {"value": 0.01, "low": 0.0, "high": 0.02},
}
CAPTURE = {"goodput_bps": 5e6, "rtt_ms_p50": 80.0, "rtt_ms_p95": 90.0, "retransmitted_share": 0.02}
WHATIF = {
    "algorithm": "cubic", "sentence": "BBR would have had <8 Mbit/s>.", "capture": CAPTURE,
    "what_if": [{"algorithm": "bbr", **FIGURES}],
}  # fmt: skip


def parts(answer: Any) -> tuple[str, list[str]]:
    """The HTML that a notebook shows, and the texts in it."""
    shown = answer._repr_html_()
    return shown, [html.unescape(text) for text in re.findall(r">\s*([^<>]*[^<>\s])\s*<", shown)]


def expect_a_screen(shown: str) -> None:
    assert shown.count("<svg") == shown.count("</svg>") >= 1
    assert 1 <= shown.count("<p>") <= 6
    assert shown.count("<table") == 1
    assert shown.count("<tr>") <= 8
    height = int(re.findall(r'<svg [^>]*?height="(\d+)', shown)[0])
    assert height <= 500
    assert 'fill="currentColor"' in shown  # on white and on dark


def test_a_diagnosis_shows_what_its_changes_do() -> None:
    answer = dragstrip.diagnose(path="home DSL")
    shown, words = parts(answer)
    expect_a_screen(shown)
    assert str(answer["verdict"]) in words
    advice = answer["advice"][0]
    assert "baseline" in words
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', shown)]
    states = [advice["as_found"], *advice["changes"][: len(widths) - 1]]
    values = [state["ping_p95_ms"] for state in states]
    assert [round(width / widths[0], 2) for width in widths] == [
        pytest.approx(value / values[0], abs=0.01) for value in values
    ]


def test_a_passport_shows_its_chapters() -> None:
    answer = dragstrip.passport("cubic", quick=True, only="theory")
    shown, words = parts(answer)
    assert "<svg" in shown
    assert "theory" in words
    assert answer["sentences"]["fails"] in words
    row = {"id": "a", "title": "<row>", "verdict": "missed", "rule": "at most 1"}
    chapter = {"name": "theory", "rows": 1, "verdicts": {"missed": 1}}
    document = {"rows": [row], "worst": ["a"], "chapters": [chapter], "sentences": {"fails": "Fails."}}
    shown, _ = parts(PassportDocument(document, ""))
    expect_a_screen(shown)
    assert "&lt;row&gt;" in shown


def test_an_attack_shows_its_finds() -> None:
    shown, words = parts(AttackDocument(ATTACK, ""))
    expect_a_screen(shown)
    assert "1.43 of 11.5 Mbit/s" in words
    assert "12.5 %" in words
    assert "3 more finds: the document has all." in words
    assert "<random>" not in shown
    none, _ = parts(AttackDocument({**ATTACK, "finds": []}, ""))
    assert "0 finds" in none
    assert "<svg" not in none


def test_a_what_if_shows_capture_and_predictions() -> None:
    shown, words = parts(WhatIfVerdict(WHATIF, "", SavedPath("", {})))
    expect_a_screen(shown)
    assert {"5 Mbit/s", "8 Mbit/s", "7 Mbit/s to 9 Mbit/s", "30 ms", "–"} <= set(words)
    refused, _ = parts(WhatIfVerdict({**WHATIF, "what_if": []}, "", SavedPath("", {})))
    assert "&lt;8 Mbit/s&gt;" in refused


def test_a_sweep_shows_its_map(tmp_path: Path) -> None:
    experiment = dragstrip.Experiment.build(
        {"duration": "1s", "path": {"rate": "5mbit", "rtt": "20ms"}, "flows": [{"cc": "cubic"}]}
    )
    vary = {"rate": "2mbit,5mbit", "path.queue": "1bdp,fq_codel", "flow.cc": "reno,bbr"}
    answer = dragstrip.sweep(experiment, tmp_path / "map", vary=vary, report=False)
    shown, words = parts(answer)
    expect_a_screen(shown)
    assert {"path.rate (Mbit/s)", "path.queue", "reno", "bbr"} <= set(words)
    assert any(word.startswith("Most goodput: ") for word in words)


def test_every_drawer_draws_a_class_that_there_is() -> None:
    import dragstrip
    from dragstrip import verbs

    others = {"Experiment", "Shell", "ShellRun"}
    names = set(notebook.DRAWERS) - others
    assert all(issubclass(getattr(verbs, name), Diagnosis.__mro__[1]) for name in names)
    assert all("_repr_html_" in dir(getattr(dragstrip, name)) for name in others)
