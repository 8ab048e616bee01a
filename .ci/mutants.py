#!/usr/bin/env python3
"""`make mutants`: changes single expressions of the code and reports which of these mutants the tests notice.

    .ci/mutants.py [--only LANGUAGE] [--number N] [--seed S] [--module PATH]

Both languages by default, 200 mutants of each, seed 1. A sample is the same for the same sources and seed.
- Rust: cargo-mutants on the core crates. Each mutant meets the tests of its crate and of `DRIVERS`:
  those of sim have the golden recording and the digests.
- Python: cosmic-ray on python/dragstrip, or the file or folder PATH, in a copy of the checkout. Each
  mutant meets the test files that `make check` chooses for its module.

A mutant that does not compile is left out; one that runs into the time limit counts as noticed.
`make test` has more tests than either: a mutant that is listed as not noticed may still fail there.
Exit status 1 where a share is below `LEAST`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "python/dragstrip"
TOOLS = ROOT / ".tools/mutants"
LEAST = {"rust": 90, "python": 75}
"""Percentage of a sample that the tests are to notice."""
CRATES = ("units", "packet", "cc", "qdisc", "link", "tcp", "recording", "scenario", "experiment", "measures",
          "capture", "inspect", "conformance", "player", "sim")  # fmt: skip
DRIVERS = ("dragstrip-sim", "dragstrip-conformance")
"""Packages whose tests drive the other crates."""
LIMIT_S = 3600
"""A mutant's tests may take this long, in seconds: longer than those of any module take without a mutant."""
NOTICED = ("caught", "timeout")


