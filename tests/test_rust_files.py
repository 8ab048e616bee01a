"""Congestion controls in Rust files: named on a command line, compiled beside the checkout, and each fault a row's own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragstrip.authoring.rust_files import command, core
from dragstrip.authoring.rust_files.source import registered, rust_file
from dragstrip.authoring.skeletons import new_file
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.model.recording import core_build

ROOT = Path(__file__).parents[1]

compiled = pytest.mark.skipif(
    shutil.which("cargo") is None, reason="cargo is not installed (https://rustup.rs)"
)


def rust(folder: Path, name: str, *changes: tuple[str, str]) -> Path:
    """A new algorithm's file with these changes."""
    folder.mkdir(parents=True, exist_ok=True)
    file = Path(new_file(ROOT, name, folder).files[0])
    text = file.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file.write_text(text)
    return file


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# --- the file -----------------------------------------------------------------------------------


def test_a_new_file_stands_outside_the_clone_and_is_not_written_twice(tmp_path: Path) -> None:
    before = contents(ROOT / "crates/cc")
    file = rust(tmp_path, "my-cc")
    assert file == tmp_path / "my_cc.rs"
    assert rust_file(str(file)).called.kind == "MyCc"
    assert contents(ROOT / "crates/cc") == before
    for name in ("my-cc", "cubic"):
        with pytest.raises(BadInputError, match="exists already"):
            new_file(ROOT, name, tmp_path)
    assert [it.name for it in tmp_path.iterdir()] == ["my_cc.rs"]


def test_it_is_registered_behind_all_others(tmp_path: Path) -> None:
    changed = registered(ROOT, [rust_file(str(rust(tmp_path, "my-cc")))])
    assert "\npub mod my_cc;\n" in changed["crates/cc/src/algorithms/mod.rs"]
    assert "\n    my_cc: MyCc,\n}" in changed["crates/cc/src/registry.rs"]
    assert changed.keys() - {"crates/cc/src/algorithms/my_cc.rs"} == {
        "crates/cc/src/algorithms/mod.rs",
        "crates/cc/src/registry.rs",
    }


def test_a_file_of_the_checkout_itself_is_registered_already() -> None:
    changed = registered(ROOT, [rust_file(str(ROOT / "crates/cc/src/algorithms/exp.rs"))])
    for path, text in changed.items():
        assert text == (ROOT / path).read_text(), path


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('    name: "my-cc",\n', "", 'my_cc.rs: has no `name: "..."` in `ABOUT`'),
        ("impl CongestionControl for MyCc {", "impl MyCc {", "my_cc.rs: has no `impl CongestionControl"),
        ('name: "my-cc"', 'name: "cubic"', "my_cc.rs: ABOUT.name: got 'cubic', expected another name"),
        (
            'name: "my-cc"',
            'name: "vegas_freebsd"',
            "my_cc.rs: ABOUT.name: got 'vegas_freebsd', expected another",
        ),
        ('name: "my-cc"', 'name: "My CC"', "my_cc.rs: ABOUT.name: got 'My CC', expected lowercase"),
    ],
)
def test_a_file_that_is_none_is_refused_by_name(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = rust(tmp_path, "my-cc", (old, new))
    with pytest.raises(BadInputError) as refused:
        registered(ROOT, [rust_file(str(file))])
    assert said in str(refused.value)


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"nowhere\.rs"):
        command.entered(["compare", "nowhere.rs"])


# --- the command line ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["compare", "{f}", "cubic"], ["compare", "my-cc", "cubic", "--program", "{f}"]),
        (["compare", "{f}:gain=2*4@80ms+1s"], ["compare", "my-cc:gain=2*4@80ms+1s", "--program", "{f}"]),
        (["passport", "--quick", "{f}"], ["passport", "--quick", "my-cc", "--program", "{f}"]),
        (["passport", "my-cc", "--program", "{f}"], ["passport", "my-cc", "--program", "{f}"]),
        (["attack", "my-cc", "--program={f}"], ["attack", "my-cc", "--program={f}"]),
        (["evidence", "my-cc", "--program", "{f}"], ["evidence", "my-cc", "--program", "{f}"]),
        (["evidence", "{f}"], ["evidence", "my-cc", "--program", "{f}"]),
        (["run", "x.toml", "--program", "{f}"], ["run", "x.toml", "--program", "{f}"]),
        (["compare", "reno", "--out", "out.rs"], ["compare", "reno", "--out", "out.rs"]),
        (["play", "{f}"], ["play", "{f}"]),
    ],
)
def test_names_replace_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: list[str]
) -> None:
    file = rust(tmp_path, "my-cc")
    monkeypatch.setattr(core_build, "algorithm_files", lambda: {"my-cc": rust_file(str(file)).sha256})
    filled = [[word.format(f=file) for word in line] for line in (words, expected)]
    assert command.entered(filled[0]) == filled[1]


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    files = [str(rust(tmp_path / place, "my-cc")) for place in "ab"]
    with pytest.raises(BadInputError, match="a second file has it"):
        command.entered(["compare", *files])


