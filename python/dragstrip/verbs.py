"""The commands as functions: the same names and words, objects as answers.

Nothing is printed, unless `progress` asks for it on standard error, in a notebook as a bar in the cell; and
nothing is written unless a folder is named. Errors name arguments as they were passed. An interrupt ends the
work and raises `KeyboardInterrupt`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from dragstrip.display.document import Listing, StudyDocument
from dragstrip.display.quantity import plural
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment import saved_paths
from dragstrip.experiment.programs import Program, Programs, by_name
from dragstrip.experiment.quantities import CHANGING, DESCRIBING, expect_options, quantity_of, texts
from dragstrip.experiment.race import OPTIONS
from dragstrip.interop.arguments import named_arguments
from dragstrip.io.files import expect_own_folder

if TYPE_CHECKING:
    from datetime import timedelta

    import pyarrow as pa

    from dragstrip.analysis.inference.path import PathEstimate
    from dragstrip.experiment.quantities import RaceQuantities
    from dragstrip.experiment.saved_paths import SavedPath
    from dragstrip.experiment.types import Experiment
    from dragstrip.interop.path_shell.shell import Shell
    from dragstrip.playground.cell import Playground
    from dragstrip.studies.judge import Judgement
    from dragstrip.studies.search import Proposer, SearchResult

PathLike: TypeAlias = str | Path
"""A file or a folder."""
NAME_MAX = 255
"""Characters of a kept path's name, at most."""


class Diagnosis(StudyDocument):
    """Findings on a path, their certainty and the changes that help (docs/reference/diagnosis.md)."""

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The findings, the most important first."""
        return list(self["findings"])

    @property
    def headline(self) -> str:
        """The verdict."""
        return str(self["verdict"])


class WhatIfVerdict(StudyDocument):
    """Predictions of other congestion controls in the place of a capture's own (docs/reference/whatif.md)."""

    def __init__(self, document: Mapping[str, Any], text: str, path: SavedPath) -> None:
        super().__init__(document, text)
        self.path = MeasuredPath(path)
        """The path that the capture shows, with the interval of each property."""

    @property
    def headline(self) -> str:
        """The verdict's sentence."""
        return str(self["sentence"])


class Identification(StudyDocument):
    """The congestion control that a capture shows, with each candidate's likelihood."""


class MeasuredPath(StudyDocument):
    """A path that captures or other programs' files show: options of `race`, with intervals and sources.

    `race("cubic", **path.options())` races on it; `save` keeps it for `path=` and `--path`.
    """

    def __init__(self, path: SavedPath) -> None:
        known = {
            name: {key: text for key, text in vars(entry).items() if text}
            for name, entry in path.known.items()
        }
        document = {"version": 1, "source": path.source, "options": dict(path.options), "known": known}
        super().__init__(document, saved_paths.text(path))
        self._path = path

    @property
    def headline(self) -> str:
        """The options."""
        return " ".join(f"{name}={value}" for name, value in self["options"].items())

    def options(self, **given: Any) -> dict[str, Any]:
        """Return the path's options of `race` with the given ones, which win.

        Raises `BadInputError` for a property that is unknown and not given.
        """
        stated = {name: value for name, value in texts(given).items() if value is not None}
        expect_options(stated, saved_paths.PATH_OPTIONS, "a measured path")
        for name, reason in saved_paths.unknown(self._path, {**self._path.options, **stated}):
            raise BadInputError(name, None, f"is not known, {reason}; options({name}=...) gives it")
        return saved_paths.merged(self._path, stated, "path")

    def save(self, name: PathLike) -> Path:
        """Write the path for `path=` and `--path`, by its name or into a file, and return the file.

        Raises `BadInputError` for the name of a built-in path.
        """
        if not isinstance(name, str | Path) or not str(name) or len(str(name)) > NAME_MAX:
            raise BadInputError("name", name, f"a name or a file, of at most {NAME_MAX} characters")
        try:
            return saved_paths.write(self._path, str(name), "name")
        except BadInputError as error:
            raise error.reworded("name") from None


