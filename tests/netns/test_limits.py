"""What is called the machine's doing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from dragstrip.engines.agent.limits import limits, services

CHECK = {
    "path": "s1 to d",
    "what": "rate",
    "unit": "bit/s",
    "asked": 1e7,
    "measured": 1e7,
    "least": 0.98e7,
    "most": 1.01e7,
}
WELL = {
    "samples": {"taken": 100, "late": 1, "worst_ns": 11_000_000},
    "softnet": {"dropped": 0, "squeezed": 0},
    "cpu_steal_share": 0.01,
    "cpu_idle_share": 0.3,
    "checks": [CHECK],
}


def queues(share: float, backlog: list[int]) -> pa.Table:
    """A link of 8 Mbit/s, sampled ten times a second, that serves this share of its rate: 1000-byte packets."""
    count = len(backlog)
    sent = [int(at * 100_000 * share) for at in range(count)]
    return pa.table(
        {
            "time_ns": [at * 100_000_000 for at in range(count)],
            "link": ["r-d"] * count,
            "backlog_bytes": backlog,
            "backlog_packets": [one // 1000 for one in backlog],
            "enqueued": [bytes_ // 1000 + one // 1000 for bytes_, one in zip(sent, backlog, strict=True)],
            "sent_bytes": sent,
        }
    )


LINK: dict[str, Any] = {"links": [{"name": "r-d", "rate_bps": 8_000_000, "qdisc": {"kind": "pfifo"}}]}


@pytest.mark.parametrize("share", [0.84, 1.0])
def test_service_is_bytes_over_time_while_packets_wait(share: float) -> None:
    assert services(LINK, queues(share, [20_000] * 50)) == {"r-d": pytest.approx(share, abs=1e-3)}


def test_a_frame_costs_its_overhead_too() -> None:
    link = {"links": [{**LINK["links"][0], "overhead_bytes": 100}]}
    assert services(link, queues(1.0, [20_000] * 50)) == {"r-d": pytest.approx(1.1, abs=1e-2)}


@pytest.mark.parametrize("qdisc", [{"kind": "tc"}, {"kind": "cake", "bandwidth_bps": 4_000_000}])
def test_packets_that_wait_for_a_class_do_not_wait_for_the_line(qdisc: dict[str, Any]) -> None:
    link = {"links": [{**LINK["links"][0], "qdisc": qdisc}]}
    assert services(link, queues(0.5, [20_000] * 50)) == {}


def test_a_rate_that_changes_counts_from_its_time_on() -> None:
    rows = queues(1.0, [20_000] * 50)
    sent = [100_000 * min(at, 20) + 50_000 * max(at - 20, 0) for at in range(50)]
    rows = rows.set_column(rows.column_names.index("sent_bytes"), "sent_bytes", [sent])
    changed = {**LINK, "changes": [{"at_ns": 2_000_000_000, "link": "r-d", "rate_bps": 4_000_000}]}
    assert services(changed, rows) == {"r-d": pytest.approx(1, abs=1e-3)}
    assert services(LINK, rows)["r-d"] < 0.8
    elsewhere = {**LINK, "changes": [{**changed["changes"][0], "link": "d-r"}]}
    assert services(elsewhere, rows) == services(LINK, rows)


def test_a_queue_that_runs_empty_tells_nothing() -> None:
    assert services(LINK, queues(0.2, [0, 20_000] * 25)) == {}
    assert services(LINK, queues(0.2, [0] * 50)) == {}


@pytest.mark.parametrize(
    ("service", "seen", "said"),
    [
        (0.979, {}, "link r-d served 97.9 % of its rate while packets waited"),
        (1.011, {}, "link r-d served 101.1 % of its rate while packets waited"),
        (1.0, {"samples": {**WELL["samples"], "late": 2}}, "2 of 100 samples were late, one by 11 ms"),
        (
            1.0,
            {"softnet": {"dropped": 3, "squeezed": 0}},
            "the kernel dropped 3 packets before any queue saw them",
        ),
        (
            1.0,
            {"checks": [{**CHECK, "measured": 8.4e6}]},
            "s1 to d, before the traffic: rate 8400000 bit/s, not 10000000",
        ),
        (1.0, {"cpu_steal_share": 0.02}, "a hypervisor took 2.0 % of the processors' time"),
        (1.0, {"cpu_idle_share": 0.29}, "the processors were idle for 29 % of the time only"),
    ],
)
def test_each_limit_is_named(service: float, seen: dict[str, Any], said: str) -> None:
    assert limits({"r-d": service}, {**WELL, **seen}) == [said]


def test_a_run_within_all_limits_has_none() -> None:
    assert limits({"r-d": 0.98, "d-r": 1.01}, WELL) == []
