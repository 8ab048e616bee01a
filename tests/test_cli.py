"""The command line in this process: what it prints, its exit status, and what it leaves on disk."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dragstrip import cli
from dragstrip.cli.topics import TOPICS
from dragstrip.io.files import write_json
from dragstrip.model.recording import Recording, write

PATH = "--rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb'"


class Ended:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


Call = Callable[[str], Ended]


@pytest.fixture
def dragstrip(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> object:
    """Runs a command line in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(line: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["dragstrip", *shlex.split(line)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return call


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb'", "ALGORITHM"),
        ("compare --rtt 40ms --queue 'bfifo limit 200kb' reno", "--rate"),
        ("compare --rate 10 --rtt 40ms --queue 'bfifo limit 200kb' reno", '--rate: got "10"'),
        ("compare --rate 0mbit --rtt 40ms --queue 'bfifo limit 200kb' reno", "above zero"),
        ("compare --rate 1e30bit --rtt 40ms --queue 'bfifo limit 200kb' reno", "--rate"),
        (f"compare --rate 1{30 * '0'}bit --rtt 40ms --queue 'bfifo limit 200kb' reno", "--rate: got"),
        ("compare --rate 10mbit --rtt 40 --queue 'bfifo limit 200kb' reno", '--rtt: got "40"'),
        ("compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 1000b' reno", "1514"),
        ("compare --rate 10mbit --rtt 40ms --queue 'red' reno", "--queue"),
        (f"compare {PATH} rneo", 'did you mean "reno"'),
        (f"compare {PATH} --duration 30 reno", '--duration: got "30"'),
        (f"compare {PATH} --duration 0s reno", "--duration"),
        (f"compare {PATH} --duration 99999s reno", "17000s"),
        ("compare --rate 10tbit --rtt 40ms --queue 'bfifo limit 200kb' --duration 16000s reno", "a report reads at most"),
        (f"compare {PATH} --loss 1 reno", '--loss: got "1"'),
        (f"compare {PATH} --jitter 5 reno", '--jitter: got "5"'),
        (f"compare {PATH} --up-rate 5 reno", '--up-rate: got "5"'),
        (f"compare {PATH} --up-queue x reno", "--up-queue"),
        (f"compare {PATH} --sysctl tcp_sack reno", "KEY=VALUE"),
        (f"compare {PATH} --sysctl net.ipv4.tcp_sak=0 reno", 'did you mean "net.ipv4.tcp_sack"'),
        (f"compare {PATH} --sysctl net.ipv4.tcp_sack=maybe reno", "--sysctl"),
        (f"compare {PATH} --flows 0 reno", "--flows"),
        (f"compare {PATH} --workers x reno", "--workers: got 'x', expected a valid integer (see dragstrip compare --help)"),
        (f"compare {PATH} --workers=0 reno", "--workers: got '0', expected greater than or equal to 1"),
        ("compare --rate 100gbit --rtt 1ms --queue 1bdp --duration 900s reno", "--no-rtts"),
        (f"compare {PATH} --repeat 0 reno", "--repeat"),
        (f"compare {PATH} --link string reno", "--link"),
        (f"compare {PATH} --gso maybe reno", "--gso"),
        (f"compare {PATH} --engine ns3 reno", "--engine"),
        (f"compare {PATH} --engine vm,sim reno", "--engine"),
        (f"compare {PATH} --check --out x reno", "--out: got 'x'"),
        ("validate nonesuch/thing", "dragstrip list"),
        ("validate bu-cs655-2022 --only nonesuch", "--only: got 'nonesuch'"),
        ("validate bu-cs655-2022 --set nonesuch", "PATH=VALUE"),
        ("validate bu-cs655-2022 --set nonesuch=1", "nonesuch"),
        ("validate bu-cs655-2022 --grid x.toml", "--grid: is for the grid of stored recordings"),
        ("validate bu-cs655-2022 --duration 3", 'duration: got "3"'),
        ("validate --set a=1", "--set"),
        ("validate --repeat 2", "--repeat: is for runs of an EXPERIMENT"),
        (f"compare {PATH} --load mine.bpf.c reno", "--load: got 'mine.bpf.c', expected engine vm, netns or ssh with it"),
        (f"compare {PATH} --engine vm --load mine.bpf.c reno", "--load: got 'mine.bpf.c', expected a C file"),
        (f"compare {PATH} --engine vm rneo", 'did you mean "reno"'),
        ("run caia-110729a/adsl1 --load mine.bpf.c", "load: got 'mine.bpf.c', expected engine vm, netns or ssh with it"),
        (f"compare {PATH} --speed 3 reno", "--speed"),
        ("race", "race"),
        ("show nonesuch/thing", "dragstrip list"),
        ("run nonesuch/thing", "dragstrip list"),
        ("run missing.toml", "missing.toml"),
        ("report nowhere", "nowhere"),
        ("report .", "result.json"),
        ("report . --figures gif", "--figures: got 'gif', expected one or several of svg,png,pdf"),
        (f"compare {PATH} --figures svg, reno", "--figures: got ''"),
        (f"compare {PATH} --figures svg --no-report reno", "leave out --no-report"),
        ("run bu-cs655-2022 --figures svgz", "--figures: got 'svgz'"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_exit_2_nothing_written(
    dragstrip: object, tmp_path: Path, line: str, hint: str
) -> None:
    ended = dragstrip(line)  # type: ignore[operator]
    assert ended.status == 2
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert hint in ended.err
    assert ended.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("as_json", ["", " --json"])
def test_an_output_folder_in_use_is_left_alone(dragstrip: object, tmp_path: Path, as_json: str) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.tex").write_text("years of work")
    ended = dragstrip(f"compare {PATH} --duration 1s --out used reno{as_json}")  # type: ignore[operator]
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("error: --out: got 'used', expected a folder that is empty")
    assert [file.name for file in (tmp_path / "used").iterdir()] == ["thesis.tex"]


def test_an_output_folder_that_is_a_file(dragstrip: object, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for out in ("file", "file/deeper"):
        ended = dragstrip(f"compare {PATH} --duration 1s --out {out} reno")  # type: ignore[operator]
        assert ended.status == 2
        assert "error: --out" in ended.err
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX permissions")
def test_an_output_folder_that_cannot_be_written(dragstrip: object) -> None:
    # /proc refuses everybody, root included.
    ended = dragstrip(f"compare {PATH} --duration 1s --out /proc/dragstrip reno")  # type: ignore[operator]
    assert ended.status == 2
    assert "error: --out: got '/proc/dragstrip', expected a folder that can be written" in ended.err


def test_bad_files_are_named(dragstrip: object, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('duration = "3s"\n[path]\nrate = "10mbit"\nquue = "x"\n[[flows]]\ncc = "reno"\n')
    for command in ("run", "show"):
        ended = dragstrip(f"{command} mine.toml")  # type: ignore[operator]
        assert ended.status == 2
        assert ended.err.startswith(
            'error: mine.toml:4: path.quue: is not a known field; did you mean "queue"?'
        )
    assert list(tmp_path.iterdir()) == [file]


def test_report_names_a_corrupt_table(dragstrip: object, tmp_path: Path, recording: Recording) -> None:
    write(recording, tmp_path / "out" / "runs" / "000-reno")
    write_json(tmp_path / "out" / "result.json", {"runs": [{"recording": "runs/000-reno"}]})
    (tmp_path / "out" / "runs" / "000-reno" / "rtts.parquet").write_bytes(b"PAR1 not really")
    before = sorted(tmp_path.rglob("*"))
    ended = dragstrip("report out")  # type: ignore[operator]
    assert ended.status == 1
    assert "rtts.parquet: damaged: its SHA-256" in ended.err
    assert ended.err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_help_has_an_example_for_every_command(dragstrip: object) -> None:
    ended = dragstrip("--help")  # type: ignore[operator]
    assert ended.status == 0
    for command in ("list", "show", "run", "compare", "report", "doctor"):
        assert command in ended.out
        page = dragstrip(f"{command} --help")  # type: ignore[operator]
        assert f"Example: dragstrip {command}" in " ".join(page.out.split())


def test_list_and_show_as_json(dragstrip: object) -> None:
    listed = json.loads(dragstrip("list --json").out)  # type: ignore[operator]
    assert "caia-110729a/adsl1" in [entry["name"] for entry in listed["experiments"]]
    shown = json.loads(dragstrip("show caia-110729a/adsl1 --json").out)  # type: ignore[operator]
    assert len(shown["scenarios"]) == 36
    assert shown["experiment"]["name"] == "caia-110729a/adsl1"


def test_every_experiment_of_the_catalogue_can_be_shown(dragstrip: object) -> None:
    for entry in json.loads(dragstrip("list --json").out)["experiments"]:  # type: ignore[operator]
        ended = dragstrip(f"show {entry['name']}")  # type: ignore[operator]
        assert ended.status == 0, entry
        assert ended.err == "" or "nothing here is random" in ended.err, entry
        assert entry["title"] in " ".join(ended.out.split())


def test_a_run_shorter_than_an_interval_shows_its_queue_at_the_end(dragstrip: object) -> None:
    two_queues = f"{PATH} --up-rate 1mbit --up-queue 'bfifo limit 10kb'"
    ended = dragstrip(f"compare {two_queues} --duration 50ms --no-report reno")  # type: ignore[operator]
    assert ended.status == 0, ended.err
    row = next(line for line in ended.out.splitlines() if line.strip().startswith("reno"))
    assert float(row.split()[-1]) >= 0.0


def test_load_is_for_experiments(dragstrip: object) -> None:
    ended = dragstrip("validate --load exp.bpf.c")  # type: ignore[operator]
    assert ended.status == 2
    assert "--load: is for runs of an EXPERIMENT" in ended.err


@pytest.mark.parametrize("kind", ["algorithms", "queues", "measures", "paths", "media", "workloads"])
def test_names_are_listed(dragstrip: Call, kind: str) -> None:
    listed = json.loads(dragstrip(f"list --{kind} --json").out)[kind]
    names = [entry["name"] for entry in listed]
    known = {
        "algorithms": "cubic",
        "queues": "fq_codel",
        "measures": "rtt_ms_*",
        "paths": "home DSL",
        "media": "adsl2",
        "workloads": "rrul",
    }
    assert known[kind] in names
    shown = dragstrip(f"list --{kind}")
    assert shown.status == 0
    assert all(name in shown.out for name in names)
    assert not re.search(r"\]\(|`", shown.out)  # text of a page, but for a terminal


def test_help_explains_topics_and_commands(dragstrip: Call) -> None:
    for topic in TOPICS:
        ended = dragstrip(f"help {topic}")
        assert (ended.status, ended.err) == (0, "")
        assert len(ended.out.splitlines()) <= 24
        assert all(len(line) <= 120 for line in ended.out.splitlines())
    assert "--queue" in dragstrip("help compare").out
    listed = dragstrip("help").out.partition("Terms of")
    assert listed[0].rstrip().count("\n") == len(TOPICS)
    assert "bufferbloat" in listed[2]
    wrong = dragstrip("help algoritms")
    assert (wrong.status, 'did you mean "algorithms"' in wrong.err) == (2, True)


@pytest.mark.parametrize(
    "line",
    [
        line.strip().replace("\\\n", " ")
        for _, text, _ in TOPICS.values()
        for line in re.findall(r"^  dragstrip ((?:.|\\\n)*?)$", text.replace("\\\n", " "), re.MULTILINE)
        if line.startswith("compare") and "vm" not in line
    ],
)
def test_the_topics_commands_can_be_typed(dragstrip: Call, line: str) -> None:
    ended = dragstrip(f"{re.split(' [>|] ', line)[0]} --show")
    assert (ended.status, ended.err) == (0, "")
    assert "[path]" in ended.out


def test_the_topics_name_pages_that_exist() -> None:
    root = Path(__file__).parents[1]
    for _, _, pages in TOPICS.values():
        assert all((root / page.split("#")[0]).is_file() for page in pages.split(", "))


@pytest.mark.parametrize("words", ["-h", "compare -h", "validate -h", "kernel fetch -h", "sweep -h"])
def test_help_has_a_short_option(dragstrip: Call, words: str) -> None:
    ended = dragstrip(words)
    assert ended.status == 0
    assert ended.out == dragstrip(words.replace("-h", "--help")).out


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("compare cub", "cubic"),
        ("compare --path home", "home DSL"),
        ("show caia-110729a/ads", "caia-110729a/adsl1"),
    ],
)
def test_the_shell_completes_names(typed: str, offered: str) -> None:
    given = {**os.environ, "_DRAGSTRIP_COMPLETE": "complete_bash"}
    words = f"dragstrip {typed}"
    given |= {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    program = [sys.executable, "-c", "from dragstrip.cli import app; app(prog_name='dragstrip')"]
    ended = subprocess.run(program, env=given, capture_output=True, text=True, check=False)
    assert offered in ended.stdout.splitlines()


FILE = """
duration = "500ms"
repeat = 3
[path]
rate = "10mbit"
rtt = "40ms"
queue = "bfifo limit 200kb"
[[flows]]
cc = "reno"
"""
CLAIM = """
[[claims]]
id = "third"
source = "none"
metric = "goodput_bps"
unit = "Mbit/s"
where = {{ {} }}
range = [1, 10]
"""


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        (FILE, 1),
        (FILE.replace("repeat = 3", ""), 1),
        (FILE.replace("[[flows", 'loss = "1%"\n[[flows'), 3),
        (FILE + '[vary]\n"path.loss" = ["0%", "1%"]\n', 6),
        (FILE + CLAIM.format('cc = "reno"'), 1),
        (FILE + CLAIM.format("repeat = 2"), 3),
    ],
)
def test_an_experiments_repeats_are_made_where_they_can_differ(
    dragstrip: Call, tmp_path: Path, text: str, runs: int
) -> None:
    (tmp_path / "mine.toml").write_text(text)
    ended = dragstrip("run mine.toml --no-report --json")
    document = json.loads(ended.out)
    assert len(document["runs"]) == runs
    assert [claim["grade"] for claim in document["claims"]] in ([], ["reproduced"])
    saved = runs == 1 and "repeat" in text
    assert ("nothing here is random: every run is made once, not 3 times" in ended.err) == saved


@pytest.mark.parametrize(("rate", "note"), [("5mbps", True), ("625KBps", True), ("40mbit", False)])
def test_a_rate_in_bytes_is_done_and_remarked_on(dragstrip: Call, rate: str, note: bool) -> None:
    for line in (f"--rate {rate}", f"--rate 1mbit --up-rate {rate}"):
        ended = dragstrip(f"compare {line} --rtt 10ms --queue 1bdp --duration 1s reno cubic --show")
        assert ended.status == 0
        assert ended.err.count("tc reads bps as bytes per second") == note
        assert not note or ended.err.startswith(f"note: {rate} is ")


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_narrow_terminal_keeps_names_apart(
    dragstrip: Call, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    names = ["cubic:beta=0.8", "cubic:beta=0.9", "reno"]
    ended = dragstrip(f"compare {PATH} --duration 1s --no-report {' '.join(names)}")
    table = ended.out.partition("limited by")[0]
    assert all(len(line) <= columns for line in ended.out.splitlines())
    assert "…" not in ended.out
    folded = "".join(line[:16].split("   ")[0].strip() for line in table.splitlines())
    assert all(name in folded for name in names)
    first = next(line for line in table.splitlines() if "reno" in line)
    assert len(first.split()) == {40: 4, 60: 6, 80: 7}[columns]
    assert ("a wider terminal also shows" in " ".join(table.split())) == (columns < 80)


def test_repeats_that_would_be_the_same_are_not_made(dragstrip: object) -> None:
    ended = dragstrip(f"compare {PATH} --duration 500ms --no-report --repeat 3 reno cubic --json")  # type: ignore[operator]
    assert ended.err == "note: nothing here is random: every run is made once, not 3 times\n"
    assert len(json.loads(ended.out)["runs"]) == 2
    ended = dragstrip(f"compare {PATH} --duration 500ms --no-report --repeat 3 --loss 1% reno --json")  # type: ignore[operator]
    assert len(json.loads(ended.out)["runs"]) == 3


def test_a_word_with_count_and_rtt_says_its_algorithm_once(dragstrip: Call) -> None:
    ended = dragstrip(
        "compare --rate 10mbit --rtt 40ms --queue 1bdp --duration 2s cubic bbr*2@80ms --no-report"
    )
    assert ended.status == 0
    names = {line.split()[0] for line in ended.out.splitlines() if line.startswith(" bbr")}
    assert names == {"bbr*2@80ms"}
    assert "bbr*2@80ms ·" not in ended.out


def test_the_table_is_printed_before_the_report_is_drawn(
    dragstrip: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dragstrip.studies.execution import runner

    printed: list[str] = []
    write_report = runner.write_report

    def watched(*given: object, **more: object) -> Path:
        printed.append(capsys.readouterr().out)
        return write_report(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "write_report", watched)
    ended = dragstrip(f"compare {PATH} --duration 1s --out {tmp_path / 'out'} reno cubic")
    assert ended.status == 0
    assert len(printed) == 1
    assert "reno" in printed[0]
    assert "Report:" not in printed[0]


def test_sigterm_removes_what_is_temporary(tmp_path: Path) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    words = ["compare", "--check", *shlex.split(PATH), "--duration", "10000s", "cubic"]
    process = subprocess.Popen(
        [sys.executable, "-m", "dragstrip", *words],
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while not list(place.glob("dragstrip-check-*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert err.splitlines()[-1] == "error: interrupted"
    assert list(place.iterdir()) == []


def test_figures_without_their_library_name_the_extra(
    dragstrip: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    refused = dragstrip(f"compare {PATH} --figures pdf,csv --out {tmp_path / 'out'} reno")
    assert (refused.status, refused.err) == (
        2,
        "error: command line: --figures: got 'pdf', expected csv alone, or the package vl-convert-python "
        "(pip install vl-convert-python)\n",
    )
    assert not (tmp_path / "out").exists()
    drawn = dragstrip(f"compare {PATH} --figures csv --out {tmp_path / 'out'} reno")
    assert drawn.status == 0, drawn.err
    assert (tmp_path / "out" / "figures" / "goodput.csv").exists()
    (line,) = [line for line in dragstrip("doctor").out.splitlines() if "--figures" in line]
    assert line.startswith("-  "), line


def test_doctor_says_of_each_engine_whether_it_is_there(
    dragstrip: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("DRAGSTRIP_AGENT", str(tmp_path / "nowhere"))
    monkeypatch.setenv("DRAGSTRIP_SSH", "no-such-ssh")
    told = dragstrip("doctor")
    lines = told.out.splitlines()
    for what in ("engine vm", "engine netns", "engine ssh", "kernel run"):
        (line,) = [line for line in lines if f" {what}: " in line]
        assert line.startswith("-  "), line
        assert "not available (" in line
    assert not [line for line in lines if line.startswith("ok") and "not available" in line]
    found = json.loads(dragstrip("doctor --json").out)["findings"]
    assert {one["what"] for one in found if not one["available"]} >= {
        "engine vm",
        "engine netns",
        "engine ssh",
    }


def test_show_has_no_unit_beside_an_order_and_counts_ablations(dragstrip: Call) -> None:
    shown = dragstrip("show caia-110729a/adsl1").out
    assert "    vegas-freebsd < newreno-freebsd ± 20%; section IV-A" in shown
    assert "    0.75 to 0.80; section IV-A" in shown
    assert not re.search(r"    .* 1; ", shown)
    assert "36 runs of 60 s, seeds from 1, and 72 of ablations:" in shown


def test_show_refuses_a_duration_that_compare_refuses(
    dragstrip: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "compare --rate 100gbit --rtt 1ms --queue 1bdp reno --duration"
    refused = dragstrip(f"{words} 100000000s --show")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err == dragstrip(f"{words} 100000000s").err
    monkeypatch.setattr("dragstrip.model.scenario.memory.memory_bytes", lambda: 2**20)
    assert dragstrip(f"{words} 10s").status == 2
    assert dragstrip(f"{words} 10s --show").status == 0, "another machine may run it"


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("compare --no-rtts=1", "dragstrip compare"),
        ("evidence --passport", "dragstrip evidence"),
    ],
)
def test_an_option_s_error_names_the_help_of_its_command(dragstrip: Call, words: str, command: str) -> None:
    ended = dragstrip(words)
    assert ended.status == 2
    assert ended.err.endswith(f" (see {command} --help)\n")


def test_doctor_says_limited_where_a_kernel_lacks_something(
    dragstrip: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragstrip.engines.netns import host

    facts = {"kernel": "6.1", "algorithms": ["cubic"], "lacks": ["netem", "cake"], "rights": "own"}
    for lacks, beginning in (
        (
            ["netem", "cake"],
            "limited  engine netns: Linux 6.1: cubic, without netem, cake; without netem no run",
        ),
        (["cake"], "limited  engine netns: Linux 6.1: cubic, without cake (rights"),
        ([], "ok       engine netns: Linux 6.1: cubic (rights"),
    ):
        monkeypatch.setattr(host, "about", lambda _, lacks=lacks: {**facts, "lacks": lacks})
        assert f"\n{beginning}" in dragstrip("doctor").out
