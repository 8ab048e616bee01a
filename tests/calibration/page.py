"""The page docs/reference/diagnosis.md, as `make diagnosis` writes it.

python -m tests.calibration.page docs/reference/diagnosis.md
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from dragstrip.io.files import write_text

from . import real, situations
from .score import SITUATIONS, TARGETS, TITLES, Figures, Result, by, diagnosed, halves, percent

MADE = {
    "bufferbloat": "a FIFO of 90 to 800 ms, filled by flows of loss-based algorithms",
    "bufferbloat_up": "the same on the way back, filled by an upload of somebody else's",
    "slow_start_overshoot": "a FIFO of 5 to 40 % of the round trip, losses in slow start alone",
    "random_loss": "0.08 to 3 % of the packets lost by netem, behind or ahead of the queue",
    "aqm": "fq_codel, CoDel, PIE, fq_pie or CAKE that drops, without ECN",
    "policer": "a token bucket in front of a line 2 to 20 times as fast",
    "shaper_above_line": "a shaper with an AQM, 1.15 to 2.5 times as fast as the modem behind it",
    "shaper_below_line": "a shaper with an AQM at 10 to 60 % of the line's rate",
    "receive_window": "tcp_rmem below the bandwidth-delay product",
    "send_buffer": "tcp_wmem below the bandwidth-delay product",
    "small_queue_limit": "a sender on the bottleneck's own interface, which TCP small queues hold back",
    "application": "a server that answers requests, and waits for the next",
    "receiver_closed": "an application that stops reading: the window closes for seconds",
    "no_answer": "a link that is down from before the first SYN on",
    "ack_path": "a way back that is too slow for the acknowledgements",
    "marked_class": "a background class of its own, 5 to 10 % of the line, that queues",
    "other_bottleneck": "an AQM on a fast interface, and a modem behind it that queues",
    "no_ecn": "an AQM that marks, and flows without ECN",
    "fifo": "a FIFO of 40 to 900 ms on an interface whose settings are known",
    "nothing": "a path that is filled, without delay or losses",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table in Markdown."""
    return [
        f"| {' | '.join(head)} |",
        "|" + "---|" * len(head),
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]


def _figures(title: str, figures: dict[str, Figures], shown: Callable[[str], str] = str) -> list[str]:
    rows = [
        [shown(name), str(it.diagnoses), *(it.cell(tally) for tally in TARGETS)]
        for name, it in figures.items()
    ]
    return table((title, "diagnoses", "certain, right", "likely, right", "nothing, right", "named"), rows)


