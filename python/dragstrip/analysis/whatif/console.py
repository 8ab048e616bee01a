"""Verdict on a capture as text for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from dragstrip.analysis.inference.console import lines as path_lines
from dragstrip.analysis.whatif.identify import PLACES, Answer
from dragstrip.analysis.whatif.verdict import FlowEvidence, Prediction, Verdict, figures, flow_name
from dragstrip.analysis.whatif.wording import answer as in_words
from dragstrip.analysis.whatif.wording import raced_path, verdict_sentence
from dragstrip.display import quantity
from dragstrip.display.terminal import WIDTH, wrapped
from dragstrip.experiment.comparison import FLAGS, command
from dragstrip.io.shell import folded
from dragstrip.io.untrusted import one_line

SHOWN = 6
"""Candidates of an identification that are listed."""


def text(verdict: Verdict, addresses: bool) -> str:
    """Return everything that `whatif` found."""
    flow = verdict.flow
    lines = [*wrapped(verdict_sentence(verdict)), "", *wrapped(f"Capture: {_capture(flow, addresses)}")]
    if verdict.answer is not None:
        lines += wrapped(f"Congestion control: {in_words(verdict.answer)}")
    lines += ["", "Path", *path_lines(flow.path), *_listed("taken", verdict.network.assumed)]
    lines += [
        "",
        f"How well a run of {one_line(verdict.algorithm)} there explains the capture: {verdict.fit.grade}",
    ]
    lines += [*_fit(verdict), *_listed("", verdict.reasons)]
    if verdict.refused:
        lines += [
            "",
            *wrapped("No others were raced on a path that does not explain the capture; --anyway does."),
        ]
        return "\n".join(lines)
    lines += ["", *wrapped(_heading(verdict)), *_table(verdict.predictions)]
    lines += [
        "",
        "The path and its flow again (its rate and sizes count Ethernet frames, 14 bytes",
        "more a packet than the IP packets above):",
        *folded(command([verdict.algorithm], verdict.options), WIDTH, FLAGS),
    ]
    return "\n".join(lines)


def identified(flow: FlowEvidence, answer: Answer, addresses: bool) -> str:
    """Return what `identify` found."""
    lines = [*wrapped(in_words(answer)), *wrapped(f"Capture: {_capture(flow, addresses)}")]
    if answer.scores:
        lines += ["", f"{'candidate':<12} {'score':>6}  distance of the capture from its runs,"]
        lines += [f"{'':<21}over the distance of these from each other"]
        lines += [f"{name:<12} {score:6.2f}  {apart:.2f}" for name, score, apart in answer.scores[:SHOWN]]
    return "\n".join(lines)


def _capture(flow: FlowEvidence, addresses: bool) -> str:
    name = str(flow.file) if addresses else flow.file.name
    seconds, place = f"{flow.capture.duration_s:.3g} s", PLACES[flow.place]
    inferred = "; what the sender saw is inferred" if flow.is_moved else ""
    return one_line(f"{name}, {flow_name(flow, addresses)}, {seconds}, {place}{inferred}")


def _fit(verdict: Verdict) -> Iterator[str]:
    yield f"  {'':<18} {'capture':>14} {'run':>14} {'error':>9}"
    fit = verdict.fit
    theirs, ours = figures(verdict.capture), figures(verdict.run)
    rows = [("goodput", "goodput_bps", fit.goodput)]
    if fit.rtt is not None:
        names = ("rtt_ms_p5", "rtt_ms_p50", "rtt_ms_p95")
        rows += [(f"RTT {name[8:]} %", name, error) for name, error in zip(names, fit.rtt, strict=True)]
    for title, name, error in rows:
        show = quantity.rate if name == "goodput_bps" else quantity.milliseconds
        yield f"  {title:<18} {show(theirs[name]):>14} {show(ours[name]):>14} {100 * error:>+z7.1f} %"
    before, after = fit.retransmissions
    yield f"  {'retransmitted':<18} {before:>14} {after:>14}"
    apart = f"{quantity.size(abs(fit.apart_bytes))} ({100 * fit.apart_share:.1f} %)"
    yield f"  delivered bytes apart at most {apart}, at {fit.apart_at_s:.1f} s"


def _heading(verdict: Verdict) -> str:
    where = raced_path(verdict.changed, "that path")
    runs = len(verdict.predictions[0].runs)
    if "path" in verdict.changed:
        return f"On {where}:"
    return f"On {where}, with the range over {runs} path{'s' if runs > 1 else ''} that it may be:"


def _table(predictions: tuple[Prediction, ...]) -> Iterator[str]:
    yield f"{'':<14}{'goodput Mbit/s':^24}{'RTT ms, median':^22}{'RTT 95 %':>9} {'again %':>9}"
    for prediction in predictions:
        cells = []
        for name, scale, width in (("goodput_bps", 1e6, 24), ("rtt_ms_p50", 1.0, 22)):
            interval = prediction.of(name)
            cells.append(f"{'–' if interval is None else _range(interval, scale):^{width}}")
        high, again = prediction.of("rtt_ms_p95"), prediction.of("retransmitted_share")
        late = "–" if high is None else quantity.digits(high[0])
        share = "–" if again is None else f"{100 * again[0]:.2f}"
        yield f"{one_line(prediction.algorithm)[:13]:<14}{''.join(cells)}{late:>9} {share:>9}".rstrip()


def _range(interval: tuple[float, float, float], scale: float) -> str:
    value, low, high = (quantity.digits(figure / scale) for figure in interval)
    return f"{value} ({low} to {high})"


def _listed(mark: str, sentences: tuple[str, ...]) -> Iterator[str]:
    for sentence in sentences:
        yield from wrapped(sentence, f"  {mark:<9} " if mark else "  - ")
