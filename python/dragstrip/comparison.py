"""What `dragstrip compare` means, as an experiment.

    s1 ... sN --plain veth-- r --bottleneck-- [loss, jitter] -- d
                             r <-- whole RTT, up rate, up queue -- d

One run per algorithm, or one run with all of them (`together`). The receiver pings the first sender
five times a second; the ping's answer passes the bottleneck.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from dragstrip import _core
from dragstrip.engines import DEFAULT
from dragstrip.errors import BadInputError, Raw, expect_text
from dragstrip.experiment import Experiment
from dragstrip.programs import refuse_unnamed

T = TypeVar("T")

OPTIONS = {
    "path.preset": "--path",
    "path.rate": "--rate",
    "path.medium": "--medium",
    "media.recorded.file": "--trace",
    "media.recorded-up.file": "--up-trace",
    "path.up_medium": "--up-medium",
    "workload": "--workload",
    "stagger": "--stagger",
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
    "changes": "--change",
    "hosts.*.gso": "--gso",
    "engine": "--engine",
    "load": "--load",
    "programs": "--program",
}
"""Field of the experiment → the option it came from, for messages."""


def compare(
    algorithms: Sequence[str],
    *,
    duration: str,
    path: str | None = None,
    rate: str | None = None,
    medium: str | None = None,
    trace: str | None = None,
    rtt: str | None = None,
    queue: str | None = None,
    workload: str = "bulk",
    flows: int = 1,
    both_ways: bool = False,
    stagger: str | None = None,
    loss: str | None = None,
    jitter: str | None = None,
    up_rate: str | None = None,
    up_medium: str | None = None,
    up_trace: str | None = None,
    up_queue: str | None = None,
    link: str | None = None,
    ecn: bool = False,
    accurate_ecn: bool = False,
    sysctl: Mapping[str, str] | None = None,
    gso: str = "auto",
    seed: int = 1,
    repeat: int = 1,
    together: bool = False,
    change: Sequence[str] = (),
    engine: str = DEFAULT,
    engine_options: Mapping[str, str | Sequence[str]] | None = None,
    load: Sequence[str] = (),
    programs: Mapping[str, str] | None = None,
) -> Experiment:
    """The experiment that these options describe; `BadInputError` names the option that is wrong.

    `programs` are algorithms as texts, by name (docs/program.md).
    """
    form = {
        "algorithms": list(algorithms),
        "path": path,
        "rate": rate,
        "medium": medium,
        "trace": trace,
        "rtt": rtt,
        "queue": queue,
        "duration": duration,
        "workload": workload,
        "flows": flows,
        "both_ways": both_ways,
        "stagger": stagger,
        "loss": loss,
        "jitter": jitter,
        "up_rate": up_rate,
        "up_medium": up_medium,
        "up_trace": up_trace,
        "up_queue": up_queue,
        "link": link,
        "ecn": ecn,
        "accurate_ecn": accurate_ecn,
        "sysctl": dict(sysctl or {}),
        "gso": gso,
        "seed": seed,
        "repeat": repeat,
        "together": together,
        "change": list(change),
        "programs": dict(programs or {}),
    }
    for name, given in form.items():
        if name == "programs":
            continue  # read from files as text, or refused
        parts = [*given, *given.values()] if isinstance(given, dict) else given
        words = parts if isinstance(parts, list) else [parts] if isinstance(parts, str) else []
        for word in words:
            expect_text("ALGORITHM" if name == "algorithms" else f"--{name.replace('_', '-')}", word)
    refuse_unnamed(programs or {}, algorithms)
    for name, given in {"--medium": medium, "--trace": trace}.items():
        if rate is not None and given is not None:
            raise BadInputError(name, given, "no --rate with it: it carries the bottleneck", "command line")
    try:
        content = json.loads(_core.compare(json.dumps(form)))
    except _core.InputError as error:
        field, value, expected = error.args
        raise BadInputError(option(field), Raw(value) if value else None, expected, "command line") from None
    content.update(engine=engine, engine_options=dict(engine_options or {}), load=list(load))
    return reworded(lambda: Experiment.build(content))


def reworded(build: Callable[[], T]) -> T:
    """Calls `build`; an error about a field names the option instead."""
    try:
        return build()
    except BadInputError as error:
        _, of_algorithm, name = error.field.rpartition(".cc_options.")
        value = f"{name}={error.value}" if of_algorithm and error.value else error.value
        raise BadInputError(option(error.field), Raw(value), error.expected, "command line") from None


def option(field: str) -> str:
    """The option behind a field of the experiment."""
    if field in OPTIONS:
        return OPTIONS[field]
    if field.startswith("engine_options."):
        return f"--engine-option {field.removeprefix('engine_options.')}"
    if field.startswith("flows["):
        return "--flows" if field.endswith("count") else "ALGORITHM"
    if ".sysctl" in field:
        return "--sysctl"
    longest = max((known for known in OPTIONS if field.startswith(known)), key=len, default="")
    return OPTIONS.get(longest, field)
