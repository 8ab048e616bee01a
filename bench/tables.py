"""Prints the results for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cases import Case, Program, Record

if TYPE_CHECKING:
    from measure import Summary
    from results import Memory, Results

# Delivered packets may differ by this much between programs that do the same work.
AGREEMENT = 0.03


def render(results: Results, cases: tuple[Case, ...]) -> str:
    """All tables as text."""
    parts = [f"{results.machine}; load {results.load_at_start:.2f} at the start\n"]
    if results.quick:
        parts.append("--quick: fewer runs; ns-3 simulated less time (its packets and goodput are of that)\n")
    parts += [_race(case, results.races.get(case.name, {})) for case in cases]
    if results.recording:
        parts.append(_recording(results))
    if results.memory:
        parts.append(_memory(results.memory))
    parts += [f"! {note}\n" for note in results.notes]
    return "\n".join(parts)


def _race(case: Case, summaries: dict[Program, Summary]) -> str:
    rows = [
        ["", "packets/CPU s", "x ns-3", "x ns-2", "of floor", "peak", "delivered", "Mbit/s", "runs", "spread"]
    ]
    for program, summary in summaries.items():
        rows.append(
            [
                program,
                quantity(summary.packets_per_cpu_s),
                _ratio(summary, summaries.get(Program.NS3)),
                _ratio(summary, summaries.get(Program.NS2)),
                _ratio(summary, summaries.get(Program.FLOOR_LAZY)),
                f"{summary.peak_rss_kib / 1024:.1f} MiB",
                f"{summary.data_packets}",
                f"{summary.goodput_mbps:.1f}",
                f"{summary.runs}",
                f"{summary.spread:.0%}",
            ]
        )
    return f"{case.title}  [{case.name}]\n{_table(rows)}"


def _recording(results: Results) -> str:
    rows = [["", *(f"{record}" for record in Record)]]
    for name, summaries in results.recording.items():
        none = summaries[Record.NONE]
        rows.append([name, *(f"{summaries[record].cpu_s / none.cpu_s - 1:+.0%}" for record in Record)])
        rows[-1][1] = f"{quantity(none.data_packets / none.cpu_s)}/s"
    return f"CPU (user and system) that a recording adds to a run without one\n{_table(rows)}"


def _memory(memory: dict[str, Memory]) -> str:
    rows = [["", "bytes/flow", "in flight/flow", "peak", "packets/CPU s"]]
    for name, figures in memory.items():
        rows.append(
            [
                name,
                f"{figures.bytes_per_flow:.0f}",
                f"{figures.packets_per_flow:.1f}",
                f"{figures.peak_rss_kib / 1024:.1f} MiB",
                quantity(figures.data_packets / figures.user_s) if figures.user_s > 0 else "-",
            ]
        )
    return f"Memory: peak less that of one flow, packets in flight included\n{_table(rows)}"


def quantity(number: float) -> str:
    """A number with three digits: 46.0 k, 1.94 M."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}"


def _ratio(summary: Summary, other: Summary | None) -> str:
    if other is None:
        return "-"
    ratio = summary.packets_per_cpu_s / other.packets_per_cpu_s
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


def _table(rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"