def test_an_edited_file_starts_the_command_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = rust(tmp_path, "my-cc")
    monkeypatch.setattr(core_build, "algorithm_files", lambda: {"my-cc": "0" * 64})
    monkeypatch.setattr(core, "core", lambda algorithms: tmp_path / algorithms[0].sha256)
    monkeypatch.setenv(core_build.VARIABLE, "")
    started: list[tuple[str, str]] = []
    monkeypatch.setattr(os, "execv", lambda *_: started.append((os.environ[core_build.VARIABLE], "again")))
    command.entered(["compare", str(file)])
    assert started == [(str(tmp_path / rust_file(str(file)).sha256), "again")]


def test_texts_and_rust_files_stand_side_by_side_but_not_where_nothing_loads_them(tmp_path: Path) -> None:
    from dragstrip.experiment.programs import of_files

    with pytest.raises(BadInputError, match="one in Rust is for compare, run, passport, evidence and attack"):
        of_files([str(rust(tmp_path, "my-cc"))])


# --- compiling ----------------------------------------------------------------------------------


def test_without_a_checkout_it_says_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = rust_file(str(rust(tmp_path, "my-cc")))
    monkeypatch.setattr(core_build, "ROOT", tmp_path)
    monkeypatch.setattr(core, "clone", _no_clone)
    with pytest.raises(BadInputError, match="needs a checkout of the sources and cargo"):
        core.core([file])
    monkeypatch.setattr(core, "clone", lambda _: ROOT)
    monkeypatch.setattr(core, "_core", SimpleNamespace(BUILT_OF="another"))
    with pytest.raises(BadInputError, match="is not what this package was built from"):
        core.core([file])


def _no_clone(_: str) -> Path:
    raise BadInputError("", None, "there is none here")


def test_without_cargo_it_says_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DragstripError, match="needs cargo"):
        core.core([rust_file(str(rust(tmp_path, "my-cc")))])


