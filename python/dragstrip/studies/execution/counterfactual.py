"""Runs without the cause that explains a run, such as one without the flow that takes more.

Each is an experiment of its own, written beside the result, so that `dragstrip run` repeats it. It is run on
the simulator alone, also where the experiment names a second engine, with the seeds of the repeats that it
explains, and no recording of it is kept. Its sentence compares the medians over the repeats and says whether
the runs confirm the cause: whether what the cause explains changes by a tenth, in the direction that the
cause says. A verdict that most repeats do not share is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from dragstrip import _core
from dragstrip.display import quantity
from dragstrip.engines import DEFAULT
from dragstrip.errors import BadInputError
from dragstrip.experiment.expand import PlannedRun, expand
from dragstrip.experiment.parts import Application, Bulk, Flow, HostSettings, OnOff, RequestResponse
from dragstrip.experiment.parts import Path as PathForm
from dragstrip.experiment.types import Experiment
from dragstrip.io import toml
from dragstrip.io.files import make_folder, scratch, write_text
from dragstrip.model.scenario.disciplines import is_aqm
from dragstrip.model.scenario.paths import PathFacts, link_facts, packets, path_of
from dragstrip.results.comparison.causes import causes
from dragstrip.results.comparison.path import limit_bytes, qdisc
from dragstrip.runs import Limits, Task, run_all

FOLDER = "counterfactuals"
"""Folder of the experiments, in the output folder."""
SEGMENTS_MAX = 250_000
"""Segments that the explained run sent, and that the other can send, at most: the simulator takes 0.1 s."""
RUNS_MAX = 4
"""Counterfactuals of an experiment, at most; each is run once per repeat."""
REPEATS_SEGMENTS_MAX = 4_000_000
"""Segments that all repeats of a counterfactual's explained run sent, at most."""
ENTRIES_MAX = 16
"""Entries of `flows` among which one is looked for, at most: each is expanded once."""
SMALLER = 1.25
"""A buffer of so many BDPs or fewer is no cause of a standing queue."""
MOVED = 0.1
"""A figure that changes by a smaller part than this stays as it is."""
UNEQUAL_SHARE = 1 / 3
"""Share of one of two flows below which the other gets twice as much: unequal in a rule's terms."""
ACK_PART = 1 / 30
"""A way back with less than this part of the rate holds ACKs up: one of 66 bytes for two frames of 1514."""
FIFO = "pfifo limit 1000"
"""The queue that replaces an active queue management: Linux's default."""

Json: TypeAlias = Mapping[str, Any]
Fields: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class _Effect:
    """Effect of a run without the cause: a sentence, its figures, and whether it confirms the cause."""

    sentence: str
    figures: dict[str, float]
    confirms: bool


@dataclass(frozen=True)
class _Without:
    """An experiment without the cause, and how its summary compares with the flows of the explained run.

    `effect_of` returns None if the run has nothing to do with the cause.
    """

    experiment: Experiment
    effect_of: Callable[[Sequence[Json], Json], _Effect | None]


@dataclass(frozen=True)
class _Trial:
    """Runs without the cause, one per repeat, with the repeats' lines of the result and their finding."""

    finding: dict[str, Any]
    without: _Without
    lines: Sequence[Json]
    runs: Sequence[PlannedRun]


