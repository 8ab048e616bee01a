"""The playground as a site has it: kept by the browser, and there without a network."""

from __future__ import annotations

import runpy
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dragstrip.display import glossary
from viewer.browser import Browser, program

from .test_page import PAGE, settled

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no page of the playground: make play")

SITE = runpy.run_path(str(Path(__file__).parents[2] / ".ci/site.py"))
KINDS = {".html": "text/html; charset=utf-8", ".js": "text/javascript"}
NAMES = "caches.keys()"
KEPT = """navigator.serviceWorker.ready.then(() => caches.keys()).then(
    (names) => Promise.all(names.map((name) => caches.open(name).then((kept) => kept.keys()))))
    .then((all) => all.map((kept) => kept.length))"""


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    chromium = program()
    if chromium is None:
        pytest.skip("no Chromium: apt-get install chromium")
    browser = Browser(chromium, tmp_path / "profile")
    yield browser
    browser.close()


class Served:
    """A site on loopback, until it is taken away."""

    def __init__(self, made: Mapping[str, bytes]) -> None:
        self.made = dict(made)
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.split("?")[0].strip("/")
                name = name if name in site.made else f"{name}/index.html"
                body = site.made.get(name)
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", KINDS.get(Path(name).suffix, "text/plain"))
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/playground/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self) -> None:
        """Nobody answers any more."""
        self.server.shutdown()
        self.server.server_close()


def test_it_opens_without_a_network_after_the_first_time(browser: Browser) -> None:
    site = Served(SITE["hosted"](PAGE.read_text()))
    page = browser.page(site.url)
    first = settled(page)
    assert page.value(KEPT) == [2], "the page by both of its addresses"
    assert page.complaints() == []
    page.close()
    site.end()
    page = browser.page(site.url)
    assert settled(page) == first
    assert page.complaints() == []
    page.close()
    page = browser.page(f"{site.url}other.html")
    assert page.value("document.querySelector('#hash')") is None, "what is not kept is not there"
    page.close()


def test_a_term_leads_to_the_sites_glossary(browser: Browser) -> None:
    site = Served(SITE["hosted"](PAGE.read_text()))
    page = browser.page(site.url)
    settled(page)
    links = page.value(
        "[...document.querySelectorAll('.explanation a')].map((it) => it.getAttribute('href'))"
    )
    anchors = {f'<a id="{term.anchor}"></a>' for term in glossary.terms().values()}
    assert len(links) > 3
    for link in links:
        file, _, anchor = link.partition("#")
        assert file == "../reference/glossary.html"
        assert f'<a id="{anchor}"></a>' in anchors
    page.close()
    site.end()


def test_another_page_takes_the_place_of_the_one_that_is_kept(browser: Browser) -> None:
    old, new = (SITE["hosted"](PAGE.read_text().replace("<head>", f"<head><!-- {it} -->")) for it in "ab")
    assert old["playground/offline.js"] != new["playground/offline.js"]
    site = Served(old)
    page = browser.page(site.url)
    page.wait_for(lambda: page.value(KEPT) == [2])
    comment = "document.head.firstChild.textContent.trim()"
    assert page.value(comment) == "a"
    names = page.value(NAMES)
    site.made = new
    page.value("navigator.serviceWorker.getRegistration().then((it) => it.update())")
    page.wait_for(lambda: len(now := page.value(NAMES)) == 1 and now != names)
    page.close()
    page = browser.page(site.url)
    page.wait_for(lambda: page.value(comment) == "b")
    assert page.value(KEPT) == [2]
    page.close()
    site.end()


def test_a_link_opens_with_the_version_that_made_it(browser: Browser) -> None:
    """The page of a release stays under its version; a link whose recording differs leads there."""
    now = PAGE.read_text()
    site = Served(SITE["hosted"](now, {"0.0.1": now}))
    race = "#1&cc=cubic&rate=5mbit&rtt=20ms&queue=fq_codel&duration=1s"
    anchor = "document.querySelector('.banner a')"
    there = "location.pathname.endsWith('/0.0.1/') && !!document.querySelector('#hash')"
    for version, leads in (("0.0.1", f"{site.url}0.0.1/"), ("0.0.2", None)):
        page = browser.page(f"{site.url}{race}&v={version}&h=00000000")
        page.wait_for(lambda page=page: page.value("document.querySelector('.banner')?.textContent"))
        said = page.value("document.querySelector('.banner').textContent")
        assert f"made by version {version} with recording 00000000" in said
        found = page.value(f"{anchor} && {anchor}.href")
        assert (found and found.split("#")[0]) == leads
        if leads:
            page.value(f"{anchor}.click()")
            page.wait_for(lambda page=page: page.value(there))
            assert settled(page)
            assert "cc=cubic" in page.value("location.hash")
        page.close()
    site.end()


def test_a_page_without_a_policy_is_not_served() -> None:
    with pytest.raises(ValueError, match="without a policy"):
        SITE["hosted"]("<!doctype html><head></head>")
