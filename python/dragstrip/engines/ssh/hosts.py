"""The lab's hosts, asked by the agent's conductor (crates/agent/src/lab)."""

from __future__ import annotations

import getpass
import json
import os
import shlex
import shutil
import socket
import stat
from collections.abc import Sequence
from pathlib import Path

from dragstrip.engines.agent import binaries
from dragstrip.engines.agent.answers import with_limits
from dragstrip.engines.agent.bpf import Loadable
from dragstrip.engines.agent.client import SILENCE_OF_HOSTS_S, AgentClient
from dragstrip.engines.agent.packets import Packets
from dragstrip.engines.agent.runs import run_by_agent
from dragstrip.engines.contract import Json, Progress, Refusal, Say, quietly
from dragstrip.engines.ssh.lab import Lab
from dragstrip.engines.ssh.media import as_they_are, measured, real
from dragstrip.engines.ssh.nodes import homes
from dragstrip.errors import DragstripError
from dragstrip.io.cache import base_folder
from dragstrip.io.shape import ANY, OBJECT, TEXT, Plain, Shape, optional
from dragstrip.model.recording import Recording

NAME = "ssh"
SSH = "DRAGSTRIP_SSH"
"""The program that connects, with its first words; else `ssh`."""
_BOOL = Plain("true or false", lambda value: isinstance(value, bool))
_FINDING: Shape = {
    **dict.fromkeys(("host", "what", "found", "expected"), TEXT),
    "ok": _BOOL,
    "refused": _BOOL,
}
CHECKED: Shape = {"findings": [_FINDING], "hosts": OBJECT}
CLEANED: Shape = {"hosts": [{"host": TEXT, "undone": optional(ANY), "failed": optional(TEXT)}]}

MISSING: Shape = {"missing": [optional(ANY)]}


def check(lab: Lab, scenario: Json | None = None) -> Json:
    """Probes every host and returns the findings; changes nothing there."""
    lab_scenario = as_they_are(scenario, lab) if scenario else None
    request = {"lab": _lab(lab, scenario), "what": "check", "scenario": lab_scenario}
    report = _client(CHECKED).ask(request)[0]
    for link, medium in (real(scenario, lab) if scenario else {}).items():
        as_it_is = f"the lab's {medium}: its rate, delay and queue stay as they are"
        finding = {"host": "", "what": f"link {link}", "found": as_it_is, "expected": ""}
        report["findings"].append({**finding, "ok": True, "refused": False})
    return report


def clean(lab: Lab) -> Json:
    """Undoes the changes that earlier runs left on every host."""
    return _client(CLEANED).ask({"lab": _lab(lab, None), "what": "clean"})[0]


def run(
    lab: Lab,
    scenario: Json,
    progress: Progress | None,
    load: Sequence[Loadable] = (),
    *,
    strict: bool,
    packets: Packets | None = None,
) -> Recording:
    """Runs one scenario, with the congestion controls of `load` in its ends' kernels; `packets` are written.

    Raises `BadInputError` for what the files say, else `DragstripError`.
    """
    recording = run_by_agent(
        NAME,
        scenario,
        lambda request, behind: _client().ask(
            {**request, "scenario": as_they_are(scenario, lab)}, progress, behind
        ),
        {},
        {"lab": {"name": lab.name, "sha256": lab.digest, "nodes": homes(scenario, lab)[0]}},
        load=load,
        packets=packets,
        words={"lab": _lab(lab, scenario), "what": "run"},
    )
    recording = with_limits(recording, "the hosts", strict=strict)
    if media := measured(recording, lab):
        recording.provenance["verified"]["real_links"] = media
    return recording


def missing(lab: Lab, scenarios: Sequence[Json], load: Sequence[Loadable] = ()) -> list[Refusal | None]:
    """Returns why the hosts cannot run each of these, or None; changes nothing there.

    Raises `DragstripError` for a host that cannot be reached or is not as the lab's file says.
    """
    reasons: list[Refusal | None] = [None] * len(scenarios)
    alike: dict[str, list[int]] = {}
    for number, scenario in enumerate(scenarios):
        alike.setdefault(json.dumps(homes(scenario, lab)[0]), []).append(number)
    programs = [
        {"name": name, "bytes": 0} for name in ("loader", *(loadable.file.name for loadable in load)) if load
    ]
    for numbers in alike.values():
        lab_scenarios = [as_they_are(scenarios[number], lab) for number in numbers]
        request = {
            "lab": _lab(lab, lab_scenarios[0]),
            "what": "missing",
            "scenarios": lab_scenarios,
            "load": programs,
        }
        answers = _client(MISSING).ask(request)[0]["missing"]
        for number, reason in zip(numbers, answers, strict=True):
            reasons[number] = None if reason is None else Refusal(*reason)
    return reasons


def program() -> str:
    """The program that connects; raises `DragstripError` where there is none."""
    words = _connecting()
    if executable := shutil.which(words[0]):
        return executable
    raise DragstripError(f"{words[0]} is not installed: apt-get install openssh-client")


def _connecting() -> list[str]:
    return shlex.split(os.environ.get(SSH, "ssh")) or ["ssh"]


def _client(shape: Shape | None = None) -> AgentClient:
    return AgentClient(NAME, "conduct", shape=shape, silence_s=SILENCE_OF_HOSTS_S)


def prepare(say: Say = quietly) -> None:
    """Compiles the agent; raises `DragstripError` where that cannot be done."""
    binaries.program(say)


def _lab(lab: Lab, scenario: Json | None) -> Json:
    """The lab as the conductor takes it (crates/agent/src/lab/hosts.rs)."""
    return {
        "name": lab.name,
        "revert_after_ns": lab.revert_after_ns,
        "prefixes": [[str(prefix.network_address), prefix.prefixlen] for prefix in lab.prefixes],
        "hosts": [
            {
                **{key: getattr(host, key) for key in ("name", "ssh", "role", "management", "rights")},
                "interfaces": [
                    {
                        "name": cable.name,
                        "address": str(cable.address.ip),
                        "length": cable.address.network.prefixlen,
                        "to": cable.to,
                        "real": cable.real is not None,
                    }
                    for cable in host.interfaces
                ],
            }
            for host in lab.hosts
        ],
        "nodes": homes(scenario, lab)[0] if scenario else {},
        "allow": {
            "sysctl": list(lab.sysctl),
            "offloads": lab.offloads,
            "replace_qdisc": lab.replace_qdisc,
            "programs": lab.programs,
        },
        "ssh": _connecting(),
        "control": str(_control()),
        "owner": f"{getpass.getuser()}@{socket.gethostname()}"[:100],
    }


def _control() -> Path:
    """A private folder for ssh's sockets, whose paths may have about 100 bytes."""
    runtime_folder = base_folder("XDG_RUNTIME_DIR")
    fallback = Path(f"/tmp/dragstrip-ssh-{os.geteuid()}")  # noqa: S108 - checked
    folder = runtime_folder / "dragstrip-ssh" if runtime_folder else fallback
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise DragstripError(f"engine {NAME}: {folder}: {error.strerror}") from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise DragstripError(f"engine {NAME}: {folder} is not a folder of this user's alone: remove it")
    return folder
