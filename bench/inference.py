"""`dragstrip inspect --infer` against known paths, as tables in docs/reference/inference.md.

    python bench/inference.py --write-docs docs/reference/inference.md [--captures FOLDER]

Captures at the sender of the simulator's runs, over a grid of rates, round trips, buffers and disciplines;
with `--captures` also those of USC-NSL/policing-detection, whose truth is in the files' names.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import marked

from dragstrip.analysis.inference.path import Estimate, PathEstimate, infer
from dragstrip.engines.capture import CaptureRequest
from dragstrip.experiment.comparison import compare
from dragstrip.studies.execution.runner import captured, execute, plan

FRAME, PACKET = 1514, 1500
"""A full Ethernet frame, of which the simulator's links and queues count every byte, and its IP packet."""
IP = PACKET / FRAME
SECONDS_MIN, PACKETS_MIN = 10, 2_000
MARKS = ("<!-- from bench/inference.py -->", "<!-- end -->")
ALGORITHMS = ("cubic", "reno", "bbr", "vegas")


@dataclass(frozen=True)
class Case:
    """A path of one flow, and what is true of it."""

    kind: str
    algorithm: str
    rate_mbit: float
    rtt_ms: float
    bdps: float = 1.0
    loss: float = 0.0
    jitter_ms: float = 0.0
    link: str = "htb"
    burst_packets: int = 0
    """Frames that a shaper's bucket holds."""
    engine: str = "sim"

    @property
    def name(self) -> str:
        """A name for a folder."""
        parts = [self.engine, self.kind, self.algorithm, f"{self.rate_mbit:g}mbit", f"{self.rtt_ms:g}ms"]
        more = [f"{self.bdps:g}bdp", f"loss{self.loss:g}", f"jitter{self.jitter_ms:g}", self.link]
        more += [f"{self.burst_packets}packets"] * bool(self.burst_packets)
        return "-".join((*parts, *more)).replace(" ", "_")

    @property
    def bdp_bytes(self) -> float:
        """Rate times round trip."""
        return self.rate_mbit * 1e6 / 8 * self.rtt_ms / 1e3

    @property
    def sending_ms(self) -> float:
        """The time to send a full segment, where the link stores it: an htb with tokens in store does not."""
        stored = {"policer": 4, "shaper": 4}.get(self.kind, 1 if self.link == "wire" else 0)
        return FRAME * 8 / (self.rate_mbit * stored * 1e3) if stored else 0.0

    @property
    def limit_bytes(self) -> int:
        """The buffer: two frames at least."""
        return max(round(self.bdp_bytes * self.bdps), 2 * FRAME)

    @property
    def duration_s(self) -> float:
        """Long enough for some sawteeth, short enough for a grid."""
        return max(6.0, min(8.0 if self.rate_mbit > 100 else 20.0, 100 * self.rtt_ms / 1e3))

    def options(self) -> dict[str, Any]:
        """The options of `dragstrip compare`."""
        queue = {
            "tail drop": f"bfifo limit {self.limit_bytes}",
            "policer": f"police rate {self.rate_mbit * 1e6:.0f}bit burst {self.limit_bytes}",
            "shaper": f"tbf rate {self.rate_mbit * 1e6:.0f}bit burst {self.burst_packets * FRAME} "
            f"limit {self.limit_bytes}",
        }.get(self.kind, self.kind)
        behind = self.kind in ("policer", "shaper")
        options = {"rate": f"{self.rate_mbit * (4 if behind else 1):g}mbit", "rtt": f"{self.rtt_ms:g}ms"}
        options |= {"queue": queue, "duration": f"{self.duration_s:g}s", "link": self.link}
        if behind:
            options["link"] = "wire"
        if self.loss:
            options["loss"] = f"{self.loss * 100:g}%"
        if self.jitter_ms:
            options["jitter"] = f"{self.jitter_ms:g}ms"
        return options


def grid() -> Iterator[Case]:
    """Yield the paths that are tried."""
    for number, (rate, rtt) in enumerate(
        (rate, rtt) for rate in (2, 10, 50, 200) for rtt in (5, 20, 80, 200)
    ):
        for at, algorithm in enumerate(ALGORITHMS):
            bdps = (0.25, 0.5, 1.0, 2.0, 4.0)[(number + at) % 5]
            yield Case("tail drop", algorithm, rate, rtt, bdps)
            yield Case(
                "tail drop", algorithm, rate, rtt, (1.0, 2.0, 4.0, 0.25, 0.5)[(number + at) % 5], link="wire"
            )
    for rate, rtt in ((5, 20), (20, 40), (50, 80), (100, 20)):
        for algorithm in ALGORITHMS:
            for kind in ("codel", "fq_codel", "pie", "policer"):
                yield Case(kind, algorithm, rate, rtt, 1.0)
            for packets in (10, 40, 150, 500):
                yield Case("shaper", algorithm, rate, rtt, 1.0, burst_packets=packets)
            yield Case("tail drop", algorithm, rate, rtt, 1.0, loss=0.01)
            yield Case("tail drop", algorithm, rate, rtt, 1.0, jitter_ms=1.0)


