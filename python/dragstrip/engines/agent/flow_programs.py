"""Programs of the user's own as flows of a run: their commands, and what is wrong with them beforehand."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragstrip.engines.contract import Json, Refusal

KIND = "program"


@dataclass(frozen=True)
class FlowCommands:
    """Commands of a flow."""

    flow: int
    label: str
    folder: str
    server: Sequence[str]
    """At the flow's sender, started before the run; empty: none."""
    client: Sequence[str]
    """At its receiver, from the flow's start."""
    files: Sequence[str]

    def field(self, name: str) -> str:
        """Return the words for a field of its application in an error."""
        return f"flow {self.label}: application.{name}"

    def described(self) -> Json:
        """The entry as the agent takes it (crates/agent/src/commands/flows.rs)."""
        words = {"server": list(self.server), "client": list(self.client)}
        return {"flow": self.flow, "folder": self.folder, **words}


def has_programs(scenario: Json) -> bool:
    """Return whether a flow of the scenario is a program."""
    return any(flow["application"]["kind"] == KIND for flow in scenario["flows"])


def commands_of(scenario: Json) -> list[FlowCommands]:
    """Return the commands of a scenario's programs. Raises `BadInputError` for one with an open quotation."""
    commands = []
    for number, flow in enumerate(scenario["flows"]):
        application = flow["application"]
        if application["kind"] != KIND:
            continue
        words = {}
        for field in ("server", "client"):
            try:
                words[field] = shlex.split(application.get(field, ""))
            except ValueError as error:
                at = f"flow {flow['label']}: application.{field}"
                raise Refusal(at, repr(application[field]), f"a command: {error}").error() from None
        files = application.get("files", [])
        commands.append(FlowCommands(number, flow["label"], application["folder"], **words, files=files))
    return commands


def refused(scenario: Json) -> list[Refusal]:
    """Return refusals of all programs, by an engine that runs none."""
    return [
        Refusal(f"flow {flow['label']}: application", KIND, "another one: engines vm and netns run programs")
        for flow in scenario["flows"]
        if flow["application"]["kind"] == KIND
    ]


def missing(scenario: Json) -> list[Refusal]:
    """Return refusals of commands whose program is not there, and of files that are not."""
    refusals = []
    for commands in commands_of(scenario):
        folder = Path(commands.folder)
        if not folder.is_dir():
            refusals.append(Refusal(commands.field("folder"), repr(commands.folder), "a folder that exists"))
            continue
        for field, words in (("client", commands.client), ("server", commands.server)):
            if field == "client" and not words:
                refusals.append(Refusal(commands.field(field), "", "is missing: a command"))
            if words and _program(words[0], folder) is None:
                expected = "a program that exists: command not found"
                refusals.append(Refusal(commands.field(field), repr(words[0]), expected))
        for name in commands.files:
            if not any((folder / path).exists() for path in (name, name.rpartition(":")[0] or name)):
                refusals.append(
                    Refusal(commands.field("files"), repr(name), "a file or a folder that exists")
                )
    return refusals


def _program(word: str, folder: Path) -> str | None:
    """Return the file of a command's first word, or None."""
    return shutil.which(str(folder / word) if "/" in word else word)


def on_this_machine(scenario: Json) -> dict[str, Any]:
    """Return what a request has for programs that see this machine's files; nothing without any."""
    commands = commands_of(scenario)
    if not commands:
        return {}
    flows = [entry.described() for entry in commands]
    return {"commands": {"environment": dict(os.environ), "flows": flows}}


def outcomes(verified: Mapping[str, Any]) -> list[str]:
    """Return a line for each program of a run that did not end by itself with status 0."""
    lines = []
    for entry in verified.get("programs", ()):
        name, status = entry["flow"], entry["status"]
        printed = f"{entry['stdout']['end']}\n{entry['stderr']['end']}".splitlines()
        last = next((line.strip() for line in reversed(printed) if line.strip()), "")
        words = f", its last line: {last[:200]}" if last else ""
        if entry["flooded"] is not None:
            lines.append(f"program {name}: {entry['flooded']} has more than 16 MiB, and was closed")
        if not entry["started"]:
            lines.append(f"program {name} was not started: the run was over before")
        elif status is None:
            lines.append(f"program {name} had not ended when the run was over{words}")
        elif status:
            lines.append(f"program {name} ended with status {status}{words}")
        if entry["server_status"] is not None:
            lines.append(
                f"program {name}: its server ended during the run, with status {entry['server_status']}"
            )
    return lines
