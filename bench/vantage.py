"""`dragstrip identify` on the same runs captured at the sender, behind the bottleneck, and at the receiver.

    python bench/vantage.py --write-docs docs/reference/whatif.md

Every built-in algorithm runs on a random path with a tail drop (`bench/whatif.py`); each
run is captured at all three places, and each capture is judged alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeAlias

import marked
from whatif import drawn

from dragstrip import _core
from dragstrip.analysis.whatif import identify, walk
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand

Result: TypeAlias = dict[str, str]
"""By place: `right`, `wrong` with the name, or the kind of an answer without one."""

PATHS = (100,)
DURATION = "25s"
PLACES = {"sender": "s1", "bottleneck": "r-d", "receiver": "d"}
"""Places by the host or the link that is captured, the latter where packets leave its queue."""
TITLES = ("at the sender", "behind the bottleneck", "at the receiver")
RENO = frozenset(("dctcp", "prague"))
"""Without ECN they are Reno, and right as it."""
MARKS = ("<!-- from bench/vantage.py -->", "<!-- end of bench/vantage.py -->")


def results(job: tuple[str, int]) -> Result:
    """Return what is answered of one algorithm's run on the path of this number, by place."""
    algorithm, number = job
    described = compare([algorithm], **drawn(number), duration=DURATION, seed=11)  # type: ignore[arg-type]
    scenario = expand(described)[0].scenario
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {place: Path(folder) / f"{point}.pcapng" for place, point in PLACES.items()}
        captured = [(PLACES[place], str(file)) for place, file in files.items()]
        _core.Scenario(scenario).run(None, (captured, (96, 96), ""), 1)
        for place, file in files.items():
            _, _, answer = walk.identify(file, None, quiet=True)
            answers[place] = answer.kind
            if answer.kind == identify.GIVEN:
                names = {algorithm, "reno"} if algorithm in RENO else {algorithm}
                is_right = not names.isdisjoint(answer.names)
                answers[place] = "right" if is_right else f"wrong: {answer.names[0]}"
    sys.stderr.write(f"{algorithm} {number} {answers}\n")
    return answers


def page(algorithms: Sequence[str], answers: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of the figures for docs/reference/whatif.md."""
    yield f"| truth | {' | '.join(TITLES)} |"
    yield "|---|---|---|---|"
    for at, algorithm in enumerate(algorithms):
        mine = answers[at * len(PATHS) : (at + 1) * len(PATHS)]
        cells = (
            ", ".join(
                f"{count} {text}" if count > 1 else text
                for text, count in Counter(answer[place] for answer in mine).items()
            )
            for place in PLACES
        )
        yield f"| `{algorithm}` | {' | '.join(cells)} |"
    yield ""
    for place, title in zip(PLACES, TITLES, strict=True):
        candidates = [
            answer[place]
            for at, answer in enumerate(answers)
            if algorithms[at // len(PATHS)] in identify.CANDIDATES
        ]
        named = [text for text in candidates if text == "right" or text.startswith("wrong")]
        right = named.count("right")
        yield (
            f"- {title}: of {len(candidates)} captures of candidates {len(named)} get a name, "
            f"{right} of these are right"
        )


def main() -> None:
    """Print the figures or write them between the marks of a page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write-docs", type=Path, metavar="FILE")
    options = parser.parse_args()
    algorithms = [name for name in _core.ALGORITHMS if name != "fixed"]
    jobs = [(name, number) for name in algorithms for number in PATHS]
    with ProcessPoolExecutor(options.workers) as pool:
        answers = list(pool.map(results, jobs))
    text = "\n".join(page(algorithms, answers))
    if options.write_docs is None:
        sys.stdout.write(f"{text}\n")
        return
    marked.write(options.write_docs, MARKS, text)


if __name__ == "__main__":
    main()
