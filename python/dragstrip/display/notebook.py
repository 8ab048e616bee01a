"""Registry of the functions that draw objects of lower layers for a notebook."""

from __future__ import annotations

import importlib
from typing import Any

DRAWERS = {
    "Experiment": ("dragstrip.interop.pictures", "experiment_html"),
    "Diagnosis": ("dragstrip.interop.studies", "diagnosis_html"),
    "WhatIfVerdict": ("dragstrip.interop.studies", "whatif_html"),
    "PassportDocument": ("dragstrip.interop.studies", "passport_html"),
    "AttackDocument": ("dragstrip.interop.studies", "attack_html"),
    "SweepResult": ("dragstrip.interop.studies", "sweep_html"),
    "MeasuredPath": ("dragstrip.interop.studies", "path_html"),
    "Shell": ("dragstrip.interop.studies", "shell_html"),
    "ShellRun": ("dragstrip.interop.studies", "shell_run_html"),
}
"""By class: module and function that return an object's HTML, loaded when a notebook asks."""


def html_of(thing: Any) -> str:
    """Return an object's HTML, as `_repr_html_` gives it to a notebook."""
    module, function = DRAWERS[type(thing).__name__]
    html: str = getattr(importlib.import_module(module), function)(thing)
    return html
