"""A Dask.distributed cluster as a place where runs are made; the user starts it in any way.

Each thread of a Dask worker has a worker process (`runs/process.py`) for its runs, so limits and crashes are
handled as on the local machine. Figures return through the scheduler; a shared file system is needed only for
full recordings.

Orders and answers are text and bytes of JSON, checked on arrival (`runs/answer.py`). Dask itself sends Python
objects as pickles, so anybody who reaches its ports can run code.

How to protect the ports: docs/how-to/sweeps.md.
"""

from __future__ import annotations

import json
import logging
import queue
import select
import socket
import threading
import time
from typing import Any

from dragstrip.engines import DEFAULT
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io.untrusted import MIB, expect_file, one_line, printable
from dragstrip.runs.answer import checked, host_of, parsed, refused
from dragstrip.runs.local import Event, LostPlaceError, death, too_long
from dragstrip.runs.process import START_S, Limits, Process
from dragstrip.runs.work import FAILED, OUTPUT_CHARACTERS, TIME_LIMIT, Answer, Order
from dragstrip.studies.sweep.build import version as build_version

CONNECT_S = 15
CENSUS_S = 2.0
"""Seconds after which workers are counted again, because they may come and go."""
POLL_S = 0.2
AHEAD = 4
"""Runs submitted per thread; the scheduler keeps those that wait."""
FETCH_S = 30.0
"""Seconds for fetching an answer that is ready; a worker that died or hangs is asked again until the
deadline."""
GRACE_S = FETCH_S
"""Seconds after a run's time limit (and the worker's start-up time) until its answer is given up. If a worker
dies, Dask gives its run to another one, where its time starts again."""

_MADE_AGAIN = ("lost", "pending")
"""States of a run that had ended, but whose worker died before its answer was fetched."""

_SCHEMES = {"dask": "tcp", "dask+tls": "tls"}
_CERTIFICATES = {
    "tls_ca_file": "DASK_DISTRIBUTED__COMM__TLS__CA_FILE",
    "tls_client_cert": "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT",
    "tls_client_key": "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY",
}
"""Dask's names of the certificates, and the variables that name their files."""
CERTIFICATE_MAX = MIB


