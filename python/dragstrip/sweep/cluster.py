"""A Dask.distributed cluster as a place where runs are made: the researcher's own, however it was started.

Each thread of a Dask worker has a worker process of ours (`pool/process.py`) for its runs, so limits and
crashes are handled as on the local machine. Figures come back through the scheduler; no file system in
common is needed, except for full recordings.
"""

from __future__ import annotations

import queue
import select
import socket
import threading
import time
from typing import Any

from dragstrip.engines import DEFAULT
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.pool.local import Event, death, too_long
from dragstrip.pool.process import Limits, Process
from dragstrip.pool.work import Order
from dragstrip.sweep.build import version as build_version

CONNECT_S = 15
CENSUS_S = 2.0
"""Workers may come and go: they are counted again after this time."""
POLL_S = 0.2
AHEAD = 4
"""Runs handed out per thread; the scheduler keeps those that wait."""

_MADE_AGAIN = ("lost", "pending")
"""States of a run that had ended, but whose worker died with the answer before it was fetched."""

_SCHEMES = {"dask": "tcp", "dask+tls": "tls"}


class Cluster:
    """Runs as tasks of a Dask scheduler."""

    def __init__(self, address: str, limits: Limits, engine: str = DEFAULT) -> None:
        distributed = _distributed()
        self.address = address
        self.limits = limits
        self.version = build_version(engine)
        self.killed = distributed.scheduler.KilledWorker
        url = _url(address)
        try:
            _knock(url)
            self.client = distributed.Client(url, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise DragstripError(f"--on {address}: no Dask scheduler answers there: {error}") from None
        try:
            self._refuse_others(self.client.run(_census(engine)))
        except BaseException:
            self.client.close()
            raise
        self.done: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.flying: dict[int, tuple[Order, Any]] = {}
        self.threads = 0
        self.counted = 0.0
        self.tries = 0

    def describe(self) -> str:
        """For people."""
        return f"{self.address}, {self.threads} threads"

    def room(self) -> int:
        """A few runs per thread; with no worker there yet, none."""
        if time.monotonic() - self.counted > CENSUS_S:
            self._reachable()
            self.threads = sum(self.client.ncores().values())
            self.counted = time.monotonic()
        return AHEAD * self.threads - len(self.flying)

    def submit(self, order: Order) -> None:
        """Sends a run to the scheduler."""
        self.tries += 1
        future = self.client.submit(
            make,
            order.line(),
            order.engine,
            self.version,
            self.limits,
            key=f"dragstrip-{id(self)}-{order.number}-{self.tries}",
            pure=False,
        )
        self.flying[order.number] = (order, future)
        self._await(order.number, future)

    def _await(self, number: int, future: Any) -> None:
        future.add_done_callback(lambda _future: self.done.put(number))

    def poll(self, timeout_s: float | None) -> list[Event]:
        """What has ended."""
        numbers = []
        try:
            numbers.append(self.done.get(timeout=timeout_s))
            while True:
                numbers.append(self.done.get_nowait())
        except queue.Empty:
            pass
        if not numbers:
            self._reachable()
            return []
        ended, good = [], []
        for number in numbers:
            order, future = self.flying[number]
            status = future.status
            if status in _MADE_AGAIN:
                self._await(number, future)
                continue
            del self.flying[number]
            ended.append((order, future))
            if status == "finished":
                good.append(future)
        answers = dict(zip((future.key for future in good), self.client.gather(good), strict=True))
        return [self._event(order, future, answers.get(future.key)) for order, future in ended]

    def _event(self, order: Order, future: Any, answer: dict[str, Any] | None) -> Event:
        if answer is None:
            return Event(order, self._failure(future))
        if "version" in answer:
            self._refuse_others({answer["worker"]: answer["version"]})
        if "how" in answer:
            return death(order, answer["how"], answer["output"])
        return Event(order, answer)

    def _failure(self, future: Any) -> dict[str, Any]:
        if future.status != "error":
            raise DragstripError(f"--on {self.address}: the scheduler dropped a run ({future.status})")
        error = future.exception()
        if isinstance(error, self.killed):  # Dask has tried it again itself
            reason = f"the Dask worker it was on died, time after time ({error})"
        else:
            reason = f"{type(error).__name__}: {error}"
        return {"status": "failed", "reason": reason}

    def _reachable(self) -> None:
        if self.client.status != "running":
            raise DragstripError(f"--on {self.address}: the scheduler is gone; what was made is kept")

    def _refuse_others(self, versions: dict[str, str]) -> None:
        for worker, version in sorted(versions.items()):
            if version != self.version:
                raise DragstripError(
                    f"--on {self.address}: the worker {worker} has dragstrip {version}, this is "
                    f"{self.version}; install the same version on every worker"
                )

    def close(self) -> None:
        """Takes back what has not run; the cluster itself goes on."""
        futures = [future for _, future in self.flying.values()]
        if futures and self.client.status == "running":
            self.client.cancel(futures, force=True)
        self.client.close()


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise DragstripError(
            "--on needs the package distributed: pip install 'dragstrip[dask]' here and on every worker"
        ) from None
    import distributed.scheduler

    return distributed


def _url(address: str) -> str:
    scheme, separator, rest = address.partition("://")
    if separator and scheme in _SCHEMES and ":" in rest:
        return f"{_SCHEMES[scheme]}://{rest}"
    raise BadInputError("--on", address, "dask://HOST:PORT, or dask+tls://HOST:PORT", "command line")


def _knock(url: str) -> None:
    """Dask tries a refused connection again until its time is up; a person need not wait for that."""
    host, _, port = url.partition("://")[2].rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S):
        pass


def _census(engine: str) -> Any:
    """A question that also a worker without Dragstrip can answer: Dask sends nested functions by value."""

    def version() -> str:
        try:
            from dragstrip.sweep.build import version as theirs
        except ImportError as error:
            return f"none ({error})"
        return theirs(engine)

    return version


# --- on the worker ----------------------------------------------------------------------------

_mine = threading.local()


def make(line: str, engine: str, version: str, limits: Limits) -> dict[str, Any]:
    """One run (`Order.line`), in the worker process of this thread of a Dask worker."""
    if build_version(engine) != version:
        from distributed import get_worker

        return {"version": build_version(engine), "worker": get_worker().address}
    child = getattr(_mine, "child", None)
    if child is None or child.process.poll() is not None:
        child = _mine.child = Process(limits)
    child.send(line)
    since = time.monotonic()
    while True:
        ready, _, _ = select.select([child], [], [], POLL_S)
        if not ready:
            if child.overdue(since, limits):
                _mine.child = None
                child.close()
                return too_long(limits)
            continue
        answers = child.answers()
        if answers is None:
            _mine.child = None
            how, output = child.end()
            if child.ready_at is None:
                how = f"{how} before it could take a run"
            return {"how": how, "output": output}
        if answers:
            answer: dict[str, Any] = answers[0]
            answer["host"] = socket.gethostname()
            return answer