@dataclass(frozen=True)
class _Case:
    """A finding, the run that it explains with its line of the result, and that run's experiment alone."""

    bare: Experiment
    finding: Json
    run: PlannedRun
    line: Json

    @property
    def flows(self) -> Sequence[Json]:
        """The flows of the result, in the order of the scenario's."""
        flows: Sequence[Json] = self.line["flows"]
        return flows

    @property
    def path(self) -> PathForm | None:
        """The dumbbell, if it is one that is written out field by field."""
        return None if isinstance(self.bare.path, str) or "path" in self.bare.vary else self.bare.path

    def on_path(self, field: str) -> Any:
        """Return what the run has in this field of `path`."""
        varied = self.bare.vary.get(f"path.{field}")
        return varied[0] if varied else getattr(self.path, field)

    def place(self, holds: Callable[[Json], bool]) -> int:
        """Return the place of the flow that a sentence names: of the finding's, the first that fits."""
        of_cause = [at for at, flow in enumerate(self.flows) if flow["label"] in self.finding["flows"]]
        return next((at for at in of_cause if holds(self.flows[at])), of_cause[0])

    def facts(self, place: int, run: PlannedRun | None = None) -> PathFacts:
        """Return the facts of a flow's path, in the explained run or another."""
        scenario = (run or self.run).scenario
        flow = scenario["flows"][place]
        return path_of(scenario, flow["sender"], flow["receiver"])

    def changed(self, how: str, ends: Sequence[str] = (), **fields: Any) -> Experiment:
        """Return the experiment with other fields; what varies there, by these ends, is fixed."""
        vary = {
            path: values
            for path, values in self.bare.vary.items()
            if path.partition(".")[0] not in fields or not path.endswith(tuple(ends))
        }
        title = f"{self.bare.title or self.bare.name}, {how}"
        return self.bare.changed(title=title, vary=vary, **fields)

    def with_path(self, how: str, **fields: Any) -> Experiment:
        """Return the experiment with other fields of its path, which must be written out."""
        assert self.path is not None
        return self.changed(how, [f"path.{name}" for name in fields], path=replace(self.path, **fields))

    def with_sysctls(self, how: str, sysctls: Mapping[str, str], flows: Sequence[Flow] = ()) -> Experiment:
        """Return the experiment with sysctls of all hosts."""
        hosts = {
            name: replace(
                host, sysctl={key: value for key, value in host.sysctl.items() if key not in sysctls}
            )
            for name, host in self.bare.hosts.items()
        }
        everyone = hosts.get("*", HostSettings())
        hosts["*"] = replace(everyone, sysctl={**everyone.sysctl, **sysctls})
        return self.changed(
            how,
            [end for name in sysctls for end in (name, f"{name}'", f'{name}"')],
            hosts=hosts,
            flows=list(flows) or self.bare.flows,
        )


def add(
    document: dict[str, Any],
    experiment: Experiment,
    runs: Sequence[PlannedRun],
    out: Path,
    workers: int | None,
    limits: Limits,
) -> list[str]:
    """Add to the explanation that leads what happens without its cause; return the files written.

    Of repeats it is added to the first that has the explanation. Only runs of the simulator that cost little
    are made again, for at most `RUNS_MAX` explanations.
    """
    runs_by_recording = {f"runs/{run.slug}": run for run in runs}
    trials = [
        trial
        for lines in _repeats(document["runs"], runs_by_recording)
        if all(_segments(line) <= SEGMENTS_MAX for line in lines)
        and sum(map(_segments, lines)) <= REPEATS_SEGMENTS_MAX
        for trial in _trials(experiment, lines, runs_by_recording)
    ][:RUNS_MAX]
    if not trials:
        return []
    planned = [run for trial in trials for run in trial.runs]
    with scratch("counterfactual") as folder:
        tasks = [
            Task(run.scenario, folder / str(at), {}, DEFAULT, experiment.options_of(DEFAULT))
            for at, run in enumerate(planned)
        ]
        outcomes = iter(run_all(tasks, workers, limits=limits))
    files = []
    for at, trial in enumerate(trials):
        summaries = [next(outcomes).summary for _ in trial.runs]
        effect = _compare(trial, [summary for summary in summaries if summary is not None])
        if effect is None:
            continue
        name = f"{FOLDER}/{at:02d}.toml"
        make_folder(out / FOLDER)
        write_text(out / name, toml.toml_text(trial.without.experiment.content()))
        files.append(name)
        trial.finding["without"] = {
            "sentence": effect.sentence,
            "figures": effect.figures,
            "confirms": effect.confirms,
            "experiment": name,
            "repeats": len(trial.runs),
        }
    return files


