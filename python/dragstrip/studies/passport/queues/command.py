"""The request of `dragstrip passport --queue`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment.comparison import COMMAND_LINE
from dragstrip.experiment.expand import expand
from dragstrip.studies.passport import against
from dragstrip.studies.passport.command import PassportKind, PassportRequest
from dragstrip.studies.passport.queues import suite
from dragstrip.studies.passport.queues.document import document
from dragstrip.studies.passport.queues.scenario import QueueSubject
from dragstrip.studies.passport.queues.words import BASELINES, expect_queue
from dragstrip.studies.passport.rows import PassportRow


def _expect_runnable(rows: Sequence[PassportRow], subject: QueueSubject) -> None:
    """Raise `BadInputError` for words that no path of the rows takes, such as a limit below a packet."""
    try:
        for row in rows[:1]:
            expand(row.scenario.experiment(subject))
    except BadInputError as error:
        raise BadInputError("--queue", Raw(error.value), error.expected, COMMAND_LINE) from None


QUEUE = PassportKind(BASELINES, document)


def read_request(
    queue: str, *, quick: bool, only: str | None, baseline_file: Path | None = None
) -> PassportRequest:
    """Reads the request of the command line; raises `BadInputError`, in its words, for what is wrong."""
    subject = QueueSubject(expect_queue(queue))
    chapters = suite.chapters(only)
    before = None if baseline_file is None else against.read(baseline_file, "queue", suite.VERSION)
    rows = tuple(suite.rows(subject.word, chapters, quick))
    _expect_runnable(rows, subject)
    return PassportRequest(subject, chapters, quick, rows, before, str(baseline_file or ""), kind=QUEUE)
