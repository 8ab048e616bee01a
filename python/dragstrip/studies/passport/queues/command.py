"""The request of `dragstrip passport --queue`."""

from __future__ import annotations

from pathlib import Path

from dragstrip.studies.passport import against
from dragstrip.studies.passport.command import PassportKind, PassportRequest
from dragstrip.studies.passport.queues import suite
from dragstrip.studies.passport.queues.document import document
from dragstrip.studies.passport.queues.scenario import QueueSubject
from dragstrip.studies.passport.queues.words import BASELINES, expect_queue

QUEUE = PassportKind(BASELINES, document)


def read_request(
    queue: str, *, quick: bool, only: str | None, baseline_file: Path | None = None
) -> PassportRequest:
    """Reads the request of the command line; raises `BadInputError`, in its words, for what is wrong."""
    subject = QueueSubject(expect_queue(queue))
    chapters = suite.chapters(only)
    before = None if baseline_file is None else against.read(baseline_file, "queue", suite.VERSION)
    rows = tuple(suite.rows(subject.word, chapters, quick))
    return PassportRequest(subject, chapters, quick, rows, before, str(baseline_file or ""), kind=QUEUE)
