"""The description of the distributions in dist/, with absolute links: `python -m tools.description dist/*`.

A package index shows README.md on its own page, where links into the repository lead nowhere. This replaces
the description in the metadata of wheels and source distributions; the files in the repository stay.
"""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import re
import sys
import tarfile
import zipfile
from pathlib import Path

from tools.address import address

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#|mailto:)([^)\s]+)\)")


def absolute(text: str, version: str, repository: str) -> str:
    """Return Markdown whose links into the repository lead to it, at the version's tag."""

    def replaced(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        words = LINK.sub(replaced, words)  # a picture that is a link
        host = "https://raw.githubusercontent.com/{}/v{}/" if picture else "https://github.com/{}/blob/v{}/"
        return f"{picture}[{words}]({host.format(repository, version)}{target})"

    return LINK.sub(replaced, text)


def described(metadata: str) -> str:
    """Return the metadata with its description's links absolute."""
    head, _, body = metadata.partition("\n\n")
    version = re.search(r"^Version: (.+)$", head, re.MULTILINE)
    if version is None or not body.strip():
        sys.exit("the metadata has no version, or no description")
    return f"{head}\n\n{absolute(body, version[1], address())}"


def rewrite_wheel(file: Path) -> None:
    """Replace the description in a wheel's METADATA, and METADATA's line in RECORD."""
    with zipfile.ZipFile(file) as wheel:
        entries = [(entry, wheel.read(entry)) for entry in wheel.infolist()]
    (name,) = [entry.filename for entry, _ in entries if entry.filename.endswith(".dist-info/METADATA")]
    contents = {entry.filename: content for entry, content in entries}
    contents[name] = described(contents[name].decode()).encode()
    record = name.removesuffix("METADATA") + "RECORD"
    rows = list(csv.reader(io.StringIO(contents[record].decode())))
    digest = base64.urlsafe_b64encode(hashlib.sha256(contents[name]).digest()).rstrip(b"=").decode()
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(
        [name, f"sha256={digest}", str(len(contents[name]))] if row[0] == name else row for row in rows
    )
    contents[record] = lines.getvalue().encode()
    draft = file.with_suffix(".draft")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as wheel:
        for entry, _ in entries:
            wheel.writestr(entry, contents[entry.filename])
    draft.replace(file)


def rewrite_sources(file: Path) -> None:
    """Replace the description in a source distribution's PKG-INFO."""
    draft = file.with_suffix(".draft")
    with (
        tarfile.open(file) as sources,
        draft.open("wb") as out,
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as rewritten,
    ):
        for member in sources:
            content = sources.extractfile(member)
            data = content.read() if content else b""
            if member.name.count("/") == 1 and member.name.endswith("/PKG-INFO"):
                data = described(data.decode()).encode()
                member.size = len(data)
            rewritten.addfile(member, io.BytesIO(data) if content else None)
    draft.replace(file)


def main() -> None:
    """Rewrite each distribution that is named."""
    for file in map(Path, sys.argv[1:]):
        if file.suffix == ".whl":
            rewrite_wheel(file)
        elif file.name.endswith(".tar.gz"):
            rewrite_sources(file)
        else:
            sys.exit(f"{file}: expected a wheel or a source distribution")


if __name__ == "__main__":
    main()
