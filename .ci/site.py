"""The documentation as a site (`make site`): the pages of the checkout, gathered for mkdocs.

    python .ci/site.py SOURCE_FOLDER [RELEASED_FOLDER]

RELEASED_FOLDER holds the playground of each release as VERSION.html, as `make play` made it then. The site
keeps them, so that a link made by a version opens with that version's core.

The pages stay where a reader of the sources looks for them. Here they are copied to where the site has them,
and so is every file that they link to; links are rewritten, and one that leads nowhere ends the build.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLAYGROUND = ROOT / "python/dragstrip/playground/page.html"
ABSENT = Path(__file__).with_name("absent.html")
"""The playground in one file, where it has been built."""
PLAYED = "playground/index.html"
"""Where it is in the site."""
PLAYED_ADDRESS = re.findall(r"(?m)^site_url: (\S+)$", (ROOT / "mkdocs.yml").read_text())[0] + PLAYED
"""Its address, as pages name it for a reader of the sources."""
OFFLINE = ROOT / "playground/offline.js"
"""What keeps it in the browser, so that it opens without a network."""
REGISTER = 'navigator.serviceWorker?.register("offline.js");'
POLICY = re.compile(r"""(script-src )([^;"]*;[^"]*worker-src )([^"]*"[^>]*>)""")
GLOSSARY = "../reference/glossary.html"
"""The page of the terms, from the playground, which links its own terms to it."""

VERSION = re.compile(r"\d+\.\d+\.\d+(?:[a-z]+\d+)?")

LINK = re.compile(r"(\]\()([^)\s]+)(\))")
CODE = re.compile(r"(^```.*?^```|``[^`]+``|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
PAGE = ".md"
LISTING = "readme" + PAGE
"""Where a link to a folder leads that has no page: to what is where."""

ELSEWHERE = re.compile(r"[a-z]+:|#")


def place(file: str) -> str:
    """Where the site has a file of the checkout: both relative, with `/`."""
    if file.startswith("docs/"):
        return file.removeprefix("docs/")
    if match := re.fullmatch(r"experiments/([^/]+)/README\.md", file):
        return f"publications/{match[1]}" + PAGE
    if match := re.fullmatch(r"(?:(.+)/)?(?:README|(\w+))\.md", file):
        return (match[1] or match[2] or "readme").lower() + PAGE
    picture = file.endswith((".svg", ".png"))
    return f"files/{file}" if picture else f"files/{file}.txt"  # so that a browser shows it


class Site:
    """What goes into the site: each file once, found by following the links."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.waiting: list[str] = []
        self.made: dict[str, bytes] = {}
        """Place in the site → content."""
        self.broken: list[str] = []

    def add(self, file: str) -> None:
        """Notes a file of the checkout, which is read once."""
        if place(file) not in self.made:
            self.made[place(file)] = b""
            self.waiting.append(file)

    def gather(self) -> None:
        """Reads what is noted, and what that links to."""
        while self.waiting:
            file = self.waiting.pop()
            content = (self.root / file).read_bytes()
            page = file.endswith(".md")
            self.made[place(file)] = self.page(file, content.decode()).encode() if page else content

    def page(self, file: str, text: str) -> str:
        """A page with its links as the site has them; code stays as it is."""
        parts = CODE.split(text)
        parts[::2] = [
            LINK.sub(lambda found: f"{found[1]}{self.target(file, found[2])}{found[3]}", part)
            for part in parts[::2]
        ]
        return "".join(parts)

    def target(self, file: str, link: str) -> str:
        """What a link of a page becomes."""
        if link.startswith(PLAYED_ADDRESS):
            return self.played(file, link)
        if ELSEWHERE.match(link):
            return link
        path, _, anchor = link.partition("#")
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
        if (self.root / wanted).is_dir():
            about = sorted((self.root / "docs").rglob(f"{Path(wanted).name}.md"))
            pages = [f"{wanted}/README.md", *(str(page.relative_to(self.root)) for page in about)]
            wanted = next((page for page in pages if (self.root / page).is_file()), wanted)
        if (self.root / wanted).is_dir():  # of data: named, but not part of the site
            return posixpath.relpath(LISTING, posixpath.dirname(place(file)) or ".")
        if not (self.root / wanted).is_file():
            self.broken.append(f"{file}: {link}")
            return link
        self.add(wanted)
        found = posixpath.relpath(place(wanted), posixpath.dirname(place(file)) or ".")
        return f"{found}#{anchor}" if anchor else found

    @staticmethod
    def played(file: str, link: str) -> str:
        """Return a link to the hosted playground, relative, so that it opens this site's."""
        at = posixpath.relpath(PLAYED, posixpath.dirname(place(file)) or ".")
        return f"{at}{link.removeprefix(PLAYED_ADDRESS)}"


def gathered(root: Path = ROOT) -> Site:
    """The whole site, from its pages on."""
    site = Site(root)
    pages = [
        *(root / "docs").rglob("*.md"),
        *(root / "experiments").glob("*/README.md"),
        root / "CHANGELOG.md",
    ]
    for page in sorted(pages):
        site.add(str(page.relative_to(root)))
    for file in sorted((root / "docs/site").iterdir()):
        site.add(str(file.relative_to(root)))
    site.gather()
    return site


def hosted(page: str, released: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """The playground as it is served: the page, the service worker that it registers, and released pages.

    The page's policy lets in this one line more, and a worker from where the page is. `released` are pages by
    version; each is under its version, and every page names them in its head.
    Raises `ValueError` for a page without such a policy.
    """
    released = released or {}
    folder = posixpath.dirname(PLAYED)
    made = {
        f"{folder}/{version}/index.html": _versions(other, released, "../").encode()
        for version, other in released.items()
    }
    page = page.replace("</title>", f'</title><meta name="dragstrip-glossary" content="{GLOSSARY}">', 1)
    digest = base64.b64encode(hashlib.sha256(REGISTER.encode()).digest()).decode()
    line = rf"\1'sha256-{digest}' \2'self' \3<script>{REGISTER}</script>"
    page, policies = POLICY.subn(line, _versions(page, released, ""), count=1)
    if not policies:
        raise ValueError(f"{PLAYGROUND}: a page without a policy of its own")
    worker = OFFLINE.read_text().replace("@HASH@", hashlib.sha256(page.encode()).hexdigest())
    return {**made, PLAYED: page.encode(), f"{folder}/{OFFLINE.name}": worker.encode()}


def _versions(page: str, released: Mapping[str, str], up: str) -> str:
    """Names the released versions in a page's head, with where they are from there."""
    if not released:
        return page
    names = " ".join(released)
    named = f'<meta name="dragstrip-versions" content="{names}" data-from="{up}">'
    return page.replace("<head>", f"<head>{named}", 1)


def released(folder: Path) -> dict[str, str]:
    """The playground's pages of earlier releases, by version."""
    pages = sorted(folder.glob("*.html"))
    odd = [page.name for page in pages if not VERSION.fullmatch(page.stem)]
    if odd or not pages:
        sys.exit(f"{folder}: expected pages such as 0.1.0.html, got {', '.join(odd) or 'none'}")
    return {page.stem: page.read_text() for page in pages}


def main() -> None:
    """Writes the folder that mkdocs reads."""
    out = Path(sys.argv[1])
    site = gathered()
    if site.broken:
        sys.exit("\n".join(["links that lead nowhere:", *site.broken]))
    shutil.rmtree(out, ignore_errors=True)
    absent = ABSENT.read_bytes()
    kept = released(Path(sys.argv[2])) if len(sys.argv) > 2 else {}
    site.made |= hosted(PLAYGROUND.read_text(), kept) if PLAYGROUND.is_file() else {PLAYED: absent}
    for name, content in site.made.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)


if __name__ == "__main__":
    main()
