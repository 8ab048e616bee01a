"""The hostile captures of other projects' test folders, as seeds for the fuzz targets `pcap` and `pcapng`.

    python fuzz/hostile.py [--folder FOLDER]

Fetches Debian's source packages of tcpdump and Wireshark by apt-get (on any Debian; no root is needed, lists
and cache are in a temporary folder) and lays the captures of their test folders into `found/pcap` and
`found/pcapng`, which git ignores: they are not ours to commit. Longer ones than a target takes are cut.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = ("tcpdump", "wireshark")
SOURCES = "deb-src [signed-by={key}] http://deb.debian.org/debian bookworm main\n"
KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"
BYTES_MAX = 16_384
"""As `cargo xtask fuzz` has it."""
PCAPNG = b"\n\r\r\n"
PCAP = (
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\xc3\xd4",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x34\xcd\xb2\xa1",
)


def fetch(folder: Path) -> list[Path]:
    """The archives of the source packages."""
    sources = folder / "sources.list"
    sources.write_text(SOURCES.format(key=KEY), encoding="ascii")
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    options = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "",
    }
    words = [
        "apt-get",
        "-q",
        *(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
    ]
    for command in (["update"], ["source", "--download-only", *PACKAGES]):
        subprocess.run([*words, *command], cwd=folder, check=True, stdout=sys.stderr)  # noqa: S603
    return sorted(set(folder.glob("*.orig.tar.*")) - set(folder.glob("*.asc")))


def captures(archive: Path) -> list[bytes]:
    """What looks like a capture among an archive's files, unpacked if need be."""
    found = []
    with tarfile.open(archive) as files:
        for member in files:
            handle = files.extractfile(member) if member.isfile() and "/test" in member.name else None
            content = b"" if handle is None else handle.read()
            if content.startswith(b"\x1f\x8b"):
                try:
                    content = gzip.decompress(content)
                except (OSError, EOFError, zlib.error):
                    continue
            if content.startswith((PCAPNG, *PCAP)):
                found.append(content)
    return found


def main() -> int:
    """0: the captures are there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=HERE / "found")
    into = parser.parse_args().folder
    count = {"pcap": 0, "pcapng": 0}
    with tempfile.TemporaryDirectory() as scratch:
        for archive in fetch(Path(scratch)):
            for content in captures(archive):
                name = "pcapng" if content.startswith(PCAPNG) else "pcap"
                folder = into / name
                folder.mkdir(parents=True, exist_ok=True)
                (folder / hashlib.sha256(content).hexdigest()[:40]).write_bytes(content[:BYTES_MAX])
                count[name] += 1
    print(", ".join(f"{name}: {number} captures" for name, number in count.items()))
    return 0 if all(count.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
