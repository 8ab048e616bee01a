"""What is above the engines knows none of them: a new one is a folder and a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragstrip import cli, engines
from dragstrip.engines import registry
from dragstrip.engines.agent.kernels import without_a_kernel
from dragstrip.engines.kernels import kernel
from dragstrip.engines.recall import recall
from dragstrip.engines.vm import machine
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import Recording, read
from dragstrip.studies.execution.runner import execute, plan

PATH = {"rate": "10mbit", "rtt": "20ms", "queue": "bfifo limit 30kb", "duration": "2s"}


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The toy engine is registered, with recordings of reno and cubic."""
    monkeypatch.setitem(registry.HOMES, "stored", "tests.engines.stored")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    execute(plan(compare(["reno", "cubic"], **PATH)), tmp_path / "before", report=False)
    return tmp_path / "before" / "runs"


def test_help_names_every_engine() -> None:
    assert list(registry.ABOUT) == list(registry.HOMES)


def described(engine: str, *algorithms: str, **changed: Any) -> Experiment:
    content = compare(["reno"], **PATH).content()
    return Experiment.build(
        {**content, "engine": engine, "vary": {}, "flows": [{"cc": name} for name in algorithms], **changed}
    )


def each(engine: str, *algorithms: str, **changed: Any) -> Experiment:
    """One run for each algorithm."""
    return described(engine, algorithms[0], vary={"flows.cc": list(algorithms)}, **changed)


def test_a_new_engine_runs_whole_experiments(stored: Path, tmp_path: Path) -> None:
    race = each("stored", "reno", "cubic", engine_options={"recordings": str(stored)})
    document = execute(plan(race), tmp_path / "out")
    assert [(line["scenario"], line["engine"]) for line in document["runs"]] == [
        ("reno", "stored"),
        ("cubic", "stored"),
    ]
    again, first = read(tmp_path / "out/runs/001-cubic"), read(stored / "001-cubic")
    assert all(again[name].equals(first[name]) for name in first.tables)
    assert (tmp_path / "out" / "report.html").exists()


def test_it_stands_beside_any_other(stored: Path, tmp_path: Path) -> None:
    race = each("sim,stored", "reno", "cubic", engine_options={"recordings": str(stored)})
    document = execute(plan(race), tmp_path / "out")
    cases = document["agreement"]["cases"]
    assert {case["name"] for case in cases} == {"reno", "cubic"}
    assert all(figure["error"] == 0 for case in cases for figure in case["figures"].values())
    assert 'id="case-reno"' in (tmp_path / "out" / "report.html").read_text()


def test_its_refusal_is_told_before_anything_is_written(stored: Path, tmp_path: Path) -> None:
    race = each("stored", "bbr", engine_options={"recordings": str(stored)})
    with pytest.raises(
        BadInputError, match="engine stored: scenario: got bbr, expected one that was recorded"
    ):
        execute(plan(race), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_option_is_from_the_experiments_folder_and_a_wrong_one_is_named(
    stored: Path, tmp_path: Path
) -> None:
    file = tmp_path / "race.toml"
    text = 'engine = "stored"\nduration = "2s"\nflows = [{cc = "reno"}]\npath = {rate = "1mbit"}\n'
    file.write_text(text + '[engine_options]\nrecordings = "before/runs"\n')
    assert Experiment.read(file, engine="stored").options_of("stored") == {"recordings": str(stored)}
    for wrong, told in (
        (
            "recording = 'x'",
            "recording: got 'x', expected an option of engine stored (recordings); did you mean \"recordings\"?",
        ),
        ("kernel = '6.1'", "kernel: got '6.1', expected engine vm with it"),
        ("recordings = ['a', 'b']", "recordings: got"),
    ):
        file.write_text(f"{text}[engine_options]\n{wrong}\n")
        with pytest.raises(BadInputError) as found:
            Experiment.read(file, engine="stored")
        assert f"race.toml:6: engine_options.{told}" in str(found.value)


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        ("smi", 'did you mean "sim"'),
        ("sim,vn", 'did you mean "vm"'),
        ("vm,sim", "in this order: sim, vm"),
        ("sim,sim", "two"),
    ],
)
def test_an_unknown_engine_is_one_error_with_the_nearest_name(engine: str, told: str) -> None:
    words = ["compare", "--rate", "1mbit", "--rtt", "1ms", "--queue", "pfifo limit 9", "--engine", engine]
    ended = CliRunner().invoke(cli.app, [*words, "reno"])
    assert isinstance(ended.exception, BadInputError)
    assert told in str(ended.exception)
    with pytest.raises(BadInputError, match="did you mean"):
        engines.named("vn")


def test_algorithms_are_the_engines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path))
    assert described("vm", "lp").flows[0].cc == "lp"
    with pytest.raises(BadInputError, match='did you mean "htcp"'):
        described("vm", "htpc")
    with pytest.raises(BadInputError, match='got "htpc", expected one of reno, cubic, vegas'):
        described("sim", "htpc")
    for missing in ("newreno-freebsd", "copa"):
        assert described("sim", missing).flows[0].cc == missing
        with pytest.raises(BadInputError, match=f'got "{missing}"'):
            described("vm", missing)


def test_describing_an_experiment_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "")
    source = tmp_path / "mine.bpf.c"
    source.write_text('struct tcp_congestion_ops o = { .name = "mine" }; this does not compile')
    made = Experiment.build(
        {
            **compare(["reno"], **PATH).content(),
            "engine": "vm",
            "load": [str(source)],
            "vary": {"flows.cc": ["mine"]},
        }
    )
    assert [run.scenario["flows"][0]["transport"]["cc"] for run in plan(made).runs] == ["mine"]
    assert not (tmp_path / "cache").exists()


