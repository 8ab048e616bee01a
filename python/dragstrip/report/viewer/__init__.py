"""The viewer: the JavaScript and the style sheet that draw a page's figures in the browser.

Scope: JavaScript modules that draw the descriptions of `dragstrip.report.figure`, their style sheet,
and the single script made from them. There is no build tool: browsers refuse modules from other files on a
page opened as a file, so `script` wraps each module in a function, in the order of their imports. The modules
themselves are standard, and the playground's page is built from the same ones
(docs/decisions/0018-one-viewer.md). Out of scope: anything that depends on what is measured or compared.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from dragstrip.io import untrusted

HERE = Path(__file__).parent
# Each after those that it imports from.
MODULES = (
    "data",
    "marks",
    "axes",
    "frame",
    "columns",
    "zoom",
    "cursor",
    "linked",
    "strips",
    "timelines",
    "distribution",
    "bars",
    "scatter",
    "shares",
    "rows",
    "copy",
    "page",
)

_IMPORT = re.compile(
    r'^import (?:\* as (?P<whole>\w+)|(?P<names>\{[^}]*\})) from "\./(?P<module>\w+)\.js";$', re.M
)
# Lines of comments alone, which a page needs not carry.
_COMMENT = re.compile(r"^ *(?://|/\*\*|\*).*\n", re.M)
_EXPORT = re.compile(r"^export ((?:const|function) (\w+))", re.M)


COPYING = ("copy",)
"""The modules for pages without figures, whose commands are copied by a click."""


@cache
def script(modules: tuple[str, ...] = MODULES) -> str:
    """Return all modules as one script; for `COPYING` the script also starts it."""
    parts = []
    for name in modules:
        text = _COMMENT.sub("", untrusted.text(HERE / f"{name}.js", untrusted.MIB, "our script"))
        text = _IMPORT.sub(lambda m: f"const {m['whole'] or m['names']} = {m['module']}Module;", text)
        exports = ", ".join(match[1] for match in _EXPORT.findall(text))
        body = _EXPORT.sub(r"\1", text)
        parts.append(f"const {name}Module = (() => {{\n{body}return {{ {exports} }};\n}})();\n")
    begin = "copyModule.watch();\n" if modules == COPYING else ""
    return f'"use strict";\n{"".join(parts)}{begin}'


@cache
def style() -> str:
    """Return the style sheet of the figures."""
    return untrusted.text(HERE / "chart.css", untrusted.MIB, "our style sheet")
