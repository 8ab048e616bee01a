"""A diagnosis from its files and options to its document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragstrip.analysis.diagnosis import advice, findings, sources, stated_path
from dragstrip.analysis.diagnosis import trials as simulator
from dragstrip.analysis.diagnosis.evidence import Evidence, gathered
from dragstrip.analysis.diagnosis.finding import AMBIGUOUS, Finding
from dragstrip.analysis.diagnosis.observations import Observations, fact_document
from dragstrip.analysis.diagnosis.privacy import without_addresses
from dragstrip.analysis.diagnosis.saved_path import from_evidence
from dragstrip.display.progress import progress
from dragstrip.errors import BadInputError
from dragstrip.experiment.saved_paths import SavedPath
from dragstrip.io.files import appearing, expect_folder, write_json

VERSION = 1
RUNS = "runs"
DOCUMENT = "diagnosis.json"
OF_MODELS = frozenset({"policer", "random_loss", "slow_start_overshoot"})
"""Findings that name a mechanism, which a run that does not reproduce the measurement puts in doubt."""


def diagnose(
    files: Sequence[Path],
    race: Mapping[str, Any],
    algorithm: str | None = None,
    out: Path | None = None,
    quiet: bool = False,
    trials: bool = True,
    addresses: bool = False,
    keep: Callable[[SavedPath], object] | None = None,
) -> dict[str, Any]:
    """Return what is wrong on a path, how sure that is and what helps (docs/how-to/diagnose.md).

    `race` are options of `compare` that describe the path, `algorithm` is what its senders run. With `out`,
    the document, and the reports of the runs, are written into that folder. Without `trials` no change is
    tried on the simulator, and there is no advice. What is written has no addresses and folders, unless
    `addresses`; the document that is returned has them. `keep` is called with the path.
    Raises `BadInputError` for a file or an option that cannot be right; nothing is written then.
    """
    if not files and not stated_path.is_whole(race):
        expected = "a file, or a path: --path NAME, or --rate RATE with --rtt TIME"
        raise BadInputError("FILE", None, expected, "command line")
    if out is not None:
        _expect_free(out)
    options_path = stated_path.from_options(race, algorithm or "cubic") if race or algorithm else None
    with progress("reading the files ...", quiet):
        observed = sources.observed(files, quiet)
    if options_path is not None:
        observed += stated_path.of_uploads(options_path, observed.flows)
    if options_path is not None and stated_path.is_whole(race) and not (observed.flows or observed.probes):
        observed += _simulated(options_path, race, observed, algorithm or "cubic", quiet)
    evidence = gathered(observed)
    if options_path is not None:
        evidence = replace(evidence, upward=options_path.upward, medium=options_path.medium)
    if keep is not None:
        keep(from_evidence(evidence, race))
    path_findings = findings.findings(evidence)
    proposals, refused = advice.proposed(evidence, path_findings, race, algorithm) if trials else ([], [])
    proposals = [proposal for proposal in proposals if _can_run(proposal, refused)]
    setups = _setups_by_name(proposals)
    if out is None or not setups:
        runs = simulator.run(setups, None, quiet)
        document = _document(evidence, path_findings, proposals, refused, setups, runs)
        if out is not None:
            with appearing(out) as draft:
                write_json(draft / DOCUMENT, _without_private_data(document, observed, addresses))
        return document
    runs = simulator.run(setups, out / RUNS, quiet, report=True)
    document = _document(evidence, path_findings, proposals, refused, setups, runs)
    write_json(out / DOCUMENT, _without_private_data(document, observed, addresses))
    return document


def _without_private_data(document: dict[str, Any], observed: Observations, addresses: bool) -> Any:
    """Return the document as it is written into a folder."""
    if addresses:
        return document
    flows = [name for flow in observed.flows for name in flow.hosts]
    return without_addresses(document, {*flows, *(name for probe in observed.probes for name in probe.hosts)})


def _simulated(
    options_path: stated_path.DescribedPath,
    race: Mapping[str, Any],
    observed: Observations,
    algorithm: str,
    quiet: bool,
) -> Observations:
    """Return what runs of a path show that nobody measured: with downloads, and if need be with uploads."""
    path = options_path.path
    length = simulator.duration(path.rate_bps or 1.0, path.ping_ns / 1e6)
    options = {"duration": length, "seed": simulator.SEED, **stated_path.to_simulate(race, observed)}
    setups = {"one-way": simulator.TrialSetup.of(options, algorithm, advice.SHARED)}
    if options_path.up_bps is not None and options_path.upward is not None:
        longest = simulator.duration(options_path.up_bps, path.ping_ns / 1e6)
        options = {"duration": longest, "seed": simulator.SEED, **options_path.upward}
        setups["upward"] = simulator.TrialSetup.of(options, algorithm, advice.SHARED)
    measured = simulator.run(setups, None, quiet)
    observations = stated_path.simulated(measured["one-way"])
    if options_path.up_bps is not None and "upward" in measured:
        observations += stated_path.uploaded(measured["upward"], options_path.up_bps)
    return observations


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


def _setups_by_name(proposals: Sequence[advice.Advice]) -> dict[str, simulator.TrialSetup]:
    """Return the set-ups to run, each once, by the name of its folder."""
    setups: dict[str, simulator.TrialSetup] = {}
    for proposal in proposals:
        stem = proposal.finding.name.replace("_", "-")
        for name, setup in [
            (f"{stem}-as-found", proposal.before),
            *((f"{stem}-{number}", setup) for number, (_, setup) in enumerate(proposal.after, start=1)),
        ]:
            if setup not in setups.values():
                setups[name] = setup
    return setups


def _document(
    evidence: Evidence,
    path_findings: Sequence[Finding],
    proposals: Sequence[advice.Advice],
    refused: list[str],
    setups: Mapping[str, simulator.TrialSetup],
    runs: Mapping[str, simulator.RunFigures],
) -> dict[str, Any]:
    by_setup = {setup: (name, runs[name]) for name, setup in setups.items()}
    advice_rows: list[dict[str, Any]] = []
    refuted: set[str] = set()
    for proposal in proposals:
        name, before = by_setup[proposal.before]
        unlike = advice.unlike(evidence, proposal.finding, before)
        if unlike is not None:
            refused.append(unlike)
            refuted |= {proposal.finding.name} & OF_MODELS
            continue
        judged = advice.judged(
            evidence, proposal, before, [by_setup[setup][1] for _, setup in proposal.after]
        )
        advice_rows.append(
            {
                "finding": proposal.finding.name,
                "against": _lower(title(proposal.finding)),
                "complaint": proposal.finding.complaint,
                "assumed": list(proposal.assumed),
                "as_found": before.document() | {"run": name, "compare": proposal.before.command},
                "changes": [
                    {
                        "change": judgement.candidate.change,
                        "recommended": judgement.recommended,
                        "reason": judgement.reason,
                        "gain": judgement.gain,
                        "both_directions": judgement.candidate.both_directions,
                        "where": judgement.candidate.where,
                        "commands": list(judgement.candidate.commands),
                        "run": by_setup[judgement.setup][0],
                        **judgement.measured.document(),
                        "compare": judgement.setup.command,
                    }
                    for judgement in judged
                ],
            }
        )
    path_findings = [_doubted(finding) if finding.name in refuted else finding for finding in path_findings]
    wrong = [finding.document() for finding in path_findings if finding.certainty != "cannot know"]
    unknown = [finding.document() for finding in path_findings if finding.certainty == "cannot know"]
    return {
        "version": VERSION,
        "files": [{"path": path, "format": kind} for path, kind in evidence.observed.files],
        "verdict": verdict(path_findings, advice_rows, evidence.conflicts),
        "evidence": [fact_document(fact) for fact in evidence.facts],
        "contradictions": evidence.conflicts,
        "findings": wrong,
        "advice": advice_rows,
        "not_tried": list(refused),
        "unknown": unknown,
        "notes": evidence.observed.notes,
    }


def _doubted(finding: Finding) -> Finding:
    """Return a finding whose model does not reproduce what was measured: it is likely at best."""
    return replace(finding, certainty="likely") if finding.certainty == "certain" else finding


def verdict(
    findings: Sequence[Finding], advices: Sequence[Mapping[str, Any]], conflicts: Sequence[str] = ()
) -> str:
    """Return the diagnosis in one sentence, of contradictory files in two."""
    wrong = [finding for finding in findings if finding.certainty != "cannot know"]
    if not wrong:
        supposed = [title(finding) for finding in findings if finding.complaint]
        doubt = f": {_lower(supposed[0])}, if the queue is what was assumed" if supposed else ""
        split = " The files and options contradict each other." if conflicts else ""
        return f"The evidence does not show whether anything is wrong{doubt}.{split}"
    first = wrong[0]
    if first.name == "nothing":
        return f"{title(first)}."
    sure = {"certain": "", "likely": ", likely"}[first.certainty]
    titles = [title(finding) for finding in wrong[1:] if finding.name != "nothing"]
    further_titles = [text for text in dict.fromkeys(titles) if text != title(first)]
    head = f"{title(first)}{sure}" + (
        f"; also {', '.join(map(_lower, further_titles))}" if further_titles else ""
    )
    return " ".join((f"{head}.", *_best(advices)))


def _best(advices: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the best change in a sentence, if any is recommended.

    Of bufferbloat in both directions it is the best for both, or the best for each where none was tried in
    both at once.
    """
    recommended = {
        advice["finding"]: [change for change in advice["changes"] if change["recommended"]]
        for advice in advices
    }
    forward, back = (recommended.get(name, []) for name in ("bufferbloat", "bufferbloat_up"))
    best = next((changes[0] for changes in recommended.values() if changes), None)
    both = next((change for change in back if change["both_directions"]), None)
    if forward and both is not None:
        yield f"Best change, in both directions: {both['change']} ({both['reason']})."
    elif forward and back:
        change, change_back = forward[0]["change"], back[0]["change"]
        yield f"Best change: {change}; on the return path: {change_back}."
    elif best is not None:
        yield f"Best change: {best['change']}."