class Cluster:
    """Makes runs as tasks of a Dask scheduler.

    Raises `DragstripError` if no scheduler answers, or a worker has another version.
    """

    def __init__(self, address: str, limits: Limits, engine: str = DEFAULT) -> None:
        distributed = _distributed()
        self.address = address
        self.limits = limits
        self.version = build_version(engine)
        self.killed = distributed.scheduler.KilledWorker
        url = _url(address)
        if url.startswith("tls:"):
            _expect_certificates(distributed.Security(), address)
        try:
            _connect_once(url)
            self.client = distributed.Client(url, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:
            reason = one_line(str(error) or type(error).__name__)
            raise DragstripError(f"--on {address}: no Dask scheduler answers there: {reason}") from None
        try:
            self._refuse_others(self._versions(engine))
        except BaseException:
            self.client.close()
            raise
        self.completions: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self.flying: dict[int, tuple[Order, Any]] = {}
        """Submitted runs by number, in the order of submission."""
        self.since: dict[int, tuple[float, str]] = {}
        """Time at which each run that must be running was first seen at its worker, and that worker."""
        self.census_at = 0.0
        self.holders: dict[str, str] = {}
        """The worker of each run by its key, as the scheduler last reported."""
        self.threads = 0
        self.thread_count_at = 0.0
        self.tries = 0

    def describe(self) -> str:
        """Return a description for people: address and number of threads."""
        return f"{self.address}, {self.threads} threads"

    def room(self) -> int:
        """Return the free places: a few runs per thread, none while there is no worker."""
        if time.monotonic() - self.thread_count_at > CENSUS_S:
            self._reachable()
            try:
                self.threads = sum(self.client.ncores().values())
            except (OSError, TimeoutError):
                raise self._scheduler_lost() from None
            self.thread_count_at = time.monotonic()
        return AHEAD * self.threads - len(self.flying)

    def submit(self, order: Order) -> None:
        """Submit a run to the scheduler."""
        self.tries += 1
        future = self.client.submit(
            make,
            order.line(),
            order.engine,
            self.version,
            self.limits.time_s,
            self.limits.memory_bytes,
            key=f"dragstrip-{id(self)}-{order.number}-{self.tries}",
            pure=False,
        )
        self.flying[order.number] = (order, future)
        self._await(order.number, future)

    def _await(self, number: int, future: Any) -> None:
        future.add_done_callback(lambda _future: self.completions.put((number, future)))

    def poll(self, timeout_s: float | None) -> list[Event]:
        """Return the runs that have ended, or that are overdue by more than the grace time."""
        ended: dict[int, Any] = {}
        try:
            ended.update([self.completions.get(timeout=timeout_s)])
            while True:
                ended.update([self.completions.get_nowait()])
        except queue.Empty:
            pass
        if not ended:
            self._reachable()
        good, events = [], []
        for number, future in ended.items():
            if number not in self.flying or self.flying[number][1] is not future:
                continue  # nobody waits for it any more
            status = future.status
            if status in _MADE_AGAIN:
                self._await(number, future)
            elif status == "finished":
                good.append((number, future))
            else:
                events.append(Event(self._landed(number), self._failure(future)))
        for number, answer in self._fetched(good):
            order = self._landed(number)
            events.append(self._event(order, answer))
        return events + self._overdue()

    def _landed(self, number: int) -> Order:
        self.since.pop(number, None)
        return self.flying.pop(number)[0]

    def _fetched(self, good: list[tuple[int, Any]]) -> list[tuple[int, object]]:
        """Return the answers of futures that have one: all at once, or one by one if that fails."""
        futures = [future for _, future in good]
        try:
            answers = self.client.sync(self.client._gather, futures, callback_timeout=FETCH_S)
            return [(number, answer) for (number, _), answer in zip(good, answers, strict=True)]
        except Exception:  # noqa: BLE001 - one of many may raise whatever its worker sent
            self._reachable()
        events = []
        until = time.monotonic() + FETCH_S
        for number, future in good:
            try:
                answer: object = future.result(timeout=max(0.1, until - time.monotonic()))
            except TimeoutError:
                self._await(number, future)
                continue
            except Exception as error:  # noqa: BLE001
                answer = error
            events.append((number, answer))
        return events

    def _event(self, order: Order, result: object) -> Event:
        if isinstance(result, BaseException):
            return Event(order, refused(f"{type(result).__name__}: {result}"))
        try:
            if not isinstance(result, bytes):
                raise BadInputError("", type(result).__name__, "bytes of JSON", "a worker's answer")
            answer = parsed(result)
        except BadInputError as error:
            return Event(order, refused(str(error)))
        if isinstance(answer, dict) and "status" not in answer:  # nothing was run
            if isinstance(version := answer.get("version"), str):
                self._refuse_others({str(answer.get("worker")): version})
            if isinstance(how := answer.get("how"), str):
                return death(order, one_line(how), printable(str(answer.get("output")))[-OUTPUT_CHARACTERS:])
        return Event(order, {**checked(order, answer), "host": host_of(answer)})

    def _failure(self, future: Any) -> Answer:
        if future.status != "error":
            self._reachable()
            raise LostPlaceError(f"--on {self.address}: the scheduler dropped a run ({future.status})")
        try:
            error = future.exception(timeout=FETCH_S)
        except Exception as other:  # noqa: BLE001 - what cannot be unpacked here
            error = other
        if isinstance(error, self.killed):  # Dask has tried it again itself
            return {
                "status": FAILED,
                "reason": one_line(f"the Dask worker it was on died, time after time ({error})"),
            }
        return {"status": FAILED, "reason": one_line(f"{type(error).__name__}: {error}")}

    def _overdue(self) -> list[Event]:
        """Return the runs whose answer is overdue, because their worker hangs or the answer was lost.

        Dask starts runs in the order of submission, so with N threads the oldest N are at work.
        """
        now = time.monotonic()
        allowed = self.limits.time_s + START_S + GRACE_S
        oldest = list(self.flying)[: self.threads]
        if now - self.census_at > CENSUS_S:
            self.census_at, self.holders = now, self._workers_by_run()
        since = {}
        for number in oldest:
            began, worker = self.since.get(number, (now, ""))
            holder = self.holders.get(self.flying[number][1].key, worker)
            since[number] = (began if worker in ("", holder) else now, holder)
        self.since = since
        events = []
        for number in oldest:
            if now - self.since[number][0] > allowed:
                _, future = self.flying[number]
                order = self._landed(number)
                future.cancel(force=True)
                reason = f"no answer came in {allowed:g} s, its time limit is {self.limits.time_s:g} s"
                events.append(Event(order, {"status": TIME_LIMIT, "reason": reason, "wall_s": allowed}))
        return events

    def _workers_by_run(self) -> dict[str, str]:
        """Return the worker of each run by the run's key."""
        try:
            has = self.client.processing()
        except (OSError, TimeoutError):
            return self.holders  # whether the scheduler is gone is looked at elsewhere
        return {str(key): str(worker) for worker, keys in has.items() for key in keys}

    def _reachable(self) -> None:
        if self.client.status != "running":
            raise self._scheduler_lost()

    def _scheduler_lost(self) -> LostPlaceError:
        return LostPlaceError(f"--on {self.address}: the scheduler is gone; no finished run is lost")

    def _versions(self, engine: str) -> dict[str, str]:
        """Return each worker's version."""
        version_query = _census(engine)
        try:
            worker_versions = self.client.sync(
                self.client._run,
                version_query,
                on_error="return",
                callback_timeout=CONNECT_S + START_S,
            )
        except (OSError, TimeoutError) as error:
            reason = one_line(str(error)) or "a worker does not answer"
            raise DragstripError(f"--on {self.address}: {reason}") from None
        return {str(worker): str(version) for worker, version in worker_versions.items()}

    def _refuse_others(self, versions: dict[str, str]) -> None:
        for worker, version in sorted(versions.items()):
            if version != self.version:
                raise DragstripError(
                    f"--on {self.address}: the worker {one_line(worker)} has dragstrip {one_line(version)}, "
                    f"this is {self.version}; install the same version on every worker"
                )

    def close(self) -> None:
        """Cancel what has not run; the cluster itself keeps running."""
        futures = [future for _, future in self.flying.values()]
        if futures and self.client.status == "running":
            self.client.cancel(futures, force=True)
        self.client.close()


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise DragstripError(
            "--on needs the package distributed: pip install distributed, here and on every worker"
        ) from None
    import distributed.scheduler

    # Its client tells of a lost scheduler in lines of its own; we tell in ours.
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return distributed


def _url(address: str) -> str:
    scheme, separator, rest = address.partition("://")
    if separator and scheme in _SCHEMES and ":" in rest:
        return f"{_SCHEMES[scheme]}://{rest}"
    raise BadInputError("--on", address, "dask://HOST:PORT, or dask+tls://HOST:PORT", "command line")


def _expect_certificates(security: Any, address: str) -> None:
    """Raise an error if TLS lacks a certificate, where Dask would retry until its timeout."""
    for name, variable in _CERTIFICATES.items():
        file = getattr(security, name)
        if not file:
            raise DragstripError(
                f"--on {address}: TLS needs the file that {variable} names (docs/how-to/sweeps.md)"
            )
        if "\n" not in file:  # else the certificate itself
            expect_file(file, CERTIFICATE_MAX, f"the certificate of {variable}")


def _connect_once(url: str) -> None:
    """Connect once, so that a refused connection fails at once; Dask would retry until its timeout."""
    host, _, port = url.partition("://")[2].rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S):
        pass


