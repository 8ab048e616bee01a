#!/usr/bin/env python3
"""`make check`: what a change can break, in a minute or two; what takes longer is `make test`'s.

    .ci/check.py [--list]     only say what would run

A file has changed when it differs from the merge base with main ($BASE names another), committed or not. Then
- the crates with a changed file and those that depend on them are linted and tested;
- pytest runs the test files that have changed, that import a changed module, or that import a module which
  imports one, except those that need a browser, a kernel or the machine to themselves;
- after a change of the agent or of an engine, an unprivileged user races in namespaces of this machine;
- of what is no code, the tests that `READERS` names are run.
ALL=1 takes every file as changed. Nothing is installed on the machine.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = os.environ.get("UV", "uv")

EVERY_CRATE = ("Cargo.toml", "Cargo.lock", "clippy.toml", ".cargo/")
PYTHON = ("python/", "tests/", "tools/")
"""Folders of the modules that tests import."""
CORE_TESTS = ("tests/test_core.py", "tests/test_determinism.py", "tests/test_algorithm_table.py")
READERS: dict[str, tuple[str, ...]] = {
    "docs/": ("tests/test_documented.py",),
    "experiments/": ("tests/test_catalogue.py",),
    "programs/": ("tests/test_programs.py",),
    "crates/cc/skeleton.rs.txt": ("tests/test_skeletons.py",),
    "crates/qdisc/skeleton.mod.rs.txt": ("tests/test_skeletons.py",),
    "crates/qdisc/skeleton.spec.rs.txt": ("tests/test_skeletons.py",),
    "bpf/skeleton.bpf.c.txt": ("tests/test_skeletons.py",),
    "pyproject.toml": ("tests/test_dependencies.py", "tests/test_layers.py"),
    "uv.lock": ("tests/test_dependencies.py",),
    "Cargo.lock": ("tests/test_dependencies.py",),
    "python/": ("tests/test_layers.py",),
}
"""What is not imported, and the tests that read it."""
DATA_OF = {"conformance/": "dragstrip-conformance", "experiments/": "dragstrip-experiment"}
"""Folders that the tests of a crate read."""
NAMESPACES = "tests/netns/test_smoke.py"
"""An unprivileged race in namespaces of this machine: the only test here of an engine with a kernel."""
AGENT_SOURCES = ("python/dragstrip/engines/", NAMESPACES)
"""Files outside the agent's crates that the test of namespaces covers."""
LONG = ("tests/vm/", "tests/netns/", "tests/ssh/", "tests/viewer/", "tests/play/", "tests/torture/",
        "tests/sweep/test_cluster.py", "tests/sweep/test_faults.py",
        "tests/test_skeletons_compile.py")  # fmt: skip
"""What only `make test` runs, unless its own file has changed."""


def output(*command: str) -> str:
    """What a program prints; nothing where it fails."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def changed() -> set[str]:
    """The files that differ from main, and new ones."""
    if os.environ.get("ALL"):
        return set(output("git", "ls-files").splitlines())
    base = ""
    for name in (os.environ.get("BASE"), "origin/main", "main"):
        base = base or (name and output("git", "merge-base", "HEAD", name).strip()) or ""
    files = output("git", "diff", "--name-only", base or "HEAD").splitlines()
    return {*files, *output("git", "ls-files", "--others", "--exclude-standard").splitlines()}


def crates(files: set[str]) -> list[str]:
    """The crates that a change reaches."""
    found = json.loads(output("cargo", "metadata", "--no-deps", "--locked", "--format-version", "1"))
    home = {
        one["name"]: Path(one["manifest_path"]).parent.relative_to(ROOT).as_posix()
        for one in found["packages"]
    }
    needs = {one["name"]: {dep["name"] for dep in one["dependencies"]} for one in found["packages"]}
    if any(file.startswith(EVERY_CRATE) for file in files):
        return sorted(home)
    reached = {name for name, place in home.items() if any(file.startswith(f"{place}/") for file in files)}
    reached |= {name for folder, name in DATA_OF.items() if any(file.startswith(folder) for file in files)}
    while more := {name for name in home if needs[name] & reached} - reached:
        reached |= more
    return sorted(reached)


def module(file: str) -> str:
    """The name under which a file is imported: below python/ and tests/ without the folder's name."""
    path = Path(file) if file.endswith(".py") else Path(file).parent  # a template is its package's
    parts = path.with_suffix("").parts
    parts = parts if parts[0] == "tools" else parts[1:]
    return ".".join(parts[:-1] if parts[-1:] == ("__init__",) else parts)


