"""An engine in real time beside engines in virtual time: targets reached, and the page of documentation.

Limits are wider than those of the simulator beside the kernel in virtual time, because the machine has other
work. The runs' own checks tell which runs the machine limited; these are shown and counted separately.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragstrip.io import untrusted
from dragstrip.studies.validation.figures import FigurePair
from dragstrip.studies.validation.validate import Agreement, Case

GOODPUT_PERCENT = 2.0
GOODPUT_SHARE = 0.95
"""Share of cases whose goodput must be within `GOODPUT_PERCENT`."""
RTT_PERCENT, RTT_MS = 5.0, 1.0
"""Admitted difference of median RTTs, in per cent and in ms; the larger one holds."""
RTT_SHARE = 0.90
CPUINFO_MAX = 1 << 20
BUSY = "the processors were idle"
"""Beginning of the limit that says only that the processors were busy (engines/agent/limits.py)."""


@dataclass(frozen=True)
class CaseComparison:
    """A case on the engine in real time and on another one."""

    case: Case

    def _figure(self, quantity: str) -> FigurePair | None:
        figure = self.case.figure(quantity)
        return None if figure is None or None in (figure.kernel, figure.simulator) else figure

    @property
    def goodput_percent(self) -> float | None:
        """The difference of the other engine's goodput in per cent, or None."""
        figure = self._figure("goodput")
        return None if figure is None else figure.error

    @property
    def rtt_ms(self) -> tuple[float, float] | None:
        """The median RTTs on this engine and on the other, in ms, or None."""
        figure = self._figure("rtt")
        if figure is None or figure.kernel is None or figure.simulator is None:
            return None
        return figure.kernel, figure.simulator

    @property
    def goodput_reached(self) -> bool:
        """True when the goodput is within its limit."""
        return self.goodput_percent is not None and self.goodput_percent <= GOODPUT_PERCENT

    @property
    def rtt_reached(self) -> bool:
        """True when the median RTT is within its limit."""
        if self.rtt_ms is None:
            return False
        real_time_ms, other_ms = self.rtt_ms
        return abs(real_time_ms - other_ms) <= max(RTT_PERCENT / 100 * real_time_ms, RTT_MS)

    @property
    def within_limits(self) -> bool:
        """True when both are within their limits."""
        return self.goodput_reached and self.rtt_reached

    @property
    def random(self) -> bool:
        """True when an algorithm or netem draws random numbers, so that one run is one sample of many."""
        return self.case.conditions.random


def summary_lines(agreements: Mapping[str, Agreement], engine: str) -> Iterator[str]:
    """Yield lines for the terminal: the targets reached, and each case that is outside or was flagged."""
    for other_engine, agreement in agreements.items():
        cases = [CaseComparison(case) for case in agreement.cases]
        yield f"{engine} beside {other_engine}: {_reached(cases)}"
        for judged in cases:
            if not judged.within_limits:
                yield f"  outside: {judged.case.name}: {_errors(judged)}"
        yield from (f"  not run: {name}: {reason}" for name, reason in agreement.failed.items())
    limits = {
        case.name: case.limits for agreement in agreements.values() for case in agreement.cases if case.limits
    }
    for name, words in limits.items():
        yield f"  flagged: {name}: {'; '.join(words)}"


