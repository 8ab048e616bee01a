"""Algorithms scored on hidden scenarios, which a seed draws and their authors have not seen.

`entrants` reads the algorithms, `draws` draws the scenarios, `score` scores a run, `command` judges a list of
algorithms, and `console` shows the scores. Does not belong here: rows with rules and sources, which are a
passport's.
"""

from __future__ import annotations

from dragstrip.studies.judge.command import Judgement, judge

__all__ = ["Judgement", "judge"]
