"""Every command that README and docs print can be typed as it stands."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dragstrip import cli

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "experiments").glob("*/README.md")),
]
PROGRAM = r"(?:uv run --locked |\.venv/bin/)?dragstrip "
UNWRITTEN = re.compile(r"\.\.\.| N( |$)|^--install-completion")
"""A form that its reader fills in; and what would change the home folder."""


def commands() -> Iterator[tuple[str, str, bool]]:
    """Page, command, and whether it stands in a block to be typed, not within a sentence."""
    for page in PAGES:
        text = page.read_text()
        name = str(page.relative_to(ROOT))
        blocks = re.findall(r"^```(?:sh|console|)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        blocks += re.findall(r"(?:^    .*\n)+", text, re.MULTILINE)
        for block in blocks:
            for line in block.replace("\\\n", " ").splitlines():
                if found := re.match(rf"\s*{PROGRAM}(.*?)(?:\s+#.*|\s+[|>].*)?$", line):
                    yield name, found[1], True
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for found in re.finditer(rf"`{PROGRAM}([^`]+)`", prose):
            yield name, " ".join(found[1].split()), False


FOUND = sorted({one for one in commands() if not UNWRITTEN.search(one[1])})
EXAMPLES = [(page, line) for page, line, typed in FOUND if typed and line.startswith("compare ")]


def parsed(words: list[str]) -> None:
    """Takes the words as the command line does, down to the command, and calls nothing."""
    command: Any = typer.main.get_command(cli.app)
    context = command.make_context("dragstrip", list(words), resilient_parsing=False)
    while hasattr(command, "commands"):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)


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
    (tmp_path / "programs").symlink_to(ROOT / "programs")
    own = any(word in words for word in ("my-exp", "my_exp", "my-exp:factor=4", "--load"))
    if own and "--program" not in words:
        pytest.skip("an algorithm that its reader writes; test_dependencies and the vm's tests make one")
    if "--lab" in words:
        pytest.skip("a lab that its reader has; tests/ssh makes one")
    monkeypatch.setattr(sys, "argv", ["dragstrip", *words, "--show"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, ""), page
    assert "[path]" in out
