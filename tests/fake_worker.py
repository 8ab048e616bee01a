"""Stands in for a worker process: does what a scenario's name says, without a simulator."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from dragstrip.runs.child import READY
from dragstrip.runs.work import Order

FLOW: dict[str, Any] = {
    **dict.fromkeys(("flow", "start_s", "stop_s", "bytes_received", "goodput_bps"), 0),
    **dict.fromkeys(("retransmits", "segments_sent", "reductions"), 0),
    **dict.fromkeys(("throughput_bps_p50", "share", "timeouts", "bottleneck", "queueing_ms", "loss_link")),
    "label": "x",
    "cc": "x",
    "rtt_ms": {"p5": 1, "p50": 1, "p95": 1},
    "limited_s": {},
    "state_s": {},
}
SUMMARY: dict[str, Any] = {
    "duration_s": 1.0,
    "jain": None,
    "flows": [],
    "competing": [],
    "probes": [],
    "queues": [],
    "why": [],
}
ODD = {
    "garbage": "no answer",
    "a list": "[1]",
    "no status": "{}",
    "unknown status": json.dumps({"status": "fine"}),
    "no summary": json.dumps({"status": "ok"}),
    "a number as hash": json.dumps({"status": "ok", "summary": SUMMARY, "sha256": 5}),
    "a flow too many": json.dumps(
        {"status": "ok", "summary": {**SUMMARY, "flows": [FLOW]}, "sha256": "0" * 64}
    ),
    "not a number": json.dumps({"status": "ok", "summary": {**SUMMARY, "jain": float("nan")}}),
    "nested": '{"status":' + "[" * 2000 + "]" * 2000 + "}",
    "a long reason": json.dumps({"status": "failed", "reason": "\u001b[31m\n" * 100_000}),
}
"""What a worker might write that is no answer."""


def main() -> None:
    print(json.dumps(READY), flush=True)
    for line in sys.stdin:
        order = Order.read(line)
        name, folder = json.loads(order.text)["name"], Path(order.folder)
        folder.mkdir(parents=True)
        if name == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if name == "hang":
            (folder / "pid").write_text(str(os.getpid()))
            time.sleep(600)
        if name in ODD:
            print(ODD[name], flush=True)
            continue
        if name == "refuse":
            answer: dict[str, Any] = {"status": "failed", "reason": "no"}
        else:
            print(json.dumps({"now_ns": 5, "arrived_bytes": 0}), flush=True)
            answer = {"status": "ok", "summary": {**SUMMARY, "name": name}, "sha256": "0" * 64}
        if name == "notes":
            answer["notes"] = ["note: first", *("\u001b[31m\n" + "x" * 10_000 for _ in range(50))]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
