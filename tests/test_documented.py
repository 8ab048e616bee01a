"""Every command that README and docs print can be typed as it stands."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dragstrip import cli
from dragstrip.engines import registry
from dragstrip.engines.agent import binaries
from dragstrip.engines.netns import host
from dragstrip.engines.sim.quic import absence
from dragstrip.errors import DragstripError

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "experiments").glob("*/README.md")),
]
PROGRAM = r"(?:\./|\.venv/bin/)?dragstrip "
UNWRITTEN = re.compile(r"\.\.\.| N( |$)|^--install-completion")
"""A form that its reader fills in; and what would change the home folder."""


def whole_commands(block: str) -> Iterator[str]:
    """Yield the lines of a block; one that opens a single quote goes on to the line that closes it."""
    waiting = ""
    for line in block.splitlines():
        waiting = f"{waiting}; {line.strip()}" if waiting else line
        if not re.match(rf"\s*{PROGRAM}", waiting) or len(re.sub(r'"[^"]*"', "", waiting).split("'")) % 2:
            yield waiting
            waiting = ""
    if waiting:
        yield waiting


def commands() -> Iterator[tuple[str, str, bool]]:
    """Page, command, and whether it stands in a block to be typed, not within a sentence."""
    for page in PAGES:
        text = page.read_text()
        name = str(page.relative_to(ROOT))
        fenced = re.findall(r"^```([^\n]*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        blocks = [block for language, block in fenced if language in ("", "sh", "console")]
        blocks += re.findall(r"(?:^    .*\n)+", text, re.MULTILINE)
        for block in blocks:
            for line in whole_commands(block.replace("\\\n", " ")):
                behind = r"" if "-c '" in line else r"(?:\s+#.*|\s+[|>].*)?"  # a script has its own
                if found := re.match(rf"\s*{PROGRAM}(.*?){behind}$", line):
                    yield name, found[1], True
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for found in re.finditer(rf"`{PROGRAM}([^`]+)`", prose):
            yield name, " ".join(found[1].split()), False


FOUND = sorted({one for one in commands() if not UNWRITTEN.search(one[1])})
ON_ENGINES = sorted({line for _, line, _ in FOUND if re.search(r"(^| )--engine ", line)})
NAMED = sorted(
    {
        found
        for page in PAGES
        for found in re.findall(r"--engine ([a-z]+(?:,[a-z]+)*)", page.read_text())
        if set(found.split(",")) <= registry.HOMES.keys()
    }
)
"""Engines, alone and in pairs, that pages name."""
EXAMPLES = [(page, line) for page, line, typed in FOUND if typed and line.startswith("compare ")]


def parsed(words: list[str]) -> None:
    """Takes the words as the command line does, down to the command, and calls nothing."""
    command: Any = typer.main.get_command(cli.app)
    context = command.make_context("dragstrip", list(words), resilient_parsing=False)
    while hasattr(command, "commands"):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)


READERS_OWN = "what its reader writes; test_dependencies, test_skeletons, test_learning_examples and the vm's tests make one"
OF_READERS = (
    "my-exp",
    "home",
    "home.toml",
    "my_exp",
    "my-exp:factor=4",
    "my_cc.rs",
    "bpf/my_exp.bpf.c",
    "mine.json",
    "my_delay.bpf.c",
    "pfifo_head_drop limit 50",
)
"""Algorithms and disciplines of the pages that a clone does not have."""


def names_readers_own(words: list[str]) -> bool:
    """Return whether a command names an algorithm or a discipline that a clone does not have."""
    return any(word in OF_READERS for word in words) and "--program" not in words


def test_there_are_commands_on_many_pages() -> None:
    assert len(FOUND) > 60
    assert len({page for page, _, _ in FOUND}) > 12
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize(("page", "line", "typed"), FOUND)
def test_a_command_is_one(page: str, line: str, typed: bool) -> None:
    """Within a sentence a command may be named without its arguments."""
    try:
        parsed(shlex.split(line))
    except typer.Exit:  # of --help and the like
        return
    except typer.exceptions.TyperException as error:
        if not typed and "Missing argument" in error.format_message():
            return
        pytest.fail(f"{page}: dragstrip {line}: {error.format_message()}")


def skip_if_absent(words: list[str]) -> None:
    """Skip a command with a QUIC stack whose library this machine lacks."""
    absent = next(filter(None, map(absence, words)), None)
    if absent is not None:
        pytest.skip(f"needs {absent}")


@pytest.mark.parametrize(("page", "line"), EXAMPLES)
def test_a_comparison_means_something(
    page: str,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "commute.trace").write_text("1\n2\n")
    words = shlex.split(line)
    for folder in ("programs", "bpf", "docs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    if names_readers_own(words):
        pytest.skip(READERS_OWN)
    if "--lab" in words:
        pytest.skip("a lab that its reader has; tests/ssh makes one")
    skip_if_absent(words)
    monkeypatch.setattr(sys, "argv", ["dragstrip", *words, "--show"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, ""), page
    assert "[path]" in out


SHORTER: dict[str, dict[str, str]] = {
    "compare": {"--duration": "3s"},
    "run": {"--duration": "2s", "--repeat": "1"},
    "conform": {},
}
"""What makes a command short, by its first word."""
ELSEWHERE = {
    "kernel": "boots a guest for minutes: tests/hosts runs such commands",
    "passport": "rows of minutes: tests/vm/test_passport_rows.py",
    "shell": "programs that a machine may lack: tests/vm/test_programs.py and tests/netns/test_shell.py",
    "validate": "a grid of runs: tests/validation and tests/vm/test_both_engines.py",
}
"""Commands that are not run here, by their first word, and why."""


def with_options(words: list[str], options: dict[str, str]) -> list[str]:
    """Return the words with these values of options in the place of others."""
    changed = list(words)
    for option, value in options.items():
        if option in changed:
            changed[changed.index(option) + 1] = value
        else:
            changed += [option, value]
    return changed


def expect_engines(names: str, request: pytest.FixtureRequest) -> None:
    """Skip the test, by name, where one of these engines is missing."""
    for name in names.split(","):
        if name == "ssh":
            pytest.skip("engine ssh: a lab that its reader has; tests/ssh makes one")
        if name == "vm":
            request.getfixturevalue("linux")
        if name == "netns":
            try:
                binaries.program()
                host.about()
            except DragstripError as error:
                pytest.skip(f"engine netns: {error}")


def expect_run(
    words: list[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Run a command in a folder that has what a clone has; skip the test if it needs what this kernel lacks."""
    monkeypatch.chdir(folder)
    for name in ("bpf", "programs", "validation"):
        (folder / name).symlink_to(ROOT / name)
    monkeypatch.setattr(sys, "argv", ["dragstrip", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    _, err = capsys.readouterr()
    lacking = re.search(r"this kernel has no [^,;]*|there is no clang[^,;]*|needs clang[^,;]*", err)
    if ended.value.code == 2 and lacking:
        pytest.skip(f"{words[0]} {words[1]}: {lacking[0]}")
    assert (ended.value.code, "a fault in dragstrip" in err) == (0, False), err
    assert not list(folder.glob("**/PARTIAL"))


def test_engines_are_named_alone_and_in_pairs() -> None:
    assert {"vm", "netns", "ssh", "sim,vm", "sim,netns"} <= set(NAMED)
    assert len(ON_ENGINES) > 10


@pytest.mark.parametrize("engines", NAMED)
def test_the_race_of_the_readme_runs_on_every_engine_that_a_page_names(
    engines: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    """As the page says it: the command of README with this --engine."""
    expect_engines(engines, request)
    typed = [
        line for page, line, _ in FOUND if page == "README.md" and line.startswith("compare --engine vm")
    ]
    options = {"--engine": engines, "--out": "out", **SHORTER["compare"]}
    if "netns" in engines:  # kernels of clouds have no netem
        options["--rtt"] = "0ms"
    expect_run(with_options(shlex.split(typed[0]), options), tmp_path, monkeypatch, capsys)
    document = json.loads((tmp_path / "out" / "result.json").read_text())
    assert {run["engine"] for run in document["runs"]} == set(engines.split(","))
    assert not document["failed"]


@pytest.mark.parametrize("line", ON_ENGINES)
def test_a_command_with_an_engine_runs(
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    if (first := line.split()[0]) in ELSEWHERE:
        pytest.skip(f"{first}: {ELSEWHERE[first]}")
    words = shlex.split(line)
    if "docs/examples/" in line:
        pytest.skip("programs that a machine may lack: tests/vm/test_program_flows.py runs the example")
    if names_readers_own(words):
        pytest.skip(READERS_OWN)
    expect_engines(words[words.index("--engine") + 1], request)
    if "32" in line:
        words = [word.replace("*32", "*4") for word in words]
    expect_run(with_options(words, SHORTER[words[0]]), tmp_path, monkeypatch, capsys)
