"""Congestion controls of one's own in the real kernel."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from dragstrip.engines.agent import bpf
from dragstrip.engines.vm import emulate as vm
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import Recording

from .conftest import race

SKELETON = bpf.HOME / "skeleton.bpf.c.txt"

RENO = """#include "kernel.h"
SEC("struct_ops/x_ssthresh")
__u32 BPF_PROG(x_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
SEC("struct_ops/x_cong_avoid")
void BPF_PROG(x_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) { BODY tcp_reno_cong_avoid(sk, ack, acked); }
SEC("struct_ops/x_undo_cwnd")
__u32 BPF_PROG(x_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }
SEC(".struct_ops") struct tcp_congestion_ops operations = {
    .name = "NAME", .ssthresh = (void *)x_ssthresh, .cong_avoid = (void *)x_cong_avoid, .undo_cwnd = (void *)x_undo_cwnd,
};
char _license[] SEC("license") = "GPL";
"""


@pytest.fixture
def _clang() -> None:
    reason = bpf.missing()
    if reason:
        pytest.skip(reason)


compiles = pytest.mark.usefixtures("_clang")
on_kernel = pytest.mark.usefixtures("_clang", "linux")


def source(folder: Path, name: str = "mine", body: str = "", text: str = RENO) -> str:
    file = folder / "mine.bpf.c"
    file.write_text(text.replace("NAME", name).replace("BODY", body))
    return str(file)


def run(cc: str, sources: list[str], *beside: str, every_ack: bool = False, **path: Any) -> Recording:
    """The first flow is `cc`'s; samples every 10 ms, or one per ACK."""
    scenario = race("reno", *beside, **path)
    scenario["flows"][0]["transport"]["cc"] = cc
    scenario["record"] |= {"interval_ns": 10_000_000, "every_ack": every_ack}
    return vm.emulate(scenario, load=[bpf.compiled(one) for one in sources])


REDUCES = ("cwr", "recovery", "loss")


def window(recording: Recording) -> list[tuple[object, ...]]:
    """Of the first flow, as they change: window and threshold, where the algorithm decides them.

    Without the time: a BPF program takes some instructions more than the kernel's own, and each is a nanosecond. Without
    recoveries: their windows are the kernel's (`tcp_cwnd_reduction`), and microseconds decide which segment is lost with the first.
    """
    samples = recording["samples"]
    own = samples.filter(pc.equal(samples["flow"], samples["flow"][0]))
    rows = zip(*(own[name].to_pylist() for name in ("cwnd_bytes", "ssthresh_bytes", "state")), strict=True)
    decided = ((cwnd, ssthresh) for cwnd, ssthresh, state in rows if state not in REDUCES)
    return [row for row, _ in itertools.groupby(decided)]


MSS = 1448


def epochs(recording: Recording) -> list[tuple[int, int]]:
    """Of the first flow, from one reduction to the next: threshold and greatest window, bytes.

    When the application wakes decides by a segment how far a window grows, and a BPF program takes its own time.
    """
    rows = [(ssthresh, cwnd) for cwnd, ssthresh in window(recording) if ssthresh is not None]
    return [
        (ssthresh, max(cwnd for _, cwnd in same))
        for ssthresh, same in itertools.groupby(rows, key=lambda row: row[0])
    ]


# --- what is compiled ---------------------------------------------------------------------------


@compiles
@pytest.mark.parametrize(("file", "name"), [("exp", "exp"), ("vegas", "bpf_vegas"), ("cdg", "bpf_cdg")])
def test_ours_compile_and_say_their_names(file: str, name: str) -> None:
    assert bpf.compiled(str(bpf.HOME / f"{file}.bpf.c")).name == name


@compiles
def test_a_loaded_name_may_be_used_and_a_misspelt_one_is_answered_with_the_nearest() -> None:
    path = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 100000", "duration": "1s"}
    options = {**path, "engine": "vm", "load": [str(bpf.HOME / "vegas.bpf.c")]}
    (made,) = expand(compare(["bpf_vegas"], **options))
    assert made.scenario["flows"][0]["transport"]["cc"] == "bpf_vegas"
    with pytest.raises(BadInputError, match='did you mean "bpf_vegas"'):
        compare(["bpf_vega"], **options)
    with pytest.raises(BadInputError, match='did you mean "vegas"'):
        compare(["bpf_vegas"], **{**options, "engine": "sim,vm"})


@compiles
def test_an_experiment_names_its_sources_beside_its_file(tmp_path: Path) -> None:
    source(tmp_path)
    file = tmp_path / "mine.toml"
    text = 'duration = "1s"\nengine = "vm"\nload = ["mine.bpf.c"]\npath = {rate = "1mbit"}\nflows = [{cc = "mine"}]\n'
    file.write_text(text)
    assert "mine" in Experiment.read(file, engine="vm").algorithms()
    file.write_text(text.replace("mine.bpf.c", "yours.bpf.c"))
    with pytest.raises(BadInputError, match=r"mine\.toml:3: load: got '.*yours\.bpf\.c', expected a C file"):
        Experiment.read(file, engine="vm")


@compiles
def test_a_changed_source_is_compiled_again_and_an_unchanged_one_is_not(tmp_path: Path) -> None:
    first = bpf.compiled(source(tmp_path))
    stamp = first.file.stat().st_mtime_ns
    assert bpf.compiled(source(tmp_path)).file.stat().st_mtime_ns == stamp
    second = bpf.compiled(source(tmp_path, body="tcp_sk(sk)->snd_cwnd_cnt = 0;"))
    assert (second.name, second.file == first.file) == ("mine", False)


@compiles
def test_where_the_sources_are_changes_no_byte_of_the_object(tmp_path: Path) -> None:
    objects = []
    for folder in ("here", "somewhere/else"):
        (tmp_path / folder).mkdir(parents=True)
        made = tmp_path / folder / "made"
        bpf.compile_object(Path(source(tmp_path / folder)), made)
        objects.append(made.read_bytes())
    assert objects[0] == objects[1]


@compiles
@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            RENO.replace("BODY", "nonsense;"),
            r"mine\.bpf\.c:5:\d+: error: use of undeclared identifier 'nonsense'",
        ),
        ('#include "kernel.h"\nint nothing;\n', "has no struct tcp_congestion_ops in SEC"),
        (
            '#include "kernel.h"\nstruct other { int x; };\nSEC(".struct_ops") struct other o = {};\n',
            "o is a struct other, not tcp_congestion_ops",
        ),
        (RENO.replace("BODY", "").replace('.name = "NAME",', ""), "has no .name"),
        (
            RENO.replace("BODY", "").replace("NAME", "my-cc"),
            "letters, digits, _ and ., 15 at most, not 'my-cc'",
        ),
    ],
    ids=["does not compile", "no operations", "other operations", "no name", "bad name"],
)
def test_a_source_that_is_none_is_bad_input(tmp_path: Path, text: str, hint: str) -> None:
    with pytest.raises(BadInputError, match=hint) as found:
        bpf.compiled(source(tmp_path, text=text))
    assert found.value.field == "load"


