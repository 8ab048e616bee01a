"""The pages that people write: short lines, and none of the phrases that only their author understands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "fuzz", "conformance", "validation", "tests")
GENERATED = re.compile(r"do not edit\. -->|Generated from [\d,]+ runs by `make guide`")
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]
    if not GENERATED.search(page.read_text()[:1000])
)
LENGTH_MAX = 120

UNBROKEN = re.compile(r"\]\([^)\s]*\)|`[^`]*`|https?://\S+")
"""Links and code within a line, which cannot be broken."""
ODD = re.compile(
    r"\b(?:is|are) (?:said|told)\b|\bto be known\b|\baimed at\b|\bheld against\b|\bof one's own\b"
    r"|\bwhat (?:it|they) (?:lacks?|has not|have not)\b|\bwhat is missing\b|\basks nobody\b",
    re.IGNORECASE,
)
"""A private dialect. An engineer writes: reports, notes, target, compared with, of your own, limitations."""


def prose(text: str) -> list[tuple[int, str]]:
    """The lines of a page with their numbers, without code blocks and tables."""
    fenced = False
    block = True  # whether indented lines are code here
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.lstrip().startswith("|"):
            continue
        elif not line.strip():
            block = True
        elif not (block and line.startswith("    ")):
            block = False
            found.append((number, line))
    return found


def test_pages_are_found_and_generated_ones_are_not() -> None:
    names = {str(page.relative_to(ROOT)) for page in PAGES}
    assert {"README.md", "docs/how-to/compare.md", "docs/decisions/0004-stop-is-a-reset.md"} <= names
    assert not {"docs/reference/fidelity.md", "docs/how-to/which-queue.md"} & names
    assert len(names) > 40


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_reads_well(page: Path) -> None:
    lines = prose(page.read_text())
    long = [number for number, line in lines if len(UNBROKEN.sub("", line)) > LENGTH_MAX]
    assert not long, f"longer than {LENGTH_MAX} characters: lines {long}"
    odd = [f"{number}: {found[0]}" for number, line in lines if (found := ODD.search(UNBROKEN.sub("", line)))]
    assert not odd, odd