def test_a_kernel_refuses_everything_before_a_machine_is_booted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path / "cache"))
    for hosts, told in (
        (
            {"interface": {"interrupts": "50us"}},
            "host s1: interrupts: got .*50000.*, expected none: no interface here has a card",
        ),
        ({"tick_hz": 1000}, "host s1: tick_hz: got 1000, expected 250, as the kernel was built"),
        (
            {"cpu": {"receive": "20us"}},
            r"host s1: cpu: got .*20000.*, expected none: a kernel takes its own time",
        ),
    ):
        with pytest.raises(BadInputError, match=f"engine vm: {told}"):
            execute(plan(described("vm", "reno", hosts={"*": hosts})), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("queue", "release", "lacking"),
    [
        ({"kind": "dualpi2"}, "6.1.0-56-amd64", "dualpi2 since 6.17"),
        ({"kind": "dualpi2"}, "6.16.9", "dualpi2 since 6.17"),
        ({"kind": "dualpi2"}, "6.17.0-1-amd64", None),
        ({"kind": "dualpi2"}, "7.0.1", None),
        ({"kind": "htb", "rate_bps": 1, "leaf": {"kind": "dualpi2"}}, "6.12.1", "dualpi2 since 6.17"),
        ({"kind": "prio", "classes": [{"kind": "codel"}, {"kind": "fq_pie"}]}, "5.4.0", "fq_pie since 5.6"),
        ({"kind": "cake"}, "4.9.0", "cake since 4.19"),
        ({"kind": "cake"}, "6.1.0", None),
    ],
)
def test_a_queue_younger_than_the_kernel_is_refused_before_anything_boots(
    queue: dict[str, object], release: str, lacking: str | None
) -> None:
    link = {"name": "r-d", "from": "r", "to": "d", "qdisc": queue}
    scenario = {"nodes": [], "record": {}, "links": [link], "flows": []}
    found = without_a_kernel(scenario, (), "linux-6", release=release)
    if lacking is None:
        assert not found
        return
    assert [(one.field, one.value) for one in found] == [("link r-d: queue", lacking.split()[0])]
    assert f"Linux has {lacking}, and this kernel is {release}" in found[0].expected
    assert not without_a_kernel(scenario, (), "linux-6"), "of a kernel not yet known, nothing is said"


def test_two_own_kernels_of_one_version_are_two_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(machine, "version", lambda: "an emulator")
    for variable in ("DRAGSTRIP_AGENT", "DRAGSTRIP_LOCKSTEP"):
        (tmp_path / variable).write_bytes(b"program")
        monkeypatch.setenv(variable, str(tmp_path / variable))
    builds = set()
    for content in (b"one", b"other"):
        own = tmp_path / content.decode()
        (own / "lib/modules/6.1-mine/kernel").mkdir(parents=True)
        (own / "boot").mkdir()
        (own / "boot/vmlinuz-6.1-mine").write_bytes(bytes(0x202) + b"HdrS" + content)
        kernel.use(str(own))
        assert kernel.find_kernel().name == "6.1-mine"
        builds.add(engines.named("vm").build({}))
    assert len(builds) == 2


def test_a_slow_engine_is_asked_once_for_a_build_and_a_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recording: Recording
) -> None:
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path))
    asked: list[str] = []

    class Slow(type(engines.named("sim"))):  # type: ignore[misc]
        name = "slow"
        slow = True

        def build(self, options: engines.Options) -> str:
            return str(options.get("kernel", ""))

        def run(self, scenario: Any, options: engines.Options, progress: Any = None) -> Recording:
            asked.append(self.build(options))
            return recording

    for build in ("a", "b", "a"):
        made = recall(Slow(), recording.scenario, {"kernel": build})
        assert made["flows"].equals(recording["flows"])
    assert asked == ["a", "b"]


@pytest.mark.parametrize("typed", ["cdg-freebsd", "cdg_freebsd"])
def test_hyphen_and_underscore_are_one_in_a_name(typed: str) -> None:
    race = compare([typed], rate="10mbit", rtt="40ms", queue="pfifo limit 100", duration="1s")
    assert [run.scenario["flows"][0]["transport"]["cc"] for run in expand(race)] == ["cdg-freebsd"]


@pytest.mark.parametrize("typed", ["my-own", "my_own"])
def test_a_loaded_algorithm_may_be_typed_as_in_the_simulator(typed: str, tmp_path: Path) -> None:
    source = tmp_path / "my_own.bpf.c"
    source.write_text('struct tcp_congestion_ops own = { .name = "my_own" };')
    path = {"rate": "10mbit", "rtt": "40ms", "queue": "pfifo limit 100", "duration": "1s"}
    race = compare([typed], **path, engine="vm", load=[str(source)])
    (run,) = expand(race)
    assert run.scenario["flows"][0]["transport"]["cc"] == "my_own"
    assert engines.named("vm").refusals(run.scenario, race.options_of("vm")) == []


def test_what_the_kernel_engine_names_it_takes() -> None:
    for name in engines.named("vm").algorithms({}):
        race = compare([name], rate="10mbit", rtt="40ms", queue="pfifo limit 100", duration="1s", engine="vm")
        (run,) = expand(race)
        assert engines.named("vm").refusals(run.scenario, {}) == [], name
