"""Stands in for a worker process: does what a scenario's name says, without a simulator."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    for line in sys.stdin:
        task = json.loads(line)
        name = task["scenario"]["name"]
        Path(task["folder"]).mkdir(parents=True)
        if name == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if name == "hang":
            (Path(task["folder"]) / "pid").write_text(str(os.getpid()))
            time.sleep(600)
        if name == "refuse":
            answer = {"kind": "failed", "reason": "no"}
        else:
            print(json.dumps({"kind": "progress", "now_ns": 5}), flush=True)
            answer = {"kind": "done", "summary": {"name": name}}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
