"""docs/reference/glossary.md from the glossary: `python -m tools.glossary docs/reference/glossary.md`."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import fill

from dragstrip.display import glossary
from dragstrip.display.glossary import Term

HEAD = """# Glossary

Terms of the field as these pages, reports and the command line use them; `dragstrip help TERM` prints the
same. Written by `make glossary` from `python/dragstrip/display/glossary.toml`.
"""


def page() -> str:
    """Return the page's Markdown."""
    return HEAD + "".join(_entry(term) for term in glossary.terms().values())


def _entry(term: Term) -> str:
    facts = {
        "Also": ", ".join(term.also),
        "In Dragstrip": term.here,
        "Source": term.source,
        "See": ", ".join(f"[{name}](#{glossary.terms()[name].anchor})" for name in term.see),
    }
    lines = "".join(
        fill(
            f"- {label}: {value}", 119, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
        )
        + "\n"
        for label, value in facts.items()
        if value
    )
    text = fill(term.text, 119, break_on_hyphens=False, break_long_words=False)
    return f'\n<a id="{term.anchor}"></a>\n\n## {term.heading}\n{text}\n\n{lines}'


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
