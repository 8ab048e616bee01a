"""Algorithms scored on hidden scenarios, which a seed draws and their authors have not seen.

`entrants` reads the algorithms, `draws` draws the scenarios, `score` scores a run, `command` judges a list of
algorithms, and `console` shows the scores. Does not belong here: rows with rules and sources, which are a
passport's.
"""

from __future__ import annotations

from dragstrip.studies.judge.command import Judgement, judge, judge_entrants
from dragstrip.studies.judge.entrants import text_entrant

__all__ = ["Judgement", "judge", "judge_entrants", "text_entrant"]
