"""A small recording made by hand, whose figures can be worked out on paper."""

from __future__ import annotations

import signal
from typing import Any

import pyarrow as pa
import pytest

from dragstrip.engines.kernels import kernel
from dragstrip.engines.vm import emulate as vm
from dragstrip.engines.vm import machine as vm_machine
from dragstrip.errors import DragstripError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.model.recording import Recording
from turns import pytest_collection_modifyitems, pytest_runtest_protocol, pytest_xdist_make_scheduler

__all__ = ["pytest_collection_modifyitems", "pytest_runtest_protocol", "pytest_xdist_make_scheduler"]

SECOND = 1_000_000_000

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell's background jobs begin so, and hand it on: no child could be interrupted.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def linux() -> str:
    """The name of a kernel that boots here; tests that need one are skipped, by name, where none does.

    `make test` fetches it beforehand; a test on its own does here what is missing, whichever comes first.
    """
    reason = vm_machine.missing()
    if reason:
        pytest.skip(reason)
    try:
        if not kernel.kernels():
            kernel.fetch()
        vm.prepare()
    except DragstripError as error:
        pytest.skip(str(error))
    return kernel.find_kernel().name


@pytest.fixture
def scenario() -> dict[str, Any]:
    """Two flows of reno together for 10 s, recorded once a second."""
    race = compare(
        ["reno"], rate="10mbit", rtt="40ms", queue="bfifo limit 200kb", duration="10s", flows=2, together=True
    )
    made = expand(race)[0].scenario
    made["record"]["interval_ns"] = SECOND
    return made


@pytest.fixture
def recording(scenario: dict[str, Any]) -> Recording:
    """Flow 0 lives 0–10 s at 1 Mbit/s; flow 1 lives 2–6 s at 3 Mbit/s."""
    alive = {0: range(1, 11), 1: range(3, 7)}
    new_bytes = {0: 125_000, 1: 375_000}
    received = [(t, f) for t in range(1, 11) for f in (0, 1)]
    samples = [(t, f) for f in (0, 1) for t in alive[f]]
    tables = {
        "flows": {
            "flow": [0, 1],
            "label": ["reno-1", "reno-2"],
            "protocol": ["tcp", "tcp"],
            "cc": ["reno", "reno"],
            "sender": ["s1", "s2"],
            "receiver": ["d", "d"],
            "start_ns": [0, 2 * SECOND],
            "stop_ns": [None, 6 * SECOND],
            "bytes_acked": [1_250_000, 1_500_000],
            "bytes_received": [1_250_000, 1_500_000],
            "segments_sent": [900, 1100],
            "retransmits": [3, 0],
            "rto_count": [0, None],
            "reductions": [2, 0],
            "ecn_negotiated": [False, False],
            "datagrams_lost": pa.array([None, None], pa.int64()),
        },
        "samples": {
            "time_ns": [t * SECOND for t, _ in samples],
            "flow": [f for _, f in samples],
            "cwnd_bytes": [14_480 * t for t, _ in samples],
            "rtt_ns": [t * 10_000_000 for t, _ in samples],
            "srtt_ns": [50_000_000 for _ in samples],
            "bytes_in_flight": [1448 for _ in samples],
            "retransmits": [0 for _ in samples],
            "state": ["slow_start" if t <= 4 else "congestion_avoidance" for t, _ in samples],
            "limit": ["pacing" if t <= 3 else "cwnd" for t, _ in samples],
        },
        "received": {
            "time_ns": [t * SECOND for t, _ in received],
            "flow": [f for _, f in received],
            "wire_bytes": [2 * new_bytes[f] if t in alive[f] else 0 for t, f in received],
            "new_bytes": [new_bytes[f] if t in alive[f] else 0 for t, f in received],
        },
        "rtts": {
            "time_ns": [t * SECOND for t in range(1, 6)],
            "flow": [0] * 5,
            "rtt_ns": [t * 1_000_000 for t in (10, 20, 30, 40, 50)],
        },
        "probes": {
            "time_ns": [SECOND, 2 * SECOND, 3 * SECOND],
            "probe": ["d-s1"] * 3,
            "target": ["s1"] * 3,
            "rtt_ns": [41_000_000, None, 43_000_000],
            "lost": [False, True, False],
        },
        "queues": {
            "time_ns": [t * SECOND for t in range(1, 11)] * 2,
            "link": ["r-d"] * 10 + ["d-r"] * 10,
            "backlog_bytes": [1514 * t for t in range(1, 11)] + [0] * 10,
            "backlog_packets": list(range(1, 11)) + [0] * 10,
            "enqueued": [100 * t for t in range(1, 11)] * 2,
            "dropped": [0, 0, 0, 3, 3, 3, 3, 3, 3, 3] + [0] * 10,
            "marked": [0] * 20,
            "sent_bytes": [400_000 * t for t in range(1, 11)] + [0] * 10,
        },
    }
    return Recording(scenario, {name: pa.table(columns) for name, columns in tables.items()}, {"seed": 1})
