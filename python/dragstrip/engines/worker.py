"""A worker process: reads runs as lines of JSON, writes recordings and measures, answers in lines of JSON.

Started by `pool.py`. It dies with its parent, and what goes wrong in one run (a crash of the core
included) is that run's failure alone.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import IO, Any

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    """Serves runs until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    _die_with_parent(int(sys.argv[1]))
    # What the core or a library prints must not end up between our answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        _serve(json.loads(line), answers)


def _die_with_parent(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        sys.exit(1)


def _serve(task: dict[str, Any], answers: IO[str]) -> None:
    from dragstrip.engines import named
    from dragstrip.engines.recall import recall
    from dragstrip.errors import BadInputError, DragstripError
    from dragstrip.measures import summarise
    from dragstrip.recording import write

    def answer(kind: str, **content: Any) -> None:
        answers.write(json.dumps({"kind": kind, **content}) + "\n")
        answers.flush()

    try:
        engine = named(task["engine"])
        run = partial(recall, engine) if task["recalled"] else engine.run
        recording = run(task["scenario"], task["options"], lambda now_ns: answer("progress", now_ns=now_ns))
        recording.provenance.update(task["provenance"])
        write(recording, Path(task["folder"]))
        answer("done", summary=summarise(recording))
    except BadInputError as error:
        answer("failed", reason=str(error), wrong=error.args)
    except (DragstripError, OSError, MemoryError) as error:
        answer("failed", reason=str(error) or type(error).__name__)
    except Exception as error:  # noqa: BLE001  (any other fault is this run's failure, told in full)
        import traceback

        answer("failed", reason=f"{type(error).__name__}: {error}", trace=traceback.format_exc())


if __name__ == "__main__":
    main()
