"""Recordings of a real kernel, in the exchange format that validation/README.md describes."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

from dragstrip.errors import BadInputError
from dragstrip.io.untrusted import packed_json

Json: TypeAlias = dict[str, Any]

SUFFIXES = (".json", ".json.xz")
FLOW_KEPT = (
    "cc",
    "src",
    "type",
    "start_s",
    "stop_s",
    "rx_bytes",
    "retrans",
    "snd_mss",
    "min_rtt_ms",
    "series",
)
"""Fields of a flow that `packed` keeps; the others are totals that nothing here reads."""


@dataclass(frozen=True)
class KernelRun:
    """One run of a kernel; `name` is the file's, without its ending."""

    name: str
    content: Json

    @property
    def scenario(self) -> Json:
        """The scenario as the kernel ran it."""
        scenario: Json = self.content["scenario"]
        return scenario

    @property
    def flows(self) -> list[Json]:
        """Totals and series of each flow."""
        flows: list[Json] = self.content["flows"]
        return flows

    @property
    def seed(self) -> int:
        """Seed of netem's random numbers and the kernel's."""
        return int(self.scenario.get("seed", 1))

    @property
    def kernel(self) -> str:
        """The package that the kernel came from."""
        return str(self.content.get("run", {}).get("kernel", "unknown"))

    @property
    def idle_share(self) -> float:
        """Share of time in which the guest's processor was idle; 1 if it was not recorded."""
        return float(self.content.get("run", {}).get("cpu_idle_share", 1.0))

    @property
    def case(self) -> str:
        """The name without the seed, which repeats of one case have in common."""
        return re.sub(r"-seed\d+$", "", self.name)


def load(file: Path) -> KernelRun:
    """Read a recording; raises `BadInputError` if it is damaged or of another structure."""
    name = file.name.removesuffix(".xz").removesuffix(".json")
    try:
        content = packed_json(file)
        for key in ("scenario", "flows", "ping_series", "queue_series"):
            content[key]
        return KernelRun(name, content)
    except (KeyError, TypeError) as error:
        raise BadInputError("", None, f"is no kernel recording: {error} is missing", str(file)) from None


def load_all(folder: Path, pattern: str | None = None) -> list[KernelRun]:
    """Read a folder's recordings in the order of their names; raises `BadInputError` if there are none.

    `pattern` is a shell pattern or part of a name.
    """
    return [load(file) for file in _files(folder, pattern)]


def _files(folder: Path, pattern: str | None) -> Iterator[Path]:
    if not folder.is_dir():
        raise BadInputError("", None, "a folder of kernel recordings is missing", str(folder))
    glob = f"*{pattern or ''}*" if not pattern or not set("*?[") & set(pattern) else pattern
    count = 0
    for file in sorted(folder.iterdir()):
        if file.name.endswith(SUFFIXES) and fnmatchcase(file.name.split(".json")[0], glob):
            count += 1
            yield file
    if not count:
        filter_text = f"matching {pattern!r}" if pattern else "(*.json, *.json.xz)"
        raise BadInputError("", None, f"holds no kernel recording {filter_text}", str(folder))


def packed(run: KernelRun) -> bytes:
    """Return the recording reduced to what is compared, compressed: 2 to 5 kB for half a minute."""
    flows = [{key: flow[key] for key in FLOW_KEPT if key in flow} for flow in run.flows]
    content = {
        "scenario": run.scenario,
        "flows": flows,
        "netstat": run.content.get("netstat", {}),
        "queue_series": run.content["queue_series"],
        "ping_series": run.content["ping_series"],
        "run": run.content.get("run", {}),
    }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def grouped(runs: Iterable[KernelRun]) -> dict[str, list[KernelRun]]:
    """Group repeats with different seeds by the name of their case."""
    cases: dict[str, list[KernelRun]] = {}
    for run in runs:
        cases.setdefault(run.case, []).append(run)
    return cases