def _census(engine: str) -> Any:
    """Return a function that even a worker without Dragstrip can run.

    Dask sends nested functions by value.
    """

    def version() -> str:
        try:
            from dragstrip.studies.sweep.build import version as theirs
        except ImportError as error:
            return f"none ({error})"
        return theirs(engine)

    return version


# --- on the worker ----------------------------------------------------------------------------

_mine = threading.local()


def make(line: str, engine: str, version: str, time_s: float, memory_bytes: int) -> bytes:
    """Make one run (`Order.line`) in the process of this thread of a Dask worker; return its answer as JSON.

    Errors are returned as text, because not every exception can be pickled.
    """
    try:
        answer = _execute(line, engine, version, Limits(time_s, memory_bytes))
        return json.dumps({**answer, "host": socket.gethostname()}).encode()
    except Exception as error:  # noqa: BLE001
        reason = one_line(f"{type(error).__name__}: {error}")
        return json.dumps({"status": FAILED, "reason": reason}).encode()


def _execute(line: str, engine: str, version: str, limits: Limits) -> Answer:
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
        try:
            answers = child.answers() if ready else []
        except BadInputError as error:
            _mine.child = None
            child.close()
            return refused(str(error))
        if answers is None:
            _mine.child = None
            how, output = child.end()
            if child.ready_at is None:
                how = f"{how} before it could take a run"
            return {"how": how, "output": output}
        if answers:
            return answers[0]
        if child.overdue(since, limits):
            _mine.child = None
            child.close()
            return too_long(limits)
