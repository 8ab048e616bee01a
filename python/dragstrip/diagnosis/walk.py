"""A diagnosis from its files and options to its document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragstrip.diagnosis import advice, asked, findings, sources
from dragstrip.diagnosis import trials as simulator
from dragstrip.diagnosis.evidence import Evidence, Seen, fact_document, gathered
from dragstrip.diagnosis.finding import Finding
from dragstrip.diagnosis.wording import shown
from dragstrip.errors import BadInputError
from dragstrip.io.files import appearing, expect_folder, write_json
from dragstrip.io.progress import progress

VERSION = 1
RUNS = "runs"
DOCUMENT = "diagnosis.json"
DIFFERS = 1.5
"""Ratio of a simulated to a measured figure from which on they differ."""


def diagnose(
    files: Sequence[Path],
    race: Mapping[str, Any],
    algorithm: str | None = None,
    out: Path | None = None,
    quiet: bool = False,
    trials: bool = True,
) -> dict[str, Any]:
    """Return what is wrong on a path, how sure that is and what helps (docs/how-to/diagnose.md).

    `race` are options of `compare` that describe the path, `algorithm` is what its senders run. With `out`,
    the document, and the reports of the runs, are written into that folder. Without `trials` no change is
    tried on the simulator, and there is no advice. Raises `BadInputError` for a file
    or an option that cannot be right; nothing is written then.
    """
    if not files and not asked.is_whole(race):
        expected = "a file, or a path: --path NAME, or --rate RATE with --rtt TIME"
        raise BadInputError("FILE", None, expected, "command line")
    if out is not None:
        _expect_free(out)
    stated = asked.stated(race, algorithm or "cubic") if race or algorithm else None
    with progress("reading the files ...", quiet):
        seen = sources.seen(files, quiet) + (stated.seen if stated is not None else Seen())
    if stated is not None and asked.is_whole(race) and not (seen.flows or seen.probes):
        seen += _simulated(stated, race, seen, algorithm or "cubic", quiet)
    evidence = gathered(seen)
    if stated is not None:
        evidence = replace(evidence, upward=stated.upward)
    found = findings.found(evidence)
    proposals, refused = advice.proposed(evidence, found, race, algorithm) if trials else ([], [])
    proposals = [proposal for proposal in proposals if _can_run(proposal, refused)]
    setups = _named(proposals)
    if out is None or not setups:
        made = simulator.run(setups, None, quiet)
        document = _document(evidence, found, proposals, refused, setups, made)
        if out is not None:
            with appearing(out) as draft:
                write_json(draft / DOCUMENT, document)
        return document
    made = simulator.run(setups, out / RUNS, quiet, report=True)
    document = _document(evidence, found, proposals, refused, setups, made)
    write_json(out / DOCUMENT, document)
    return document


def _simulated(
    stated: asked.Stated, race: Mapping[str, Any], seen: Seen, algorithm: str, quiet: bool
) -> Seen:
    """Return what runs of a path show that nobody measured: with data one way, and if need be both ways."""
    path = stated.path
    length = simulator.duration(path.rate_bps or 1.0, path.ping_ns / 1e6)
    options = {"duration": length, "seed": simulator.SEED, **asked.to_simulate(race, seen)}
    setups = {"one-way": simulator.Setup.of(options, algorithm, advice.SHARED)}
    if stated.up_bps is not None and stated.upward is not None:
        longest = simulator.duration(stated.up_bps, path.ping_ns / 1e6)
        options = {"duration": longest, "seed": simulator.SEED, **stated.upward}
        setups["upward"] = simulator.Setup.of(options, algorithm, advice.SHARED)
    measured = simulator.run(setups, None, quiet)
    found = asked.simulated(measured["one-way"])
    if stated.up_bps is not None and "upward" in measured:
        found += asked.uploaded(measured["upward"], stated.up_bps)
    return found


def _expect_free(out: Path) -> None:
    expect_folder("--out", out)
    if out.exists():
        expected = "a folder that does not exist yet"
        raise BadInputError("--out", str(out), expected, "command line")


def _can_run(proposal: advice.Advice, refused: list[str]) -> bool:
    """Return whether the path as found, which follows from files, can be simulated; if not, add why."""
    try:
        for setup in (proposal.before, *(setup for _, setup in proposal.after)):
            simulator.check(setup)
    except BadInputError as error:
        refused.append(f"{proposal.finding.name}: no run: {error}")
        return False
    return True


def _named(proposals: Sequence[advice.Advice]) -> dict[str, simulator.Setup]:
    """Return the set-ups to run, each once, by the name of its folder."""
    made: dict[str, simulator.Setup] = {}
    for proposal in proposals:
        stem = proposal.finding.name.replace("_", "-")
        for name, setup in [
            (f"{stem}-as-found", proposal.before),
            *((f"{stem}-{number}", setup) for number, (_, setup) in enumerate(proposal.after, start=1)),
        ]:
            if setup not in made.values():
                made[name] = setup
    return made


def _document(
    evidence: Evidence,
    found: Sequence[Finding],
    proposals: Sequence[advice.Advice],
    refused: Sequence[str],
    setups: Mapping[str, simulator.Setup],
    made: Mapping[str, simulator.Measured],
) -> dict[str, Any]:
    by_setup = {setup: (name, made[name]) for name, setup in setups.items()}
    told: list[dict[str, Any]] = []
    for proposal in proposals:
        name, before = by_setup[proposal.before]
        judged = advice.judged(proposal, before, [by_setup[setup][1] for _, setup in proposal.after])
        told.append(
            {
                "finding": proposal.finding.name,
                "against": _lower(TITLES[proposal.finding.name]),
                "complaint": proposal.finding.complaint,
                "assumed": list(proposal.assumed),
                "differs": _differs(evidence, proposal.finding, before),
                "as_found": before.document() | {"run": name, "compare": proposal.before.command},
                "changes": [
                    {
                        "change": it.candidate.change,
                        "recommended": it.recommended,
                        "reason": it.reason,
                        "gain": it.gain,
                        "where": it.candidate.where,
                        "commands": list(it.candidate.commands),
                        "run": by_setup[it.setup][0],
                        **it.measured.document(),
                        "compare": it.setup.command,
                    }
                    for it in judged
                ],
            }
        )
    wrong = [finding.document() for finding in found if finding.certainty != "cannot know"]
    unknown = [finding.document() for finding in found if finding.certainty == "cannot know"]
    return {
        "version": VERSION,
        "files": [{"path": path, "format": kind} for path, kind in evidence.seen.files],
        "verdict": verdict(found, told),
        "evidence": [fact_document(fact) for fact in evidence.facts],
        "contradictions": evidence.conflicts,
        "findings": wrong,
        "advice": told,
        "not_tried": list(refused),
        "unknown": unknown,
        "notes": evidence.seen.notes,
    }


def _differs(evidence: Evidence, finding: Finding, before: simulator.Measured) -> str | None:
    """Return how far the path, simulated as it was found, is from what was measured, if that is much."""
    if evidence.simulated:
        return None
    flow = max(evidence.seen.flows, key=lambda flow: flow.bytes, default=None)
    made: tuple[str, float | None, float | None, str]
    if finding.complaint == "delay":
        loaded = evidence.loaded
        seen = None if loaded is None else float(loaded.p95.value)
        made = ("ping_ms", before.ping_p95_ms, seen, "" if loaded is None else loaded.p95.source)
    elif flow is None:
        return None
    elif finding.complaint == "goodput":
        made = ("goodput_bps", before.goodput_bps, flow.goodput_bps, flow.source)
    else:
        made = ("sent_again_share", before.retransmitted_share, flow.retransmitted_share, flow.source)
    name, run, measured, source = made
    if not run or not measured or 1 / DIFFERS < run / measured < DIFFERS:
        return None
    what = {"delay": "an RTT (95 %) of", "goodput": "a goodput of", "loss": "sent again"}[
        finding.complaint or "loss"
    ]
    return (
        f"the run of the path as found has {what} {shown(name, run)}, {source} has {shown(name, measured)}: "
        "the path that is described is not the one that was measured, or something else is at work"
    )


def verdict(found: Sequence[Finding], told: Sequence[Mapping[str, Any]]) -> str:
    """Return the diagnosis in one sentence."""
    wrong = [finding for finding in found if finding.certainty != "cannot know"]
    if not wrong:
        supposed = [TITLES[finding.name] for finding in found if finding.complaint]
        doubt = f": {_lower(supposed[0])}, if the queue is what was assumed" if supposed else ""
        return f"The evidence does not show whether anything is wrong{doubt}."
    first = wrong[0]
    named = TITLES[first.name]
    if first.name == "nothing":
        return f"{named}."
    sure = {"certain": "", "likely": ", likely"}[first.certainty]
    others = [TITLES[finding.name] for finding in wrong[1:] if finding.name != "nothing"]
    head = f"{named}{sure}" + (f"; also {', '.join(_lower(name) for name in others)}" if others else "")
    best = next((change for advice in told for change in advice["changes"] if change["recommended"]), None)
    if best is None:
        return f"{head}."
    return f"{head}. Best change: {best['change']}."


def _lower(title: str) -> str:
    acronym = title[:2].isalpha() and title[:2].isupper()
    return title if acronym else title[0].lower() + title[1:]


TITLES = {
    "bufferbloat": "Bufferbloat",
    "bufferbloat_up": "Bufferbloat on the return path",
    "shaper_above_line": "A shaper set above the line's rate",
    "other_bottleneck": "An AQM that does not hold the queue",
    "fifo": "A plain FIFO",
    "policer": "A policer",
    "random_loss": "Loss that no queue explains",
    "receive_window": "A receive window too small for the path",
    "send_buffer": "A send buffer too small for the path",
    "ambiguous": "Losses that several causes fit",
    "no_ecn": "ECN not used although the queue marks",
    "nothing": "Nothing wrong was found",
}
"""The findings in the words of a verdict."""
