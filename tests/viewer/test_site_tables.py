"""Sortable tables of the site (docs/site/tables.js), in a browser."""

from __future__ import annotations

from pathlib import Path

from .browser import Browser

SCRIPT = Path(__file__).parents[2] / "docs/site/tables.js"
PAGE = """<!doctype html><div class="sortable heat"><table><thead><tr><th>name</th><th>share</th></tr></thead><tbody>
<tr><td>b</td><td>9</td></tr><tr><td>c</td><td>–</td></tr><tr><td>a</td><td>10</td></tr><tr><td>d</td><td>-1</td></tr>
</tbody></table></div><script src="tables.js"></script>"""
NAMES = "[...document.querySelectorAll('td:first-child')].map((cell) => cell.textContent).join('')"
CLICK = "document.querySelectorAll('th button')[{}].click()"


def test_a_click_sorts_by_number_or_text_and_a_second_turns_it(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "tables.js").write_text(SCRIPT.read_text())
    (tmp_path / "page.html").write_text(PAGE)
    page = browser.page(tmp_path / "page.html")
    assert page.value(NAMES) == "bcad"
    page.value(CLICK.format(1))
    assert page.value(NAMES) == "dbac"  # a cell without a number stands last, whichever way
    page.value(CLICK.format(1))
    assert page.value(NAMES) == "abdc"
    page.value(CLICK.format(0))
    assert page.value(NAMES) == "abcd"
    assert page.value("document.querySelectorAll('th')[0].getAttribute('aria-sort')") == "ascending"
    assert page.value("document.querySelectorAll('td')[1].style.getPropertyValue('--share')") == "6%"
