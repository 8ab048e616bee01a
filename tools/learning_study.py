"""The worked study of two trained policies, docs/reference/learning-study.md.

`python -m tools.learning_study docs/reference/learning-study.md` measures the policies of docs/examples/learning on the
simulator and as BPF programs on the kernel of engine `vm`. With `--train` it trains them anew before that, each on a
core; this needs torch. A third argument, a folder, keeps the C texts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dragstrip
from dragstrip.authoring.policies import bpf_source
from dragstrip.display.quantity import listing
from dragstrip.io.files import write_text
from dragstrip.studies.passport.wording import escaped

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples" / "learning"
TRAINED: Mapping[str, Sequence[str]] = {"alone": (), "rivals": ("cubic",)}
"""Rivals in training, by the policy's name."""
BY_HAND = "my-delay"
"""The linear policy of programs/, for comparison."""
SECONDS = 20
FULL_SIZE_BITS = 1448 * 8
PATHS: Mapping[str, Mapping[str, Any]] = {
    "10 Mbit/s, 40 ms, 1 BDP": {"rate": "10mbit", "rtt": "40ms", "queue": "1bdp"},
    "10 Mbit/s, 40 ms, 0.1 BDP": {"rate": "10mbit", "rtt": "40ms", "queue": "0.1bdp"},
    "10 Mbit/s, 40 ms, 8 BDP": {"rate": "10mbit", "rtt": "40ms", "queue": "8bdp"},
    "10 Mbit/s, 40 ms, 1 BDP, 1 % lost": {"rate": "10mbit", "rtt": "40ms", "queue": "1bdp", "loss": "1%"},
    "3 Mbit/s, 300 ms, 1 BDP": {"rate": "3mbit", "rtt": "300ms", "queue": "1bdp"},
    "50 Mbit/s, 20 ms, 1 BDP": {"rate": "50mbit", "rtt": "20ms", "queue": "1bdp"},
}
"""Options of `compare` by a path's name; the fifth is one of those that were trained on."""
SHARE_MIN = 0.5
"""Share of its goodput beside another CUBIC that a CUBIC must have left, or the policy harms it."""
AGAIN_MAX = 0.02
"""Packets sent again, of those delivered, that are many."""
DELAY_MAX = 1.5
"""Times the empty path's round trip that are a long one."""


@dataclass(frozen=True)
class Figures:
    """Figures of a flow: Mbit/s, ms, and packets sent again by packets delivered."""

    goodput: float
    rtt: float
    again: float


def figures_of(flow: Any) -> Figures:
    """The figures of one flow of a result."""
    goodput = (flow.goodput_bps or 0.0) / 1e6
    delivered = goodput * 1e6 * SECONDS / FULL_SIZE_BITS
    rtt = 0.0 if flow.rtt_ms is None else flow.rtt_ms.p50 or 0.0
    return Figures(goodput, rtt, (flow.retransmits or 0.0) / max(1.0, delivered))


class Laboratory:
    """Runs of policies and of built-in algorithms, on the simulator and on the kernel."""

    def __init__(self, folder: Path) -> None:
        self.texts = {name: (EXAMPLES / f"{name}.json").read_text() for name in TRAINED}
        self.texts[BY_HAND] = (ROOT / "programs" / f"{BY_HAND}.json").read_text()
        self.sources = {name: bpf_source(text, kernel_name(name)) for name, text in self.texts.items()}
        self.files = {name: folder / f"{kernel_name(name)}.bpf.c" for name in self.texts}
        for name, file in self.files.items():
            write_text(file, self.sources[name].text)

    def simulated(self, path: str, *names: str) -> list[Figures]:
        """Figures of each flow on the simulator."""
        flows = [dragstrip.program(name, self.texts[name]) if name in self.texts else name for name in names]
        return self._raced(path, flows)

    def in_kernel(self, path: str, *names: str) -> list[Figures]:
        """Figures of each flow on the kernel."""
        loaded = [str(self.files[name]) for name in names if name in self.files]
        flows = [kernel_name(name) if name in self.files else name for name in names]
        return self._raced(path, flows, engine="vm", load=loaded)

    def _raced(self, path: str, flows: Sequence[Any], **words: Any) -> list[Figures]:
        print(f"{path}: {', '.join(map(str, flows))}, engine {words.get('engine', 'sim')}", file=sys.stderr)
        duration = f"{SECONDS}s"
        result = dragstrip.race(*flows, together=True, duration=duration, **PATHS[path], **words)
        return [figures_of(flow) for flow in result.flows]


