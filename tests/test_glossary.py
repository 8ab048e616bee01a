"""The glossary: `dragstrip help TERM`, and docs/reference/glossary.md."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragstrip import cli
from dragstrip.cli.topics import TOPICS
from dragstrip.display import glossary
from dragstrip.errors import BadInputError
from tools import glossary as glossary_page

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("bufferbloat", "bufferbloat"),
        ("bdp", "BDP"),
        ("jain", "Jain's index"),
        ("Bandwidth-delay product", "BDP"),
        ("fq_codel", "FQ-CoDel"),
        ("HyStart++", "HyStart"),
        ("slow start", "slow start"),
    ],
)
def test_a_term_is_explained_by_each_of_its_names(words: str, name: str) -> None:
    term = glossary.find(words)
    assert term is not None
    assert term.name == name
    shown = CliRunner().invoke(cli.app, ["help", *words.split()])
    assert shown.exit_code == 0
    assert shown.output.startswith(term.heading)
    assert " ".join(term.text.split()) in " ".join(shown.output.split())


def test_each_spelling_names_a_single_term_and_no_topic() -> None:
    names = glossary.names()
    assert len(glossary.terms()) >= 40
    assert [name for name, times in Counter(names).items() if times > 1] == []
    assert set(names) & set(TOPICS) == set()


def test_related_terms_exist() -> None:
    for term in glossary.terms().values():
        assert set(term.see) <= set(glossary.terms()), term.name
        assert len(term.text.split()) >= 12, term.name


def test_an_unknown_term_names_the_nearest() -> None:
    refused = CliRunner().invoke(cli.app, ["help", "bufferblot"])
    assert isinstance(refused.exception, BadInputError)
    assert 'did you mean "bufferbloat"?' in str(refused.exception)


def test_the_page_has_each_term() -> None:
    assert (ROOT / "docs/reference/glossary.md").read_text() == glossary_page.page(), "make glossary"


def test_links_lead_to_the_page_and_the_command() -> None:
    page = (ROOT / "docs" / glossary.PAGE).read_text(encoding="utf-8")
    for name in glossary.terms():
        link = glossary.link(name)
        assert link is not None
        assert f'<a id="{link.partition("#")[2]}"></a>' in page
        tooltip = glossary.tooltip(name)
        assert tooltip is not None
        assert "\n" not in tooltip
        assert tooltip.endswith(".")
    assert (glossary.link("nonsense"), glossary.tooltip("nonsense")) == (None, None)
    assert glossary.tooltip("bdp") == (
        "BDP: Bandwidth-delay product. The bytes that a path holds without a queue: bottleneck rate times base "
        "round-trip time."
    )
    assert (
        glossary.hint("jain", "BDP", "nonsense", "jain") == "Terms: dragstrip help jain, dragstrip help BDP"
    )
    assert glossary.hint("nonsense") == ""


def test_a_diagnosis_names_the_commands_that_explain_its_findings() -> None:
    diagnosed = CliRunner().invoke(cli.app, ["diagnose", "--path", "cable"])
    assert diagnosed.exit_code == 0
    assert [line for line in diagnosed.stdout.splitlines() if "dragstrip help" in line] == [
        "Terms: dragstrip help bufferbloat, dragstrip help fifo"
    ]


def test_links_of_tutorials_lead_to_terms() -> None:
    anchors = {term.anchor for term in glossary.terms().values()}
    for name in ("student", "engineer"):
        page = (ROOT / "docs/tutorials" / f"{name}.md").read_text(encoding="utf-8")
        links = re.findall(r"reference/glossary\.md#([\w+-]+)", page)
        assert len(links) >= 3
        assert set(links) <= anchors
