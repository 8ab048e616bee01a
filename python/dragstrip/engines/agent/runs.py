"""One run by the agent: the request, and the recording that its answer becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragstrip.engines.agent import bpf
from dragstrip.engines.agent.answers import Answer, RunStart, recording_of
from dragstrip.engines.agent.bpf import Loadable
from dragstrip.engines.agent.packets import Packets
from dragstrip.engines.contract import Json
from dragstrip.errors import BadInputError
from dragstrip.model.recording import Recording


def run_by_agent(
    engine: str,
    scenario: Json,
    ask: Callable[[Json, bytes], Answer],
    kernel: Json,
    engine_facts: Mapping[str, Any] | None = None,
    *,
    load: Sequence[Loadable] = (),
    packets: Packets | None = None,
    words: Mapping[str, Any] | None = None,
    attached: bytes = b"",
) -> Recording:
    """The recording of one run, with `load` in the kernel meanwhile; `packets` are written too.

    `ask` hands the agent a request and the bytes behind it; `words` are what the request says beside the
    scenario, `attached` the bytes behind those of `load`. `kernel` and `engine_facts` become part of the
    provenance (`recording_of`). Raises what `ask` does; a `BadInputError` about a loaded program names its
    source.
    """
    start = RunStart()
    captured = {} if packets is None else {"capture": packets.request()}
    request, behind = bpf.request(scenario, load, **(words or {}), **captured)
    try:
        answer = ask(request, behind + attached)
    except BadInputError as error:
        raise bpf.at_source(error, load) from None
    facts = {**(engine_facts or {}), "loaded": {loadable.name: loadable.digest for loadable in load}}
    if packets is not None:
        facts |= packets.write(answer)
    return recording_of(engine, scenario, answer, start, kernel, facts)
