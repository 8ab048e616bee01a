"""Conformance scripts on the simulator's endpoint and on a stock kernel (`conformance/README.md`)."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dragstrip import outside
from dragstrip.engines import DEFAULT, named
from dragstrip.errors import BadInputError, DragstripError

FOLDER = Path(__file__).resolve().parents[2] / "conformance"
NEEDS = re.compile(r"^[ \t]*needs[ \t]+accurate[ \t]+ecn\b", re.MULTILINE)
GAP = re.compile(r"^[ \t]*known[ \t]+gap[ \t]+([^#\n]+)", re.MULTILINE)


@dataclass(frozen=True)
class Failure:
    """A line that was not as it should be; line 0 is what is not a line of its own."""

    line: int
    expected: str
    got: str


@dataclass(frozen=True)
class Played:
    """What came of a script on one stack."""

    script: str
    engine: str
    verdict: str
    """pass, fail, known gap, gap closed (as written, though the script says that it is not), or not here."""
    checks: int
    known_gap: str | None = None
    """Why it is not as written, or not played."""
    failures: list[Failure] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    """What left the endpoint, a line each, up to the first failure on the wire."""

    @property
    def fine(self) -> bool:
        """Nothing to do about it."""
        return self.verdict in ("pass", "known gap", "not here")


def scripts(named: list[str] | None = None) -> dict[str, str]:
    """Text by name: all of the project's, or those named (a name, with or without its ending, or a file)."""
    known = {file.name: file for file in sorted(FOLDER.glob("*.script"))}
    if not named:
        if not known:
            raise DragstripError("there are no scripts here: `conformance/` is part of the sources only")
        return {name: _read(file) for name, file in known.items()}
    chosen = {}
    for name in named:
        file = known.get(name) or known.get(f"{name}.script") or Path(name)
        if not file.exists():
            raise BadInputError("SCRIPT", name, "a script in conformance/, or a file")
        chosen[file.name] = _read(file)
    return chosen


def _read(file: Path) -> str:
    return outside.text(file, outside.SCRIPT_MAX, "a conformance script")


def play(texts: dict[str, str], engine: str) -> list[Played]:
    """Plays scripts; one that needs what the engine has not is left out.

    Raises `BadInputError` for a script that cannot be read, and where nothing is left to play.
    """
    played = named(DEFAULT).play(texts)  # a script that cannot be read is reported before a machine starts
    missing = named(engine).without_accurate_ecn()
    beyond = [name for name, text in texts.items() if missing and NEEDS.search(text)]
    if missing and len(beyond) == len(texts):
        raise BadInputError("SCRIPT", beyond[0], f"a script without accurate ECN: {missing}")
    if engine != DEFAULT:
        played = named(engine).play({name: text for name, text in texts.items() if name not in beyond})
    judged = [_judged(texts[entry["name"]], entry, engine) for entry in played]
    return [*judged, *(Played(name, engine, "not here", 0, missing) for name in beyond)]


def _judged(text: str, entry: dict[str, Any], engine: str) -> Played:
    failures = [Failure(**failure) for failure in entry["failures"]]
    found = GAP.search(text)
    gap = found.group(1).strip() if found and named(engine).model else None
    failed, passed = ("known gap", "gap closed") if gap else ("fail", "pass")
    verdict = failed if failures else passed
    return Played(entry["name"], engine, verdict, entry["checks"], gap, failures, entry["sent"])


def document(played: list[Played]) -> dict[str, Any]:
    """One JSON document."""
    counts: dict[str, dict[str, int]] = {}
    for one in played:
        of_engine = counts.setdefault(one.engine, {})
        of_engine[one.verdict] = of_engine.get(one.verdict, 0) + 1
    return {"counts": counts, "scripts": [asdict(one) for one in played]}


def table(played: list[Played], *, trace: bool = False) -> str:
    """For people: failures with their lines, what was sent if asked for (`trace`), then a line per engine."""
    lines = []
    for one in played:
        if trace:
            lines += [f"{one.script} on {one.engine}:", *(f"  {sent}" for sent in one.sent)]
        if one.verdict == "pass":
            continue
        lines.append(
            f"{one.script} on {one.engine}: {one.verdict}" + (f": {one.known_gap}" if one.known_gap else "")
        )
        for failure in one.failures:
            lines += [f"  line {failure.line}: {failure.expected}", f"    got {failure.got}"]
    for engine, counts in document(played)["counts"].items():
        said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        lines.append(f"{engine}: {sum(counts.values())} scripts: {said}")
    return "\n".join(lines)