def _repeats(lines: Sequence[Json], runs_by_recording: Mapping[str, PlannedRun]) -> list[list[Json]]:
    """Return the simulator's lines of the result, those that differ in the seed alone together."""
    groups: list[tuple[Mapping[str, Any], list[Json]]] = []
    for line in lines:
        run = runs_by_recording[line["recording"]]
        if run.engine != DEFAULT:
            continue
        members = next((members for settings, members in groups if settings == run.settings), None)
        if members is None:
            groups.append((run.settings, [line]))
        else:
            members.append(line)
    return [members for _, members in groups]


def _segments(line: Json) -> int:
    return sum(flow["segments_sent"] or 0 for flow in line["flows"])


def _leading(lines: Sequence[Json]) -> tuple[Json, dict[str, Any]] | None:
    """Return the finding that leads the explanation of repeats, with the first line that has it."""
    first = next(iter(causes(lines)), None)
    if first is None or not first.leads:
        return None
    return next(
        (
            (line, finding)
            for line in lines
            for finding in line["why"]
            if finding["rule"] == first.rule
            and (first.rule != "unfair_share" or tuple(finding["flows"]) == first.flows)
        ),
        None,
    )


def _trials(
    experiment: Experiment, lines: Sequence[Json], runs_by_recording: Mapping[str, PlannedRun]
) -> Iterator[_Trial]:
    """Yield the counterfactual of what explains repeats, if there is one and it can be run."""
    leading = _leading(lines)
    if leading is None or experiment.alternatives:
        return
    line, finding = leading
    run = runs_by_recording[line["recording"]]
    if {"flows", "hosts"} & run.settings.keys():
        return
    alone = {name: [value] for name, value in run.settings.items()}
    seed = run.scenario["seed"] if len(lines) == 1 else experiment.seed
    try:
        ungraded: Fields = {"claims": [], "ablations": [], "flow_tables": []}
        on_simulator: Fields = {"engine": DEFAULT, "engine_options": {}, "load": []}
        bare = experiment.changed(**ungraded, **on_simulator, repeat=1, seed=seed, vary=alone)
        case = _Case(bare, finding, run, line)
        for how in _HOW.get(finding["rule"], ()):
            without = how(case)
            if without is None:
                continue
            repeated = without.experiment.changed(repeat=len(lines)) if len(lines) > 1 else without.experiment
            changed_by_seed = {changed_run.scenario["seed"]: changed_run for changed_run in expand(repeated)}
            before = {
                runs_by_recording[repeat_line["recording"]].scenario["seed"]: repeat_line
                for repeat_line in lines
            }
            if changed_by_seed.keys() != before.keys():
                return
            changed_run = changed_by_seed[run.scenario["seed"]]
            # A preset, or a host's own setting, may stand above what was changed.
            differs = any(
                changed_run.scenario[key] != run.scenario[key] for key in ("flows", "links", "nodes")
            )
            if differs and packets(changed_run.scenario) <= SEGMENTS_MAX:
                yield _Trial(
                    finding,
                    replace(without, experiment=repeated),
                    list(before.values()),
                    [changed_by_seed[number] for number in before],
                )
                return
    except BadInputError:
        return  # what is left is no experiment, such as a workload without the flow that it loads