class Inspection(StudyDocument):
    """Bytes, round trips, retransmissions and limits of each flow in captures and other programs' files."""

    def __init__(self, document: Mapping[str, Any], text: str, path: SavedPath | BadInputError) -> None:
        super().__init__(document, text)
        self._path = path

    @property
    def path(self) -> MeasuredPath:
        """The path of the first flow whose rate and round trip are known; needs `infer=True`.

        Raises `BadInputError`, which says why, if there is none.
        """
        if isinstance(self._path, BadInputError):
            raise self._path
        return MeasuredPath(self._path)

    @property
    def flows(self) -> list[dict[str, Any]]:
        """The flows."""
        return list(self["flows"])

    @property
    def headline(self) -> str:
        """The number of flows."""
        return plural(len(self.flows), "flow")


class PassportDocument(StudyDocument):
    """The rows of a passport, each with its figure, rule and verdict."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows."""
        return list(self["rows"])

    @property
    def headline(self) -> str:
        """The algorithm and its number of rows, by verdict."""
        verdicts = Counter(row["verdict"] for row in self.rows)
        tally = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        return f"{self['algorithm']}, {plural(len(self.rows), 'row')}: {tally}"


class EvidenceDocument(StudyDocument):
    """The clauses of RFC 9743, each with its verdict and the rows that answer it."""

    @property
    def clauses(self) -> list[dict[str, Any]]:
        """The clauses, in the RFC's order."""
        return list(self["clauses"])

    @property
    def headline(self) -> str:
        """The algorithm and its number of clauses, by verdict."""
        tally = ", ".join(f"{count} {verdict}" for verdict, count in self["counts"].items() if count)
        return f"{self['algorithm']}, {plural(len(self.clauses), 'clause')}: {tally}"


class AttackDocument(StudyDocument):
    """Conditions under which a congestion control fails."""

    @property
    def finds(self) -> list[dict[str, Any]]:
        """The finds, the worst first."""
        return list(self["finds"])

    @property
    def headline(self) -> str:
        """The algorithm, the number of attacks and the finds."""
        finds = ", ".join(find["name"] for find in self.finds) or "no find"
        return f"{self['algorithm']}, {plural(self['evaluations'], 'attack')}: {finds}"


class ImportedQueues(StudyDocument):
    """The queues that a script of tc commands sets up, as experiment fields."""

    @property
    def headline(self) -> str:
        """The queues by device and direction."""
        return "; ".join(str(self).splitlines())


class Conformance(StudyDocument):
    """Conformance scripts, each with the first segment that differs."""

    @property
    def headline(self) -> str:
        """The number of scripts of each engine, by verdict."""
        parts = []
        for engine, counts in self["counts"].items():
            tally = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
            parts.append(f"{engine}, {plural(sum(counts.values()), 'script')}: {tally}")
        return "; ".join(parts)


class SweepResult(StudyDocument):
    """A sweep's counts, ranking and files; `table()` is its dataset."""

    @property
    def folder(self) -> Path:
        """The sweep's folder."""
        return Path(self["dataset"]).parent.parent

    @property
    def headline(self) -> str:
        """The runs, and the folder."""
        failed = f", {self['failed']:,} failed" if self["failed"] else ""
        return f"{plural(self['runs'], 'run')}{failed}, in {self.folder}"

    def table(self) -> pa.Table:
        """Return the dataset as Arrow: a row per flow and run (docs/how-to/sweeps.md)."""
        from dragstrip.studies.sweep import dataset

        return dataset.read(self.folder)


def _paths(files: Sequence[PathLike]) -> list[Path]:
    return [Path(file) for file in files]


@named_arguments
def diagnose(
    *files: PathLike,
    sender_algorithm: str | None = None,
    out: PathLike | None = None,
    progress: bool = False,
    **options: Unpack[RaceQuantities],
) -> Diagnosis:
    """Return what is wrong on a path, how sure that is, and which change helps by how much.

    `files` show the path: scripts of tc commands, listings of `tc -s qdisc show`, captures, files of iperf3,
    flent, ping, fping, irtt or `ss -tin`. `options` of `compare` describe it, such as `path="home DSL"`. With
    `out`, the document and the reports of the runs are written into that folder.

    Raises `BadInputError` for a file or an option that cannot be right.
    """
    from dragstrip.analysis.diagnosis import console, walk

    expect_options(options, DESCRIBING, "diagnose")
    document = walk.diagnose(
        _paths(files),
        texts(options),
        sender_algorithm,
        None if out is None else Path(out),
        quiet=not progress,
    )
    return Diagnosis(document, console.text(document))