def kernel_name(name: str) -> str:
    """A policy's name in the kernel."""
    return name.replace("-", "_")


def train() -> None:
    """Train all policies at once, a process each; raises `CalledProcessError` if one fails."""
    commands = [
        [sys.executable, "ppo.py", f"{name}.json", *(["--rivals", *rivals] if rivals else [])]
        for name, rivals in TRAINED.items()
    ]
    processes = [subprocess.Popen(command, cwd=EXAMPLES) for command in commands]
    for process, command in zip(processes, commands, strict=True):
        if process.wait():
            raise subprocess.CalledProcessError(process.returncode, command)


def page(laboratory: Laboratory) -> str:
    """The page in Markdown."""
    alone = {
        path: {name: laboratory.simulated(path, name)[0] for name in (*TRAINED, "cubic", "bbr")}
        for path in PATHS
    }
    beside = {
        path: {name: laboratory.simulated(path, name, "cubic") for name in (*TRAINED, "cubic", "bbr")}
        for path in PATHS
    }
    passports = {
        name: dragstrip.passport(name, programs={name: laboratory.texts[name]}, quick=True, progress=True)
        for name in TRAINED
    }
    sections = [
        HEAD,
        "\n".join(training_lines()),
        "\n".join(alone_lines(alone)),
        "\n".join(beside_lines(beside)),
        "\n".join(gap_lines(laboratory, alone, beside)),
        "\n".join(passport_lines(passports)),
        "\n".join(fault_lines(alone, beside)),
    ]
    return "\n\n".join(sections) + "\n"


HEAD = """\
# A worked study: Aurora's set-up, trained anew

Aurora (Jay et al., ICML 2019) is a sender whose rate a small network sets every half round trip. Here its set-up is trained
anew by a PPO in [one file](../examples/learning/ppo.py): its paths, its observation of ten steps, its reward and its
network of 32 and 16 neurons. `alone` has never met another flow, `rivals` has been trained beside one CUBIC. The page says
what they do on paths that they have not seen, beside CUBIC, in shallow buffers and in a kernel, and what they are bad at.

`make learning-study` measures the stored policies and writes this page; `make learning-study TRAIN=yes` trains them before
that, with torch in an environment of its own. The figures come from the stored texts
([alone](../examples/learning/alone.json), [rivals](../examples/learning/rivals.json)) and are the same in every run. Any policy
is raced like this:

```
dragstrip compare --policy docs/examples/learning/alone.json --rate 10mbit --rtt 40ms --queue 1bdp --together alone cubic
```"""


def training_lines() -> Iterator[str]:
    """The training, from its logs."""
    logs = {name: json.loads((EXAMPLES / f"{name}.log.json").read_text()) for name in TRAINED}
    first = next(iter(logs.values()))
    settings = first["settings"]
    yield "## The training"
    yield ""
    yield (
        f"{settings['environments']} environments in one batch, {settings['steps']:,} steps in all, one thread, seed "
        f"{settings['seed']}; torch {first['versions']['torch']}, Gymnasium {first['versions']['gymnasium']}, "
        f"{first['machine']}."
    )
    yield "torch may round otherwise on another machine, and a new training then gives another policy. Departures from"
    yield "Aurora: actions are from -1 to 1 and change the rate by a tenth at most; an episode lasts 40 s; the latency gradient"
    yield "is a line's slope. As in Aurora's simulator, training ignores an increase above 12 Mbit/s. Mean reward"
    yield "of a step, by the share of the training:"
    yield ""
    shares = (0.05, 0.25, 0.5, 0.75, 1.0)
    yield f"| policy | rivals | {' | '.join(f'{share:.0%}' for share in shares)} | seconds, both at once |"
    yield f"|---|---|{'---|' * len(shares)}---|"
    for name, log in logs.items():
        rows = log["rewards"]
        cells = [f"{rows[round(share * (len(rows) - 1))]['reward']:.2f}" for share in shares]
        yield f"| {name} | {', '.join(log['rivals']) or 'none'} | {' | '.join(cells)} | {log['seconds']} |"