def _compare(trial: _Trial, summaries: Sequence[Json]) -> _Effect | None:
    """Return what the medians of the runs say, or None if a run failed or most repeats say something else."""
    if len(summaries) != len(trial.runs):
        return None
    effect_of = trial.without.effect_of
    before, after = _medians([line["flows"] for line in trial.lines]), summaries[0]
    if len(summaries) > 1:
        lead = next(iter(causes(summaries)), None)
        after = {
            "flows": _medians([summary["flows"] for summary in summaries]),
            "why": [{"rule": lead.rule, "flows": lead.flows}] if lead and lead.leads else [],
            "queues": [queue for summary in summaries for queue in summary["queues"]],
        }
    whole = effect_of(before, after)
    if whole is None:
        return None
    effects = [
        effect_of(line["flows"], summary) for line, summary in zip(trial.lines, summaries, strict=True)
    ]
    holds = sum(effect is not None and effect.confirms == whole.confirms for effect in effects)
    if 2 * holds <= len(effects):
        return None
    extent = "" if holds == len(effects) else f" (holds in {holds} of {len(effects)} repeats)"
    return replace(whole, sentence=whole.sentence + extent)


def _medians(repeats: Sequence[Sequence[Json]]) -> list[dict[str, Any]]:
    """Return the flows of repeats with the medians of the figures that counterfactuals compare."""

    def middle(values: Sequence[float | None]) -> float | None:
        present = [value for value in values if value is not None]
        return median(present) if present else None

    return [
        {
            **flows[0],
            **{
                name: middle([flow[name] for flow in flows])
                for name in ("goodput_bps", "share", "retransmits")
            },
            "rtt_ms": {"p50": middle([flow["rtt_ms"]["p50"] for flow in flows])},
        }
        for flows in zip(*repeats, strict=True)
    ]


def _verdict(before: float, after: float, rises: bool) -> int:
    """Return 1 if a figure moves as the cause says, -1 if it moves the other way, 0 if it stays."""
    if abs(after - before) < MOVED * max(abs(before), 1e-12):
        return 0
    return 1 if (after > before) == rises else -1


def _compared(
    when: str,
    subject: str,
    verb: str,
    before: float,
    after: float,
    text: Callable[[float], str],
    cause: str,
    rises: bool,
) -> tuple[str, bool]:
    """Return the sentence that says how a figure changes without the cause, and whether that confirms it."""
    was, now = text(before), text(after)
    moved = _verdict(before, after, rises)
    if moved == 0:
        aside = "" if was == now else f" ({was} before)"
        return f"{when}, {subject} stays at {now}{aside}: {cause} does not explain it alone", False
    sentence = f"{when}, {subject} {verb} {now} instead of {was}"
    return (sentence, True) if moved > 0 else (f"{sentence}: {cause} does not explain it", False)


def _goodput(
    case: _Case, place: int, when: str, cause: str
) -> Callable[[Sequence[Json], Json], _Effect | None]:
    """Return the function that measures how a flow's goodput rises without the cause."""
    label = case.flows[place]["label"]

    def effect_of(flows: Sequence[Json], summary: Json) -> _Effect | None:
        before, after = flows[place]["goodput_bps"], summary["flows"][place]["goodput_bps"]
        compared = (label, "gets", before, after, quantity.rate, cause, True)
        sentence, confirms = _compared(when, *compared)
        return _Effect(sentence, {"goodput_bps": after}, confirms)

    return effect_of


def _share(case: _Case, when: str, cause: str) -> Callable[[Sequence[Json], Json], _Effect | None]:
    """Return the function that measures how the smaller of two shares rises, while both flows live."""
    most, least = _rivals(case)

    def share(flows: Sequence[Json]) -> float | None:
        more, less = flows[most]["share"], flows[least]["share"]
        return None if more is None or less is None or more + less <= 0 else less / (more + less)

    def effect_of(flows: Sequence[Json], summary: Json) -> _Effect | None:
        before, after = share(flows), share(summary["flows"])
        if before is None or after is None:
            return None
        subject = f"the share of {case.flows[least]['label']} in what both get"
        sentence, confirms = _compared(when, subject, "is", before, after, quantity.percent, cause, True)
        if confirms and after <= UNEQUAL_SHARE:
            still = quantity.digits((1 - after) / after)
            sentence += f", but {case.flows[most]['label']} still gets {still} times as much"
        return _Effect(sentence, {"share": after}, confirms)

    return effect_of