def page(results: Sequence[Result], answers: Sequence[real.Answer], asked: int) -> str:
    """Return the page."""
    found = halves(results)
    drawn = len({it.seed for it in results})
    lines = [
        "<!-- Written by `make diagnosis`: do not edit. -->",
        "# How often `diagnose` is right",
        "",
        "[`dragstrip diagnose`](../how-to/diagnose.md) on files of situations whose cause is known, and on real files.",
        "",
        f"{drawn} situations of {asked} seeds are drawn at random and run on the simulator: rates of 0.5 to 1000 Mbit/s, round "
        "trips of 2 to 300 ms, 18 algorithms, one to four flows, cross traffic, jitter, buffers and disciplines. A situation "
        "counts only if its recording shows that it is what it was made to be: that packets waited, were dropped there, that the "
        "window limited the sender. A seed none of whose 25 draws is so is left out. Each is rendered as two sets of files as "
        "people have them, of which the first can show the cause where any can; a part of them is cut, begun late, or stands "
        "beside the ping of another host. Advice is not tried.",
        "",
        "A finding is right if one of the causes that it names is there. Beside the cause that a situation was made for, what else "
        "the recording shows counts as right: drops of an AQM, a FIFO that is in use. A delay whose direction no file shows and "
        "that is called bufferbloat in the data's direction is wrong where the queue is on the way back. A cause is named if "
        "a finding has it, alone or among others that fit; whether the files can show it is decided by what the programs record "
        "(`_SHOWS` in tests/calibration/files.py), not by what `diagnose` makes of it.",
        "",
        "Half of the situations, chosen by a hash of their seed, are never looked at while rules are made: the command that lists "
        "wrong answers (`python -m tests.calibration.score --details`) leaves them out.",
        "",
        "## Figures",
        "",
    ]
    rows = []
    for tally, target in TARGETS.items():
        share = found["held back"].share(tally)
        reached = "–" if share is None else "yes" if share >= target else "no"
        cells = [found[half].cell(tally) for half in ("development", "held back", "both")]
        rows.append([TITLES[tally], f"≥ {percent(target)}", *cells, reached])
    lines += table(("", "target", "development", "held back", "both", "reached where held back"), rows)
    both = found["both"]
    several = [
        claim for it in results for claim in it.claims if claim.tally == "likely" and len(claim.causes) > 1
    ]
    likely = both.all["likely"]
    lines += [
        f"Where a cause is named, it is named alone {both.alone} of {both.right['named']} times. Of {likely} findings that are "
        f"*likely*, {len(several)} name several causes that fit. Of {both.diagnoses} sets of files, {both.refused} are refused with "
        "an error (such as what iperf3 writes where nobody answers, which is that error).",
        "",
        "## By cause",
        "",
        *_figures("cause", by(results, lambda it: it.cause), lambda name: f"`{name}`"),
        *table(("cause", "how it is made"), [[f"`{name}`", MADE[name]] for name in situations.CAUSES]),
        "## By kind of file",
        "",
        *_figures("files", by(results, lambda it: it.files)),
        *_figures("how", by(results, lambda it: it.how)),
        "## Real files",
        "",
        "Files of other people, whose cause is known. The captures are those of",
        "[USC-NSL/policing-detection](https://github.com/USC-NSL/policing-detection) (Flach et al., SIGCOMM 2016), which are not",
        "part of this repository: their make is in their names.",
        "",
    ]
    lines += table(("files", "what is so", "what is said", "right"), _real(answers))
    lines += [
        "## What this does not show",
        "",
        "- The situations are the simulator's ([how near it is to Linux](fidelity.md)); none of them is run on a kernel.",
        "- A marked class is two links of a graph, and a receiver that does not read is made of the capture of a run whose receiver "
        "pauses: windows and probes are written into it.",
        "- Causes are drawn equally often; a person's files have some far more often than others.",
        "",
    ]
    return "\n".join(lines)


def _real(answers: Sequence[real.Answer]) -> Iterable[list[str]]:
    groups: dict[tuple[str, str], list[real.Answer]] = {}
    for it in answers:
        groups.setdefault((it.of.name, it.of.cause), []).append(it)
    for (name, cause), members in groups.items():
        words: dict[str, int] = {}
        for it in members:
            parts = [f"{', '.join(f'`{word}`' for word in causes)} ({sure})" for sure, causes in it.said]
            text = "; ".join(sorted(parts)) or "nothing said"
            words[text] = words.get(text, 0) + 1
        count = len(members)
        said = (
            "; ".join(f"{number} times: {text}" for text, number in words.items())
            if count > 1
            else next(iter(words))
        )
        wrong = sum(it.wrong for it in members)
        named = sum(it.named for it in members)
        right = f"named {named} of {count}, wrong {wrong}"
        yield [f"{name}, {count} captures" if count > 1 else name, f"`{cause}`", said, right]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("-n", type=int, default=SITUATIONS, help="situations (%(default)s)")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    words = parser.parse_args()

    def progress(seed: int) -> None:
        if (seed + 1) % 100 == 0:
            print(f"{seed + 1} of {words.n}", file=sys.stderr)

    results = diagnosed(range(words.n), words.workers, progress)
    with ProcessPoolExecutor(words.workers) as pool:
        answers = list(pool.map(real.answer, (*real.cases(), *real.captures())))
    write_text(words.page, page(results, answers, words.n))


if __name__ == "__main__":
    main()
