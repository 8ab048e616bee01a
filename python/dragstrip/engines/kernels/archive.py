"""Debian's archive through apt: packages of this machine's suites, or of another suite. None is installed.

Another suite has lists of its own in a folder that is deleted again; apt's on this machine stay as they are.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dragstrip.display.progress import ProgressMessages
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import untrusted
from dragstrip.io.files import scratch

TOOLS = ("apt-get", "apt-cache", "dpkg-deb")
SIGNED_ONLY = ("-o", "APT::Get::AllowUnauthenticated=false", "-o", "Acquire::AllowInsecureRepositories=false")
"""Options of apt that require a signed index, whatever apt.conf allows."""
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITE = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True)
class Archive:
    """An archive of Debian packages: one suite, or those that this machine has."""

    options: tuple[str, ...] = ()
    """The options of apt that select its lists."""

    def ask(self, tool: str, *words: str, folder: Path | None = None) -> str:
        """The output of an apt command; raises `DragstripError` if it fails."""
        return _run([tool, *self.options, *words], folder)

    def names(self, beginning: str) -> list[str]:
        """Packages whose names begin so."""
        return self.ask("apt-cache", "pkgnames", beginning).split()

    def needs(self, package: str) -> list[str]:
        """Packages that one depends on."""
        dependencies = self.ask("apt-cache", "depends", "--no-recommends", "--no-suggests", package)
        return re.findall(r"Depends: (\S+)", dependencies)

    def unpack(self, package: str, target: Path, speaker: ProgressMessages) -> str:
        """Downloads a package and unpacks it into a folder; gives its SHA-256, which is the index's."""
        with scratch("package") as folder:
            listed = self.ask("apt-get", "download", "--print-uris", *SIGNED_ONLY, package, folder=folder)
            expected = re.search(r" (\d+) SHA256:([0-9a-f]{64})$", listed.strip())
            if expected is None:
                index_text = listed.strip() or "nothing"
                raise DragstripError(f"{package}: the archive's index gives no SHA-256: {index_text}")
            size = int(expected[1])
            speaker.doing(
                lambda: f"downloading {package}: {_weight(folder) / 1e6:.0f} of {size / 1e6:.0f} MB ..."
            )
            self.ask("apt-get", "download", *SIGNED_ONLY, package, folder=folder)
            files = list(folder.glob("*.deb"))
            if len(files) != 1:
                raise DragstripError(f"apt-get download {package}: {len(files)} packages came")
            digest = hashlib.sha256(untrusted.content(files[0], description="a package")).hexdigest()
            if digest != expected[2]:
                raise DragstripError(
                    f"{package}: its SHA-256 is {digest}, the archive's index has {expected[2]}"
                )
            speaker.doing(lambda: f"unpacking {package} ...")
            _run(["dpkg-deb", "-x", str(files[0]), str(target)])
            return digest


@contextmanager
def opened(suite: str | None, speaker: ProgressMessages) -> Iterator[Archive]:
    """The suites that apt has here, or another one, whose lists are fetched (some 10 MB) and verified.

    Raises `BadInputError` for a suite that the archive does not have, `DragstripError` without apt or
    Debian's keys.
    """
    for tool in TOOLS:
        if shutil.which(tool) is None:
            raise DragstripError(f"`kernel fetch` needs {tool} (Debian); `kernel use PATH` takes any kernel")
    if suite is None:
        yield Archive()
        return
    if not SUITE.fullmatch(suite):
        raise BadInputError("--suite", suite, _SUITES, "command line")
    if not KEYRING.exists():
        raise DragstripError(f"--suite needs {KEYRING} (package debian-archive-keyring)")
    with scratch("suite") as folder:
        speaker.doing(lambda: f"asking apt for {suite} ...")
        yield _of_suite(suite, folder)


_SUITES = "a suite of Debian's archive, such as trixie-backports"


def _of_suite(suite: str, folder: Path) -> Archive:
    source = folder / "sources.list"
    source.write_text(f"deb [signed-by={KEYRING}] {_mirror()} {suite} main\n", encoding="utf-8")
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    settings = {
        "Dir::Etc::sourcelist": source,
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "",
    }
    archive = Archive(tuple(word for key, value in settings.items() for word in ("-o", f"{key}={value}")))
    update = _completed(["apt-get", *archive.options, *SIGNED_ONLY, "-o", "Debug::NoLocking=1", "update"])
    if " 404 " in update.stderr or "does not have a Release file" in update.stderr:
        raise BadInputError("--suite", suite, _SUITES, "command line")
    if update.returncode != 0 or not any((folder / "lists").glob("*Packages*")):
        raise DragstripError(f"apt-get update of {suite}: {update.stderr.strip() or 'no list came'}")
    return archive


def _mirror() -> str:
    """The mirror that this machine gets Debian's own suites from."""
    form = ["--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian", "Label: Debian"]
    mirrors = _run(["apt-get", "indextargets", *form]).split()
    if not mirrors:
        raise DragstripError("--suite: apt has no lists of Debian's archive here; `apt-get update` gets them")
    return mirrors[0]


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    completed = _completed(command, folder)
    if completed.returncode != 0:
        command_text = " ".join(word for word in command if word != "-o" and "::" not in word)
        raise DragstripError(f"{command_text}: {completed.stderr.strip() or completed.returncode}")
    return completed.stdout


def _completed(command: Sequence[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(  # noqa: S603
        command, cwd=folder, capture_output=True, text=True, env=environment, check=False
    )


def _weight(folder: Path) -> int:
    """Bytes of the files that have arrived so far."""
    return sum(file.stat().st_size for file in folder.glob("*.deb*") if file.is_file())
