"""HTML pages from templates: the Jinja environment, the style sheet and the content security policy.

Every page is a template that extends `display/templates/base.html`. A template is named by its path in the
package, such as `report/page.html`, and stands beside the module that fills it. All values are escaped unless
they are `Markup`. A page is one file: style and script are in it, and its policy forbids any loading.
"""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup

from dragstrip import _core
from dragstrip.display import quantity
from dragstrip.display.colours import GRID, INK, MUTED, ON_DARK
from dragstrip.errors import BadInputError
from dragstrip.io import untrusted

PACKAGE = Path(__file__).parents[1]
"""Folder that the names of templates start from."""
STYLE_SHEET = Path(__file__).parent / "templates" / "page.css"


def stream(template: str, *, title: str, style: str = "", script: str = "", **content: Any) -> Iterator[str]:
    """Yield the page part by part, for pages too large to hold.

    `style` and `script` are our own texts, which are added to those of every page; `content` is the
    template's. Raises `jinja2.UndefinedError` if the template uses a name that `content` lacks.
    """
    page_style = page_style_sheet() + style
    return (
        environment()
        .get_template(template)
        .generate(
            title=title,
            version=_core.__version__,
            style=Markup(page_style),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704 - our own file
            policy=Markup(policy(page_style, script)),  # noqa: S704 - hashes and our own words
            **content,
        )
    )


def render(template: str, *, title: str, style: str = "", script: str = "", **content: Any) -> str:
    """Return the page as `stream` yields it."""
    return "".join(stream(template, title=title, style=style, script=script, **content))


def part(template: str, **content: Any) -> Markup:
    """Return a part of a page or an SVG picture from a template of its own."""
    return Markup(environment().get_template(template).render(**content))  # noqa: S704 - escaped there


def policy(style: str, script: str = "") -> str:
    """Return a content security policy that allows this style and script, and no loading of anything else."""
    scripts = f"script-src {_hash(script)}; " if script else ""
    return f"default-src 'none'; {scripts}style-src {_hash(style)}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def page_style_sheet() -> str:
    """Return the style sheet of every page, with lighter colours for figures on a dark page."""
    rules = ['.picture [fill="#ffffff"]{fill:var(--page)}.picture [stroke="#ffffff"]{stroke:var(--page)}']
    for light, dark in ON_DARK.items():
        rules.append(f'.picture [stroke="{light}"]{{stroke:{dark}}}.picture [fill="{light}"]{{fill:{dark}}}')
        rules.append(f'.swatch[data-colour="{light}"]{{background:{dark}}}')
    sheet = untrusted.text(STYLE_SHEET, untrusted.MIB, "our style sheet")
    # No style attributes: the page's policy forbids them.
    swatches = "".join(f'.swatch[data-colour="{colour}"]{{background:{colour}}}' for colour in ON_DARK)
    sheet = sheet.replace("/*light*/", f"--ink:{INK};--muted:{MUTED};--line:{GRID};")
    return sheet.replace("/*swatches*/", swatches).replace("/*dark pictures*/", "\n".join(rules))


class _Compiled(jinja2.BytecodeCache):
    """Keeps compiled templates where Python keeps compiled modules, since compiling takes half of the time.

    Jinja checks a template's hash. Where nothing may be written or read (`PYTHONDONTWRITEBYTECODE`),
    templates are compiled each time.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(BadInputError), untrusted.opened(self._file(bucket)) as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        file = self._file(bucket)
        draft = file.with_suffix(f".{os.getpid()}")
        if sys.dont_write_bytecode:
            return
        with suppress(OSError):
            file.parent.mkdir(exist_ok=True)
            try:
                draft.write_bytes(bucket.bytecode_to_string())
                draft.replace(file)
            finally:
                draft.unlink(missing_ok=True)

    def _file(self, bucket: Bucket) -> Path:
        return PACKAGE / "__pycache__" / f"{bucket.key}.{sys.implementation.cache_tag}.jinja"


@cache
def environment() -> jinja2.Environment:
    """Return the environment of all templates; every template has `q`, the module of quantities."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PACKAGE),
        bytecode_cache=_Compiled(),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["q"] = quantity
    return templates