def capture(case: Case, folder: Path) -> Path:
    """Run a case unless it has been, and return the sender's capture."""
    out = folder / case.name
    found = list(out.rglob("s1.pcapng"))
    if not found:
        planned = plan(compare([case.algorithm], engine=case.engine, **case.options()))  # type: ignore[arg-type]
        execute(captured(planned, CaptureRequest(("s1",))), out, report=False, workers=1)
        found = list(out.rglob("s1.pcapng"))
    return found[0]


def inferred(case: Case, folder: Path) -> PathEstimate:
    """Return what is inferred from a case's capture."""
    return infer(capture(case, folder))[0]


@dataclass(frozen=True)
class Grade:
    """A property of one case: the error where a value is given, and whether it counts as right."""

    what: str
    error: float | None
    right: bool


def relative(what: str, estimate: Estimate, truth: float, most: float) -> Grade:
    """Grade a value by its relative error."""
    if estimate.value is None:
        return Grade(what, None, True)
    error = estimate.value / truth - 1
    return Grade(what, error, abs(error) <= most)


KINDS = {
    "tail drop": {"tail drop"},
    "codel": {"aqm"},
    "fq_codel": {"aqm"},
    "pie": {"aqm"},
    "policer": {"policer"},
    "shaper": {"shaper", "tail drop"},
}
"""What a discipline may be called. A shaper drops at its tail, and its bucket may not show."""
LIMITS = {"codel": 1000, "pie": 1000, "fq_codel": 10240}
"""Packets that an active queue management holds at most by default (tc-codel(8), tc-pie(8))."""


def grades(case: Case, found: PathEstimate) -> list[Grade]:
    """Return the grades of everything that is inferred."""
    rate = case.rate_mbit * 1e6 * IP
    base = case.rtt_ms + case.sending_ms
    if found.base_rtt_ms.value is not None:
        # Any delay of the jitter's range is the path's own.
        base = min(max(base, found.base_rtt_ms.value), base + 2 * case.jitter_ms)
    result = [relative("base RTT", found.base_rtt_ms, base, 0.02)]
    if case.kind == "policer":
        result.append(relative("policer's rate", found.policer_rate_bps, rate, 0.05))
        result.append(relative("policer's burst", found.policer_burst_bytes, case.limit_bytes * IP, 0.1))
    else:
        result.append(relative("rate", found.rate_bps, rate, 0.03))
        buffered = case.kind in ("tail drop", "shaper")
        if buffered:
            result.append(relative("buffer", found.buffer_bytes, case.limit_bytes * IP, 0.1))
        elif found.buffer_bytes.value is not None:
            result.append(relative("buffer", found.buffer_bytes, LIMITS.get(case.kind, 0) * PACKET + 1, 0.1))
    named = None if found.queue == "cannot tell" else 0.0
    # An active queue management whose limit is reached drops at its tail.
    overflowed = case.kind in LIMITS and found.queue == "tail drop" and result[-1].right
    said = 0.0 if found.queue == "shaper" else None
    result.append(Grade("shaper", said, said is None or case.kind == "shaper"))
    if case.kind == "shaper":
        size = case.burst_packets * PACKET
        result.append(relative("shaper's bucket", found.shaper_burst_bytes, size, 0.1))
    result.append(Grade("queue", named, named is None or overflowed or found.queue in KINDS[case.kind]))
    if case.kind == "tail drop":
        loss = found.random_loss
        fits = loss.value is None or (loss.low or 0) - 0.002 <= case.loss <= (loss.high or 1) + 0.002
        result.append(Grade("random loss", None if loss.value is None else loss.value - case.loss, fits))
    return result


