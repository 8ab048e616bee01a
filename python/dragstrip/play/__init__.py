"""The playground's file: the page that `make play` builds, with a race in it, and a server of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from dragstrip.errors import BadInputError, DragstripError
from dragstrip.files import write_text
from dragstrip.outside import content as content_of
from dragstrip.outside import text

PAGE = Path(__file__).with_name("page.html")
EMPTY = '<script type="application/json" id="dragstrip-race">null</script>'
"""Stands in the page once; a race takes the place of `null`. The page's policy needs no hash of data."""
PAGE_MAX = 16 << 20
RACE_MAX = 8 << 20
"""Bytes of a race in a page."""
LOOPBACK = "127.0.0.1"

Race = Mapping[str, Any]


def of_form(form: Mapping[str, Any]) -> Race:
    """A race as `compare`'s options describe it: the page can change each."""
    return {"kind": "form", "form": form}


def of_runs(title: str, runs: Sequence[tuple[str, str, str | None]]) -> Race:
    """Runs as they are: name, scenario as JSON text, SHA-256 of the recording where it is known."""
    listed = [{"name": name, "scenario": scenario, "sha256": known} for name, scenario, known in runs]
    return {"kind": "runs", "title": title, "runs": listed}


def page(race: Race | None, version: str) -> str:
    """The whole page with this race; with none it begins with its own.

    Raises `DragstripError` where the page is not built, and `BadInputError` where the race is too large.
    """
    if not PAGE.exists():
        raise DragstripError("the playground's page is not built: make play (docs/play.md)")
    built = text(PAGE, PAGE_MAX, "the playground's page")
    if built.count(EMPTY) != 1:
        raise DragstripError(f"{PAGE}: is of another version: make play (docs/play.md)")
    if race is None:
        return built
    said = json.dumps({"version": version, **race}, ensure_ascii=True).replace("<", "\\u003c")
    if len(said) > RACE_MAX:
        size = f"{len(said) / 1e6:.1f} MB of scenarios"
        raise BadInputError("", size, f"at most {RACE_MAX >> 20} MiB in a page", "command line")
    return built.replace(EMPTY, EMPTY.replace("null", said))


def write(file: Path, content: str) -> None:
    """Writes the page; a file that is none of the playground's is left alone."""
    if file.exists() and not _is_ours(file):
        raise BadInputError("--out", file, "a new file, or an earlier page of the playground", "command line")
    try:
        write_text(file, content)
    except OSError as error:
        raise DragstripError(f"{file}: {error.strerror}") from None


def _is_ours(file: Path) -> bool:
    return file.is_file() and b'id="dragstrip-' in content_of(file, PAGE_MAX, "a page of the playground")


def server(content: str, port: int) -> ThreadingHTTPServer:
    """Serves the page at `/` to this machine alone; port 0: any that is free."""
    found = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', content)
    policy = f"{found[1]}; frame-ancestors 'none'" if found else "default-src 'none'"

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path.split("?")[0] == "/"
            body = content.encode("utf-8", "backslashreplace") if known else b"not here\n"
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8" if known else "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", policy)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: a line per request helps nobody here."""

    try:
        return ThreadingHTTPServer((LOOPBACK, port), Page)
    except OSError as error:
        raise DragstripError(f"--port {port}: {error.strerror}") from None
