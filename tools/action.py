"""The steps of action.yml: install Dragstrip, run what the inputs ask for, and report on it (docs/how-to/action.md).

Inputs are the variables `INPUT_*`. Reports go to the files that GitHub names (`GITHUB_STEP_SUMMARY`,
`GITHUB_OUTPUT`), annotations to standard output, everything else into the folder `INPUT_OUT`. Exit status: 3 if
something got worse or was contradicted, 2 for a wrong input, that of Dragstrip for any other failure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORSE = 3
INSTALLED = "installed"
"""The `package` that stands for what the interpreter has already."""
COMMENT_MAX = 60_000
"""Characters of a comment; GitHub takes 65,536."""


class InputError(Exception):
    """An input that is wrong."""


@dataclass
class Report:
    """The summary in Markdown and the annotations of all that ran."""

    markdown: list[str] = field(default_factory=list)
    annotations: list[str] = field(default_factory=list)
    failed: bool = False

    def warn(self, title: str, text: str) -> None:
        """Add an error that the pull request shows."""
        self.failed = True
        self.annotations.append(f"::error title={_property(title)}::{_message(text)}")


def main() -> int:
    """Run the inputs' work and return the exit status."""
    out = Path(_input("OUT") or "dragstrip-out")
    try:
        experiments, folder, algorithm = _lines("RUN"), _input("ATTACK"), _input("PASSPORT")
        if not (experiments or folder or algorithm):
            raise InputError("inputs: got none of passport, run and attack, expected at least one")
        if _input("AGAINST") and not algorithm:
            raise InputError("against: is for passport, which is empty")
        out.mkdir(parents=True, exist_ok=True)
        _install()
        report = Report()
        if algorithm:
            _passport(algorithm, out, report)
        for name in experiments:
            _experiment(name, out, report)
        if folder:
            _finds(folder, out, report)
    except InputError as error:
        print(f"::error title=Dragstrip::{_message(str(error))}")
        return 2
    except subprocess.CalledProcessError as error:
        print(
            f"::error title=Dragstrip::{_message(' '.join(map(str, error.cmd)))} ended with {error.returncode}"
        )
        return error.returncode
    return _write(report, out)


def _install() -> None:
    if _input("PACKAGE") == INSTALLED:
        return
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    package = _input("PACKAGE") or f"dragstrip=={project['version']}"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
    ]
    subprocess.run([*pip, package], check=True)