def alone_lines(alone: Mapping[str, Mapping[str, Figures]]) -> Iterator[str]:
    """Each algorithm alone on each path."""
    yield f"## Alone on a path, {SECONDS} s on the simulator"
    yield ""
    yield "Goodput in Mbit/s / median round trip in ms / packets sent again, of those delivered:"
    yield ""
    yield from path_table(alone, cell)


def cell(figures: Figures) -> str:
    """A flow's figures in one cell."""
    return f"{figures.goodput:.2f} / {figures.rtt:.0f} / {figures.again:.1%}"


def path_table(rows: Mapping[str, Mapping[str, Any]], cell: Callable[[Any], str]) -> Iterator[str]:
    """A row for each path, with a cell for each algorithm."""
    names = list(next(iter(rows.values())))
    yield f"| path | {' | '.join(names)} |"
    yield f"|---|{'---|' * len(names)}"
    for path, row in rows.items():
        yield f"| {path} | {' | '.join(cell(row[name]) for name in names)} |"


def beside_lines(beside: Mapping[str, Mapping[str, Sequence[Figures]]]) -> Iterator[str]:
    """Each algorithm beside a CUBIC on each path."""
    yield f"## Beside one CUBIC, {SECONDS} s on the simulator"
    yield ""
    yield "Goodput of the algorithm / of CUBIC, Mbit/s:"
    yield ""
    yield from path_table(beside, lambda flows: f"{flows[0].goodput:.2f} / {flows[1].goodput:.2f}")


def gap_lines(
    laboratory: Laboratory,
    alone: Mapping[str, Mapping[str, Figures]],
    beside: Mapping[str, Mapping[str, Sequence[Figures]]],
) -> Iterator[str]:
    """The same policies on the kernel, beside the simulator's figures."""
    yield "## From the simulator to a kernel"
    yield ""
    yield "[`dragstrip policy-bpf`](../how-to/learning.md#in-the-real-kernel) writes a policy as a BPF program in whole numbers,"
    yield f"which a stock Linux kernel runs (engine `vm`). `{BY_HAND}` is the linear policy of `programs/`. Simulator → kernel,"
    yield f"each {SECONDS} s; the last two columns are beside one CUBIC:"
    yield ""
    yield "| policy | path | goodput, Mbit/s | RTT, ms | sent again | its goodput | CUBIC's |"
    yield "|---|---|---|---|---|---|---|"
    gaps = []
    for name in (*TRAINED, BY_HAND):
        for path in PATHS:
            simulated = alone[path].get(name) or laboratory.simulated(path, name)[0]
            pair = beside[path].get(name) or laboratory.simulated(path, name, "cubic")
            (kernel,) = laboratory.in_kernel(path, name)
            kernel_pair = laboratory.in_kernel(path, name, "cubic")
            gaps.append(abs(kernel.goodput / simulated.goodput - 1))
            cells = [
                f"{simulated.goodput:.2f} → {kernel.goodput:.2f}",
                f"{simulated.rtt:.0f} → {kernel.rtt:.0f}",
                f"{simulated.again:.1%} → {kernel.again:.1%}",
                *(f"{a.goodput:.2f} → {b.goodput:.2f}" for a, b in zip(pair, kernel_pair, strict=True)),
            ]
            yield f"| {name} | {path} | {' | '.join(cells)} |"
    yield ""
    errors = [f"{source.error_max:.1e} for {name}" for name, source in laboratory.sources.items()]
    yield f"Alone, goodput differs by {sum(gaps) / len(gaps):.1%} on average, at most {max(gaps):.1%}. Whole numbers are little of"
    yield f"that: over drawn observations an action is off by at most {listing(errors)}. A step ends"
    yield "with an ACK in the kernel, at its time in the simulator; and a competition of two flows multiplies small"
    yield "differences."