def title(finding: Finding) -> str:
    """Return a finding in the words of a verdict: its causes, if several fit."""
    if finding.name != AMBIGUOUS:
        return TITLES[finding.name]
    first, *further_causes = [TITLES[name] for name in finding.causes]
    return f"{first} or {' or '.join(map(_lower, further_causes))}: cannot tell"


def _lower(title: str) -> str:
    acronym = title[:2].isalpha() and title[:2].isupper()
    return title if acronym else title[0].lower() + title[1:]


TITLES = {
    "bufferbloat": "Bufferbloat",
    "bufferbloat_up": "Bufferbloat on the return path",
    "slow_start_overshoot": "Slow start's overshoot",
    "random_loss": "Random loss",
    "aqm": "An active queue management at work",
    "policer": "A policer",
    "shaper_above_line": "A shaper set above the line's rate",
    "shaper_below_line": "A shaper set far below the line's rate",
    "receive_window": "A receive window too small for the path",
    "send_buffer": "A send buffer too small for the path",
    "small_queue_limit": "TCP's small-queue limit",
    "application": "An application that sends less",
    "receiver_closed": "A receiver that does not read",
    "no_answer": "No answer to connections",
    "ack_path": "A queue on the way of the acknowledgements",
    "marked_class": "A marked class that waits",
    "path_change": "A change of the path's own delay",
    "link_jitter": "A link whose own delay varies",
    "packet_loss": "Packet loss",
    "unreachable": "A host that does not answer",
    "outage": "An outage",
    "shaper_bypassed": "A shaper that the traffic did not pass",
    "other_bottleneck": "An AQM that does not hold the queue",
    "no_ecn": "ECN not used although the queue marks",
    "fifo": "A plain FIFO",
    "nothing": "Nothing wrong was found",
}
"""The causes in the words of a verdict."""