def _dragstrip(words: Sequence[str]) -> dict[str, Any]:
    """Return the document of a command; raises `CalledProcessError` if it fails, but not if it found a change."""
    done = subprocess.run(
        [sys.executable, "-m", "dragstrip", *words, "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode not in (0, WORSE):
        raise subprocess.CalledProcessError(done.returncode, ["dragstrip", *words])
    document: dict[str, Any] = json.loads(done.stdout)
    return document | {"status": done.returncode}


def _passport(algorithm: str, out: Path, report: Report) -> None:
    words = ["passport", algorithm, "--out", str(out / "passport"), "--junit", str(out / "junit.xml")]
    words += [word for file in _lines("PROGRAM") for word in ("--program", file)]
    words += ["--quick"] if _input("QUICK") != "false" else []
    words += ["--against", _input("AGAINST")] if _input("AGAINST") else []
    document = _dragstrip(words)
    report.markdown += [
        (out / "passport" / "passport.md").read_text(),
        _pie(row["verdict"] for row in document["rows"]),
    ]
    for row in document.get("against", {}).get("changed", []):
        if row["how"] == "worse":
            change = (
                f"{row['verdict_before']} before ({row['before']}), {row['verdict_now']} now ({row['now']})"
            )
            report.warn(f"{algorithm}: {row['id']}", change)
    if document["status"] == WORSE and not report.failed:
        report.warn(f"{algorithm}: passport", "a limit of a document is missed; see the summary")


def _experiment(name: str, out: Path, report: Report) -> None:
    folder = out / name.replace("/", "-").removesuffix(".toml")
    document = _dragstrip(["run", name, "--out", str(folder)])
    claims = document.get("claims", [])
    report.markdown += [f"# {name}", "", *_races(document["runs"]), "", *_claims(claims)]
    for claim in claims:
        if claim["grade"] == "contradicted":
            report.warn(
                f"{name}: {claim['id']}",
                f"published {_figure(claim['published'])}, measured {_figure(claim['measured'])}",
            )


def _races(runs: Sequence[dict[str, Any]]) -> list[str]:
    head = ["| run | flow | goodput | RTT, median | retransmitted |", "|---|---|---:|---:|---:|"]
    return head + [
        f"| {run['scenario']} | {flow['label']} | {flow['goodput_bps'] / 1e6:.3g} Mbit/s | {_rtt(flow)} | "
        f"{flow['retransmits']} of {flow['segments_sent']} |"
        for run in runs
        for flow in run["flows"]
        if flow.get("goodput_bps") is not None
    ]


def _rtt(flow: dict[str, Any]) -> str:
    median = (flow.get("rtt_ms") or {}).get("p50")
    return "–" if median is None else f"{median:.3g} ms"


def _claims(claims: Sequence[dict[str, Any]]) -> list[str]:
    if not claims:
        return []
    head = ["| claim | published | measured | grade |", "|---|---|---|---|"]
    rows = [
        f"| {c['id']} | {_figure(c['published'])} {c['unit'] or ''} | {_figure(c['measured'])} | {c['grade']} |"
        for c in claims
    ]
    return [*head, *rows, "", _pie(claim["grade"] for claim in claims)]


def _figure(value: Any) -> str:
    """Return a published or measured figure as text: a number, both ends of a range, or an order."""
    if isinstance(value, list):
        return (" < " if any(isinstance(part, str) for part in value) else " to ").join(map(_figure, value))
    return f"{value:.4g}" if isinstance(value, int | float) else "–" if value is None else str(value)


def _finds(folder: str, out: Path, report: Report) -> None:
    document = _dragstrip(["attack", "--rerun", folder])
    (out / "attack.json").write_text(json.dumps(document, indent=2))
    report.markdown += [f"# Finds of {folder}", "", "| find | recorded | now | |", "|---|---:|---:|---|"]
    for find in document["finds"]:
        row = f"| {find['name']} | {find['recorded']:.4g} {find['unit']} | {find['figure']:.4g} | {find['verdict']} |"
        report.markdown.append(row)
        if find["verdict"] == "worse":
            report.warn(
                f"{folder}: {find['name']}",
                f"{find['recorded']:.4g} {find['unit']}, now {find['figure']:.4g}",
            )


def _pie(kinds: Any) -> str:
    """Return a pie of how many there are of each kind, which GitHub draws (Mermaid)."""
    counts = Counter(kinds)
    lines = "\n".join(f'  "{kind}" : {count}' for kind, count in counts.most_common())
    return f"```mermaid\npie showData\n{lines}\n```\n"


def _write(report: Report, out: Path) -> int:
    text = "\n".join(report.markdown) + "\n"
    comment = out / "comment.txt"
    comment.write_text(
        text if len(text) <= COMMENT_MAX else text[:COMMENT_MAX] + "\n\n(cut; see the summary)\n"
    )
    for variable, content in {
        "GITHUB_STEP_SUMMARY": text,
        "GITHUB_OUTPUT": f"folder={out}\ncomment={comment}\nstatus={WORSE if report.failed else 0}\n",
    }.items():
        if os.environ.get(variable):
            with Path(os.environ[variable]).open("a") as file:
                file.write(content)
    print("\n".join(report.annotations))
    return WORSE if report.failed else 0


def _input(name: str) -> str:
    return os.environ.get(f"INPUT_{name}", "").strip()


def _lines(name: str) -> list[str]:
    return [line.strip() for line in _input(name).splitlines() if line.strip()]


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


if __name__ == "__main__":
    sys.exit(main())