def _rtt(
    case: _Case, place: int, when: str, cause: str, rises: bool
) -> Callable[[Sequence[Json], Json], _Effect | None]:
    """Return the function that measures how a flow's median RTT changes without the cause."""
    label = case.flows[place]["label"]

    def effect_of(flows: Sequence[Json], summary: Json) -> _Effect | None:
        before, changed_flow = flows[place]["rtt_ms"]["p50"], summary["flows"][place]
        after = changed_flow["rtt_ms"]["p50"]
        if before is None or after is None:
            return None
        compared = (f"the median RTT of {label}", "is", before, after, quantity.milliseconds, cause, rises)
        sentence, confirms = _compared(when, *compared)
        if confirms:
            sentence += f", at {quantity.rate(changed_flow['goodput_bps'])}"
        return _Effect(sentence, {"goodput_bps": changed_flow["goodput_bps"], "rtt_ms": after}, confirms)

    return effect_of


def _resent(
    places: Sequence[int], case: _Case, when: str, cause: str, rises: bool
) -> Callable[[Sequence[Json], Json], _Effect]:
    """Return the function that measures how many segments these flows retransmit without the cause."""

    def again(flows: Sequence[Json]) -> float:
        return float(sum(flows[place]["retransmits"] or 0 for place in places))

    def effect_of(flows: Sequence[Json], summary: Json) -> _Effect:
        of = f" of {case.flows[places[0]]['label']}" if len(places) == 1 else ""
        before, after = again(flows), again(summary["flows"])
        compared = (f"the number of segments{of} sent again", "is", before, after, quantity.count)
        sentence, confirms = _compared(when, *compared, cause, rises)
        return _Effect(sentence, {"retransmits": after}, confirms)

    return effect_of


def _rivals(case: _Case) -> tuple[int, int]:
    """Return the places of the flows that get most and least."""
    labels = [flow["label"] for flow in case.run.scenario["flows"]]
    most, least = (labels.index(label) for label in case.finding["flows"][:2])
    return most, least


def _alike(case: _Case) -> bool:
    """Return whether the flows that get most and least run one algorithm with the same options."""
    flows = case.run.scenario["flows"]
    most_transport, least_transport = (
        (flow.get("cc"), flow.get("cc_options")) for flow in (flows[at]["transport"] for at in _rivals(case))
    )
    return most_transport == least_transport


def _entry(case: _Case, place: int) -> tuple[int, int, int] | None:
    """Return which entry of `flows` has the flow at this place, and the places of its first and its end."""
    flows, flow_count = case.bare.flows, len(case.run.scenario["flows"])
    if not 2 <= len(flows) <= ENTRIES_MAX or set(case.bare.hosts) - {"*"}:
        return None
    begin = 0
    for at in range(len(flows)):
        rest = case.bare.changed(flows=[*flows[:at], *flows[at + 1 :]])
        end = begin + flow_count - len(expand(rest)[0].scenario["flows"])
        if begin <= place < end:
            return at, begin, end
        begin = end
    return None


def _without_a_flow(case: _Case) -> _Without | None:
    """The entry of `flows` that has the flow which gets more is left out."""
    most, least = _rivals(case)
    entry = None if _alike(case) else _entry(case, most)
    if entry is None or entry[1] <= least < entry[2]:
        return None
    at, begin, end = entry
    removed_flows = (
        case.flows[most]["label"]
        if end - begin == 1
        else f"the {end - begin} flows of {case.flows[most]['cc']}"
    )
    place = least if least < begin else least - (end - begin)
    label = case.flows[least]["label"]

    def effect_of(flows: Sequence[Json], summary: Json) -> _Effect:
        flow, before = summary["flows"][place], flows[least]["goodput_bps"]
        after, when = flow["goodput_bps"], f"without {removed_flows} beside it"
        sentence, confirms = _compared(when, label, "gets", before, after, quantity.rate, removed_flows, True)
        first = summary["why"][0] if summary["why"] else {}
        if confirms and first.get("rule") == "unfair_share" and first["flows"][1] == flow["label"]:
            sentence += f", and {first['flows'][0]} still gets more: {removed_flows} is not the only cause"
        return _Effect(sentence, {"goodput_bps": after}, confirms)

    rest = [*case.bare.flows[:at], *case.bare.flows[at + 1 :]]
    return _Without(case.changed(f"without {removed_flows}", flows=rest), effect_of)