def test_without_clang_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool == "clang" else which(tool))
    with pytest.raises(DragstripError, match="clang is not installed: apt-get install clang libbpf-dev"):
        bpf.compiled(source(tmp_path))


# --- what the kernel does with it ---------------------------------------------------------------


@on_kernel
@pytest.mark.parametrize(
    "path",
    # Losses of its own bursts: beside another flow, whose packet is lost would hang on microseconds.
    [{}, {"queue": "bfifo limit 12000"}, {"queue": "bfifo limit 20000"}],
    ids=["steered by delay", "losses and recoveries", "losses in a longer queue"],
)
def test_our_vegas_has_the_window_of_the_kernels(path: dict[str, str]) -> None:
    sources = [str(bpf.HOME / "vegas.bpf.c")]
    theirs, ours = (run(cc, sources, every_ack=True, duration="6s", **path) for cc in ("vegas", "bpf_vegas"))
    assert ours["flows"]["cc"].to_pylist() == ["bpf_vegas"]
    assert window(ours) == window(theirs)
    seen = {row[0] for row in window(theirs)}
    assert len(seen) > (10 if path else 30), "a window that stands still shows nothing"
    assert (theirs["flows"]["retransmits"].to_pylist() != [0]) == bool(path)


@on_kernel
def test_a_slip_of_one_packet_in_our_vegas_shows(tmp_path: Path) -> None:
    text = (bpf.HOME / "vegas.bpf.c").read_text()
    slipped = text.replace("#define BETA 4", "#define BETA 5").replace("#define ALPHA 2", "#define ALPHA 3")
    assert slipped != text
    sources = [source(tmp_path, text=slipped)]
    path = {"rate": "5mbit", "rtt": "20ms", "duration": "3s"}
    assert window(run("bpf_vegas", sources, every_ack=True, **path)) != window(
        run("vegas", sources, every_ack=True, **path)
    )


@on_kernel
def test_exp_starts_and_backs_off_as_its_equations_say(tmp_path: Path) -> None:
    recording = run("exp", [str(bpf.HOME / "exp.bpf.c")], duration="4s")
    rows = recording["samples"].to_pylist()
    assert recording.provenance["loaded"].keys() == {"exp"}
    packets = [row["cwnd_bytes"] / 1448 for row in rows]
    # ARP and the handshake take 80 ms; 10 packets become 30 while the ACKs of the first flight come in, to 132 ms.
    assert [packets[at] for at, row in enumerate(rows) if row["time_ns"] == 150_000_000] == [30]
    start = next(at for at, row in enumerate(rows) if row["ssthresh_bytes"])
    # The window at the loss is that of the last sample or, 10 ms later, a little more.
    before = packets[start - 1]
    assert 3 / 4 * before <= rows[start]["ssthresh_bytes"] / 1448 <= 3 / 4 * 1.1 * before


