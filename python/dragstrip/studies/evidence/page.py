"""The evidence as one HTML file without scripts or requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragstrip.display import html
from dragstrip.studies.evidence import ranges, text
from dragstrip.studies.evidence.document import CONTRADICTED, IN_PART, OPEN, SHOWN, SUPPORTED

NAME = "evidence.html"
LOOKS = {SUPPORTED: "good", IN_PART: "good", OPEN: "open", CONTRADICTED: "bad"}
"""Looks of verdicts; the others have the look of what is even."""


def page(document: Mapping[str, Any]) -> str:
    """Return the page; everything that comes from outside is escaped."""
    return html.render(
        "studies/evidence/page.html",
        title=text.heading(document),
        document=document,
        made_by=text.made_by(document),
        counts=text.counts(document),
        note=text.note(document),
        figure=text.figure,
        difference=text.difference,
        ranges=ranges.text,
        row_count=text.row_count,
        looks=LOOKS,
        shown=SHOWN,
    )
