"""Programs of the user's own as flows: what is refused beforehand, and what a report says of those that fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.engines import registry
from dragstrip.engines.agent.flow_programs import commands_of, outcomes
from dragstrip.errors import BadInputError
from dragstrip.experiment.expand import expand

PROGRAM = {"kind": "program", "client": "sh -c 'exit 3'", "server": "sh server.sh"}


def content(*flows: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """An experiment with a cubic flow and these."""
    path = {"rate": "10mbit", "rtt": "40ms", **fields.pop("path", {})}
    return {"duration": "3s", "path": path, "flows": [{"cc": "cubic"}, *flows], **fields}


def program(**fields: Any) -> dict[str, Any]:
    """A flow with a program."""
    application = {**PROGRAM, **fields.pop("application", {})}
    return {"cc": "cubic", "label": "mine", "application": application, **fields}


def experiment(*flows: dict[str, Any], **fields: Any) -> dragstrip.Experiment:
    return dragstrip.Experiment.build(content(*flows, **fields))


def test_commands_are_split_as_a_shell_does_and_start_in_the_files_folder(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'duration = "3s"\n[path]\nrate = "10mbit"\nrtt = "40ms"\n[[flows]]\ncc = "cubic"\nlabel = "mine"\n'
        'application = { kind = "program", client = "sh -c \'exit 3\'", folder = "inner" }\n'
    )
    (run,) = expand(dragstrip.Experiment.read(file), str(file))
    (commands,) = commands_of(run.scenario)
    assert (commands.client, commands.server) == (["sh", "-c", "exit 3"], [])
    assert commands.folder == str(tmp_path / "inner")


@pytest.mark.parametrize(
    ("flow", "complaint"),
    [
        (program(application={"client": " "}), "application.client"),
        (program(application={"clients": "x"}), "application.clients"),
        (program(bytes="1MB"), "bytes are for a bulk flow"),
        (program(dscp="EF"), 'flows[1].dscp: got "EF", expected none: a program opens its sockets itself'),
        (program(send_buffer="64kb"), "flows[1].send_buffer"),
        ({"label": "mine", "application": PROGRAM}, "flows[1].cc: is missing"),
    ],
)
def test_what_a_program_cannot_have_is_named(flow: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInputError) as error:
        expand(experiment(flow))
    assert complaint in str(error.value)


def test_two_programs_between_the_same_hosts_are_refused() -> None:
    with pytest.raises(BadInputError, match="hosts of its own: the program"):
        expand(experiment(program(), program(label="other"), path={"senders": 1}))


def test_the_simulator_does_not_run_a_program() -> None:
    with pytest.raises(
        BadInputError, match=r"flow mine: application: got program, expected another one: engines vm"
    ):
        dragstrip.run(experiment(program()))


def test_a_program_and_a_file_that_are_not_there_are_refused(tmp_path: Path) -> None:
    application = {
        "client": "no-such-client",
        "server": "./none",
        "files": ["here", "nowhere"],
        "folder": str(tmp_path),
    }
    (tmp_path / "here").write_text("")
    (run,) = expand(experiment(program(application=application)))
    fields = [refusal.field for refusal in registry.named("vm").refusals(run.scenario, {})]
    assert fields == [f"flow mine: application.{name}" for name in ("client", "server", "files")]
    (run,) = expand(experiment(program(application={"client": "sh -c '", "folder": str(tmp_path)})))
    with pytest.raises(BadInputError, match=r"flow mine: application\.client: .*No closing quotation"):
        registry.named("vm").refusals(run.scenario, {})


def outcome(**fields: Any) -> dict[str, Any]:
    stream = {"bytes": 0, "end": ""}
    entry = {"flow": "mine", "status": 0, "started": True, "flooded": None, "server_status": None}
    return {**entry, "stdout": stream, "stderr": stream, "server_output": stream, **fields}


def test_what_failed_is_a_line_each() -> None:
    complaint = {"bytes": 12, "end": "no\nsuch file\n"}
    assert outcomes({"programs": [outcome()]}) == outcomes({}) == []
    failed = [
        outcome(status=7, stderr=complaint),
        outcome(status=None),
        outcome(status=None, started=False),
        outcome(flooded="standard output", server_status=1),
    ]
    assert outcomes({"programs": failed}) == [
        "program mine ended with status 7, its last line: such file",
        "program mine had not ended when the run was over",
        "program mine was not started: the run was over before",
        "program mine: standard output has more than 16 MiB, and was closed",
        "program mine: its server ended during the run, with status 1",
    ]
