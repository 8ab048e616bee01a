"""`attack` with random options, of which half are interrupted: it succeeds, is refused in one line, or is interrupted;
what is written then is whole, and every find replays with its figure, to the last digit.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path

from common import check_answer, dragstrip, end, leftovers, main, start

ALGORITHMS = ("reno", "cubic", "vegas", "bbr", "cubic:beta=0.9", "fixed:window=20")
GOALS = ("utilisation", "starvation", "neighbour", "stall")
VECTORS = ("cross", "loss", "jitter", "acks", "changes", "rtt")
DOCUMENT = "attack.json"
INTERRUPTED = 130
AFTER_S = 4.0
"""Ctrl-C comes at most this much after the search has begun: Python's own start is not ours to interrupt."""


def options(draws: random.Random, evaluations: int) -> list[str]:
    """Words of a search of so many attacks."""
    words = ["attack", draws.choice(ALGORITHMS), "--seed", str(draws.randrange(1000))]
    for goal in draws.sample(GOALS, draws.randint(1, 2)):
        words += ["--goal", goal]
    for vector in draws.sample(VECTORS, draws.randint(1, 3)):
        words += ["--with", vector]
    words += ["--rate", f"{draws.choice((2, 5, 12))}mbit", "--rtt", f"{draws.choice((10, 40, 100))}ms"]
    words += ["--queue", draws.choice(("0.5bdp", "1bdp", "4bdp", "fq_codel"))]
    return [*words, "--duration", f"{draws.choice((2, 3, 5))}s", "--evaluations", str(evaluations)]


def searching(process: subprocess.Popen[str]) -> None:
    """Wait until the search has threads, or the process has ended."""
    while process.poll() is None and len(list(Path(f"/proc/{process.pid}/task").glob("*"))) < 2:
        time.sleep(0.01)


def replays(folder: Path, find: dict[str, object]) -> None:
    """The experiment of a find gives the figure of the document."""
    ended = dragstrip(folder, "run", f"finds/{find['name']}.toml", "--out", "again", "--no-report", "--json")
    check_answer(ended, 0)
    (claim,) = json.loads(ended.stdout)["claims"]
    assert claim["measured"] == find["figure"], (
        f"{find['name']}: {find['figure']}, replayed {claim['measured']}"
    )


def trial(number: int, folder: Path) -> str:
    """Number's search; every second one is interrupted after number's delay."""
    draws = random.Random(number)
    evaluations = draws.randint(150, 3000) if number % 2 else draws.randint(5, 150)
    process = start(folder, *options(draws, evaluations), "--out", "finds")
    if number % 2:
        searching(process)
        time.sleep(draws.uniform(0, AFTER_S))
        process.send_signal(signal.SIGINT)
    ended = end(process)
    if ended.status == -signal.SIGINT:
        # Python itself ends like this (130 to a shell) after its last line, or interrupted in an import.
        assert ended.error in ("", "interrupted"), f"killed at work: {ended}"
        assert "Traceback" not in ended.stderr, f"a traceback: {ended}"
        assert not leftovers(folder), f"left behind: {leftovers(folder)}"
        return "ended by Python"
    check_answer(ended, 0, 2, INTERRUPTED)
    assert not leftovers(folder), f"left behind: {leftovers(folder)}"
    finds = folder / "finds"
    if not finds.exists():
        assert ended.status != 0
        return "nothing yet" if ended.status == INTERRUPTED else "refused"
    document = json.loads((finds / DOCUMENT).read_text())
    assert document["partial"] == (ended.status == INTERRUPTED)
    for find in document["finds"]:
        assert (finds / f"{find['name']}.toml").is_file(), find["name"]
    if document["finds"]:
        replays(folder, draws.choice(document["finds"]))
    return "partial" if document["partial"] else "whole"


if __name__ == "__main__":
    main("attacks", trial, count=200, sample=2, about=__doc__)
