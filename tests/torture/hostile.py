"""Answers of workers and files that are random and hostile: refused in one line or taken, nothing written outside.

A trial is one of: an answer changed in a few places at random, which must be taken as a failure of its own run or
be harmless; a document of a run or a sweep changed likewise; something odd in place of a file; an odd name.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from common import EXPERIMENT, check_answer, dragstrip, main, written

from dragstrip.studies.sweep.claim import description_sum

ODD: list[Any] = [
    *(None, True, -1, 2**31, 2**63, 10**40, 1e308, float("nan"), float("inf"), "", "zz", "\x1b[2J", "[/a]"),
    *(
        "\ud800",
        "x" * 20_000,
        "\u202e",
        "../../outside",
        "/etc/passwd",
        "a\nb\r\nc",
        [],
        [[]],
        {},
        {"key": "zz"},
    ),
]
DOCUMENTS = ("result.json", "experiment.json", "scenario.json", "provenance.json", "sweep.json")


def changed(value: Any, draws: random.Random) -> Any:
    """The same with one place of it exchanged, removed or doubled."""
    if isinstance(value, dict) and value and draws.random() < 0.9:
        key = draws.choice(sorted(value))
        made = dict(value)
        match draws.randrange(8):
            case 0:
                del made[key]
            case 1:
                made[str(draws.choice(ODD))] = made.pop(key)
            case _:
                made[key] = changed(value[key], draws)
        return made
    if isinstance(value, list) and value and draws.random() < 0.9:
        place = draws.randrange(len(value))
        made_list = list(value)
        if draws.randrange(8) == 0:
            made_list.append(made_list[place])
        else:
            made_list[place] = changed(value[place], draws)
        return made_list
    return draws.choice(ODD)


@cache
def outputs() -> Path:
    """A folder with the outputs of a run and of a sweep."""
    folder = Path(tempfile.mkdtemp(prefix="dragstrip-hostile-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "e.toml").write_text(EXPERIMENT)
    for words in (
        ("run", "e.toml", "--out", "run", "--no-report"),
        ("sweep", "e.toml", "--vary", "flow.cc=reno,cubic", "--out", "sweep", "--no-report"),
    ):
        check_answer(dragstrip(folder, *words), 0)
    return folder


@cache
def honest() -> tuple[str, dict[str, Any]]:
    """A scenario, and a worker's answer."""
    from dragstrip.runs.work import Order, perform

    text = json.dumps(json.loads(next(outputs().rglob("run/**/scenario.json")).read_text()))
    return text, perform(Order(0, text))


def answers(draws: random.Random, _folder: Path) -> str:
    """Two hundred answers; each is checked and stored beside an honest one."""
    from dragstrip.errors import BadInputError
    from dragstrip.runs.answer import checked, parsed
    from dragstrip.runs.work import OK, Order
    from dragstrip.studies.sweep.figures import figures
    from dragstrip.studies.sweep.store import SCHEMA, result_rows

    text, answer = honest()
    order = Order(0, text)
    for _ in range(200):
        sent: Any = answer
        for _ in range(draws.randint(1, 4)):
            sent = changed(sent, draws)
        line = json.dumps(sent)
        if draws.random() < 0.1:
            line = line[: draws.randrange(len(line))]
        try:
            taken = checked(order, parsed(line))
        except BadInputError:
            continue
        if taken["status"] == OK:
            taken.update(figures(taken.pop("summary")))
        rows = result_rows(b"k" * 32, text, 7, "sim", "1", taken)
        table = pa.Table.from_pylist(rows, schema=SCHEMA)
        for name, own in (("key", (b"k" * 32).hex()), ("seed", 7), ("engine", "sim"), ("version", "1")):
            assert set(table[name].to_pylist()) == {own}, f"{name} of an answer: {line[:500]}"
        reason = taken.get("reason", "")
        assert len(reason) < 2100, f"a reason of {len(reason)} characters"
        assert reason.isprintable(), f"a reason that a terminal obeys: {reason!r}"
    return "answers"


def documents(draws: random.Random, folder: Path) -> str:
    """A document of an output is changed; its report is written, or refused."""
    kind = draws.choice(["run", "run", "run", "sweep"])
    shutil.copytree(outputs() / kind, folder / "out")
    for sums in (folder / "out").rglob("SHA256SUMS"):
        sums.unlink()  # who writes a hostile document writes its sums too
    files = sorted(file for name in DOCUMENTS for file in (folder / "out").rglob(name))
    file = draws.choice(files)
    content = json.loads(file.read_text())
    for _ in range(draws.randint(1, 3)):
        content = changed(content, draws)
    if isinstance(content, dict) and content.pop("sha256", None) is not None:  # of sweep.json
        with suppress(UnicodeEncodeError):
            content["sha256"] = description_sum(content)
    file.write_text(json.dumps(content))
    ended = dragstrip(folder, "report", "out", limit_s=60)
    check_answer(ended, 0, 1, 2)  # 1: damaged
    return f"{file.name}: {'refused' if ended.status else 'taken'}"


def files(draws: random.Random, folder: Path) -> str:
    """Something odd lies where a file is expected."""
    shutil.copytree(outputs() / "run", folder / "out")
    kept = sorted(file for file in (folder / "out").rglob("*") if file.is_file())
    file = draws.choice(kept)
    file.unlink()
    odd: dict[str, Callable[[], object]] = {
        "a pipe": lambda: os.mkfifo(file),
        "a folder": file.mkdir,
        "a device": lambda: file.symlink_to("/dev/zero"),
        "itself": lambda: file.symlink_to(file),
        "nothing": lambda: None,
        "zeros": lambda: file.write_bytes(bytes(10_000)),
        "huge": lambda: (file.touch(), os.truncate(file, 1 << 40)),
    }
    what = draws.choice(sorted(odd))
    odd[what]()
    check_answer(dragstrip(folder, "report", "out", limit_s=60), 0, 1, 2)
    return what


def names(draws: random.Random, folder: Path) -> str:
    """An experiment with odd names is shown and run."""
    odd = "".join(
        draws.choice(["\x1b[31m", "[/a]", "[red]", "\u202e", "é", "/", "..", "'", " ", "\x9b"])
        for _ in range(4)
    )
    label = json.dumps(odd)
    (folder / "e.toml").write_text(EXPERIMENT.replace('cc = "cubic"', f'cc = "cubic"\nlabel = {label}'))
    for words in (("show", "e.toml"), ("run", "e.toml", "--out", "out"), ("report", "out")):
        ended = dragstrip(folder, *words, limit_s=60)
        check_answer(ended, 0, 2)
        assert not set(ended.stdout + ended.stderr) & set("\x1b\x9b\u202e"), f"a terminal obeys: {ended}"
    return "names"


def trial(number: int, folder: Path) -> str:
    """Number's kind, in a folder beside which nothing may change."""
    draws = random.Random(number)
    work, beside = folder / "work", folder / "beside"
    work.mkdir()
    beside.mkdir()
    (beside / "kept").write_text("kept")
    before = written(beside)
    said = (answers, documents, files, names)[number % 4](draws, work)
    assert written(beside) == before, "something was written outside"
    assert sorted(place.name for place in folder.iterdir()) == ["beside", "work"], "something lies outside"
    return said


if __name__ == "__main__":
    main("hostile", trial, count=400, sample=4, about=__doc__)
