"""What runs the tests: which of them a change reaches, what is installed for them, who waits for whom."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from turns import ALONE, APART, KERNEL, together, turn

ROOT = Path(__file__).parents[1]
SINCE = "82aa0487870944ba9a68dce30a88fa480b2585e1"
"""Earlier commits have longer subjects."""
SUBJECT_MAX = 72


@pytest.fixture(scope="module")
def check() -> ModuleType:
    """`make check`'s program."""
    loader = importlib.machinery.SourceFileLoader("check", str(ROOT / ".ci/check.py"))
    spec = importlib.util.spec_from_loader("check", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_a_changed_crate_reaches_those_that_depend_on_it(check: ModuleType) -> None:
    reached = set(check.crates({"crates/qdisc/src/lib.rs"}))
    assert {"dragstrip-qdisc", "dragstrip-sim", "dragstrip-py"} <= reached
    assert not {"dragstrip-units", "dragstrip-packet", "dragstrip-cc"} & reached
    assert check.crates({"README.md"}) == []
    assert len(check.crates({"Cargo.lock"})) > len(reached)


def test_a_changed_module_reaches_the_tests_that_import_it(check: ModuleType) -> None:
    reached = check.test_files({"tests/report/synthetic.py"}, core=False)
    assert "tests/report/test_report.py" in reached
    assert "tests/test_toml.py" not in reached
    assert check.test_files({"tests/vm/test_parts.py"}, core=False) == {"tests/vm/test_parts.py"}
    assert set(check.CORE_TESTS) <= check.test_files({"crates/cc/src/lib.rs"}, core=True)
    assert check.test_files({"LICENSE"}, core=False) == set()


@pytest.mark.parametrize(
    ("file", "runs"),
    [
        ("crates/agent/src/main.rs", True),
        ("crates/scenario/src/types.rs", True),
        ("python/dragstrip/engines/netns/host.py", True),
        ("tests/netns/test_smoke.py", True),
        ("crates/py/src/lib.rs", False),
        ("python/dragstrip/report/write.py", False),
    ],
)
def test_the_race_in_namespaces_follows_a_change_of_the_agent(
    check: ModuleType, file: str, runs: bool
) -> None:
    commands = dict(check.stages({file}))
    assert ("namespaces" in commands) is runs
    assert runs is any(check.NAMESPACES in command for command in commands.values())


def test_every_file_that_is_named_exists(check: ModuleType) -> None:
    named = [
        *check.CORE_TESTS,
        check.NAMESPACES,
        *check.LONG,
        *(test for tests in check.READERS.values() for test in tests),
    ]
    assert [name for name in [*named, *check.READERS, *check.DATA_OF] if not (ROOT / name).exists()] == []


def test_an_import_is_found_however_it_is_written(check: ModuleType) -> None:
    assert "ssh.namespaces" in check.imports("tests/ssh/conftest.py"), "relative"
    assert "turns" in check.imports("tests/test_ci.py")
    assert check.module("python/dragstrip/report/__init__.py") == "dragstrip.report"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A machine on which almost nothing is installed; `installed` is what apt-get was asked for."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in (
        "sh",
        "dirname",
        "cat",
        "sed",
        "cut",
        "xargs",
        "mktemp",
        "head",
        "rm",
        "grep",
        "mkdir",
        "touch",
        "echo",
    ):
        (programs / name).symlink_to(str(shutil.which(name)))
    for name, does in {
        "apt-get": f'echo "$@" >>{tmp_path}/installed',
        "id": "echo ${USER_ID:-0}",
        "rustc": "echo /none",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    return tmp_path


def tools(machine: Path, *words: str, **environment: str) -> tuple[int, list[str], list[str]]:
    """The status and the lines of `.ci/tools`, and what apt-get was asked for."""
    ended = subprocess.run(
        [str(ROOT / ".ci/tools"), *words],
        env={"PATH": str(machine / "bin"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not ended.stderr
    asked = machine / "installed"
    return (
        ended.returncode,
        ended.stdout.splitlines(),
        asked.read_text().splitlines() if asked.exists() else [],
    )


def test_root_is_told_what_is_installed_for_which_tests(bare: Path) -> None:
    status, lines, asked = tools(bare, "captures", "fuzz")
    assert status == 0
    assert lines[0] == "Installing what tests need (TOOLS=none leaves the machine alone):"
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["fuzz", "captures"]
    assert "tests/captures" in lines[2]
    assert "MB to fetch" in lines[2]
    assert asked[0] == "update -q"
    assert asked[1].endswith("--no-install-recommends g++ tshark tcpdump tcptrace tcpstat flent")


@pytest.mark.parametrize("environment", [{"TOOLS": "none"}, {"USER_ID": "1000"}])
def test_else_nothing_is_installed_and_there_is_one_command_for_root(
    bare: Path, environment: dict[str, str]
) -> None:
    status, lines, asked = tools(bare, "captures", "kernel", **environment)
    assert status == 0
    assert asked == []
    assert "skipped by name" in lines[0]
    command = "apt-get install --no-install-recommends tshark tcpdump tcptrace tcpstat flent qemu-system-x86 clang libbpf-dev"
    assert lines[-1] == f"For all of them, as root: {command}"


def test_what_is_there_is_not_installed(bare: Path) -> None:
    for name in ("c++", "chromium"):
        (bare / "bin" / name).symlink_to(bare / "bin/sed")
    assert tools(bare, "fuzz", "browser") == (0, [], [])
    assert tools(bare, "--has", "fuzz")[0] == 0
    assert tools(bare, "--has", "captures") == (1, [], [])


def test_one_package_that_does_not_exist_does_not_keep_the_others_out(bare: Path) -> None:
    fails = f'echo "$@" >>{bare}/installed\ncase "$*" in *chromium*) echo "E: Unable to locate package chromium"; exit 100;; esac'
    (bare / "bin/apt-get").write_text(f"#!/bin/sh\n{fails}\n")
    status, lines, asked = tools(bare, "fuzz", "browser")
    assert status == 0
    assert lines[-1] == "Skipped: browser: apt-get install chromium: E: Unable to locate package chromium"
    assert asked[-2].endswith(" g++")


def test_a_stage_shows_what_it_printed_and_ends_as_its_command() -> None:
    command = [str(ROOT / ".ci/stage"), "two words", "sh", "-c", "echo out; echo err >&2; exit 3"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    first, *rest = ended.stdout.splitlines()
    assert ended.returncode == 3
    assert first.startswith("── two words failed (3) after ")
    assert rest == ["out", "err"]


def test_a_file_stays_in_one_process_and_so_does_what_must_be_alone() -> None:
    assert together("tests/test_toml.py::test_x[a::b]") == together("tests/test_toml.py::test_y")
    assert together("tests/netns/test_bpf.py::test_x") == together("tests/ssh/test_lab.py::test_x") == "alone"
    assert together("tests/torture/test_torture.py::test_a_sample_of[namespaces]") == "alone"
    assert (
        together("tests/vm/test_bpf.py::test_x") == together("tests/test_conformance.py::test_x") == "kernel"
    )
    assert together("tests/test_outputs.py::test_x") != together("tests/test_outputs.py::test_y")


def test_whoever_has_a_place_exists() -> None:
    for place in (*ALONE, *KERNEL, *APART):
        assert (ROOT / "tests" / place.partition("::")[0]).exists(), place


@pytest.mark.skipif(not os.environ.get("PYTEST_XDIST_WORKER"), reason="one process: pytest -n 2")
@pytest.mark.parametrize("number", range(4))
def test_the_tests_of_this_file_are_in_one_process(
    number: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seen = tmp_path_factory.getbasetemp().parent / "test_ci"
    with seen.open("a") as file:
        file.write(f"{os.environ['PYTEST_XDIST_WORKER']}\n")
    assert set(seen.read_text().split()) == {os.environ["PYTEST_XDIST_WORKER"]}


def test_others_run_together(tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=60)

    def run() -> None:
        with turn(tmp_path, alone=False):
            both.wait()

    other = threading.Thread(target=run)
    other.start()
    run()
    other.join()


def test_who_wants_the_machine_alone_has_it_alone(tmp_path: Path) -> None:
    inside, seen = 0, []
    count = threading.Lock()

    def run(alone: bool) -> None:
        nonlocal inside
        with turn(tmp_path, alone=alone):
            with count:
                inside += 1
            time.sleep(0.02)
            with count:
                seen.append((alone, inside))
                inside -= 1

    threads = [threading.Thread(target=run, args=(number % 2 == 0,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == len(threads)
    assert {count for alone, count in seen if alone} == {1}


def test_what_the_guide_for_contributors_names_exists() -> None:
    tables = re.findall(r"^\| (`.*) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    named = [name for row in tables for name in re.findall(r"`([\w./-]+)`", row.split(" | ")[0])]
    assert len(named) > 12
    assert [name for name in named if not re.search("my_|NAME", name) and not (ROOT / name).exists()] == []


def test_every_push_and_pull_request_runs_what_a_person_runs() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    assert set(workflow[True]) == {"push", "pull_request"}, "YAML 1.1 reads `on` as true"
    assert workflow["permissions"] == {"contents": "read"}
    steps = workflow["jobs"]["test"]["steps"]
    assert [step["run"] for step in steps if "run" in step][-1] == ".ci/run"
    updated = {
        one["package-ecosystem"]
        for one in yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    }
    assert updated == {"cargo", "uv", "npm", "github-actions"}


def test_the_subject_of_a_commit_fits_a_terminal() -> None:
    command = ["git", "log", "--format=%h %s", f"{SINCE}..HEAD"]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    if ended.returncode != 0:
        pytest.skip("no checkout with its history")
    subjects = [line.split(" ", 1) for line in ended.stdout.splitlines()]
    assert [f"{short} {subject}" for short, subject in subjects if len(subject) > SUBJECT_MAX] == []