def _without_part(flow: Flow, sign: str) -> tuple[Flow, str | None]:
    """Return the flow without its word's part that begins with this sign, and that part."""
    rest, part = _core.flow_word_without(flow.cc or "", sign)
    return replace(flow, cc=rest or None), part


def _with_equal_round_trips(case: _Case) -> _Without | None:
    """The flow that gets less has the round-trip time of the one that gets more."""
    figures = case.finding["figures"]
    if "most_rtt_ms" not in figures or not _alike(case) or case.path is None or case.path.senders is not None:
        return None
    most, least = _rivals(case)
    places = [_entry(case, place) for place in (most, least)]
    if places[0] is None or places[1] is None or places[0] == places[1]:
        return None
    near, part = _without_part(case.bare.flows[places[0][0]], "@")
    far, _ = _without_part(case.bare.flows[places[1][0]], "@")
    flows = list(case.bare.flows)
    flows[places[1][0]] = replace(far, rtt=near.rtt or part)
    rtt = quantity.duration_ns(case.facts(most).rtt_ns)
    when = f"with the RTT of {case.flows[most]['label']} ({rtt})"
    effect_of = _share(case, when, "the difference in RTT")
    return _Without(case.changed("equal round-trip times", (".rtt",), flows=flows), effect_of)


def _with_one_start(case: _Case) -> _Without | None:
    """All flows start at once."""
    if "later_s" not in case.finding["figures"] or not _alike(case):
        return None
    flows = [replace(_without_part(flow, "+")[0], start="0s", stagger="0s") for flow in case.bare.flows]
    effect_of = _share(case, "if all start at once", "the later start")
    return _Without(case.changed("all start at once", (".start", ".stagger"), flows=flows), effect_of)


def _with_ecn_for_both(case: _Case) -> _Without | None:
    """Every host negotiates ECN, where one flow is marked and the other dropped."""
    if not {"marked", "dropped", "resent"} <= case.finding["figures"].keys():
        return None
    changed = case.with_sysctls("ECN for both", {"net.ipv4.tcp_ecn": "1"})
    return _Without(changed, _share(case, "with ECN for both", "that only one has ECN"))


def _with_one_bdp(case: _Case) -> _Without | None:
    """The buffer is one BDP, where flows stand in a larger FIFO."""
    if case.path is None:
        return None
    rtt = case.finding["figures"]["rtt_ms"]
    place = case.place(lambda flow: flow["rtt_ms"]["p50"] == rtt)
    changed = case.with_path("buffer of one BDP", queue="1bdp")
    before, after = _buffer_ms(case.facts(place)), _buffer_ms(case.facts(place, expand(changed)[0]))
    if before is None or after is None or before < SMALLER * after:
        return None
    when = _buffers(before, after)
    return _Without(changed, _rtt(case, place, when, "the buffer", rises=False))


def _buffers(before: float, after: float) -> str:
    after_text, before_text = quantity.milliseconds(after), quantity.milliseconds(before)
    return f"with a buffer of {after_text} (one BDP) instead of {before_text}"


