"""Conformance scripts on the simulator's endpoint and on a stock kernel (`conformance/README.md`)."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dragstrip.display.terminal import hanging
from dragstrip.engines import DEFAULT, named
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import untrusted

FOLDER = Path(__file__).resolve().parents[4] / "conformance"
NEEDS = re.compile(r"^[ \t]*needs[ \t]+([^#\n]+)", re.MULTILINE)
GAP = re.compile(r"^[ \t]*known[ \t]+gap[ \t]+([^#\n]+)", re.MULTILINE)


@dataclass(frozen=True)
class Failure:
    """An expectation of a script that was not met; line 0 stands for what belongs to no line."""

    line: int
    expected: str
    got: str


@dataclass(frozen=True)
class ScriptResult:
    """The result of a script on one stack."""

    script: str
    engine: str
    verdict: str
    """One of pass, fail, known gap, gap closed (passed although the script declares a gap), or not here."""
    checks: int
    known_gap: str | None = None
    """Why the script fails or is not played."""
    failures: list[Failure] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    """Segments that the endpoint sent, one line each, up to the first failure on the wire."""

    @property
    def fine(self) -> bool:
        """True when nothing needs to be done about it."""
        return self.verdict in ("pass", "known gap", "not here")


def scripts(selection: list[str] | None = None) -> dict[str, str]:
    """Return scripts by name: all of the project's, or those that `selection` lists.

    An entry of `selection` is a name, with or without its ending, or a file. Raises `BadInputError` for an
    unknown one, and `DragstripError` outside a checkout.
    """
    files = {file.name: file for file in sorted(FOLDER.glob("*.script"))}
    if not selection:
        if not files:
            raise DragstripError("there are no scripts here: `conformance/` is part of the sources only")
        return {name: _read(file) for name, file in files.items()}
    texts = {}
    for name in selection:
        file = files.get(name) or files.get(f"{name}.script") or Path(name)
        if not file.exists():
            raise BadInputError("SCRIPT", name, "a script in conformance/, or a file")
        texts[file.name] = _read(file)
    return texts


def _read(file: Path) -> str:
    return untrusted.text(file, untrusted.SCRIPT_MAX, "a conformance script")


def play(texts: dict[str, str], engine: str) -> list[ScriptResult]:
    """Play scripts; one that needs what the engine lacks gets the verdict `not here`.

    Raises `BadInputError` for a script that cannot be read, and if none can be played.
    """
    played = named(DEFAULT).play(texts)  # a script that cannot be read is reported before a machine starts
    lacking = named(engine).lacks()
    beyond = {
        name: lacking[need]
        for name, text in texts.items()
        for need in [" ".join(words.split()) for words in NEEDS.findall(text)]
        if need in lacking
    }
    if beyond and len(beyond) == len(texts):
        name, why = next(iter(beyond.items()))
        raise BadInputError("SCRIPT", name, f"a script that needs nothing which is missing here: {why}")
    if engine != DEFAULT:
        played = named(engine).play({name: text for name, text in texts.items() if name not in beyond})
    judged = [_judged(texts[entry["name"]], entry, engine) for entry in played]
    return [*judged, *(ScriptResult(name, engine, "not here", 0, why) for name, why in beyond.items())]


def _judged(text: str, entry: dict[str, Any], engine: str) -> ScriptResult:
    failures = [Failure(**failure) for failure in entry["failures"]]
    gap_line = GAP.search(text)
    gap = gap_line.group(1).strip() if gap_line and named(engine).model else None
    failed, passed = ("known gap", "gap closed") if gap else ("fail", "pass")
    verdict = failed if failures else passed
    return ScriptResult(entry["name"], engine, verdict, entry["checks"], gap, failures, entry["sent"])


def document(played: list[ScriptResult]) -> dict[str, Any]:
    """Return the results as one JSON document."""
    counts: dict[str, dict[str, int]] = {}
    for result in played:
        of_engine = counts.setdefault(result.engine, {})
        of_engine[result.verdict] = of_engine.get(result.verdict, 0) + 1
    return {"counts": counts, "scripts": [asdict(result) for result in played]}


def table(played: list[ScriptResult], *, segments: bool = False) -> str:
    """Return the failures with their lines, then one line per engine, as text for people.

    With `segments`, what the endpoint sent comes before them.
    """
    lines = []
    for result in played:
        if segments:
            lines += [f"{result.script} on {result.engine}:", *(f"  {segment}" for segment in result.sent)]
        if result.verdict == "pass":
            continue
        lines.append(
            f"{result.script} on {result.engine}: {result.verdict}"
            + (f": {result.known_gap}" if result.known_gap else "")
        )
        for failure in result.failures:
            lines += [f"  line {failure.line}: {failure.expected}", f"    got {failure.got}"]
    for engine, counts in document(played)["counts"].items():
        tally = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        lines.append(f"{engine}: {sum(counts.values())} scripts: {tally}")
    return "\n".join(hanging(line, len(line) - len(line.lstrip()) + 4) for line in lines)
