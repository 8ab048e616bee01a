"""What `dragstrip compare` means, as an experiment.

    s1 ... sN --plain veth-- r --bottleneck-- [loss, jitter] -- d
                             r <-- whole RTT, up rate, up queue -- d

One run per algorithm, or one run with all of them (`together`). The receiver pings the first sender
five times a second; the ping's answer passes the bottleneck.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment import Experiment

T = TypeVar("T")

OPTIONS = {
    "path.rate": "--rate",
    "path.rtt": "--rtt",
    "path.queue": "--queue",
    "path.loss": "--loss",
    "path.jitter": "--jitter",
    "path.link": "--link",
    "path.up_rate": "--up-rate",
    "path.up_queue": "--up-queue",
    "duration": "--duration",
    "seed": "--seed",
    "repeat": "--repeat",
    "hosts.*.gso": "--gso",
    "engine": "--engine",
    "load": "--load",
}
"""Field of the experiment → the option it came from, for messages."""


def compare(
    algorithms: Sequence[str],
    *,
    rate: str,
    rtt: str,
    queue: str,
    duration: str,
    flows: int = 1,
    loss: str | None = None,
    jitter: str | None = None,
    up_rate: str | None = None,
    up_queue: str | None = None,
    link: str = "htb",
    ecn: bool = False,
    sysctl: Mapping[str, str] | None = None,
    gso: str = "auto",
    seed: int = 1,
    repeat: int = 1,
    together: bool = False,
    engine: str = "sim",
    load: Sequence[str] = (),
) -> Experiment:
    """The experiment that these options describe; `BadInputError` names the option that is wrong."""
    if not algorithms:
        raise BadInputError("ALGORITHM", None, "is missing: name at least one, such as cubic", "command line")
    path: dict[str, Any] = {"rate": rate, "rtt": rtt, "queue": queue, "link": link}
    given = {"loss": loss, "jitter": jitter, "up_rate": up_rate, "up_queue": up_queue}
    path.update({key: value for key, value in given.items() if value is not None})
    settings = dict(sysctl or {})
    if ecn:
        settings.setdefault("net.ipv4.tcp_ecn", "1")
    mix = [{"cc": name, "count": flows} for name in algorithms]
    content: dict[str, Any] = {
        "name": "compare",
        "title": f"{', '.join(algorithms)} at {rate}, {rtt} round trip, {queue}",
        "duration": duration,
        "seed": seed,
        "repeat": repeat,
        "engine": engine,
        "load": list(load),
        "cold_arp": True,
        "path": path,
        "hosts": {"*": {"sysctl": settings, "gso": gso}},
        "flows": mix if together else mix[:1],
        "probes": [{"from": "d", "target": "s1", "interval": "200ms"}],
    }
    if not together:
        content["vary"] = {"flows.cc": list(algorithms)}
    return reworded(lambda: Experiment.build(content))


def reworded(build: Callable[[], T]) -> T:
    """Calls `build`; a complaint about a field is told as one about its option."""
    try:
        return build()
    except BadInputError as error:
        raise BadInputError(option(error.field), Raw(error.value), error.expected, "command line") from None


def option(field: str) -> str:
    """The option behind a field of the experiment."""
    if field in OPTIONS:
        return OPTIONS[field]
    if field.startswith("flows["):
        return "--flows" if field.endswith("count") else "ALGORITHM"
    if ".sysctl" in field:
        return "--sysctl"
    longest = max((known for known in OPTIONS if field.startswith(known)), key=len, default="")
    return OPTIONS.get(longest, field)
