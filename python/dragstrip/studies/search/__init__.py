"""A search for algorithms as texts: a callable proposes them, and drawn scenarios score them.

`trials` is a text with its score, `log` keeps the trials in a file and takes them up again, and `command`
alternates between proposals and scores. Does not belong here: the scores themselves (`studies/judge`), and
searchers, which are the caller's (docs/examples/search).
"""

from __future__ import annotations

from dragstrip.studies.search.command import SearchResult, SearchSettings, search
from dragstrip.studies.search.trials import Proposer, SearchTrial

__all__ = ["Proposer", "SearchResult", "SearchSettings", "SearchTrial", "search"]
