"""Figures in sentences: the text of a value follows from the ending of its name."""

from __future__ import annotations

from collections.abc import Mapping

from dragstrip.display import quantity


def figure(name: str, value: float | str) -> str:
    """Return a value as text, with the unit that the ending of its name says."""
    if isinstance(value, str):
        return value
    if name.endswith("_ms"):
        return quantity.milliseconds(value)
    if name.endswith("_bps"):
        return quantity.rate(value)
    if name.endswith("_bytes"):
        return quantity.size(value)
    if name.endswith("_share"):
        return quantity.percent(value)
    return quantity.count(value) if value == round(value) else quantity.digits(value)


def sentence(template: str, figures: Mapping[str, float | str]) -> str:
    """Return a sentence with its figures in place of their names in braces."""
    return template.format(**{name: figure(name, value) for name, value in figures.items()})
