"""One bit of a stored file is flipped: of a sweep, of a run, of a kept recording, of a frozen machine.

What is made of it afterwards is what was made before, or the damage is named and nothing is made of it: a
dataset or report that differs without a word is a failure.
"""

from __future__ import annotations

import functools
import hashlib
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

from common import EXPERIMENT, check_answer, dragstrip, main, written

EXPERIMENT_FILE = "path.toml"
SWEEP = (
    "sweep",
    EXPERIMENT_FILE,
    "--vary",
    "path.rtt=10ms,20ms",
    "--vary",
    "flow.cc=reno,cubic",
    "--repeat",
    "2",
)
RUN = ("run", EXPERIMENT_FILE)


@functools.cache
def reference() -> Path:
    """A folder with a sweep and a run, whose reports were written by `report`; made once."""
    folder = Path(tempfile.mkdtemp(prefix="dragstrip-torture-"))
    import atexit

    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / EXPERIMENT_FILE).write_text(EXPERIMENT)
    for words in (SWEEP, RUN):
        check_answer(dragstrip(folder, *words, "--out", words[0]), 0)
        check_answer(dragstrip(folder, "report", words[0]), 0)
    return folder


def flip(file: Path, draws: random.Random) -> None:
    """Flips one bit."""
    content = bytearray(file.read_bytes())
    bit = draws.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)


def damaged(kind: str, folder: Path, draws: random.Random) -> Path:
    """A copy of the reference with a flipped bit; gives the file."""
    shutil.copytree(reference(), folder, dirs_exist_ok=True)
    files = [file for file in sorted((folder / kind).rglob("*")) if file.is_file() and file.stat().st_size]
    file = draws.choice(files)
    flip(file, draws)
    return file


def digest(folder: Path) -> str:
    """Of a sweep's dataset."""
    return hashlib.sha256((folder / "dataset" / "sweep.parquet").read_bytes()).hexdigest()


def swept(folder: Path, draws: random.Random) -> str:
    """The same sweep again makes the same dataset, and the next one finds everything done."""
    damaged("sweep", folder, draws)
    ended = dragstrip(folder, *SWEEP, "--out", "sweep")
    check_answer(ended, 0)
    assert digest(folder / "sweep") == digest(reference() / "sweep"), "the dataset differs"
    again = dragstrip(folder, *SWEEP, "--out", "sweep", "--json")
    check_answer(again, 0)
    assert '"made": 0' in again.stdout, "what was made again is not kept"
    assert "damaged" not in again.stderr, f"named twice: {again.stderr}"
    return "made again" if "damaged" in ended.stderr else "identical"


def reported(kind: str, folder: Path, draws: random.Random) -> str:
    """A report is the same to the byte, or refused by name, and then nothing has changed."""
    file = damaged(kind, folder, draws)
    before = written(folder / kind)
    ended = dragstrip(folder, "report", kind)
    check_answer(ended, 0, 1)
    if ended.status:
        named = str(file.relative_to(folder))
        assert "damaged" in ended.error, f"not named as damaged: {ended}"
        assert named in ended.error or file.name == "SHA256SUMS", f"{named} is not named: {ended}"
        now = {name: content for name, content in written(folder / kind).items() if ".lock" not in name}
        known = {name: content for name, content in before.items() if ".lock" not in name}
        assert now == known, "something was written"
        return "refused"
    if kind == "sweep":
        assert digest(folder / "sweep") == digest(reference() / "sweep"), "the dataset differs"
    page = (folder / kind / "report.html").read_bytes()
    assert page == (reference() / kind / "report.html").read_bytes(), f"the report differs: {file}"
    return "identical"


def recalled(folder: Path, draws: random.Random) -> str:
    """A kept recording of a slow engine is made again, and named."""
    from dragstrip.engines.contract import Engine
    from dragstrip.engines.recall import recall
    from dragstrip.model.recording import read

    made = read(next((reference() / "run" / "runs").iterdir()))

    class Slow(Engine):
        name, about, slow = "slow", "gives one recording", True

        def algorithms(self, options: Any) -> list[str]:
            return []

        def build(self, options: Any) -> str:
            return "one"

        def run(self, scenario: Any, options: Any, progress: Any = None) -> Any:
            return type(made)(scenario, made.tables, dict(made.provenance))

        def play(self, scripts: Any) -> list[Any]:
            return []

    os.environ["DRAGSTRIP_CACHE"] = str(folder)
    recall(Slow(), made.scenario, {})
    (kept,) = (folder / "recordings").iterdir()
    flip(draws.choice(sorted(kept.iterdir())), draws)
    said: list[str] = []
    again = recall(Slow(), made.scenario, {}, say=said.append)
    for name, table in made.tables.items():
        assert again[name].equals(table), f"the table {name} differs"
    assert {**again.provenance} == {**made.provenance}, "the provenance differs"
    assert len(said) == 1, f"named {len(said)} times"
    assert str(kept) in said[0]
    return "made again"


def frozen(folder: Path, draws: random.Random) -> str:
    """A frozen machine is not resumed."""
    from dragstrip.engines.vm import snapshot_sums
    from dragstrip.io.files import DamagedError

    with (folder / "ram").open("wb") as ram:
        ram.truncate(64 << 20)
        for _ in range(20):
            ram.seek(draws.randrange(60 << 20))
            ram.write(draws.randbytes(draws.randrange(1, 200_000)))
    (folder / "state").write_bytes(draws.randbytes(100_000))
    snapshot_sums.write(folder)
    assert snapshot_sums.check(folder)
    name = draws.choice(["ram", "state", snapshot_sums.SUMS])
    with (folder / name).open("r+b") as file:
        at = draws.randrange((folder / name).stat().st_size)
        file.seek(at)
        was = file.read(1)[0]
        file.seek(at)
        file.write(bytes([was ^ 1 << draws.randrange(8)]))
    try:
        snapshot_sums.check(folder)
    except DamagedError:
        return "refused"
    # White space of a JSON document may be another white space.
    assert name == snapshot_sums.SUMS, f"{name} passes, bit of byte {at}"
    return "identical"


def trial(number: int, folder: Path) -> str:
    """Number's kind of file, with its bit."""
    draws = random.Random(number)
    match number % 5:
        case 0 | 1:
            return swept(folder, draws)
        case 2:
            return reported("sweep" if number % 2 else "run", folder, draws)
        case 3:
            return recalled(folder, draws)
        case _:
            return frozen(folder, draws)


if __name__ == "__main__":
    main("bit_flips", trial, count=1000, sample=5, about=__doc__)