def test_the_copy_follows_the_sources_and_what_is_equal_keeps_its_time(tmp_path: Path) -> None:
    root, copy = tmp_path / "root", tmp_path / "copy"
    for name in ("crates/cc/src/a.rs", "crates/cc/src/b.rs", "Cargo.toml", "docs/page.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    core._mirror(root, copy, {"crates/cc/src/mine.rs": "mine", "crates/cc/src/b.rs": "changed"})
    assert contents(copy) == {
        "crates/cc/src/a.rs": b"crates/cc/src/a.rs",
        "crates/cc/src/b.rs": b"changed",
        "crates/cc/src/mine.rs": b"mine",
        "Cargo.toml": b"Cargo.toml",
    }
    os.utime(copy / "crates/cc/src/a.rs", (1, 1))
    core._mirror(root, copy, {})
    assert (copy / "crates/cc/src/a.rs").stat().st_mtime == 1
    assert (copy / "crates/cc/src/b.rs").read_text() == "crates/cc/src/b.rs"
    assert not (copy / "crates/cc/src/mine.rs").exists()


def test_the_least_used_cores_go(tmp_path: Path) -> None:
    for number in range(core.KEPT + 3):
        place = tmp_path / f"{number:02}"
        place.mkdir()
        (place / core_build.FILES).write_text("{}")
        os.utime(place, (number, number))
    (tmp_path / "of-checkout").mkdir()
    core._forget(tmp_path / "00")
    left = sorted(it.name for it in tmp_path.iterdir())
    assert left == ["00", *(f"{number:02}" for number in range(4, core.KEPT + 3)), "of-checkout"]


def dragstrip(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dragstrip", *words], cwd=cwd, capture_output=True, text=True, check=False
    )


FAULT = """
        match self.fault {
            1 => assert!(view.delivered < 100, "a hundred packets"),
            2 => window.cwnd /= u32::from(view.delivered < 100),
            3 => window.cwnd = 0,
            4 => window.cwnd = u32::MAX,
            5 => while view.delivered >= 100 {
                std::hint::spin_loop();
            },
            _ => {}
        }
"""
ROW = """&[crate::Parameter::new(
        "fault",
        0.0,
        crate::Range::Whole(0, 5),
        "",
        "what it does wrong",
        "none",
    )]"""


def faulty(folder: Path) -> Path:
    """An algorithm that is Reno's, and with `fault` does something wrong."""
    return rust(
        folder,
        "my-cc",
        ("parameters: &[]", f"parameters: {ROW}"),
        ("pub struct MyCc;", "pub struct MyCc {\n    fault: u32,\n}"),
        ("new(_parameters:", "new(parameters:"),
        ("        Self\n", '        Self { fault: parameters.whole("fault") }\n'),
        ("        reno::grow(", FAULT + "        reno::grow("),
    )


SOON = "from dragstrip.studies.passport import runs; from dragstrip.cli import main; runs.TIME_LIMIT_S = 5.0; main()"
"""The program with a shorter limit for a run."""


@compiled
class TestCompiled:
    """With a core that is compiled in the cache of this machine: minutes the first time, then seconds."""

    PATH = ("--rate", "10mbit", "--rtt", "20ms", "--queue", "1bdp", "--duration", "2s")

    def test_an_equal_algorithm_gives_equal_bytes_and_the_checkout_is_as_it_was(self, tmp_path: Path) -> None:
        file = faulty(tmp_path)
        before = contents(ROOT / "crates")
        ended = dragstrip("compare", *self.PATH, "my_cc.rs", "reno", "--json", "--out", "out", cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        own, reno = json.loads(ended.stdout)["runs"]
        assert own["flows"][0]["cc"] == "my-cc"
        assert own["flows"][0]["goodput_bps"] == reno["flows"][0]["goodput_bps"] > 1e6
        assert contents(ROOT / "crates") == before
        found = json.loads(next((tmp_path / "out").rglob("provenance.json")).read_text())["build"]
        assert found["algorithm_files"] == {"my-cc": rust_file(str(file)).sha256}
        assert found["sources"] == core_build.sources(ROOT)

    def test_what_does_not_compile_is_told_with_the_authors_line(self, tmp_path: Path) -> None:
        file = rust(tmp_path, "my-cc", ("reno::half(window)", "reno::third(window)"))
        line = 1 + file.read_text().splitlines().index("        reno::third(window)")
        ended = dragstrip("compare", *self.PATH, "my_cc.rs", "--out", "out", cwd=tmp_path)
        assert ended.returncode == 2
        (said,) = [it for it in ended.stderr.splitlines() if it.startswith("error:")]
        assert said.startswith(f"error: my_cc.rs:{line}:15: does not compile: cannot find function `third`")
        assert not (tmp_path / "out").exists()

    def test_a_panic_names_the_algorithm_and_its_line(self, tmp_path: Path) -> None:
        lines = faulty(tmp_path).read_text().splitlines()
        line = 1 + next(number for number, it in enumerate(lines) if "assert!(view" in it)
        ended = dragstrip("compare", *self.PATH, "my_cc.rs:fault=1", "--out", "out", cwd=tmp_path)
        assert ended.returncode == 1
        assert f"my-cc panicked in line {line}: a hundred packets (scenario " in ended.stderr

    @pytest.mark.parametrize(
        ("fault", "said"),
        [
            (1, "my-cc panicked in line "),
            (2, "attempt to divide by zero"),
            (5, "it took longer than 5 s"),
        ],
    )
    def test_a_fault_is_a_rows_own_and_the_others_go_on(self, tmp_path: Path, fault: int, said: str) -> None:
        found = self.passport(tmp_path, fault)
        failed = [row for row in found["rows"] if row["verdict"] == "failed"]
        assert failed == found["rows"] != []
        for row in failed:
            assert said in row["failure"] or row["failure"].startswith("not started: 3 runs of my-cc:fault=5")
            assert f"--program my_cc.rs my-cc:fault={fault} " in f"{row['replay']} "
            assert row["baselines"]["reno"]["value"] is not None
        assert any(said in row["failure"] for row in failed)

    @pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_an_endless_loop_ends_at_the_first_signal(
        self, number: signal.Signals, status: int, tmp_path: Path
    ) -> None:
        """It was on a thread of this process, which nothing ends."""
        faulty(tmp_path)
        words = ["compare", *self.PATH, "my_cc.rs:fault=5", "--out", "out"]
        process = subprocess.Popen(
            [sys.executable, "-m", "dragstrip", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        said = ""
        while "simulated seconds" not in said and (line := process.stderr.readline()):
            said += line
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err.splitlines()[-1]) == (status, "error: interrupted")
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("fault", [3, 4])
    def test_no_window_is_too_small_or_too_large_for_a_verdict(self, tmp_path: Path, fault: int) -> None:
        found = self.passport(tmp_path, fault, "alone")
        assert {row["verdict"] for row in found["rows"]} & {"missed", "worse", "failed"}

    def passport(self, folder: Path, fault: int, chapter: str = "rtt") -> dict[str, Any]:
        """The passport of one chapter."""
        faulty(folder)
        words = [
            "passport",
            f"my_cc.rs:fault={fault}",
            "--only",
            chapter,
            "--quick",
            "--json",
            "--workers",
            "1",
        ]
        ended = subprocess.run(
            [sys.executable, "-c", SOON, *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert ended.returncode in (0, 3), ended.stderr
        found: dict[str, Any] = json.loads(ended.stdout)
        return found