@named_arguments
def inspect(
    *files: PathLike, labels: bool = False, infer: bool = False, progress: bool = False
) -> Inspection:
    """Return what captures of TCP show: bytes, round trips, retransmissions and limits of each flow.

    Several captures are vantage points of the same connections; other programs' files are read one by one.
    `labels` adds the number of segments by Wireshark's words for them; `infer` adds the path of each flow, of
    which `Inspection.path` races others. Raises `BadInputError` for a file that is missing or of no known
    format.
    """
    from dragstrip.analysis import inspection
    from dragstrip.interop.inputs import input_of

    if not files:
        raise BadInputError("files", None, "is missing: a capture, or another program's file")
    inputs = [input_of(file) for file in _paths(files)]
    inspected = inspection.inspect(inputs, labels=labels, infer=infer, quiet=not progress)
    return Inspection(inspected.document(), inspected.text(), _path_of_estimates(inspected.paths))


def _path_of_estimates(paths: Sequence[PathEstimate] | None) -> SavedPath | BadInputError:
    """Return the path of a capture's flows, or why there is none."""
    from dragstrip.analysis.whatif.saved_path import from_estimates

    if paths is None:
        return BadInputError("infer", False, "True: the path is not inferred otherwise")
    try:
        return from_estimates(paths, "dragstrip.inspect")
    except BadInputError as error:
        return BadInputError("files", None, f"no path: {error.explanation}")


@named_arguments
def whatif(
    capture: PathLike,
    *algorithms: str,
    sender_algorithm: str | None = None,
    flow: str | None = None,
    anyway: bool = False,
    progress: bool = False,
    **options: Unpack[RaceQuantities],
) -> WhatIfVerdict:
    """Return what other congestion controls would have done in the place of a capture's own.

    Infers the path, runs the capture's algorithm on it, judges how well that explains the capture, and races
    `algorithms` there. `options` of `compare`, such as `queue="fq_codel"`, change the path for the race;
    `path`, by name or as a file, replaces it. `anyway` races on a path that does not explain the capture,
    too. Raises `BadInputError`.
    """
    from dragstrip.analysis.whatif import console, document, walk
    from dragstrip.analysis.whatif.saved_path import from_network

    expect_options(options, CHANGING, "whatif")
    verdict = walk.whatif(
        Path(capture),
        list(algorithms),
        sender_algorithm=sender_algorithm,
        name=flow,
        changes=texts(options),
        anyway=anyway,
        quiet=not progress,
    )
    path = from_network(verdict.network, Path(capture).name, "dragstrip.whatif")
    text = console.text(verdict, addresses=True)
    return WhatIfVerdict(document.document(verdict, addresses=True), text, path)


@named_arguments
def identify(capture: PathLike, *, flow: str | None = None, progress: bool = False) -> Identification:
    """Return which congestion control a capture shows, or why it cannot be told.

    `flow` chooses one of several flows by a part of its addresses, such as `:443`. Raises `BadInputError`.
    """
    from dragstrip.analysis.whatif import console, document, walk

    subject, _, answer = walk.identify(Path(capture), flow, quiet=not progress)
    content = document.identification(subject, answer, addresses=True)
    return Identification(content, console.identified(subject, answer, True))