def imports(file: str) -> set[str]:
    """The modules that a file names in its imports, those inside functions too."""
    package = module(file) if file.endswith("/__init__.py") else module(file).rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            name = ".".join([*above, *([node.module] if node.module else [])])
            found |= {name, *(f"{name}.{alias.name}" for alias in node.names)}
    return found


def test_files(files: set[str], core: bool) -> set[str]:
    """The test files that a change reaches."""
    listed = [*output("git", "ls-files", "python/dragstrip", "tests", "tools").splitlines(), *files]
    sources = {file for file in listed if file.startswith(PYTHON) and file.endswith(".py")}
    named = {file: imports(file) for file in sources if (ROOT / file).is_file()}
    tests = {file for file in named if Path(file).name.startswith("test_")}
    own = tests & files
    if os.environ.get("ALL"):
        own, chosen = set(), tests
    else:
        reached = {module(file) for file in files if file.startswith(PYTHON)}
        near = {
            module(file) for file, names in named.items() if not file.startswith("tests/") and names & reached
        }
        chosen = {file for file in tests if named[file] & (reached | near)}
        chosen |= set(CORE_TESTS) if core else set()
        chosen |= {
            test
            for start in READERS
            if any(file.startswith(start) for file in files)
            for test in READERS[start]
        }
        fixtures = {str(Path(file).parent) for file in files if Path(file).name == "conftest.py"} - {"tests"}
        chosen |= {file for file in tests if str(Path(file).parent) in fixtures}
    return {file for file in chosen if not file.startswith(LONG)} | own - {NAMESPACES}


def stages(files: set[str]) -> Iterable[tuple[str, list[str]]]:
    """What is to run: a name and a command each. cargo, ruff and mypy see themselves what is as before."""
    run = [UV, "run", "--no-sync"]
    reached = crates(files)
    if reached:
        workspace = ["--locked", "--quiet", "--workspace", "--all-targets"]
        tested = [word for name in reached if name != "dragstrip-py" for word in ("-p", name)]
        yield "rustfmt", ["cargo", "fmt", "--all", "--check"]
        yield "clippy", ["cargo", "clippy", *workspace, "--", "-D", "warnings"]
        yield "unit tests", ["cargo", "test", "--locked", "--quiet", "--lib", "--bins", "--tests", *tested]
    if reached or any(file.startswith(("docs/", "python/", "tools/")) for file in files):
        yield "generated files", ["cargo", "xtask", "generate", "--check"]
        yield "tidy", ["cargo", "xtask", "tidy"]
    tests = test_files(files, core="dragstrip-py" in reached)
    agent = "dragstrip-agent" in reached or any(file.startswith(AGENT_SOURCES) for file in files)
    python = any(file.endswith(".py") or file == "pyproject.toml" for file in files)
    if tests or python or agent:
        yield "the core", ["make", "--no-print-directory", "core"]
    if python:
        yield "ruff", [*run, "ruff", "check", "."]
        yield "ruff format", [*run, "ruff", "format", "--check", "."]
        yield "mypy", [*run, "mypy"]
    if tests:
        workers = ["-n", "logical", "--maxprocesses", "4", "--durations", "5"]
        yield f"pytest of {len(tests)} files", [*run, "pytest", "--quiet", *workers, *sorted(tests)]
    if agent:
        yield "namespaces", [*run, "pytest", "--quiet", "-n", "0", NAMESPACES]


def main() -> int:
    """0: all passed; 1: something failed, and the rest ran nevertheless."""
    files = changed()
    failed = []
    for name, command in stages(files):
        if "--list" in sys.argv:
            print(f"{name}: {' '.join(command)}")
        elif subprocess.run([".ci/stage", name, *command], cwd=ROOT, check=False).returncode:
            failed.append(name)
    if "--list" in sys.argv:
        return 0
    print(
        f"Failed: {', '.join(failed)}"
        if failed
        else f"No failure ({len(files)} files changed); `make test` runs everything."
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
