"""Every HTML page is a template on one frame: escaped, with a policy that names its style and script by hash."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import jinja2
import pytest

from dragstrip.display import html
from dragstrip.display.table import Cell, Table, text_table
from dragstrip.report import viewer

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "dragstrip"
FRAME = "display/templates/base.html"
TEMPLATES = sorted(
    str(file.relative_to(PACKAGE))
    for file in PACKAGE.rglob("*.html")
    if file.name != "macros.html" and file.parent.name != "playground"
)
HOSTILE = "<script>alert(1)</script> \"'&"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_document_type_stands_in_the_frame_alone() -> None:
    modules = [
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        if "doctype" in file.read_text().lower() or "</html>" in file.read_text()
    ]
    assert modules == ["interop/guess.py"], "which recognises web pages"
    assert [name for name in TEMPLATES if "<!doctype" in (PACKAGE / name).read_text()] == [FRAME]


def test_no_module_escapes_by_hand() -> None:
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text()
        assert not re.search(r"html\.escape|from html import|^import html$", text, re.M), file


@pytest.mark.parametrize("name", [name for name in TEMPLATES if name != FRAME])
def test_a_page_extends_the_frame(name: str) -> None:
    text = (PACKAGE / name).read_text()
    parents = re.findall(r"{% extends \"(.+?)\" %}", text)
    if parents:
        assert parents[0] in (FRAME, "report/figures.html")
    else:
        assert "<head" not in text, "a part of a page"
    assert "|safe" not in text


@pytest.mark.parametrize("script", [(), viewer.COPYING])
def test_a_page_escapes_and_its_policy_names_its_own_style_and_script(script: tuple[str, ...]) -> None:
    cell = {"anchor": HOSTILE, "settings": HOSTILE, "lines": [([HOSTILE], HOSTILE)]}
    page = html.render(
        "studies/sweep/cells.html",
        title=HOSTILE,
        style=".a{color:red}",
        script=viewer.script(script) if script else "",
        cells=[cell],
    )
    (style,) = re.findall("<style>(.*)</style>", page, re.S)
    scripts = re.findall('<script type="module">(.*)</script>', page, re.S)
    (policy,) = re.findall('Content-Security-Policy" content="(.*?)">', page)
    assert len(scripts) == bool(script)
    hashes = [f"'sha256-{_digest(text)}'" for text in (*scripts, style)]
    directives = [f"script-src {hashes[0]}; "] if script else []
    expected = f"default-src 'none'; {''.join(directives)}style-src {hashes[-1]}; "
    assert policy == f"{expected}base-uri 'none'; form-action 'none'"
    body = page.replace("".join(scripts), "").replace(style, "")
    assert body.count("&lt;script&gt;alert(1)&lt;/script&gt; &#34;&#39;&amp;") == 7
    assert "alert(1)</" not in body
    assert re.search(r" (src|srcset|style|on\w+)=", body) is None


def test_a_page_needs_all_of_its_content() -> None:
    with pytest.raises(jinja2.UndefinedError, match="cells"):
        html.render("studies/sweep/cells.html", title="Runs")


def test_a_table_has_links_grades_and_notes() -> None:
    macros: Any = html.environment().get_template("display/templates/macros.html").module
    cells = [
        Cell("a", number=False, link="#a"),
        Cell("1", "0 to 2"),
        Cell("missed", number=False, look="bad"),
    ]
    text = str(macros.table(text_table(("case", "error", "verdict"), [cells])))
    assert '<a href="#a">a</a>' in text
    assert '<td class="number">1<small>0 to 2</small></td>' in text
    assert '<span class="grade bad">missed</span>' in text
    assert 'aria-label="case"' in text
    assert 'aria-label="Cases"' in str(macros.table(Table([("", "")], []), label="Cases"))
