"""What stands before the program: site, citation, changelog, container file, release."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tools import address, description

ROOT = Path(__file__).parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_builder", ROOT / ".ci/site.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_link_of_the_site_leads_somewhere(builder: ModuleType) -> None:
    site = builder.gathered()
    assert site.broken == []
    pages = {name for name in site.made if name.endswith(".md")}
    assert len(pages) > 40
    named = set(re.findall(r"[\w/.-]+\.md\b", (ROOT / "mkdocs.yml").read_text()))
    assert named == pages, "the navigation has each page, and no other"
    others = re.findall(r"^ +- .*: ([\w/.-]+)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert {name for name in others if "/" in name and not name.endswith(".md")} == {builder.PLAYED}


def test_the_navigation_titles_a_decision_as_its_page_does() -> None:
    entries = re.findall(
        r'^ +- "(\d+\. .*)": (decisions/\S+)$', (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    assert len(entries) == len(list((ROOT / "docs/decisions").glob("*.md")))
    for title, page in entries:
        assert (ROOT / "docs" / page).read_text().splitlines()[0] == f"# {title}"


def test_a_broken_link_would_be_found(builder: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    text = "[a](no.md) `[b](code.md)` [c](b.md#d)\n```\n[e](block.md)\n```\n"
    (tmp_path / "docs/a.md").write_text(text)
    (tmp_path / "docs/b.md").write_text("# B\n")
    site = builder.Site(tmp_path)
    site.add("docs/a.md")
    site.gather()
    assert site.broken == ["docs/a.md: no.md"]
    assert set(site.made) == {"a.md", "b.md"}
    assert "[c](b.md#d)" in site.made["a.md"].decode()


def test_the_citation_is_complete_and_of_this_version() -> None:
    """The fields that CFF 1.2.0 requires, and our version and licence."""
    text = (ROOT / "CITATION.cff").read_text()
    fields = dict(re.findall(r"^([a-z-]+): *(.*)$", text, re.MULTILINE))
    assert {"cff-version", "message", "title", "authors"} <= set(fields)
    assert (fields["cff-version"], fields["version"], fields["license"]) == ("1.2.0", VERSION, "MIT")
    assert re.search(r"^authors:\n  - name: \S", text, re.MULTILINE)


def test_the_changelog_has_what_is_not_released_first() -> None:
    sections = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert len(sections) == len(set(sections))


def test_the_crates_that_are_useful_alone_say_what_they_are_and_are_not_published() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    assert workspace["package"]["publish"] is False
    (names,) = re.findall(r"^CRATES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for name in names.split():
        folder = ROOT / "crates" / name
        crate = tomllib.loads((folder / "Cargo.toml").read_text())
        package = crate["package"]
        assert 20 < len(package["description"]) < 120
        assert 1 <= len(package["keywords"]) <= 5
        for field in ("version", "license", "repository", "rust-version", "publish"):
            assert package[field] == {"workspace": True}
        assert (folder / "src/lib.rs").read_text().startswith("//! ")
        ours = [key for key in crate["dependencies"] if key.startswith("dragstrip-")]
        assert all(workspace["dependencies"][key]["version"] == VERSION for key in ours)
        assert {key.removeprefix("dragstrip-") for key in ours} < set(names.split()), (
            "all it needs is packaged"
        )


def test_the_container_runs_as_nobody_in_particular_with_packages_by_hash() -> None:
    text = (ROOT / "Containerfile").read_text()
    last = text.split("\nFROM ")[-1]
    assert "\nUSER dragstrip\n" in last
    assert last.index("USER") < last.index("ENTRYPOINT")
    installs = re.findall(r"pip install .*", text)
    assert len(installs) == 3
    assert all("--require-hashes" in line or "--no-deps /dist/*.whl" in line for line in installs)


def workflow() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    return found


def test_only_the_publishing_job_of_a_release_may_sign() -> None:
    jobs = workflow()["jobs"]
    assert workflow()["permissions"] == {"contents": "read"}
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    assert jobs["publish"]["permissions"]["id-token"] == "write"
    assert {"wheels", "sources", "test"} <= set(jobs["publish"]["needs"])
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text()


def test_a_release_builds_for_each_system_and_tests_what_it_built() -> None:
    jobs = workflow()["jobs"]
    built = {row["name"]: row for row in jobs["wheels"]["strategy"]["matrix"]["include"]}
    for system, target in (("manylinux", "linux-gnu"), ("musllinux", "linux-musl")):
        for machine in ("x86_64", "aarch64"):
            assert built[f"{system}-{machine}"]["target"] == f"{machine}-unknown-{target}"
    tested = {row["name"] for row in jobs["test"]["strategy"]["matrix"]["include"]}
    published = {name for name, row in built.items() if row.get("prefix") != "untested"}
    assert published == tested, "what nobody has run is not published"
    (download,) = [
        step["with"]["pattern"] for step in jobs["publish"]["steps"] if "pattern" in step.get("with", {})
    ]
    assert download == "dist-*"
    assert {name for name, row in built.items() if "ubuntu" not in row["os"]} <= set(built) - published


def test_a_wheel_has_the_files_that_are_built_and_not_committed() -> None:
    """The playground and the baselines, in `make wheel` and in the release."""
    include = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]["include"]
    built = {
        Path(entry["path"]) for entry in include if entry["format"] == "wheel" and "*" not in entry["path"]
    }
    (needs,) = re.findall(r"^wheel: (.*?)  ##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert "play" in needs.split()
    jobs = workflow()["jobs"]
    downloads = [
        step["with"] for step in jobs["wheels"]["steps"] if "download-artifact" in step.get("uses", "")
    ]
    assert {Path(download["path"]) for download in downloads} == {file.parent for file in built}
    for download in downloads:
        (upload,) = [
            step["with"]
            for step in jobs[download["name"]]["steps"]
            if "upload-artifact" in step.get("uses", "")
        ]
        assert Path(upload["path"]).name in {file.name for file in built}
        assert download["name"] in jobs["wheels"]["needs"]


def test_a_release_builds_with_the_oldest_python_and_the_locked_tools() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    jobs = workflow()["jobs"]
    for name in ("wheels", "sources"):
        steps = jobs[name]["steps"]
        (python,) = [
            step["with"]["python-version"] for step in steps if "setup-python" in step.get("uses", "")
        ]
        assert settings["project"]["requires-python"] == f">={python}"
        runs = [step["run"] for step in steps if "run" in step]
        assert any("--only-group wheel" in run for run in runs)
        assert all("--require-hashes" in run for run in runs if "pip install" in run)
    assert "wheel" in settings["dependency-groups"]


TEXT = {".md", ".py", ".rs", ".ts", ".tsx", ".js", ".html", ".toml", ".yml", ".json", ".ipynb"}


def test_one_command_writes_the_address_into_every_file_that_names_it() -> None:
    old = address.address()
    folders = ("docs", "tools", "crates", "python", "playground/src", ".github", "experiments")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in TEXT]
    files += [file for file in ROOT.iterdir() if file.is_file()]
    texts = {str(file.relative_to(ROOT)): file.read_text(errors="ignore") for file in files}
    names = re.compile(
        rf"github\.com/{re.escape(old)}\b|{re.escape(address.pages(old))}|uses: {re.escape(old)}@"
    )
    assert {name for name, text in texts.items() if names.search(text)} == set(address.FILES)
    for name in address.FILES:
        text = address.moved(texts[name], old, "example/lab")
        assert not names.search(text)
        assert old not in text, f"{name} names the repository in a way that tools/address.py does not know"


def test_the_description_of_a_distribution_has_absolute_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "dragstrip-1.2.3.dist-info/METADATA"
    body = "Metadata-Version: 2.4\nName: dragstrip\nVersion: 1.2.3\n\n![a](docs/a.png) [b](docs/b.md#c) [d](#d) [e](https://e)\n"
    file = tmp_path / "dragstrip-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr("dragstrip/__init__.py", "")
        wheel.writestr(name, body)
        wheel.writestr("dragstrip-1.2.3.dist-info/RECORD", f"dragstrip/__init__.py,,\n{name},sha256=x,1\n")
    monkeypatch.setattr(sys, "argv", ["description.py", str(file)])
    description.main()
    with zipfile.ZipFile(file) as wheel:
        text = wheel.read(name).decode()
        record = wheel.read("dragstrip-1.2.3.dist-info/RECORD").decode()
    repository = address.address()
    assert f"![a](https://raw.githubusercontent.com/{repository}/v1.2.3/docs/a.png)" in text
    assert f"[b](https://github.com/{repository}/blob/v1.2.3/docs/b.md#c) [d](#d) [e](https://e)" in text
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    assert f"{name},sha256={digest},{len(text.encode())}" in record


def test_the_readme_has_no_link_that_an_index_cannot_follow() -> None:
    text = description.absolute((ROOT / "README.md").read_text(), VERSION, "a/b")
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(targets) > 40
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []


def test_a_tag_that_is_no_version_of_ours_is_refused() -> None:
    ended = subprocess.run(
        [sys.executable, str(ROOT / ".ci/release-version"), "v99.0.0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert f"pyproject.toml: {VERSION}, but the tag is v99.0.0" in ended.stderr
    assert "CITATION.cff" in ended.stderr


@pytest.mark.parametrize(("heading", "status"), [("unreleased", 1), ("2026-12-01", 0)])
def test_a_tag_needs_a_dated_section_of_the_changelog(tmp_path: Path, heading: str, status: int) -> None:
    for name in ("pyproject.toml", "Cargo.toml", "CITATION.cff"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / ".ci").mkdir()
    program = tmp_path / ".ci/release-version"
    program.write_text((ROOT / ".ci/release-version").read_text())
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## [Unreleased]\n\n## [{VERSION}] - {heading}\n")
    words = [sys.executable, str(program), f"v{VERSION}"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == status
    assert ("no version with a date" in ended.stderr) is (status == 1)


PUBLISHED = False
"""Whether an index of packages has a release; until then no text may recommend to install it from there."""
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "python").rglob("*.py"))]


@pytest.mark.skipif(PUBLISHED, reason="an index has it")
def test_no_text_recommends_an_installation_that_cannot_work() -> None:
    wrong = re.compile(r"pip install (?:-\S+ )*['\"]?dragstrip(?![-\w]*[*\w.]*\.whl)")
    assert wrong.search("pip install 'dragstrip[dask]'")
    assert not wrong.search("pip install dragstrip-*.whl")
    assert [str(file.relative_to(ROOT)) for file in TEXTS if wrong.search(file.read_text())] == []


def test_the_program_of_a_clone_runs_from_any_folder(tmp_path: Path) -> None:
    """The README's `./dragstrip`; its first call builds what is missing, which a test does not repeat."""
    done = subprocess.run(
        [ROOT / "dragstrip", "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"dragstrip {VERSION}\n"), done.stderr


def test_the_program_alone_prints_its_help() -> None:
    done = subprocess.run([ROOT / "dragstrip"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: dragstrip")
    assert "compare" in done.stdout