@named_arguments
def passport(
    algorithm: str | None = None,
    *,
    queue: str | None = None,
    quick: bool = False,
    only: str | None = None,
    path: PathLike | None = None,
    against: PathLike | None = None,
    programs: Programs | None = None,
    out: PathLike | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> PassportDocument:
    """Return what a congestion control is good at, where it fails and whom it harms, row by row.

    Instead of an algorithm, `queue` is a discipline in tc's words or the file of a script with tc commands:
    its rows are the scenarios of RFC 7928. `quick` runs the rows that decide most; `only` chooses chapters by
    name, with commas; `path`, by name or as a file, adds the rows of the chapter `path` on it; `against` is
    an earlier passport's file to compare with. With `out`, its page, JSON and experiments are written into
    that folder, which is empty, does not exist yet or is that of an earlier passport. Raises `BadInputError`.
    """
    from dragstrip.studies.passport import command, console

    if out is not None:
        expect_own_folder("out", Path(out), command.MARKS)
    before = None if against is None else Path(against)
    if queue is not None:
        from dragstrip.interop import scripts
        from dragstrip.studies.passport.queues.command import read_request

        for name, value in (("algorithm", algorithm), ("path", path), ("programs", programs)):
            if value:
                raise BadInputError(name, None, "is not for queue, whose flows are those of RFC 7928")
        request = read_request(scripts.discipline(queue), quick=quick, only=only, baseline_file=before)
    elif algorithm is None:
        raise BadInputError("algorithm", None, "is missing; or queue")
    else:
        request = command.read_request(
            algorithm,
            by_name(programs),
            [],
            quick=quick,
            only=only,
            path=None if path is None else str(path),
            baseline_file=before,
        )
    document = command.make(request, workers, quiet=not progress)
    if out is not None:
        command.write(document, request, Path(out))
    return PassportDocument(document, console.text(document, None if out is None else Path(out)))


@named_arguments
def evidence(
    algorithm: str,
    *,
    quick: bool = False,
    programs: Programs | None = None,
    out: PathLike | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> EvidenceDocument:
    """Return what RFC 9743 (BCP 133) asks of a congestion control, and which rows of its passport answer it.

    `quick` runs the rows that decide most. With `out`, the documents and the passport are written into that
    folder, which is empty, does not exist yet or is that of earlier ones. Raises `BadInputError`.
    """
    from dragstrip.studies.evidence import command, console
    from dragstrip.studies.passport import command as passport_command

    if out is not None:
        expect_own_folder("out", Path(out), command.MARKS)
    request = passport_command.read_request(
        algorithm, by_name(programs), [], quick=quick, only=None, baseline_file=None
    )
    document = command.make(request, workers, not progress, None if out is None else Path(out))
    return EvidenceDocument(document, console.text(document))


@named_arguments
def judge(
    texts: Sequence[str | Program | PathLike],
    *,
    hidden: int,
    quick: bool = False,
    scenarios: int | None = None,
    show: bool = False,
    workers: int | None = None,
    progress: bool = False,
) -> list[Judgement]:
    """Return the score of each algorithm on paths that the seed `hidden` draws, in the order of `texts`.

    Each of `texts` is a text (docs/how-to/program.md), a `program`, the file of a text (FILE.cc), or a
    congestion control by name. `scenarios` is the number of paths: 40, with `quick` 8. A `Judgement` has a
    `.score` (doublings of goodput over round trip against CUBIC, harm to neighbours included), its
    `.interval`, `.rows`, and, without a score, an `.error`: a bad text ends nothing. With `show`, rows have a
    title and a command that replays them. Raises `BadInputError` for the other arguments.
    """
    from dragstrip.studies.judge import command

    if isinstance(texts, str) or not isinstance(texts, Sequence) or not texts:
        raise BadInputError("texts", None, "is a list of texts, of files of texts or of congestion controls")
    for number, text in enumerate(texts):
        if not isinstance(text, str | Program | Path):
            raise BadInputError(f"texts[{number}]", Raw(repr(text)[:40]), "a text, a program or a file")
    count = command.scenario_count(quick, scenarios)
    return command.judge(texts, hidden, count=count, show=show, workers=workers, quiet=not progress)


@named_arguments
def search(
    propose: Proposer,
    *,
    hidden: int,
    generations: int = 10,
    population: int = 16,
    seed: int = 1,
    scenarios: int = 8,
    held_out_scenarios: int = 40,
    keep: int = 3,
    log: PathLike | None = None,
    timeout_s: float | None = None,
    budget_s: float | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> SearchResult:
    """Search for an algorithm: `propose` returns texts, and scenarios that `seed` draws score them.

    `propose` gets all trials so far, each with `.generation`, `.text`, `.score`, `.interval`, `.error` and
    `.rows`, and returns the texts of the next generation, at most `population`; none ends the search. A text
    is an algorithm or a policy; one with a fault has an error in place of a score. After `generations`, or
    once `budget_s` seconds are over, the best `keep` texts are scored on `held_out_scenarios` scenarios of
    seed `hidden`, which nothing in the search has seen.

    With `log`, a file of JSON lines, an interrupted search goes on where it stopped. A run that takes longer
    than `timeout_s` seconds fails; without it the score is the same on every machine, because a run's events
    are bounded. Raises `BadInputError`; what `propose` raises ends the search.
    """
    from dragstrip.studies import search as study

    if not callable(propose):
        raise BadInputError("propose", Raw(repr(propose)[:40]), "a function of trials that returns texts")
    settings = study.SearchSettings(
        hidden=hidden,
        seed=seed,
        generations=generations,
        population=population,
        scenarios=scenarios,
        held_out_scenarios=held_out_scenarios,
        keep=keep,
        timeout_s=timeout_s,
        budget_s=budget_s,
    )
    return study.search(propose, settings, None if log is None else Path(log), workers, quiet=not progress)


@named_arguments
def attack(
    algorithm: str,
    *,
    goal: Sequence[str] = (),
    using: Sequence[str] = (),
    evaluations: int = 200,
    seed: int = 1,
    path: PathLike | None = None,
    rate: str | None = None,
    rate_bps: float | None = None,
    rtt: str | None = None,
    rtt_ms: float | None = None,
    queue: str | None = None,
    duration: str | None = None,
    duration_s: float | None = None,
    other_rtt: str | None = None,
    other_rtt_ms: float | None = None,
    programs: Programs | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> AttackDocument:
    """Search for conditions under which a congestion control fails.

    `goal` and `using` choose what counts as a failure and what may be changed (docs/how-to/attack.md);
    `evaluations` is the number of attacks that are tried, so that the answer does not depend on the machine.
    Of `path`, by name or as a file, rate, round-trip time and queue are taken, unless they are given.
    `rtt_ms=40` is `rtt="40ms"`, and so on. Raises `BadInputError`.
    """
    from dragstrip.studies.attack import console, finds

    scene = {"rate": rate, "rtt": rtt, "queue": queue, "duration": duration, "other_rtt": other_rtt}
    scene |= _stated(
        scene, rate_bps=rate_bps, rtt_ms=rtt_ms, duration_s=duration_s, other_rtt_ms=other_rtt_ms
    )
    if path is not None:
        scene, _ = finds.on_path(str(path), scene)
    request = finds.search_request(
        algorithm, list(goal), list(using), scene, seed, evaluations, None, by_name(programs)
    )
    document, _ = finds.attack(request, workers, quiet=not progress)
    if document["partial"]:
        raise KeyboardInterrupt
    return AttackDocument(document, console.text(document, ""))


@named_arguments
def sweep(
    experiment: Experiment | PathLike,
    out: PathLike,
    *,
    path: PathLike | None = None,
    vary: Mapping[str, str | Sequence[object]] | None = None,
    repeat: int | None = None,
    seed: int | None = None,
    duration: str | None = None,
    duration_s: float | None = None,
    sample: str | None = None,
    competitor: str | None = None,
    workers: int | None = None,
    report: bool = True,
    replace: bool = False,
    progress: bool = False,
) -> SweepResult:
    """Run an experiment over many values of many fields, into the folder `out`; the same one resumes it.

    `experiment` is an object, a file or a name of the catalogue. `vary` has lists of values, or ranges such
    as `"1mbit..1gbit:log:12"`, by dotted field or by the name of an option of `compare`, or of `race` with
    its unit: `{"rtt_ms": [20, 40]}`. `path`, by name or as a file, replaces the experiment's own. `sample`
    and `competitor` are those of the command line. With `replace` the folder may be that of another sweep,
    whose runs are kept. An interrupt lets the current runs finish and raises `KeyboardInterrupt`. Raises
    `BadInputError`.
    """
    from dragstrip.experiment import catalogue
    from dragstrip.experiment.types import Experiment as ExperimentClass
    from dragstrip.studies.sweep import command, plan
    from dragstrip.studies.sweep.options import Options

    described, source = (
        (experiment, "") if isinstance(experiment, ExperimentClass) else catalogue.load(str(experiment))
    )
    words = _varied(vary or {})
    duration = _stated({"duration": duration}, duration_s=duration_s).get("duration")
    requested = plan.describe(
        described,
        source,
        path=None if path is None else str(path),
        vary=words,
        repeat=repeat,
        seed=seed,
        duration=duration,
        sample=sample,
        competitor=competitor,
    )
    folder = Path(out)
    document = command.run(
        requested, folder, Options(workers=workers, report=report, replace=replace), quiet=not progress
    )
    if document["interrupted"]:
        raise KeyboardInterrupt
    return SweepResult(document, command.summary(document, folder))


def _stated(options: Mapping[str, str | None], **numbers: float | None) -> dict[str, Any]:
    """Return the options that are given, as text; `numbers` are quantities with their unit in the name."""
    return texts({name: value for name, value in {**options, **numbers}.items() if value is not None})


def _varied(vary: Mapping[str, str | Sequence[object]]) -> list[str]:
    """Return what varies as the command line has it: by field, its values with commas or its range.

    Quantities are those of `race`: `rtt_ms` with numbers is `rtt`, and time spans and NumPy's scalars become
    text. Raises `BadInputError`.
    """
    words: dict[str, str] = {}
    for name, values in vary.items():
        argument = f"vary[{name!r}]"
        if not isinstance(name, str):
            raise BadInputError("vary", Raw(repr(name)[:40]), "the name of a field, such as 'path.rtt'")
        field = quantity_of(name)
        if field in words:
            raise BadInputError(argument, None, f"is the field {field}, which is given twice")
        if isinstance(values, str):
            if field != name:
                raise BadInputError(argument, values, f"a list of numbers; {field} takes a text with units")
            words[field] = values
            continue
        if isinstance(values, Mapping | set | frozenset) or not isinstance(values, Iterable):
            raise BadInputError(argument, values, "a list of values, or a range as text")
        try:
            items = [str(texts({name: value})[field]) for value in values]
        except BadInputError as error:
            raise error.reworded(argument) from None
        for item in items:
            if "," in item:
                raise BadInputError(argument, item, "a value without a comma")
        words[field] = ",".join(items)
    return [f"{field}={text}" for field, text in words.items()]


@named_arguments
def tc_import(
    script: str,
    *,
    variables: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    sources: PathLike | None = None,
) -> ImportedQueues:
    """Return the queues that a router's script sets up; `script` is its text, and nothing of it is run.

    `variables` gives values that the script does not contain (`{"UPLINK": "20000"}`), also of commands
    (`{"cat /sys/class/net/eth0/mtu": "1500"}`); `sources` is the folder of the files that it sources.
    Commands of other programs are skipped and listed. Raises `BadInputError` for a command of tc without a
    counterpart and for a value that nobody knows, with its line.
    """
    from dragstrip.interop import scripts

    folder = None if sources is None else Path(sources)
    variables_given = {str(name): str(value) for name, value in (variables or {}).items()}
    try:
        inputs = scripts.ScriptInputs(variables_given, [str(word) for word in arguments], folder)
        document = scripts.document(script, "script", inputs)
    except BadInputError as error:
        field, expected = scripts.python_words(error.field), scripts.python_words(error.expected)
        raise error.reworded(field, expected, error.source) from None
    lines = [f"{queue['device']}, {queue['direction']}: {queue['queue']}" for queue in document["queues"]]
    return ImportedQueues(document, "\n".join(lines))


@named_arguments
def conform(*scripts: str, engine: str = "sim") -> Conformance:
    """Play conformance scripts: what one TCP endpoint receives, and what it must send.

    `scripts` are names or files; none means all. Raises `BadInputError`.
    """
    from dragstrip.studies.validation import conformance

    played = conformance.play(conformance.scripts(list(scripts) or None), engine)
    return Conformance(conformance.document(played), conformance.table(played, segments=False))


def algorithms() -> Listing:
    """Return the congestion controls, with their parameters and what they model."""
    return _listed("algorithms")


def queues() -> Listing:
    """Return the queue disciplines, with the words they take and an example of each."""
    return _listed("queues")


def paths() -> Listing:
    """Return the paths by name, for `path=`: the built-in ones and the user's own."""
    return _listed("paths")


def media() -> Listing:
    """Return the media by name, for `medium=`."""
    return _listed("media")


def workloads() -> Listing:
    """Return the workloads by name, for `workload=`."""
    return _listed("workloads")


def measures() -> Listing:
    """Return the measures, as claims and results name them, with their units."""
    return _listed("measures")


def publications() -> Listing:
    """Return the experiments of the catalogue, with their titles and numbers of claims."""
    return _listed("experiments")


@named_arguments
def publication(name: str) -> Experiment:
    """Return an experiment of the catalogue with its claims, such as `caia-110729a/adsl1`.

    `run` makes its runs and grades the claims. Raises `BadInputError` for an unknown name.
    """
    from dragstrip.experiment import catalogue

    experiment, _ = catalogue.load(name)
    return experiment


def _listed(kind: str) -> Listing:
    from dragstrip.experiment.lists import LISTS

    return Listing(LISTS[kind]())


@named_arguments
def shell(
    *,
    engine: str = "netns",
    server: str | Sequence[str] | None = None,
    files: Sequence[PathLike] = (),
    cc: str = "cubic",
    timeout: str | timedelta | None = None,
    timeout_s: float | None = None,
    offline: bool = False,
    date: str | None = None,
    folder: PathLike = ".",
    load: Sequence[PathLike] = (),
    engine_options: Mapping[str, Any] | None = None,
    **options: Unpack[RaceQuantities],
) -> Shell:
    """Return a path with a server at its far end, on which `Shell.run` runs commands.

    `options` of `compare` describe the path: `path="LTE"`, `rate`, `rtt`, `queue` and others. In real time
    (`engine="netns"`) programs see this machine's files; in virtual time (`"vm"`) they have `files`, `PATH`
    or `PATH:PLACE`, and two runs give the same bytes. Every run has a network and a `server` of its own, in
    `folder`. `timeout` ends a command. `cc`, `offline`, `date`, `load` and `engine_options` are those of the
    command line (docs/how-to/shell.md).

    `with dragstrip.shell(...) as shell:` compiles and boots first, and raises `DragstripError` with what this
    machine lacks. Raises `BadInputError` for what cannot be right.
    """
    from dragstrip.interop.path_shell.shell import ShellOptions, shell_of

    limit = _stated({"timeout": timeout}, timeout_s=timeout_s).get("timeout")  # type: ignore[dict-item]
    given = {
        "engine": engine,
        "server": server,
        "files": files,
        "cc": cc,
        "timeout": limit,
        "offline": offline,
        "date": date,
        "folder": Path(folder),
        "load": load,
        "engine_options": engine_options or {},
    }
    return shell_of(ShellOptions(**given), options)  # type: ignore[arg-type]


@named_arguments
def play(*algorithms: str, **options: Unpack[RaceQuantities]) -> Playground:
    """Return the playground with this race, which a notebook shows in the cell; without one, its own race.

    The options are those of `race`; without a path it is that of the playground. `Playground.experiment` is
    the race as its controls have changed it. Raises `BadInputError`, and `DragstripError` where the page is
    not built.
    """
    from dragstrip import __version__
    from dragstrip.experiment.comparison import compare
    from dragstrip.experiment.saved_paths import expanded
    from dragstrip.playground import of_race, page, with_path
    from dragstrip.playground.cell import Playground
    from dragstrip.studies.execution.runner import plan

    expect_options(options, [option.name for option in OPTIONS], "play")
    if not algorithms:
        for name in options:
            raise BadInputError("algorithms", None, f"is needed beside {name}")
        return Playground(page(None, __version__))
    for entry in algorithms:
        if not isinstance(entry, str):
            expected = "a name, beside the program in `programs`"
            raise BadInputError("algorithms", str(entry), expected)
    form = with_path(expanded(texts(options)))
    planned = plan(compare(list(algorithms), **form))
    return Playground(page(of_race(algorithms, form, planned), __version__), planned.experiment)
