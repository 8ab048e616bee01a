"""Stands in for a worker process: does what a scenario's name says, without a simulator."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from dragstrip.pool.child import READY
from dragstrip.pool.work import Order


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
        if name == "refuse":
            answer: dict[str, Any] = {"status": "failed", "reason": "no"}
        else:
            print(json.dumps({"now_ns": 5}), flush=True)
            answer = {"status": "ok", "summary": {"name": name}}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
