"""Flows of QUIC in results: what limits them, and what the reasons advise."""

from __future__ import annotations

import dragstrip

PATH = {"rate": "100mbit", "rtt": "100ms", "queue": "bfifo limit 1mb", "duration": "10s"}


def test_a_stream_s_window_is_the_limit_and_the_advice_is_the_stack_s() -> None:
    result = dragstrip.race("noq/cubic:streams=1", **PATH)
    (flow,) = result.flows
    assert flow.limited_s["rwnd"] > 7
    (reason,) = (reason for run in result.runs for reason in run.why if reason.rule == "receive_window")
    assert "try more `streams`, or a larger `stream_window`" in reason.sentence
    assert "tcp_rmem" not in reason.sentence


def test_four_streams_are_limited_by_the_window() -> None:
    (flow,) = dragstrip.race("noq/cubic", **PATH).flows
    assert flow.limited_s["cwnd"] > 9
