"""`run_parallel`: order, callbacks, the first error, and Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from dragstrip.engines import named
from dragstrip.engines.contract import Progress
from dragstrip.runs import run_parallel, worker_count


def test_worker_count() -> None:
    assert worker_count(8, 3) == 3
    assert worker_count(1, 100) == 1
    assert worker_count(None, 100) >= 1


def test_results_come_in_the_order_of_the_items() -> None:
    def work(item: int, _: Progress) -> int:
        time.sleep(0.02 * (5 - item))
        return item

    order: list[int] = []
    assert run_parallel(work, range(5), 5, finished=lambda index, _: order.append(index)) == [0, 1, 2, 3, 4]
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert order != [0, 1, 2, 3, 4]


def test_nothing_to_do() -> None:
    assert run_parallel(lambda item, _: item, []) == []


def test_callbacks_are_called_in_the_calling_thread() -> None:
    events: list[tuple[str, int, bool]] = []

    def note(event: str, index: int) -> None:
        events.append((event, index, threading.current_thread() is threading.main_thread()))

    def work(item: str, progress: Progress) -> str:
        progress(7, 8)
        return item

    run_parallel(
        work,
        ["a", "b"],
        1,
        started=lambda index: note("started", index),
        advanced=lambda index, now_ns, arrived: note(f"advanced {now_ns} {arrived}", index),
        finished=lambda index, result: note(f"finished {result}", index),
    )
    assert events == [
        (event, index, True)
        for index, name in enumerate("ab")
        for event in ("started", "advanced 7 8", f"finished {name}")
    ]


def test_an_error_in_the_middle_ends_what_comes_after_it() -> None:
    begun: list[int] = []

    def work(item: int, progress: Progress) -> int:
        begun.append(item)
        if item == 3:
            raise ValueError(item)
        while item > 3:
            time.sleep(0.001)
            progress(0)
        return item

    finished: list[int] = []
    with pytest.raises(ValueError, match="3"):
        run_parallel(work, range(100), 2, finished=lambda index, _: finished.append(index))
    assert finished == [0, 1, 2]
    assert len(begun) <= 6  # the others never begin
    assert not _threads()


def test_the_error_is_that_of_the_first_item_whichever_fails_first() -> None:
    second_failed = threading.Event()

    def work(item: int, _: Progress) -> None:
        if item == 1:
            second_failed.set()
        else:
            assert second_failed.wait(60)
            time.sleep(0.05)
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        run_parallel(work, range(2), 2)
    assert not _threads()


def test_an_error_of_a_callback_stops_running_simulations() -> None:
    def work(scenario: dict[str, object], progress: Progress) -> object:
        return named("sim").run(scenario, {}, progress)

    def fail(index: int, now_ns: int, _: int) -> None:
        raise RuntimeError(f"{index} at {now_ns}")

    with pytest.raises(RuntimeError, match="at"):
        run_parallel(work, [_hours()] * 4, 2, advanced=fail)
    assert not _threads()


def test_ctrl_c_stops_running_simulations_and_leaves_no_thread() -> None:
    script = textwrap.dedent("""
        import threading
        from test_parallel import _hours, named, run_parallel

        def work(scenario, progress):
            return named("sim").run(scenario, {}, progress)

        try:
            run_parallel(work, [_hours()] * 4, 2, started=lambda index: print("started", index, flush=True))
        except KeyboardInterrupt:
            print("interrupted", threading.active_count(), flush=True)
    """)
    program = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert program.stdout is not None
    assert {program.stdout.readline() for _ in range(2)} == {"started 0\n", "started 1\n"}
    time.sleep(0.3)
    assert program.poll() is None  # the simulations take hours
    program.send_signal(signal.SIGINT)
    rest, _ = program.communicate(timeout=60)
    assert rest == "interrupted 1\n"
    assert program.returncode == 0


def _hours() -> dict[str, object]:
    """Return a scenario that takes hours to simulate."""
    from dragstrip.experiment.comparison import compare
    from dragstrip.experiment.expand import expand

    experiment = compare(["cubic"], rate="1gbit", rtt="20ms", duration="3600s", no_rtts=True)
    return expand(experiment)[0].scenario


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("run-")]
