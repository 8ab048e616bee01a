"""Captures requested for a run: hosts and links, bytes of each frame, file names."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragstrip.engines.contract import Capture, Engine
from dragstrip.errors import BadInputError
from dragstrip.io.files import json_text
from dragstrip.model.scenario.paths import paths_of

SNAPLEN = 96
"""Ethernet's, IPv4's and TCP's longest headers are 94 bytes; payloads are zeros, except those of QUIC."""
DATAGRAM_SNAPLEN = 65_535
"""All of a QUIC datagram: part of one cannot be decrypted."""
SNAPLEN_MIN, SNAPLEN_MAX = 54, 262_144
"""The headers without TCP's options; libpcap's own limit."""
POINTS_MAX = 200
"""Files of one run that are open at once."""


@dataclass(frozen=True)
class CaptureRequest:
    """Request for captures: `--capture` and `--snaplen`."""

    points: Sequence[str] = ()
    """Hosts and links; none: the hosts of all flows, and the bottlenecks of their paths."""
    snaplen: int | None = None
    """Bytes kept of each frame; None: headers, and whole datagrams of QUIC."""

    def __post_init__(self) -> None:
        if self.snaplen is not None and not SNAPLEN_MIN <= self.snaplen <= SNAPLEN_MAX:
            expected = f"{SNAPLEN_MIN} (headers) to {SNAPLEN_MAX} bytes"
            raise BadInputError("--snaplen", self.snaplen, expected, "command line")

    def check_engine(self, engine: Engine) -> None:
        """Raises `BadInputError` for one that writes no captures."""
        if not engine.captures:
            expected = "an engine that writes captures with --capture (docs/how-to/captures.md)"
            raise BadInputError("--engine", engine.name, expected, "command line")

    def of(self, scenario: Mapping[str, Any]) -> Capture:
        """The captures of one scenario; raises `BadInputError` for a name that it does not have."""
        available = [node["name"] for node in scenario["nodes"] if node["kind"] == "host"]
        available += [link["name"] for link in scenario["links"]]
        for point in self.points:
            if point not in available:
                raise BadInputError("--capture", point, _expected_points(scenario, available), "command line")
        points = list(dict.fromkeys(self.points)) or usual_points(scenario)
        if len(points) > POINTS_MAX:
            expected = f"at most {POINTS_MAX} of the hosts and links, by name"
            raise BadInputError("--capture", f"{len(points)} files for each run", expected, "command line")
        return Capture(points, *self.snaplens())

    def snaplens(self) -> tuple[int, int]:
        """Bytes kept of a frame, and of one with a QUIC datagram."""
        return (SNAPLEN, DATAGRAM_SNAPLEN) if self.snaplen is None else (self.snaplen, self.snaplen)


def _expected_points(scenario: Mapping[str, Any], points: list[str]) -> str:
    routers = [node["name"] for node in scenario["nodes"] if node["kind"] != "host"]
    more = f"; of the router {routers[0]} one of its links" if routers else ""
    return f"a host or a link: {' '.join(points[:20])}{' ...' * (len(points) > 20)}{more}"


def usual_points(scenario: Mapping[str, Any]) -> list[str]:
    """Hosts that send or receive, in the order of flows, then the bottlenecks in between."""
    pairs = dict.fromkeys((flow["sender"], flow["receiver"]) for flow in scenario["flows"])
    pairs |= dict.fromkeys((probe["from"], probe["target"]) for probe in scenario.get("probes", ()))
    hosts = {node["name"] for node in scenario["nodes"] if node["kind"] == "host"}
    ends = [name for name in dict.fromkeys(itertools.chain(*pairs)) if name in hosts]
    facts = paths_of(scenario, pairs)
    return ends + list(dict.fromkeys(path.bottleneck["name"] for path in facts if path.bottleneck))


def comment(engine: str, scenario: Mapping[str, Any]) -> str:
    """Comment in a capture about its run: enough to make it again."""
    digest = hashlib.sha256(json_text(scenario).encode("utf-8", "backslashreplace")).hexdigest()
    return (
        f"engine {engine}, seed {scenario['seed']}, scenario.json has SHA-256 {digest}; "
        "time 0 of the run is 2001-09-09T01:46:40Z"
    )


def names(points: Sequence[str]) -> dict[str, str]:
    """The name of each one's file: its own as far as a file may be called so, and no two alike."""
    file_names: dict[str, str] = {}
    for point in points:
        stem = re.sub(r"[^\w.-]+", "-", point, flags=re.ASCII).lstrip(".")[:100] or "point"
        candidates = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
        file_names[point] = next(
            name
            for stem_candidate in candidates
            if (name := f"{stem_candidate}.pcapng") not in file_names.values()
        )
    return file_names
