"""What others wrote and we build with: pinned by hash, from the registries, under licences that deny.toml allows."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from license_expression import LicenseExpression, get_spdx_licensing

ROOT = Path(__file__).parents[1]
ALLOWED = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
PYPI = {"registry": "https://pypi.org/simple"}
SPDX = get_spdx_licensing()

OLD_NAMES = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
}
"""What packages wrote before PEP 639; "BSD" alone is one of those with two or three clauses, both allowed."""

TOOLS_ONLY = {"pathspec": "MPL-2.0"}
"""Of mypy: not shipped, not required at run time."""


def permitted(expression: str) -> bool:
    """Whether a licence expression of SPDX can be met with the allowed ones."""

    def met(node: LicenseExpression) -> bool:
        if node.isliteral:
            return str(node) in ALLOWED
        return (any if node.operator == " OR " else all)(met(part) for part in node.args)

    return met(SPDX.parse(expression.replace("/", " OR "), validate=True))


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR GPL-3.0-only) AND Unicode-3.0", True),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("Apache-2.0 / MIT", True),
    ],
)
def test_a_licence_expression_is_understood(expression: str, fine: bool) -> None:
    assert permitted(expression) is fine


def metadata(folder: Path) -> list[dict[str, Any]]:
    """The crates that this machine compiles, from what cargo has already."""
    host = re.search("host: (.*)", subprocess.check_output(["rustc", "-vV"], text=True))  # noqa: S607
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1"]
    assert host
    ended = subprocess.run(
        [*command, "--filter-platform", host[1]], cwd=folder, capture_output=True, text=True, check=False
    )
    if "--offline" in ended.stderr:
        pytest.skip(f"crates of {folder.name} are not fetched: cargo fetch --locked")
    assert ended.returncode == 0, ended.stderr
    found: list[dict[str, Any]] = json.loads(ended.stdout)["packages"]
    return found


@pytest.mark.parametrize("folder", [".", "fuzz"])
def test_licences_of_the_crates(folder: str) -> None:
    crates = metadata(ROOT / folder)
    assert len(crates) > 10
    assert {
        crate["name"]: crate["license"] for crate in crates if not permitted(crate["license"] or "none")
    } == {}


def licence(package: importlib.metadata.Distribution) -> str:
    """What a package says of its licence: the expression of PEP 639, or the older fields."""
    said = package.metadata.get("License-Expression")
    if said:
        return said
    names = [
        line.split(" :: ")[-1] for line in package.metadata.get_all("Classifier", []) if "License ::" in line
    ]
    name = (names or [(package.metadata.get("License") or "").split("\n")[0]])[0]
    return OLD_NAMES.get(name, name)


def test_licences_of_the_python_packages() -> None:
    locked = {package["name"] for package in lock("uv.lock")} - {"dragstrip"}
    wrong, seen = {}, set()
    for package in importlib.metadata.distributions():
        name = re.sub("[-_.]+", "-", package.name).lower()
        if name not in locked or name in TOOLS_ONLY:
            continue
        seen.add(name)
        said = licence(package)
        try:
            fine = permitted(said)
        except ValueError:  # of license-expression: no licence of SPDX's list
            fine = False
        if not fine:
            wrong[name] = said
    assert wrong == {}
    assert {"numpy", "pyarrow", "pydantic", "rich", "typer"} <= seen


def lock(file: str) -> list[dict[str, Any]]:
    """The packages of a lock file."""
    found: list[dict[str, Any]] = tomllib.loads((ROOT / file).read_text())["package"]
    return found


@pytest.mark.parametrize("file", ["Cargo.lock", "fuzz/Cargo.lock"])
def test_crates_are_of_the_registry_with_a_hash(file: str) -> None:
    ours = {path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml")} | {"bench", "fuzz"}
    for crate in lock(file):
        if "source" in crate:
            assert crate["source"] == CRATES_IO, crate
            assert len(crate["checksum"]) == 64, crate
        else:
            assert crate["name"].removeprefix("dragstrip-") in ours, (
                f"{crate['name']} is of no registry and not ours"
            )


def test_python_packages_are_of_the_registry_with_a_hash() -> None:
    for package in lock("uv.lock"):
        if package["name"] == "dragstrip":
            assert package["source"] == {"editable": "."}
            continue
        assert package["source"] == PYPI, package["name"]
        files = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
        assert files, package["name"]
        assert all(file["hash"].startswith("sha256:") for file in files), package["name"]


def test_what_builds_is_pinned_too() -> None:
    """Uv's own wheels by hash; maturin by uv.lock, which an isolated build would not ask."""
    lines = (ROOT / ".ci/uv.txt").read_text().splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert re.fullmatch(r"uv==[\d.]+ \\", pinned[0])
    assert len(pinned) > 10
    assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in pinned[1:])
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["tool"]["uv"]["no-build-isolation-package"] == ["dragstrip"]
    assert settings["tool"]["maturin"]["locked"] is True
    assert any(package["name"] == "maturin" for package in lock("uv.lock"))