def page(
    agreements: Mapping[str, Agreement], engine: str, experiments: Sequence[str], command: str
) -> Iterator[str]:
    """Yield the page's lines of Markdown."""
    cases = [case for agreement in agreements.values() for case in agreement.cases]
    yield f"<!-- Written by `{command}`: do not edit. -->"
    yield f"# The engine {engine} beside {' and '.join(agreements)}\n"
    yield f"Runs of {', '.join(experiments)} in real time, and on {' and '.join(agreements)}. Written by\n"
    yield f"    {command}\n"
    yield f"on {_machine()}; kernel: {', '.join(sorted({case.release for case in cases}))}."
    yield from _load(cases)
    yield "\n| beside | quantity | target | without dice | with dice |"
    yield "|---|---|---|---|---|"
    for other_engine, agreement in agreements.items():
        judged = [CaseComparison(case) for case in agreement.cases]
        fixed, random = ([entry for entry in judged if entry.random == dice] for dice in (False, True))
        for quantity, target, of in (
            ("goodput", f"{GOODPUT_SHARE * 100:.0f} % of cases ≤ {GOODPUT_PERCENT:g} %", _goodput),
            ("median RTT", f"{RTT_SHARE * 100:.0f} % of cases ≤ {RTT_PERCENT:g} % or {RTT_MS:g} ms", _rtt),
        ):
            yield f"| {other_engine} | {quantity} | {target} | {of(fixed)} | {of(random)} |"
    yield (
        "\nWith dice: the algorithm (BBR), the queue (PIE) or the path (loss) draws random numbers: one run "
        "is one sample of many."
    )
    yield (
        "Median RTT: of the sender's smoothed RTT, every 100 ms. The simulator's path has the hosts' "
        "own time, as pings on the idle path show it; another kernel has its own. In brackets: "
        f"{engine} against itself, with the next seed.\n"
    )
    yield from _outside(agreements)
    yield from _every_case(agreements, engine)
    yield from _flagged(cases)
    failed = {name: reason for agreement in agreements.values() for name, reason in agreement.failed.items()}
    if failed:
        yield "\n## Left out\n\n| run | why |\n|---|---|"
        yield from (f"| {name} | {reason} |" for name, reason in failed.items())


def _goodput(cases: Sequence[CaseComparison]) -> str:
    return _count_text(cases, [judged.goodput_reached for judged in cases], GOODPUT_SHARE)


def _rtt(cases: Sequence[CaseComparison]) -> str:
    return _count_text(cases, [judged.rtt_reached for judged in cases], RTT_SHARE)


def _count_text(cases: Sequence[CaseComparison], passes: Sequence[bool], share: float) -> str:
    if not cases:
        return "none"
    verdict = "reached" if sum(passes) >= share * len(passes) - 1e-9 else "**not reached**"
    return f"{sum(passes)} of {len(cases)}, {verdict}"


def _reached(cases: Sequence[CaseComparison]) -> str:
    return f"goodput {_goodput(cases)}; median RTT {_rtt(cases)}".replace("**", "")


def _errors(judged: CaseComparison) -> str:
    rtt = "no RTT" if judged.rtt_ms is None else "RTT {:.3g} and {:.3g} ms".format(*judged.rtt_ms)
    goodput = (
        "no goodput" if judged.goodput_percent is None else f"goodput off by {judged.goodput_percent:.2g} %"
    )
    return f"{goodput}, {rtt}"