def _with_a_deeper_buffer(case: _Case) -> _Without | None:
    """The buffer is one BDP, where it is smaller than that."""
    blamed = case.finding["rule"] == "timeouts" or "buffer_bytes" in case.finding["figures"]
    if case.path is None or not blamed:
        return None
    place = _slowed(case)
    changed = case.with_path("buffer of one BDP", queue="1bdp")
    before, after = _buffer_ms(case.facts(place)), _buffer_ms(case.facts(place, expand(changed)[0]))
    if before is None or after is None or after < SMALLER * before:
        return None
    when = _buffers(before, after)
    return _Without(changed, _goodput(case, place, when, "the small buffer"))


def _slowed(case: _Case) -> int:
    """Return the place of the flow that a finding on timeouts, loss or an idle link is shown by."""
    figures = case.finding["figures"]
    if case.finding["rule"] == "timeouts":
        return case.place(lambda flow: flow["timeouts"] == figures["timeouts"])
    if case.finding["rule"] == "random_loss":
        return case.place(lambda flow: flow["goodput_bps"] == figures["goodput_bps"])
    return case.place(lambda _: True)


def _without_loss(case: _Case) -> _Without | None:
    """Nothing is lost at random."""
    if case.path is None or case.path.preset is not None:
        return None
    lossless = {"loss": "0%", "ahead_loss": "0%"}
    changed = case.with_path("no random loss", **lossless)
    return _Without(changed, _goodput(case, _slowed(case), "without random loss", "the loss"))


def _without_policer(case: _Case) -> _Without | None:
    """A FIFO stands in the place of a policer."""
    if case.path is None or not str(case.on_path("queue")).startswith("police"):
        return None
    changed = case.with_path("no policer", queue=FIFO)
    when = f"without the policer ({FIFO} in its place)"
    return _Without(changed, _goodput(case, _slowed(case), when, "the policer"))


def _with_a_faster_way_back(case: _Case) -> _Without | None:
    """The return path is unlimited, where it is too slow for the ACKs."""
    if case.path is None or case.path.preset is not None or not case.on_path("up_rate"):
        return None
    figures = case.finding["figures"]
    place = case.place(lambda flow: figures.get("rtt_ms") in (None, flow["rtt_ms"]["p50"]))
    facts = case.facts(place)
    rates = [link["rate_bps"] for link in link_facts({**case.run.scenario, "links": facts.back})]
    back = min((rate for rate in rates if rate), default=0)
    if not facts.rate_bps or not 0 < back < ACK_PART * facts.rate_bps:
        return None
    changed = case.with_path("return path unlimited", up_rate=None, up_queue=None)
    when = f"with an unlimited return path instead of {quantity.rate(back)}"
    if case.finding["rule"] == "standing_queue":
        return _Without(changed, _rtt(case, place, when, "the slow return path", rises=False))
    return _Without(changed, _goodput(case, place, when, "the slow return path"))


def _with_a_fifo(case: _Case) -> _Without | None:
    """A FIFO stands in the place of an active queue management."""
    if case.path is None:
        return None
    kind, *words = str(case.on_path("queue")).split() or [""]
    if not is_aqm(kind) or "bandwidth" in words:
        return None
    place = case.place(lambda flow: flow["rtt_ms"]["p50"] is not None)
    changed = case.with_path(f"{FIFO} instead of {kind}", queue=FIFO)
    return _Without(changed, _rtt(case, place, f"with {FIFO} instead of {kind}", kind, rises=True))


def _without_ecn(case: _Case) -> _Without | None:
    """No host negotiates ECN, where marks stand for drops."""
    places = [at for at, flow in enumerate(case.flows) if flow["label"] in case.finding["flows"]]
    resent = _resent(places, case, "without ECN", "ECN", rises=True)

    def effect_of(flows: Sequence[Json], summary: Json) -> _Effect | None:
        marked = any(queue["marked"] for queue in summary["queues"])
        return None if marked else resent(flows, summary)  # DCTCP and Prague negotiate ECN all the same

    return _Without(case.with_sysctls("no ECN", {"net.ipv4.tcp_ecn": "0"}), effect_of)