def passport_lines(passports: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The passports' verdicts by chapter, and their sentences."""
    yield "## Passports"
    yield ""
    yield "Rows of the quick [passport](../how-to/passport.md) by verdict:"
    yield ""
    names = list(passports)
    yield f"| chapter | {' | '.join(names)} |"
    yield f"|---|{'---|' * len(names)}"
    columns = [passport["chapters"] for passport in passports.values()]
    for chapters in zip(*columns, strict=True):
        yield f"| {chapters[0]['title']} | {' | '.join(verdicts_text(chapter) for chapter in chapters)} |"
    for name, passport in passports.items():
        yield ""
        for sentence in passport["sentences"].values():
            yield from textwrap.wrap(f"- {name}: {escaped(sentence)}", 116, subsequent_indent="  ")


def verdicts_text(chapter: Mapping[str, Any]) -> str:
    """A chapter's verdicts in one cell."""
    return ", ".join(f"{count} {verdict}" for verdict, count in chapter["verdicts"].items())


def fault_lines(
    alone: Mapping[str, Mapping[str, Figures]], beside: Mapping[str, Mapping[str, Sequence[Figures]]]
) -> Iterator[str]:
    """Plain statements of what each policy is bad at, from the figures above."""
    yield "## What they are bad at"
    yield ""
    for name in TRAINED:
        harmed = [
            path for path, row in beside.items() if row[name][1].goodput < SHARE_MIN * row["cubic"][1].goodput
        ]
        starved = [
            path for path, row in beside.items() if row[name][0].goodput < SHARE_MIN * row["cubic"][0].goodput
        ]
        wasteful = [
            path for path, row in alone.items() if row[name].again > AGAIN_MAX and "loss" not in PATHS[path]
        ]
        slow = [path for path, row in alone.items() if row[name].rtt > DELAY_MAX * base_ms(path)]
        faults = {
            "CUBIC has less than half of what it has beside another CUBIC on {}": harmed,
            "It has itself less than half of what a CUBIC in its place has on {}": starved,
            f"More than {AGAIN_MAX:.0%} of its packets are sent again, without a lossy link, on {{}}": wasteful,
            f"Its round trip is longer than {DELAY_MAX} times the empty path's on {{}}": slow,
        }
        yield from textwrap.wrap(f"`{name}`:", 116)
        yield ""
        for text, paths in faults.items():
            where = f"{len(paths)} of {len(PATHS)} paths" + (f" ({'; '.join(paths)})" if paths else "")
            yield from textwrap.wrap(f"- {text.format(where)}.", 116, subsequent_indent="  ")
        yield ""
    yield "Neither reward nor training asks for fairness, and nothing bounds the rate that a policy ends at. A policy of this kind"
    yield "is not fit for a network that others use; the study shows how to find that out before a kernel runs it."


def base_ms(path: str) -> float:
    """The empty path's round trip in ms."""
    return float(PATHS[path]["rtt"].removesuffix("ms"))


def main() -> None:
    """Write the page; with `--train`, train before that."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path, help="the page to write")
    parser.add_argument("runs", type=Path, nargs="?", help="folder of the runs; default: a temporary one")
    parser.add_argument("--train", action="store_true", help="train the policies before that")
    words = parser.parse_args()
    if words.train:
        train()
    with tempfile.TemporaryDirectory() as scratch:
        write_text(words.page, page(Laboratory(words.runs or Path(scratch))))


if __name__ == "__main__":
    main()
