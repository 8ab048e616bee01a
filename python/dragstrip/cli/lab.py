"""`dragstrip lab`: the hosts of the ssh engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragstrip.cli.once import Commands
from dragstrip.cli.options import JsonFlag
from dragstrip.cli.output import print_json, say, say_finding

if TYPE_CHECKING:
    from dragstrip.engines.ssh.lab import Lab

app = Commands(
    no_args_is_help=True,
    help="The hosts of engine ssh: check, show, clean.",
    epilog="Example: dragstrip lab check lab.toml",
)
File = Annotated[
    Path, typer.Argument(metavar="LAB.toml", help="The file that describes the lab (docs/how-to/lab.md).")
]


def _read(file: Path) -> Lab:
    from dragstrip.engines.ssh.lab import Lab

    return Lab.read(file)


def _checked(file: Path, scenario: dict[str, Any] | None = None) -> dict[str, Any]:
    from dragstrip.display.progress import progress
    from dragstrip.engines.ssh import hosts

    lab = _read(file)
    with progress(f"asking {len(lab.hosts)} hosts ..."):
        hosts.prepare()
        return hosts.check(lab, scenario)


@app.command(short_help="Check every host without changing anything.")
def check(
    file: File,
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="EXPERIMENT", help="Also check whether the lab can run this one.", show_default=False
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Check every host's reachability, rights, kernel, interfaces and clock, without changing anything.

    Example: dragstrip lab check lab.toml

    Example: dragstrip lab check lab.toml geni-tcp/step1
    """
    report = _checked(file, _first(experiment, file) if experiment else None)
    healthy = all(finding["ok"] for finding in report["findings"])
    if as_json:
        print_json({"healthy": healthy, **report})
    else:
        _show(report["findings"])
    if not healthy:
        refused = any(finding["refused"] for finding in report["findings"] if not finding["ok"])
        raise typer.Exit(2 if refused else 1)


def _first(experiment: str, file: Path) -> dict[str, Any]:
    """Return the experiment's first scenario, as the engine would run it."""
    from dragstrip.experiment import catalogue
    from dragstrip.experiment.expand import expand
    from dragstrip.experiment.types import rebuilt

    described, _ = catalogue.load(experiment, "ssh")
    changed = {"engine": "ssh", "engine_options": {"lab": str(file)}}
    scenario: dict[str, Any] = expand(rebuilt(described.content(), changed)[0])[0].scenario
    return scenario


def _show(findings: list[dict[str, Any]]) -> None:
    from dragstrip.io.untrusted import one_line

    for finding in findings:
        where = f"host {finding['host']}: " if finding["host"] else ""
        expectation = f", expected {finding['expected']}" if finding["expected"] and not finding["ok"] else ""
        line = f"{where}{finding['what']}: {one_line(finding['found'])}{one_line(expectation)}"
        say_finding("ok" if finding["ok"] else "WRONG", line)


@app.command(short_help="Show who is using the hosts.")
def show(file: File, as_json: JsonFlag = False) -> None:
    """Show for every host who is using it, and since when.

    Example: dragstrip lab show lab.toml
    """
    report = _checked(file)
    in_use = [finding for finding in report["findings"] if finding["what"] in ("in use", "reached")]
    if as_json:
        print_json(
            {"hosts": [{"host": finding["host"], finding["what"]: finding["found"]} for finding in in_use]}
        )
    else:
        from dragstrip.io.untrusted import one_line

        for finding in in_use:
            say(f"host {finding['host']}: {finding['what']}: {one_line(finding['found'])}")
    if any(finding["what"] == "reached" for finding in in_use):
        raise typer.Exit(1)


@app.command(short_help="Undo the changes that an interrupted run left.")
def clean(file: File, as_json: JsonFlag = False) -> None:
    """Undo on every host the changes that an interrupted run left, from the host's own journal.

    Example: dragstrip lab clean lab.toml
    """
    from dragstrip.display.progress import progress
    from dragstrip.engines.ssh import hosts
    from dragstrip.io.untrusted import one_line

    lab = _read(file)
    with progress(f"asking {len(lab.hosts)} hosts ..."):
        hosts.prepare()
        cleaned_hosts = hosts.clean(lab)["hosts"]
    if as_json:
        print_json({"hosts": cleaned_hosts})
    else:
        for host in cleaned_hosts:
            undone = host.get("undone")
            outcome = host.get("failed") or (
                f"undone: {len(undone)} changes" if undone else "nothing to undo"
            )
            say(f"host {host['host']}: {one_line(outcome)}")
    if any("failed" in host for host in cleaned_hosts):
        raise typer.Exit(1)