def _with_larger_window(case: _Case) -> _Without | None:
    """Socket buffers are larger than what the path holds, and the kernel tunes them."""
    goodput = case.finding["figures"]["goodput_bps"]
    place = case.place(lambda flow: flow["goodput_bps"] == goodput)
    bdp = case.facts(place).bdp_bytes
    if bdp is None:
        return None
    # A third of the send buffer and half of the receive buffer are used, and memory includes overhead.
    largest = min(2**30, 1 << (8 * bdp + 2**23).bit_length())
    sysctls = {"net.ipv4.tcp_wmem": f"4096 16384 {largest}", "net.ipv4.tcp_rmem": f"4096 131072 {largest}"}
    flows = [replace(flow, send_buffer=None, receive_buffer=None) for flow in case.bare.flows]
    buffer_name = "send buffer" if case.finding["rule"] == "send_buffer" else "receive window"
    effect_of = _goodput(
        case, place, f"with socket buffers of up to {quantity.limit(largest)}", f"the {buffer_name}"
    )
    return _Without(case.with_sysctls("large socket buffers", sysctls, flows), effect_of)


def _with_hystart(case: _Case) -> _Without | None:
    """Slow start is HyStart++'s (RFC 9406), for algorithms that have the option."""
    again = case.finding["figures"]["retransmits"]
    place = case.place(lambda flow: flow["retransmits"] == again)
    options = {flow["transport"].get("cc") for flow in case.run.scenario["flows"]}
    if not options <= {"reno", "cubic"}:
        return None
    flows = [replace(flow, cc_options={**flow.cc_options, "hystart_pp": 1}) for flow in case.bare.flows]
    effect_of = _resent([place], case, "with HyStart++", "slow start", rises=False)
    return _Without(case.changed("HyStart++", (".cc_options.hystart_pp",), flows=flows), effect_of)


def _without_pauses(case: _Case) -> _Without | None:
    """The applications never pause: nothing is silent, and what is answered is asked again at once."""
    limited = case.finding["figures"]["app_limited_s"]
    place = case.place(lambda flow: (flow["limited_s"] or {}).get("app") == limited)
    flows = []
    for flow in case.bare.flows:
        doing: Application = flow.application
        if isinstance(doing, OnOff):
            doing = Bulk()
        elif isinstance(doing, RequestResponse):
            doing = replace(doing, think="0s")
        flows.append(replace(flow, application=doing))
    effect_of = _goodput(case, place, "without pauses of the application", "its pauses")
    dropped = (".application", ".application.off", ".application.on", ".application.think")
    return _Without(case.changed("no pauses", dropped, flows=flows), effect_of)


_HOW: Mapping[str, Sequence[Callable[[_Case], _Without | None]]] = {
    "timeouts": (_without_loss, _with_a_deeper_buffer),
    "application": (_without_pauses,),
    "send_buffer": (_with_larger_window,),
    "receive_window": (_with_larger_window,),
    "unfair_share": (_with_ecn_for_both, _with_equal_round_trips, _with_one_start, _without_a_flow),
    "random_loss": (_without_loss,),
    "ecn_marks": (_without_ecn,),
    "aqm": (_with_a_fifo,),
    "standing_queue": (_with_a_faster_way_back, _with_one_bdp),
    "slow_start_overshoot": (_with_hystart,),
    "idle_link": (_without_policer, _with_a_faster_way_back, _with_a_deeper_buffer),
}
"""By rule, what may be changed: the first that can be is."""


def _buffer_ms(facts: PathFacts) -> float | None:
    """Return how long a full FIFO at the bottleneck takes to leave, or None for another queue."""
    if facts.bottleneck is None or facts.rate_bps is None:
        return None
    queue = qdisc(facts.bottleneck)
    queue = queue.get("leaf") or queue
    if queue["kind"] not in ("bfifo", "pfifo"):
        return None
    size = limit_bytes(queue)
    return None if size is None else size * 8e3 / facts.rate_bps