def test_the_bill_of_materials_names_all_and_is_the_same_each_time(tmp_path: Path) -> None:
    if not (os.environ.get("UV") or shutil.which("uv")):
        pytest.skip("uv is not on the PATH: uv run --no-sync pytest")
    made = []
    for name in ("one", "other"):
        command = [sys.executable, str(ROOT / ".ci/sbom.py"), str(tmp_path / name)]
        ended = subprocess.run(
            command,
            env={**os.environ, "CARGO_NET_OFFLINE": "true"},
            capture_output=True,
            text=True,
            check=False,
        )
        if "but --offline was specified" in ended.stderr or "offline mode" in ended.stderr:
            pytest.skip("crates of other platforms are not fetched: cargo fetch --locked")
        assert ended.returncode == 0, ended.stderr
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1]
    document = json.loads(made[0])
    names = {component["purl"] for component in document["components"]}
    for file, name in (("uv.lock", "pypi/numpy"), ("uv.lock", "pypi/duckdb"), ("Cargo.lock", "cargo/pyo3")):
        versions = [package["version"] for package in lock(file) if package["name"] == name.split("/")[1]]
        assert versions
        assert {f"pkg:{name}@{version}" for version in versions} <= names
    assert not any("pytest" in name or "proptest" in name for name in names), "what only tests need"
    references = {component["bom-ref"] for component in document["components"]}
    references.add(document["metadata"]["component"]["bom-ref"])
    for edge in document["dependencies"]:
        assert {edge["ref"], *edge.get("dependsOn", [])} <= references


def test_one_version() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert (
        settings["project"]["version"]
        == tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    )


CARGO = re.compile(
    r'(?:^|[`\s])cargo (?:build|test|run|check|clippy|doc|metadata|install)\b[^`\n]*|"cargo", "(?:build|test|run|check|metadata)"[^\n]*'
)
UV = re.compile(r"(?:^|[`\s])(?:uv|\$\(UV\)) (?:run|sync|export)\b[^`\n]*")


def unlocked(text: str) -> list[str]:
    """Commands that would take other versions than the locked ones."""
    found = [match[0].strip() for match in CARGO.finditer(text) if "--locked" not in match[0]]
    words = ("--locked", "--frozen", "--no-sync")
    return found + [
        match[0].strip() for match in UV.finditer(text) if not any(word in match[0] for word in words)
    ]


def test_cargo_and_uv_run_locked_everywhere() -> None:
    places = [
        ROOT / "Makefile",
        ROOT / "README.md",
        *filter(Path.is_file, (ROOT / ".ci").iterdir()),
        ROOT / ".cargo/config.toml",
    ]
    for folder, endings in (
        ("docs", ["md"]),
        ("bench", ["py", "md", "toml"]),
        ("fuzz", ["py", "md"]),
        ("crates", ["rs"]),
        ("python", ["py"]),
        ("conformance", ["md"]),
        ("validation", ["md"]),
        ("tests", ["md"]),
        ("tools", ["py"]),
    ):
        places += [
            file
            for ending in endings
            for file in (ROOT / folder).rglob(f"*.{ending}")
            if "target" not in file.parts
        ]
    places += [ROOT / "bench/run"]
    assert len(places) > 100
    found = {str(file.relative_to(ROOT)): unlocked(file.read_text()) for file in places}
    assert {file: commands for file, commands in found.items() if commands} == {}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("`cargo test -p x`", 1),
        ("cargo test --locked -p x", 0),
        ('["cargo", "build", "--release"]', 1),
        ("\t$(UV) run dragstrip", 1),
        ("uv run --no-sync pytest", 0),
        ("uv run --locked dragstrip", 0),
        ("cargo xtask tidy", 0),
    ],
)
def test_an_unlocked_command_would_be_found(text: str, count: int) -> None:
    assert len(unlocked(text)) == count