def table(cases: Sequence[Case], found: Sequence[PathEstimate], told: Callable[[str], object]) -> list[str]:
    """Return the table of a grid, as Markdown; `told` gets each case that is wrong."""
    rows: dict[tuple[str, str], list[Grade]] = defaultdict(list)
    for case, path in zip(cases, found, strict=True):
        label = case.kind
        if case.burst_packets:
            label += f", bucket of {case.burst_packets} packets"
        label += (" and 1 % loss" if case.loss else "") + (" and jitter" if case.jitter_ms else "")
        for grade in grades(case, path):
            rows[grade.what, label].append(grade)
            rows[grade.what, "all"].append(grade)
            if not grade.right:
                told(f"wrong: {case.name}: {grade}: {path.queue}: {path.queue_reason}")
    lines = [
        "| property | path | cases | told | right of these | median error | greatest error |",
        "|---|---|---|---|---|---|---|",
    ]
    for (what, label), each in sorted(
        rows.items(), key=lambda row: (row[0][0], row[0][1] == "all", row[0][1])
    ):
        known = [grade for grade in each if grade.error is not None]
        errors = sorted(abs(grade.error or 0.0) for grade in known)
        right = f"{sum(grade.right for grade in known)}" if known else "–"
        middle, most = (
            (f"{errors[len(errors) // 2] * 100:.2f} %", f"{errors[-1] * 100:.2f} %") if errors else ("–", "–")
        )
        if what in ("queue", "shaper"):
            middle = most = "–"
        lines.append(f"| {what} | {label} | {len(each)} | {len(known)} | {right} | {middle} | {most} |")
    return lines


@dataclass(frozen=True)
class Real:
    """A capture of the public set: what is true by its name, and what was inferred of its large flows."""

    name: str
    policed_bps: float | None
    depth_bytes: float | None
    loss: bool
    found: list[PathEstimate]


def real(file: Path) -> Real:
    """Return one of the public captures."""
    parts = dict(part.split("=", 1) for part in file.name.removesuffix(".pcap.xz").split("-") if "=" in part)
    rate = float(parts["PCIR"]) if "PCIR" in parts else None
    depth = float(parts["PBC"]) if "PBC" in parts else None
    # The downloads are named by their ports; the rest of a file is other traffic.
    ports = [parts[key] for key in ("CP", "CP1", "CP2") if key in parts]
    found = [path for path in infer(file) if path.flow.rsplit(":", 1)[1] in ports]
    return Real(file.name, rate, depth, parts.get("LOSS", "0%") != "0%", found)


def real_table(reals: Sequence[Real], told: Callable[[str], object]) -> list[str]:
    """Return the table of the public captures, as Markdown."""
    policed = [(one, path) for one in reals if one.policed_bps for path in one.found]
    free = [(one, path) for one in reals if not one.policed_bps for path in one.found]
    hits = [(one, path) for one, path in policed if path.queue == "policer"]
    errors = sorted(
        abs(path.policer_rate_bps.value / (one.policed_bps or 1) - 1)
        for one, path in hits
        if path.policer_rate_bps.value is not None
    )
    clear = sum(path.queue != "policer" for _, path in free)
    for one, path in policed:
        if path.queue != "policer":
            told(f"policed, not found: {one.name}: {path.flow}: {path.queue}: {path.queue_reason}")
    for one, path in free:
        if path.queue == "policer":
            told(f"not policed: {one.name}: {path.flow}")
    within = sum(error <= 0.05 for error in errors)
    middle, most = (errors[len(errors) // 2], errors[-1]) if errors else (0.0, 0.0)
    return [
        "| flows | count | result |",
        "|---|---|---|",
        f"| policed | {len(policed)} | {len(hits)} found ({len(hits) / max(1, len(policed)) * 100:.1f} %) |",
        f"| not policed | {len(free)} | {clear} cleared ({clear / max(1, len(free)) * 100:.1f} %) |",
        f"| policer's rate told | {len(errors)} of {len(hits)} | {within} within 5 %; median error "
        f"{middle * 100:.1f} %, greatest {most * 100:.1f} % |",
    ]


def main() -> None:
    """Run everything and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write-docs", type=Path, help="the page whose tables are replaced")
    parser.add_argument("--captures", type=Path, help="a folder of the public captures")
    parser.add_argument("--keep", type=Path, help="a folder in which the runs stay, and are reused")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--engine", default="sim", choices=("sim", "vm"))
    given = parser.parse_args()

    def said(line: str) -> None:
        sys.stderr.write(f"{line}\n")

    lines: list[str] = []
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(2) as pool:
        folder = given.keep or Path(scratch)
        cases = [case for case in grid() if given.only in case.name]
        found = list(pool.map(inferred, cases, [folder] * len(cases)))
        lines += ["", "Runs of the simulator:", "", *table(cases, found, said), ""]
        if given.captures is not None:
            files = sorted(given.captures.glob("*.pcap.xz"))
            lines += [f"{len(files)} captures of USC-NSL/policing-detection:", ""]
            lines += [*real_table(list(pool.map(real, files)), said), ""]
    text = "\n".join(lines)
    if given.write_docs is None:
        sys.stdout.write(f"{text}\n")
        return
    marked.write(given.write_docs, MARKS, text.strip())


if __name__ == "__main__":
    main()
