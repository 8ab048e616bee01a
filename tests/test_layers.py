"""The order of layers in pyproject.toml ([tool.importlinter], docs/explanation/architecture.md) holds, and is one that can fail."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def lint(settings: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", LINT, "--config", str(settings), "--no-cache"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def test_no_import_against_the_order_of_layers_and_no_cycle() -> None:
    ended = lint(ROOT / "pyproject.toml")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_an_import_upwards_would_be_found(tmp_path: Path) -> None:
    settings = (ROOT / "pyproject.toml").read_text()
    turned = settings.replace('"execution", "validation"', '"validation", "execution"')
    assert turned != settings
    (tmp_path / "pyproject.toml").write_text(turned)
    ended = lint(tmp_path / "pyproject.toml")
    assert ended.returncode == 1
    assert "dragstrip.studies.execution is not allowed to import dragstrip.studies.validation" in " ".join(
        ended.stdout.split()
    )


def test_a_class_name_means_one_thing() -> None:
    """A reader who meets `Flow` or `Path` in a signature knows which it is."""
    places: dict[str, list[str]] = {}
    package = ROOT / "python/dragstrip"
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(file.relative_to(package)))
    assert len(places) > 300
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