def _load(cases: Sequence[Case]) -> Iterator[str]:
    shares = sorted(share for case in cases for share in case.idle_shares)
    if shares:
        middle = shares[len(shares) // 2]
        yield (
            f"The processors were idle for {shares[0] * 100:.0f} % to {shares[-1] * 100:.0f} % "
            "of the runs' time "
            f"(half of them: at most {middle * 100:.0f} %)."
        )


def _machine() -> str:
    try:
        text = untrusted.text(Path("/proc/cpuinfo"), CPUINFO_MAX, "the processors")
    except OSError:
        text = ""
    models = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    return f"{os.cpu_count()} cores ({model})"


def _outside(agreements: Mapping[str, Agreement]) -> Iterator[str]:
    """Yield each case outside its limits, with the cause as far as the other engines tell."""
    yield "## Outside\n"
    names = {
        other_engine: {case.name: CaseComparison(case) for case in agreement.cases}
        for other_engine, agreement in agreements.items()
    }
    lines = [
        f"| {name} | {other_engine} | {_errors(judged)} | {_cause(name, other_engine, judged, names)} |"
        for other_engine, cases in names.items()
        for name, judged in sorted(cases.items(), key=lambda item: _natural(item[0]))
        if not judged.within_limits
    ]
    if lines:
        yield "| case | beside | errors | cause |\n|---|---|---|---|"
        yield from lines
    else:
        yield "None."
    yield ""


def _cause(
    name: str, other_engine: str, judged: CaseComparison, names: Mapping[str, Mapping[str, CaseComparison]]
) -> str:
    """Return the cause of a case outside its limits.

    The cause is one of the run's own checks, chance, or the engine with which another disagrees.
    """
    limits = [limit for limit in judged.case.limits if not limit.startswith(BUSY)]
    if limits:
        return f"flagged: {'; '.join(limits)}"
    if judged.random:
        return "chance: it draws random numbers"
    agreeing = [engine for engine, cases in names.items() if name in cases and cases[name].within_limits]
    if agreeing:
        return f"that of {other_engine}: {' and '.join(agreeing)} agrees"
    return "flagged: the processors were busy" if judged.case.limits else "not known"


def _every_case(agreements: Mapping[str, Agreement], engine: str) -> Iterator[str]:
    by_name: dict[str, dict[str, CaseComparison]] = {}
    for other_engine, agreement in agreements.items():
        for case in agreement.cases:
            by_name.setdefault(case.name, {})[other_engine] = CaseComparison(case)
    heads = [f"goodput, {engine} (Mbit/s)", *(f"{other_engine} off by %" for other_engine in agreements)]
    heads += [f"RTT, {engine} (ms)", *(f"{other_engine} (ms)" for other_engine in agreements)]
    yield "## All cases\n\nBold: outside.\n"
    yield "| case | " + " | ".join(heads) + " | flagged |"
    yield "|---" * (len(heads) + 2) + "|"
    for name in sorted(by_name, key=_natural):
        cells = by_name[name]
        first = next(iter(cells.values()))
        floor = {figure.quantity: figure.error for figure in first.case.floor}
        goodput = first.case.figure("goodput")
        row = [
            _number(
                None if goodput is None or goodput.kernel is None else goodput.kernel / 1e6, floor, "goodput"
            )
        ]
        row += [_off(cells.get(other_engine)) for other_engine in agreements]
        row += [_number(None if first.rtt_ms is None else first.rtt_ms[0], floor, "rtt")]
        row += [_other_rtt(cells.get(other_engine)) for other_engine in agreements]
        yield f"| {name} | {' | '.join(row)} | {'yes' if first.case.limits else ''} |"


def _number(value: float | None, floor: Mapping[str, float], quantity: str) -> str:
    spread = f" ({floor[quantity]:.2f} %)" if quantity in floor else ""
    return "–" if value is None else f"{value:.4g}{spread}"


def _off(judged: CaseComparison | None) -> str:
    if judged is None or judged.goodput_percent is None:
        return "–"
    text = f"{judged.goodput_percent:.2f}"
    return text if judged.goodput_reached else f"**{text}**"


def _other_rtt(judged: CaseComparison | None) -> str:
    if judged is None or judged.rtt_ms is None:
        return "–"
    text = f"{judged.rtt_ms[1]:.4g}"
    return text if judged.rtt_reached else f"**{text}**"


def _flagged(cases: Sequence[Case]) -> Iterator[str]:
    """Yield each limit with its cases."""
    limits: dict[str, dict[str, None]] = {}
    for case in sorted(cases, key=lambda case: _natural(case.name)):
        for limit in case.limits:
            limits.setdefault(limit, {})[case.name] = None
    if not limits:
        yield "\nNo run was flagged by its own checks."
        return
    count = len({case.name for case in cases})
    yield "\n## Flagged by the runs' own checks\n\n| how the machine limited a run | cases |\n|---|---|"
    for limit, names in limits.items():
        yield f"| {limit} | {'all' if len(names) == count else ', '.join(names)} |"


def _natural(name: str) -> list[tuple[float, str]]:
    """Return a sort key with `2mbit` before `10mbit`."""
    parts = []
    for word in name.replace(",", " ").split():
        digits = "".join(letter for letter in word if letter.isdigit())
        parts.append((float(digits) if digits else 0.0, word))
    return parts