@on_kernel
def test_our_cdg_behaves_as_the_kernels() -> None:
    """Both toss coins: what is compared is goodput and delay, and that it is the delay which they react to."""
    sources = [str(bpf.HOME / "cdg.bpf.c")]
    goodput, delay = [], []
    for cc in ("cdg", "bpf_cdg"):
        recording = run(cc, sources, duration="12s")
        goodput.append(recording["flows"]["bytes_received"][0].as_py() * 8 / 12)
        delay.append(pc.quantile(recording["rtts"]["rtt_ns"], 0.95)[0].as_py() / 1e6)
        assert recording["samples"]["retransmits"].to_pylist()[-1] == 0
    assert abs(goodput[1] / goodput[0] - 1) < 0.1
    # Loss-based flows fill the queue: 120 ms.
    assert all(milliseconds < 80 for milliseconds in delay)


@on_kernel
def test_the_skeleton_is_reno(tmp_path: Path) -> None:
    text = SKELETON.read_text().replace("{module}", "my_cc").replace("{Kind}", "MyCc")
    sources = [source(tmp_path, text=text)]
    ours = epochs(run("my_cc", sources, every_ack=True, duration="3s"))
    reno = epochs(run("reno", sources, every_ack=True, duration="3s"))
    assert len(ours) == len(reno) > 1
    for one, other in zip(ours, reno, strict=True):
        assert [abs(a - b) <= 2 * MSS for a, b in zip(one, other, strict=True)] == [True, True], (ours, reno)
    assert epochs(run("cubic", sources, every_ack=True, duration="3s")) != reno


@on_kernel
def test_the_same_twice() -> None:
    sources = [str(bpf.HOME / "cdg.bpf.c")]
    first, second = (run("bpf_cdg", sources, duration="2s") for _ in range(2))
    assert first.provenance["recording_sha256"] == second.provenance["recording_sha256"]


@on_kernel
@pytest.mark.parametrize(
    ("name", "body", "hint"),
    [
        (
            "mine",
            "tcp_sk(sk)->snd_nxt = 0;",
            r"Permission denied.* no write support .* does not take it",
        ),
        ("cubic", "", "a congestion control of that name: choose another"),
    ],
    ids=["the verifier refuses", "the name is taken"],
)
def test_what_the_kernel_refuses_is_told(tmp_path: Path, name: str, body: str, hint: str) -> None:
    with pytest.raises(BadInputError, match=hint) as found:
        run(name, [source(tmp_path, name, body)], duration="1s")
    assert (found.value.field, found.value.value) == ("load", repr(str(tmp_path / "mine.bpf.c")))


@on_kernel
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("nonsense;", "a C file that clang compiles: .*use of undeclared identifier 'nonsense'"),
        ("tcp_sk(sk)->snd_nxt = 0;", "a program that this kernel takes: .*no write support"),
    ],
    ids=["clang", "the verifier"],
)
@pytest.mark.parametrize("check", [[], ["--check"]], ids=["run", "check"])
def test_a_program_that_is_refused_is_bad_input(
    tmp_path: Path, body: str, told: str, check: list[str]
) -> None:
    file = source(tmp_path, "mine", body)
    words = [
        "compare",
        "--engine",
        "vm",
        "--rate",
        "1mbit",
        "--rtt",
        "10ms",
        "--queue",
        "pfifo limit 100",
        "--duration",
        "1s",
        "--load",
    ]
    out = [] if check else ["--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "dragstrip", *words, file, *check, *out, "mine"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert re.search(f"load: got '{re.escape(file)}', expected {told}", errors[0]), errors
    assert not (tmp_path / "out").exists()


@compiles
@pytest.mark.parametrize("part", ["loader", "object"])
def test_a_damaged_object_or_loader_is_named_and_compiled_again(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path / "cache"))
    file = source(tmp_path)
    made = bpf.compiled(file).file
    kept = made if part == "object" else bpf.loader()
    sound = kept.read_bytes()
    kept.write_bytes(sound[:100] + bytes([sound[100] ^ 1]) + sound[101:])
    assert bpf.compiled(file).file == made
    assert kept.read_bytes() == sound
    said = capsys.readouterr().err
    assert said.startswith(f"warning: {kept}: damaged: its SHA-256"), said
    assert said.count("\n") == 1
