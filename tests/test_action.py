"""The action: its inputs, and what tools/action.py writes for GitHub."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
CLAIM = """
[[claims]]
id = "{id}"
metric = "goodput_bps"
where = {{ cc = "reno" }}
value = {published}
tolerance = {tolerance}
unit = "Mbit/s"
source = "a test"
"""


def act(folder: Path, **inputs: str) -> tuple[int, str, str, str]:
    """Return the status, standard output, the job's summary and the step's outputs."""
    summary, outputs = folder / "summary.md", folder / "outputs"
    environment = {
        f"INPUT_{name.upper()}": value for name, value in {"package": "installed", **inputs}.items()
    }
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/action.py")],
        cwd=folder,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(outputs),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    texts = [file.read_text() if file.exists() else "" for file in (summary, outputs)]
    return done.returncode, done.stdout, *texts


def experiment(folder: Path, *claims: str) -> None:
    race = ["compare", "--rate", "10mbit", "--rtt", "20ms", "--duration", "2s", "--show", "reno"]
    shown = subprocess.run(
        [sys.executable, "-m", "dragstrip", *race], capture_output=True, text=True, check=True
    )
    (folder / "race.toml").write_text(shown.stdout + "".join(claims))


def test_every_input_is_handed_to_the_program_and_documented() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    step = action["runs"]["steps"][-1]
    given = {name.removeprefix("INPUT_").lower() for name in step["env"] if name.startswith("INPUT_")}
    assert given | {"python"} == set(action["inputs"])
    read = set(re.findall(r'_(?:input|lines)\("(\w+)"\)', (ROOT / "tools/action.py").read_text()))
    assert {name.lower() for name in read} == given
    page = (ROOT / "docs/how-to/action.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(action["inputs"])


def test_an_experiment_is_summarised_and_a_contradicted_claim_fails(tmp_path: Path) -> None:
    experiment(
        tmp_path,
        CLAIM.format(id="right", published=9, tolerance="1"),
        CLAIM.format(id="wrong", published=2, tolerance="1"),
    )
    status, out, summary, outputs = act(tmp_path, run="race.toml", out="o")
    assert status == 3, out
    assert "::error title=race.toml%3A wrong::published 2" in out
    assert "right" not in out
    assert "| wrong | 2 Mbit/s |" in summary
    assert "pie showData" in summary
    assert outputs == "folder=o\ncomment=o/comment.txt\nstatus=3\n"
    assert (tmp_path / "o/comment.txt").read_text() == summary
    assert json.loads((tmp_path / "o/race/result.json").read_text())["claims"]


def test_a_command_that_fails_ends_the_step_with_its_status(tmp_path: Path) -> None:
    status, out, summary, _ = act(tmp_path, passport="nonsense")
    assert (status, summary) == (2, ""), out
    assert "::error title=Dragstrip::dragstrip passport nonsense" in out


def test_finds_run_again_and_one_that_got_worse_fails(tmp_path: Path) -> None:
    search = ["attack", "reno", "--goal", "utilisation", "--evaluations", "10", "--out", "finds", "--json"]
    program = [sys.executable, "-m", "dragstrip"]
    subprocess.run([*program, *search], cwd=tmp_path, capture_output=True, check=True)
    status, out, summary, _ = act(tmp_path, attack="finds", out="o")
    assert (status, out) == (0, "\n")
    names = [find["name"] for find in json.loads((tmp_path / "o/attack.json").read_text())["finds"]]
    assert names
    assert all(f"| {name} |" in summary for name in names)


def test_a_passport_is_summarised_with_junit(tmp_path: Path) -> None:
    status, out, summary, _ = act(tmp_path, passport="reno", out="o")
    assert status in (0, 3), out
    assert summary.startswith("# Passport of `reno`")
    assert (tmp_path / "o/passport/passport.html").exists()
    assert "<testsuites" in (tmp_path / "o/junit.xml").read_text()


def test_an_address_that_is_none_changes_nothing() -> None:
    program = [sys.executable, "-m", "tools.address", "somewhere"]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "REPO: got 'somewhere', expected OWNER/REPO, such as example/dragstrip\n"


def test_nothing_to_do_is_refused(tmp_path: Path) -> None:
    status, out, summary, _ = act(tmp_path)
    assert (status, summary) == (2, "")
    assert "expected at least one" in out
    assert not (tmp_path / "dragstrip-out").exists()