def main() -> int:
    """Return 0 where each share is large enough, otherwise 1."""
    parser = argparse.ArgumentParser(prog=".ci/mutants.py")
    parser.add_argument("--only", choices=list(LEAST), help="both languages by default")
    parser.add_argument("--number", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--module", default=PACKAGE, metavar="PATH", help="of Python")
    options = parser.parse_args()
    shares = {}
    if options.only != "python":
        shares["rust"] = report("rust", *rust(options.number, options.seed))
    if options.only != "rust":
        shares["python"] = report("python", *python(options.number, options.seed, options.module))
    return int(any(share < LEAST[language] for language, share in shares.items()))


def report(language: str, noticed: int, missed: list[str]) -> float:
    """Print the share of noticed mutants and the list of the others; return the share in percent."""
    total = noticed + len(missed)
    share = 100 * noticed / total if total else 0.0
    print(f"{language}: {noticed} of {total} mutants noticed ({share:.0f} %; at least {LEAST[language]} %)")
    for mutant in missed:
        print(f"  not noticed: {mutant}")
    return share


def rust(number: int, seed: int) -> tuple[int, list[str]]:
    """The number of noticed mutants of a sample of the core crates, and the names of the others."""
    mutants = cargo_mutants("--list", *(word for crate in CRATES for word in ("-p", f"dragstrip-{crate}")))
    names = sorted(mutants.stdout.splitlines())
    sample = random.Random(seed).sample(names, min(number, len(names)))  # noqa: S311 - a sample
    crates: dict[str, list[str]] = {}
    for name in sample:
        crates.setdefault(name.split("/")[1], []).append(name)
    noticed, missed = 0, []
    for crate, chosen in sorted(crates.items()):
        with tempfile.TemporaryDirectory() as folder:
            tested = ",".join(dict.fromkeys([f"dragstrip-{crate}", *DRIVERS]))
            patterns = [word for name in chosen for word in ("--re", f"^{escaped(name)}$")]
            cargo_mutants("-p", f"dragstrip-{crate}", "--test-package", tested, "--output", folder,
                          "--timeout", str(LIMIT_S), *patterns)  # fmt: skip
            outcomes = Path(folder) / "mutants.out"
            noticed += sum(len((outcomes / f"{it}.txt").read_text().splitlines()) for it in NOTICED)
            missed += (outcomes / "missed.txt").read_text().splitlines()
    return noticed, sorted(missed)


def cargo_mutants(*words: str) -> subprocess.CompletedProcess[str]:
    """Run cargo-mutants; raises `SystemExit` unless it tried its mutants (0: all caught, 2 or 3: not all)."""
    program = TOOLS / "rust/bin/cargo-mutants"
    command = [program, "mutants", "--colors", "never", "--no-shuffle", *words]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 2, 3):
        raise SystemExit(f"cargo mutants ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended


def escaped(text: str) -> str:
    """The text as a regular expression of Rust's regex crate."""
    return re.sub(r"([\\.+*?()|\[\]{}^$#&~-])", r"\\\1", text)


def python(number: int, seed: int, module: str) -> tuple[int, list[str]]:
    """The number of noticed mutants of a sample of the package, and the changes of the others."""
    with checkout() as place:
        session = place / "session.sqlite"
        config = place / "mutants.toml"
        tests = f"{sys.executable} {place / '.ci/mutants_tests.py'}"
        config.write_text(
            "[cosmic-ray]\n"
            f'module-path = "{module}"\ntimeout = {LIMIT_S}\nexcluded-modules = []\n'
            f'test-command = "{tests}"\n[cosmic-ray.distributor]\nname = "local"\n'
        )
        cosmic_ray(place, "init", config, session)
        keep_sample(session, number, seed)
        cosmic_ray(place, "exec", config, session)
        return results(session)


@contextlib.contextmanager
def checkout() -> Iterator[Path]:
    """A clone of the checkout with its uncommitted changes, committed, and with the compiled core."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "checkout"
        output("git", "clone", "--quiet", "--shared", str(ROOT), str(place))
        edited = output("git", "diff", "--name-only", "HEAD").splitlines()
        for name in [*edited, *output("git", "ls-files", "--others", "--exclude-standard").splitlines()]:
            (place / name).unlink(missing_ok=True)
            if (ROOT / name).exists():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, place / name)
        git = ["git", "-C", str(place), "-c", "user.name=mutants", "-c", "user.email=mutants@localhost"]
        subprocess.run([*git, "add", "--all"], check=True)
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "base"], check=True)
        shutil.copy2(ROOT / PACKAGE / "_core.abi3.so", place / PACKAGE)
        yield place


def keep_sample(session: Path, number: int, seed: int) -> None:
    """Leave a random sample of the mutants in cosmic-ray's session."""
    with contextlib.closing(sqlite3.connect(session)) as database:
        rows = database.execute(
            "SELECT job_id FROM mutation_specs ORDER BY module_path, start_pos_row, start_pos_col, "
            "operator_name, operator_args, occurrence"
        ).fetchall()
        sample = random.Random(seed).sample(rows, min(number, len(rows)))  # noqa: S311 - a sample
        database.execute("CREATE TEMPORARY TABLE sample (job_id TEXT PRIMARY KEY)")
        database.executemany("INSERT INTO sample VALUES (?)", sample)
        for table in ("mutation_specs", "work_items"):
            database.execute(f"DELETE FROM {table} WHERE job_id NOT IN (SELECT job_id FROM sample)")  # noqa: S608
        database.commit()


def results(session: Path) -> tuple[int, list[str]]:
    """The number of noticed mutants of a finished session, and the changes of the others."""
    with contextlib.closing(sqlite3.connect(session)) as database:
        rows = database.execute(
            "SELECT module_path, start_pos_row, test_outcome, diff FROM mutation_specs "
            "JOIN work_results USING (job_id) ORDER BY module_path, start_pos_row"
        ).fetchall()
    noticed = sum(outcome == "KILLED" for _, _, outcome, _ in rows)
    missed = [row for row in rows if row[2] == "SURVIVED"]
    return noticed, [f"{file}:{line}: {changed(diff)}" for file, line, _, diff in missed]


def changed(diff: str) -> str:
    """The changed lines of a diff in one line."""
    lines = [line for line in diff.splitlines() if line[:1] in ("-", "+") and line[:3] not in ("---", "+++")]
    return "  ->  ".join(line[1:].strip() for line in lines)


def cosmic_ray(place: Path, *words: object) -> None:
    """Run cosmic-ray in the copy of the checkout, whose package its tests import."""
    command = [str(TOOLS / "python" / "bin" / "cosmic-ray"), *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(place / "python")}
    subprocess.run(command, cwd=place, env=environment, check=True)


def output(*command: str) -> str:
    """The output of a program in the checkout."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
