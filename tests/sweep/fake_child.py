"""Stands in for a sweep's child process: does what the first flow's label says before it runs anything."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from dragstrip.runs import child, work

real = work.run


def run(order: work.Order, progress: Callable[[int], object] | None) -> dict[str, Any]:
    match json.loads(order.text)["flows"][0]["label"]:
        case "crash":
            print("these were its last words", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGABRT)
        case "hang":
            time.sleep(600)
        case "hungry":
            bytearray(1 << 40)
        case "wrong":
            raise ValueError("this cannot be")
    return real(order, progress)


if __name__ == "__main__":
    work.run = run
    child.main()
